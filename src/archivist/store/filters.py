"""Say which records are wanted, in a few words that every engine can turn into SQL.

Named tuples, because a cold process waits several times longer for a dataclass to be made.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias


class Operator(StrEnum):
    """The ways a field can be tested."""

    IS = "="
    IS_NOT = "<>"
    AT_LEAST = ">="
    AT_MOST = "<="
    BELOW = "<"
    ONE_OF = "in"
    AMONG = "among"
    HAS = "has"
    HOLDS = "holds"


class Filter(NamedTuple):
    """One condition; all conditions given to a store must hold together."""

    field: str
    test: Operator
    value: Any


class AnyOf(NamedTuple):
    """A condition that holds when one of its parts, each a conjunction, does."""

    parts: tuple[tuple["Condition", ...], ...]


Condition: TypeAlias = "Filter | AnyOf"


def equals(field: str, value: Any) -> Filter:
    """Keep records whose field is this value."""
    return Filter(field, Operator.IS, value)


def not_equals(field: str, value: Any) -> Filter:
    """Keep records whose field is not this value."""
    return Filter(field, Operator.IS_NOT, value)


def at_least(field: str, value: Any) -> Filter:
    """Keep records whose field is not below this value."""
    return Filter(field, Operator.AT_LEAST, value)


def at_most(field: str, value: Any) -> Filter:
    """Keep records whose field is not above this value."""
    return Filter(field, Operator.AT_MOST, value)


def starts_with(field: str, start: str) -> tuple[Filter, Filter]:
    """Keep records whose text goes on from this one, which ends in a character of ASCII."""
    # As a range it is found by an index; the end itself is a name of its own.
    end = f"{start[:-1]}{chr(ord(start[-1]) + 1)}"
    return at_least(field, start), Filter(field, Operator.BELOW, end)


def one_of(field: str, values: Iterable[Any]) -> Filter:
    """Keep records whose field is one of these values."""
    return Filter(field, Operator.ONE_OF, tuple(values))


def one_of_unindexed(field: str, values: Iterable[Any]) -> Filter:
    """Keep records whose field is one of these values, as most are: an order is followed, not these."""
    return Filter(field, Operator.AMONG, tuple(values))


def contains_item(field: str, value: Any) -> Filter:
    """Keep records whose list contains this value."""
    return Filter(field, Operator.HAS, value)


def contains_text(field: str, text: str) -> Filter:
    """Keep records whose text has this one somewhere in it, in capitals or not."""
    return Filter(field, Operator.HOLDS, text)


def any_of(*parts: "Iterable[Condition]") -> AnyOf:
    """Keep records for which one of the parts holds wholly."""
    return AnyOf(tuple(tuple(part) for part in parts))
