"""Map any record to a row and back: scalars as columns, everything nested as JSON text."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from archivist.clock import to_text
from archivist.errors import RecordError
from archivist.records.plain import canonical_json, decoder, to_plain, types_of

R = TypeVar("R")

# The records that a store keeps: the ledger's word for the kind, and the table.
TABLES = {
    "Lesson": ("lesson", "lessons"),
    "Episode": ("episode", "episodes"),
    "Event": ("event", "events"),
    "Brief": ("brief", "briefs"),
    "Verdict": ("verdict", "verdicts"),
    "Fact": ("fact", "facts"),
    "Conflict": ("conflict", "conflicts"),
    "Artifact": ("artifact", "artifacts"),
    "Block": ("block", "blocks"),
    "Entry": ("entry", "entries"),
    # The table `documents` is the index of all kinds.
    "Document": ("document", "archive"),
    "Folder": ("folder", "folders"),
    "Proposal": ("proposal", "proposals"),
    "Working": ("working", "working"),
    "Token": ("token", "tokens"),
}


def record_types() -> tuple[type[Any], ...]:
    """Return every record that a store keeps."""
    from archivist import records as module

    return tuple(getattr(module, name) for name in TABLES)


def types_by_kind() -> dict[str, type[Any]]:
    """Return the records that have ledger entries of their own, by the ledger's word for them."""
    return {kind_of(record): record for record in record_types() if record.__name__ != "Event"}


def record_type(kind: str) -> type[Any]:
    """Return the record that a word for a kind means."""
    from archivist import records as module

    name = next(name for name, (word, _) in TABLES.items() if word == kind)
    found: type[Any] = getattr(module, name)
    return found


def table_of(kind: str) -> str:
    """Return the table of a kind."""
    return next(table for word, table in TABLES.values() if word == kind)


def kind_of(record: type) -> str:
    """Return the ledger's word for a record: `lesson`, `episode`, …"""
    return TABLES[record.__name__][0]


class TableMapping(NamedTuple, Generic[R]):
    """How one kind of record lies in its table."""

    record: type[R]
    table: str
    columns: tuple[str, ...]
    encoders: tuple[Callable[[Any], Any], ...]
    decoders: tuple[Callable[[Any], Any], ...]
    has_id_column: bool

    def to_row(self, record: R) -> tuple[Any, ...]:
        """Return the values for the columns; a derived id comes first where the record has one."""
        values = tuple(
            encode(getattr(record, name)) for name, encode in zip(self._names, self.encoders, strict=True)
        )
        return values if not self.has_id_column else (record.id, *values)  # type: ignore[attr-defined]

    def to_record(self, row: Sequence[Any]) -> R:
        """Build the record that a row of these columns holds."""
        values = row[1:] if self.has_id_column else row
        return self.record(
            **{
                name: decode(value)
                for name, decode, value in zip(self._names, self.decoders, values, strict=True)
            }
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return self.columns[1:] if self.has_id_column else self.columns


def cursor_of(record: Any, order: Sequence[str]) -> tuple[str | int | float | None, ...]:
    """Return a record's place in an order: its value of each field, as the table holds it."""
    how = mapping_for(type(record))
    encoders = dict(zip(how.columns[-len(how.encoders) :], how.encoders, strict=True))
    names = [field.lstrip("-") for field in order]
    return tuple(encoders.get(name, _unchanged_value)(getattr(record, name)) for name in names)


def is_valid_cursor(record: type[Any], order: Sequence[str], cursor: Sequence[object]) -> bool:
    """Say whether values can be a record's place in an order: for each field one, as it is written."""
    kinds = [_type_of(record, field.lstrip("-")) for field in order]
    return len(cursor) == len(kinds) and all(map(_is_encoded_as, kinds, cursor))


def _type_of(record: type[Any], name: str) -> Any:
    """Return the type of a record's field, or of what it computes by itself."""
    types = types_of(record)  # type: ignore[arg-type]
    return types[name] if name in types else get_type_hints(getattr(record, name).fget)["return"]


def _is_encoded_as(kind: Any, value: object) -> bool:
    try:
        return bool(to_plain(decoder(kind)(value)) == value)
    except (RecordError, OverflowError):
        return False


def _unchanged_value(value: Any) -> Any:
    return value


_MAPPINGS: dict[str, TableMapping[Any]] = {}


def mapping_for(record: type[R]) -> TableMapping[R]:
    """Return the mapping of one kind of record."""
    table = TABLES[record.__name__][1]
    if table not in _MAPPINGS:
        _MAPPINGS[table] = _build_mapping(record)
    return _MAPPINGS[table]


def _build_mapping(record: type[R]) -> TableMapping[R]:
    kind: Any = record
    types = types_of(kind)
    codecs = [_codec(kind) for kind in types.values()]
    derived = "id" not in types
    return TableMapping(
        record=record,
        table=TABLES[record.__name__][1],
        columns=(("id",) if derived else ()) + tuple(types),
        encoders=tuple(encode for encode, _ in codecs),
        decoders=tuple(decode for _, decode in codecs),
        has_id_column=derived,
    )


def _codec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    if get_origin(kind) in (Union, UnionType):
        encode, decode = _codec(next(part for part in get_args(kind) if part is not NoneType))
        return (
            lambda value: None if value is None else encode(value),
            lambda value: None if value is None else decode(value),
        )
    if kind is datetime:
        return to_text, decoder(datetime)
    if kind is bool:
        return int, bool
    if kind in (str, int, float):
        return _identity_codec, _identity_codec
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return str, kind
    if kind == tuple[str, ...]:
        return _to_json, _decode_texts
    read = decoder(kind)

    def from_json(text: str) -> Any:
        # Most nested values are empty; an object is made anew each time because its owner may keep it.
        if text == "[]":
            return read(())
        return read(json.loads(text)) if text != "{}" else read({})

    return _to_json, from_json


def _decode_texts(text: str) -> tuple[str, ...]:
    # The longest of lists, and checked when they were written: each run that met a lesson.
    return tuple(json.loads(text)) if text != "[]" else ()


def _identity_codec(value: Any) -> Any:
    return value


def _to_json(value: Any) -> str:
    if value == ():
        return "[]"
    return canonical_json(to_plain(value)) if value != {} else "{}"
