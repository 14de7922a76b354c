"""Read the sessions in OpenCode's database in the form that the client itself exports; nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from archivist.files.sqlite_reader import read_database

_HINT = "opencode export SESSION writes a session to a file"


class StoredSession(NamedTuple):
    """A session of the database: its id, the folder where it began, and when, in milliseconds."""

    id: str
    folder: str
    created_ms: int


def list_sessions(database: Path) -> list[StoredSession]:
    """Return the sessions of a database, the oldest first."""
    with read_database(database, "OpenCode", _HINT) as rows:
        found = rows.execute("SELECT id, directory, time_created FROM session ORDER BY time_created, id")
        return [StoredSession(str(name), str(folder), int(created)) for name, folder, created in found]


def export_session(database: Path, session: str) -> bytes:
    """Return one session as `opencode export` prints it."""
    with read_database(database, "OpenCode", _HINT) as rows:
        found = rows.execute("SELECT * FROM session WHERE id = ?", (session,))
        names = [column[0] for column in found.description]
        facts = dict(zip(names, found.fetchone() or (), strict=False))
        info = {
            "id": session,
            "projectID": facts.get("project_id"),
            "parentID": facts.get("parent_id"),
            "directory": facts.get("directory"),
            "title": facts.get("title"),
            "version": facts.get("version"),
            "time": {"created": facts.get("time_created"), "updated": facts.get("time_updated")},
        }
        parts: dict[str, list[dict[str, object]]] = {}
        found = rows.execute(
            "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY time_created, id", (session,)
        )
        for name, message, data in found:
            parts.setdefault(message, []).append({**json.loads(data), "id": name, "messageID": message})
        found = rows.execute(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)
        )
        messages = [
            {"info": {**json.loads(data), "id": name, "sessionID": session}, "parts": parts.get(name, [])}
            for name, data in found
        ]
    return json.dumps({"info": info, "messages": messages}).encode()
