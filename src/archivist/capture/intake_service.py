"""Take the items of one log in: clean them, file them under their project, write them in batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, Verb
from archivist.capture.clean import Cleaner
from archivist.capture.runs import claim_run, count_events, require_own_run, without_bank_notes
from archivist.records.episode import Episode, merge_episode
from archivist.records.run_words import BEGAN, DECIDED, FOLDER, UNREAD, EpisodeStatus
from archivist.records.words import PART, Provenance
from archivist.service import require_name
from archivist.store.filters import at_least, at_most, equals, not_equals, one_of
from archivist.text import pluralize

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.bank import Bank
    from archivist.capture.recorder import LogItem
    from archivist.records import Event, Finding
    from archivist.store.protocol import Reader, Writer

# Events are written in batches: one transaction an event took 40 times as long, and a whole log of
# 200,000 events in memory passed the bound of 300 MB (tests/e2e/test_large_logs.py).
_BATCH_EVENTS = 2_000
# For the same reason, of a longer run nothing is held back to see whether its log is a shorter copy.
_MOST_HELD = 50_000
# How many sessions that were open at a time are looked at for one that another was forked from.
_MOST_OPEN = 100
# A damaged log can have a bad record on every line; the first kinds of them are enough to find the cause.
_MAX_REASONS = 20
# Why a line is no event.
NO_TYPE = "type: missing"


class CaptureResult(NamedTuple):
    """The result of an intake: its runs, the number of events, the skipped lines, the redacted secrets.

    `created` and `updated` are the ids of new and of changed runs. `strays` tell of runs that were started in
    another project than that of their log. `shorter` are runs whose log has less than the bank knows. With
    `is_cut` the log ends in the middle of a record.
    """

    file: str = ""
    episodes: tuple[Episode, ...] = ()
    events: int = 0
    changed: int = 0
    skipped: int = 0
    reasons: tuple[str, ...] = ()
    secrets: Mapping[str, int] = MappingProxyType({})
    is_unchanged: bool = False
    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    shorter: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def is_without_events(self) -> bool:
        """Say whether its lines are JSON objects, but none is an event."""
        return bool(self.reasons) and all(each.endswith(NO_TYPE) for each in self.reasons)


class CaptureOverrides(NamedTuple):
    """What the caller knows better than the log.

    With a folder the project is that of its repository: a subagent that began in another is filed there.
    `is_filed` says that the episodes have their projects already, as those of another bank do.
    """

    run: str = ""
    project: str = ""
    folder: str = ""
    status: EpisodeStatus | None = None
    outcomes: Mapping[str, EpisodeStatus] = MappingProxyType({})
    is_filed: bool = False


def _moment_of(event: Event) -> tuple[object, ...]:
    return event.time, event.kind, event.tool, event.text, hash(event.output)


class Intake:
    """Clean the items of one source, file them under their project, and write them in batches.

    A run's record is written after its events. A log tells a run from its beginning, so one that tells less
    than the bank knows is cut, or an old copy: it changes nothing.
    """

    def __init__(self, bank: Bank, overrides: CaptureOverrides, verb: str, *, is_log: bool) -> None:
        self._bank = bank
        self._known = overrides
        self._verb = verb
        self._is_log = is_log
        self._is_cut = False
        # By run: how many events the bank holds of it, how many the log told, and those not written yet.
        self._stored: dict[str, int] = {}
        self._told: Counter[str] = Counter()
        self._held: dict[str, list[Event]] = {}
        # By run: the findings that the bank holds of it, by event.
        self._reviewed: dict[str, dict[str, tuple[Finding, ...]]] = {}
        # By run, as long as its log only repeats it: what another session's log told before.
        self._copied: dict[str, set[tuple[object, ...]]] = {}
        self._firsts: dict[str, Event] = {}
        # By run: how many findings of another log under its id were left out.
        self._left_findings: Counter[str] = Counter()
        self._decided: dict[str, EpisodeStatus] = {}
        self._cleaner = Cleaner()
        self._events: list[Event] = []
        # By folder and where the run began: the project of another repository, nothing for the run's own.
        self._foreign: dict[tuple[str, str], str] = {}
        self._began: dict[str, datetime] = {}
        self._parts: dict[str, tuple[str, str, str]] = {}
        # By run: where the lines of its calls lead, from where it began.
        self._entered: dict[str, set[str]] = defaultdict(set)
        # By run: the paths that its calls name.
        self._named: dict[str, set[str]] = defaultdict(set)
        self._episodes: list[Episode] = []
        self._reasons: Counter[str] = Counter()
        self._strays: list[str] = []
        self._runs_with_events: set[str] = set()
        self._count = 0
        self._changed = 0

    def add(self, item: LogItem) -> None:
        if isinstance(item, Episode):
            episode = self._assign_project(self._cleaner.clean(item))
            if not self._known.is_filed:
                episode = without_bank_notes(episode)
            status = None if episode.parent else self._known.status
            if self._known.outcomes:
                from archivist.capture.status import outcome_of

                status = outcome_of(episode, self._known.outcomes) or status
            if status:
                self._decided[episode.id] = status
                episode = replace(episode, status=status, extra={**episode.extra, DECIDED: True})
            self._episodes.append(episode)
            return
        # A session's start records a run without events.
        from archivist.records.event import Event

        if isinstance(item, Event):
            from archivist.reading.elsewhere import named_paths, paths_entered

            self._count += 1
            event = self._cleaner.clean(item)
            first = self._firsts.setdefault(event.run, event)
            if self._is_log and event.tool and self._is_copied(event, first):
                return
            event = self._assign_part(event)
            folder = str(event.extra.get(FOLDER) or "")
            self._entered[event.run].update(place for place, _ in paths_entered(event, folder))
            self._entered[event.run].update([folder] if folder else ())
            self._named[event.run].update(named_paths(event, folder))
            self._add_event(item.run, event)
        else:
            self._is_cut = self._is_cut or item.is_end
            self._reasons[self._cleaner.text(f"{item.where}: {item.reason}")] += 1

    def _is_copied(self, event: Event, first: Event) -> bool:
        """Say whether a call is of the beginning of another session, which a fork's log tells once more.

        It happened once. The log that was captured first keeps it. What was said is told in both.
        """
        run = event.run
        if run not in self._copied:
            self._copied[run] = self._read_forked(first)
        if _moment_of(event) in self._copied[run]:
            return True
        self._copied[run] = set()
        return False

    def _read_forked(self, first: Event) -> set[tuple[object, ...]]:
        """Return the calls of the own session that began as this one, if it is another."""
        from archivist.records import Event

        if first.time is None:
            return set()
        from archivist.clock import to_text

        moment = to_text(first.time)
        began = at_most("started", moment), at_least("finished", moment), not_equals("id", first.run)
        with self._bank.reading() as reader:
            is_whole = equals("parent", ""), equals("action", None), equals("provenance", Provenance.MINED)
            rows = reader.select_fields("episode", ("id",), *began, *is_whole, limit=_MOST_OPEN)
            for (other,) in rows:
                known = reader.get(Event, f"{other}#{first.seq}")
                if known is not None and _moment_of(known) == _moment_of(first):
                    told = reader.select(Event, equals("run", other), order=("seq",), limit=_MOST_HELD)
                    return set(map(_moment_of, told))
        return set()

    def _add_event(self, run: str, event: Event) -> None:
        """Hold the events of a known run back until the log has told more of them than the bank holds."""
        if run not in self._stored:
            with self._bank.reading() as reader:
                self._stored[run] = count_events(reader, event, self._bank.actor) if self._is_log else 0
        self._told[run] += 1
        if self._told[run] <= self._stored[run] <= _MOST_HELD:
            self._held.setdefault(run, []).append(event)
            return
        self._events += (*self._held.pop(run, ()), event)
        if len(self._events) >= _BATCH_EVENTS:
            self._write_events()

    def _shorter_runs(self) -> set[str]:
        """Return the runs of which the log tells less than is known; what else is held back is written."""
        found = set()
        ended = {episode.id: episode.finished for episode in self._episodes}
        with self._bank.reading() as reader:
            for run, events in self._held.items():
                known, end = reader.get(Episode, run), ended.get(run)
                known_end = known.finished if known else None
                is_less = self._told[run] < self._stored[run] or bool(self._reasons)
                if end and known_end and end != known_end:
                    # A call whose result is cut off is an event all the same.
                    is_less = end < known_end
                if is_less and known is not None:
                    found.add(run)
                    self._without_other_findings(reader, run, events)
                else:
                    self._events += events
        return found

    def _claim(self, writer: Writer, run: str) -> None:
        """Let the user's log replace what an agent or a file said of the same run."""
        if self._verb != "import":
            claim_run(writer, run, self._bank.actor)

    def finish(self) -> CaptureResult:
        from archivist import projects

        created: list[str] = []
        updated: list[str] = []
        stored: list[Episode] = []
        shorter = self._shorter_runs()
        runs = {episode.id: episode for episode in self._episodes if episode.id not in shorter}
        # What a run did in another repository is an episode of its own, filed under that project.
        parts: list[Episode] = []
        for part, (run, project, folder) in self._parts.items():
            if run in runs:
                checkout = projects.checkout_info(Path(folder), self._bank.root)
                extra = {**runs[run].extra, FOLDER: folder, projects.CHECKOUT: checkout}
                extra |= {projects.ENTERED: {}, **self._note_entered(part, Path(folder), Path(folder))}
                parts.append(
                    replace(runs[run], id=part, parent=run, project=project, usage=None, extra=extra)
                )
        with self._bank.transaction() as writer:
            self._write_events()
            for run, count in self._left_findings.items():
                left = f"another log has this id, {pluralize(count, 'finding')} of this one not read"
                self._reasons[f"run {run}: {left}: give each run an id of its own"] += 1
            for episode in (*self._episodes, *parts):
                require_name(episode.id, "run")
                if self._count and episode.id not in self._runs_with_events:
                    self._claim(writer, episode.id)
                known = writer.get(Episode, episode.id)
                # An attempt is only written by an actor who may log attempts, also when a run has its id.
                if episode.action or (known and known.action):
                    self._bank.require(Layer.EPISODES, Verb.WRITE)
                require_own_run(self._bank, writer, episode.id)
                if known and episode.id in shorter:
                    stored.append(replace(known, status=self._decided.get(episode.id, known.status)))
                else:
                    merged = merge_episode(known, episode) if known else episode
                    stored.append(self._note_unread(merged) if self._is_log else merged)
                if writer.put(stored[-1], self._verb):
                    self._changed += 1
                    (updated if known else created).append(episode.id)
                if self._changed and episode.id in self._runs_with_events:
                    writer.queue(episode.id)
        return CaptureResult(
            episodes=tuple(stored),
            events=self._count,
            changed=self._changed,
            skipped=sum(self._reasons.values()),
            reasons=tuple(reason for reason, _ in self._reasons.most_common(_MAX_REASONS)),
            secrets=dict(self._cleaner.secrets),
            created=tuple(created),
            updated=tuple(updated),
            strays=tuple(self._strays),
            shorter=tuple(sorted(shorter)),
            is_cut=self._is_cut,
        )

    def _note_unread(self, episode: Episode) -> Episode:
        """Note on a run what could not be read in its log; a whole log takes an earlier note away."""
        extra = {name: value for name, value in episode.extra.items() if name != UNREAD}
        if self._reasons:
            first, _ = self._reasons.most_common(1)[0]
            extra[UNREAD] = {"lines": self._reasons.total(), "first": first, "is_cut": self._is_cut}
        return replace(episode, extra=extra)

    def _write_events(self) -> None:
        runs: dict[str, list[Event]] = {}
        for event in self._events:
            runs.setdefault(event.run, []).append(event)
        with self._bank.transaction() as writer:
            for run, events in runs.items():
                if run not in self._runs_with_events and (known := writer.get(Episode, run)) and known.action:
                    self._bank.require(Layer.EPISODES, Verb.WRITE)
                require_own_run(self._bank, writer, run)
                if run not in self._runs_with_events:
                    self._claim(writer, run)
                self._runs_with_events.add(run)
                readable = self._without_other_findings(writer, run, events)
                self._changed += writer.put_events(run, readable, self._verb)
        self._events.clear()

    def _without_other_findings(self, reader: Reader, run: str, events: list[Event]) -> list[Event]:
        """Leave out events that a log of another run under the same id would put in the place of reviews.

        Lessons cite the findings that were there. A log that has grown tells them again, or more.
        """
        if not self._is_log:
            return events
        if run not in self._reviewed:
            from archivist.records import Event, EventKind

            of_reviews = one_of("kind", (EventKind.VERDICT, EventKind.FIX))
            stored = reader.select(Event, equals("run", run), of_reviews)
            self._reviewed[run] = {event.id: event.findings for event in stored}
        reviewed, kept = self._reviewed[run], []
        for event in events:
            before = reviewed.get(event.id, ())
            if event.findings[: len(before)] == before:
                kept.append(event)
                continue
            self._left_findings[run] += len(event.findings)
        return kept

    def _assign_part(self, event: Event) -> Event:
        """Move an event of another repository to the part of its run that is filed under that project."""
        if event.time is not None:
            self._began.setdefault(event.run, event.time)
        if BEGAN not in event.extra:
            return event
        folder, began = str(event.extra[FOLDER]), str(event.extra[BEGAN])
        event = replace(event, extra={name: value for name, value in event.extra.items() if name != BEGAN})
        from archivist.projects import is_newer

        # While the session ran, a script of the folder itself may have swapped it.
        is_unknown = is_newer(Path(folder), self._began.get(event.run))
        project = "" if is_unknown else self._foreign_project(folder, began)
        if not project:
            return event
        part = f"{event.run}{PART}{project}"
        self._parts.setdefault(part, (event.run, project, folder))
        return replace(event, run=part)

    def _foreign_project(self, folder: str, began: str) -> str:
        from archivist import projects

        if (folder, began) not in self._foreign:
            root = self._bank.root
            with self._bank.reading() as reader:
                project = projects.foreign_project(reader, Path(folder), Path(began), root)
                is_own = project and project == projects.project_at(reader, Path(began), root)
            self._foreign[folder, began] = "" if is_own else project
        return self._foreign[folder, began]

    def _note_entered(self, run: str, began: Path, home: Path) -> dict[str, object]:
        from archivist.projects import find_nested, note_entered

        nested = find_nested(self._named.get(run, ()), began)
        return note_entered({*self._entered.get(run, ()), *nested}, began, home, self._bank.root)

    def _assign_project(self, episode: Episode) -> Episode:
        """Change a run's project when another repository owns the project's name."""
        from archivist import projects
        from archivist.paths import is_folder

        folder, root = episode.extra.get(FOLDER), self._bank.root
        if self._known.project and not episode.parent:
            with self._bank.reading() as reader:
                known = reader.get(Episode, episode.id)
            if known and known.project not in ("", self._known.project):
                where = f"is filed under {self._known.project}, as it was named"
                self._strays.append(f"{episode.id} was started in project {known.project}, and {where}")
        if self._known.is_filed or not isinstance(folder, str):
            return episode
        if projects.is_newer(Path(folder), episode.started):
            project, checkout = projects.unknown_project(Path(folder))
            return replace(episode, project=project, extra={**episode.extra, projects.CHECKOUT: checkout})
        # A client's database says nothing of the caller's name for it.
        project, extra = self._known.project or episode.project, episode.extra
        place = Path(folder) if is_folder(Path(folder)) else projects.stranger_around(Path(folder), root)
        home = place or Path(self._known.folder or folder)
        extra = {**extra, **self._note_entered(episode.id, Path(folder), home)}
        if place is not None and projects.CHECKOUT not in extra:
            # A worktree or container may be gone when the next run asks whose a name is.
            extra = {**extra, projects.CHECKOUT: projects.checkout_info(place, root)}
        if not self._known.project:
            with self._bank.reading() as reader:
                remote = str(extra.get(projects.REMOTE) or "")
                project = projects.project_of_run(reader, project, Path(folder), root, remote)
                # What an agent said of a run under its id does not decide where its log is filed.
                started = reader.get(Episode, episode.id) if reader.is_own_run(episode.id) else None
                if started and started.project and started.project != project:
                    if project and started.project not in projects.names_of(reader, project):
                        where = f"was started in project {started.project}, and its log is of {project}"
                        self._strays.append(f"{episode.id} {where}: it stays with {started.project}")
                    project = started.project
        elif episode.parent and self._known.folder and is_folder(Path(folder)):
            project = self._foreign_project(folder, self._known.folder) or project
        return replace(episode, project=project, extra=extra)
