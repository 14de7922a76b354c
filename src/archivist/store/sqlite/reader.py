"""Read a SQLite bank."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

import apsw

from archivist.clock import from_text
from archivist.errors import BankDamagedError, CursorError
from archivist.records.kinds import BY_NAME
from archivist.store.filters import AnyOf, Condition, Filter
from archivist.store.protocol import Reader
from archivist.store.results import QueuedRun, StoredResponse
from archivist.store.rows import is_valid_cursor, mapping_for
from archivist.store.sqlite.schema import BEGINNING
from archivist.store.sqlite.search import SqliteSearch

if TYPE_CHECKING:
    from archivist.bus import StoredMessage
    from archivist.records import Tally
    from archivist.store.ledger import LedgerEntry

R = TypeVar("R")

# What a table computes by itself, beside the record's own fields.
_COMPUTED = {"lessons": ("frequency", "is_waiting"), "episodes": ("provenance",)}
# Texts that are found by an index of their beginnings.
_INDEXED_TEXTS = {("lessons", "summary")}


class SqliteReader(SqliteSearch, Reader):
    """A view of the bank within a transaction; `store.protocol` describes the methods."""

    def get(self, record: type[R], record_id: str) -> R | None:
        how = mapping_for(record)
        sql = f"SELECT {how.column_list} FROM {how.table} WHERE id = ?"
        try:
            row = self._db.execute(sql, (bind_value(record_id),)).fetchone()
        except UnicodeDecodeError as error:
            raise BankDamagedError("", f"{how.table} {record_id!r}: {error}") from error
        return how.to_record(row) if row else None

    def select(
        self,
        record: type[R],
        *conditions: Condition,
        order: Sequence[str] = (),
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        if after is not None and not is_valid_cursor(record, order, after):
            raise CursorError
        how = mapping_for(record)
        rows = self._rows(record, how.columns, conditions, order, limit, after)
        return [how.to_record(row) for row in rows]

    def select_fields(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        *conditions: Condition,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        table, columns = self._table_and_columns(record)
        for field in fields:
            _check_column(table, columns, field)
        return list(self._rows(record, fields, conditions, order, limit))

    def count(self, record: type[Any] | str, *conditions: Condition) -> int:
        row: Any = self._rows(record, ("count(*)",), conditions, (), None).fetchone()
        return int(row[0])

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        from archivist.records import Tally

        found: dict[str, Tally] = {}
        sql = f"SELECT lesson, {', '.join(Tally._fields)} FROM tallies WHERE lesson IN ({{}})"
        for lesson, used, last_used, *counts in self._query_each(sql, lesson_ids):
            found[lesson] = Tally(used, from_text(last_used) if last_used else None, *counts)
        return found

    def ledger(
        self,
        *,
        record_id: str | None = None,
        kind: str = "",
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
        with_payloads: bool = True,
    ) -> Iterator[tuple[LedgerEntry, str | None]]:
        from archivist.records import Actor, ActorKind
        from archivist.store.ledger import LedgerEntry

        # An empty id is the id of nothing, not of everything.
        asked = {"record": record_id, "kind": kind or None}
        wanted = {column: value for column, value in asked.items() if value is not None}
        rows = self._db.execute(
            "SELECT seq, time, actor_kind, actor_name, actor_role, verb, kind, record, payload_hash,"
            f" previous, hash, {'payload' if with_payloads else 'NULL'}"
            f" FROM ledger{' LEFT JOIN ledger_payloads USING (seq)' if with_payloads else ''}"
            f" WHERE seq > ?{''.join(f' AND {column} = ?' for column in wanted)}"
            f" ORDER BY seq{' DESC' if newest_first else ''} LIMIT ?",
            (after, *wanted.values(), -1 if limit is None else limit),
        )
        seq = after
        try:
            for seq, time, actor_kind, name, role, verb, of, record, digest, previous, seal, payload in rows:
                actor = Actor(ActorKind(actor_kind), name, role)
                yield (
                    LedgerEntry(seq, from_text(time), actor, verb, of, record, digest, previous, seal),
                    payload,
                )
        except (ValueError, TypeError) as error:
            raise BankDamagedError("", f"ledger at or after entry {seq}: {error}") from error

    def last_entry(self) -> int:
        return int(self._query_value("SELECT coalesce(max(seq), 0) FROM ledger"))

    def messages(self, *, after: int) -> list[StoredMessage]:
        from archivist.bus import Message, StoredMessage

        rows: Any = self._db.execute(
            "SELECT id, seq, type, time, data FROM messages WHERE id > ? ORDER BY id", (after,)
        )
        return [
            StoredMessage(number, seq, Message(kind, from_text(time), json.loads(data)))
            for number, seq, kind, time, data in rows
        ]

    def last_message(self) -> int:
        sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages'"
        return int(self._query_value(sql))

    def stored_response(self, request: str) -> StoredResponse | None:
        row: Any = self._db.execute(
            "SELECT digest, status, body, time FROM answers WHERE id = ? AND status > 0", (request,)
        ).fetchone()
        return StoredResponse(row[0], row[1], row[2], from_text(row[3])) if row else None

    def setting(self, name: str) -> str:
        return str(self._query_value("SELECT value FROM settings WHERE name = ?", name) or "")

    def file_runs(self, digest: str) -> list[str] | None:
        runs = self._query_value("SELECT runs FROM captured_files WHERE digest = ?", digest)
        return None if runs is None else list(json.loads(runs))

    def queued_runs(self) -> list[QueuedRun]:
        rows = self._db.execute(
            "SELECT run, holder, leased_until, attempts, error FROM pending ORDER BY queued, run"
        )
        return [
            QueuedRun(run, holder, from_text(until) if until else None, attempts, error)
            for run, holder, until, attempts, error in rows
        ]

    def _rows(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        conditions: Sequence[Condition],
        order: Sequence[str],
        limit: int | None,
        after: Sequence[object] | None = None,
    ) -> apsw.Cursor:
        table, columns = self._table_and_columns(record)
        values: list[Any] = []
        where = [_condition_sql(table, columns, condition, values) for condition in conditions]
        if after is not None:
            where.append(_after_sql(table, columns, order, after, values))
        names = [
            f"{_check_column(table, columns, field.lstrip('-'))}{' DESC' if field.startswith('-') else ''}"
            for field in order
        ]
        sql = f"SELECT {', '.join(fields)} FROM {table}{' WHERE ' if where else ''}{' AND '.join(where)}"
        sql += f"{' ORDER BY ' if names else ''}{', '.join(names)}"
        if limit is not None:
            sql, values = f"{sql} LIMIT ?", [*values, limit]
        return self._db.execute(sql, values)

    def _table_and_columns(self, record: type[Any] | str) -> tuple[str, Sequence[str]]:
        """Return a record's table and columns; for the name of a kind the database is asked, once."""
        if not isinstance(record, str):
            how = mapping_for(record)
            return how.table, how.columns
        table = BY_NAME[record].table
        if table not in self._cache.columns:
            rows = self._db.execute(f"PRAGMA table_info({table})")
            self._cache.columns[table] = [str(row[1]) for row in rows]
        return table, self._cache.columns[table]


# Conditions and orders as SQL. Values are always bound, names always checked.


def _after_sql(
    table: str, columns: Sequence[str], order: Sequence[str], cursor: Sequence[object], values: list[Any]
) -> str:
    """Return the condition that a row stands behind a place in an order, and add its values.

    A place has the value of each field of the order. SQLite sorts a missing value before any other.
    """
    options: list[str] = []
    same: list[str] = []
    for number, (field, value) in enumerate(zip(order, cursor, strict=True)):
        # The plus keeps SQLite from gathering each option by an index of its own and sorting all of them:
        # it follows the order and stops when it has enough.
        name = f"+{_check_column(table, columns, field.lstrip('-'))}"
        if field.startswith("-"):
            past = "" if value is None else f"({name} < ? OR {name} IS NULL)"
        else:
            past = f"{name} IS NOT NULL" if value is None else f"{name} > ?"
        if past:
            options.append(" AND ".join([*same, past]))
            values += [bind_value(each) for each in cursor[:number]]
            values += [] if value is None else [bind_value(value)]
        same.append(f"{name} IS ?")
    return _any_sql(options)


def _any_sql(options: Sequence[str]) -> str:
    return "(" + " OR ".join(f"({option})" for option in options) + ")" if options else "0"


def _check_column(table: str, columns: Sequence[str], field: str) -> str:
    if field not in columns and field not in _COMPUTED.get(table, ()):
        raise LookupError(f"{table} has no field {field!r}")
    return field


def _condition_sql(table: str, columns: Sequence[str], condition: Condition, values: list[Any]) -> str:
    """Return one condition as SQL and add its values."""
    if isinstance(condition, AnyOf):
        options = [
            " AND ".join(_condition_sql(table, columns, each, values) for each in part) or "1"
            for part in condition.parts
        ]
        return _any_sql(options)
    name = _check_column(table, columns, condition.field)
    if (table, name) in _INDEXED_TEXTS and condition.test == "=":
        values.append(str(bind_value(condition.value))[:BEGINNING])
        return f"substr({name}, 1, {BEGINNING}) = ? AND {_filter_sql(name, condition, values)}"
    return _filter_sql(name, condition, values)


def _filter_sql(name: str, condition: Filter, values: list[Any]) -> str:
    match condition.test:
        case "=" if condition.value is None:
            return f"{name} IS NULL"
        case "=" | "<>" | ">=" | "<=" | "<" | ">":
            values.append(bind_value(condition.value))
            return f"{name} {condition.test} ?"
        case "in" | "among":
            values.extend(bind_value(value) for value in condition.value)
            # The plus keeps SQLite from gathering and sorting nearly all rows by an index of the field.
            plus = "+" if condition.test == "among" else ""
            return f"{plus}{name} IN ({', '.join('?' * len(condition.value))})"
        case "has":
            values.append(bind_value(condition.value))
            return f"EXISTS (SELECT 1 FROM json_each({name}) WHERE value = ?)"
        case "holds":
            # SQLite lowers ASCII letters only; any other text must match in its case.
            text = bind_value(condition.value)
            is_ascii = isinstance(text, str) and text.isascii()
            values.append(str(text).lower() if is_ascii else text)
            return f"instr({f'lower({name})' if is_ascii else name}, ?) > 0"
    assert_never(condition.test)


def bind_value(value: Any) -> str | int | float | None:
    """Return a value as SQLite takes it."""
    if isinstance(value, StrEnum):
        return value.value
    # An argument of the command line may hold bytes that are not text; no record has such a name.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
