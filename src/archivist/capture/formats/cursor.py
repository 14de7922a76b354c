"""Read Cursor's sessions: from its databases the editor's `bubbles` and the terminal's `messages`, and the
transcripts that it writes to `agent-transcripts`, as JSON lines and, by older versions, as text.

The JSON lines seldom have what a tool answered. In the text nothing ends an answer, so a tool could print a
line `user:` or `[Tool call]`: nothing in it counts as typed, and no call as run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, object_in, read_outcome
from archivist.capture.json_stream import (
    READ_FAILURES,
    SHORT_LINE_BYTES,
    LogLine,
    Part,
    SkippedRecord,
    damaged_file,
    preview_log,
    read_document,
    read_lines,
)
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
from archivist.files.packed import head_of

name = "cursor"
_USER = 1
# How the terminal client words the end of a command that failed, where nothing else says so.
_EXITED = lazy_pattern(r"(?:exited with (?:exit )?code|[Ee]xit code):? (-?\d{1,10})")
_TAIL_CHARS = 300
# What the marks of a text transcript begin.
_SAID_BY = {
    "user:": "user", "assistant:": "assistant", "A:": "assistant", "[Thinking]": "assistant",
    "[Tool call]": "tool_call", "[Tool result]": "tool_result",
}  # fmt: skip
_TEXT_START = lazy_pattern(r"\s{0,9}user:[ \t]{0,9}\r?\n")
_TEXT_MARKS = (b"<user_query>", b"\nassistant:", b"\nA:")
_BLOCK = lazy_pattern(r"\[(?:Thinking|Tool call|Tool result)\]")
# The name that Cursor gives a session, and the file of its transcript.
_SESSION_ID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def recognises(head: bytes) -> bool:
    """Recognise a session by its id and its list of messages, a transcript by its lines."""
    document = preview_log(head).document
    is_session = "composerId" in document and bool({"bubbles", "messages"} & document.keys())
    return is_session or _is_text(head) or _is_transcript(head)


def _is_transcript(head: bytes) -> bool:
    """Recognise lines of a role and its message; what other clients write so has a type or an id, too."""
    lines = [line for line in preview_log(head).objects[:10] if "role" in line]
    return bool(lines) and all(
        line.keys() <= {"role", "message", "timestamp"} and "content" in mapping(line.get("message"))
        for line in lines
    )


def _is_text(head: bytes) -> bool:
    return _TEXT_START.match(head[:40].decode("utf-8", "replace")) is not None and any(
        mark in head for mark in _TEXT_MARKS
    )


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield the session's messages and calls, then the session."""
    head = head_of(source)
    if _is_text(head):
        return _TextTranscript(origin).read(_read_blocks(source))
    if _is_transcript(head):
        return _Transcript(origin).read(read_lines(source))
    return _Session(origin).read(read_document(source, ("bubbles", "messages")))


def _read_prompt(run: Recorder, said: str) -> None:
    """Record a prompt: what is in its tag was typed, the rules and files before it were not."""
    asked = text_between(said, "<user_query>", "</user_query>")
    # The client puts it last: in the rules and files before it, a repository could write the tag.
    is_last = said.rstrip().endswith("</user_query>")
    if asked is not None and is_last and said.count("<user_query>") == 1:
        run.typed_message(asked)
    elif "<user_info>" not in said:
        # Without its tag, or with two of them, a command or a file may speak.
        run.message("user", said if asked is None else asked)


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
            _read_prompt(self, content_text(content))
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


@dataclass(eq=False)
class _Transcript(Recorder):
    agent: str = name

    def take(self, line: LogLine) -> None:
        role, content = text(line.value, "role"), mapping(line.value.get("message")).get("content")
        if role not in ("user", "assistant"):
            # The end of a turn, for example.
            return
        _open(self, line.value)
        parts = objects(content)
        said = content if isinstance(content, str) else "\n\n".join(text(part, "text") for part in parts)
        if role == "user":
            _read_prompt(self, said)
        else:
            self.message("assistant", said)
        for part in parts:
            match part.get("type"):
                case "tool_use":
                    call = LoggedCall(text(part, "name") or "unknown", arguments_from(part.get("input")))
                    self.call(text(part, "id"), call)
                case "tool_result":
                    answer = content_text(part.get("content"))
                    outcome = read_outcome(answer, is_error=part.get("is_error") is True or None)
                    self.result(text(part, "tool_use_id") or self.oldest_call(), outcome)

    def finish(self) -> None:
        for event, outcome in self._waiting.values():
            self._close(event, outcome)
        # A call without an answer is how this format writes every call: the session did not end in it.
        self._waiting.clear()
        super().finish()


@dataclass(eq=False)
class _TextTranscript(Recorder):
    agent: str = name

    def take(self, block: Part) -> None:
        said = str(block.value)
        _open(self, said)
        asked = text_between(said, "<user_query>", "</user_query>")
        if block.key in ("user", "assistant"):
            self.message(block.key, said if asked is None else asked)
        else:
            self.message("system", said, name=block.key)


def _open(run: Recorder, beginning: object) -> None:
    if not run.run:
        session = PurePosixPath(run.origin.path_name).name.partition(".")[0]
        run.session = session if _SESSION_ID.fullmatch(session) else ""
        run.open_run(beginning, run.session)


def _read_blocks(source: BinaryIO) -> Iterator[Part | SkippedRecord]:
    """Yield the parts of a text transcript; of a part that is too long, the beginning."""
    kind, lines, size = "", list[str](), 0
    try:
        for raw in iter(lambda: source.readline(SHORT_LINE_BYTES), b""):
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            mark = _BLOCK.match(line)
            found = _SAID_BY.get(line.rstrip() if mark is None else mark[0])
            if found:
                if kind:
                    yield Part(kind, None, "\n".join(lines))
                kind, lines, size = found, [], 0
                line = line[mark.end() :] if mark else ""
            if size < SHORT_LINE_BYTES:
                lines.append(line)
                size += len(line)
    except READ_FAILURES as error:
        yield damaged_file("the text", error)
    if kind:
        yield Part(kind, None, "\n".join(lines))


def _outcome(tool: Mapping[str, Any]) -> CallOutcome:
    result = object_in(text(tool, "result"))
    output = text(result, "output", "contents", "stdout") or text(tool, "result")
    problem = tool.get("error")
    error = problem if isinstance(problem, str) else compact_json(problem) if problem else ""
    status = text(tool, "status")
    is_rejected = status == "cancelled" or text(tool, "userDecision") == "rejected"
    return read_outcome(
        output or error,
        exit_code=result.get("exitCode", result.get("exit_code")),
        is_error=True if status == "error" or (error and not output) else None,
        extra={"rejected": True} if is_rejected else {},
    )


def _terminal_outcome(part: Mapping[str, Any]) -> CallOutcome:
    result = part.get("result")
    output = result if isinstance(result, str) else content_text(result) or compact_json(result)
    ended = _EXITED.search(output, max(0, len(output) - _TAIL_CHARS))
    is_error = part.get("isError")
    if not isinstance(is_error, bool):
        is_error = True if output.startswith("Error:") else None
    return read_outcome(output, exit_code=int(ended.group(1)) if ended else None, is_error=is_error)
