"""Tell what a tool call is: a command, an edit of a file, or something else with arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from archivist.capture.clipping import EDIT_SIDE_CHARS, OUTPUT_SIDE_CHARS, TARGET_CHARS, clip, shorten
from archivist.capture.json_stream import decode
from archivist.capture.values import compact_json, listing, mapping, objects, text
from archivist.records import EventKind

_COMMAND_KEYS = ("command", "cmd", "keystrokes", "script", "code", "chars")
_FILE_KEYS = (
    "file_path", "path", "notebook_path", "filePath", "filename", "file", "absolute_path", "target_file",
)  # fmt: skip
_OLD_KEYS = ("old_string", "old_str", "oldString", "search", "old_text")
_NEW_KEYS = (
    "new_string", "new_str", "newString", "content", "contents", "file_text", "new_source", "new_text",
)  # fmt: skip
_OTHER_TARGET_KEYS = ("pattern", "query", "url", "uri", "description", "prompt")
_MAX_DEPTH = 4
_SHELLS = frozenset(
    {"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh"}
)
_EDITORS = frozenset(
    {
        "edit", "write", "multiedit", "notebookedit", "edit_file", "write_file", "create_file", "replace",
        "str_replace", "insert", "write_to_file", "replace_in_file", "edit_block", "file_edit", "file_write",
    }
)  # fmt: skip
# Editors that are told by their first argument what to do; viewing is no edit.
_EDIT_COMMANDS = frozenset({"create", "str_replace", "insert", "undo_edit", "write", "edit"})
_VIEW_COMMANDS = frozenset({"view", "open", "read"})
_GO_TO_FOLDER = re.compile(r"\A\s*cd\s+(?:'[^']*'|\"[^\"]*\"|[^\s;&|<>]+)\s*(?:&&|;|\n)\s*")
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH = re.compile(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>(.*?)</parameter>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A tool call as its log gives it."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallDescription:
    """What a call comes down to, in the fields of an event."""

    kind: EventKind
    text: str
    target: str = ""
    extra: dict[str, object] = field(default_factory=dict)


def describe(call: LoggedCall) -> CallDescription:
    """Sort a call by its arguments first and its tool's name second, so that unknown tools are read too."""
    given = call.arguments
    patch = _patch_in(call)
    if patch:
        return _describe_patch(patch)
    file = _first(given, _FILE_KEYS)
    verb = text(given.get("command"))
    is_replacing = bool(_first(given, _OLD_KEYS)) and any(
        isinstance(given.get(key), str) for key in _NEW_KEYS
    )
    is_edit = verb in _EDIT_COMMANDS or call.tool.lower() in _EDITORS or is_replacing
    if file and is_edit and verb not in _VIEW_COMMANDS:
        edits = objects(given.get("edits")) or [given]
        old = "\n".join(filter(None, (_first(edit, _OLD_KEYS) for edit in edits)))
        new = "\n".join(filter(None, (_first(edit, _NEW_KEYS) for edit in edits)))
        extra: dict[str, object] = {"old": clip(old, EDIT_SIDE_CHARS), "new": clip(new, EDIT_SIDE_CHARS)}
        return CallDescription(EventKind.EDIT, arguments_text(given), shorten(file, TARGET_CHARS), extra)
    command = command_of(given)
    if command and not (file and verb in _EDIT_COMMANDS | _VIEW_COMMANDS):
        return CallDescription(EventKind.TOOL_CALL, clip(command), target_of(command))
    target = file or _first(given, _OTHER_TARGET_KEYS)
    return CallDescription(EventKind.TOOL_CALL, arguments_text(given), shorten(target, TARGET_CHARS))


def command_of(given: Mapping[str, Any]) -> str:
    """Return the command line among a call's arguments, out of its shell wrapper."""
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value.rstrip("\n")
        words = [word for word in listing(value) if isinstance(word, str)]
        if words:
            if len(words) >= 3 and words[0] in _SHELLS and words[1].startswith("-"):
                return words[2]
            return shlex.join(words)
    return ""


def target_of(command: str) -> str:
    """Return what a command line comes down to: without the `cd` that leads it."""
    rest = command.strip()
    while match := _GO_TO_FOLDER.match(rest):
        rest = rest[match.end() :]
    return shorten(rest or command.strip(), TARGET_CHARS)


def arguments_from(value: object) -> Mapping[str, Any]:
    """Read arguments given as an object or as JSON text; other text is the input itself."""
    if isinstance(value, str):
        try:
            decoded = decode(value.encode("utf-8", "replace")) if value.lstrip().startswith("{") else None
        except ValueError:
            decoded = None
        return decoded if isinstance(decoded, dict) else {"input": value} if value else {}
    return mapping(value)


def arguments_text(given: Mapping[str, Any]) -> str:
    """Write arguments as JSON, their long values clipped so that what is left is JSON still."""
    if not given:
        return ""
    written = compact_json(given)
    if len(written) > 2 * OUTPUT_SIDE_CHARS:
        written = compact_json(_with_clipped_values(given, _MAX_DEPTH))
    return clip(written, 4 * OUTPUT_SIDE_CHARS)


def _with_clipped_values(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clip(value, EDIT_SIDE_CHARS)
    if depth and isinstance(value, dict):
        return {key: _with_clipped_values(each, depth - 1) for key, each in value.items()}
    if depth and isinstance(value, list):
        return [_with_clipped_values(each, depth - 1) for each in value]
    return value


def calls_in_message(message: str) -> list[LoggedCall]:
    """Read the calls that a model without tool calling wrote into its message."""
    if "<function=" in message:
        return [
            LoggedCall(name, {key: value.strip("\n") for key, value in _PARAMETER.findall(body)})
            for name, body in _FUNCTION.findall(message)
        ]
    if '"commands"' in message or '"keystrokes"' in message:
        start, end = message.find("{"), message.rfind("}")
        try:
            reply = mapping(decode(message[start : end + 1].encode("utf-8", "replace")))
        except ValueError:
            return []
        found = [LoggedCall("bash_command", each) for each in objects(reply.get("commands"))]
        return [*found, LoggedCall("mark_task_complete", {})] if reply.get("task_complete") is True else found
    return []


def _patch_in(call: LoggedCall) -> str:
    """Return the patch of an `apply_patch`, called by itself or through a shell."""
    for value in call.arguments.values():
        for each in listing(value) or (value,):
            if isinstance(each, str) and "*** Begin Patch" in each and (found := _PATCH.search(each)):
                is_direct = "apply_patch" in call.tool or each.lstrip().startswith("*** Begin Patch")
                if is_direct or "apply_patch" in each[: found.start()]:
                    return found.group()
    return ""


def _describe_patch(patch: str) -> CallDescription:
    files = [name.strip() for name in _PATCH_FILE.findall(patch)]
    rows = [row for row in patch.splitlines() if not row.startswith(("***", "+++", "---"))]
    old = "\n".join(row[1:] for row in rows if row.startswith("-"))
    new = "\n".join(row[1:] for row in rows if row.startswith("+"))
    extra: dict[str, object] = {"old": clip(old, EDIT_SIDE_CHARS), "new": clip(new, EDIT_SIDE_CHARS)}
    if len(files) > 1:
        extra["files"] = files[:50]
    return CallDescription(
        EventKind.EDIT, clip(patch, OUTPUT_SIDE_CHARS), shorten("".join(files[:1]), TARGET_CHARS), extra
    )


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((given[key] for key in keys if isinstance(given.get(key), str) and given[key]), "")
