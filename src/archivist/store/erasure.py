"""What is to be erased, how it is found in records, payloads and raw bytes, and how it is replaced."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import quote, quote_plus

from archivist.errors import InputError, RecordError
from archivist.records.kinds import types_by_kind
from archivist.records.plain import canonical_json, from_plain

ERASED = "[erased]"
# A shorter text occurs everywhere, in times and in the names of columns.
MIN_CHARACTERS = 4
# Base64 of a shorter text is so short, without its ends, that other words hold it by chance.
_LEAST_BASE64_BYTES = 9
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """Texts to erase, in every spelling in which rows and files hold them."""

    spellings: tuple[str, ...]
    pattern: re.Pattern[str]
    needles: tuple[bytes, ...]
    words: frozenset[str] = frozenset()

    def is_in(self, text: str) -> bool:
        """Say whether a text contains one of them, in any case."""
        lowered = text.lower()
        return any(spelling in lowered for spelling in self.spellings)

    def redact_text(self, text: str) -> str:
        """Return a text with a mark in the place of each."""
        return self.pattern.sub(ERASED, text)


def erasure_query(*texts: str, is_plain: bool = False) -> ErasureQuery:
    """Return texts as they are searched for: as given, as JSON and URLs escape them, and in base64.

    With `is_plain` only as given and as JSON escapes them: many texts in all forms take long to search for.
    """
    for text in texts:
        if len(text.strip()) < MIN_CHARACTERS:
            raise InputError(
                f"{text!r} is too short to erase", hint=f"give at least {MIN_CHARACTERS} characters"
            )
    spellings: set[str] = set()
    for text in texts:
        cased = {text, text.lower(), text.upper(), text.capitalize()}
        cased |= set() if is_plain else _encode(text)
        once = cased | {_escape(each, is_ascii) for each in cased for is_ascii in (True, False)}
        spellings |= once | {_escape(each, is_ascii) for each in once for is_ascii in (True, False)}
    # The longest first, so that the escaping goes with what it escapes.
    parts = sorted(map(re.escape, spellings), key=lambda part: (-len(part), part))
    # Bytes are lowered as ASCII only; each spelling in capitals is a needle of its own.
    needles = {spelling.encode("utf-8", "surrogatepass").lower() for spelling in spellings}
    return ErasureQuery(
        tuple(_drop_superstrings({spelling.lower() for spelling in spellings})),
        re.compile("|".join(parts) or r"(?!)", re.IGNORECASE),
        tuple(_drop_superstrings(needles)),
        frozenset(WORD.findall(" ".join(texts).lower())),
    )


def redact_value(value: Any, query: ErasureQuery) -> Any:
    """Return a record, or a value inside one, with the text replaced; enums, numbers and times stay."""
    if isinstance(value, StrEnum):
        return value
    if isinstance(value, str):
        return query.redact_text(value)
    if isinstance(value, tuple):
        return tuple(redact_value(item, query) for item in value)
    if isinstance(value, Mapping):
        return redact_json(value, query)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: redact_value(getattr(value, each.name), query) for each in fields(value)}
        )
    return value


def redact_json(value: Any, query: ErasureQuery) -> Any:
    """Return a JSON value with the text replaced, in keys and in numbers too."""
    if isinstance(value, str):
        return query.redact_text(value)
    if isinstance(value, list | tuple):
        return [redact_json(item, query) for item in value]
    if isinstance(value, Mapping):
        return {query.redact_text(key): redact_json(item, query) for key, item in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool) and query.is_in(repr(value)):
        return ERASED
    return value


def redact_json_text(text: str, query: ErasureQuery) -> str:
    """Return a text, which may be JSON, with the text replaced."""
    try:
        value = json.loads(text)
    except ValueError:
        return query.redact_text(text)
    is_nested = isinstance(value, dict | list)
    return canonical_json(redact_json(value, query)) if is_nested else query.redact_text(text)


def payload_mentions(kind: str, payload: str, query: ErasureQuery) -> bool:
    """Say whether a ledger payload contains the text in a text field, not in a time or a closed word."""
    record_class = types_by_kind().get(kind)
    value = json.loads(payload)
    if record_class is None or value is None:
        return bool(redact_json(value, query) != value)
    try:
        record = from_plain(record_class, value)
    except RecordError:
        return True
    return bool(redact_value(record, query) != record)


def count_occurrences(chunks: Iterable[bytes], needles: Sequence[bytes]) -> int:
    """Count how often needles occur in raw bytes, ignoring the case of ASCII letters."""
    longest = max(map(len, needles), default=0)
    count, tail = 0, b""
    for chunk in chunks:
        lowered = tail + chunk.lower()
        # What ends inside the tail was counted with the chunk before.
        count += sum(
            lowered.count(needle) - tail.count(needle) for needle in needles if len(needle) <= len(lowered)
        )
        tail = lowered[-(longest - 1) :] if longest > 1 else b""
    return count


def _escape(text: str, is_ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=is_ascii)[1:-1]


def _encode(text: str) -> set[str]:
    """Return a text as URLs escape it, and what of it stands in base64 at each of three alignments."""
    raw = text.encode("utf-8", "replace")
    encoded = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    if len(raw) >= _LEAST_BASE64_BYTES:
        for shift, dependent in ((0, 0), (1, 2), (2, 3)):
            coded = base64.b64encode(bytes(shift) + raw).decode().rstrip("=")
            # The first and the last characters also hold bits of what stands beside the text.
            is_partial = (shift + len(raw)) % 3 > 0
            inner = coded[dependent : len(coded) - is_partial]
            encoded |= {inner, inner.replace("+", "-").replace("/", "_")}
    return encoded


def _drop_superstrings(values: Iterable[Any]) -> list[Any]:
    """Leave out what contains another value: where it is, the other is too."""
    kept: list[Any] = []
    for value in sorted(values, key=lambda each: (len(each), each)):
        if not any(short in value for short in kept):
            kept.append(value)
    return kept
