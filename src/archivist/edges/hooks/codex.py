"""How Codex speaks: like Claude Code, but every tool's answer comes as one event, failed or not."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.hooks.said import (
    Dialect,
    HookPayload,
    command_of,
    event_failure,
    first_text,
    hook_specific_output,
)


def read(raw_event: Mapping[str, object]) -> HookPayload:
    """Read what Codex says; its transcript may be null."""
    return HookPayload(
        session=first_text(raw_event, "session_id"),
        folder=first_text(raw_event, "cwd"),
        transcript=first_text(raw_event, "transcript_path"),
        prompt=first_text(raw_event, "prompt"),
        error=event_failure(raw_event),
        tool=first_text(raw_event, "tool_name"),
        command=command_of(raw_event),
        agent=first_text(raw_event, "agent_id"),
        role=first_text(raw_event, "agent_type"),
    )


DIALECT = Dialect(
    "codex",
    {
        SESSION_START: "SessionStart",
        PROMPT: "UserPromptSubmit",
        TOOL_FAILURE: "PostToolUse",
        SUBAGENT_START: "SubagentStart",
        STOP: "Stop",
        SESSION_END: "SessionEnd",
    },
    read,
    hook_specific_output,
    provider="openai",
)
