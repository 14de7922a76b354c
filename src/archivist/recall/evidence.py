"""Decide whether a question finds nothing: some text is always the nearest, also where none answers.

`python -m bench.retrieval` chooses the constants, and prints what they reach on each set left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from archivist.recall.lexical import extract_terms
from archivist.recall.scoring import MOST_SHARE, CosineBaseline, Relevance
from archivist.store.results import IndexedDocument

if TYPE_CHECKING:
    from archivist.recall.embedders.static import StaticEmbedder

# Evidence is asked for in banks from this size on, of questions of so many words, so many of which an answer
# needs: "what did we do yesterday" needs none, of two one alone decides, and of many only the rarest are
# searched for.
_LEAST_DOCUMENTS, LEAST_SAID, _LEAST_NEEDED, _MOST_NEEDED = 30, 4, 3, 20
# Below this size shorter questions are not judged, and so much less is asked for: else half of LongMemEval,
# whose banks have 94 documents, lost 4 of 235 answers.
_LARGE_BANK, CAREFUL = 120, 0.45
# Below this evidence a question is about something that the bank does not hold; by the vectors of the bundled
# table, and by those of an encoder.
_LEAST_OF_TABLE, _LEAST_OF_ENCODER = 1.55, 1.45
# With three needed words an answer in other words may share none: less is asked for.
_FEW_NEEDED = 4
# A long text has words of any question, and the best of many texts is better than the best of few: more is
# asked for by the logarithms of the length, above a number of words, and of the number of texts, as far as
# it was measured. In small banks the number of texts counts three times.
BY_LENGTH, BY_SIZE = 0.34, 0.12
_SHORT_TEXT, _USUAL_SIZE, _MOST_SIZE, _IN_SMALL = 40, 500, 20_000, 3.0
# Where the hits leave a doubt, so many of the best texts are read, and so many characters of each: with 400
# of them most sets lost answers. What they cover of the question counts so much.
READ_TEXTS, READ_CHARACTERS = 2, 2000
COVERED = 1.5


class AnswerEvidence(NamedTuple):
    """What speaks for an answer, or the weights of that.

    The best share of the words that an answer needs, the best cosine, the best of both together, and by how
    many too few words are needed; against it a name that no document contains, and the share of the needed
    words that none contains.
    """

    words: float
    cosine: float
    both: float
    few: float
    name: float
    unknown: float

    def sum(self) -> float:
        """Return all of it as one number."""
        total: float = sum(map(mul, self, WEIGHTS))
        return total


WEIGHTS = AnswerEvidence(0.45, 2.4, 0.5, 0.35, -0.4, -0.55)


class Candidates(NamedTuple):
    """What the text index and the vectors found, before it is scored: scores and cosines by places.

    `ideal` is the score of a document that contains every word of the question, `needed` has the weights of
    the words that an answer needs, `unknown` are those of them that no document contains. An unknown name is
    written as one. `documents` is the size of the bank. `then` are the best of the time that the question
    names, `listed` what was recorded in a time of which nothing else is asked.
    """

    shown_words: tuple[str, ...]
    words: dict[int, float]
    ideal: float
    cosines: dict[int, float]
    baseline: CosineBaseline | None
    needed: Mapping[str, float] = {}
    unknown: tuple[str, ...] = ()
    has_unknown_name: bool = False
    documents: int = 0
    then: frozenset[int] = frozenset()
    listed: Mapping[int, Relevance] = {}

    def is_large(self) -> bool:
        """Say whether the bank is large enough to tell what is usual in it."""
        return self.baseline is not None and self.documents >= _LARGE_BANK

    def asks_for_evidence(self, text: str) -> bool:
        """Say whether a question is one of which evidence is asked for."""
        is_large = self.baseline is not None and self.documents >= _LEAST_DOCUMENTS
        is_said = len(text.split()) >= LEAST_SAID
        return is_large and is_said and _LEAST_NEEDED <= len(self.needed) <= _MOST_NEEDED

    def find_evidence(self, found: Mapping[int, Relevance]) -> AnswerEvidence:
        """Return what speaks for an answer among what was found. Of the words only needed ones count."""
        needed = sum(self.needed.values()) or 1.0
        scale = self.ideal / needed if self.needed else 1.0
        return AnswerEvidence(
            min(MOST_SHARE, scale * max([why.words for why in found.values()], default=0.0)),
            max([why.cosine or 0.0 for why in found.values()], default=0.0),
            max([min(MOST_SHARE, scale * why.words) + why.meaning for why in found.values()], default=0.0),
            max(0.0, _FEW_NEEDED - len(self.needed)),
            float(self.has_unknown_name),
            sum(self.needed[word] for word in self.unknown) / needed,
        )


def excess_length(documents: Collection[IndexedDocument]) -> float:
    """Return by how much these texts are longer than short ones, as a logarithm; 0 for short texts."""
    mean = sum(document.length for document in documents) / max(1, len(documents))
    return log(max(1.0, mean / _SHORT_TEXT))


def excess_size(documents: int) -> float:
    """Return by how much a bank is larger than usual, as a logarithm; less than 0 for smaller ones."""
    excess = log(min(max(1, documents), _MOST_SIZE) / _USUAL_SIZE)
    return excess if excess > 0 else _IN_SMALL * excess


def least_evidence(embedder: str, length: float, size: float, *, is_large: bool = True) -> float:
    """Return the evidence that an answer needs, by the excess of the texts' length and of the bank's size."""
    least = _LEAST_OF_TABLE if embedder.startswith("static") else _LEAST_OF_ENCODER
    least -= 0.0 if is_large else CAREFUL
    return least + BY_LENGTH * length + BY_SIZE * size


def cover_words(weights: Mapping[str, float], texts: Iterable[str], table: StaticEmbedder) -> float:
    """Return how much of a question the best of some texts says, in its words or near ones, from 0 to 1.

    A word counts by its weight in the bank and in the table, where "make" weighs little for any bank.
    """
    best = 0.0
    for text in texts:
        compared = table.compare_words(list(weights), extract_terms(text[:READ_CHARACTERS]).words)
        shares = [weight * rarity for weight, (rarity, _) in zip(weights.values(), compared, strict=True)]
        covered = sum(share * near for share, (_, near) in zip(shares, compared, strict=True))
        best = max(best, covered / (sum(shares) or 1.0))
    return best


def describe_doubt(evidence: AnswerEvidence, covered: float, least: float, unknown: Sequence[str]) -> str:
    """Say why what was found is taken for no answer."""
    reasons = [
        f"{evidence.sum() + COVERED * covered:.2f} of {least:.2f} needed",
        f"the best text has {min(1.0, evidence.words):.0%} of the words by weight",
        f"the nearest a cosine of {evidence.cosine:.2f}",
        *([f"no text has {', '.join(unknown)}"] if unknown else []),
    ]
    return f"too little evidence: {'; '.join(reasons)}"
