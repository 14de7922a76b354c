"""Change a SQLite bank: what only SQLite does with its index, its vectors and its messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import apsw

from archivist.clock import to_text
from archivist.records.actor import Actor
from archivist.records.plain import canonical_json, to_plain
from archivist.records.words import ActorKind
from archivist.store.results import BLOCK
from archivist.store.sql import without_bank
from archivist.store.sql_writer import IndexRow, Writer
from archivist.store.sqlite.search import SqliteReader, VectorCache, block_of

if TYPE_CHECKING:
    from archivist.bus import Message

# The text index is merged when it has more segments than this and the largest holds less than this share.
_MAX_SEGMENTS = 4
_LARGEST_SHARE = 0.8
_PAGES_AT_ONCE = 2000


class SqliteWriter(SqliteReader, Writer):
    """A transaction in one actor's name at one time."""

    def __init__(self, db: apsw.Connection, cache: VectorCache, actor: Actor, now: datetime) -> None:
        super().__init__(db, cache)
        self.value_cache = None
        self.actor = actor
        self.now = now

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(without_bank(sql), rows)

    def store_message(self, message: Message, *, max_messages: int) -> None:
        self._db.execute(
            "INSERT INTO messages (seq, time, type, data) SELECT coalesce(max(seq), 0), ?, ?, ? FROM ledger",
            (to_text(message.time), message.type, canonical_json(to_plain(message.data))),
        )
        self._db.execute("DELETE FROM messages WHERE id <= last_insert_rowid() - ?", (max_messages,))

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        from archivist.store.vectors import bit_width

        db = self._db
        # The first embedder is searched at once; a later one when it has all vectors.
        db.execute(
            "INSERT OR IGNORE INTO embedders (name, dimensions, is_used)"
            " SELECT ?, ?, count(*) = 0 FROM embedders",
            (embedder, dimensions),
        )
        number = int(self.query_value("SELECT id FROM embedders WHERE name = ?", embedder))
        db.execute(
            "UPDATE embedders SET dimensions = ? WHERE id = ? AND dimensions = 0", (dimensions, number)
        )
        if db.changes():
            size = BLOCK * bit_width(dimensions)
            db.execute("UPDATE vector_blocks SET bits = zeroblob(?) WHERE id >> 32 = ?", (size, number))
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

    def reserve_message(self, number: int) -> None:
        self._db.execute("DELETE FROM sqlite_sequence WHERE name = 'messages'")
        self._db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', ?)", (number,))

    def _write_documents(self, rows: Sequence[IndexRow]) -> None:
        db = self._db
        for row in rows:
            place, built = row.place, row.built
            if place is not None:
                db.execute("DELETE FROM search WHERE rowid = ?", (place,))
                if not row.keeps_vector:
                    remove_vectors(db, place)
            sql = "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            db.execute(sql, (place, *row.columns))
            place = db.last_insert_rowid() if place is None else place
            scope = " ".join((*built.scope, "hidden")) if built.is_hidden else " ".join(built.scope)
            db.execute("INSERT INTO search (rowid, text, scope) VALUES (?, ?, ?)", (place, built.text, scope))

    def _remove_documents(self, places: Sequence[int]) -> None:
        for place in places:
            self._db.execute("DELETE FROM search WHERE rowid = ?", (place,))
            self._db.execute("DELETE FROM documents WHERE id = ?", (place,))
            remove_vectors(self._db, place)

    def clear_index(self) -> None:
        self._db.execute(
            "INSERT INTO search (search) VALUES ('delete-all');"
            " DELETE FROM documents; DELETE FROM vector_rows;"
            " DELETE FROM vector_halves; UPDATE vector_blocks SET bits = zeroblob(0);"
            " UPDATE embedders SET dimensions = 0;"
            # Under later numbers, so that every process that has read the blocks reads them again.
            " UPDATE vector_changes SET seq = seq + (SELECT max(seq) FROM vector_changes)"
        )


def rebuild_derived(db: apsw.Connection) -> None:
    """Build the text index and the tallies again from the records."""
    # Nothing of it is entered in the ledger, so nobody does it at no time.
    SqliteWriter(
        db, VectorCache(), Actor(ActorKind.ARCHIVIST), datetime.min.replace(tzinfo=UTC)
    ).rebuild_derived()


def remove_vectors(db: apsw.Connection, place: int) -> None:
    """Delete a document's vectors, of every embedder."""
    known: list[Any] = db.execute("SELECT id, dimensions FROM embedders").fetchall()
    if known:
        from archivist.store.vectors import bit_width
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
