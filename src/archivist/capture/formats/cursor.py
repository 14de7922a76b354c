"""Read Cursor's sessions as its databases hold them: the editor's `bubbles`, the terminal's `messages`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, object_in, read_outcome
from archivist.capture.json_stream import Part, preview_log, read_document
from archivist.capture.recorder import LogItem, LogOrigin, Recorder
from archivist.capture.values import (
    as_time,
    compact_json,
    content_text,
    mapping,
    object_at,
    objects,
    text,
    text_between,
)
from archivist.cold_start import lazy_pattern

name = "cursor"
_USER = 1
# How the terminal client words the end of a command that failed, where nothing else says so.
_EXITED = lazy_pattern(r"(?:exited with (?:exit )?code|[Ee]xit code):? (-?\d{1,10})")
_TAIL_CHARS = 300


def recognises(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Recognise a session by its id and its list of messages."""
    document = preview_log(head).document
    return "composerId" in document and bool({"bubbles", "messages"} & document.keys())


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the session's messages and calls, then the session."""
    return _Session(origin).read(read_document(source, ("bubbles", "messages")))


@dataclass(eq=False)
class _Session(Recorder):
    agent: str = name

    def take(self, part: Part) -> None:
        if part.index is not None:
            if not isinstance(part.value, dict):
                self.skip(f"{part.key}[{part.index}]", "not an object")
            elif part.key == "bubbles":
                self._read_bubble(part.value)
            else:
                self._read_message(part.value)
            return
        match part.key:
            case "composerId":
                self.session = str(part.value)
                self.open_run(self.session, self.session)
            case "createdAt":
                self.extend_span(as_time(part.value))
            case "workspaceIdentifier":
                self.enter_folder(text(object_at(mapping(part.value), "uri"), "fsPath"))
            case "workspacePath":
                self.enter_folder(str(part.value or ""))
            case "modelConfig":
                self.use_model(text(mapping(part.value), "modelName"))
            case "lastUsedModel":
                self.use_model(str(part.value or ""))

    def _read_bubble(self, bubble: Mapping[str, Any]) -> None:
        self.move_to(as_time(object_at(bubble, "timingInfo").get("clientStartTime")))
        self.use_model(text(object_at(bubble, "modelInfo"), "modelName"))
        if bubble.get("type") == _USER:
            self.typed_message(text(bubble, "text"))
            return
        self.message("assistant", text(bubble, "text"))
        tool = object_at(bubble, "toolFormerData")
        if tool:
            given, params = (arguments_from(text(tool, name)) for name in ("rawArgs", "params"))
            arguments = {**({"cwd": params["cwd"]} if "cwd" in params else {}), **(given or params)}
            self.call_with_result(LoggedCall(text(tool, "name") or "unknown", arguments), _outcome(tool))

    def _read_message(self, message: Mapping[str, Any]) -> None:
        self.move_to(as_time(message.get("createdAt")))
        self.use_model(text(object_at(message, "providerOptions", "cursor"), "modelName"))
        content, role = message.get("content"), text(message, "role")
        if role == "user":
            said = content_text(content)
            asked = text_between(said, "<user_query>", "</user_query>")
            # The client puts it last: in the rules and files before it, a repository could write the tag.
            is_last = said.rstrip().endswith("</user_query>")
            if asked is not None and is_last and said.count("<user_query>") == 1:
                self.typed_message(asked)
            elif "<user_info>" in said:
                return
            else:
                # Without its tag, or with two of them, a command or a file may speak.
                self.message("user", said if asked is None else asked)
            return
        if isinstance(content, str):
            self.message("assistant" if role == "assistant" else "system", content)
        for part in objects(content):
            match part.get("type"):
                case "text":
                    self.message("assistant", text(part, "text"))
                case "tool-call":
                    call = LoggedCall(text(part, "toolName"), arguments_from(part.get("args")))
                    self.call(text(part, "toolCallId"), call)
                case "tool-result":
                    self.result(text(part, "toolCallId"), _terminal_outcome(part))


def _outcome(tool: Mapping[str, Any]) -> CallOutcome:
    result = object_in(text(tool, "result"))
    output = text(result, "output", "contents", "stdout") or text(tool, "result")
    problem = tool.get("error")
    error = problem if isinstance(problem, str) else compact_json(problem) if problem else ""
    status = text(tool, "status")
    extra: dict[str, object] = {}
    if status == "cancelled" or text(tool, "userDecision") == "rejected":
        extra["rejected"] = True
    return read_outcome(
        output or error,
        exit_code=result.get("exitCode", result.get("exit_code")),
        is_error=True if status == "error" or (error and not output) else None,
        extra=extra,
    )


def _terminal_outcome(part: Mapping[str, Any]) -> CallOutcome:
    result = part.get("result")
    output = result if isinstance(result, str) else content_text(result) or compact_json(result)
    ended = _EXITED.search(output, max(0, len(output) - _TAIL_CHARS))
    is_error = part.get("isError")
    if not isinstance(is_error, bool):
        is_error = True if output.startswith("Error:") else None
    return read_outcome(output, exit_code=int(ended.group(1)) if ended else None, is_error=is_error)
