"""How Codex speaks: like Claude Code, but every tool's answer comes as one event, failed or not."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.hooks.said import Dialect, Said, command_in, failure_of, specific, text_in


def read(said: Mapping[str, object]) -> Said:
    """Read what Codex says; its transcript may be null."""
    return Said(
        session=text_in(said, "session_id"),
        folder=text_in(said, "cwd"),
        transcript=text_in(said, "transcript_path"),
        prompt=text_in(said, "prompt"),
        error=failure_of(said),
        tool=text_in(said, "tool_name"),
        command=command_in(said),
        agent=text_in(said, "agent_id"),
        role=text_in(said, "agent_type"),
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
    specific,
    provider="openai",
)
