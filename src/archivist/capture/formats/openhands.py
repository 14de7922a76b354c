"""Read OpenHands events: a list, JSON lines, or the histories of an evaluation's `output.jsonl`.

The classic form has `action` and `observation` events joined by `cause`; the SDK's has a `kind` and joins by
`tool_call_id`. An evaluation file holds one run a line, with its `instance_id` and `history`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, is_timeout, read_outcome
from archivist.capture.json_stream import LogLine, SkippedRecord, preview_log, read_document, read_lines
from archivist.capture.recorder import LogItem, LogOrigin, Recorder, read_usage, task_of
from archivist.capture.status import status_of_word
from archivist.capture.values import as_float, as_integer, as_time, content_text, listing, object_at, text
from archivist.files.packed import head_of
from archivist.records import EpisodeStatus, EventKind

name = "openhands"
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


def recognises(head: bytes) -> bool:
    """Recognise the log by events that name their source and what they are."""
    return any(_is_event(value) or _is_evaluation(value) for value in preview_log(head).objects[:10])


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the conversation's events, then its run; of an evaluation, one run after another."""
    return _Conversation(origin).read(_read_events(source))


def _is_event(value: Mapping[str, Any]) -> bool:
    is_classic = isinstance(value.get("action"), str) or isinstance(value.get("observation"), str)
    has_details = not {"args", "extras", "cause"}.isdisjoint(value)
    return text(value, "kind") in _KINDS or (is_classic and has_details and value.get("source") in _SOURCES)


def _is_evaluation(value: Mapping[str, Any]) -> bool:
    return "instance_id" in value and isinstance(value.get("history"), list)


def _read_events(source: BinaryIO) -> Iterator[LogLine | SkippedRecord]:
    """Yield the events of a list or of JSON lines, numbered from one."""
    if not head_of(source).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        yield from read_lines(source)
        return
    for part in read_document(source, ()):
        if isinstance(part, SkippedRecord):
            yield part
        elif isinstance(part.value, dict):
            yield LogLine((part.index or 0) + 1, part.value)
        else:
            yield SkippedRecord(f"element {part.index}", "not an object")


@dataclass(eq=False)
class _Conversation(Recorder):
    agent: str = name
    _instance: str = ""
    _has_person: bool = True

    def take(self, line: LogLine) -> None:
        if _is_evaluation(line.value):
            _Conversation(self.origin, items=self.items).read_evaluation(line.value)
        else:
            self.open_run(line.value)
            self._read_event(line)

    def _read_event(self, line: LogLine) -> None:
        value = line.value
        self.move_to(as_time(value.get("timestamp")))
        if metrics := object_at(value, "llm_metrics"):
            usage = object_at(metrics, "accumulated_token_usage")
            model = text(usage, "model")
            if model != "default":
                self.use_model(model)
            names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "accumulated_cost")
            self.spent = read_usage({**metrics, **usage}, *names)
        if isinstance(value.get("kind"), str):
            self._read_sdk_event(line)
        elif isinstance(value.get("action"), str):
            self._read_action(value)
        elif isinstance(value.get("observation"), str):
            self._read_observation(value)
        else:
            self.skip(f"event {line.number}", "neither an action nor an observation")

    def read_evaluation(self, value: Mapping[str, Any]) -> None:
        """Take one run of an evaluation; older ones list actions and observations in pairs."""
        flat: list[Any] = []
        for each in listing(value.get("history")):
            flat.extend(each if isinstance(each, list) else [each])
        self._instance = text(value, "instance_id")
        self.open_run([self._instance, *flat[:3]])
        self.task = task_of(text(object_at(value, "instance"), "problem_statement"))
        self.use_model(text(object_at(value, "metadata", "llm_config"), "model"))
        for number, event in enumerate(flat, 1):
            if isinstance(event, dict):
                self._read_event(LogLine(number, event))
        if cost := as_float(object_at(value, "metrics").get("accumulated_cost")):
            self.spent = replace(self.spent, cost_usd=cost)
        if text(value, "error"):
            self.stated = EpisodeStatus.FAILED
        self.finish()

    def finish(self) -> None:
        self.use_instance(self._instance, text(self.extra, "cwd"))
        super().finish()

    def _read_action(self, value: Mapping[str, Any]) -> None:
        kind = text(value, "action")
        given = object_at(value, "args")
        if kind in ("message", "system"):
            said = content_text(given.get("content")) or text(value, "message")
            role = "system" if kind == "system" else "user" if value.get("source") == "user" else "assistant"
            self.add_facts(agent_version=text(given, "openhands_version"))
            self._say(role, said)
        elif kind in ("finish", "reject"):
            self._read_finish(kind, given)
        elif kind not in _QUIET:
            self.stated = None
            self.message("assistant", text(given, "thought"))
            function = text(object_at(value, "tool_call_metadata"), "function_name")
            if kind == "call_tool_mcp":
                function = text(given, "name") or function
                call = LoggedCall(function, arguments_from(given.get("arguments")))
            else:
                told = {key: each for key, each in given.items() if each not in (None, "")}
                told = {key: each for key, each in told.items() if key not in _QUIET_ARGUMENTS}
                call = LoggedCall(function or _TOOLS.get(kind, kind), told)
            self.call(_id(value.get("id")), call)

    def _say(self, role: str, said: str, sender: str = "") -> None:
        """Record a message; only another agent is named as its sender."""
        # An evaluation begins with a task in tags, and goes on answering in the user's role.
        if self._instance or (role == "user" and not self.task and said.lstrip().startswith("<")):
            self._has_person = False
        self.message(role, said, is_typed=role == "user" and self._has_person and not sender)

    def _read_finish(self, kind: str, given: Mapping[str, Any]) -> None:
        outputs = object_at(given, "outputs")
        said = text(given, "final_thought", "message") or text(outputs, "content")
        word = str(given.get("task_completed") or "true").rpartition(".")[2].lower()
        done = EpisodeStatus.SUCCESS if word == "true" else EpisodeStatus.PARTIAL
        self.stated = EpisodeStatus.FAILED if kind == "reject" else done
        self.note(EventKind.FINISH, kind, said or text(given, "thought"))

    def _read_observation(self, value: Mapping[str, Any]) -> None:
        kind = text(value, "observation")
        extras = object_at(value, "extras")
        cause = _id(value.get("cause"))
        if kind == "agent_state_changed":
            self._read_state(text(extras, "agent_state"))
        elif kind == "recall":
            self.extra.setdefault("cwd", text(extras, "working_dir"))
            self.project = self.project or text(extras, "repo_name")
        elif kind == "error" and not self.pending_tool(cause):
            self.note(EventKind.LOG, "error", text(value, "content"))
        elif kind not in _QUIET:
            facts = {key: extras[key] for key in ("metadata", "exit_code") if key in extras}
            self.result(cause, _outcome({**facts, "content": value.get("content")}, kind))

    def _read_state(self, word: str) -> None:
        status = status_of_word(word)
        if status is not None and status is not EpisodeStatus.RUNNING:
            # "finished" follows a finish action, which may have said that the task is only partly done.
            keeps = status is EpisodeStatus.SUCCESS and self.stated is not None
            self.stated = self.stated if keeps else status

    def _read_sdk_event(self, line: LogLine) -> None:
        value = line.value
        call_id = text(value, "tool_call_id")
        match value["kind"]:
            case "SystemPromptEvent":
                self.message("system", content_text(value.get("system_prompt")))
            case "MessageEvent":
                role = {"user": "user", "agent": "assistant"}.get(text(value, "source"), "system")
                said = content_text(object_at(value, "llm_message").get("content"))
                self._say(role, said, text(value, "sender"))
            case "ActionEvent":
                self._read_sdk_action(value)
            case "ObservationEvent":
                self.result(call_id, _outcome(object_at(value, "observation")))
            case "AgentErrorEvent":
                self.result(call_id, CallOutcome(text(value, "error"), is_error=True))
            case "UserRejectObservation":
                reason = text(value, "rejection_reason")
                self.result(call_id, CallOutcome(reason, is_error=True, extra={"rejected": True}))
            case "ConversationStateUpdateEvent":
                if value.get("key") in ("execution_status", "agent_status"):
                    self._read_state(text(value, "value"))
            case "ConversationErrorEvent":
                self.stated = EpisodeStatus.FAILED
                self.note(EventKind.LOG, "error", text(value, "detail"))
            case "PauseEvent" | "InterruptEvent":
                self.ending.is_interrupted = True
            case kind if kind not in _KINDS:
                self.skip(f"event {line.number}", f"unknown event kind {kind[:40]!r}")

    def _read_sdk_action(self, value: Mapping[str, Any]) -> None:
        self.ending.is_interrupted = False
        action = object_at(value, "action")
        tool = text(value, "tool_name")
        self.message("assistant", content_text(value.get("thought")))
        if tool == "finish":
            self._read_finish("finish", action)
        elif tool != "think":
            self.stated = None
            asked = object_at(value, "tool_call")
            given = {key: each for key, each in action.items() if key != "kind" and each is not None}
            if not given:
                given = dict(arguments_from((object_at(asked, "function") or asked).get("arguments")))
            self.call(text(value, "tool_call_id"), LoggedCall(tool, given))


def _id(value: object) -> str:
    return f"{value}" if isinstance(value, int | str) else ""


def _outcome(observation: Mapping[str, Any], kind: str = "") -> CallOutcome:
    metadata = object_at(observation, "metadata")
    code = as_integer(metadata.get("exit_code", observation.get("exit_code")))
    extra: dict[str, object] = {"rejected": True} if kind == "user_rejected" else {}
    if observation.get("timeout") is True or is_timeout(text(metadata, "suffix")):
        extra["timed_out"] = True
    failure = text(observation, "error")
    is_error = kind == "error" or observation.get("is_error") is True or bool(failure) or bool(extra)
    content = content_text(observation.get("content")) or content_text(observation.get("output")) or failure
    # Minus one says that the command still runs, which is no exit.
    return read_outcome(
        content, exit_code=None if code == -1 else code, is_error=is_error or None, extra=extra
    )
