"""Read loosely typed JSON values: what does not fit is empty, never an error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from archivist.clock import from_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Later than this in seconds, an epoch must be counted in milliseconds (the year 5138 against 1973).
_MILLISECONDS_FROM = 1e11


def text(value: object) -> str:
    """Return the value when it is text, else nothing."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> Sequence[Any]:
    """Return the value when it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list, leaving out whatever else is in it."""
    return [each for each in listing(value) if isinstance(each, dict)]


def as_integer(value: object) -> int | None:
    """Return a whole number that fits in 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return None
    number = int(value)
    return number if abs(number) < 1 << 63 else None


def count(value: object) -> int:
    """Return a number of things, zero when there is none."""
    return max(0, as_integer(value) or 0)


def as_float(value: object) -> float | None:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_time(value: object) -> datetime | None:
    """Return a time given as ISO 8601 text or as seconds or milliseconds since 1970."""
    if isinstance(value, str):
        try:
            return from_text(value)
        except (ValueError, OverflowError):
            return None
    number = as_float(value)
    if number is None or number <= 0:
        return None
    try:
        return _EPOCH + timedelta(seconds=number / 1000 if number > _MILLISECONDS_FROM else number)
    except OverflowError:
        return None


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Return how long it took, unknown when the clock went backwards."""
    if start is None or end is None or end < start:
        return None
    return round((end - start).total_seconds(), 3)


def compact_json(value: object) -> str:
    """Write a value as JSON without spaces."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return json.dumps(str(value)[:1000])


def content_text(value: object) -> str:
    """Return the text of a message: a string, or the text parts of a list of content blocks."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = [value]
    parts = []
    for each in listing(value):
        if isinstance(each, str):
            parts.append(each)
        elif isinstance(each, dict):
            inner = each.get("text")
            if isinstance(inner, str):
                parts.append(inner)
            elif text(each.get("type")) in _MEDIA:
                parts.append(f"[{each['type']}]")
    return "\n".join(parts)


_MEDIA = ("image", "audio", "image_url", "input_image")
