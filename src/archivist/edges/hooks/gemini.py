"""How Gemini CLI speaks: its own names for the moments, and nothing but JSON on stdout."""

from __future__ import annotations

from collections.abc import Mapping

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, TOOL_FAILURE
from archivist.edges.hooks.said import (
    Dialect,
    HookPayload,
    command_of,
    event_failure,
    first_text,
    hook_specific_output,
)


def read(raw_event: Mapping[str, object]) -> HookPayload:
    """Read what Gemini CLI says; a tool's answer is an object, with an error when it failed."""
    return HookPayload(
        session=first_text(raw_event, "session_id"),
        folder=first_text(raw_event, "cwd"),
        transcript=first_text(raw_event, "transcript_path"),
        prompt=first_text(raw_event, "prompt"),
        error=event_failure(raw_event),
        tool=first_text(raw_event, "tool_name"),
        command=command_of(raw_event),
    )


def write(event: str, text: str) -> str:
    """Answer in JSON even when there is nothing to say."""
    return hook_specific_output(event, text) or "{}"


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
