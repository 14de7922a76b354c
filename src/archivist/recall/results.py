"""What recall answers."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from archivist.recall.scoring import Score, Weights

DEFAULT_LIMIT = 10
# So few texts without a vector are embedded during a query: the bundled table takes under a millisecond.
FRESH = 48


class Hit(NamedTuple):
    """One result. `notes` explain its rank, `window` is the text around it."""

    kind: str
    id: str
    name: str
    text: str
    score: float
    time: datetime | None
    why: Score
    notes: tuple[str, ...] = ()
    window: tuple[str, ...] = ()


class RecallResult(NamedTuple):
    """The results, the words that were searched for, and how many texts have no vector yet."""

    hits: tuple[Hit, ...]
    weights: Weights
    words: tuple[str, ...] = ()
    embedder: str = ""
    unembedded: int = 0
    problem: str = ""
