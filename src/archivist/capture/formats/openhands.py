"""Read OpenHands events: a list, JSON lines, or the histories of an evaluation's `output.jsonl`.

The classic form has `action` and `observation` events joined by `cause`; the SDK's has a `kind` and joins by
`tool_call_id`. An evaluation file holds one run a line, with its `instance_id` and `history`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from io import BytesIO
from typing import Any, BinaryIO, cast

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, is_timeout, read_outcome
from archivist.capture.json_stream import (
    READ_FAILURES,
    LogLine,
    SkippedRecord,
    preview_log,
    read_document,
    read_lines,
)
from archivist.capture.recorder import (
    LogOrigin,
    Recorder,
    UsageTotals,
    instance_in,
    project_of_folder,
    project_of_instance,
    task_of,
)
from archivist.capture.status import status_of_word
from archivist.capture.values import (
    as_float,
    as_integer,
    as_time,
    compact_json,
    content_text,
    count,
    listing,
    mapping,
    text,
)
from archivist.ids import derived_id
from archivist.records import Episode, EpisodeStatus, Event, EventKind

_TOOLS = {
    "run": "execute_bash",
    "run_ipython": "execute_ipython_cell",
    "edit": "str_replace_editor",
    "write": "write_file",
}
_QUIET = frozenset((
    "recall", "think", "null", "condensation", "condensation_request", "change_agent_state",
    "agent_state_changed",
))  # fmt: skip
_KINDS = frozenset((
    "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation",
    "SystemPromptEvent", "ConversationStateUpdateEvent", "ConversationErrorEvent", "Condensation",
    "CondensationRequest", "CondensationSummaryEvent", "PauseEvent", "InterruptEvent", "HookExecutionEvent",
    "TokenEvent", "LLMCompletionLogEvent", "StreamingDeltaEvent",
))  # fmt: skip
# Arguments that steer the harness and say nothing about what was done.
_QUIET_ARGUMENTS = (
    "thought", "hidden", "confirmation_state", "security_risk", "blocking", "is_static", "is_input",
    "impl_source",
)  # fmt: skip
_SOURCES = ("agent", "user", "environment", "hook")


class OpenHands:
    """The adapter of OpenHands' events."""

    name = "openhands"

    def recognises(self, head: bytes, name: str) -> bool:  # noqa: ARG002
        """Recognise the log by events that name their source and what they are."""
        return any(_is_event(value) or _is_evaluation(value) for value in preview_log(head).objects[:10])

    def read(self, source: BinaryIO, origin: LogOrigin) -> Iterator[Event | Episode | SkippedRecord]:
        """Yield the conversation's events, then its run; of an evaluation, one run after another."""
        conversation: _Conversation | None = None
        for each in _events(source):
            if isinstance(each, SkippedRecord):
                yield each
                continue
            if _is_evaluation(each.value):
                yield from _read_evaluation(each.value, origin)
                continue
            if conversation is None:
                run = origin.run or derived_id("openhands", compact_json(each.value))
                conversation = _Conversation(run, origin)
            yield from conversation.take(each)
        if conversation is not None:
            yield from conversation.finish()


def _is_event(value: Mapping[str, Any]) -> bool:
    if text(value.get("kind")) in _KINDS:
        return True
    is_classic = isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)
    return (
        is_classic
        and value.get("source") in _SOURCES
        and ("args" in value or "extras" in value or "cause" in value)
    )


def _is_evaluation(value: Mapping[str, Any]) -> bool:
    return "instance_id" in value and isinstance(value.get("history"), list)


def _events(source: BinaryIO) -> Iterator[LogLine | SkippedRecord]:
    """Yield the events of a list or of JSON lines, numbered from one."""
    try:
        beginning = source.read(64)
    except READ_FAILURES as error:
        yield SkippedRecord("byte 0", f"the file is cut or damaged: {error}")
        return
    whole_source = cast("BinaryIO", _RejoinedSource(beginning, source))
    if not beginning.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        yield from read_lines(whole_source)
        return
    for part in read_document(whole_source, ()):
        if isinstance(part, SkippedRecord):
            yield part
        elif isinstance(part.value, dict):
            yield LogLine((part.index or 0) + 1, part.value)
        else:
            yield SkippedRecord(f"element {part.index}", "not an object")


class _RejoinedSource:
    """A source whose first bytes have been read, from its beginning again."""

    def __init__(self, beginning: bytes, source: BinaryIO) -> None:
        self._beginning = BytesIO(beginning)
        self._source = source

    def read(self, size: int) -> bytes:
        return self._beginning.read(size) or self._source.read(size)

    def readline(self, size: int) -> bytes:
        first = self._beginning.readline(size)
        return (
            first
            if first.endswith(b"\n") or len(first) == size
            else first + self._source.readline(size - len(first))
        )


def _read_evaluation(
    value: Mapping[str, Any], origin: LogOrigin
) -> Iterator[Event | Episode | SkippedRecord]:
    """Yield one run of an evaluation; older ones list actions and observations in pairs."""
    flat: list[Any] = []
    for each in listing(value.get("history")):
        flat.extend(each if isinstance(each, list) else [each])
    instance = text(value.get("instance_id"))
    beginning = compact_json([instance, *flat[:3]])
    conversation = _Conversation(origin.run or derived_id("openhands", beginning), origin, instance)
    statement = text(mapping(value.get("instance")).get("problem_statement"))
    conversation.recorder.task = task_of(statement) if statement else ""
    config = mapping(mapping(value.get("metadata")).get("llm_config"))
    conversation.recorder.use_model(text(config.get("model")))
    for number, event in enumerate(flat, 1):
        if isinstance(event, dict):
            yield from conversation.take(LogLine(number, event))
    metrics = mapping(value.get("metrics"))
    if as_float(metrics.get("accumulated_cost")):
        conversation.recorder.spent.cost_usd = as_float(metrics.get("accumulated_cost")) or 0.0
    if text(value.get("error")):
        conversation.recorder.stated = EpisodeStatus.FAILED
    yield from conversation.finish()


class _Conversation:
    def __init__(self, run: str, origin: LogOrigin, instance: str = "") -> None:
        self.recorder = Recorder(run, origin, agent="openhands")
        self._origin = origin
        self._instance = instance or instance_in(origin.path_name)

    def take(self, line: LogLine) -> Iterator[Event | SkippedRecord]:
        value = line.value
        time = as_time(value.get("timestamp"))
        self.recorder.extend_span(time)
        if metrics := mapping(value.get("llm_metrics")):
            usage = mapping(metrics.get("accumulated_token_usage"))
            model = text(usage.get("model"))
            if model != "default":
                self.recorder.use_model(model)
            self.recorder.spent = UsageTotals(
                input_tokens=count(usage.get("prompt_tokens")),
                output_tokens=count(usage.get("completion_tokens")),
                cached_tokens=count(usage.get("cache_read_tokens")),
                cost_usd=as_float(metrics.get("accumulated_cost")) or 0.0,
            )
        if isinstance(value.get("kind"), str):
            yield from self._read_sdk_event(line, time)
        elif isinstance(value.get("action"), str):
            yield from self._action(value, time)
        elif isinstance(value.get("observation"), str):
            yield from self._observation(value, time)
        else:
            yield SkippedRecord(f"event {line.number}", "neither an action nor an observation")

    def finish(self) -> Iterator[Event | Episode]:
        recorder = self.recorder
        if self._instance:
            recorder.extra["instance"] = self._instance
        folder = text(recorder.extra.get("cwd"))
        recorder.project = (
            project_of_instance(self._instance) or recorder.project or project_of_folder(folder)
        )
        yield from recorder.finish()

    def _action(self, value: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        kind = text(value.get("action"))
        given = mapping(value.get("args"))
        recorder = self.recorder
        if kind in ("message", "system"):
            said = content_text(given.get("content")) or text(value.get("message"))
            role = "system" if kind == "system" else "user" if value.get("source") == "user" else "assistant"
            if text(given.get("openhands_version")):
                recorder.extra["agent_version"] = given["openhands_version"]
            yield from recorder.message(role, said, time)
        elif kind in ("finish", "reject"):
            yield from self._read_finish(kind, given, time)
        elif kind not in _QUIET:
            recorder.stated = None
            yield from recorder.message("assistant", text(given.get("thought")), time)
            function = text(mapping(value.get("tool_call_metadata")).get("function_name"))
            if kind == "call_tool_mcp":
                function = text(given.get("name")) or function
                call = LoggedCall(function, arguments_from(given.get("arguments")))
            else:
                told = {key: each for key, each in given.items() if each not in (None, "")}
                told = {key: each for key, each in told.items() if key not in _QUIET_ARGUMENTS}
                call = LoggedCall(function or _TOOLS.get(kind, kind), told)
            yield from recorder.call(_id(value.get("id")), call, time)

    def _read_finish(self, kind: str, given: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        outputs = mapping(given.get("outputs"))
        said = text(given.get("final_thought")) or text(given.get("message")) or text(outputs.get("content"))
        word = str(given.get("task_completed") or "true").rpartition(".")[2].lower()
        done = EpisodeStatus.SUCCESS if word == "true" else EpisodeStatus.PARTIAL
        self.recorder.stated = EpisodeStatus.FAILED if kind == "reject" else done
        yield from self.recorder.note(EventKind.FINISH, kind, said or text(given.get("thought")), time)

    def _observation(self, value: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        kind = text(value.get("observation"))
        extras = mapping(value.get("extras"))
        if kind == "agent_state_changed":
            self._state(text(extras.get("agent_state")))
            return
        if kind == "recall":
            self.recorder.extra.setdefault("cwd", text(extras.get("working_dir")))
            self.recorder.project = self.recorder.project or text(extras.get("repo_name"))
            return
        cause = _id(value.get("cause"))
        if kind in _QUIET or (kind == "error" and not self.recorder.pending_tool(cause)):
            if kind == "error":
                yield from self.recorder.note(EventKind.LOG, "error", text(value.get("content")), time)
            return
        metadata = mapping(extras.get("metadata"))
        code = as_integer(metadata.get("exit_code", extras.get("exit_code")))
        content = content_text(value.get("content"))
        suffix = text(metadata.get("suffix"))
        is_error = True if kind in ("error", "user_rejected") else None
        extra: dict[str, object] = {"rejected": True} if kind == "user_rejected" else {}
        if is_timeout(suffix):
            extra["timed_out"] = True
            is_error = True
        # Minus one says that the command still runs, which is no exit.
        known_code = None if code == -1 else code
        yield from self.recorder.result(
            cause, read_outcome(content, exit_code=known_code, is_error=is_error, extra=extra), time
        )

    def _state(self, word: str) -> None:
        status = status_of_word(word)
        if status is not None and status is not EpisodeStatus.RUNNING:
            # "finished" follows a finish action, which may have said that the task is only partly done.
            keeps = status is EpisodeStatus.SUCCESS and self.recorder.stated is not None
            self.recorder.stated = self.recorder.stated if keeps else status

    def _read_sdk_event(self, line: LogLine, time: datetime | None) -> Iterator[Event | SkippedRecord]:
        value = line.value
        recorder = self.recorder
        match value["kind"]:
            case "SystemPromptEvent":
                yield from recorder.message("system", content_text(value.get("system_prompt")), time)
            case "MessageEvent":
                said = mapping(value.get("llm_message"))
                role = {"user": "user", "agent": "assistant"}.get(text(value.get("source")), "system")
                yield from recorder.message(role, content_text(said.get("content")), time)
            case "ActionEvent":
                yield from self._sdk_action(value, time)
            case "ObservationEvent":
                yield from recorder.result(
                    text(value.get("tool_call_id")), _sdk_outcome(mapping(value.get("observation"))), time
                )
            case "AgentErrorEvent":
                yield from recorder.result(
                    text(value.get("tool_call_id")),
                    CallOutcome(text(value.get("error")), is_error=True),
                    time,
                )
            case "UserRejectObservation":
                rejected = CallOutcome(
                    text(value.get("rejection_reason")), is_error=True, extra={"rejected": True}
                )
                yield from recorder.result(text(value.get("tool_call_id")), rejected, time)
            case "ConversationStateUpdateEvent":
                if value.get("key") in ("execution_status", "agent_status"):
                    self._state(text(value.get("value")))
            case "ConversationErrorEvent":
                recorder.stated = EpisodeStatus.FAILED
                yield from recorder.note(EventKind.LOG, "error", text(value.get("detail")), time)
            case "PauseEvent" | "InterruptEvent":
                recorder.is_interrupted = True
            case kind if kind not in _KINDS:
                yield SkippedRecord(f"event {line.number}", f"unknown event kind {kind[:40]!r}")

    def _sdk_action(self, value: Mapping[str, Any], time: datetime | None) -> Iterator[Event]:
        recorder = self.recorder
        recorder.is_interrupted = False
        action = mapping(value.get("action"))
        tool = text(value.get("tool_name"))
        yield from recorder.message("assistant", content_text(value.get("thought")), time)
        if tool == "finish":
            yield from self._read_finish("finish", action, time)
        elif tool != "think":
            recorder.stated = None
            function = mapping(mapping(value.get("tool_call")).get("function")) or mapping(
                value.get("tool_call")
            )
            given = {key: each for key, each in action.items() if key != "kind" and each is not None}
            call = LoggedCall(tool, given or arguments_from(function.get("arguments")))
            yield from recorder.call(text(value.get("tool_call_id")), call, time)


def _id(value: object) -> str:
    return f"{value}" if isinstance(value, int | str) else ""


def _sdk_outcome(observation: Mapping[str, Any]) -> CallOutcome:
    metadata = mapping(observation.get("metadata"))
    code = as_integer(observation.get("exit_code", metadata.get("exit_code")))
    is_error = observation.get("is_error")
    extra: dict[str, object] = {}
    if observation.get("timeout") is True or is_timeout(text(metadata.get("suffix"))):
        extra["timed_out"] = True
    failed = is_error is True or bool(text(observation.get("error"))) or bool(extra)
    content = (
        content_text(observation.get("content"))
        or content_text(observation.get("output"))
        or text(observation.get("error"))
    )
    return read_outcome(
        content, exit_code=None if code == -1 else code, is_error=True if failed else None, extra=extra
    )
