"""Change a SQLite bank: record, index, tallies and ledger in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

from archivist.clock import to_text
from archivist.cold_start import blake2s
from archivist.records.actor import Actor
from archivist.records.kinds import kind_of, record_types
from archivist.records.plain import canonical_json, to_plain
from archivist.store.ledger import (
    GENESIS,
    HASH_SPACE,
    EventSum,
    provenance_of_run,
    row_hash,
    seal_entry,
    sum_events,
)
from archivist.store.protocol import Writer
from archivist.store.results import StoredResponse
from archivist.store.rows import mapping_for
from archivist.store.searchable import SPEAKER_SORTS, build_search_document
from archivist.store.sqlite.reader import SqliteReader
from archivist.store.sqlite.search import VectorCache, block_of
from archivist.store.vectors import BLOCK, bit_width

# A cold process that records a brief need not make the classes of events and verdicts.
if TYPE_CHECKING:
    from archivist.bus import Message
    from archivist.records import Event
    from archivist.store.ledger import LedgerEntry

# A run whose reflection failed this often stays in the queue until somebody reflects on it by name.
MAX_ATTEMPTS = 3
_ABORTED = "every reflection on it was aborted"
_COUNTED_EFFECTS = ("helpful", "ineffective", "ignored")
# The text index is merged when it has more segments than this and the largest holds less than this share.
_MAX_SEGMENTS = 4
_LARGEST_SHARE = 0.8
_PAGES_AT_ONCE = 2000
# What `documents.embedder` holds where there is no vector.
_NOT_EMBEDDED = -1
_PENDING = 0


class SqliteWriter(SqliteReader, Writer):
    """A transaction in one actor's name at one time; `store.protocol` describes the methods."""

    def __init__(self, db: apsw.Connection, cache: VectorCache, actor: Actor, now: datetime) -> None:
        super().__init__(db, cache)
        self.value_cache = None
        self.actor = actor
        self.now = now

    def put(self, record: Any, verb: str) -> bool:
        record_class: Any = type(record)
        before = self.get(record_class, record.id)
        if before == record:
            return False
        how, kind = mapping_for(record_class), kind_of(record_class)
        self._db.execute(upsert_sql(record_class), how.to_row(record))
        _index_record(self._db, kind, record)
        _update_tallies(self._db, kind, before, record)
        self.append_entry(verb, kind, record.id, to_plain(record))
        if kind == "episode" and before is None:
            set_run_provenance(self._db, self, record.id)
        return True

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        from archivist.records import Event

        how = mapping_for(Event)
        find = f"SELECT {how.column_list} FROM events WHERE id = ?"
        known = self.event_sum(run)
        count, total, changed = known.events, int(known.digest, 16), 0
        # A run without events needs no look for what each one replaces, if no two of them have one id: of
        # those that do, the last counts.
        for event in {event.id: event for event in events}.values():
            row = how.to_row(event)
            before = self._db.execute(find, (event.id,)).fetchone() if known.events else None
            if before is not None:
                if tuple(before) == row:
                    continue
                total -= row_hash(before)
                count -= 1
            self._db.execute(upsert_sql(Event), row)
            _index_record(self._db, "event", event)
            total, count, changed = (total + row_hash(row)) % HASH_SPACE, count + 1, changed + 1
        if changed:
            after = EventSum(run, count, f"{total % HASH_SPACE:064x}")
            self._db.execute("INSERT OR REPLACE INTO event_sums VALUES (?, ?, ?)", after)
            self.append_entry(verb, "event", run, after._asdict())
        return changed

    def event_sum(self, run: str) -> EventSum:
        """Return the stored count and sum of hashes of a run's events."""
        row = self._db.execute("SELECT run, events, digest FROM event_sums WHERE run = ?", (run,)).fetchone()
        return EventSum(*row) if row else EventSum(run, 0, "0" * 64)

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        before: Any = self.get(record, record_id)
        if before is None:
            return False
        kind = kind_of(record)
        self._db.execute(f"DELETE FROM {mapping_for(record).table} WHERE id = ?", (record_id,))
        self.unindex_record(kind, record_id)
        _update_tallies(self._db, kind, before, None)
        self.append_entry(verb, kind, record_id, None)
        return True

    def remove_events(
        self, run: str, verb: str, *, only: Iterable[str] = (), excluded: Iterable[str] = ()
    ) -> int:
        from archivist.records import Event

        known = self.event_sum(run)
        total, removed, chosen, spared = int(known.digest, 16), 0, set(only), set(excluded)
        rows = self._db.execute(f"SELECT {mapping_for(Event).column_list} FROM events WHERE run = ?", (run,))
        for row in rows.fetchall():
            if row[0] in spared or (chosen and row[0] not in chosen):
                continue
            self._db.execute("DELETE FROM events WHERE id = ?", (row[0],))
            self.unindex_record("event", str(row[0]))
            total, removed = (total - row_hash(row)) % HASH_SPACE, removed + 1
        if removed:
            after = EventSum(run, known.events - removed, f"{total:064x}")
            self._db.execute("DELETE FROM event_sums WHERE run = ?", (run,))
            if after.events:
                self._db.execute("INSERT INTO event_sums VALUES (?, ?, ?)", after)
            self.append_entry(verb, "event", run, after._asdict())
        return removed

    def unindex_record(self, kind: str, record_id: str) -> None:
        """Remove a record's document from the index, with its vectors."""
        for place in self.index_places(kind, [record_id]):
            _remove_document(self._db, place)

    def append_entry(self, verb: str, kind: str, record: str, after: object) -> None:
        row = self._db.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
        seq, previous = (int(row[0]) + 1, str(row[1])) if row else (1, GENESIS)
        payload = canonical_json(after)
        self.write_entry(seal_entry(previous, seq, self.now, self.actor, verb, kind, record, payload))
        self._db.execute("INSERT INTO ledger_payloads VALUES (?, ?)", (seq, payload))

    def write_entry(self, entry: LedgerEntry) -> None:
        """Write the row of a sealed entry."""
        self._db.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                entry.seq, to_text(entry.time), entry.actor.kind.value, entry.actor.name, entry.actor.role,
                entry.verb, entry.kind, entry.record, entry.payload_hash, entry.previous, entry.hash,
            ),
        )  # fmt: skip

    def set_setting(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def queue(self, run: str) -> None:
        sql = "INSERT OR REPLACE INTO pending (run, queued) VALUES (?, ?)"
        self._db.execute(sql, (run, to_text(self.now)))

    def lease(self, holder: str, until: datetime, *, runs: Sequence[str] = (), limit: int = 1) -> list[str]:
        now = to_text(self.now)
        self._db.execute(
            "UPDATE pending SET holder = '', error = ?"
            " WHERE holder <> '' AND leased_until < ? AND attempts >= ?",
            (_ABORTED, now, MAX_ATTEMPTS),
        )
        chosen = f" AND run IN ({', '.join('?' * len(runs))})" if runs else ""
        rows: list[Any] = self._db.execute(
            "UPDATE pending SET holder = ?, leased_until = ?, attempts = attempts + 1 WHERE run IN"
            f" (SELECT run FROM pending WHERE leased_until < ? AND attempts < ?{chosen}"
            " ORDER BY queued, run LIMIT ?) RETURNING queued, run",
            (holder, to_text(until), now, MAX_ATTEMPTS, *runs, limit),
        ).fetchall()
        return [run for _, run in sorted(rows)]

    def end_lease(self, run: str, holder: str, error: str = "") -> bool:
        if error:
            sql = "UPDATE pending SET holder = '', leased_until = '', error = ? WHERE run = ? AND holder = ?"
            self._db.execute(sql, (error, run, holder))
        else:
            self._db.execute("DELETE FROM pending WHERE run = ? AND holder = ?", (run, holder))
        return self._db.changes() > 0

    def expire_leases(self, holders: Iterable[str]) -> None:
        sql = "UPDATE pending SET leased_until = '' WHERE holder = ?"
        self._db.executemany(sql, [(holder,) for holder in holders])

    def release_lease(self, run: str, holder: str) -> None:
        self._db.execute(
            "UPDATE pending SET holder = '', leased_until = '', attempts = attempts - 1"
            " WHERE run = ? AND holder = ?",
            (run, holder),
        )

    def dequeue_run(self, run: str, until: datetime) -> None:
        self._db.execute("DELETE FROM pending WHERE run = ? AND queued <= ?", (run, to_text(until)))

    def mark_file_captured(self, digest: str, runs: Sequence[str]) -> None:
        sql = "INSERT OR REPLACE INTO captured_files VALUES (?, ?)"
        self._db.execute(sql, (digest, canonical_json(list(runs))))

    def store_response(self, request: str, response: StoredResponse) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
            (request, response.digest, response.status, response.body, to_text(response.time)),
        )

    def drop_responses_before(self, moment: datetime) -> None:
        self._db.execute("DELETE FROM answers WHERE time < ?", (to_text(moment),))

    def store_message(self, message: Message, *, max_messages: int) -> None:
        self._db.execute(
            "INSERT INTO messages (seq, time, type, data) SELECT coalesce(max(seq), 0), ?, ?, ? FROM ledger",
            (to_text(message.time), message.type, canonical_json(to_plain(message.data))),
        )
        self._db.execute("DELETE FROM messages WHERE id <= last_insert_rowid() - ?", (max_messages,))

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        db = self._db
        # The first embedder is searched at once; a later one when it has all vectors.
        db.execute(
            "INSERT OR IGNORE INTO embedders (name, dimensions, is_used)"
            " SELECT ?, ?, count(*) = 0 FROM embedders",
            (embedder, dimensions),
        )
        number = int(self._query_value("SELECT id FROM embedders WHERE name = ?", embedder))
        by_block: dict[int, list[tuple[int, bytes]]] = {}
        stored = 0
        for place, revision, (bits, small, halves) in rows:
            sql = "UPDATE documents SET embedder = ? WHERE id = ? AND revision = ?"
            db.execute(sql, (number, place, revision))
            if not db.changes():
                continue
            key = (number << 32) + place
            db.execute("INSERT OR REPLACE INTO vector_rows VALUES (?, ?)", (key, small))
            db.execute("INSERT OR REPLACE INTO vector_halves VALUES (?, ?)", (key, halves))
            block, at = block_of(number, place)
            by_block.setdefault(block, []).append((at, bits))
            stored += 1
        for block, parts in by_block.items():
            _write_bits(db, block, bit_width(dimensions), parts)
        return stored

    def use_embedder(self, embedder: str) -> None:
        row = self._db.execute(
            "SELECT id, is_used AND (SELECT count(*) FROM embedders) = 1 FROM embedders WHERE name = ?",
            (embedder,),
        ).fetchone()
        if row is None or row[1]:
            return
        kept = int(row[0])
        self._db.execute("UPDATE embedders SET is_used = (id = ?)", (kept,))
        for table in ("vector_rows", "vector_halves", "vector_blocks", "vector_changes"):
            self._db.execute(f"DELETE FROM {table} WHERE id >> 32 <> ?", (kept,))
        self._db.execute("DELETE FROM embedders WHERE id <> ?", (kept,))

    def merge_index(self) -> bool:
        """Merge segments of the text index while the largest holds less than 80 % of it.

        Every write leaves a segment, and a search looks for every word in each of them. One call does a part
        of the work, so that other writers need not wait; the result says whether anything was done.
        """
        rows: list[Any] = self._db.execute("SELECT count(*) FROM search_idx GROUP BY segid").fetchall()
        sizes = [int(size) for (size,) in rows]
        if len(sizes) <= _MAX_SEGMENTS or max(sizes) > sum(sizes) * _LARGEST_SHARE:
            return False
        before = self._db.total_changes()
        self._db.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", (-_PAGES_AT_ONCE,))
        # When FTS5 finds nothing to merge, it changes no more than its own record.
        return self._db.total_changes() - before > 1


def rebuild_derived(db: apsw.Connection) -> None:
    """Build the text index and the tallies again from the records."""
    db.execute(
        "INSERT INTO search (search) VALUES ('delete-all');"
        " DELETE FROM documents; DELETE FROM speakers; DELETE FROM vector_rows;"
        " DELETE FROM vector_halves; UPDATE vector_blocks SET bits = zeroblob(length(bits));"
        # Under later numbers, so that every process that has read the blocks reads them again.
        " UPDATE vector_changes SET seq = seq + (SELECT max(seq) FROM vector_changes);"
        " DELETE FROM tallies; DELETE FROM event_sums"
    )
    reader = SqliteReader(db, VectorCache())
    for (run,) in db.execute("SELECT DISTINCT run FROM events").fetchall():
        db.execute("INSERT INTO event_sums VALUES (?, ?, ?)", sum_events(reader, str(run)))
    for (run,) in db.execute("SELECT id FROM episodes").fetchall():
        set_run_provenance(db, reader, str(run))
    for record_class in record_types():
        how: Any = mapping_for(record_class)
        for row in db.execute(f"SELECT {how.column_list} FROM {how.table}"):
            record = how.to_record(row)
            _index_record(db, kind_of(record_class), record)
            _update_tallies(db, kind_of(record_class), None, record)


def set_run_provenance(db: apsw.Connection, reader: SqliteReader, run: str) -> None:
    """Write beside a run's record where the ledger says that it comes from.

    A ledger that lost entries must not make another's run an own one.
    """
    if origin := reader.run_origin(run):
        sql = "UPDATE episodes SET provenance = ? WHERE id = ? AND provenance = 'mined'"
        db.execute(sql, (provenance_of_run(origin).value, run))


@cache
def upsert_sql(record: Any) -> str:
    """Return the statement that inserts or replaces a record."""
    how = mapping_for(record)
    changes = ", ".join(f"{name} = excluded.{name}" for name in how.columns if name != "id")
    return (
        f"INSERT INTO {how.table} ({how.column_list}) VALUES ({', '.join('?' * len(how.columns))})"
        f" ON CONFLICT (id) DO UPDATE SET {changes}"
    )


def _update_tallies(db: apsw.Connection, kind: str, before: Any, after: Any) -> None:
    """Update the tallies when a brief or a verdict changes."""
    for record, step in ((before, -1), (after, 1)):
        if record is not None and kind == "brief":
            for lesson in record.lessons:
                db.execute(
                    "INSERT INTO tallies (lesson, used, last_used) VALUES (?, ?, ?)"
                    " ON CONFLICT (lesson) DO UPDATE SET used = used + excluded.used,"
                    " last_used = max(coalesce(last_used, ''), excluded.last_used)",
                    (lesson, step, to_text(record.time)),
                )
        elif record is not None and kind == "verdict":
            columns = [record.effect.value] if record.effect.value in _COUNTED_EFFECTS else []
            # A run without an occasion could not fail, told or not.
            if record.failed is not None and record.effect.value != "not_needed":
                arm = "withheld" if record.following.value == "withheld" else "told"
                columns += [arm, f"{arm}_failed"] if record.failed else [arm]
            for column in columns:
                db.execute(
                    f"INSERT INTO tallies (lesson, {column}) VALUES (?, ?) ON CONFLICT (lesson) DO UPDATE"
                    f" SET {column} = {column} + excluded.{column}",
                    (record.lesson, step),
                )


def _index_record(db: apsw.Connection, kind: str, record: Any) -> None:
    """Bring a record's document in the index up to date."""
    built = build_search_document(record)
    sql = "SELECT id, revision, embedder FROM documents WHERE kind = ? AND record = ?"
    row: Any = db.execute(sql, (kind, record.id)).fetchone()
    if built is None:
        if row is not None:
            _remove_document(db, row[0])
        return
    place, revision, embedder = row if row is not None else (None, None, _PENDING)
    is_embeddable = bool(built.spoken.strip()) and not built.is_hidden
    # A place can be taken by another document while a vector is made: the text has a number of its own.
    digest = blake2s(built.spoken.encode(), digest_size=7).digest()
    new_revision = int.from_bytes(digest, "big")
    # A vector stays while the embedded text has not changed.
    is_embedded = embedder > _PENDING and revision == new_revision and not built.is_hidden
    if place is not None:
        db.execute("DELETE FROM search WHERE rowid = ?", (place,))
        if not is_embedded:
            remove_vectors(db, place)
    db.execute(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            place, kind, record.id, new_revision, int(built.time.timestamp()) if built.time else None,
            built.cycle, built.importance, built.speaker, built.thread, built.position, built.superseded_by,
            int(built.is_hidden), embedder if is_embedded else _PENDING if is_embeddable else _NOT_EMBEDDED,
        ),
    )  # fmt: skip
    place = db.last_insert_rowid() if place is None else place
    scope = " ".join((*built.scope, "hidden")) if built.is_hidden else " ".join(built.scope)
    db.execute("INSERT INTO search (rowid, text, scope) VALUES (?, ?, ?)", (place, built.text, scope))
    if built.speaker not in SPEAKER_SORTS:
        db.execute("INSERT OR IGNORE INTO speakers VALUES (?)", (built.speaker,))


def _remove_document(db: apsw.Connection, place: int) -> None:
    db.execute("DELETE FROM search WHERE rowid = ?", (place,))
    db.execute("DELETE FROM documents WHERE id = ?", (place,))
    remove_vectors(db, place)


def remove_vectors(db: apsw.Connection, place: int) -> None:
    """Delete a document's vectors, of every embedder."""
    known: list[Any] = db.execute("SELECT id, dimensions FROM embedders").fetchall()
    for embedder, dimensions in known:
        key = (embedder << 32) + place
        db.execute("DELETE FROM vector_rows WHERE id = ?", (key,))
        if db.changes():
            db.execute("DELETE FROM vector_halves WHERE id = ?", (key,))
            block, at = block_of(embedder, place)
            width = bit_width(dimensions)
            _write_bits(db, block, width, [(at, bytes(width))])


def _write_bits(db: apsw.Connection, block: int, width: int, parts: Sequence[tuple[int, bytes]]) -> None:
    """Write rows into a block in place: only the pages that they lie on."""
    db.execute("INSERT OR IGNORE INTO vector_blocks VALUES (?, zeroblob(?))", (block, BLOCK * width))
    with db.blob_open("main", "vector_blocks", "bits", block, True) as blob:
        for at, bits in parts:
            blob.seek(at * width)
            blob.write(bits)
    db.execute(
        "INSERT OR REPLACE INTO vector_changes SELECT ?, coalesce(max(seq), 0) + 1 FROM vector_changes",
        (block,),
    )
