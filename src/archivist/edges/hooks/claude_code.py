"""How Claude Code speaks: a failed tool call has an event of its own, and says `error`."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.hooks.said import Dialect, Said, command_in, specific, text_in


def read(said: Mapping[str, object]) -> Said:
    """Read what Claude Code says; what the user interrupted did not fail."""
    return Said(
        session=text_in(said, "session_id"),
        folder=text_in(said, "cwd"),
        transcript=text_in(said, "transcript_path"),
        prompt=text_in(said, "prompt"),
        error="" if said.get("is_interrupt") is True else text_in(said, "error"),
        tool=text_in(said, "tool_name"),
        command=command_in(said),
        agent=text_in(said, "agent_id"),
        role=text_in(said, "agent_type"),
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
    specific,
    provider="anthropic",
)
