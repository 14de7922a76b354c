"""Normalise tool calls and their results: command or file, output, exit code, failure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from archivist.capture.json_stream import decode
from archivist.capture.values import (
    EDIT_SIDE_CHARS,
    OUTPUT_SIDE_CHARS,
    TARGET_CHARS,
    as_float,
    as_integer,
    clip,
    compact_json,
    content_text,
    listing,
    mapping,
    objects,
    seconds_in,
    text,
    text_between,
)
from archivist.cold_start import lazy_pattern
from archivist.records import EventKind
from archivist.records.words import OUTSIDE_SANDBOX
from archivist.text import shorten

_COMMAND_KEYS = ("command", "cmd", "keystrokes", "script", "code", "chars")
_FILE_KEYS = (
    "file_path", "path", "notebook_path", "filePath", "filename", "file", "absolute_path", "target_file",
)  # fmt: skip
_OLD_KEYS = ("old_string", "old_str", "oldString", "search", "old_text")
_NEW_KEYS = (
    "new_string", "new_str", "newString", "content", "contents", "file_text", "new_source", "new_text",
)  # fmt: skip
_OTHER_TARGET_KEYS = ("pattern", "dir_path", "query", "url", "uri", "description", "prompt")
# Values nested deeper are not clipped one by one; the whole is clipped afterwards.
_MAX_DEPTH = 4
_SHELLS = ("bash", "sh", "zsh")
_EDITORS = frozenset(
    {
        "edit", "write", "multiedit", "notebookedit", "edit_file", "write_file", "create_file", "replace",
        "str_replace", "insert", "create", "write_to_file", "replace_in_file", "edit_block", "file_edit",
        "file_write",
    }
)  # fmt: skip
# Editors whose first argument is a subcommand; viewing is not an edit.
_EDIT_COMMANDS = frozenset({"create", "str_replace", "insert", "undo_edit", "write", "edit"})
_VIEW_COMMANDS = frozenset({"view", "open", "read"})
_GO_TO_FOLDER = lazy_pattern(r"\A\s*cd\s+(?:'[^']*'|\"[^\"]*\"|[^\s;&|<>]+)\s*(?:&&|;|\n)\s*")
_PATCH_FILE = lazy_pattern(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH = lazy_pattern(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_FUNCTION = lazy_pattern(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_EXIT_LINE = lazy_pattern(r"\A(?:Error: )?Exit code:? (-?\d{1,10})(?:\n|\Z)")
_CODEX_FRAME = lazy_pattern(
    r"\A(?:(?:Chunk ID: .*|Wall time: (?P<wall>[\d.]+) seconds|Original token count: \d+"
    r"|Total output lines: \d+"
    r"|Process exited with code (?P<exit>-?\d{1,10})|Exit code: (?P<code>-?\d{1,10})"
    r"|Process running with session ID .*)\n)+Output:(?:\n|\Z)"
)
_RETURN_CODE = lazy_pattern(r"<returncode>\s*(-?\d{1,10})\s*</returncode>")
_ENDED_WITH = lazy_pattern(
    r"\n?\[(?:The command (?:completed|finished)|Command (?:finished|completed))[^\]\n]{0,200}?"
    r"exit code:? (-?\d{1,10})[^\]\n]{0,200}\]"
)
_FOLDER_NOTES = lazy_pattern(r"\n?\[(?:Current working directory|Python interpreter): [^\[\]\n]*\]")
_ERROR_TAGS = lazy_pattern(r"</?tool_use_error>")
_TIMED_OUT = lazy_pattern(
    r"\bcommand\b.{0,400}?\btimed out (?:after|and)\b|\A\s*EXECUTION TIMED OUT|command timed out after \d+"
    r"|was cancelled because it took more than \d+|\[The command (?:timed out|has no new output) after",
    re.IGNORECASE | re.DOTALL,
)
# A harness reports a timeout at the ends of an output; in the middle are the words of the program.
_TIMEOUT_WINDOW_CHARS = 1_000
# What an editor says when it changed nothing.
REFUSED_EDIT = lazy_pattern(
    r"\A\s*(?:Your proposed edit has introduced|No replacement was performed|No match found|ERROR\b|Error:"
    r"|Invalid `|The path .{1,300}? does not exist|String to replace not found|apply_patch verification)",
    re.DOTALL,
)


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


def outside_sandbox(call: LoggedCall) -> dict[str, object]:
    """Return the mark of a call that asked to leave the harness's sandbox; nothing for any other."""
    given = call.arguments
    is_outside = given.get("sandbox_permissions") == "require_escalated" or any(
        given.get(name) is True for name in ("with_escalated_permissions", "dangerouslyDisableSandbox")
    )
    return {OUTSIDE_SANDBOX: True} if is_outside else {}


def describe(call: LoggedCall) -> CallDescription:
    """Sort a call by its arguments first and its tool's name second, so that unknown tools are read too."""
    given = call.arguments
    extra: dict[str, object]
    if patch := _patch_in(call):
        files = [name.strip() for name in _PATCH_FILE.findall(patch)]
        rows = [row for row in patch.splitlines() if not row.startswith(("***", "+++", "---"))]
        old, new = ("\n".join(row[1:] for row in rows if row.startswith(sign)) for sign in "-+")
        extra = {"old": clip(old, EDIT_SIDE_CHARS), "new": clip(new, EDIT_SIDE_CHARS)}
        if len(files) > 1:
            extra["files"] = files[:50]
        target = shorten("".join(files[:1]), TARGET_CHARS)
        return CallDescription(EventKind.EDIT, clip(patch, OUTPUT_SIDE_CHARS), target, extra)
    file = text(given, *_FILE_KEYS)
    verb = text(given, "command")
    is_replacing = bool(text(given, *_OLD_KEYS)) and any(isinstance(given.get(key), str) for key in _NEW_KEYS)
    is_edit = verb in _EDIT_COMMANDS or call.tool.lower() in _EDITORS or is_replacing
    if file and is_edit and verb not in _VIEW_COMMANDS:
        edits = objects(given.get("edits")) or [given]
        old = "\n".join(filter(None, (text(edit, *_OLD_KEYS) for edit in edits)))
        new = "\n".join(filter(None, (text(edit, *_NEW_KEYS) for edit in edits)))
        extra = {"old": clip(old, EDIT_SIDE_CHARS), "new": clip(new, EDIT_SIDE_CHARS)}
        return CallDescription(EventKind.EDIT, arguments_text(given), shorten(file, TARGET_CHARS), extra)
    command = command_of(given)
    if command and not (file and verb in _EDIT_COMMANDS | _VIEW_COMMANDS):
        return CallDescription(EventKind.TOOL_CALL, clip(command), target_of(command))
    target = file or text(given, *_OTHER_TARGET_KEYS)
    return CallDescription(EventKind.TOOL_CALL, arguments_text(given), shorten(target, TARGET_CHARS))


def command_of(given: Mapping[str, Any]) -> str:
    """Return the command line among a call's arguments, out of its shell wrapper."""
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value.rstrip("\n")
        words = [word for word in listing(value) if isinstance(word, str)]
        if words:
            if len(words) >= 3 and words[0].rpartition("/")[2] in _SHELLS and words[1].startswith("-"):
                return words[2]
            return shlex.join(words)
    return ""


def target_of(command: str) -> str:
    """Return what a command line comes down to: without the `cd` that leads it."""
    rest = command.strip()
    while match := _GO_TO_FOLDER.match(rest):
        rest = rest[match.end() :]
    return shorten(rest or command.strip(), TARGET_CHARS)


def _decode_text(written: str) -> object:
    """Return the value that a text writes as JSON, or None."""
    try:
        return decode(written.encode("utf-8", "replace"))
    except ValueError:
        return None


def object_in(written: str) -> Mapping[str, Any]:
    """Return the object that a text writes as JSON, else an empty one."""
    return mapping(_decode_text(written)) if written.startswith("{") else {}


def arguments_from(value: object) -> Mapping[str, Any]:
    """Read arguments given as an object or as JSON text; other text is the input itself."""
    if isinstance(value, str):
        decoded = _decode_text(value) if value.lstrip().startswith("{") else None
        return decoded if isinstance(decoded, dict) else {"input": value} if value else {}
    return mapping(value)


def arguments_text(given: Mapping[str, Any]) -> str:
    """Write arguments as JSON; long values are clipped one by one, so that the result stays valid JSON."""
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
        calls = []
        for name, body in _FUNCTION.findall(message):
            given = {}
            for piece in body.split("<parameter=")[1:]:
                key, _, rest = piece.partition(">")
                value, end, _ = rest.partition("</parameter>")
                if end:
                    given[key] = value.strip("\n")
            calls.append(LoggedCall(name, given))
        return calls
    if '"commands"' in message or '"keystrokes"' in message:
        start, end = message.find("{"), message.rfind("}")
        reply = mapping(_decode_text(message[start : end + 1]))
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


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The result of a call."""

    output: str = ""
    exit_code: int | None = None
    is_error: bool = False
    duration_s: float | None = None
    extra: dict[str, object] = field(default_factory=dict)


def read_outcome(
    content: str,
    *,
    exit_code: object = None,
    is_error: bool | None = None,
    duration_s: object = None,
    extra: dict[str, object] | None = None,
) -> CallOutcome:
    """Strip the frame around an output. What the log states outside the frame takes precedence.

    It is an error when the log says so, else when the exit code is not zero or the command timed out.
    """
    found = _strip_frame(content)
    stated_code, stated_duration = as_integer(exit_code), as_float(duration_s)
    code = stated_code if stated_code is not None else found.exit_code
    more = {**found.extra, **(extra or {})}
    if is_timeout(content) and (is_error or code != 0):
        more["timed_out"] = True
    if is_error is None:
        is_error = code not in (None, 0) or "timed_out" in more or found.is_error
    took = stated_duration if stated_duration is not None else found.duration_s
    return CallOutcome(found.output, code, is_error, took, more)


def is_timeout(content: str) -> bool:
    """Say whether the frame of an output reports a timeout."""
    if len(content) <= 2 * _TIMEOUT_WINDOW_CHARS:
        return bool(_TIMED_OUT.search(content))
    ends = content[:_TIMEOUT_WINDOW_CHARS], content[-_TIMEOUT_WINDOW_CHARS:]
    return any(_TIMED_OUT.search(end) for end in ends)


def from_structured(content: object) -> CallOutcome | None:
    """Read an output given as an object, such as `{"output", "metadata": {"exit_code"}}`."""
    if isinstance(content, str) and content.startswith("{") and content.endswith("}"):
        content = _decode_text(content)
    given = mapping(content)
    if not ({"output", "stdout", "content", "error"} & given.keys()):
        return None
    facts = mapping(given.get("metadata", given))
    passed = next((given[key] for key in ("passed", "success") if isinstance(given.get(key), bool)), None)
    output = content_text(given.get("output")) or content_text(given.get("content"))
    output = output or "\n".join(filter(None, (text(given, "stdout"), text(given, "stderr"))))
    return read_outcome(
        output or text(given, "error"),
        exit_code=facts.get("exit_code", given.get("exit_code")),
        is_error=None if passed is None else not passed,
        duration_s=facts.get("duration_seconds"),
    )


def _strip_frame(content: str) -> CallOutcome:
    if content.startswith(("<returncode>", "<exception>", "<output>")):
        return _from_tags(content)
    if frame := _CODEX_FRAME.match(content):
        code = frame.group("exit") or frame.group("code")
        took = seconds_in(frame.group("wall") or "")
        return CallOutcome(content[frame.end() :], int(code) if code else None, duration_s=took)
    if line := _EXIT_LINE.match(content):
        return CallOutcome(content[line.end() :], int(line.group(1)), is_error=int(line.group(1)) != 0)
    tail = max(0, len(content) - 600)
    if "exit code" in content[tail:] and (ends := list(_ENDED_WITH.finditer(content, tail))):
        output = _FOLDER_NOTES.sub("", content[: ends[0].start()] + content[ends[-1].end() :])
        return CallOutcome(output, int(ends[-1].group(1)))
    if "<tool_use_error>" in content[:40]:
        return CallOutcome(_ERROR_TAGS.sub("", content), is_error=True)
    return CallOutcome(content)


def _from_tags(content: str) -> CallOutcome:
    code = _RETURN_CODE.search(content[:4_000])
    has_failure = content.startswith("<exception>")
    failure = text_between(content, "<exception>", "</exception>") if has_failure else None
    output = _text_in_tag(content, "output")
    if output is None and (head := _text_in_tag(content, "output_head")) is not None:
        between = text_between(content, "</output_head>", "<output_tail>") or ""
        output = f"{head}\n{between.strip()}\n{_text_in_tag(content, 'output_tail') or ''}"
    if output is None:
        rest = content[code.end() :] if code else content
        output = rest.removeprefix("\n").removeprefix("<output>\n")
    extra: dict[str, object] = {} if failure is None else {"exception": failure[:500]}
    return CallOutcome(output, int(code.group(1)) if code else None, failure is not None, extra=extra)


def _text_in_tag(content: str, name: str) -> str | None:
    """Return what stands in a tag, without the line ends that the tag brought."""
    inner = text_between(content, f"<{name}>", f"</{name}>")
    return None if inner is None else inner.removeprefix("\n").removesuffix("\n")
