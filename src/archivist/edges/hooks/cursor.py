"""How Cursor speaks: conversations instead of sessions, several roots, and context at the start alone."""

from __future__ import annotations

import json
from collections.abc import Mapping

from archivist.edges.hook_events import SESSION_END, SESSION_START, STOP
from archivist.edges.hooks.said import Dialect, HookPayload, first_text


def read(raw_event: Mapping[str, object]) -> HookPayload:
    """Read what Cursor says; the first of its roots is where it works."""
    roots = raw_event.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    return HookPayload(
        session=first_text(raw_event, "conversation_id", "session_id"),
        folder=root or first_text(raw_event, "cwd"),
        transcript=first_text(raw_event, "transcript_path"),
    )


def write(event: str, text: str) -> str:
    """Answer at the start of a session; what is said elsewhere does not reach the model."""
    return (
        json.dumps({"additional_context": text}, ensure_ascii=False)
        if text and event == "sessionStart"
        else ""
    )


DIALECT = Dialect(
    "cursor",
    {SESSION_START: "sessionStart", STOP: "stop", SESSION_END: "sessionEnd"},
    read,
    write,
)
