"""Read the SQLite databases in which clients keep their sessions; nothing is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from archivist.errors import InputError

_BUSY_TIMEOUT_S = 5.0


@contextmanager
def read_database(database: Path, client: str, hint: str = "") -> Iterator[sqlite3.Connection]:
    """Open a client's database for reading; raise InputError when it is none, or not in the known form."""
    # Not `immutable`: the newest rows of a session that goes on are in the log beside the file.
    address = f"file:{quote(str(database))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S)) as connection:
            yield connection
    except (sqlite3.Error, ValueError, TypeError) as error:
        reason = f"{str(database)!r} cannot be read as {client}'s database: {error}"
        raise InputError(reason, hint=hint) from None
