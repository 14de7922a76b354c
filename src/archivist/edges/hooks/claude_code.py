"""How Claude Code speaks: a failed tool call has an event of its own, and says `error`."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.hooks.said import Dialect, HookPayload, command_of, first_text, hook_specific_output


def read(raw_event: Mapping[str, object]) -> HookPayload:
    """Read what Claude Code says; what the user interrupted did not fail."""
    return HookPayload(
        session=first_text(raw_event, "session_id"),
        folder=first_text(raw_event, "cwd"),
        transcript=first_text(raw_event, "transcript_path"),
        prompt=first_text(raw_event, "prompt"),
        error="" if raw_event.get("is_interrupt") is True else first_text(raw_event, "error"),
        tool=first_text(raw_event, "tool_name"),
        command=command_of(raw_event),
        agent=first_text(raw_event, "agent_id"),
        role=first_text(raw_event, "agent_type"),
    )


DIALECT = Dialect(
    "claude-code",
    {
        SESSION_START: "SessionStart",
        PROMPT: "UserPromptSubmit",
        TOOL_FAILURE: "PostToolUseFailure",
        SUBAGENT_START: "SubagentStart",
        STOP: "Stop",
        SESSION_END: "SessionEnd",
    },
    read,
    hook_specific_output,
    provider="anthropic",
)
