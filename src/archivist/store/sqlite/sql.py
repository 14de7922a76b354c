"""Turn conditions and orders into SQLite's SQL. Values are always bound, names always checked."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, assert_never

from archivist.store.filters import AnyOf, Condition, Filter, Operator

# What a table computes by itself, beside the record's own fields.
_COMPUTED = {"lessons": ("frequency",)}


def where_clause(
    table: str, columns: Sequence[str], conditions: Sequence[Condition]
) -> tuple[str, list[str | int | float | None]]:
    """Return the WHERE clause (or nothing) and its values."""
    values: list[str | int | float | None] = []
    parts = [_condition_sql(table, columns, condition, values) for condition in conditions]
    return (" WHERE " + " AND ".join(parts) if parts else ""), values


def order_by(table: str, columns: Sequence[str], order: Sequence[str]) -> str:
    """Return the ORDER BY clause; a leading `-` turns a field round."""
    if not order:
        return ""
    names = [
        f"{_column_name(table, columns, field.lstrip('-'))}{' DESC' if field.startswith('-') else ''}"
        for field in order
    ]
    return " ORDER BY " + ", ".join(names)


def after_clause(
    table: str, columns: Sequence[str], order: Sequence[str], cursor: Sequence[object]
) -> tuple[str, list[str | int | float | None]]:
    """Return the condition that a row stands behind a place in an order, and its values.

    A place has the value of each field of the order. As SQLite sorts, nothing at all comes before any value.
    """
    options: list[str] = []
    values: list[str | int | float | None] = []
    same: list[str] = []
    for number, (field, value) in enumerate(zip(order, cursor, strict=True)):
        # The plus keeps SQLite from gathering each option by an index of its own and sorting all of them:
        # it follows the order and stops when it has enough.
        name = f"+{_column_name(table, columns, field.lstrip('-'))}"
        if field.startswith("-"):
            past = "" if value is None else f"({name} < ? OR {name} IS NULL)"
        else:
            past = f"{name} IS NOT NULL" if value is None else f"{name} > ?"
        if past:
            options.append(" AND ".join([*same, past]))
            values += [bind_value(each) for each in cursor[:number]]
            values += [] if value is None else [bind_value(value)]
        same.append(f"{name} IS ?")
    return "(" + " OR ".join(f"({option})" for option in options) + ")" if options else "0", values


def _column_name(table: str, columns: Sequence[str], field: str) -> str:
    if field not in columns and field not in _COMPUTED.get(table, ()):
        raise LookupError(f"{table} has no field {field!r}")
    return field


def _condition_sql(table: str, columns: Sequence[str], condition: Condition, values: list[Any]) -> str:
    if isinstance(condition, AnyOf):
        options = [
            " AND ".join(_condition_sql(table, columns, each, values) for each in part) or "1"
            for part in condition.parts
        ]
        return "(" + " OR ".join(f"({option})" for option in options) + ")" if options else "0"
    return _operator_sql(_column_name(table, columns, condition.field), condition, values)


def _operator_sql(name: str, condition: Filter, values: list[Any]) -> str:
    match condition.test:
        case Operator.IS if condition.value is None:
            return f"{name} IS NULL"
        case Operator.IS | Operator.IS_NOT | Operator.AT_LEAST | Operator.AT_MOST | Operator.BELOW:
            values.append(bind_value(condition.value))
            return f"{name} {condition.test.value} ?"
        case Operator.ONE_OF | Operator.AMONG:
            values.extend(bind_value(value) for value in condition.value)
            # The plus keeps SQLite from gathering and sorting nearly all there is by an index of the field.
            plus = "+" if condition.test is Operator.AMONG else ""
            return f"{plus}{name} IN ({', '.join('?' * len(condition.value))})"
        case Operator.HAS:
            values.append(bind_value(condition.value))
            return f"EXISTS (SELECT 1 FROM json_each({name}) WHERE value = ?)"
        case Operator.HOLDS:
            # SQLite knows the capitals of ASCII only; another text must stand as it is written.
            text = bind_value(condition.value)
            if isinstance(text, str) and text.isascii():
                values.append(text.lower())
                return f"instr(lower({name}), ?) > 0"
            values.append(text)
            return f"instr({name}, ?) > 0"
    assert_never(condition.test)


def bind_value(value: Any) -> str | int | float | None:
    """Return a value as SQLite takes it."""
    if isinstance(value, StrEnum):
        return value.value
    # A word of the command line may hold bytes that are no text; nothing is called so.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
