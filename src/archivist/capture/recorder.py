"""Record one run while its log is read: number events, join calls with results, build the episode.

What a log does not state is derived: the task, the project, the provider and the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from archivist.capture.calls import CallDescription, CallOutcome, LoggedCall, describe, is_refused_edit
from archivist.capture.clean import strip_briefs
from archivist.capture.status import Ending, status_of
from archivist.capture.values import MESSAGE_SIDE_CHARS, TASK_CHARS, clip, seconds_between, shorten
from archivist.paths import project_of_folder as project_of_folder
from archivist.paths import project_of_remote as project_of_remote
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind, Usage
from archivist.records.run_words import BEGAN, FOLDER

_TASK_TAGS = re.compile(
    r"<(pr_description|issue_description|problem_statement|task_description|issue|task)>\s*(.*?)\s*</\1>",
    re.DOTALL,
)
_TASK_FRAMES = (
    re.compile(r"\bISSUE:\n(.*?)\n+INSTRUCTIONS:", re.DOTALL),
    re.compile(
        r"\AYour task is(?: to solve)?:? (.*?)\n\n(?:You can execute|Please reply|IMPORTANT)", re.DOTALL
    ),
    re.compile(
        r"\A(?:Please solve this issue|Your task|Here is your task): ?\n*(.*?)\n\n(?:You can|Please )",
        re.DOTALL,
    ),
    re.compile(r"-{5,} NEW TASK DESCRIPTION -{5,}\n(.*?)\n-{5,} END OF NEW TASK", re.DOTALL),
    re.compile(r"\bTask Description:\n(.*?)\n+Current terminal state:", re.DOTALL),
)
_TASK_PREFACE = re.compile(r"\AConsider the following PR description:\s*")
_INSTANCE = re.compile(r"([A-Za-z0-9][\w.-]*?)__([A-Za-z0-9][\w.-]*?)-(\d+)(?![\w-])")
_FILE_NUMBER = re.compile(r"\A\d+-(?=[A-Za-z])")
_PROVIDERS = (
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("codex", "openai"),
    ("gemini", "google"),
    ("deepseek", "deepseek"),
    ("grok", "xai"),
    ("qwen", "qwen"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("mistral", "mistral"),
    ("devstral", "mistral"),
    ("llama", "meta"),
)


def task_of(prompt: str) -> str:
    """Return the request in a prompt: the problem statement itself when it stands in a known frame."""
    found = prompt = strip_briefs(prompt)
    if tagged := _TASK_TAGS.search(prompt):
        found = _TASK_PREFACE.sub("", tagged.group(2))
    else:
        for frame in _TASK_FRAMES:
            if match := frame.search(prompt):
                found = match.group(1)
                break
    return shorten(found.replace("\r\n", "\n").strip(), TASK_CHARS)


def instance_in(name: str) -> str:
    """Return the benchmark instance that a name holds, such as `owner__repo-123`."""
    # Collections number their files; no owner's name begins like that.
    match = _INSTANCE.search(_FILE_NUMBER.sub("", name))
    return match.group() if match else ""


def project_of_instance(instance: str) -> str:
    """Return `owner/repo` of a benchmark instance."""
    match = _INSTANCE.search(instance)
    return f"{match.group(1)}/{match.group(2)}" if match else ""


def provider_and_model(name: str) -> tuple[str, str]:
    """Split `provider/model`, or derive the provider from a model's family."""
    provider, slash, model = name.partition("/")
    if slash and provider and model:
        return provider, model
    lowered = name.lower()
    return next((maker for start, maker in _PROVIDERS if lowered.startswith(start)), ""), name


# Calls wait for their results, and results that came first for their calls; more than this is a damaged log.
MAX_WAITING = 256


@dataclass(frozen=True, slots=True)
class LogOrigin:
    """Where a log came from, and what the caller knows better than the log."""

    path_name: str = ""
    run: str = ""
    project: str = ""
    # By run: the numbers that other review logs of the same call gave to its events.
    numbers: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class UsageTotals:
    """Tokens and cost of a run so far; `input_tokens` includes `cached_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    extra: dict[str, object] = field(default_factory=dict)

    def add(self, other: UsageTotals) -> None:
        """Add what another part of the run used."""
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens
        self.cost_usd += other.cost_usd

    def to_usage(self) -> Usage | None:
        """Return the record, or None when nothing is known."""
        if not (self.input_tokens or self.output_tokens or self.cost_usd or self.extra):
            return None
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            cost_usd=round(self.cost_usd, 6),
            extra=self.extra,
        )


@dataclass(frozen=True, slots=True)
class _PendingCall:
    seq: int
    time: datetime | None
    tool: str = ""
    described: CallDescription | None = None
    outcome: CallOutcome | None = None


class Recorder:
    """The run that is being read."""

    def __init__(self, run: str, origin: LogOrigin, *, parent: str = "", agent: str = "") -> None:
        self.run = run
        self._origin = origin
        self.parent = parent
        self.agent = agent
        self.session = ""
        self.project = ""
        self.folder = ""
        self.task = ""
        self.model = ""
        self.provider = ""
        self.stated: EpisodeStatus | None = None
        self.spent = UsageTotals()
        self.extra: dict[str, object] = {}
        self.started: datetime | None = None
        self.finished: datetime | None = None
        self.is_interrupted = False
        self.is_service_error = False
        self.is_continued = False
        self.result_expected = False
        self._last_role = ""
        self.next_seq = 0
        self._waiting: dict[str, _PendingCall] = {}

    def extend_span(self, time: datetime | None) -> None:
        """Widen the run's span to this time."""
        if time is None:
            return
        self.started = time if self.started is None else min(self.started, time)
        self.finished = time if self.finished is None else max(self.finished, time)

    def use_model(self, name: str) -> None:
        """Take the model's name, the first that is given."""
        if name and not self.model:
            provider, self.model = provider_and_model(name)
            self.provider = self.provider or provider

    def message(
        self,
        role: str,
        text: str,
        time: datetime | None = None,
        *,
        name: str = "",
        extra: dict[str, object] | None = None,
    ) -> Iterator[Event]:
        """Yield what somebody said, if it is anything."""
        self.extend_span(time)
        if not text.strip():
            return
        placed = self._with_folder(extra or {}, self.folder)
        if role == "user" and not self.task:
            # What the run was asked first is asked of the whole of it.
            self.task, placed = task_of(text), extra or {}
        if role != "system":
            self._last_role = role
        yield self._event(
            EventKind.MESSAGE,
            time,
            name=name,
            role=role,
            text=clip(text.strip(), MESSAGE_SIDE_CHARS),
            extra=placed,
        )

    def note(
        self,
        kind: EventKind,
        name: str,
        text: str,
        time: datetime | None = None,
        extra: dict[str, object] | None = None,
    ) -> Iterator[Event]:
        """Yield something that is neither a message nor a call."""
        self.extend_span(time)
        yield self._event(kind, time, name=name, text=clip(text, MESSAGE_SIDE_CHARS), extra=extra or {})

    def call(self, call_id: str, call: LoggedCall, time: datetime | None = None) -> Iterator[Event]:
        """Take a call, and yield it if its result came before it."""
        self.extend_span(time)
        self._last_role = "tool"
        early = self._waiting.pop(call_id, None) if call_id else None
        if early is not None and early.outcome is not None:
            yield self._join_result(
                _PendingCall(early.seq, time or early.time, call.tool, self._describe_call(call)),
                early.outcome,
                None,
            )
            return
        if early is not None:
            # The same id twice: the first call keeps its place in the log without a result.
            yield self._close_unanswered(early)
        seq = self._take_seq()
        self._waiting[call_id or f"#{seq}"] = _PendingCall(seq, time, call.tool, self._describe_call(call))
        yield from self._flush_oldest()

    def result(self, call_id: str, outcome: CallOutcome, time: datetime | None = None) -> Iterator[Event]:
        """Yield a call with its result; a result whose call is not known yet waits for it."""
        self.extend_span(time)
        self._last_role = "tool"
        waiting = self._waiting.pop(call_id, None)
        if waiting is not None and waiting.described is not None:
            yield self._join_result(waiting, outcome, time)
            return
        if waiting is not None:
            yield self._close_unanswered(waiting)
        seq = self._take_seq()
        # Clipped now, so that what waits is small.
        clipped = replace(outcome, output=clip(outcome.output))
        self._waiting[call_id or f"#{seq}"] = _PendingCall(seq, time, outcome=clipped)
        yield from self._flush_oldest()

    def call_with_result(
        self, call: LoggedCall, outcome: CallOutcome, time: datetime | None = None
    ) -> Iterator[Event]:
        """Yield a call whose result stands beside it."""
        self.extend_span(time)
        self._last_role = "tool"
        yield self._join_result(
            _PendingCall(self._take_seq(), time, call.tool, self._describe_call(call)), outcome, None
        )

    def oldest_call(self) -> str:
        """Return the id of the call that has waited longest, or nothing."""
        return next((key for key, each in self._waiting.items() if each.described is not None), "")

    def pending_tool(self, call_id: str) -> str:
        """Return the tool of a call that waits for its result."""
        waiting = self._waiting.get(call_id)
        return waiting.tool if waiting else ""

    def finish(self) -> Iterator[Event | Episode]:
        """Yield the calls that were never answered, then the run itself."""
        ending = Ending(
            last_role=self._last_role,
            has_open_call=any(each.described is not None for each in self._waiting.values()),
            is_interrupted=self.is_interrupted,
            is_service_error=self.is_service_error,
            is_continued=self.is_continued,
            result_expected=self.result_expected,
        )
        for waiting in self._waiting.values():
            yield self._close_unanswered(waiting)
        self._waiting.clear()
        yield Episode(
            id=self.run,
            parent=self.parent,
            project=self._origin.project or self.project,
            task=self.task,
            session=self.session or self.run,
            agent=self.agent,
            provider=self.provider,
            model=self.model,
            kind=EpisodeKind.SUBAGENT_RUN if self.parent else EpisodeKind.ORCHESTRATOR_RUN,
            started=self.started,
            finished=self.finished,
            status=status_of(self.stated, ending),
            trajectories=(self._origin.path_name,) if self._origin.path_name else (),
            usage=self.spent.to_usage(),
            extra=self.extra,
        )

    def enter_folder(self, folder: str) -> None:
        """Take the folder that the run works in from here on; the first is where it began."""
        if folder:
            self.folder = folder
            self.extra.setdefault(FOLDER, folder)

    def _describe_call(self, call: LoggedCall) -> CallDescription:
        described = describe(call)
        named = call.arguments.get("workdir")
        folder = named if isinstance(named, str) and named.startswith("/") else self.folder
        return replace(described, extra=self._with_folder(described.extra, folder))

    def _with_folder(self, extra: dict[str, object], folder: str) -> dict[str, object]:
        """Add the folder that something was done in, when the run began in another."""
        began = self.extra.get(FOLDER, folder)
        return {**extra, FOLDER: folder, BEGAN: began} if folder and folder != began else extra

    def _take_seq(self) -> int:
        self.next_seq += 1
        return self.next_seq - 1

    def _event(
        self,
        kind: EventKind,
        time: datetime | None,
        *,
        name: str,
        text: str,
        extra: dict[str, object],
        role: str = "",
    ) -> Event:
        return Event(
            run=self.run,
            seq=self._take_seq(),
            kind=kind,
            name=name,
            time=time,
            role=role,
            text=text,
            extra=extra,
        )

    def _join_result(self, call: _PendingCall, outcome: CallOutcome, ended: datetime | None) -> Event:
        described = call.described or CallDescription(EventKind.TOOL_CALL, "")
        duration_s = outcome.duration_s
        return Event(
            run=self.run,
            seq=call.seq,
            kind=described.kind,
            name=call.tool,
            time=call.time,
            role="assistant",
            tool=call.tool,
            target=described.target,
            text=described.text,
            output=clip(outcome.output),
            exit_code=outcome.exit_code,
            is_error=outcome.is_error
            or (described.kind is EventKind.EDIT and is_refused_edit(outcome.output)),
            duration_s=duration_s if duration_s is not None else seconds_between(call.time, ended),
            extra={**described.extra, **outcome.extra},
        )

    def _close_unanswered(self, waiting: _PendingCall) -> Event:
        if waiting.outcome is not None:
            event = self._join_result(waiting, waiting.outcome, None)
            event.extra["call_missing"] = True
        else:
            event = self._join_result(waiting, CallOutcome(), None)
            event.extra["result_missing"] = True
        return event

    def _flush_oldest(self) -> Iterator[Event]:
        while len(self._waiting) > MAX_WAITING:
            yield self._close_unanswered(self._waiting.pop(next(iter(self._waiting))))
