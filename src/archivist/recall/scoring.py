"""Weigh relevance with a record's own merits: importance, and recency by exponential decay."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from archivist.errors import InputError
from archivist.recall.fusion import Relevance
from archivist.store.results import IndexedDocument

_DAY_S = 86_400.0


class Preset(StrEnum):
    """The documented ways to weigh: of reflective lessons, of generative agents, and relevance alone."""

    ARCHIVIST = "archivist"
    GENERATIVE = "generative"
    RELEVANCE = "relevance"


def preset_of(name: str) -> Preset:
    """Return the preset of a name."""
    try:
        return Preset(name)
    except ValueError:
        raise InputError(f"preset {name!r} is not one of {', '.join(Preset)}") from None


class Weights(NamedTuple):
    """What each part counts for."""

    importance: float
    recency: float
    relevance: float


class RecencyDecay(NamedTuple):
    """After how many days, or cycles where there are any, recency has halved."""

    half_life_days: float
    half_life_cycles: float


class ScoringTime(NamedTuple):
    """When is asked, in seconds since the epoch: recency counts from here."""

    now: float
    cycle: int | None = None


class Score(NamedTuple):
    """A document's score and each part of it, before its weight."""

    total: float
    importance: float
    recency: float
    relevance: float
    why: Relevance


def score_recency(document: IndexedDocument, scoring_time: ScoringTime, decay: RecencyDecay) -> float:
    """Return 1 for what is new, a half after one half-life, and 0 for what has no time."""
    if document.cycle is not None and scoring_time.cycle is not None:
        return _decay_by_half_life(scoring_time.cycle - document.cycle, decay.half_life_cycles)
    if document.time is None:
        return 0.0
    return _decay_by_half_life((scoring_time.now - document.time) / _DAY_S, decay.half_life_days)


def score_documents(
    found: Mapping[int, Relevance],
    documents: Mapping[int, IndexedDocument],
    *,
    weights: Weights,
    decay: RecencyDecay,
    scoring_time: ScoringTime,
) -> dict[int, Score]:
    """Return every document's score.

    Beside other merits relevance is scaled so that the best has 1 and the worst 0; alone it stays as it is.
    """
    totals = [why.total for why in found.values()]
    is_alone = not weights.importance and not weights.recency
    low, high = (0.0, 1.0) if is_alone or not totals else (min(totals), max(totals))
    scored = {}
    for place, why in found.items():
        relevance = (why.total - low) / (high - low) if high > low else 1.0
        weight, lately = documents[place].importance, score_recency(documents[place], scoring_time, decay)
        total = weights.importance * weight + weights.recency * lately + weights.relevance * relevance
        scored[place] = Score(total, weight, lately, relevance, why)
    return scored


def _decay_by_half_life(age: float, half_life: float) -> float:
    return float(0.5 ** (max(0.0, age) / half_life)) if half_life > 0 else 0.0
