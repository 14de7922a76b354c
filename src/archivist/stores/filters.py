"""Say which records are wanted, in a few words that every engine can turn into SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias


class Test(StrEnum):
    """The ways a field can be tested."""

    IS = "="
    IS_NOT = "<>"
    AT_LEAST = ">="
    AT_MOST = "<="
    ONE_OF = "in"
    HAS = "has"
    HOLDS = "holds"


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition; all conditions given to a store must hold together."""

    field: str
    test: Test
    value: Any


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that holds when one of its parts, each a conjunction, does."""

    parts: tuple[tuple[Condition, ...], ...]


Condition: TypeAlias = "Filter | AnyOf"


def equals(field: str, value: Any) -> Filter:
    """Keep records whose field is this value."""
    return Filter(field, Test.IS, value)


def differs(field: str, value: Any) -> Filter:
    """Keep records whose field is not this value."""
    return Filter(field, Test.IS_NOT, value)


def at_least(field: str, value: Any) -> Filter:
    """Keep records whose field is not below this value."""
    return Filter(field, Test.AT_LEAST, value)


def at_most(field: str, value: Any) -> Filter:
    """Keep records whose field is not above this value."""
    return Filter(field, Test.AT_MOST, value)


def one_of(field: str, values: Iterable[Any]) -> Filter:
    """Keep records whose field is one of these values."""
    return Filter(field, Test.ONE_OF, tuple(values))


def has(field: str, value: Any) -> Filter:
    """Keep records whose list contains this value."""
    return Filter(field, Test.HAS, value)


def holds(field: str, text: str) -> Filter:
    """Keep records whose text has this one somewhere in it, in capitals or not."""
    return Filter(field, Test.HOLDS, text)


def any_of(*parts: Iterable[Condition]) -> AnyOf:
    """Keep records for which one of the parts holds wholly."""
    return AnyOf(tuple(tuple(part) for part in parts))
