"""Read a bank, the same in every SQL engine: conditions, orders and records as statements.

Every statement here and in `sql_writer` carries `bank = :bank` or inserts `:bank`, so that one database can
hold many banks. In SQLite a bank is a file of its own, and `without_bank` takes that part out again. Values
are always bound, names always checked.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, assert_never

from archivist.clock import from_text
from archivist.cold_start import lazy_pattern
from archivist.errors import BankDamagedError, CursorError
from archivist.store.filters import AnyOf, Condition, Filter
from archivist.store.protocol import Reader
from archivist.store.results import QueuedRun, StoredResponse, split_batches
from archivist.store.rows import is_valid_cursor, mapping_for

if TYPE_CHECKING:
    from archivist.bus import StoredMessage
    from archivist.records import Tally
    from archivist.store.ledger import LedgerEntry

R = TypeVar("R")
# Bound values in one statement; well below the limit of any engine.
BATCH = 500
COUNT = ("count(*)",)
# What a table computes by itself, beside the record's own fields.
COMPUTED = {"lessons": ("frequency", "is_waiting"), "episodes": ("provenance",)}
_BANK = lazy_pattern(r"(?:\w\.)?bank = :bank AND | WHERE (?:\w\.)?bank = :bank(?! AND)|\bbank, |:bank, ")


class ResultRows(Protocol):
    """The rows that a statement gave."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class SqlDialect(Protocol):
    """How an engine spells what SQL does not spell in one way."""

    # The order of records when none is asked for: some, so that the same question has the same answer.
    usual_order: tuple[str, ...]

    def order(self, table: str, name: str, *, is_descending: bool) -> str:
        """Return a column in an ORDER BY, missing values before all others when it ascends."""

    def skip_index(self, name: str) -> str:
        """Return a column so that its index is not used, where following an order is quicker."""

    def is_same(self, name: str) -> str:
        """Return the test that a column is a value, or is missing like it."""

    def is_one_of(self, name: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """Return the test that a column is one of some values, and what is bound."""

    def contains_item(self, name: str, value: Any) -> tuple[str, Any]:
        """Return the test that a JSON list contains a value, and what is bound."""

    def contains_text(self, name: str) -> str:
        """Return the test that a text contains another."""

    def equals_text(self, table: str, name: str, value: Any) -> tuple[str, list[Any]]:
        """Return the test that a column is a value, by an index of long texts, and what is bound."""


@lru_cache(maxsize=1024)
def without_bank(sql: str) -> str:
    """Return a statement for a database that holds one bank alone."""
    return _BANK.sub("", sql)


@cache
def upsert_sql(record: Any) -> str:
    """Return the statement that inserts or replaces a record."""
    how = mapping_for(record)
    changes = ", ".join(f"{name} = excluded.{name}" for name in how.columns if name != "id")
    return (
        f"INSERT INTO {how.table} (bank, {how.column_list}) VALUES (:bank, {marks(how.columns)})"
        f" ON CONFLICT (bank, id) DO UPDATE SET {changes}"
    )


def marks(values: Sequence[Any]) -> str:
    """Return as many marks for bound values."""
    return ", ".join("?" * len(values))


def select_sql(
    dialect: SqlDialect,
    table: str,
    columns: Sequence[str],
    fields: Sequence[str],
    conditions: Iterable[Condition],
    order: Sequence[str],
    limit: int | None,
    after: Sequence[object] | None,
) -> tuple[str, list[Any]]:
    """Return the statement that selects fields of a table's rows, and its values."""
    values: list[Any] = []
    where = ["bank = :bank"]
    where += [_condition_sql(dialect, table, columns, condition, values) for condition in conditions]
    if after is not None:
        where.append(_after_sql(dialect, table, columns, order, after, values))
    names = [
        dialect.order(
            table, check_column(table, columns, field.lstrip("-")), is_descending=field.startswith("-")
        )
        for field in order or (dialect.usual_order if fields != COUNT else ())
    ]
    sql = f"SELECT {', '.join(fields)} FROM {table} WHERE {' AND '.join(where)}"
    sql += f"{' ORDER BY ' if names else ''}{', '.join(names)}"
    if limit is not None:
        sql, values = f"{sql} LIMIT ?", [*values, limit]
    return sql, values


def check_column(table: str, columns: Sequence[str], field: str) -> str:
    """Return a field's name; raise LookupError when the table has none of it."""
    if field not in columns and field not in COMPUTED.get(table, ()):
        raise LookupError(f"{table} has no field {field!r}")
    return field


def _after_sql(
    dialect: SqlDialect,
    table: str,
    columns: Sequence[str],
    order: Sequence[str],
    cursor: Sequence[object],
    values: list[Any],
) -> str:
    """Return the condition that a row stands behind a place in an order, and add its values.

    A place has the value of each field of the order. A missing value is sorted before any other.
    """
    options: list[str] = []
    same: list[str] = []
    for number, (field, value) in enumerate(zip(order, cursor, strict=True)):
        # Each option by an index of its own would gather and sort all rows; following the order stops early.
        name = dialect.skip_index(check_column(table, columns, field.lstrip("-")))
        if field.startswith("-"):
            past = "" if value is None else f"({name} < ? OR {name} IS NULL)"
        else:
            past = f"{name} IS NOT NULL" if value is None else f"{name} > ?"
        if past:
            options.append(" AND ".join([*same, past]))
            values += [bind_value(each) for each in cursor[:number]]
            values += [] if value is None else [bind_value(value)]
        same.append(dialect.is_same(name))
    return _any_sql(options)


def _any_sql(options: Sequence[str]) -> str:
    return "(" + " OR ".join(f"({option})" for option in options) + ")" if options else "1 = 0"


def _condition_sql(
    dialect: SqlDialect, table: str, columns: Sequence[str], condition: Condition, values: list[Any]
) -> str:
    """Return one condition as SQL and add its values."""
    if isinstance(condition, AnyOf):
        options = [
            " AND ".join(_condition_sql(dialect, table, columns, each, values) for each in part) or "1 = 1"
            for part in condition.parts
        ]
        return _any_sql(options)
    name = check_column(table, columns, condition.field)
    if condition.test == "=" and condition.value is not None:
        test, more = dialect.equals_text(table, name, bind_value(condition.value))
        values += more
        return test
    return _filter_sql(dialect, name, condition, values)


def _filter_sql(dialect: SqlDialect, name: str, condition: Filter, values: list[Any]) -> str:
    match condition.test:
        case "=":
            return f"{name} IS NULL"
        case "<>" | ">=" | "<=" | "<" | ">":
            values.append(bind_value(condition.value))
            return f"{name} {condition.test} ?"
        case "in" | "among":
            if not condition.value:
                return "1 = 0"
            name = dialect.skip_index(name) if condition.test == "among" else name
            test, bound = dialect.is_one_of(name, [bind_value(value) for value in condition.value])
            values.extend(bound)
            return test
        case "has":
            test, value = dialect.contains_item(name, bind_value(condition.value))
            values.append(value)
            return test
        case "holds":
            # Engines lower ASCII letters only; any other text must match in its case.
            text = bind_value(condition.value)
            is_ascii = isinstance(text, str) and text.isascii()
            values.append(str(text).lower() if is_ascii else text)
            return dialect.contains_text(f"lower({name})" if is_ascii else name)
    assert_never(condition.test)


def bind_value(value: Any) -> str | int | float | None:
    """Return a value as an engine takes it."""
    if isinstance(value, StrEnum):
        return value.value
    # An argument of the command line may hold bytes that are not text; no record has such a name.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


class SqlReader(Reader):
    """A view of the bank within a transaction; `store.protocol` describes the methods."""

    _dialect: ClassVar[SqlDialect]

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> ResultRows:
        """Run one statement, which carries the bank."""

    @abstractmethod
    def _table_and_columns(self, record: type[Any] | str) -> tuple[str, Sequence[str]]:
        """Return a record's table and columns."""

    @abstractmethod
    def stored_vectors(self, embedder: str, places: Sequence[int]) -> dict[int, bytes]:
        """Return the half floats of the documents that have a vector of this embedder."""

    def _stream(self, sql: str, values: Sequence[Any] = ()) -> ResultRows:
        """Run one statement whose rows are too many to hold at once."""
        return self.execute(sql, values)

    def get(self, record: type[R], record_id: str) -> R | None:
        how = mapping_for(record)
        sql = f"SELECT {how.column_list} FROM {how.table} WHERE bank = :bank AND id = ?"
        try:
            row = self.execute(sql, (bind_value(record_id),)).fetchone()
        except UnicodeDecodeError as error:
            raise BankDamagedError("", f"{how.table} {record_id!r}: {error}") from error
        return how.to_record(row) if row else None

    def select(
        self,
        record: type[R],
        *conditions: Any,
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
        *conditions: Any,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        table, columns = self._table_and_columns(record)
        for field in fields:
            check_column(table, columns, field)
        return list(self._rows(record, fields, conditions, order, limit))

    def count(self, record: type[Any] | str, *conditions: Any) -> int:
        row: Any = self._rows(record, COUNT, conditions, (), None).fetchone()
        return int(row[0])

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        from archivist.records import Tally

        found: dict[str, Tally] = {}
        columns = ", ".join(Tally._fields)
        sql = f"SELECT lesson, {columns} FROM tallies WHERE bank = :bank AND lesson IN ({{}})"
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
        asked = {"record": bind_value(record_id), "kind": kind or None}
        wanted = {column: value for column, value in asked.items() if value is not None}
        payload = "(SELECT payload FROM ledger_payloads p WHERE p.bank = :bank AND p.seq = ledger.seq)"
        sql = (
            "SELECT seq, time, actor_kind, actor_name, actor_role, verb, kind, record, payload_hash,"
            f" previous, hash, {payload if with_payloads else 'NULL'} FROM ledger"
            f" WHERE bank = :bank AND seq > ?{''.join(f' AND {column} = ?' for column in wanted)}"
            f" ORDER BY seq{' DESC' if newest_first else ''}{' LIMIT ?' if limit is not None else ''}"
        )
        values = (after, *wanted.values(), *(() if limit is None else (limit,)))
        is_long = limit is None and record_id is None
        seq = after
        try:
            rows = self._stream(sql, values) if is_long else self.execute(sql, values)
            for seq, time, actor_kind, name, role, verb, of, record, digest, previous, seal, text in rows:
                actor = Actor(ActorKind(actor_kind), name, role)
                yield (
                    LedgerEntry(seq, from_text(time), actor, verb, of, record, digest, previous, seal),
                    text,
                )
        except (ValueError, TypeError) as error:
            raise BankDamagedError("", f"ledger at or after entry {seq}: {error}") from error

    def last_entry(self) -> int:
        return int(self.query_value("SELECT coalesce(max(seq), 0) FROM ledger WHERE bank = :bank"))

    def messages(self, *, after: int) -> list[StoredMessage]:
        from archivist.bus import Message, StoredMessage

        sql = "SELECT id, seq, type, time, data FROM messages WHERE bank = :bank AND id > ? ORDER BY id"
        return [
            StoredMessage(number, seq, Message(kind, from_text(time), json.loads(data)))
            for number, seq, kind, time, data in self.execute(sql, (after,))
        ]

    def stored_response(self, request: str) -> StoredResponse | None:
        sql = "SELECT digest, status, body, time FROM answers WHERE bank = :bank AND id = ? AND status > 0"
        row = self.execute(sql, (request,)).fetchone()
        return StoredResponse(row[0], row[1], row[2], from_text(row[3])) if row else None

    def setting(self, name: str) -> str:
        return str(self.query_value("SELECT value FROM settings WHERE bank = :bank AND name = ?", name) or "")

    def file_runs(self, digest: str) -> list[str] | None:
        sql = "SELECT runs FROM captured_files WHERE bank = :bank AND digest = ?"
        runs = self.query_value(sql, digest)
        return None if runs is None else list(json.loads(runs))

    def queued_runs(self) -> list[QueuedRun]:
        rows = self.execute(
            "SELECT run, holder, leased_until, attempts, error FROM pending WHERE bank = :bank"
            " ORDER BY queued, run"
        )
        return [
            QueuedRun(run, holder, from_text(until) if until else None, attempts, error)
            for run, holder, until, attempts, error in rows
        ]

    def known_speakers(self, names: Sequence[str]) -> set[str]:
        sql = "SELECT name FROM speakers WHERE bank = :bank AND name IN ({})"
        return {name for (name,) in self._query_each(sql, names)}

    def index_places(self, kind: str, ids: Sequence[str]) -> list[int]:
        sql = "SELECT id FROM documents WHERE bank = :bank AND record IN ({}) AND kind = ?"
        return [place for (place,) in self._query_each(sql, ids, kind)]

    def embedder_in_use(self) -> str:
        return str(self.query_value("SELECT name FROM embedders WHERE bank = :bank AND is_used = 1") or "")

    def embedder_dimensions(self, embedder: str) -> int:
        known = self._embedder(embedder)
        return known[1] if known else 0

    def unembedded_documents(self, embedder: str, *, limit: int) -> list[tuple[int, int, str, str]]:
        return self._query_unembedded("id, revision, kind, record", embedder, limit)

    def pending_embedding_count(self, embedder: str) -> int:
        return sum(count for (count,) in self._query_unembedded("count(*)", embedder, 2))

    def _query_unembedded(self, columns: str, embedder: str, limit: int) -> list[Any]:
        """Select from two ranges of the index, on both sides of the embedder's own number."""
        known = self._embedder(embedder)
        mine = known[0] if known else 0
        return self.execute(
            f"SELECT {columns} FROM documents WHERE bank = :bank AND embedder BETWEEN 0 AND ?"
            f" UNION ALL SELECT {columns} FROM documents WHERE bank = :bank AND embedder > ? LIMIT ?",
            (max(mine, 1) - 1, mine, limit),
        ).fetchall()

    def _embedder(self, name: str) -> tuple[int, int] | None:
        # After the index was cleared the length of its vectors is 0: the next ones decide it anew.
        sql = "SELECT id, dimensions FROM embedders WHERE bank = :bank AND name = ? AND dimensions > 0"
        row = self.execute(sql, (name,)).fetchone()
        return (int(row[0]), int(row[1])) if row else None

    def _rows(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        conditions: Sequence[Any],
        order: Sequence[str],
        limit: int | None,
        after: Sequence[object] | None = None,
    ) -> ResultRows:
        table, columns = self._table_and_columns(record)
        return self.execute(
            *select_sql(self._dialect, table, columns, fields, conditions, order, limit, after)
        )

    def query_value(self, sql: str, *values: Any) -> Any:
        """Return the first value of the first row, or None."""
        row = self.execute(sql, values).fetchone()
        return row[0] if row else None

    def _query_each(self, sql: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        """Yield the rows of a query whose `IN ({})` lists many keys, in batches; `values` come after it."""
        for batch in split_batches(keys, BATCH):
            yield from self.execute(sql.format(marks(batch)), (*batch, *values))
