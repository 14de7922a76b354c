"""Erasure as pure functions: the spellings of a text, how it is redacted in a record, and the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from archivist.clock import to_short_text
from archivist.errors import InputError

ERASED = "[erased]"
# Shorter texts occur everywhere, also in timestamps and in the names of columns.
MIN_CHARACTERS = 4
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """Texts to erase, in every spelling in which rows and files may hold them."""

    spellings: tuple[str, ...]
    pattern: re.Pattern[str]
    needles: tuple[bytes, ...]
    words: frozenset[str] = frozenset()

    def is_in(self, text: str) -> bool:
        """Say whether a text holds one of them, ignoring case."""
        lowered = text.lower()
        return any(spelling in lowered for spelling in self.spellings)

    def redact_text(self, text: str) -> str:
        """Return a text with `[erased]` in place of each."""
        return self.pattern.sub(ERASED, text)


def erasure_query(*texts: str) -> ErasureQuery:
    """Return the query for some texts: as given and as JSON escapes them, up to twice."""
    for text in texts:
        if len(text.strip()) < MIN_CHARACTERS:
            raise InputError(
                f"{text!r} is too short to erase", hint=f"give at least {MIN_CHARACTERS} characters"
            )
    spellings = {cased for text in texts for cased in (text, text.lower(), text.upper(), text.capitalize())}
    # Twice: a tool's JSON output is a text inside the JSON of a row.
    for _ in range(2):
        spellings |= {
            json.dumps(each, ensure_ascii=flag)[1:-1] for each in spellings for flag in (True, False)
        }
    lowered = {spelling.lower() for spelling in spellings}
    # The longest first, so that an escaped spelling is replaced with its backslashes.
    parts = sorted(map(re.escape, spellings), key=lambda part: (-len(part), part))
    pattern = re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)
    # Only ASCII letters are lowered in bytes, so other capitals need a needle of their own.
    needles = {spelling.encode("utf-8", "surrogatepass").lower() for spelling in spellings}
    words = frozenset(_WORD.findall(" ".join(texts).lower()))
    return ErasureQuery(
        tuple(_drop_superstrings(lowered)), pattern, tuple(_drop_superstrings(needles)), words
    )


def redact_value(value: Any, query: ErasureQuery) -> Any:
    """Return a record, or a value inside one, with the text replaced in its strings."""
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
            value, **{field.name: redact_value(getattr(value, field.name), query) for field in fields(value)}
        )
    return value


def remaining_tags(tags: Iterable[str], text: str, query: ErasureQuery) -> list[str]:
    """Return the tags without words of the erased text that the remaining text does not hold."""
    erased = query.words - set(_WORD.findall(text.lower()))
    return [tag for tag in tags if tag.lower() not in erased and tag != ERASED]


def redact_json(value: Any, query: ErasureQuery) -> Any:
    """Return a JSON value with the text replaced, also in keys and numbers."""
    if isinstance(value, str):
        return query.redact_text(value)
    if isinstance(value, list | tuple):
        return [redact_json(item, query) for item in value]
    if isinstance(value, Mapping):
        return {query.redact_text(key): redact_json(item, query) for key, item in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool) and query.is_in(repr(value)):
        return ERASED
    return value


def count_occurrences(chunks: Iterable[bytes], needles: Sequence[bytes]) -> int:
    """Count how often needles occur in raw bytes, ignoring the case of ASCII letters."""
    longest = max(map(len, needles), default=0)
    count, tail = 0, b""
    for chunk in chunks:
        lowered = tail + chunk.lower()
        # Occurrences that lie within the tail were counted with the chunk before.
        count += sum(
            lowered.count(needle) - tail.count(needle) for needle in needles if len(needle) <= len(lowered)
        )
        tail = lowered[-(longest - 1) :] if longest > 1 else b""
    return count


@dataclass(frozen=True, slots=True)
class ErasureLocation:
    """One place that was searched: how much was removed, how much is left, and how that was checked.

    `left` is None where it could not be checked.
    """

    name: str
    removed: int = 0
    left: int | None = 0
    check: str = ""
    note: str = ""

    @property
    def is_clean(self) -> bool:
        """Say whether it was checked and nothing is left."""
        return self.left == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure did, place by place.

    The digest stands for the text. Its salt is on the receipt and never in the bank: the receipt proves which
    text was erased, and nobody can find the text by guessing from the bank alone.
    """

    id: str
    time: datetime
    asked: tuple[str, ...] = ()
    digest: str = ""
    salt: str = ""
    places: tuple[ErasureLocation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def removed_count(self) -> int:
        """Return how much was removed in all places."""
        return sum(place.removed for place in self.places)

    @property
    def is_clean(self) -> bool:
        """Say whether every place was checked and nothing is left."""
        return all(place.is_clean for place in self.places)


def text_digest(salt: str, text: str) -> str:
    """Return the digest that stands for a text on its receipt."""
    return sha256(f"{salt}\x1f{text}".encode("utf-8", "surrogatepass")).hexdigest()


def receipt_view(receipt: Receipt) -> dict[str, object]:
    """Return a receipt as plain values."""
    return {
        "id": receipt.id,
        "time": to_short_text(receipt.time),
        "asked": list(receipt.asked),
        "digest": receipt.digest,
        "salt": receipt.salt,
        "removed": receipt.removed_count,
        "is_clean": receipt.is_clean,
        "places": [
            {
                "place": place.name,
                "removed": place.removed,
                "left": place.left,
                "check": place.check,
                "note": place.note,
            }
            for place in receipt.places
        ],
        "notes": list(receipt.notes),
    }


def receipt_entry(receipt: Receipt, query: ErasureQuery) -> dict[str, object]:
    """Return what the ledger holds of a receipt: neither the text nor the salt."""
    entry = {key: value for key, value in receipt_view(receipt).items() if key not in ("salt", "notes")}
    redacted: dict[str, object] = redact_json(entry, query) if receipt.digest else entry
    return redacted


def receipt_lines(receipt: Receipt) -> Iterator[str]:
    """Yield a receipt as lines for people."""
    yield f"receipt {receipt.id}  {to_short_text(receipt.time)}"
    if receipt.digest:
        yield f"  sha256 {receipt.digest}  salt {receipt.salt}"
    if not receipt.removed_count and receipt.is_clean:
        yield "nothing was found"
    width = max((len(place.name) for place in receipt.places), default=0)
    for place in receipt.places:
        mark = "ok  " if place.is_clean else "warn"
        left = "not checked" if place.left is None else f"{place.left} left"
        note = f"; {place.note}" if place.note else ""
        yield f"{mark}  {place.name:<{width}}  {place.removed} erased, {left} ({place.check}){note}"
    yield from (f"note: {note}" for note in receipt.notes)


def _drop_superstrings(values: Iterable[Any]) -> list[Any]:
    """Leave out values that contain another one: searching for the shorter finds them too."""
    kept: list[Any] = []
    for value in sorted(values, key=lambda value: (len(value), value)):
        if not any(short in value for short in kept):
            kept.append(value)
    return kept
