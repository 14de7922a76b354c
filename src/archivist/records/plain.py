"""Turn records into plain JSON values and back, checking every field on the way in.

Hand-written rather than msgspec because hooks, which must start in tens of milliseconds, read records too,
and this needs nothing that they do not import already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from archivist.clock import from_text, to_text
from archivist.errors import InputError, RecordError
from archivist.text import replace_surrogates

R = TypeVar("R")
Decoder = Callable[[Any], Any]

# Most values have one of these types already; the test comes first because every field passes it.
_JSON_TYPES = frozenset((str, int, float, bool, NoneType))
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_plain(value: Any) -> Any:
    """Return the value in the types of JSON."""
    kind: Any = type(value)
    return value if kind in _JSON_TYPES else _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    """Return the function that makes plain values of this type."""
    names = field_names(kind) if is_dataclass(kind) else ()  # type: ignore[arg-type]
    if names:
        return lambda value: {
            name: item if type(item := getattr(value, name)) in _JSON_TYPES else to_plain(item)
            for name in names
        }
    if issubclass(kind, StrEnum):
        return lambda value: value.value
    if issubclass(kind, datetime):
        return to_text
    if issubclass(kind, tuple | list):
        return lambda value: [to_plain(item) for item in value]
    if issubclass(kind, Mapping):
        return lambda value: {key: to_plain(item) for key, item in value.items()}
    return lambda value: value


def from_plain(record: type[R], value: object) -> R:
    """Build a record from JSON values. Unknown keys go to `extra` where the record has one.

    Raises RecordError naming the field and what is wrong with it.
    """
    kind: Any = record
    result: R = decoder(kind)(value)
    return result


def canonical_json(value: object) -> str:
    """Write JSON in the one form that is hashed and compared: sorted keys and no spaces."""
    return _CANONICAL.encode(value)


def digest_of(*values: object) -> str:
    """Return the digest of plain values; of 128 bits, since an agent may choose two texts to collide."""
    from hashlib import sha256

    return sha256(canonical_json(values).encode("utf-8", "replace")).hexdigest()[:32]


@cache
def field_names(record: Any) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(each.name for each in fields(record))


@cache
def types_of(record: Any) -> dict[str, Any]:
    """Return the resolved type of each field."""
    hints = get_type_hints(record)
    return {name: hints[name] for name in field_names(record)}


@cache
def decoder(kind: Any) -> Decoder:
    """Return the function that reads a JSON value as this type."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        words = {word.value: word for word in kind}
        return lambda value: _decode_word(value, words)
    if is_dataclass(kind):
        return _record_decoder(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        inner = decoder(next(part for part in parts if part is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = decoder(parts[0])
        return lambda value: tuple(item(each) for each in _require(value, list | tuple, "a list"))
    if origin is dict:
        return lambda value: dict(_require(value, Mapping, "an object"))
    raise TypeError(f"no decoder for {kind!r}")


def _decode_text(value: Any) -> str:
    # JSON can spell half of a surrogate pair; SQLite and UTF-8 cannot hold it.
    return replace_surrogates(_require(value, str, "text"))


def _decode_int(value: Any) -> int:
    number: int = _require(value, int, "a whole number")
    if abs(number) >= 1 << 63:
        raise RecordError("a number beyond 64 bits")
    return number


def _decode_bool(value: Any) -> bool:
    if value not in (True, False, 0, 1):
        raise RecordError(f"expected true or false, not {_describe_type(value)}")
    return bool(value)


def _decode_time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return from_text(_decode_text(value))
    except (ValueError, OverflowError):
        raise RecordError(f"not an ISO 8601 time: {value!r}") from None


def _decode_word(value: Any, words: Mapping[str, StrEnum]) -> StrEnum:
    if not isinstance(value, str) or value not in words:
        raise RecordError(f"{value!r} is not one of {', '.join(words)}")
    return words[value]


def _require(value: Any, kind: Any, name: str) -> Any:
    """Return a value of this kind. To Python a bool is a number, to JSON it is not."""
    if isinstance(value, bool) or not isinstance(value, kind):
        raise RecordError(f"expected {name}, not {_describe_type(value)}")
    return value


def _decode_float(value: Any) -> float:
    try:
        return float(_require(value, int | float, "a number"))
    except OverflowError:
        raise RecordError("a number is too large") from None


_SIMPLE: dict[Any, Decoder] = {
    str: _decode_text,
    int: _decode_int,
    float: _decode_float,
    bool: _decode_bool,
    datetime: _decode_time,
}


def _record_decoder(record: Any) -> Decoder:
    decoders = {name: decoder(kind) for name, kind in types_of(record).items()}
    required = {
        field.name
        for field in fields(record)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def decode(value: Any) -> Any:
        if isinstance(value, record):
            return value
        _require(value, Mapping, "an object")
        known: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        for key, item in value.items():
            if key not in decoders:
                unknown[key] = item
                continue
            try:
                known[key] = decoders[key](item)
            except RecordError as error:
                raise RecordError(f"{key}: {error.message}", hint=error.hint) from None
        for name in required - known.keys():
            raise RecordError(f"{name}: missing")
        if unknown:
            if "extra" not in decoders:
                raise RecordError(f"{next(iter(unknown))}: unknown field")
            known["extra"] = {**known.get("extra", {}), **unknown}
        return record(**known)

    return decode


def _describe_type(value: object) -> str:
    return {NoneType: "null", list: "a list", dict: "an object", str: "text"}.get(
        type(value), repr(value)[:40]
    )


def as_json(value: Mapping[str, object], key: str) -> dict[str, object]:
    """Return a value as plain JSON; raise InputError when it is not JSON."""
    try:
        plain: dict[str, object] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the value of {key!r} is no JSON: {error}", hint="texts, numbers, lists and objects are"
        ) from None
    return plain
