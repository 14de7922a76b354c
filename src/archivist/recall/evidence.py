"""Decide whether a question finds nothing: some text is always the nearest, also where none answers.

`python -m bench.retrieval` chooses the constants, and prints what they reach on each set left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import log
from typing import TYPE_CHECKING, NamedTuple

from archivist.recall.lexical import extract_terms
from archivist.recall.scoring import MOST_SHARE, CosineBaseline, Relevance
from archivist.store.results import IndexedDocument

if TYPE_CHECKING:
    from archivist.recall.embedders.static import StaticEmbedder

# Evidence is asked for in banks from this size on, of questions of so many words, so many of which an answer
# needs: "what did we do yesterday" needs none, of two one alone decides, and of many only the rarest are
# searched for.
_LEAST_DOCUMENTS, LEAST_SAID, _LEAST_NEEDED, _MOST_NEEDED = 120, 4, 3, 20
# With three needed words an answer in other words may share none: less is asked for.
_FEW_NEEDED, _OF_FEW = 4, 0.35
# Below this evidence a question is about something that the bank does not hold; by the vectors of the bundled
# table, and by those of an encoder, with which 1.6 took .02 of the recall of shell commands.
_LEAST_OF_TABLE, _LEAST_OF_ENCODER = 1.6, 1.5
# A long text has words of any question, and the best of many texts is better than the best of few: more is
# asked for by the logarithms of the length, above a number of words, and of the number of texts, as far as
# it was measured.
BY_LENGTH, BY_SIZE = 0.2, 0.075
_SHORT_TEXT, _USUAL_SIZE, _MOST_SIZE = 40, 500, 20_000
_UNKNOWN_NAME = 0.4
# Where the hits leave a doubt, so many of the best texts are read, and so many characters of each: with 400
# of them most sets lost answers. What they cover of the question counts so much.
READ_TEXTS, READ_CHARACTERS = 2, 2000
COVERED = 1.5


class Candidates(NamedTuple):
    """What the text index and the vectors found, before it is scored: scores and cosines by places.

    `ideal` is the score of a document that contains every word of the question, `needed` has the weights of
    the words that an answer needs. An unknown name is one that no document contains. `documents` is the size
    of the bank. `then` are the best of the time that the question names, `listed` what was recorded in a time
    of which nothing else is asked.
    """

    shown_words: tuple[str, ...]
    words: dict[int, float]
    ideal: float
    cosines: dict[int, float]
    baseline: CosineBaseline | None
    needed: Mapping[str, float] = {}
    has_unknown_name: bool = False
    documents: int = 0
    then: frozenset[int] = frozenset()
    listed: Mapping[int, Relevance] = {}

    def is_large(self) -> bool:
        """Say whether the bank is large enough to tell what is usual in it."""
        return self.baseline is not None and self.documents >= _LEAST_DOCUMENTS

    def asks_for_evidence(self, text: str) -> bool:
        """Say whether a question is one of which evidence is asked for."""
        is_said = len(text.split()) >= LEAST_SAID
        return self.is_large() and is_said and _LEAST_NEEDED <= len(self.needed) <= _MOST_NEEDED

    def weigh_evidence(self, found: Mapping[int, Relevance]) -> float:
        """Return how much speaks for an answer among what was found: the best by words, by cosine, by both.

        Of the words only those count that an answer needs. Who asks about a name that no document contains
        asks about something else.
        """
        if not found:
            return 0.0
        needed = sum(self.needed.values())
        scale = self.ideal / needed if needed > 0 else 1.0
        words = min(MOST_SHARE, scale * max([why.words for why in found.values()]))
        cosine = max([why.cosine or 0.0 for why in found.values()])
        both = max([min(MOST_SHARE, scale * why.words) + why.meaning for why in found.values()])
        few = _OF_FEW * max(0, _FEW_NEEDED - len(self.needed))
        return 1.5 * words + cosine + 0.5 * both + few - (_UNKNOWN_NAME if self.has_unknown_name else 0.0)


def excess_length(documents: Collection[IndexedDocument]) -> float:
    """Return by how much these texts are longer than short ones, as a logarithm; 0 for short texts."""
    mean = sum(document.length for document in documents) / max(1, len(documents))
    return log(max(1.0, mean / _SHORT_TEXT))


def excess_size(documents: int) -> float:
    """Return by how much a bank is larger than usual, as a logarithm."""
    return log(min(max(1, documents), _MOST_SIZE) / _USUAL_SIZE)


def least_evidence(embedder: str, length: float, size: float) -> float:
    """Return the evidence that an answer needs, by the excess of the texts' length and of the bank's size."""
    least = _LEAST_OF_TABLE if embedder.startswith("static") else _LEAST_OF_ENCODER
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
