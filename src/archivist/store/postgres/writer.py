"""Change a PostgreSQL bank: what only PostgreSQL does with its index, its vectors and its messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from archivist.clock import to_text
from archivist.records.plain import canonical_json, to_plain
from archivist.store.postgres.connection import BankSession, HalfVector, array_text
from archivist.store.postgres.search import PostgresReader, SearchCache
from archivist.store.postgres.words import vector_of
from archivist.store.sql_eraser import Eraser
from archivist.store.sql_writer import IndexRow, Writer

if TYPE_CHECKING:
    from archivist.bus import Message
    from archivist.records.actor import Actor
    from archivist.store.ledger import LedgerEntry

_DOCUMENT_COLUMNS = (
    "id", "kind", "record", "revision", "time", "cycle", "importance", "speaker", "thread", "position",
    "superseded_by", "is_hidden", "embedder", "length", "size", "words",
)  # fmt: skip
# The place of a new document is free. With ON CONFLICT the server searches the index first and writes the
# row in two steps: 37 µs for an event and its document, 34 without.
_ADD_DOCUMENT = (
    f"INSERT INTO documents (bank, {', '.join(_DOCUMENT_COLUMNS)})"
    f" VALUES (:bank, {', '.join('?' * len(_DOCUMENT_COLUMNS))})"
)
_REPLACE_DOCUMENT = f"{_ADD_DOCUMENT} ON CONFLICT (bank, id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _DOCUMENT_COLUMNS[1:]
)
_COUNT = "UPDATE banks SET documents = documents + ?, words = words + ?, last_place = ? WHERE bank = :bank"


class PostgresWriter(PostgresReader, Writer):
    """A transaction in one actor's name at one time."""

    _lease_lock = " FOR UPDATE SKIP LOCKED"

    def __init__(self, session: BankSession, cache: SearchCache, actor: Actor, now: datetime) -> None:
        super().__init__(session, cache)
        self.value_cache = None
        self.actor = actor
        self.now = now

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        if listed := list(rows):
            self._session.execute(sql, listed, is_many=True)

    def store_message(self, message: Message, *, max_messages: int) -> None:
        number = self._session.last_message + 1
        data = canonical_json(to_plain(message.data))
        self.execute(
            "INSERT INTO messages (bank, id, seq, time, type, data) VALUES (:bank, ?, ?, ?, ?, ?)",
            (number, self._ledger_head()[0], to_text(message.time), message.type, data),
        )
        self.reserve_message(number)
        self.execute("DELETE FROM messages WHERE bank = :bank AND id <= ?", (number - max_messages,))

    def reserve_message(self, number: int) -> None:
        self._session.last_message = number
        self.execute("UPDATE banks SET last_message = ? WHERE bank = :bank", (number,))

    def _ledger_head(self) -> tuple[int, str]:
        return self._session.ledger_head

    def write_entry(self, entry: LedgerEntry, payload: str | None = None) -> None:
        super().write_entry(entry, payload)
        self._session.ledger_head = entry.seq, entry.hash

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        if not self._cache.has_vectors:
            return 0
        # The first embedder is searched at once; a later one when it has all vectors.
        sql = "UPDATE embedders SET dimensions = ? WHERE bank = :bank AND name = ? AND dimensions = 0"
        self.execute(sql, (dimensions, embedder))
        if self._embedder(embedder) is None:
            last = int(self.query_value("SELECT coalesce(max(id), 0) FROM embedders WHERE bank = :bank"))
            self.execute(
                "INSERT INTO embedders (bank, id, name, dimensions, is_used) VALUES (:bank, ?, ?, ?, ?)",
                (last + 1, embedder, dimensions, int(last == 0)),
            )
        number = (self._embedder(embedder) or (0, 0))[0]
        halves = {(place, revision): packed[2] for place, revision, packed in rows}
        places = [place for place, _ in halves]
        sql = "SELECT id, revision FROM documents WHERE bank = :bank AND id = ANY(?::bigint[])"
        rows_there = self.execute(sql, (array_text(places),)).fetchall()
        found = [row for row in rows_there if tuple(row) in halves]
        sql = "UPDATE documents SET embedder = ? WHERE bank = :bank AND id = ANY(?::bigint[])"
        self.execute(sql, (number, array_text(place for place, _ in found)))
        self.execute_many(
            "INSERT INTO vectors (bank, embedder, id, dimensions, halves) VALUES (:bank, ?, ?, ?, ?)"
            " ON CONFLICT (bank, embedder, id) DO UPDATE SET halves = excluded.halves",
            [(number, place, dimensions, HalfVector(halves[place, revision])) for place, revision in found],
        )
        return len(found)

    def use_embedder(self, embedder: str) -> None:
        known = self._known_vectors(embedder)
        if known is None:
            return
        sql = "UPDATE embedders SET is_used = (id = ?)::int WHERE bank = :bank"
        self.execute(sql, (known[0],))
        self.execute("DELETE FROM vectors WHERE bank = :bank AND embedder <> ?", (known[0],))
        self.execute("DELETE FROM embedders WHERE bank = :bank AND id <> ?", (known[0],))

    def merge_index(self) -> bool:
        """Leave the index to the server, which merges new entries by itself."""
        return False

    def _write_documents(self, rows: Sequence[IndexRow]) -> None:
        if not rows:
            return
        places = [row.place for row in rows if row.place is not None]
        if places:
            self.execute(
                "UPDATE banks SET words = words - (SELECT coalesce(sum(size), 0) FROM documents"
                " WHERE bank = :bank AND id = ANY(?::bigint[])) WHERE bank = :bank",
                (array_text(places),),
            )
        self._drop_vectors([row.place for row in rows if row.place is not None and not row.keeps_vector])
        session, total = self._session, 0
        added: list[tuple[Any, ...]] = []
        replaced: list[tuple[Any, ...]] = []
        for row in rows:
            words, length, size = vector_of(session.bank, row.built)
            session.last_place += row.place is None
            total += size
            place = session.last_place if row.place is None else row.place
            (added if row.place is None else replaced).append((place, *row.columns, length, size, words))
        self.execute_many(_ADD_DOCUMENT, added)
        self.execute_many(_REPLACE_DOCUMENT, replaced)
        self.execute(_COUNT, (len(rows) - len(places), total, session.last_place))

    def _remove_documents(self, places: Sequence[int]) -> None:
        if not places:
            return
        self._drop_vectors(places)
        sql = "DELETE FROM documents WHERE bank = :bank AND id = ANY(?::bigint[]) RETURNING size"
        sizes = [size for (size,) in self.execute(sql, (array_text(places),)).fetchall()]
        self.execute(_COUNT, (-len(sizes), -sum(sizes), self._session.last_place))

    def _drop_vectors(self, places: Sequence[int]) -> None:
        if places and self._cache.has_vectors:
            sql = "DELETE FROM vectors WHERE bank = :bank AND id = ANY(?::bigint[])"
            self.execute(sql, (array_text(places),))

    def clear_index(self) -> None:
        for table in ("documents", "vectors") if self._cache.has_vectors else ("documents",):
            self.execute(f"DELETE FROM {table} WHERE bank = :bank")
        self._session.last_place = 0
        self.execute("UPDATE embedders SET dimensions = 0 WHERE bank = :bank")
        self.execute("UPDATE banks SET documents = 0, words = 0, last_place = 0 WHERE bank = :bank")


class PostgresEraser(PostgresWriter, Eraser):
    """A transaction that can also delete for good."""

    def drop_vectors(self, places: Sequence[int]) -> None:
        self._drop_vectors(places)
        sql = (
            "UPDATE documents SET embedder = 0 WHERE bank = :bank AND id = ANY(?::bigint[]) AND embedder > 0"
        )
        self.execute(sql, (array_text(places),))

    def vector_count(self, places: Sequence[int]) -> int:
        if not self._cache.has_vectors:
            return 0
        sql = "SELECT count(*) FROM vectors WHERE bank = :bank AND id = ANY(?::bigint[])"
        return int(self.query_value(sql, array_text(places)))

    def count_tombstones(self) -> int:
        """Return none: the index holds nothing of rows that a vacuum has removed."""
        return 0
