"""How VS Code speaks: like Claude Code, some names in camel case, no context beside a prompt, no end."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.hooks.said import (
    Dialect,
    HookPayload,
    command_of,
    event_failure,
    first_text,
    hook_specific_output,
)


def read(raw_event: Mapping[str, object]) -> HookPayload:
    """Read what VS Code says."""
    return HookPayload(
        session=first_text(raw_event, "sessionId", "session_id"),
        folder=first_text(raw_event, "cwd"),
        transcript=first_text(raw_event, "transcript_path"),
        error=event_failure(raw_event),
        tool=first_text(raw_event, "tool_name"),
        command=command_of(raw_event),
        agent=first_text(raw_event, "agent_id"),
        role=first_text(raw_event, "agent_type"),
    )


def write(event: str, text: str) -> str:
    """Answer in JSON even when there is nothing to say."""
    return hook_specific_output(event, text) or "{}"


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
