"""The moments of a session at which an agent's client asks: our words for them, whatever each client says."""

from __future__ import annotations

SESSION_START = "session-start"
PROMPT = "prompt"
TOOL_FAILURE = "tool-failure"
SUBAGENT_START = "subagent-start"
STOP = "stop"
SESSION_END = "session-end"
MOMENTS = (SESSION_START, PROMPT, TOOL_FAILURE, SUBAGENT_START, STOP, SESSION_END)
# What the doctor puts into an event of its own: what then goes wrong is no client's failure.
PROBE = "archivist_probe"
# The clients whose hooks and settings are known.
CLIENTS = ("claude-code", "codex", "cursor", "gemini", "vscode")
