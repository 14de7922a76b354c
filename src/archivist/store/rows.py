"""Map any record to a row and back: scalars as columns, everything nested as JSON text."""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from archivist.clock import to_text
from archivist.errors import BankDamagedError, RecordError
from archivist.records.kinds import kind_for
from archivist.records.plain import canonical_json, decoder, to_plain, types_of

R = TypeVar("R")
# What reading a nonsensical value raises.
DECODING_ERRORS = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, struct.error,
)  # fmt: skip


class TableMapping(NamedTuple, Generic[R]):
    """How the records of one class are stored in their table.

    A derived id (`run#seq`) is one more column in front of the record's own fields.
    """

    record: type[R]
    table: str
    columns: tuple[str, ...]
    has_derived_id: bool
    encoders: tuple[Callable[[Any], Any], ...]
    # Read all fields at once, then change those that the table holds in another form.
    read_fields: Callable[[R], tuple[Any, ...]]
    changed_columns: tuple[tuple[int, Callable[[Any], Any]], ...]
    # Only of the columns that hold something else than the record.
    decoders: Mapping[str, Callable[[Any], Any]]
    # The types that each column may hold, and the combinations of them that rows were seen to have.
    stored_types: tuple[tuple[type, ...], ...]
    checked: set[tuple[type, ...]]

    @property
    def column_list(self) -> str:
        """Return the columns as a SELECT or INSERT lists them."""
        return ", ".join(self.columns)

    def to_row(self, record: R) -> tuple[Any, ...]:
        """Return the values for the columns."""
        row = [*self.read_fields(record)]
        for at, encode in self.changed_columns:
            row[at] = encode(row[at])
        return tuple(row)

    def to_record(self, row: Sequence[Any]) -> R:
        """Build the record that a row of these columns holds; raise BankDamagedError when it holds none."""
        try:
            # A damaged page can hold a number where a text was written: one lookup checks a whole row.
            if (types := tuple(map(type, row))) not in self.checked:
                self._check_types(types)
            values = dict(zip(self.columns, row, strict=True))
            for name, decode in self.decoders.items():
                values[name] = decode(values[name])
            if self.has_derived_id:
                del values["id"]
            return self.record(**values)
        except (RecordError, *DECODING_ERRORS) as error:
            raise BankDamagedError("", f"{self.table} {str(row[0])[:80]!r}: {error}") from error

    def _check_types(self, types: tuple[type, ...]) -> None:
        for name, kind, allowed in zip(self.columns, types, self.stored_types, strict=True):
            if kind not in allowed:
                raise RecordError(f"{name} holds {kind.__name__}, not {allowed[0].__name__}")
        self.checked.add(types)


def mapping_for(record: type[R]) -> TableMapping[R]:
    """Return the mapping of a record class."""
    mapping: TableMapping[R] = _build_mapping(record)  # type: ignore[arg-type]
    return mapping


@cache
def _build_mapping(record: Any) -> TableMapping[Any]:
    types = types_of(record)
    has_derived_id = "id" not in types
    types = {"id": str, **types} if has_derived_id else types
    codecs = [_codec(kind) for kind in types.values()]
    return TableMapping(
        record,
        kind_for(record).table,
        tuple(types),
        has_derived_id,
        tuple(encode for encode, _ in codecs),
        attrgetter(*types),
        tuple((at, encode) for at, (encode, _) in enumerate(codecs) if encode is not _as_is),
        {name: decode for name, (_, decode) in zip(types, codecs, strict=True) if decode is not _as_is},
        tuple(_stored_types(kind) for kind in types.values()),
        set(),
    )


def _stored_types(kind: Any) -> tuple[type, ...]:
    """Return the types that a column of this kind may hold."""
    if get_origin(kind) in (Union, UnionType):
        return *(
            each for part in get_args(kind) if part is not NoneType for each in _stored_types(part)
        ), NoneType
    return {int: (int,), bool: (int,), float: (float, int)}.get(kind, (str,))


def cursor_of(record: Any, order: Sequence[str]) -> tuple[str | int | float | None, ...]:
    """Return a record's place in an order: the value of each field of the order, as the table holds it."""
    how = mapping_for(type(record))
    encoders = dict(zip(how.columns, how.encoders, strict=True))
    names = [field.lstrip("-") for field in order]
    return tuple(encoders.get(name, _as_is)(getattr(record, name)) for name in names)


def is_valid_cursor(record: type[Any], order: Sequence[str], cursor: Sequence[object]) -> bool:
    """Say whether values can be a record's place in an order: one for each field, as the table holds it."""
    types = types_of(record)  # type: ignore[arg-type]
    if len(cursor) != len(order):
        return False
    for field, value in zip(order, cursor, strict=True):
        name = field.lstrip("-")
        # A field that the record computes has its type on the property.
        kind = types[name] if name in types else get_type_hints(getattr(record, name).fget)["return"]
        try:
            if to_plain(decoder(kind)(value)) != value:
                return False
        except (RecordError, OverflowError):
            return False
    return True


def _codec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return how values of a type are written to a column and read from it."""
    if get_origin(kind) in (Union, UnionType):
        encode, decode = _codec(next(part for part in get_args(kind) if part is not NoneType))
        return (
            lambda value: None if value is None else encode(value),
            _as_is if decode is _as_is else lambda value: None if value is None else decode(value),
        )
    if kind is datetime:
        return to_text, decoder(datetime)
    if kind is bool:
        return int, bool
    if kind in (str, int, float):
        return _as_is, _as_is
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return str, kind
    if kind == tuple[str, ...]:
        return _to_json, _texts_from_json
    read = decoder(kind)

    def from_json(text: str) -> Any:
        # Most nested values are empty; an object is made anew each time because its owner may keep it.
        if text == "[]":
            return read(())
        return read(json.loads(text)) if text != "{}" else read({})

    return _to_json, from_json


def _texts_from_json(text: str) -> tuple[str, ...]:
    items = json.loads(text) if text != "[]" else []
    # Joining fails for anything but texts, and is the quickest test: a lesson's runs are the longest lists.
    if type(items) is not list or "".join(items) is None:
        raise RecordError("not a list of texts")
    return tuple(items)


def _as_is(value: Any) -> Any:
    return value


def _to_json(value: Any) -> str:
    if value == ():
        return "[]"
    return canonical_json(to_plain(value)) if value != {} else "{}"
