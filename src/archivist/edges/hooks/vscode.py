"""How VS Code speaks: like Claude Code, some names in camel case, no context beside a prompt, no end."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.hooks.said import Dialect, Said, command_in, failure_of, specific, text_in


def read(said: Mapping[str, object]) -> Said:
    """Read what VS Code says."""
    return Said(
        session=text_in(said, "sessionId", "session_id"),
        folder=text_in(said, "cwd"),
        transcript=text_in(said, "transcript_path"),
        error=failure_of(said),
        tool=text_in(said, "tool_name"),
        command=command_in(said),
        agent=text_in(said, "agent_id"),
        role=text_in(said, "agent_type"),
    )


def write(event: str, text: str) -> str:
    """Answer in JSON even when there is nothing to say."""
    return specific(event, text) or "{}"


DIALECT = Dialect(
    "vscode",
    {
        SESSION_START: "SessionStart",
        TOOL_FAILURE: "PostToolUse",
        SUBAGENT_START: "SubagentStart",
        STOP: "Stop",
    },
    read,
    write,
    is_ended_by_stop=True,
)
