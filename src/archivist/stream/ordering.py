"""Say why a result stands before one with a higher score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.stream.service import StreamHit


def explain_order(hits: Sequence[StreamHit]) -> list[StreamHit]:
    """Return results, with the reason at each that stands before a higher score."""
    return [
        each._replace(hit=each.hit._replace(notes=(*each.hit.notes, *_reasons(each, hits[place:]))))
        for place, each in enumerate(hits)
    ]


def _reasons(found: StreamHit, rest: Sequence[StreamHit]) -> Iterator[str]:
    higher = max(rest, key=lambda other: other.hit.score)
    if higher.hit.score <= found.hit.score or found.hit.notes:
        return
    reason = "later" if found.entry.seq > higher.entry.seq else "no reflection"
    if found.hit.why.why.total > higher.hit.why.why.total:
        reason = "fits the question better"
    yield f"before {higher.hit.score:.2f}: {reason}"
