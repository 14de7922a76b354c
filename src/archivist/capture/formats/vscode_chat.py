"""Read chat sessions of VS Code: one JSON document, or a log of the changes that make it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from archivist.capture.calls import CallOutcome, LoggedCall, arguments_from, object_in, read_outcome
from archivist.capture.json_stream import (
    CHUNK_BYTES,
    LogLine,
    Part,
    SkippedRecord,
    preview_log,
    read_document,
    read_lines,
)
from archivist.capture.recorder import LogItem, LogOrigin, Recorder
from archivist.capture.values import (
    as_float,
    as_integer,
    as_time,
    content_text,
    listing,
    mapping,
    object_at,
    objects,
    text,
)
from archivist.files.worktrees import read_small_text
from archivist.paths import folder_of_uri

name = "vscode"
# The changes can only be made in order, so a session is read as a whole; the client's are some megabytes.
_MOST_BYTES = 256 * 1024**2
_HEAD_BYTES = 64 * 1024
_CALL = "toolInvocationSerialized"
# Marks of a request that the client or a program made, such as the output of a terminal.
_UNTYPED = ("isSystemInitiated", "isHidden", "isSynthetic")


def recognises(head: bytes) -> bool:
    """Recognise the log by a session with requests, whole or as the first state of a log of changes."""
    preview = preview_log(head)
    first = preview.objects[0] if preview.objects else {}
    state = object_at(first, "v") if first.get("kind") == 0 else preview.document
    return "requests" in state and bool({"sessionId", "creationDate", "requesterUsername"} & state.keys())


def read(source: BinaryIO, origin: LogOrigin) -> Iterator[LogItem]:
    """Yield what was asked and done, then the session."""
    pieces = []
    left = _MOST_BYTES
    try:
        while left > 0 and (piece := source.read(min(left, CHUNK_BYTES))):
            pieces.append(piece)
            left -= len(piece)
    except OSError as error:
        yield SkippedRecord(f"byte {_MOST_BYTES - left}", f"the file is cut or damaged: {error}")
    whole = b"".join(pieces)
    is_log = preview_log(whole[:_HEAD_BYTES]).document.get("kind") == 0
    parts = read_lines(BytesIO(whole)) if is_log else read_document(BytesIO(whole), ())
    if origin.folder and not origin.began:
        origin = replace(origin, began=opened_folder(origin.folder.parent / "workspace.json"))
    yield from _Session(origin).read(parts)


def opened_folder(note: Path) -> str:
    """Return the folder that a window of VS Code had open, by the note that it keeps beside its chats."""
    return folder_of_uri(text(object_in(read_small_text(note)), "folder"))


@dataclass(eq=False)
class _Session(Recorder):
    agent: str = name
    _state: dict[str, Any] = field(default_factory=dict)

    def take(self, record: LogLine | Part) -> None:
        if isinstance(record, Part):
            self._state[record.key] = record.value
        elif not _change_state(self._state, record.value):
            self.skip(f"line {record.number}", "a change of something that is not there")

    def finish(self) -> None:
        if not self._state:
            return
        self.session = text(self._state, "sessionId")
        self.open_run(sorted(self._state), self.session)
        self.add_facts(title=text(self._state, "customTitle"))
        self.extend_span(as_time(self._state.get("creationDate")))
        requests = objects(self._state.get("requests"))
        for request in requests:
            # What its calls were given comes with the result of a request.
            is_open = request is requests[-1] and "result" not in request
            self._read_request(request, is_open=is_open and request.get("isCanceled") is not True)
        super().finish()

    def _read_request(self, request: Mapping[str, Any], *, is_open: bool) -> None:
        self.move_to(as_time(request.get("timestamp")))
        self.use_model(text(request, "modelId"))
        self.ending.is_interrupted = self.ending.is_service_error = False
        prompt = object_at(request, "message")
        is_typed = not any(part.get(mark) for part in (request, prompt) for mark in _UNTYPED)
        self.message("user" if is_typed else "system", text(prompt, "text"), is_typed=is_typed)
        if is_open:
            return
        facts = object_at(request, "result", "metadata")
        given = {
            text(call, "id"): call
            for part in objects(facts.get("toolCallRounds"))
            for call in objects(part.get("toolCalls"))
        }
        outputs = object_at(facts, "toolCallResults")
        for part in objects(request.get("response")):
            if part.get("kind") == _CALL:
                call_id = text(part, "toolCallId")
                self._read_call(part, mapping(given.pop(call_id, None)), object_at(outputs, call_id))
            elif "kind" not in part or part["kind"] == "markdownContent":
                said = part.get("value", part.get("content"))
                self.message("assistant", said if isinstance(said, str) else text(mapping(said), "value"))
        # Some tools are not shown.
        for call_id, call in given.items():
            if call_id in outputs:
                self._read_call({}, call, object_at(outputs, call_id))
        if "result" in request:
            # A request with a result was answered to its end.
            self.ending.last_role = "assistant"
        self.ending.is_interrupted = self.ending.is_interrupted or request.get("isCanceled") is True
        self.ending.is_service_error = bool(object_at(request, "result", "errorDetails"))

    def _read_call(
        self, shown: Mapping[str, Any], call: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> None:
        terminal = object_at(shown, "toolSpecificData")
        arguments = dict(arguments_from(call.get("arguments")))
        line = object_at(terminal, "commandLine")
        if command := text(line, "userEdited", "toolEdited", "original") or text(terminal, "command"):
            arguments["command"] = command
            # Where the terminal was, which stays open from call to call.
            place = terminal.get("cwd")
            if isinstance(place, str):
                folder = folder_of_uri(place) or place
            else:
                folder = text(mapping(place), "path", "fsPath")
            if folder:
                arguments.setdefault("cwd", folder)
        tool = text(call, "name") or text(shown, "toolId")
        self.call_with_result(LoggedCall(tool, arguments), _outcome(shown, terminal, answer))


def _change_state(state: MutableMapping[str, Any], change: Mapping[str, Any]) -> bool:
    """Make one change of the log; say whether what it changes was there."""
    path, value = listing(change.get("k")), change.get("v")
    if change.get("kind") == 0:
        state.clear()
        state.update(mapping(value))
        return True
    inside: Any = state
    for key in path[:-1]:
        inside = _item(inside, key)
    if not path or not isinstance(inside, MutableMapping | MutableSequence):
        return False
    key = path[-1]
    match change.get("kind"):
        case 1:
            return _put(inside, key, value)
        case 2:
            known = _item(inside, key)
            cut = as_integer(change.get("i"))
            kept = list(listing(known))[: len(listing(known)) if cut is None else max(0, cut)]
            return _put(inside, key, [*kept, *listing(value)])
        case 3 if isinstance(inside, MutableMapping):
            inside.pop(str(key), None)
    return True


def _item(inside: object, key: object) -> object:
    if isinstance(inside, dict):
        return inside.get(str(key))
    is_place = isinstance(inside, list) and isinstance(key, int) and -len(inside) <= key < len(inside)
    return inside[key] if is_place else None  # type: ignore[index]


def _put(inside: Any, key: object, value: object) -> bool:
    if isinstance(inside, dict):
        inside[str(key)] = value
    elif isinstance(key, int) and 0 <= key < len(inside):
        inside[key] = value
    elif key == len(inside):
        inside.append(value)
    else:
        return False
    return True


def _outcome(shown: Mapping[str, Any], terminal: Mapping[str, Any], answer: Mapping[str, Any]) -> CallOutcome:
    details, state = object_at(shown, "resultDetails"), object_at(terminal, "terminalCommandState")
    output = text(object_at(terminal, "terminalCommandOutput"), "text")
    output = output or "\n".join(
        said for part in objects(answer.get("content")) if (said := content_text(part.get("value")))
    )
    output = output or "\n".join(text(part, "value", "text") for part in objects(details.get("output")))
    confirmed = shown.get("isConfirmed")
    is_rejected = confirmed is False or mapping(confirmed).get("type") == 0
    took = as_float(state.get("duration"))
    return read_outcome(
        output,
        exit_code=state.get("exitCode"),
        is_error=True if details.get("isError") is True else None,
        duration_s=None if took is None else took / 1000,
        extra={"rejected": True} if is_rejected else {},
    )
