"""Combine relevance with importance, and with recency by exponential decay."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, assert_never

from archivist.errors import InputError
from archivist.recall.fusion import Relevance
from archivist.store.results import IndexedDocument

if TYPE_CHECKING:
    from archivist.config import RecallRules

_DAY_S = 86_400.0


class Preset(StrEnum):
    """The documented weights: of reflective lessons, of generative agents, and relevance alone."""

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
    """The weight of each part of a score."""

    importance: float
    recency: float
    relevance: float


def preset_weights(rules: RecallRules, preset: Preset) -> Weights:
    """Return the configured weights of a preset."""
    match preset:
        case Preset.ARCHIVIST:
            return Weights(rules.archivist_importance, rules.archivist_recency, rules.archivist_relevance)
        case Preset.GENERATIVE:
            return Weights(rules.generative_importance, rules.generative_recency, rules.generative_relevance)
        case Preset.RELEVANCE:
            return Weights(0.0, 0.0, 1.0)
    assert_never(preset)


class RecencyDecay(NamedTuple):
    """The half-life of recency in days, or in cycles where a document has one."""

    half_life_days: float
    half_life_cycles: float


class ScoringTime(NamedTuple):
    """The time of the query, in seconds since the epoch: recency counts from it."""

    now: float
    cycle: int | None = None


class Score(NamedTuple):
    """A document's score and each part of it, before the weights."""

    total: float
    importance: float
    recency: float
    relevance: float
    why: Relevance


def score_recency(document: IndexedDocument, scoring_time: ScoringTime, decay: RecencyDecay) -> float:
    """Return 1 for a new document, 0.5 after one half-life, and 0 for one without a time."""
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

    Beside importance or recency, relevance is scaled from 0 for the worst to 1 for the best.
    """
    totals = [why.total for why in found.values()]
    is_alone = not weights.importance and not weights.recency
    low, high = (0.0, 1.0) if is_alone or not totals else (min(totals), max(totals))
    scored = {}
    for place, why in found.items():
        relevance = (why.total - low) / (high - low) if high > low else 1.0
        importance = documents[place].importance
        recency = score_recency(documents[place], scoring_time, decay)
        total = weights.importance * importance + weights.recency * recency + weights.relevance * relevance
        scored[place] = Score(total, importance, recency, relevance, why)
    return scored


def _decay_by_half_life(age: float, half_life: float) -> float:
    return float(0.5 ** (max(0.0, age) / half_life)) if half_life > 0 else 0.0
