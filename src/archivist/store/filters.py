"""Conditions on records, in a form that every engine can turn into SQL.

Named tuples, because making a dataclass takes a cold process several times longer.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from archivist.errors import InputError

# The ways a field can be tested; most are operators of SQL.
Operator: TypeAlias = Literal["=", "<>", ">=", "<=", "<", ">", "in", "among", "has", "holds"]

# A statement of thousands of conditions is refused by the engines.
MOST_ASKED = 50


class Filter(NamedTuple):
    """One condition; all conditions given to a store must hold together."""

    field: str
    test: Operator
    value: Any


class AnyOf(NamedTuple):
    """A condition that holds when all conditions of one of its parts hold."""

    parts: tuple[tuple["Condition", ...], ...]


Condition: TypeAlias = "Filter | AnyOf"


def refuse_many(name: str, asked: Sequence[object]) -> None:
    """Raise InputError where a question names too many of something."""
    if len(asked) > MOST_ASKED:
        raise InputError(
            f"{len(asked):,} {name} are too many: at most {MOST_ASKED}", hint="ask in several parts"
        )


def equals(field: str, value: Any) -> Filter:
    """Keep records whose field is this value."""
    return Filter(field, "=", value)


def not_equals(field: str, value: Any) -> Filter:
    """Keep records whose field is not this value."""
    return Filter(field, "<>", value)


def at_least(field: str, value: Any) -> Filter:
    """Keep records whose field is not below this value."""
    return Filter(field, ">=", value)


def at_most(field: str, value: Any) -> Filter:
    """Keep records whose field is not above this value."""
    return Filter(field, "<=", value)


def above(field: str, value: Any) -> Filter:
    """Keep records whose field is greater than this value."""
    return Filter(field, ">", value)


def starts_with(field: str, start: str) -> tuple[Filter, Filter]:
    """Keep records whose text is longer than this one and begins with it; it must end in ASCII."""
    # An index finds a range, but not a pattern.
    end = f"{start[:-1]}{chr(ord(start[-1]) + 1)}"
    return at_least(field, start), Filter(field, "<", end)


def one_of(field: str, values: Iterable[Any]) -> Filter:
    """Keep records whose field is one of these values."""
    return Filter(field, "in", tuple(values))


def one_of_unindexed(field: str, values: Iterable[Any]) -> Filter:
    """Keep records whose field is one of these values, without the field's index.

    For values that most records have: following the index of the order is quicker.
    """
    return Filter(field, "among", tuple(values))


def contains_item(field: str, value: Any) -> Filter:
    """Keep records whose list contains this value."""
    return Filter(field, "has", value)


def contains_text(field: str, text: str) -> Filter:
    """Keep records whose text contains this one, ignoring the case of ASCII letters."""
    return Filter(field, "holds", text)


def any_of(*parts: "Iterable[Condition]") -> AnyOf:
    """Keep records for which all conditions of at least one part hold."""
    return AnyOf(tuple(tuple(part) for part in parts))
