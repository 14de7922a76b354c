"""Take things out of a SQLite bank for good: rows, index, payloads, free pages and the write-ahead log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw

from archivist.errors import RecordError
from archivist.forget.receipt import ErasureQuery, count_occurrences, redact_json, redact_value
from archivist.forget.retention import Sizes
from archivist.records import Actor, Brief, Episode, Event, Lesson, Verdict
from archivist.records.plain import canonical_json, from_plain, types_of
from archivist.store.results import EventSum, split_batches
from archivist.store.rows import kind_of, mapping_for, record_types, types_by_kind
from archivist.store.sqlite.index import remove_vectors, unindex_record
from archivist.store.sqlite.reader import HASH_SPACE, row_hash
from archivist.store.sqlite.search import VectorCache
from archivist.store.sqlite.writer import SqliteWriter

_BATCH = 500
_CHUNK = 1 << 22
RECEIPT_KIND = "erasure"
# What is kept beside the records and could hold words of theirs: table, key, columns.
_BESIDE = (
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
_CHAIN = ("actor_name", "actor_role", "verb", "record")
# The pages that mark deleted documents; their words are in the segments for as long as one of them is.
_TOMBSTONES = "SELECT count(*) FROM search_data WHERE id >> 37 >= 65536"
# About what a row costs besides its texts.
_ROW_BYTES = 200
_EVENT_BYTES = " + ".join(
    [f"octet_length({name})" for name in ("text", "output", "target", "findings", "extra")]
)


class SqliteEraser(SqliteWriter):
    """A transaction that can also take away what a bank otherwise keeps forever."""

    def __init__(self, db: apsw.Connection, cache: VectorCache, actor: Actor, now: datetime) -> None:
        super().__init__(db, cache, actor, now)
        db.execute("PRAGMA secure_delete = ON").fetchall()

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record, and the answers and messages that are kept for others: they could quote it."""
        self._db.execute("DELETE FROM answers; DELETE FROM messages")
        return super().remove(record, record_id, verb)

    def find_mentions(self, what: ErasureQuery) -> dict[str, list[str]]:
        """Return the ids of the records that hold a text, by kind."""
        return {
            kind_of(record): [name for name, said in self._record_texts(record) if what.is_in(said)]
            for record in record_types()
        }

    def texts_still_stored(self, texts: Iterable[str]) -> set[str]:
        """Return which of these texts some record still holds."""
        wanted = {text: text.lower() for text in texts}
        found: set[str] = set()
        for record in record_types():
            for _, said in self._record_texts(record):
                lowered = said.lower()
                found |= {text for text, low in wanted.items() if low in lowered}
        return found

    def count_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Count the rows that hold a text outside of the records: by table, and those of the ledger."""
        found = {
            table: len(list(self._other_mentions(table, key, columns, what)))
            for table, key, columns in _BESIDE
        }
        chain = self._db.execute(f"SELECT {', '.join(_CHAIN)} FROM ledger")
        found["ledger"] = sum(any(what.is_in(str(value)) for value in row) for row in chain)
        found["ledger_payloads"] = len(self.payloads_mentioning(what))
        return {table: count for table, count in found.items() if count}

    def payloads_mentioning(self, what: ErasureQuery) -> list[int]:
        """Return the ledger entries whose payloads hold a text as text, not in a time or a fixed word."""
        rows: Iterable[Any] = self._db.execute(
            "SELECT seq, l.kind, payload FROM ledger_payloads JOIN ledger l USING (seq)"
        )
        known = types_by_kind()
        return [
            seq
            for seq, kind, said in rows
            if what.is_in(said) and _payload_mentions(known.get(kind), said, what)
        ]

    def payloads_of(self, kind: str, record: str) -> list[int]:
        """Return the ledger entries that have a payload, of one record."""
        rows: Iterable[Any] = self._db.execute(
            "SELECT seq FROM ledger_payloads JOIN ledger l USING (seq) WHERE l.record = ? AND l.kind = ?",
            (record, kind),
        )
        return [seq for (seq,) in rows]

    def erase_payloads(self, entries: Sequence[int]) -> int:
        """Take payloads away; their entries stay in the chain and show as erased."""
        self._db.executemany("DELETE FROM ledger_payloads WHERE seq = ?", [(seq,) for seq in entries])
        return len(entries)

    def remove_events(
        self, run: str, verb: str, *, only: Iterable[str] = (), excluded: Iterable[str] = ()
    ) -> int:
        """Remove a run's events, or only some, or all but some, under one ledger entry."""
        how = mapping_for(Event)
        known = self.event_sum(run)
        total, removed, chosen, spared = int(known.digest, 16), 0, set(only), set(excluded)
        rows = self._db.execute(f"SELECT {', '.join(how.columns)} FROM events WHERE run = ?", (run,))
        for row in rows.fetchall():
            if row[0] in spared or (chosen and row[0] not in chosen):
                continue
            self._db.execute("DELETE FROM events WHERE id = ?", (row[0],))
            unindex_record(self._db, "event", str(row[0]))
            total, removed = (total - row_hash(row)) % HASH_SPACE, removed + 1
        if removed:
            after = EventSum(run, known.events - removed, f"{total:064x}")
            self._db.execute("DELETE FROM event_sums WHERE run = ?", (run,))
            if after.events:
                self._db.execute("INSERT INTO event_sums VALUES (?, ?, ?)", after)
            self._append_ledger_entry(verb, "event", run, after._asdict())
        return removed

    def forget_run(self, run: str) -> None:
        """Take a run out of the queue and off the files that held it; those files are not read again."""
        self._db.execute("DELETE FROM pending WHERE run = ?", (run,))
        rows: list[Any] = self._db.execute(
            "SELECT digest, runs FROM captured_files WHERE EXISTS"
            " (SELECT 1 FROM json_each(runs) WHERE value = ?)",
            (run,),
        ).fetchall()
        for digest, runs in rows:
            left = [each for each in json.loads(runs) if each != run]
            self.mark_file_captured(digest, left)

    def forget_tally(self, lesson: str) -> None:
        """Drop what was counted for a lesson that is gone."""
        self._db.execute("DELETE FROM tallies WHERE lesson = ?", (lesson,))

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Take a text out of what is kept beside the records; return the rows changed by table."""
        changed: dict[str, int] = {}
        for table, key, columns in (each for each in _BESIDE if each[0] not in ("documents", "embedders")):
            for name, row in list(self._other_mentions(table, key, columns, what)):
                changed[table] = changed.get(table, 0) + 1
                if table == "settings":
                    self.set_setting(name, _redact_json_text(row[0], what))
                elif table == "captured_files":
                    self.mark_file_captured(name, [run for run in json.loads(row[0]) if not what.is_in(run)])
                elif table == "pending" and not what.is_in(name):
                    error = what.redact_text(row[2])
                    self._db.execute("UPDATE pending SET error = ?, holder = '' WHERE run = ?", (error, name))
                else:
                    self._db.execute(f"DELETE FROM {table} WHERE {key} = ?", (name,))
        return changed

    def drop_orphan_speakers(self) -> None:
        """Forget the speakers of whom no document is left."""
        self._db.execute("DELETE FROM speakers WHERE name NOT IN (SELECT speaker FROM documents)")

    def index_places(self, kind: str, ids: Sequence[str]) -> list[int]:
        """Return the places in the index of these records."""
        found: list[int] = []
        for batch in split_batches(ids, _BATCH):
            marks = ", ".join("?" * len(batch))
            sql = f"SELECT id FROM documents WHERE kind = ? AND record IN ({marks})"
            rows: Iterable[Any] = self._db.execute(sql, (kind, *batch))
            found += [place for (place,) in rows]
        return found

    def drop_vectors(self, places: Sequence[int]) -> None:
        """Take the vectors of these documents away; those that stay are embedded anew."""
        for place in places:
            remove_vectors(self._db, place)
            self._db.execute("UPDATE documents SET embedder = 0 WHERE id = ? AND embedder > 0", (place,))

    def vector_count(self, places: Sequence[int]) -> int:
        """Count the vectors of these places, of whatever embedder."""
        total = 0
        for batch in split_batches(places, _BATCH):
            keys = "SELECT (e.id << 32) + d.value FROM embedders e, json_each(?) d"
            for table in ("vector_rows", "vector_halves"):
                sql = f"SELECT count(*) FROM {table} WHERE id IN ({keys})"
                total += int(self._query_value(sql, (json.dumps(list(batch)),)))
        return total

    def count_tombstones(self) -> int:
        """Count the marks of deleted documents whose words the text index still holds."""
        return int(self._query_value(_TOMBSTONES, ()))

    def record_receipt(self, name: str, content: Mapping[str, object]) -> None:
        """Enter in the ledger that and how something was erased."""
        self._append_ledger_entry("erase", RECEIPT_KIND, name, content)

    def was_erased(self, name: str) -> bool:
        """Say whether a receipt names this record."""
        rows: Iterable[Any] = self._db.execute(
            "SELECT payload FROM ledger_payloads JOIN ledger l USING (seq) WHERE l.kind = ?", (RECEIPT_KIND,)
        )
        return any(name in json.loads(payload).get("asked", ()) for (payload,) in rows)

    def _record_texts(self, record: type[Any]) -> Iterator[tuple[str, str]]:
        """Yield each record's id with all that it says."""
        columns = _text_columns(record)
        table = mapping_for(record).table
        rows: Iterable[Any] = self._db.execute(
            f"SELECT id, concat_ws(char(31), id, {', '.join(columns)}) FROM {table}"
        )
        return iter(rows)

    def _other_mentions(
        self, table: str, key: str, columns: Sequence[str], what: ErasureQuery
    ) -> Iterator[tuple[Any, tuple[str, ...]]]:
        rows: Iterable[Any] = self._db.execute(f"SELECT {key}, {', '.join(columns)} FROM {table}")
        for name, *row in rows:
            if any(what.is_in(value) for value in row):
                yield name, tuple(row)


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

    They are read through the connection: a second handle on the same file would, when it is closed, let go
    of the locks that the connection holds.
    """
    names = {0: path.name, 1: f"{path.name}-wal"}
    return {
        name: count_occurrences(_read_chunks(db, which) if needles else (), needles)
        for which, name in names.items()
    }


def sizes(db: apsw.Connection) -> Sizes:
    """Return how large a bank is, and how much the records of each kind say."""
    page, pages, free = (
        _query_int(db, f"PRAGMA {name}") for name in ("page_size", "page_count", "freelist_count")
    )
    said = {
        "events": f"SELECT sum({_EVENT_BYTES} + {_ROW_BYTES}) FROM events",
        "ledger payloads": f"SELECT sum(octet_length(payload) + {_ROW_BYTES}) FROM ledger_payloads",
    }
    for record in (Lesson, Episode, Brief, Verdict):
        columns = _text_columns(record)
        total = " + ".join(f"coalesce(octet_length({name}), 0)" for name in columns)
        table = mapping_for(record).table
        said[table] = f"SELECT sum({total} + {_ROW_BYTES}) FROM {table}"
    return Sizes(page * pages, page * free, {name: _query_int(db, sql) for name, sql in said.items()})


def run_sizes(db: apsw.Connection, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the number and size of each run's events, besides those named."""
    rows: Iterable[Any] = db.execute(
        f"SELECT run, count(*), sum({_EVENT_BYTES} + {_ROW_BYTES}) FROM events"
        " WHERE id NOT IN (SELECT value FROM json_each(?)) GROUP BY run",
        (json.dumps(sorted(excluded)),),
    )
    return {run: (count, size) for run, count, size in rows}


def _read_chunks(db: apsw.Connection, which: int) -> Iterator[bytes]:
    offset = 0
    while True:
        is_whole, chunk = db.read("main", which, offset, _CHUNK)
        # A short read fills up with zeros, which hold no text.
        yield chunk
        if not is_whole:
            return
        offset += _CHUNK


def _payload_mentions(record: type[Any] | None, payload: str, what: ErasureQuery) -> bool:
    value = json.loads(payload)
    if record is None or value is None:
        return bool(redact_json(value, what) != value)
    try:
        told = from_plain(record, value)
    except RecordError:
        return True
    return bool(redact_value(told, what) != told)


def _redact_json_text(text: str, what: ErasureQuery) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return what.redact_text(text)
    return (
        canonical_json(redact_json(value, what)) if isinstance(value, dict | list) else what.redact_text(text)
    )


def _text_columns(record: Any) -> list[str]:
    return [name for name, kind in types_of(record).items() if _is_text(kind)]


def _is_text(kind: Any) -> bool:
    """Say whether a field holds words of somebody's: no number, time or word of a closed set."""
    if kind in (int, float, bool, datetime, int | None, float | None, bool | None, datetime | None):
        return False
    return not (isinstance(kind, type) and issubclass(kind, StrEnum))


def _query_int(db: apsw.Connection, sql: str) -> int:
    row: Any = db.execute(sql).fetchone()
    return int(row[0] or 0) if row else 0
