"""Weigh relevance with a record's own merits: importance, and recency by exponential decay."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from archivist.errors import InputError
from archivist.recall.fusion import Relevance
from archivist.store.results import Placed

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


class Decay(NamedTuple):
    """After how many days, or cycles where there are any, recency has halved."""

    half_life_days: float
    half_life_cycles: float


class Moment(NamedTuple):
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


def recency(placed: Placed, moment: Moment, decay: Decay) -> float:
    """Return 1 for what is new, a half after one half-life, and 0 for what has no time."""
    if placed.cycle is not None and moment.cycle is not None:
        return _halved(moment.cycle - placed.cycle, decay.half_life_cycles)
    if placed.time is None:
        return 0.0
    return _halved((moment.now - placed.time) / _DAY_S, decay.half_life_days)


def weigh(
    found: Mapping[int, Relevance],
    placed: Mapping[int, Placed],
    *,
    weights: Weights,
    decay: Decay,
    moment: Moment,
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
        weight, lately = placed[place].importance, recency(placed[place], moment, decay)
        total = weights.importance * weight + weights.recency * lately + weights.relevance * relevance
        scored[place] = Score(total, weight, lately, relevance, why)
    return scored


def _halved(age: float, half_life: float) -> float:
    return float(0.5 ** (max(0.0, age) / half_life)) if half_life > 0 else 0.0
