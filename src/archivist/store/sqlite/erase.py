"""Delete for good from a SQLite bank: rows, index, payloads, free pages and the write-ahead log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from archivist.records import Actor
from archivist.store.erasure import count_occurrences
from archivist.store.sql_eraser import Eraser
from archivist.store.sqlite.search import VectorCache
from archivist.store.sqlite.writer import SqliteWriter, remove_vectors

_CHUNK_BYTES = 1 << 22
# The pages that mark deleted documents; the segments hold their words as long as there is one.
_TOMBSTONES = "SELECT count(*) FROM search_data WHERE id >> 37 >= 65536"


class SqliteEraser(SqliteWriter, Eraser):
    """A transaction that can also delete for good."""

    def __init__(self, db: apsw.Connection, cache: VectorCache, actor: Actor, now: datetime) -> None:
        super().__init__(db, cache, actor, now)
        db.execute("PRAGMA secure_delete = ON").fetchall()

    def drop_vectors(self, places: Sequence[int]) -> None:
        for place in places:
            remove_vectors(self._db, place)
            self._db.execute("UPDATE documents SET embedder = 0 WHERE id = ? AND embedder > 0", (place,))

    def vector_count(self, places: Sequence[int]) -> int:
        keys = "SELECT (e.id << 32) + d.value FROM embedders e, json_each(?) d"
        return sum(
            int(self.query_value(f"SELECT count(*) FROM {table} WHERE id IN ({keys})", json.dumps([*places])))
            for table in ("vector_rows", "vector_halves")
        )

    def count_tombstones(self) -> int:
        return int(self.query_value(_TOMBSTONES))


def scrub(db: apsw.Connection) -> bool:
    """Rewrite the file without what was deleted and empty the log; False while another process reads."""
    try:
        db.execute("PRAGMA secure_delete = ON").fetchall()
        db.execute("INSERT INTO search (search) VALUES ('optimize')")
        db.execute("VACUUM")
        row: Any = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except (apsw.BusyError, apsw.LockedError):
        return False
    return not row[0]


def count_raw_bytes(db: apsw.Connection, path: Path, needles: Sequence[bytes]) -> dict[str, int]:
    """Count needles in the raw bytes of the file and its log.

    They are read through the connection: closing a second handle on the same file would release the locks
    that the connection holds.
    """

    def read_chunks(file: int) -> Iterator[bytes]:
        offset, is_whole = 0, bool(needles)
        while is_whole:
            # A short read is filled up with zeros, which hold no text.
            is_whole, chunk = db.read("main", file, offset, _CHUNK_BYTES)
            yield chunk
            offset += _CHUNK_BYTES

    names = (path.name, f"{path.name}-wal")
    return {name: count_occurrences(read_chunks(file), needles) for file, name in enumerate(names)}
