"""Erasure as pure functions: the spellings of a text, how it is redacted in a record, and the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from archivist.clock import to_short_text
from archivist.store.erasure import ERASED, WORD, ErasureQuery, redact_json

# Said on each receipt of a text, because a reader may take "0 left" for more than was searched.
SEARCHED_FORMS = "as given, in any case, as JSON and URLs escape it, in base64"
NEAR_FORMS_NOT_SEARCHED = (
    "split over lines or fields", "with other spaces or accents", "reworded or translated",
    "hashed, encrypted, compressed or in another encoding",
    "in backups and other copies of the bank",
)  # fmt: skip


def remaining_tags(tags: Iterable[str], text: str, query: ErasureQuery) -> list[str]:
    """Return the tags without words of the erased text that the remaining text does not hold."""
    erased = query.words - set(WORD.findall(text.lower()))
    return [tag for tag in tags if tag.lower() not in erased and tag != ERASED]


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

    @property
    def unclean_places(self) -> list[str]:
        """Return the places that still hold it or could not be checked, and why."""
        return [f"{place.name}: {place.note or place.check}" for place in self.places if not place.is_clean]


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
                **{name: getattr(place, name) for name in ("removed", "left", "check", "note")},
            }
            for place in receipt.places
        ],
        "notes": list(receipt.notes),
        "not_searched": list(NEAR_FORMS_NOT_SEARCHED) if receipt.digest else [],
    }


_NOT_IN_LEDGER = frozenset({"salt", "notes", "not_searched"})


def receipt_entry(receipt: Receipt, query: ErasureQuery) -> dict[str, object]:
    """Return what the ledger holds of a receipt: neither the text nor the salt."""
    entry = {key: value for key, value in receipt_view(receipt).items() if key not in _NOT_IN_LEDGER}
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
    if receipt.digest:
        yield f"searched: the text {SEARCHED_FORMS}; not searched: {', '.join(NEAR_FORMS_NOT_SEARCHED)}"
    yield from (f"note: {note}" for note in receipt.notes)
