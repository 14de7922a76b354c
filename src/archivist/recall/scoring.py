"""Make one score of the two result lists of a query, of what stands beside the results, and of their age.

The results of the text index and of the vectors are scaled first: words by the share of the question's term
weights that a document contains, vectors by the number of standard deviations that a document is nearer than
documents in general. No fixed blend of the two wins everywhere, so the weight of the words follows how much
of the question the best document contains, and whether the vectors agree with the best by words. Importance,
and recency by exponential decay, are added by the weights of a preset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from archivist.errors import InputError
from archivist.store.results import IndexedDocument

if TYPE_CHECKING:
    from archivist.config import RecallRules

# Chosen on several sets of different character by bench/retrieval.py.
_WORDS_WEIGHT = 3.0
_FULL_DEVIATIONS = 5.0
_MOST_SHARE = 1.2
_COMPARED = 5
# Fewer than one in a hundred unrelated documents is this near, by deviations and by cosine.
_MATCHING_MEANING = 0.47
_MATCHING_COSINE = 0.3
# Mean and spread of cosines before any sample is seen, and the number of samples that this counts as.
_PRIOR = (0.1, 0.12, 8)
# The share of its score that a neighbour in a thread lends, by its distance: an answer often stands beside
# the words that were searched for.
LENT = {1: 0.3, 2: 0.15}
# The bonus for a document by a speaker whom the question names.
SPEAKER = 0.15
# A lesson is distilled from many events, a run's summary from its own: of equal relevance they answer better.
STANDING = {"lesson": 1.35, "episode": 1.1}
_DAY_S = 86_400.0


class CosineBaseline(NamedTuple):
    """Mean and spread of the cosines of any documents with a query."""

    mean: float
    spread: float

    def deviations(self, cosine: float) -> float:
        """Return the distance of a cosine from the mean, in spreads."""
        return (cosine - self.mean) / self.spread


class Relevance(NamedTuple):
    """How well one document answers, and why; both parts are between 0 and about 1.

    A named tuple, because hundreds of them are made for every query.
    """

    total: float
    words: float = 0.0
    meaning: float = 0.0
    words_weight: float = 0.0
    cosine: float | None = None
    speaker: float = 0.0
    neighbours: float = 0.0
    standing: float = 1.0


def estimate_baseline(sample: Sequence[float]) -> CosineBaseline:
    """Estimate the baseline from a sample, drawn towards the prior when the sample is small."""
    mean, spread, weight = _PRIOR
    count = len(sample) + weight
    middle = (sum(sample) + mean * weight) / count
    squares = sum((cosine - middle) ** 2 for cosine in sample) + (spread**2) * weight
    return CosineBaseline(middle, max(sqrt(squares / count), 1e-3))


def fuse(
    words: Mapping[int, float], ideal: float, cosines: Mapping[int, float], baseline: CosineBaseline | None
) -> dict[int, Relevance]:
    """Return the relevance of every document in either list.

    `ideal` is the score of a document that contains every word of the query.
    """
    top = max(words.values(), default=0.0)
    # A short text that repeats a word scores above the ideal, but contains no more than all words.
    unit = max(ideal, top / _MOST_SHARE) or 1.0
    shares = {place: score / unit for place, score in words.items()}
    if baseline is None:
        return {place: Relevance(share, share, 0.0, 1.0) for place, share in shares.items()}
    near = {
        place: min(2.0, max(0.0, baseline.deviations(cosine) / _FULL_DEVIATIONS))
        for place, cosine in cosines.items()
    }
    weight = _WORDS_WEIGHT * _agreement(shares, near)
    of_words, of_meaning = weight / (weight + 1), 1 / (weight + 1)
    found = {}
    for place in {**shares, **near}:
        by_words, by_meaning = shares.get(place, 0.0), near.get(place, 0.0)
        total = of_words * by_words + of_meaning * by_meaning
        found[place] = Relevance(total, by_words, by_meaning, of_words, cosines.get(place))
    return found


def is_match(why: Relevance) -> bool:
    """Say whether a document matches the query: it shares a word, or is nearer than by chance."""
    is_near = why.meaning >= _MATCHING_MEANING and (why.cosine or 0.0) >= _MATCHING_COSINE
    return why.words > 0 or is_near


def _agreement(shares: Mapping[int, float], near: Mapping[int, float]) -> float:
    """Return how near the best by words are, compared with the nearest of all: from 0.5 to 1."""
    if not shares or not near:
        return 1.0
    best = sorted(shares, key=lambda place: (-shares[place], place))[:_COMPARED]
    nearest = sorted(near.values(), reverse=True)[:_COMPARED]
    top = sum(nearest) / len(nearest)
    if top <= 0:
        return 1.0
    theirs = sum(near.get(place, 0.0) for place in best) / len(best)
    return 0.5 + min(1.0, theirs / top) / 2


def add_neighbour_scores(
    found: Mapping[int, Relevance], documents: Mapping[int, IndexedDocument]
) -> dict[int, Relevance]:
    """Return relevances to which each document's neighbours in its thread have added a share of theirs."""
    threads = {
        # In the agents' stream each role logs its own work.
        place: f"{document.thread}:{document.speaker}" if document.kind == "entry" else document.thread
        for place, document in documents.items()
        if document.thread and place in found
    }
    totals = {(thread, documents[place].position): found[place].total for place, thread in threads.items()}
    result = dict(found)
    for place, thread in threads.items():
        position = documents[place].position
        lent = sum(
            share * (totals.get((thread, position - step), 0.0) + totals.get((thread, position + step), 0.0))
            for step, share in LENT.items()
        )
        if lent:
            result[place] = found[place]._replace(total=found[place].total + lent, neighbours=lent)
    return result


def boost_scores(
    found: Mapping[int, Relevance], documents: Mapping[int, IndexedDocument], speakers: frozenset[str]
) -> dict[int, Relevance]:
    """Return relevances raised for distilled records, and for documents by speakers whom the query names."""
    raised = {}
    for place, why in found.items():
        document = documents[place]
        extra = SPEAKER if document.speaker in speakers and why.total > 0 else 0.0
        standing = STANDING.get(document.kind, 1.0)
        total = (why.total + extra) * standing
        raised[place] = why._replace(total=total, speaker=extra, standing=standing)
    return raised


class Preset(StrEnum):
    """The documented weights: of reflective lessons, of generative agents, and relevance alone."""

    ARCHIVIST = "archivist"
    GENERATIVE = "generative"
    RELEVANCE = "relevance"


class Weights(NamedTuple):
    """The weight of each part of a score."""

    importance: float
    recency: float
    relevance: float


def preset_weights(rules: RecallRules, preset: str) -> Weights:
    """Return the configured weights of a preset."""
    match preset:
        case Preset.ARCHIVIST:
            return Weights(rules.archivist_importance, rules.archivist_recency, rules.archivist_relevance)
        case Preset.GENERATIVE:
            return Weights(rules.generative_importance, rules.generative_recency, rules.generative_relevance)
        case Preset.RELEVANCE:
            return Weights(0.0, 0.0, 1.0)
    raise InputError(f"preset {preset!r} is not one of {', '.join(Preset)}")


class Score(NamedTuple):
    """A document's score and each part of it, before the weights."""

    total: float
    importance: float
    recency: float
    relevance: float
    why: Relevance


def score_recency(
    document: IndexedDocument, rules: RecallRules, now: float, cycle: int | None = None
) -> float:
    """Return 1 for a new document, 0.5 after one half-life, and 0 for one without a time.

    The half-life is in days, or in cycles where the document and the query have one; `now` is in seconds.
    """
    if document.cycle is not None and cycle is not None:
        age, half_life = float(cycle - document.cycle), rules.half_life_cycles
    elif document.time is not None:
        age, half_life = (now - document.time) / _DAY_S, rules.half_life_days
    else:
        return 0.0
    return float(0.5 ** (max(0.0, age) / half_life)) if half_life > 0 else 0.0


def score_documents(
    found: Mapping[int, Relevance],
    documents: Mapping[int, IndexedDocument],
    *,
    weights: Weights,
    rules: RecallRules,
    now: float,
    cycle: int | None = None,
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
        recency = score_recency(documents[place], rules, now, cycle)
        total = weights.importance * importance + weights.recency * recency + weights.relevance * relevance
        scored[place] = Score(total, importance, recency, relevance, why)
    return scored
