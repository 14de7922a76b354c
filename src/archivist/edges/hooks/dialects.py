"""How each client words its hook events and wants them answered."""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from archivist.edges.hook_events import EVENT_NAMES, MOMENTS, NOTE_FAILURE, SESSION_START, SUBAGENT_START

# Clients truncate longer texts, most at 10,000 characters, Codex at 2,500 tokens.
MAX_CHARACTERS = 8_000
# Longer than any client's session ids.
MAX_NAME = 200
# Tools print their exit code on a line of its own, among the first or the last lines of the output.
_FIRST_LINES = 6
_LAST_LINES = 12
_EXIT_LINE = (
    r"(?im)^[ \t]*(?:error: |process |command |<[^<>\n]{0,100}? with )?exit(?:ed)?(?: with)? code:?[ \t]*"
    r"(-?\d{1,10})[.>]?[ \t\r]*$"
)
# What an output holds that tells of a failure; most outputs hold none of them.
_SIGNS = (
    "rror", "ERR", "FAIL", "fail", "fatal", "***", "not found", "No such", "Traceback", "panic", "denied",
)  # fmt: skip
_READ_CHARACTERS = 20_000
_RESPONSES = ("tool_response", "tool_output", "output", "result")
_OUTPUTS = (
    "output",
    "llmContent",
    "content",
    "stdout",
    "stderr",
    "error",
    "message",
    "text",
    "textResultForLlm",
)


class HookPayload(NamedTuple):
    """What a client's event says, in our terms."""

    session: str = ""
    folder: str = ""
    transcript: str = ""
    prompt: str = ""
    error: str = ""
    tool: str = ""
    command: str = ""
    agent: str = ""
    role: str = ""
    is_probe: bool = False

    @property
    def run(self) -> str:
        """Return the run of the event: the session's, or its subagent's."""
        return f"{self.session}.{self.agent}" if self.session and self.agent else self.session


class Dialect(NamedTuple):
    """The form of one client's events and answers; most took Claude Code's over and changed a part.

    `harness` is the client's name in runs, if it is another one. `has_failure_event`: failed tool calls have
    an event of their own. `is_always_json`: an empty answer is an empty object. `is_ended_by_stop`: no later
    event tells of the session's end. `has_own_log`: the client's log says what tools answered; where it does
    not, the events themselves are kept as the log.
    """

    name: str
    session_fields: tuple[str, ...] = ("session_id",)
    harness: str = ""
    has_failure_event: bool = False
    is_always_json: bool = False
    is_ended_by_stop: bool = False
    has_own_log: bool = True

    @property
    def events(self) -> Mapping[str, str]:
        """Return the client's names of our events."""
        return EVENT_NAMES[self.name]

    def canonical_event(self, name: str) -> str:
        """Return our name of an event, given by our name or the client's; empty for an unknown one."""
        if name in MOMENTS:
            return name
        return next((moment for moment, event in self.events.items() if event == name), "")

    def read(self, event: Mapping[str, object]) -> HookPayload:
        """Return an event in our terms."""
        roots = event.get("workspace_roots") if self.name == "cursor" else None
        root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
        if self.name == "copilot":
            event = {_COPILOT_FIELDS.get(name, name): value for name, value in event.items()}
            event["tool_input"] = _response_object(event.get("tool_input"))
        command = command_of(event)
        if not self.has_failure_event:
            bare_command = command if self.name == "codex" else ""
            response = event.get("tool_response")
            error = response_failure(response, is_command=bool(command), bare_command=bare_command)
            if self.name == "copilot":
                error = error or _response_text(event.get("error"))
        else:
            # A tool that the user interrupted has not failed.
            error = "" if event.get("is_interrupt") is True else first_text(event, "error")
        has_subagents = SUBAGENT_START in self.events
        return HookPayload(
            session=first_text(event, *self.session_fields),
            folder=root or first_text(event, "cwd"),
            transcript=first_text(event, "transcript_path"),
            prompt=_without_hook_context(first_text(event, "prompt")),
            error=error,
            tool=first_text(event, "tool_name"),
            command=command,
            agent=first_text(event, "agent_id") if has_subagents else "",
            role=first_text(event, "agent_type"),
        )

    def log_line(self, moment: str, event: Mapping[str, object], payload: HookPayload) -> dict[str, object]:
        """Return what is kept of an event as a line of the session's log."""
        output = next((event[name] for name in _RESPONSES if event.get(name) is not None), None)
        error = first_text(event, "error_message", "error") if moment == NOTE_FAILURE else payload.error
        line = {
            "hook": self.name,
            "moment": moment,
            "session": payload.session,
            "agent": payload.agent,
            "cwd": payload.folder,
            # Cursor names the folder of its shell beside those of its workspace.
            "shell_cwd": folder if (folder := first_text(event, "cwd")) != payload.folder else "",
            "prompt": first_text(event, "prompt"),
            "id": first_text(event, "tool_use_id"),
            "tool": payload.tool,
            "input": event.get("tool_input"),
            "output": _response_text(output),
            "exit_code": _exit_code(_response_object(output)),
            "error": error,
            "interrupted": event.get("is_interrupt") is True or event.get("status") == "aborted",
            "model": first_text(event, "model"),
        }
        return {name: value for name, value in line.items() if value not in ("", None, False)}

    def write(self, event: str, text: str) -> str:
        """Return the answer to a client's event that adds a text to the context; empty for no text."""
        if not text:
            return "{}" if self.is_always_json else ""
        if self.name in ("copilot", "opencode"):
            return json.dumps({"additionalContext": text}, ensure_ascii=False)
        if self.name == "cursor":
            # At other events Cursor does not pass a text on to the model.
            is_start = event == self.events[SESSION_START]
            return json.dumps({"additional_context": text}, ensure_ascii=False) if is_start else ""
        # No other field: Codex refuses an answer with a field that it does not know.
        answer = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
        return json.dumps(answer, ensure_ascii=False)


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("claude-code", has_failure_event=True),
        Dialect("codex"),
        Dialect("cursor", session_fields=("conversation_id", "session_id"), has_own_log=False),
        Dialect("gemini", harness="gemini-cli", is_always_json=True),
        Dialect(
            "vscode",
            session_fields=("sessionId", "session_id"),
            is_always_json=True,
            is_ended_by_stop=True,
            has_own_log=False,
        ),
        Dialect("copilot", harness="copilot-cli", is_ended_by_stop=True),
        Dialect("opencode", is_ended_by_stop=True),
    )
}
# Copilot CLI → our names of fields. Older versions hand the arguments of a tool over as JSON.
_COPILOT_FIELDS = {
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "toolResult": "tool_response",
    "agentName": "agent_type",
}


def _response_object(response: object) -> Mapping[str, object]:
    """Return a tool's answer as an object, also where it is written as JSON."""
    if isinstance(response, str) and response.startswith("{") and response.endswith("}"):
        try:
            response = json.loads(response)
        except (ValueError, RecursionError):
            return {}
    return response if isinstance(response, dict) else {}


def _response_text(response: object) -> str:
    if isinstance(response, list):
        response = {"content": response}
    text = _output_text(_response_object(response))
    return text or (response if isinstance(response, str) else "")


def first_text(event: Mapping[str, object], *names: str) -> str:
    """Return the first of these fields that is a non-empty text; empty when none is."""
    for name in names:
        value = event.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def command_of(event: Mapping[str, object]) -> str:
    """Return the command of a tool call, if it has one; Codex also calls it `cmd`, and lists its words."""
    tool_input = event.get("tool_input")
    if not isinstance(tool_input, dict):
        return ""
    command = tool_input.get("command") or tool_input.get("cmd")
    if isinstance(command, list):
        is_shell_line = len(command) == 3 and command[1] in ("-c", "-lc")
        return str(command[2]) if is_shell_line else " ".join(str(word) for word in command)
    return command if isinstance(command, str) else ""


def response_failure(response: object, *, is_command: bool = True, bare_command: str = "") -> str:
    """Return the text of a response that failed by its exit code, its error field or a line of its text.

    Only a command's text is searched for an exit code: what other tools return may quote errors. Codex hands
    over what `bare_command` printed and no code: then the output is read as that of a captured run.
    """
    if isinstance(response, str):
        return _text_failure(response, bare_command) if is_command else ""
    if isinstance(response, list):
        has_failed = any(_has_error_flag(part) for part in response if isinstance(part, dict))
        response = {"content": response, "isError": has_failed}
    if not isinstance(response, dict):
        return ""
    text = _output_text(response)
    exit_code = _exit_code(response)
    if exit_code is not None:
        return text if exit_code else ""
    if _has_error_flag(response) or response.get("error"):
        return text
    return _text_failure(text) if is_command else ""


def _text_failure(text: str, bare_command: str = "") -> str:
    if text.startswith("{") and text.endswith("}"):
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            inner = None
        # A command may print any object; only one with an exit code is about the command.
        if isinstance(inner, dict) and _exit_code(inner) is not None:
            return response_failure(inner)
    lines = text.strip("\n").split("\n")
    first = re.search(_EXIT_LINE, "\n".join(lines[:_FIRST_LINES]))
    last = re.findall(_EXIT_LINE, "\n".join(lines[-_LAST_LINES:]))
    if not first and not last:
        return text if bare_command and _has_failed(bare_command, text) else ""
    return text if int(first.group(1) if first else last[-1]) else ""


def _has_failed(command: str, output: str) -> bool:
    """Say whether a command failed, by what it printed; most outputs have no such word and cost nothing."""
    if output.startswith("{") or not any(sign in output for sign in _SIGNS):
        return False
    from archivist.reading.failures import detect_failure

    return detect_failure("bash", command, None, False, output[-_READ_CHARACTERS:]) is not None


def _without_hook_context(prompt: str) -> str:
    """Return a prompt without what hooks added to it: Gemini CLI hands our own brief back in the next one."""
    for less, more in (("<", ">"), ("&lt;", "&gt;")):
        opening, closing = f"{less}hook_context{more}", f"{less}/hook_context{more}"
        while opening in prompt:
            before, _, rest = prompt.partition(opening)
            prompt = f"{before}{rest.partition(closing)[2]}".strip()
    return prompt


def _exit_code(response: Mapping[str, object]) -> int | None:
    metadata = response.get("metadata")
    fields = {**response, **metadata} if isinstance(metadata, dict) else response
    code = next((fields[name] for name in ("exit_code", "exitCode") if name in fields), None)
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _has_error_flag(response: Mapping[str, object]) -> bool:
    return response.get("success") is False or any(
        response.get(name) is True for name in ("isError", "is_error")
    )


def _output_text(response: Mapping[str, object]) -> str:
    parts = []
    for name in _OUTPUTS:
        value = response.get(name)
        if isinstance(value, dict):
            value = _output_text(value)
        elif isinstance(value, list):
            value = "\n".join(_output_text(part) if isinstance(part, dict) else str(part) for part in value)
        if isinstance(value, str) and value.strip():
            parts.append(value)
    return "\n".join(dict.fromkeys(parts))


def truncate_fenced(text: str, limit: int = MAX_CHARACTERS) -> str:
    """Return a fenced text cut to a length in UTF-16 units; its last line, the end of the fence, stays."""
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


def _utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
