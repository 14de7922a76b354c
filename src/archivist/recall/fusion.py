"""Judge the two lists of each query, and make one score of them.

What the text index and the vectors say is put on scales of their own first: of the words, the share of all
that the question tells which a document holds; of the vectors, by how many standard deviations a document
is nearer than documents are in general. No fixed blend of the two wins everywhere, so the words weigh by how
much of the question the best document holds, and by whether the vectors agree with the best of them.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

# Settled on several sets of different character by bench/retrieval.py.
_WORDS_WEIGHT = 3.0
_FULL_DEVIATIONS = 5.0
_MOST_SHARE = 1.2
_LOOKED_AT = 5
# So near, by deviations and by cosine, are fewer than one in a hundred documents to what they are not about.
_MATCHING_MEANING = 0.47
_MATCHING_COSINE = 0.3
# What is believed of cosines before any sample is seen, and as how many samples that counts.
_PRIOR = (0.1, 0.12, 8)


class CosineBaseline(NamedTuple):
    """How near any document is to a query: mean and spread of the cosine."""

    mean: float
    spread: float

    def deviations(self, cosine: float) -> float:
        """Return by how many spreads a cosine is above the mean."""
        return (cosine - self.mean) / self.spread


class Relevance(NamedTuple):
    """How well one document answers, and why: both parts lie between 0 and about 1.

    A tuple, for hundreds of them are made for every question.
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
    """Return what a sample says of cosines in general, drawn towards what is usual when it is small."""
    mean, spread, weight = _PRIOR
    count = len(sample) + weight
    middle = (sum(sample) + mean * weight) / count
    squares = sum((cosine - middle) ** 2 for cosine in sample) + (spread**2) * weight
    return CosineBaseline(middle, max(sqrt(squares / count), 1e-3))


def fuse(
    words: Mapping[int, float], ideal: float, cosines: Mapping[int, float], baseline: CosineBaseline | None
) -> dict[int, Relevance]:
    """Return the relevance of every document that either list names.

    `ideal` is what a document would score that held every word asked for.
    """
    top = max(words.values(), default=0.0)
    # A short text that says a word twice scores above the ideal; what it holds is still no more than all.
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
        held, nearness = shares.get(place, 0.0), near.get(place, 0.0)
        total = of_words * held + of_meaning * nearness
        found[place] = Relevance(total, held, nearness, of_words, cosines.get(place))
    return found


def is_match(why: Relevance) -> bool:
    """Say whether a document matches what was asked: it shares a word, or is nearer than chance makes it."""
    is_near = why.meaning >= _MATCHING_MEANING and (why.cosine or 0.0) >= _MATCHING_COSINE
    return why.words > 0 or is_near


def _agreement(shares: Mapping[int, float], near: Mapping[int, float]) -> float:
    """Return from a half to one: how near the best by words are, compared with the nearest of all."""
    if not shares or not near:
        return 1.0
    best = sorted(shares, key=lambda place: (-shares[place], place))[:_LOOKED_AT]
    nearest = sorted(near.values(), reverse=True)[:_LOOKED_AT]
    top = sum(nearest) / len(nearest)
    if top <= 0:
        return 1.0
    theirs = sum(near.get(place, 0.0) for place in best) / len(best)
    return 0.5 + min(1.0, theirs / top) / 2
