"""What the records that hooks read and write share.

`dataclass` compiles comparison, hash and representation for each class, which took a cold process 0.4 ms a
class; these are written once.
"""

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any


class Record:
    """Compares, hashes and shows a dataclass by its fields."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _getter_of(self)
        return bool(values(self) == values(other))

    def __hash__(self) -> int:
        return hash(_getter_of(self)(self))

    def __repr__(self) -> str:
        kind: Any = self.__class__
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(kind))
        return f"{kind.__qualname__}({shown})"


def _getter_of(record: Any) -> "attrgetter[Any]":
    """Return what reads all fields of a record's class."""
    return _make_getter(record.__class__)


@cache
def _make_getter(kind: Any) -> "attrgetter[Any]":
    return attrgetter(*(each.name for each in fields(kind)))
