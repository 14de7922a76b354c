"""Read the sessions in Cursor's databases, each as one JSON document; nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from archivist.files.sqlite_reader import read_database

_SESSION = "composerData:"


class CursorSession(NamedTuple):
    """A session of Cursor: its id, the folder where it began, and when, in milliseconds."""

    id: str
    folder: str
    created_ms: int


def list_editor_sessions(database: Path) -> list[CursorSession]:
    """Return the sessions of the editor's database."""
    found = []
    with read_database(database, "Cursor") as rows:
        query = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ?"
        for key, value in rows.execute(query, (_SESSION, "composerData;")):
            session = _object(value)
            folder: Any = session
            for name in ("workspaceIdentifier", "uri", "fsPath"):
                folder = folder.get(name) if isinstance(folder, dict) else None
            created = session.get("createdAt")
            if isinstance(folder, str) and isinstance(created, int | float):
                found.append(CursorSession(str(key).removeprefix(_SESSION), folder, int(created)))
    return sorted(found, key=lambda session: (session.created_ms, session.id))


def export_editor_session(database: Path, session: str) -> bytes:
    """Return one session of the editor: its facts, and its messages in order."""
    with read_database(database, "Cursor") as rows:

        def value_of(key: str) -> dict[str, Any]:
            row = rows.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
            return _object(row[0]) if row else {}

        facts = value_of(f"{_SESSION}{session}")
        headers = facts.pop("fullConversationHeadersOnly", None)
        names = [each.get("bubbleId") for each in headers or () if isinstance(each, dict)]
        bubbles = [value_of(f"bubbleId:{session}:{name}") for name in names]
    about = {key: facts.get(key) for key in ("createdAt", "name", "modelConfig", "workspaceIdentifier")}
    return json.dumps(
        {"composerId": session, **about, "bubbles": [each for each in bubbles if each]}
    ).encode()


def export_terminal_session(database: Path) -> bytes:
    """Return the session of the command line client's database: its facts, and its messages in order."""
    with read_database(database, "Cursor") as rows:
        row = rows.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
        facts = _object(row[0]) if row else {}
        messages = [
            message
            for (data,) in rows.execute("SELECT data FROM blobs ORDER BY rowid")
            if "role" in (message := _object(data))
        ]
    about = {key: facts.get(key) for key in ("createdAt", "name", "workspacePath", "lastUsedModel")}
    session = str(facts.get("agentId") or database.parent.name)
    return json.dumps({"composerId": session, **about, "messages": messages}).encode()


def _object(value: object) -> dict[str, Any]:
    """Return the object in a text, its bytes or their hexadecimal digits; an empty one if there is none."""
    written = bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode("utf-8", "replace")
    try:
        try:
            found = json.loads(written)
        except (ValueError, RecursionError):
            found = json.loads(bytes.fromhex(written.decode("ascii")))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
