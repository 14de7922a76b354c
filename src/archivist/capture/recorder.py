"""Record one run while its log is read: number events, join calls with results, build the episode.

What a log does not state is derived: the task, the project, the model and who made it.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from archivist.capture.calls import REFUSED_EDIT, CallOutcome, LoggedCall, describe, outside_sandbox
from archivist.capture.clean import strip_briefs
from archivist.capture.json_stream import LogLine, Part, SkippedRecord
from archivist.capture.status import Ending, status_of, status_of_exit
from archivist.capture.values import (
    MESSAGE_SIDE_CHARS,
    TASK_CHARS,
    as_float,
    clip,
    compact_json,
    count,
    seconds_between,
)
from archivist.capture.values import text as read_text
from archivist.cold_start import lazy_pattern
from archivist.ids import derived_id
from archivist.paths import ANY_HOME, project_of_folder
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind, Usage
from archivist.records.run_words import BEGAN, FOLDER, OPEN_SHELL, TYPED
from archivist.text import shorten

_TASK_TAG = lazy_pattern(
    r"<(pr_description|issue_description|problem_statement|task_description|issue|task)>", re.ASCII
)
# How harnesses frame the request in a prompt: what stands before it, and what may follow it.
_TASK_FRAMES = (
    (lazy_pattern(r"\bISSUE:\n"), ("\nINSTRUCTIONS:",)),
    (
        lazy_pattern(r"\AYour task is(?: to solve)?:? "),
        ("\n\nYou can execute", "\n\nPlease reply", "\n\nIMPORTANT"),
    ),
    (
        lazy_pattern(r"\A(?:Please solve this issue|Your task|Here is your task): ?\n*"),
        ("\n\nYou can", "\n\nPlease "),
    ),
    (lazy_pattern(r"-{5} NEW TASK DESCRIPTION -+\n"), (" END OF NEW TASK",)),
    (lazy_pattern(r"\bTask Description:\n"), ("\nCurrent terminal state:",)),
)
# Commands of the client, and what it wrote itself: the request is still to come.
_NO_TASK = lazy_pattern(r"(?:/[\w:-]+|<[a-z][\w-]*>.*)?\Z", re.DOTALL)
_WRAPPER = lazy_pattern(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>", re.ASCII)
_WRAPPER_END = lazy_pattern(r"</[A-Za-z][\w-]*>\Z", re.ASCII)
_TASK_PREFACE = lazy_pattern(r"\AConsider the following PR description:\s*")
# No name of an instance is longer; 3 kB from a hostile log could keep the pattern busy for a minute.
INSTANCE_CHARACTERS = 200
_INSTANCE = lazy_pattern(
    r"([A-Za-z0-9][\w.-]*?)__([A-Za-z0-9][\w.-]*?)-(\d+)(?![\w-])", longest=INSTANCE_CHARACTERS
)
# Below what was typed, Cursor puts the text of each command in it; the text itself may hold the closing mark.
_CURSOR_COMMAND = "--- Cursor Command:"
_FILE_NUMBER = lazy_pattern(r"\A\d+-(?=[A-Za-z])")
# How the names of a maker's models begin.
_MAKERS = {
    "anthropic": ("claude",), "openai": ("gpt", "o1", "o3", "o4", "codex"), "google": ("gemini",),
    "deepseek": ("deepseek",), "xai": ("grok",), "qwen": ("qwen",), "moonshot": ("kimi",), "zai": ("glm",),
    "mistral": ("mistral", "devstral"), "meta": ("llama",),
}  # fmt: skip
# These serve the models of several makers; the model's name says which.
GATEWAYS = frozenset((
    "github-copilot", "copilot", "openrouter", "opencode", "azure", "bedrock", "amazon-bedrock", "vertex_ai",
    "google-vertex", "vercel", "litellm", "litellm_proxy", "ollama", "lmstudio", "together", "together_ai",
    "fireworks", "fireworks_ai", "groq",
))  # fmt: skip


def task_of(prompt: str) -> str:
    """Return the request in a prompt: the problem statement itself when it stands in a known frame."""
    prompt = strip_briefs(prompt)
    found = _task_in_tags(prompt) or _task_in_frame(prompt) or prompt
    return shorten(found.replace("\r\n", "\n").strip(), TASK_CHARS)


def _task_in_tags(prompt: str) -> str:
    unclosed: set[str] = set()
    for opening in _TASK_TAG.finditer(prompt):
        end = -1 if opening[1] in unclosed else prompt.find(f"</{opening[1]}>", opening.end())
        unclosed.add(opening[1])
        if end >= 0:
            return _TASK_PREFACE.sub("", prompt[opening.end() : end].strip())
    return ""


def _task_in_frame(prompt: str) -> str:
    for start, ends in _TASK_FRAMES:
        if opening := start.search(prompt):
            following = [at for end in ends if (at := prompt.find(end, opening.end())) >= 0]
            if following:
                return prompt[opening.end() : min(following)].rstrip("-")
    return ""


def _is_wrapped(text: str) -> bool:
    """Say whether a text is all within tags: clients wrap so what they put into the user's turn."""
    if not (text.startswith("<") and text.endswith(">")):
        return False
    opening = _WRAPPER.match(text)
    if opening is None or f"</{opening[1]}>" not in text or _task_in_tags(text):
        return False
    return _WRAPPER_END.match(text, text.rfind("</")) is not None


def instance_in(name: str) -> str:
    """Return the benchmark instance that a name holds, such as `owner__repo-123`."""
    # Collections number their files; no owner's name begins like that.
    match = _INSTANCE.search(_FILE_NUMBER.sub("", name))
    return match.group() if match else ""


def project_of_instance(instance: str) -> str:
    """Return `owner/repo` of a benchmark instance."""
    match = _INSTANCE.search(instance)
    return f"{match.group(1)}/{match.group(2)}" if match else ""


def maker_and_model(name: str) -> tuple[str, str]:
    """Split `maker/model`, or derive the maker from a model's family; a gateway that serves it is none."""
    first, slash, model = name.partition("/")
    if slash and first and model:
        if first not in GATEWAYS:
            return first, model
        maker, model = maker_and_model(model)
        return maker or first, model
    lowered = name.lower()
    return next((maker for maker, starts in _MAKERS.items() if lowered.startswith(starts)), ""), name


@dataclass(frozen=True, slots=True)
class LogOrigin:
    """Where a log came from, and what the caller knows better than the log."""

    path_name: str = ""
    run: str = ""
    project: str = ""
    folder: Path | None = None
    # By run: the numbers that other review logs of the same call gave to its events.
    numbers: dict[str, set[int]] = field(default_factory=dict)
    # Where the session began, if the log does not say it.
    began: str = ""


def read_usage(
    given: Mapping[str, Any], input_tokens: str, output_tokens: str, cached_tokens: str = "", cost: str = ""
) -> Usage:
    """Read what was used, by the names that a log has for it; what has several names is added up.

    The input includes what was cached.
    """
    return Usage(
        input_tokens=sum(count(given.get(name)) for name in input_tokens.split()),
        output_tokens=sum(count(given.get(name)) for name in output_tokens.split()),
        cached_tokens=count(given.get(cached_tokens)),
        cost_usd=as_float(given.get(cost)),
    )


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return what two parts of a run used together."""
    costs = [each.cost_usd for each in (one, other) if each.cost_usd is not None]
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost_usd=sum(costs) if costs else None,
        extra=one.extra,
    )


LogItem: TypeAlias = Event | Episode | SkippedRecord
# Calls wait for their results, and results that came first for their calls; more than this is a damaged log.
_MAX_WAITING = 256
_TAGGED_TOOLS = 4
_ENTERS = lazy_pattern(r"\b(?:cd|pushd|chdir)\s+(?P<folder>\"[^\"\n]*+\"|'[^'\n]*+'|[^\s;&|)]++)")
_PLAIN_FOLDER = lazy_pattern(r"[\w./~@+ -]+")
_LONGEST_COMMAND = 4000
_COMMAND_ARGUMENTS = ("command", "cmd", "script")
# How the clients' tools call the folder that a command is run in.
_FOLDER_ARGUMENTS = ("workdir", "working_directory", "workingDirectory", "cwd", "directory", "dir_path")
# A server's tools may call it anything: there another path, but that of a shell, is the folder.
_OF_SERVER = lazy_pattern(r"(?i)mcp|__|[./:]")
_PATH_ARGUMENT = lazy_pattern(r"(?:file://)?(?P<path>(?:/|~|\.\.?(?:/|\Z))[^\n]{0,400})\Z")
# How they call the shell that a command is sent to.
_SHELL_ARGUMENTS = ("sessionId", "shellId", "session_id", "shell_id", "terminalId", "terminal_id")
_ONLY_SHELL = "terminal"
# What an episode takes from its recorder as it is.
_EPISODE_FIELDS = (
    "parent", "task", "subtask", "agent", "model", "started", "finished", "summary", "domain", "extra",
)  # fmt: skip


@dataclass(eq=False)
class Recorder:
    """The run that is being read. Its events go to `items`, and at its end its episode.

    `keeps_shell` says that commands may go to one shell that stays open. Where each has a shell of its own,
    or the log states the folder of each, it does not.
    """

    origin: LogOrigin
    keeps_shell: ClassVar[bool] = True
    run: str = ""
    agent: str = ""
    parent: str = ""
    is_subagent: bool = False
    items: list[LogItem] = field(default_factory=list)
    time: datetime | None = None
    session: str = ""
    project: str = ""
    folder: str = ""
    task: str = ""
    subtask: str = ""
    domain: str = ""
    summary: str = ""
    model: str = ""
    # Who made the model.
    maker: str = ""
    stated: EpisodeStatus | None = None
    ending: Ending = field(default_factory=Ending)
    spent: Usage = field(default_factory=Usage)
    extra: dict[str, object] = field(default_factory=dict)
    started: datetime | None = None
    finished: datetime | None = None
    next_seq: int = 0
    # A call that waits for its result, or the place of a result that waits for its call.
    _waiting: dict[str, tuple[Event, CallOutcome | None]] = field(default_factory=dict)
    _calls: Counter[str] = field(default_factory=Counter)
    _failed_calls: int = 0
    # Where each shell is that stays open between calls.
    _open_shells: dict[str, str] = field(default_factory=dict)

    def read(self, records: Iterable[LogLine | Part | SkippedRecord]) -> Iterator[LogItem]:
        """Yield what the records of a log tell, as they come."""
        for record in records:
            if isinstance(record, SkippedRecord):
                self.ending.is_damaged = True
                self.ending.is_cut = record.is_end
                yield record
            else:
                self.take(record)
                yield from self.items
                self.items.clear()
        self.finish()
        yield from self.items

    def take(self, record: Any) -> None:
        """Take one record of the log: each format has its own."""
        raise NotImplementedError

    def open_run(self, beginning: object, name: str = "") -> None:
        """Fix the run's id: the caller's, the log's own, else one that its beginning always has."""
        self.run = self.run or self.origin.run or name or derived_id(self.agent, compact_json(beginning))
        self.enter_folder(self.folder or self.origin.began)

    def move_to(self, time: datetime | None) -> None:
        """Take the time of what is recorded next; None when it is unknown."""
        self.time = time
        self.extend_span(time)

    def extend_span(self, time: datetime | None) -> None:
        """Widen the run's span to this time."""
        if time is None:
            return
        self.started = time if self.started is None else min(self.started, time)
        self.finished = time if self.finished is None else max(self.finished, time)

    def use_model(self, name: str) -> None:
        """Take the model's name, the first that is given."""
        if name and not self.model:
            maker, self.model = maker_and_model(name)
            self.maker = self.maker or maker

    def add_facts(self, **facts: str) -> None:
        """Add what is known about the run; the first fact of a name stays."""
        for name, fact in facts.items():
            if fact:
                self.extra.setdefault(name, fact)

    def use_instance(self, instance: str, folder: str = "") -> None:
        """Take the benchmark's instance, else the one in the file's name. Its repository is the project."""
        instance = instance or instance_in(self.origin.path_name)
        self.add_facts(instance=instance)
        self.project = project_of_instance(instance) or self.project or project_of_folder(folder)

    def enter_folder(self, folder: str) -> None:
        """Take the folder that the run works in from here on; the first is where it began."""
        if folder:
            if FOLDER not in self.extra:
                self.project = self.project or project_of_folder(folder)
                self.extra[FOLDER] = folder
            if folder != self.folder:
                self._open_shells.clear()
            self.folder = folder

    def skip(self, where: str, reason: str) -> None:
        """Record that something in the log could not be read."""
        self.items.append(SkippedRecord(where, reason))

    def skip_unknown(self, line: LogLine, kind: str) -> None:
        """Record that a line is of no type that the format has."""
        reason = f"unknown record type {kind[:40]!r}" if kind else "no record type"
        self.skip(f"line {line.number}", reason)

    def message(self, role: str, text: str, *, name: str = "", is_typed: bool = False) -> None:
        """Record what somebody said, if it is anything. `is_typed` if the log says that a person typed it."""
        text = text.strip()
        if not text:
            return
        if role == "user" and _is_wrapped(text):
            role = "system"
        extra = self._with_folder({}, self.folder)
        if role == "user" and _NO_TASK.match(self.task) and (task := task_of(text)):
            # What the run was asked first is asked of the whole of it.
            self.task, extra = task, {}
        # A person may type below what a client wrapped in tags.
        if is_typed and not text.startswith("<"):
            extra = {**extra, TYPED: True}
        if role != "system":
            self.ending.last_role = role
        self.note(EventKind.MESSAGE, name, text, extra, role)

    def typed_message(self, text: str) -> None:
        """Record what a person typed, and apart from it the text of Cursor's commands below it."""
        typed, mark, commands = text.partition(_CURSOR_COMMAND)
        self.message("user", typed, is_typed=True)
        self.message("system" if typed.strip() else "user", mark + commands, name="command")

    def note(
        self, kind: EventKind, name: str, text: str, extra: dict[str, object] | None = None, role: str = ""
    ) -> None:
        """Record something that is no call."""
        self.items.append(
            Event(
                run=self.run,
                seq=self._take_seq(),
                kind=kind,
                name=name,
                time=self.time,
                role=role,
                text=clip(text, MESSAGE_SIDE_CHARS),
                extra=extra or {},
            )
        )

    def exit_with(self, exit_status: str, submission: str) -> None:
        """Record how the agent's process ended and what it handed in."""
        self.stated = status_of_exit(exit_status, has_submission=bool(submission.strip()))
        self.add_facts(exit_status=exit_status)
        if exit_status:
            self.time = None
            self.note(EventKind.FINISH, exit_status, submission)

    def call(self, call_id: str, call: LoggedCall) -> None:
        """Take a call, which waits for its result unless that came first."""
        self.ending.last_role = "tool"
        known, outcome = self._waiting.pop(call_id, (None, None)) if call_id else (None, None)
        if known is not None and outcome is not None:
            made = replace(self._event_of_call(call, known.seq), time=self.time or known.time)
            self._add_call(_with_outcome(made, outcome))
            return
        if known is not None:
            # The same id twice: the first call keeps its place in the log without a result.
            self._close(known, None)
        self._wait(call_id, self._event_of_call(call, self._take_seq()), None)

    def replace_call(self, call_id: str, call: LoggedCall) -> None:
        """Describe a call that waits for its result by another one, whose result it brings."""
        known, early = self._waiting.get(call_id, (None, None))
        if known is not None and early is None:
            self._waiting[call_id] = replace(self._event_of_call(call, known.seq), time=known.time), None

    def result(self, call_id: str, outcome: CallOutcome) -> None:
        """Record a call with its result; a result whose call is not known yet waits for it."""
        self.ending.last_role = "tool"
        known, early = self._waiting.pop(call_id, (None, None))
        if known is not None and early is None:
            if outcome.duration_s is None:
                outcome = replace(outcome, duration_s=seconds_between(known.time, self.time))
            self._add_call(_with_outcome(known, outcome))
            return
        if known is not None:
            self._close(known, early)
        seq = self._take_seq()
        place = Event(run=self.run, seq=seq, kind=EventKind.TOOL_CALL, time=self.time, role="assistant")
        # Clipped now, so that what waits is small.
        self._wait(call_id, place, replace(outcome, output=clip(outcome.output)))

    def call_with_result(self, call: LoggedCall, outcome: CallOutcome) -> None:
        """Record a call whose result stands beside it."""
        self.ending.last_role = "tool"
        self._add_call(_with_outcome(self._event_of_call(call, self._take_seq()), outcome))

    def oldest_call(self) -> str:
        """Return the id of the call that has waited longest, or nothing."""
        return next((key for key, (_, early) in self._waiting.items() if early is None), "")

    def pending_tool(self, call_id: str) -> str:
        """Return the tool of a call that waits for its result."""
        return self._waiting[call_id][0].tool if call_id in self._waiting else ""

    def finish(self) -> None:
        """Record the calls that were never answered, then the run itself, if it was opened."""
        if not self.run:
            return
        self.ending.has_open_call = bool(self.oldest_call())
        for event, outcome in self._waiting.values():
            self._close(event, outcome)
        self._waiting.clear()
        spent = self.spent
        if spent.cost_usd is not None:
            spent = replace(spent, cost_usd=round(spent.cost_usd, 6))
        if self._calls:
            spent = replace(spent, efficiency=round(1 - self._failed_calls / self._calls.total(), 3))
        self.add_facts(maker=self.maker)
        is_subagent = bool(self.parent) or self.is_subagent
        most_used = (tool for tool, _ in self._calls.most_common(_TAGGED_TOOLS))
        same: dict[str, Any] = {name: getattr(self, name) for name in _EPISODE_FIELDS}
        self.items.append(
            Episode(
                id=self.run,
                project=self.origin.project or self.project,
                session=self.session or self.run,
                provider=self.agent or self.maker,
                kind=EpisodeKind.SUBAGENT_RUN if is_subagent else EpisodeKind.ORCHESTRATOR_RUN,
                status=status_of(self.stated, self.ending),
                tags=tuple(dict.fromkeys(filter(None, (self.agent, *most_used)))),
                trajectories=(self.origin.path_name,) if self.origin.path_name else (),
                usage=spent if spent != Usage() else None,
                **same,
            )
        )

    def _add_call(self, event: Event) -> None:
        self._calls[event.tool.lower()] += 1
        self._failed_calls += event.is_error or event.exit_code not in (None, 0)
        self.items.append(event)

    def _with_folder(self, extra: dict[str, object], folder: str) -> dict[str, object]:
        """Add the folder that something was done in, when the run began in another."""
        began = self.extra.get(FOLDER, folder)
        return {**extra, FOLDER: folder, BEGAN: began} if folder and folder != began else extra

    def _take_seq(self) -> int:
        self.next_seq += 1
        return self.next_seq - 1

    def _event_of_call(self, call: LoggedCall, seq: int) -> Event:
        described = describe(call)
        is_command = not call.arguments.keys().isdisjoint(_COMMAND_ARGUMENTS)
        place = read_text(call.arguments, *_FOLDER_ARGUMENTS) if is_command else ""
        shell = read_text(call.arguments, *_SHELL_ARGUMENTS)
        if is_command and not place and _OF_SERVER.search(call.tool):
            place = _other_path(call, described.text)
        shell = shell or (_ONLY_SHELL if self.keeps_shell and is_command and self.folder else "")
        current = self._open_shells.get(shell, self.folder)
        folder = _resolve_folder(place, current) if place else current
        extra = {**described.extra, **outside_sandbox(call)}
        if shell:
            # Such a shell stays where its last command went.
            self._open_shells[shell] = _folder_after(described.text, folder)
            extra[OPEN_SHELL] = shell
        return Event(
            run=self.run,
            seq=seq,
            kind=described.kind,
            name=call.tool,
            time=self.time,
            role="assistant",
            tool=call.tool,
            target=described.target,
            text=described.text,
            extra=self._with_folder(extra, folder),
        )

    def _wait(self, call_id: str, event: Event, outcome: CallOutcome | None) -> None:
        self._waiting[call_id or f"#{event.seq}"] = event, outcome
        while len(self._waiting) > _MAX_WAITING:
            self._close(*self._waiting.pop(next(iter(self._waiting))))

    def _close(self, event: Event, outcome: CallOutcome | None) -> None:
        """Record a call without its result, or a result without its call."""
        closed = _with_outcome(event, outcome or CallOutcome())
        closed.extra["result_missing" if outcome is None else "call_missing"] = True
        self.items.append(closed)


def _with_outcome(event: Event, outcome: CallOutcome) -> Event:
    is_refused = event.kind is EventKind.EDIT and REFUSED_EDIT.match(outcome.output) is not None
    return replace(
        event,
        output=clip(outcome.output),
        exit_code=outcome.exit_code,
        is_error=outcome.is_error or is_refused,
        duration_s=outcome.duration_s,
        extra={**event.extra, **outcome.extra},
    )


def _other_path(call: LoggedCall, command: str) -> str:
    """Return the first argument of a call that is a path, but neither its command nor a shell; or nothing."""
    others = [
        value
        for name, value in call.arguments.items()
        if isinstance(value, str) and value != command and "shell" not in name.lower()
    ]
    return next((found["path"] for value in others if (found := _PATH_ARGUMENT.match(value))), "")


def _folder_after(command: str, folder: str) -> str:
    """Return where a shell is after a command; `/` where only the shell knows."""
    for found in _ENTERS.finditer(command[:_LONGEST_COMMAND]):
        named = found["folder"].strip("\"'")
        folder = _resolve_folder(named, folder)
    return folder


def _resolve_folder(named: str, current: str) -> str:
    """Return the folder that a call names, from that of its run; `/` where only the shell would know."""
    if named.startswith("~"):
        home = ANY_HOME.match(current)
        return posixpath.normpath(home[0] + named[1:]) if home and named[1:2] in ("", "/") else "/"
    if named.startswith("/"):
        return named
    if not _PLAIN_FOLDER.fullmatch(named):
        return "/"
    return posixpath.normpath(posixpath.join(current, named)) if current.startswith("/") else current
