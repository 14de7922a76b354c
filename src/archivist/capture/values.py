"""Read loosely typed JSON values, and clip long texts: what does not fit is empty or cut, never an error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from archivist.capture.clean import strip_briefs
from archivist.clock import from_text
from archivist.cold_start import lazy_pattern

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Later than this in seconds, an epoch must be counted in milliseconds (the year 5138 against 1973).
_MILLISECONDS_FROM = 1e11
# How much of each end of a long text is kept. Errors stand at the end of an output and what caused them at
# its beginning, so an output keeps most; an edit only has to be told from other edits of the file.
OUTPUT_SIDE_CHARS = 6_000
MESSAGE_SIDE_CHARS = 4_000
EDIT_SIDE_CHARS = 3_000
TASK_CHARS = 2_000
TARGET_CHARS = 500

_MEDIA = ("image", "audio", "image_url", "input_image")
_LEFT_OUT = lazy_pattern(r"… \[(\d{1,18}) characters left out\] …")


def text(given: Mapping[str, Any], *keys: str) -> str:
    """Return the first text under these keys that is not empty, else nothing."""
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def remote_of_context(context: Mapping[str, Any]) -> str:
    """Return the remote that Copilot CLI notes: with its host, where it says that, else `owner/repo`."""
    repository, host = text(context, "repository"), text(context, "repositoryHost")
    return f"https://{host}/{repository}" if host and repository else repository


def text_between(given: str, start: str, end: str) -> str | None:
    """Return what stands between the first start and the end that follows it, None without both.

    A pattern would search for the end once for each start, which takes a hostile log minutes.
    """
    _, found, rest = given.partition(start)
    inner, closed, _ = rest.partition(end)
    return inner if found and closed else None


def without_tag(given: str, tag: str) -> tuple[str, str]:
    """Return a text without what stands in a tag, and what stood there; a tag without an end stays."""
    kept, inner, rest = [], [], given
    while (found := text_between(rest, f"<{tag}>", f"</{tag}>")) is not None:
        before, _, rest = rest.partition(f"<{tag}>")
        kept.append(before)
        inner.append(found)
        rest = rest[len(found) + len(tag) + 3 :]
    return "".join((*kept, rest)).strip() if inner else given, "\n".join(inner)


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> Sequence[Any]:
    """Return the value when it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list, leaving out whatever else is in it."""
    return [each for each in listing(value) if isinstance(each, dict)]


def object_at(given: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object that a path of keys leads to, else an empty one."""
    for key in path:
        given = mapping(given.get(key))
    return given


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
    try:
        if isinstance(value, str):
            return from_text(value)
        number = as_float(value) or 0.0
        seconds = number / 1000 if number > _MILLISECONDS_FROM else number
        return _EPOCH + timedelta(seconds=seconds) if number > 0 else None
    except (ValueError, OverflowError):
        return None


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Return how long it took, unknown when the clock went backwards."""
    if start is None or end is None or end < start:
        return None
    return round((end - start).total_seconds(), 3)


def seconds_in(written: str) -> float | None:
    """Return the seconds that a client wrote as `12.5`; what it wrote may be no number."""
    return float(written) if written.replace(".", "", 1).isdigit() else None


def remember(memory: dict[str, Any], key: str, value: Any, limit: int) -> None:
    """Keep a value by its key. Above the limit the oldest goes: an endless log must not fill the memory."""
    memory[key] = value
    if len(memory) > limit:
        del memory[next(iter(memory))]


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
            elif text(each, "type") in _MEDIA:
                parts.append(f"[{each['type']}]")
    return "\n".join(parts)


def omission_mark(characters: int) -> str:
    """Write the mark that stands where text is missing."""
    return f"\n… [{characters} characters left out] …\n"


def clip(text: str, side: int = OUTPUT_SIDE_CHARS) -> str:
    """Return the text with its middle left out when it is longer than both sides together.

    Marks of an earlier clipping that fall into the middle are counted in.
    """
    if len(text) <= 2 * side + len(omission_mark(len(text))):
        return text
    # A brief of ours comes off while it has both marks; cut in two it would pass for the run's own words.
    text = strip_briefs(text)
    if len(text) <= 2 * side + len(omission_mark(len(text))):
        return text
    middle = text[side:-side]
    missing = len(middle) + sum(int(mark.group(1)) - len(mark.group()) for mark in _LEFT_OUT.finditer(middle))
    return text[:side] + omission_mark(max(missing, 1)) + text[-side:]
