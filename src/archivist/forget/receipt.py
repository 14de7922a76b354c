"""The receipt of an erasure: what was removed where, and how that was checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from archivist.clock import to_short_text
from archivist.store.erasure import ERASED, WORD, ErasureQuery, redact_json


def remaining_tags(tags: Iterable[str], text: str, query: ErasureQuery) -> list[str]:
    """Return the tags of what is said now without those that were made of the erased text's words."""
    made = query.words - set(WORD.findall(text.lower()))
    return [tag for tag in tags if tag.lower() not in made and tag != ERASED]


@dataclass(frozen=True, slots=True)
class ErasureLocation:
    """One place that was looked at: what went, what is left, and how that is known.

    `left` is None where nobody could look.
    """

    name: str
    removed: int = 0
    left: int | None = 0
    check: str = ""
    note: str = ""

    @property
    def is_clean(self) -> bool:
        """Say whether it was looked at and nothing is left."""
        return self.left == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure did, place by place.

    The digest stands for the text. Its salt is on the receipt and never in the bank: who holds the receipt
    can show which text it was for, who holds the bank cannot find the text by guessing.
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
        """Return how many things went."""
        return sum(place.removed for place in self.places)

    @property
    def is_clean(self) -> bool:
        """Say whether every place was checked and holds nothing any more."""
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
    """Return what the ledger keeps of a receipt: neither the text nor the salt."""
    kept = {key: value for key, value in receipt_view(receipt).items() if key not in ("salt", "notes")}
    cleaned: dict[str, object] = redact_json(kept, query) if receipt.digest else kept
    return cleaned


def receipt_lines(receipt: Receipt) -> Iterator[str]:
    """Yield a receipt as lines for people."""
    yield f"receipt {receipt.id}  {to_short_text(receipt.time)}"
    if receipt.digest:
        yield f"  sha256 {receipt.digest}  salt {receipt.salt}"
    if not receipt.removed_count and receipt.is_clean:
        yield "nothing was there"
    width = max((len(place.name) for place in receipt.places), default=0)
    for place in receipt.places:
        note = f"; {place.note}" if place.note else ""
        yield f"{_mark(place)}  {place.name:<{width}}  {place.removed} erased, {_format_left(place)}{note}"
    yield from (f"note: {note}" for note in receipt.notes)


def _mark(place: ErasureLocation) -> str:
    return "ok  " if place.is_clean else "look"


def _format_left(place: ErasureLocation) -> str:
    if place.left is None:
        return f"not checked ({place.check})"
    return f"{place.left} left ({place.check})"
