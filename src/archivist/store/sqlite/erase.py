"""Delete for good from a SQLite bank: rows, index, payloads, free pages and the write-ahead log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw

from archivist.records import Actor, Brief, Episode, Lesson, Verdict
from archivist.records.plain import types_of
from archivist.store.erasure import ErasureQuery, count_occurrences, redact_json_text
from archivist.store.protocol import Eraser
from archivist.store.results import Sizes
from archivist.store.rows import mapping_for
from archivist.store.sqlite.search import VectorCache
from archivist.store.sqlite.writer import SqliteWriter, remove_vectors

_CHUNK_BYTES = 1 << 22
# What is kept beside the records and could contain their texts: table, key, columns.
_OTHER_TEXTS = (
    ("settings", "name", ("value",)),
    ("speakers", "name", ("name",)),
    ("pending", "run", ("run", "holder", "error")),
    ("captured_files", "digest", ("runs",)),
    ("event_sums", "run", ("run",)),
    ("tallies", "lesson", ("lesson",)),
    ("answers", "id", ("id", "body")),
    ("messages", "id", ("data",)),
    ("documents", "id", ("record", "speaker", "thread", "superseded_by")),
    ("embedders", "name", ("name",)),
)
# The pages that mark deleted documents; the segments hold their words as long as there is one.
_TOMBSTONES = "SELECT count(*) FROM search_data WHERE id >> 37 >= 65536"
# Roughly the size of a row besides its texts.
_ROW_BYTES = 200
_EVENT_BYTES = " + ".join(
    [f"octet_length({name})" for name in ("text", "output", "target", "findings", "extra")]
)


class SqliteEraser(SqliteWriter, Eraser):
    """A transaction that can also delete for good; `store.protocol` describes the methods."""

    def __init__(self, db: apsw.Connection, cache: VectorCache, actor: Actor, now: datetime) -> None:
        super().__init__(db, cache, actor, now)
        db.execute("PRAGMA secure_delete = ON").fetchall()

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record, and the stored responses and messages, which could quote it."""
        self._db.execute("DELETE FROM answers; DELETE FROM messages")
        return super().remove(record, record_id, verb)

    def record_texts(self, record: type[Any]) -> Iterator[tuple[str, str]]:
        columns = ", ".join(_text_columns(record))
        rows: Iterable[Any] = self._db.execute(
            f"SELECT id, concat_ws(char(31), id, {columns}) FROM {mapping_for(record).table}"
        )
        return iter(rows)

    def other_texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        for table, key, columns in _OTHER_TEXTS:
            rows: Iterable[Any] = self._db.execute(f"SELECT {key}, {', '.join(columns)} FROM {table}")
            for name, *texts in rows:
                yield table, name, tuple(texts)

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        changed: dict[str, int] = {}
        keys = {table: key for table, key, _ in _OTHER_TEXTS}
        found = [row for row in self.other_texts() if any(what.is_in(text) for text in row[2])]
        for table, name, texts in found:
            # The index follows the records, and an embedder is named by the configuration.
            if table in ("documents", "embedders"):
                continue
            changed[table] = changed.get(table, 0) + 1
            if table == "settings":
                self.set_setting(name, redact_json_text(texts[0], what))
            elif table == "captured_files":
                self.mark_file_captured(name, [run for run in json.loads(texts[0]) if not what.is_in(run)])
            elif table == "pending" and not what.is_in(name):
                error = what.redact_text(texts[2])
                self._db.execute("UPDATE pending SET error = ?, holder = '' WHERE run = ?", (error, name))
            else:
                self._db.execute(f"DELETE FROM {table} WHERE {keys[table]} = ?", (name,))
        return changed

    def erase_payloads(self, entries: Sequence[int]) -> int:
        self._db.executemany("DELETE FROM ledger_payloads WHERE seq = ?", [(seq,) for seq in entries])
        return len(entries)

    def forget_run(self, run: str) -> None:
        self._db.execute("DELETE FROM pending WHERE run = ?", (run,))
        rows: list[Any] = self._db.execute(
            "SELECT digest, runs FROM captured_files WHERE EXISTS"
            " (SELECT 1 FROM json_each(runs) WHERE value = ?)",
            (run,),
        ).fetchall()
        for digest, runs in rows:
            self.mark_file_captured(digest, [other for other in json.loads(runs) if other != run])

    def forget_tally(self, lesson: str) -> None:
        self._db.execute("DELETE FROM tallies WHERE lesson = ?", (lesson,))

    def drop_orphan_speakers(self) -> None:
        self._db.execute("DELETE FROM speakers WHERE name NOT IN (SELECT speaker FROM documents)")

    def drop_vectors(self, places: Sequence[int]) -> None:
        for place in places:
            remove_vectors(self._db, place)
            self._db.execute("UPDATE documents SET embedder = 0 WHERE id = ? AND embedder > 0", (place,))

    def vector_count(self, places: Sequence[int]) -> int:
        keys = "SELECT (e.id << 32) + d.value FROM embedders e, json_each(?) d"
        return sum(
            int(
                self._query_value(f"SELECT count(*) FROM {table} WHERE id IN ({keys})", json.dumps([*places]))
            )
            for table in ("vector_rows", "vector_halves")
        )

    def count_tombstones(self) -> int:
        return int(self._query_value(_TOMBSTONES))


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


def sizes(db: apsw.Connection) -> Sizes:
    """Return how large a bank is, and how much text the records of each kind hold."""

    def query_int(sql: str) -> int:
        row: Any = db.execute(sql).fetchone()
        return int(row[0] or 0) if row else 0

    page, pages, free = (
        query_int(f"PRAGMA {name}") for name in ("page_size", "page_count", "freelist_count")
    )
    texts = {"events": _EVENT_BYTES, "ledger_payloads": "octet_length(payload)"}
    for record in (Lesson, Episode, Brief, Verdict):
        columns = (f"coalesce(octet_length({name}), 0)" for name in _text_columns(record))
        texts[mapping_for(record).table] = " + ".join(columns)
    kinds = {
        table.replace("_", " "): query_int(f"SELECT sum({total} + {_ROW_BYTES}) FROM {table}")
        for table, total in texts.items()
    }
    return Sizes(page * pages, page * free, kinds)


def run_sizes(db: apsw.Connection, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the number and size of each run's events, without the excluded ones."""
    rows: Iterable[Any] = db.execute(
        f"SELECT run, count(*), sum({_EVENT_BYTES} + {_ROW_BYTES}) FROM events"
        " WHERE id NOT IN (SELECT value FROM json_each(?)) GROUP BY run",
        (json.dumps(sorted(excluded)),),
    )
    return {run: (count, size) for run, count, size in rows}


def _text_columns(record: Any) -> list[str]:
    """Return the fields that hold somebody's words: no numbers, times or closed words."""
    closed = (int, float, bool, datetime, int | None, float | None, bool | None, datetime | None)
    return [
        name
        for name, kind in types_of(record).items()
        if kind not in closed and not (isinstance(kind, type) and issubclass(kind, StrEnum))
    ]
