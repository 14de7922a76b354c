"""Copy a bank from one engine to another, without loss: records, ledger, settings, queue, tallies, vectors.

The copy is made page by page, each in a transaction that also notes how far it is: a move that was killed
goes on from there. The ledger keeps its chain, and is verified at the end.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.errors import BankDamagedError, StateError
from archivist.records.actor import ARCHIVIST
from archivist.records.kinds import KINDS, record_type
from archivist.store.results import split_batches
from archivist.store.rows import mapping_for
from archivist.store.sql_reader import BATCH, marks
from archivist.trust import MARK

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.store.postgres.store import PostgresStore
    from archivist.store.sql_reader import SqlReader
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


def _tables() -> list[_Table]:
    """Return what is copied as it is, the ledger first: it tells which state of the bank the copy is of."""
    entry = "seq time actor_kind actor_name actor_role verb kind record payload_hash previous hash"
    tally = "lesson used last_used helpful ineffective ignored told told_failed withheld withheld_failed"
    listed = [
        ("ledger", "seq", entry),
        ("ledger_payloads", "seq", "seq payload"),
        ("settings", "name", "name value"),
        ("tallies", "lesson", tally),
        ("event_sums", "run", "run events digest"),
        ("captured_files", "digest", "digest runs"),
        ("pending", "run", "run queued holder leased_until attempts error"),
        ("answers", "id", "id digest status body time"),
        ("messages", "id", "id seq time type data"),
    ]
    tables = [_Table(name, key, tuple(columns.split())) for name, key, columns in listed]
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
        state = {"entry": reader.last_entry(), "version": _fingerprint(reader)}
        done = _prepare(target, state, now)
        rows = 0
        for table in _tables():
            total = int(reader.query_value(f"SELECT count(*) FROM {table.name} WHERE bank = :bank"))
            copied = yield from _copy_table(reader, target, table, total, state, done, now)
            rows += copied
        vectors = yield from _copy_index(reader, target, state, done, now)
        last_message = reader.last_message()
    with target.writing(ARCHIVIST, now) as writer:
        writer.reserve_message(last_message)
        writer.execute("DELETE FROM settings WHERE bank = :bank AND name = ?", (_PROGRESS,))
    with target.reading() as reader:
        found = reader.verify()
        if not found.is_whole:
            raise BankDamagedError("", f"the copy does not match: {found.problems[0]}")
    with source.reading() as reader:
        if state != {"entry": reader.last_entry(), "version": _fingerprint(reader)}:
            raise StateError("the bank was changed while it was copied", hint="run it again")
    yield MoveResult(rows, found.entries, vectors)


def _fingerprint(reader: SqlReader) -> str:
    """Return what changes with the tables that the ledger does not tell of."""
    counts = ("settings", "captured_files", "pending", "answers")
    numbers = [reader.query_value(f"SELECT count(*) FROM {table} WHERE bank = :bank") for table in counts]
    return "-".join(map(str, [*numbers, reader.last_message()]))


def _prepare(target: SqlStore, state: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return how far an earlier copy of the same state came; empty the target for a new one."""
    with target.writing(ARCHIVIST, now) as writer:
        noted: dict[str, Any] = writer.json_setting(_PROGRESS)
        if noted.get("state") == state:
            return dict(noted["done"])
        if not noted and writer.last_entry():
            raise StateError(
                f"{target.server or 'the file'} holds a bank already", hint="name another bank, or remove it"
            )
        for table in _tables():
            # Entries of the ledger stay for good, and are the same in every copy.
            if table.name not in ("ledger", "settings"):
                writer.execute(f"DELETE FROM {table.name} WHERE bank = :bank")
        writer.clear_index()
        writer.set_setting(_PROGRESS, json.dumps({"state": state, "done": {}}))
    return {}


def _copy_table(
    reader: SqlReader,
    target: SqlStore,
    table: _Table,
    total: int,
    state: dict[str, Any],
    done: dict[str, Any],
    now: datetime,
) -> Generator[MoveStep, None, int]:
    columns = ", ".join(table.columns)
    changes = ", ".join(f"{name} = excluded.{name}" for name in table.columns if name != table.key)
    action = "NOTHING" if table.name == "ledger" else f"UPDATE SET {changes}"
    insert = (
        f"INSERT INTO {table.name} (bank, {columns}) VALUES (:bank, {marks(table.columns)})"
        f" ON CONFLICT (bank, {table.key}) DO {action}"
    )
    at = table.columns.index(table.key)
    after, copied = done.get(table.name, [None, 0])
    while True:
        where = f" AND {table.key} > ?" if after is not None else ""
        sql = f"SELECT {columns} FROM {table.name} WHERE bank = :bank{where} ORDER BY {table.key} LIMIT ?"
        rows = reader.execute(sql, (*([] if after is None else [after]), _PAGE)).fetchall()
        if not rows:
            return int(copied)
        after, copied = rows[-1][at], copied + len(rows)
        # The mark of trust belongs to the place, and the note of progress to the copy.
        kept = [row for row in rows if not (table.name == "settings" and row[at] in (MARK, _PROGRESS))]
        done[table.name] = [after, copied]
        with target.writing(ARCHIVIST, now) as writer:
            writer.execute_many(insert, kept)
            writer.set_setting(_PROGRESS, json.dumps({"state": state, "done": done}))
        yield MoveStep(table.name.replace("_", " "), copied, total)


def _copy_index(
    reader: SqlReader, target: SqlStore, state: dict[str, Any], done: dict[str, Any], now: datetime
) -> Generator[MoveStep, None, int]:
    """Index the records anew, in the order of the source, and copy the vectors of the same texts."""
    total = int(reader.query_value("SELECT count(*) FROM documents WHERE bank = :bank"))
    after, copied, vectors = done.get(_VECTORS, [0, 0, 0])
    embedder = reader.embedder_in_use()
    sql = "SELECT id, kind, record, revision FROM documents WHERE bank = :bank AND id > ? ORDER BY id LIMIT ?"
    while rows := reader.execute(sql, (after, BATCH)).fetchall():
        by_kind: dict[str, list[str]] = {}
        for _, kind, record, _ in rows:
            by_kind.setdefault(kind, []).append(record)
        packed = reader.stored_vectors(embedder, [row[0] for row in rows]) if embedder else {}
        after, copied = rows[-1][0], copied + len(rows)
        with target.writing(ARCHIVIST, now) as writer:
            for kind, names in by_kind.items():
                writer.index_records(kind, list(reader.records(kind, names).values()))
            if packed:
                vectors += _put_vectors(writer, embedder, rows, packed)
            done[_VECTORS] = [after, copied, vectors]
            writer.set_setting(_PROGRESS, json.dumps({"state": state, "done": done}))
        yield MoveStep("index", copied, total)
    return int(vectors)


def _put_vectors(writer: Any, embedder: str, rows: list[Any], packed: dict[int, bytes]) -> int:
    import numpy as np

    from archivist.store.vectors import pack_vectors

    width = len(next(iter(packed.values()))) // 2
    with_vectors = [row for row in rows if row[0] in packed]
    table = np.frombuffer(b"".join(packed[row[0]] for row in with_vectors), "<f2").reshape(-1, width)
    stored = []
    for batch in split_batches(
        list(zip(with_vectors, pack_vectors(table.astype(np.float32)), strict=True)), BATCH
    ):
        for (_, kind, record, revision), halves in batch:
            stored += [(place, revision, halves) for place in writer.index_places(kind, [record])]
    return int(writer.put_vectors(embedder, width, stored))
