"""What a client says about a moment of a session, and what all dialects share."""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from archivist.edges.hook_events import MOMENTS

# Clients cut or spill longer texts at 10,000 characters, Codex at 2,500 tokens.
MOST_CHARACTERS = 8_000
# No client names its sessions by more.
LONGEST_NAME = 200
# An output names its exit code in a line of its own, among the first or the last few.
_FIRST_LINES = 6
_LAST_LINES = 12
_EXIT_LINE = (
    r"(?im)^[ \t]*(?:error: |process |command )?exit(?:ed)?(?: with)? code:?[ \t]*(-?\d{1,10})\.?[ \t\r]*$"
)
_OUTPUTS = ("output", "llmContent", "content", "stdout", "stderr", "error", "message", "text")


class HookPayload(NamedTuple):
    """What a client says: whose session, where, and what of it the moment is about."""

    session: str = ""
    folder: str = ""
    transcript: str = ""
    prompt: str = ""
    error: str = ""
    tool: str = ""
    command: str = ""
    agent: str = ""
    role: str = ""

    @property
    def run(self) -> str:
        """Return the run that the moment belongs to: the session's, or its subagent's."""
        return f"{self.session}.{self.agent}" if self.session and self.agent else self.session


class Dialect(NamedTuple):
    """How one client speaks: its names for the moments, what it says, and what it wants to hear.

    `is_ended_by_stop` says that no later moment tells of the session's end.
    """

    name: str
    events: Mapping[str, str]
    read: Callable[[Mapping[str, object]], HookPayload]
    write: Callable[[str, str], str]
    provider: str = ""
    is_ended_by_stop: bool = False


def canonical_event(dialect: Dialect, name: str) -> str:
    """Return our word for an event, given in our words or in the client's; empty when it is none of ours."""
    if name in MOMENTS:
        return name
    return next((moment for moment, event in dialect.events.items() if event == name), "")


def first_text(raw_event: Mapping[str, object], *names: str) -> str:
    """Return the first of these fields that is a text; an empty one when none is."""
    for name in names:
        value = raw_event.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def command_of(raw_event: Mapping[str, object]) -> str:
    """Return the command of a tool's input, if it has one: Codex also calls it `cmd`, and lists its words."""
    given = raw_event.get("tool_input")
    if not isinstance(given, dict):
        return ""
    command = given.get("command") or given.get("cmd")
    if isinstance(command, list):
        # A shell that is given a line runs that line.
        is_line = len(command) == 3 and command[1] in ("-c", "-lc")
        return str(command[2]) if is_line else " ".join(str(word) for word in command)
    return command if isinstance(command, str) else ""


def event_failure(raw_event: Mapping[str, object]) -> str:
    """Return what a tool's answer says when it tells of a failure, else nothing.

    Clients without an event for failures give every answer. The text of a command's is looked at for its exit
    code; what any other tool returns may speak of errors without being one.
    """
    return response_failure(raw_event.get("tool_response"), is_command=bool(command_of(raw_event)))


def response_failure(response: object, *, is_command: bool = True) -> str:
    """Return what an answer says when it failed: by its exit code, its error field, or a line of its text."""
    if isinstance(response, str):
        return _text_failure(response) if is_command else ""
    if isinstance(response, list):
        is_bad = any(_has_error_flag(part) for part in response if isinstance(part, dict))
        response = {"content": response, "isError": is_bad}
    if not isinstance(response, dict):
        return ""
    told = _output_text(response)
    code = _exit_code(response)
    if code is not None:
        return told if code else ""
    if _has_error_flag(response) or response.get("error"):
        return told
    return _text_failure(told) if is_command else ""


def _text_failure(text: str) -> str:
    if text.startswith("{") and text.endswith("}"):
        try:
            inner = json.loads(text)
        except ValueError:
            inner = None
        # A command may print any object; only one with an exit code is about the command.
        if isinstance(inner, dict) and _exit_code(inner) is not None:
            return response_failure(inner)
    lines = text.strip("\n").split("\n")
    first = re.search(_EXIT_LINE, "\n".join(lines[:_FIRST_LINES]))
    last = re.findall(_EXIT_LINE, "\n".join(lines[-_LAST_LINES:]))
    code = first.group(1) if first else last[-1] if last else "0"
    return text if int(code) else ""


def _exit_code(response: Mapping[str, object]) -> int | None:
    inner = response.get("metadata")
    facts = {**response, **inner} if isinstance(inner, dict) else response
    code = next((facts[name] for name in ("exit_code", "exitCode") if name in facts), None)
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _has_error_flag(response: Mapping[str, object]) -> bool:
    return response.get("success") is False or any(
        response.get(name) is True for name in ("isError", "is_error")
    )


def hook_specific_output(event: str, text: str) -> str:
    """Return the answer of the clients that took over Claude Code's form; nothing when there is no text.

    No other field stands beside these two: Codex refuses an answer with a field that it does not know.
    """
    if not text:
        return ""
    said = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return json.dumps(said, ensure_ascii=False)


def truncate_fenced(text: str, limit: int = MOST_CHARACTERS) -> str:
    """Return a fenced text cut to a length in UTF-16 units; its last line, the fence's end, stays."""
    if _utf16_length(text) <= limit:
        return text
    *lines, end = text.rstrip("\n").split("\n")
    left = limit - _utf16_length(end) - 3
    kept = []
    for line in lines:
        left -= _utf16_length(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([*kept, "…", end]) + "\n"


def _output_text(response: Mapping[str, object]) -> str:
    pieces = []
    for name in _OUTPUTS:
        value = response.get(name)
        if isinstance(value, dict):
            value = _output_text(value)
        elif isinstance(value, list):
            value = "\n".join(_output_text(part) if isinstance(part, dict) else str(part) for part in value)
        if isinstance(value, str) and value.strip():
            pieces.append(value)
    return "\n".join(dict.fromkeys(pieces))


def _utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
