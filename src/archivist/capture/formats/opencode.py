"""Read OpenCode sessions as `opencode export` prints them: the session's `info`, and `messages` of parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, read_outcome
from archivist.capture.json_stream import Part, preview_log, read_document
from archivist.capture.recorder import LogItem, LogOrigin, Recorder, add_usage, read_usage
from archivist.capture.values import as_float, as_time, object_at, objects, seconds_between, text
from archivist.records import EventKind, Usage

name = "opencode"
# How the client words a call that the user, or a rule of theirs, did not permit.
_REFUSED = (
    "The user rejected permission to use this specific tool call",
    "The user has specified a rule which prevents you from using this specific tool call",
    "The user dismissed this question",
)
_ABORTED = "Tool execution aborted"
_TIMED_OUT = "terminated command after exceeding timeout"
# The copy of a command's output that no plugin has edited is cut at its end above this length.
_COPY_CHARS = 30_000


def recognises(head: bytes) -> bool:
    """Recognise the log by the facts of its session, or by messages that have facts and parts."""
    document = preview_log(head).document
    if {"id", "directory", "projectID"} <= object_at(document, "info").keys():
        return True
    return any(
        "sessionID" in object_at(message, "info") and "parts" in message
        for message in objects(document.get("messages"))
    )


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the session's messages and calls, then the session."""
    return _Session(origin).read(read_document(source, ("messages",)))


@dataclass(eq=False)
class _Session(Recorder):
    keeps_shell = False
    agent: str = name

    def take(self, part: Part) -> None:
        if part.key == "info" and isinstance(part.value, dict):
            facts = part.value
            self.session = text(facts, "id")
            self.open_run(facts, self.session)
            self.parent = text(facts, "parentID")
            self.extend_span(as_time(object_at(facts, "time").get("created")))
            self.enter_folder(text(facts, "directory"))
            self.add_facts(agent_version=text(facts, "version"), title=text(facts, "title"))
        elif part.key == "messages" and part.index is not None:
            if isinstance(part.value, dict):
                self._read_message(part.value)
            else:
                self.skip(f"messages[{part.index}]", "not an object")

    def _read_message(self, message: Mapping[str, Any]) -> None:
        info = object_at(message, "info")
        self.session = self.session or text(info, "sessionID")
        self.open_run(info, self.session)
        created = as_time(object_at(info, "time").get("created"))
        self.move_to(created)
        model = info if "modelID" in info else object_at(info, "model")
        if model_name := text(model, "modelID"):
            self.use_model("/".join(filter(None, (text(model, "providerID"), model_name))))
        if info.get("role") == "user":
            self.ending.is_interrupted = self.ending.is_service_error = False
            for part in objects(message.get("parts")):
                if part.get("type") == "subtask":
                    self.message("user", text(part, "prompt"), name="command")
                elif part.get("type") == "text":
                    # The client and its plugins add parts of their own, such as the files that a prompt
                    # names. The text of a repository's command is a part like a typed one, so no part is
                    # known to be typed.
                    is_added = part.get("synthetic") is True or part.get("ignored") is True
                    self.message("system" if is_added else "user", text(part, "text"))
            return
        self.enter_folder(text(object_at(info, "path"), "cwd"))
        self.spent = add_usage(self.spent, _usage_of(info))
        for part in objects(message.get("parts")):
            if part.get("type") == "tool":
                self._read_call(part)
                self.move_to(created)
            elif part.get("type") != "text":
                continue
            elif info.get("summary") is True:
                self.note(EventKind.LOG, "compaction", text(part, "text"))
            else:
                self.message("assistant", text(part, "text"))
        if error := object_at(info, "error"):
            reason = text(object_at(error, "data"), "message") or text(error, "name")
            if text(error, "name") == "MessageAbortedError":
                self.ending.is_interrupted = True
                self.note(EventKind.LOG, "interrupt", reason)
            else:
                self.ending.is_service_error = True
                self.note(EventKind.LOG, "error", reason)

    def _read_call(self, part: Mapping[str, Any]) -> None:
        state = object_at(part, "state")
        call_id = text(part, "callID", "id")
        times = object_at(state, "time")
        started = as_time(times.get("start"))
        self.move_to(started or self.time)
        self.call(call_id, LoggedCall(text(part, "tool"), object_at(state, "input")))
        if text(state, "status") not in ("pending", "running"):
            ended = as_time(times.get("end"))
            self.extend_span(ended)
            self.result(call_id, _outcome(text(part, "tool"), state, seconds_between(started, ended)))


def _usage_of(info: Mapping[str, Any]) -> Usage:
    tokens = object_at(info, "tokens")
    used = {**tokens, **object_at(tokens, "cache"), "cost": info.get("cost")}
    return read_usage(used, "input read write", "output reasoning", "read", "cost")


def _outcome(tool: str, state: Mapping[str, Any], duration_s: float | None) -> CallOutcome:
    facts = object_at(state, "metadata")
    output = text(state, "output") or text(state, "error")
    child = text(facts, "sessionId", "sessionID")
    extra: dict[str, object] = {"child": child} if child else {}
    if output.startswith(_ABORTED):
        extra["interrupted"] = True
        return CallOutcome(output, duration_s=duration_s, extra=extra)
    if output.startswith(_REFUSED):
        extra["rejected"] = True
    if _TIMED_OUT in output[-500:]:
        extra["timed_out"] = True
    copy = text(facts, "output")
    if copy and len(copy) < _COPY_CHARS and facts.get("truncated") is not True:
        output = copy
    # A command that exits with an error has completed; so has a call that no tool could read.
    is_error = state.get("status") == "error" or tool == "invalid" or "timed_out" in extra
    exit_code = as_float(facts.get("exit"))
    if exit_code is None and not is_error:
        return CallOutcome(output, duration_s=duration_s, extra=extra)
    return read_outcome(
        output, exit_code=exit_code, is_error=is_error or None, duration_s=duration_s, extra=extra
    )
