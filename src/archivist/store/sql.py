"""Conditions, orders and records as statements, the same for every SQL engine.

Every statement carries `bank = :bank` or inserts `:bank`, so that one database can hold many banks. In SQLite
a bank is a file of its own, and `without_bank` takes that part out again. Values are always bound, names
always checked. Orders and comparisons follow SQLite: in an ascending order a missing value comes before any
other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, NamedTuple, assert_never

from archivist.cold_start import lazy_pattern
from archivist.store.filters import AnyOf, Condition, Filter
from archivist.store.rows import mapping_for

# Bound values in one statement; well below the limit of any engine.
BATCH = 500
COUNT = ("count(*)",)
# What a table computes by itself, beside the record's own fields.
_COMPUTED = {"lessons": ("frequency", "is_waiting"), "episodes": ("provenance",)}
_BANK = lazy_pattern(r"(?:\w\.)?bank = :bank AND | WHERE (?:\w\.)?bank = :bank(?! AND)|\bbank, |:bank, ")


class SqlDialect(NamedTuple):
    """How an engine spells what SQL does not spell in one way, with `{}` for the column."""

    # That a column is a value, or is missing like it; that a text contains another; that a JSON list contains
    # a value, which is bound in a form of its own.
    is_same: str
    contains_text: str
    contains_item: str
    item: Callable[[Any], Any]
    # That a column is one of some values, with what is bound.
    one_of: Callable[[str, Sequence[Any]], tuple[str, Sequence[Any]]]
    # A column whose index is not used, where following an order is quicker.
    without_index: str = "{}"
    # The order of records when none is asked for: some, so that the same question has the same answer.
    usual_order: tuple[str, ...] = ()
    # The columns by table that may be missing: only where the engine sorts missing values otherwise.
    nullable: Mapping[str, frozenset[str]] = {}
    # The texts, by table and column, that are indexed by so many characters of their beginning.
    indexed_beginnings: Mapping[tuple[str, str], int] = {}


class SqlTable(NamedTuple):
    """A table of records, as one engine has it."""

    dialect: SqlDialect
    name: str
    columns: Sequence[str]

    def column(self, field: str) -> str:
        """Return a field's name, without the mark of an order; raise LookupError when there is none of it."""
        name = field.lstrip("-")
        if name not in self.columns and name not in _COMPUTED.get(self.name, ()):
            raise LookupError(f"{self.name} has no field {name!r}")
        return name

    def order_by(self, field: str) -> str:
        """Return a field of an order, missing values before all others when it ascends."""
        name, is_descending = self.column(field), field.startswith("-")
        order = f"{name} DESC" if is_descending else name
        # Only where it is needed: an index follows the order without these words.
        if name in self.dialect.nullable.get(self.name, ()):
            order += " NULLS LAST" if is_descending else " NULLS FIRST"
        return order


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
    table: SqlTable,
    fields: Sequence[str],
    conditions: Iterable[Condition],
    order: Sequence[str] = (),
    limit: int | None = None,
    after: Sequence[object] | None = None,
) -> tuple[str, list[Any]]:
    """Return the statement that selects fields of a table's rows, and its values."""
    values: list[Any] = []
    where = ["bank = :bank", *(_condition_sql(table, condition, values) for condition in conditions)]
    if after is not None:
        where.append(_after_sql(table, order, after, values))
    names = [
        table.order_by(field) for field in order or (table.dialect.usual_order if fields != COUNT else ())
    ]
    sql = f"SELECT {', '.join(fields)} FROM {table.name} WHERE {' AND '.join(where)}"
    sql += f"{' ORDER BY ' if names else ''}{', '.join(names)}"
    if limit is not None:
        sql, values = f"{sql} LIMIT ?", [*values, limit]
    return sql, values


def _after_sql(table: SqlTable, order: Sequence[str], cursor: Sequence[object], values: list[Any]) -> str:
    """Return the condition that a row stands behind a place in an order, and add its values.

    A place has the value of each field of the order. A missing value is sorted before any other.
    """
    options: list[str] = []
    same: list[str] = []
    for number, (field, value) in enumerate(zip(order, cursor, strict=True)):
        # Each option by an index of its own would gather and sort all rows; following the order stops early.
        name = table.dialect.without_index.format(table.column(field))
        if field.startswith("-"):
            past = "" if value is None else f"({name} < ? OR {name} IS NULL)"
        else:
            past = f"{name} IS NOT NULL" if value is None else f"{name} > ?"
        if past:
            options.append(" AND ".join([*same, past]))
            values += [bind_value(each) for each in cursor[:number]]
            values += [] if value is None else [bind_value(value)]
        same.append(table.dialect.is_same.format(name))
    return _any_sql(options)


def _any_sql(options: Sequence[str]) -> str:
    return "(" + " OR ".join(f"({option})" for option in options) + ")" if options else "1 = 0"


def _condition_sql(table: SqlTable, condition: Condition, values: list[Any]) -> str:
    """Return one condition as SQL and add its values."""
    if isinstance(condition, AnyOf):
        return _any_sql(
            [
                " AND ".join(_condition_sql(table, each, values) for each in part) or "1 = 1"
                for part in condition.parts
            ]
        )
    return _filter_sql(table, table.column(condition.field), condition, values)


def _filter_sql(table: SqlTable, name: str, condition: Filter, values: list[Any]) -> str:
    dialect, asked = table.dialect, condition.value
    match condition.test:
        case "=" if asked is None:
            return f"{name} IS NULL"
        case "=" if count := dialect.indexed_beginnings.get((table.name, name)):
            values += [str(asked)[:count], bind_value(asked)]
            return f"substr({name}, 1, {count}) = ? AND {name} = ?"
        case "=" | "<>" | ">=" | "<=" | "<" | ">":
            values.append(bind_value(asked))
            return f"{name} {condition.test} ?"
        case "in" | "among":
            if not asked:
                return "1 = 0"
            name = dialect.without_index.format(name) if condition.test == "among" else name
            test, bound = dialect.one_of(name, [bind_value(value) for value in asked])
            values.extend(bound)
            return test
        case "has":
            values.append(dialect.item(bind_value(asked)))
            return dialect.contains_item.format(name)
        case "holds":
            # Engines lower ASCII letters only; any other text must match in its case.
            text = bind_value(asked)
            is_ascii = isinstance(text, str) and text.isascii()
            values.append(str(text).lower() if is_ascii else text)
            return dialect.contains_text.format(f"lower({name})" if is_ascii else name)
    assert_never(condition.test)


def bind_value(value: Any) -> str | int | float | None:
    """Return a value as an engine takes it."""
    if isinstance(value, StrEnum):
        return value.value
    # An argument of the command line may hold bytes that are not text; no record has such a name.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
