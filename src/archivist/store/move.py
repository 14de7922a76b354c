"""Copy a bank from one engine to another, without loss: records, ledger, settings, queue, tallies, vectors.

The copy is made page by page, each in a transaction that also notes how far it is: a move that was killed
goes on from there. The ledger keeps its chain, and is verified at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.errors import BankDamagedError, StateError
from archivist.records.actor import ARCHIVIST
from archivist.records.kinds import KINDS, record_type
from archivist.store.rows import mapping_for
from archivist.store.sql import BATCH, marks
from archivist.trust import MARK

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.store.postgres.store import PostgresStore
    from archivist.store.protocol import Reader, Writer
    from archivist.store.sqlite.store import SqliteStore

    SqlStore = PostgresStore | SqliteStore

# The setting of an unfinished copy: which state of the source it copies, and how far it is.
_PROGRESS = "move"
_PAGE = 1_000
_VECTORS = "vectors"


class _Table(NamedTuple):
    name: str
    key: str
    columns: tuple[str, ...]


class MoveStep(NamedTuple):
    """How far a copy is: the rows of a table that were copied, and how many it has."""

    table: str
    copied: int
    total: int


class MoveResult(NamedTuple):
    """What a copy holds."""

    rows: int
    entries: int
    vectors: int


# What is copied as it is, the ledger first: it tells which state of the bank the copy is of.
_OTHER_TABLES = (
    "ledger", "ledger_payloads", "settings", "tallies", "event_sums", "captured_files", "pending", "answers",
    "messages",
)  # fmt: skip


def _tables() -> list[_Table]:
    from archivist.store.postgres.schema import TABLES

    tables = []
    for name in _OTHER_TABLES:
        key, columns, _ = TABLES[name]
        tables.append(_Table(name, key, tuple(column.split()[0] for column in columns.split(","))))
    for kind in KINDS:
        how = mapping_for(record_type(kind.name))
        more = ("provenance",) if kind.name == "episode" else ()
        tables.append(_Table(how.table, "id", (*how.columns, *more)))
    return tables


def copy_bank(source: SqlStore, target: SqlStore, now: datetime) -> Iterator[MoveStep | MoveResult]:
    """Copy a bank into an empty one, or go on with a copy of it; yield each step, and the result at last.

    The source is read in one view, so that others may write it: raise StateError when they did.
    """
    with source.reading() as reader:
        copy = _Copy(reader, target, now)
        copy.begin()
        for table in _tables():
            yield from copy.copy_table(table)
        yield from copy.copy_index()
        last_message = reader.last_message()
    with target.writing(ARCHIVIST, now) as writer:
        writer.reserve_message(last_message)
        writer.execute("DELETE FROM settings WHERE bank = :bank AND name = ?", (_PROGRESS,))
    with target.reading() as reader:
        found = reader.verify()
        if not found.is_whole:
            raise BankDamagedError("", f"the copy does not match: {found.problems[0]}")
    with source.reading() as reader:
        if copy.state != _state_of(reader):
            raise StateError("the bank was changed while it was copied", hint="run it again")
    yield MoveResult(copy.rows, found.entries, copy.vectors)


def _state_of(reader: Reader) -> dict[str, object]:
    """Return what changes with the ledger, and with the tables that it does not tell of."""
    counts = ("settings", "captured_files", "pending", "answers")
    numbers = [reader.query_value(f"SELECT count(*) FROM {table} WHERE bank = :bank") for table in counts]
    return {"entry": reader.last_entry(), "version": "-".join(map(str, [*numbers, reader.last_message()]))}


class _Copy:
    """A copy that is being made. With each page it notes in the target how far it is."""

    def __init__(self, reader: Reader, target: SqlStore, now: datetime) -> None:
        self._reader = reader
        self._target = target
        self._now = now
        self.state = _state_of(reader)
        self._done: dict[str, Any] = {}
        self.rows = self.vectors = 0

    def begin(self) -> None:
        """Go on where an earlier copy of the same state came to, or empty the target for a new one."""
        with self._target.writing(ARCHIVIST, self._now) as writer:
            noted: dict[str, Any] = writer.json_setting(_PROGRESS)
            if noted.get("state") == self.state:
                self._done = dict(noted["done"])
                return
            if not noted and writer.last_entry():
                place = self._target.server or "the file"
                raise StateError(f"{place} holds a bank already", hint="name another bank, or remove it")
            for table in _tables():
                # Entries of the ledger stay for good, and are the same in every copy.
                if table.name not in ("ledger", "settings"):
                    writer.execute(f"DELETE FROM {table.name} WHERE bank = :bank")
            writer.clear_index()
            self._note(writer)

    def _note(self, writer: Writer) -> None:
        writer.set_setting(_PROGRESS, json.dumps({"state": self.state, "done": self._done}))

    def _count(self, table: str) -> int:
        return int(self._reader.query_value(f"SELECT count(*) FROM {table} WHERE bank = :bank"))

    def copy_table(self, table: _Table) -> Iterator[MoveStep]:
        """Copy the rows of a table as they are."""
        total, columns = self._count(table.name), ", ".join(table.columns)
        changes = ", ".join(f"{name} = excluded.{name}" for name in table.columns if name != table.key)
        action = "NOTHING" if table.name == "ledger" else f"UPDATE SET {changes}"
        insert = (
            f"INSERT INTO {table.name} (bank, {columns}) VALUES (:bank, {marks(table.columns)})"
            f" ON CONFLICT (bank, {table.key}) DO {action}"
        )
        at = table.columns.index(table.key)
        after, copied = self._done.get(table.name, [None, 0])
        while True:
            where = f" AND {table.key} > ?" if after is not None else ""
            sql = f"SELECT {columns} FROM {table.name} WHERE bank = :bank{where} ORDER BY {table.key} LIMIT ?"
            rows = self._reader.execute(sql, (*([] if after is None else [after]), _PAGE)).fetchall()
            if not rows:
                break
            after, copied = rows[-1][at], copied + len(rows)
            # The mark of trust belongs to the place, and the note of progress to the copy.
            kept = [row for row in rows if not (table.name == "settings" and row[at] in (MARK, _PROGRESS))]
            self._done[table.name] = [after, copied]
            with self._target.writing(ARCHIVIST, self._now) as writer:
                writer.execute_many(insert, kept)
                self._note(writer)
            yield MoveStep(table.name.replace("_", " "), copied, total)
        self.rows += copied

    def copy_index(self) -> Iterator[MoveStep]:
        """Index the records anew, in the order of the source, and copy the vectors of the same texts."""
        reader, total = self._reader, self._count("documents")
        after, copied, self.vectors = self._done.get(_VECTORS, [0, 0, 0])
        embedder = reader.embedder_in_use()
        sql = (
            "SELECT id, kind, record, revision FROM documents WHERE bank = :bank AND id > ?"
            " ORDER BY id LIMIT ?"
        )
        while rows := reader.execute(sql, (after, BATCH)).fetchall():
            by_kind: dict[str, list[str]] = {}
            for _, kind, record, _ in rows:
                by_kind.setdefault(kind, []).append(record)
            packed = reader.stored_vectors(embedder, [row[0] for row in rows]) if embedder else {}
            after, copied = rows[-1][0], copied + len(rows)
            with self._target.writing(ARCHIVIST, self._now) as writer:
                for kind, names in by_kind.items():
                    writer.index_records(kind, list(reader.records(kind, names).values()))
                if packed:
                    self.vectors += _put_vectors(writer, embedder, rows, packed)
                self._done[_VECTORS] = [after, copied, self.vectors]
                self._note(writer)
            yield MoveStep("index", copied, total)


def _put_vectors(writer: Writer, embedder: str, rows: list[Any], packed: dict[int, bytes]) -> int:
    import numpy as np

    from archivist.store.vectors import pack_vectors

    width = len(next(iter(packed.values()))) // 2
    with_vectors = [row for row in rows if row[0] in packed]
    table = np.frombuffer(b"".join(packed[row[0]] for row in with_vectors), "<f2").reshape(-1, width)
    stored = [
        (place, revision, halves)
        for (_, kind, record, revision), halves in zip(
            with_vectors, pack_vectors(table.astype(np.float32)), strict=True
        )
        for place in writer.index_places(kind, [record])
    ]
    return writer.put_vectors(embedder, width, stored)
