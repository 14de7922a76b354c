"""Replay the sessions of a project in their order in time: brief each one, learn from it, keep what was met.

A session is briefed as the hook at its start does, a subagent as the hook at its own, then imported, mined
and audited as the hook at its end does, in one process. Two plain lists are kept beside, of the kinds of
failures that were met so far.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bench.failure_kinds import (
    FILTER,
    NO_WORK,
    SHELL,
    Failure,
    Kind,
    has_failed,
    head_of,
    read_failure,
    split_steps,
    steps_of,
)
from rapidfuzz import fuzz

from archivist import Bank, projects
from archivist.brief.works import Habits, format_failing
from archivist.capture.formats import LogOrigin, open_file, recognise
from archivist.capture.formats import head_of as first_bytes
from archivist.capture.service import CaptureOverrides
from archivist.edges.hooks.dialects import DIALECTS
from archivist.errors import ArchivistError
from archivist.records import Episode, Event, Lesson

ALIKE = 80
MAX_PLAIN_LINES = 10
MAX_PLAIN_CHARACTERS = 800 * 4
MAX_LINE_CHARACTERS = 300
RECENT_SESSIONS = 10
_LOG_ENDINGS = (".json", ".jsonl", ".gz", ".zst")
_MENDS = re.compile(r"\b(?:install|sync|\S*fix|--write|fmt|format|mkdir|migrate|generate|\w*(?<!git )add)\b")
_PLAIN_WORD = re.compile(r"-.*|[a-z][a-z:-]*")


class Cure(NamedTuple):
    """The later call that succeeded at what had failed, and the words that it gained."""

    command: str
    gained: tuple[str, ...]


@dataclass
class Session:
    """One log: its run, the client that wrote it, and what happened."""

    path: Path
    client: str
    run: Episode
    events: list[Event]

    @cached_property
    def failures(self) -> dict[str, Failure]:
        """Return the failing calls by the ids of their events."""
        return {event.id: failure for event in self.events if (failure := read_failure(event))}

    @cached_property
    def kinds(self) -> dict[Kind, Failure]:
        """Return each kind of failure that the session met, with the first one."""
        return {failure.kind: failure for failure in reversed(self.failures.values())}

    @cached_property
    def cures(self) -> dict[Kind, Cure]:
        """Return by kind the first later call that did the same with success, where the two differ."""
        return find_cures(self.events)

    @cached_property
    def succeeded(self) -> set[str]:
        """Return the steps of the shell calls that went well."""
        return {step for event in self.events if not has_failed(event) for step in steps_of(event)}

    def runs(self, command: str) -> bool:
        """Say whether the session runs nearly this command with success."""
        steps = split_steps(command)
        return bool(steps) and all(any(is_near(step, done) for done in self.succeeded) for step in steps)


@dataclass(frozen=True)
class BriefLine:
    """One line of a brief: what it says, the kinds of failures it is about, the commands that it advises."""

    text: str
    kinds: frozenset[Kind]
    commands: tuple[str, ...] = ()

    def names(self, cure: Cure) -> bool:
        """Say whether the line names what then worked: the words gained, or nearly the same command."""
        if cure.gained and all(
            re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self.text, re.IGNORECASE)
            for word in cure.gained
        ):
            return True
        return any(is_near(step, cure.command) for each in self.commands for step in split_steps(each))


def is_near(one: str, other: str) -> bool:
    """Say whether two steps are nearly the same call of the same program."""
    return head_of(one) == head_of(other) and fuzz.ratio(one, other) >= ALIKE


def find_cures(events: Sequence[Event]) -> dict[Kind, Cure]:
    """Return by kind what made the first later call of the same purpose succeed, where that can be told.

    It is what the call gained or lost, else the last call in between that installs or mends something; of a
    tool, the other tools that were used on the same file in between.
    """
    cures: dict[Kind, Cure | None] = {}
    for at, event in enumerate(events):
        failure = read_failure(event)
        if failure is None or cures.get(failure.kind):
            continue
        tools: list[str] = []
        mending = ""
        for later in events[at + 1 :]:
            if not later.tool or has_failed(later):
                continue
            if failure.kind[0] != SHELL:
                if (later.tool, later.target) == (event.tool, event.target):
                    names = tuple(dict.fromkeys(tools))
                    cures[failure.kind] = Cure(" ".join(names), names) if names else None
                    break
                tools += [later.tool.lower()] if later.target and later.target == event.target else []
                continue
            steps = steps_of(later)
            if step := next((step for step in steps if _is_same_purpose(failure, step)), ""):
                cures[failure.kind] = _compare(failure.command, step, mending)
                break
            mending = next((step for step in reversed(steps) if _MENDS.search(step)), mending)
    return {kind: cure for kind, cure in cures.items() if cure}


def _is_same_purpose(failure: Failure, step: str) -> bool:
    head, old = head_of(step), failure.command
    if FILTER.fullmatch(head) or NO_WORK.fullmatch(head):
        return False
    # What a bare program such as `python` is for, only its arguments tell.
    if head == failure.kind[1] and (" " in head or is_near(step, old)):
        return True
    core = old.partition(" ")[2] if old.count(" ") > 1 else old
    return core in step or (" " in step and step in old)


def _compare(old: str, step: str, mending: str) -> Cure | None:
    words, before = step.split(), old.split()
    gained = tuple(word for word in words if word not in before and _PLAIN_WORD.fullmatch(word))
    if gained or any(word not in words for word in before if _PLAIN_WORD.fullmatch(word)):
        return Cure(step, gained)
    names = (re.split(r"[=<>~\[]", word)[0] for word in mending.split())
    return Cure(mending, tuple(name for name in names if re.fullmatch(r"[\w.-]+", name))) if mending else None


def read_sessions(folder: Path) -> tuple[list[Session], int]:
    """Return the sessions of a folder in their order in time, and how many logs no format recognises."""
    sessions: list[Session] = []
    unread = 0
    for path in sorted(folder.rglob("*")):
        if not path.name.endswith(_LOG_ENDINGS) or "outcomes" in path.name:
            continue
        try:
            with open_file(path) as source:
                adapter = recognise(first_bytes(source), path.name)
                items = list(adapter.read(source, LogOrigin(path.name)))
        except ArchivistError:
            unread += 1
            continue
        runs = [item for item in items if isinstance(item, Episode)]
        if runs:
            events = [item for item in items if isinstance(item, Event)]
            sessions.append(Session(path, adapter.name, runs[-1], events))
    return sorted(sessions, key=_time_order), unread


def _time_order(session: Session) -> tuple[int, datetime, str]:
    number = re.match(r"\d{4}(?=_)", session.path.name)
    began = session.run.started or datetime.max.replace(tzinfo=UTC)
    return int(number[0]) if number else 0, began, session.path.name


@dataclass
class KindHistory:
    """The kinds of failures that a project's sessions met so far, from which the plain lists are made."""

    sessions: Counter[Kind] = field(default_factory=Counter)
    last: dict[Kind, int] = field(default_factory=dict)
    lines: dict[Kind, BriefLine] = field(default_factory=dict)
    recent: deque[set[Kind]] = field(default_factory=lambda: deque(maxlen=RECENT_SESSIONS))
    count: int = 0

    def add(self, session: Session) -> None:
        """Add what a session met."""
        self.count += 1
        self.recent.append(set(session.kinds))
        for kind, failure in session.kinds.items():
            self.sessions[kind] += 1
            self.last[kind] = self.count
            cure = session.cures.get(kind)
            known = self.lines.get(kind)
            if cure is None and known is not None and known.commands:
                continue
            text = f"{failure.command or kind[0]}: {failure.line}" + (f" -> {cure.command}" if cure else "")
            commands = (cure.command,) if cure else ()
            self.lines[kind] = BriefLine(text[:MAX_LINE_CHARACTERS], frozenset({kind}), commands)

    def frequent(self) -> list[BriefLine]:
        """Return the kinds that most sessions met, each with the command that next succeeded."""
        return self._fitting(sorted(self.lines, key=lambda kind: (-self.sessions[kind], -self.last[kind])))

    def latest(self) -> list[BriefLine]:
        """Return the kinds that were met last, each with the command that next succeeded."""
        return self._fitting(sorted(self.lines, key=lambda kind: (-self.last[kind], -self.sessions[kind])))

    def _fitting(self, kinds: Iterable[Kind]) -> list[BriefLine]:
        lines: list[BriefLine] = []
        for kind in list(kinds)[:MAX_PLAIN_LINES]:
            lines.append(self.lines[kind])
            if sum(len(line.text) for line in lines) > MAX_PLAIN_CHARACTERS:
                return lines[:-1]
        return lines


class Memory:
    """A bank of one project that sessions are briefed from and learnt into, at the time of the session."""

    def __init__(self, folder: Path, *, is_of_one_project: bool) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._is_of_one_project = is_of_one_project
        self._now = datetime(2000, 1, 1, tzinfo=UTC)
        self._failures: dict[str, Failure] = {}
        self._kinds: dict[str, set[Kind]] = {}
        self._programs: set[str] = set()
        self.bank = Bank.open(folder, clock=lambda: self._now, create=True)
        self.learn_s = 0.0
        self.brief_s = 0.0

    def brief(self, session: Session) -> tuple[list[BriefLine], list[BriefLine]]:
        """Return the lines that the hook at a session's start gives, and those of a brief about its task.

        No brief is recorded: the session never read it, and would be judged not to have been helped by it.
        """
        self._set_time(session.run.started)
        dialect = DIALECTS.get(session.client)
        begun = time.process_time()
        project = self._project_of(session)
        if session.run.parent:
            brief = self.bank.sessions.brief_subagent("", project)
        else:
            brief = self.bank.sessions.brief_session(
                "",
                project,
                folder=self._folder if self._is_of_one_project else None,
                provider=dialect.harness or dialect.name if dialect else "",
            )
        self.brief_s += time.process_time() - begun
        about_task = self.bank.brief(task=session.run.task, repo=project)
        start, task = (
            [*(self._line(each.lesson) for each in found.chosen), *self._failing(found.habits)]
            for found in (brief, about_task)
        )
        return start, task

    def _failing(self, habits: Habits) -> list[BriefLine]:
        """Return what often fails, and the checks that find faults: each entry a line of its own."""
        text = format_failing(habits.fails)
        told = [
            (each.describe(is_first=False), each.events, ())
            for each in habits.fails
            if f"`{each.call}` in " in text
        ]
        found = [(each.describe(), each.events, (each.command,)) for each in habits.works if each.found_in]
        lines = []
        for words, events, commands in (*told, *found):
            kinds = frozenset(self._failures[name].kind for name in events if name in self._failures)
            lines += [BriefLine(words, kinds, commands)] if kinds else []
        return lines

    def learn(self, session: Session) -> None:
        """Do what follows the end of a session: import its log, reflect, age, audit, embed."""
        times = [event.time for event in session.events if event.time]
        self._set_time(session.run.finished or max(times, default=None))
        self._failures |= session.failures
        self._kinds[session.run.id] = set(session.kinds)
        self._programs |= {head_of(step) for event in session.events for step in steps_of(event)}
        begun = time.process_time()
        known = CaptureOverrides(run=session.run.parent or session.run.id)
        if self._is_of_one_project:
            known = known._replace(project=self._project_of(session), folder=str(self._folder))
        self.bank.runs.finish(session.path, overrides=known, format_name=session.client)
        for _ in self.bank.reflections.reflect_waiting():
            pass
        with self.bank.reading() as reader:
            failed = [run.error for run in reader.queued_runs() if run.error]
        if failed:
            raise RuntimeError(f"reflection failed: {failed[0]}")
        for _ in self.bank.vectors.embed_waiting():
            pass
        self.bank.erasure.finish_erasures()
        self.learn_s += time.process_time() - begun

    def _project_of(self, session: Session) -> str:
        if not self._is_of_one_project:
            return session.run.project
        with self.bank.reading() as reader:
            return projects.project_at(reader, self._folder, self.bank.root)

    def _set_time(self, moment: datetime | None) -> None:
        self._now = max(self._now, moment or self._now)

    def _line(self, lesson: Lesson) -> BriefLine:
        """Return a lesson with the kinds of the failing calls in its evidence."""
        events = lesson.evidence.events
        failures = [self._failures[event] for event in events if event in self._failures]
        kinds = {failure.kind for failure in failures}
        if not events:
            # Nothing else is known of it: the kinds that every run which met it met.
            met = [self._kinds[run] for run in lesson.runs if run in self._kinds]
            kinds = set.intersection(*met) if met else set()
        tried = {failure.command for failure in failures}
        commands = [command for text in lesson.remedies for command in text.split("`")[1::2] or [text]]
        # Advice in words names no program that a session ever ran.
        advised = tuple(
            command
            for command in commands
            if command not in tried
            and all(head_of(step) in self._programs for step in split_steps(command) or [""])
        )
        return BriefLine(f"{lesson.summary} {lesson.rule}".strip(), frozenset(kinds), advised)
