"""The events of a session at which an agent's client calls us, and each client's name for them."""

from __future__ import annotations

SESSION_START = "session-start"
PROMPT = "prompt"
TOOL_FAILURE = "tool-failure"
# Copilot CLI has an event for tools that fail, beside that for commands which ran and ended with an error.
TOOL_ERROR = "tool-error"
SUBAGENT_START = "subagent-start"
STOP = "stop"
SESSION_END = "session-end"
# Only kept, and answered with nothing: the client passes no text on at these events.
NOTE_PROMPT = "note-prompt"
NOTE_TOOL = "note-tool"
NOTE_FAILURE = "note-failure"
NOTES = (NOTE_PROMPT, NOTE_TOOL, NOTE_FAILURE)
MOMENTS = (SESSION_START, PROMPT, TOOL_FAILURE, TOOL_ERROR, SUBAGENT_START, STOP, SESSION_END, *NOTES)
# Marks an event that the doctor sends: its failures are not a client's.
PROBE = "archivist_probe"

# Client → our name of an event → the client's name. Only Claude Code, Copilot CLI and Cursor have an event
# for failed tools; the others send every tool's result. Cursor passes context on at the start only. VS Code
# has no session end, and that of Copilot CLI names no log. OpenCode's are those at which our plugin,
# `opencode.js`, calls us.
_CLAUDE_CODE = {
    SESSION_START: "SessionStart",
    PROMPT: "UserPromptSubmit",
    TOOL_FAILURE: "PostToolUseFailure",
    SUBAGENT_START: "SubagentStart",
    STOP: "Stop",
    SESSION_END: "SessionEnd",
}
EVENT_NAMES: dict[str, dict[str, str]] = {
    "claude-code": _CLAUDE_CODE,
    "codex": {**_CLAUDE_CODE, TOOL_FAILURE: "PostToolUse"},
    "cursor": {
        SESSION_START: "sessionStart",
        NOTE_PROMPT: "beforeSubmitPrompt",
        NOTE_TOOL: "postToolUse",
        NOTE_FAILURE: "postToolUseFailure",
        STOP: "stop",
        SESSION_END: "sessionEnd",
    },
    "gemini": {
        SESSION_START: "SessionStart",
        PROMPT: "BeforeAgent",
        TOOL_FAILURE: "AfterTool",
        STOP: "AfterAgent",
        SESSION_END: "SessionEnd",
    },
    "vscode": {
        SESSION_START: "SessionStart",
        NOTE_PROMPT: "UserPromptSubmit",
        TOOL_FAILURE: "PostToolUse",
        SUBAGENT_START: "SubagentStart",
        STOP: "Stop",
    },
    "copilot": {
        SESSION_START: "sessionStart",
        PROMPT: "userPromptSubmitted",
        TOOL_FAILURE: "postToolUse",
        TOOL_ERROR: "postToolUseFailure",
        SUBAGENT_START: "subagentStart",
        STOP: "agentStop",
    },
    "opencode": {
        SESSION_START: "chat.system.transform",
        TOOL_FAILURE: "tool.execute.after",
        STOP: "session.idle",
    },
}
CLIENTS = tuple(EVENT_NAMES)
