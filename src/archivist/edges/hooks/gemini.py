"""How Gemini CLI speaks: its own names for the moments, and nothing but JSON on stdout."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, TOOL_FAILURE
from archivist.edges.hooks.said import Dialect, Said, command_in, failure_of, specific, text_in


def read(said: Mapping[str, object]) -> Said:
    """Read what Gemini CLI says; a tool's answer is an object, with an error when it failed."""
    return Said(
        session=text_in(said, "session_id"),
        folder=text_in(said, "cwd"),
        transcript=text_in(said, "transcript_path"),
        prompt=text_in(said, "prompt"),
        error=failure_of(said),
        tool=text_in(said, "tool_name"),
        command=command_in(said),
    )


def write(event: str, text: str) -> str:
    """Answer in JSON even when there is nothing to say."""
    return specific(event, text) or "{}"


DIALECT = Dialect(
    "gemini",
    {
        SESSION_START: "SessionStart",
        PROMPT: "BeforeAgent",
        TOOL_FAILURE: "AfterTool",
        STOP: "AfterAgent",
        SESSION_END: "SessionEnd",
    },
    read,
    write,
    provider="google",
)
