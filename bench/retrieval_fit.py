"""Fit the weights by which recall joins words, vectors and neighbours, for `python -m bench.retrieval`.

Every combination of a small grid is tried on every set. For each set the combination is chosen that does best
on all the others, and its figure on the set that was left out is printed: that is what an unseen set may
expect. The last row is the choice by all sets, which `archivist.recall.scoring.FUSION` holds. A combination
is judged by its mean recall@10, less what it is below the better of words and vectors on any set. The bundled
table and a sentence encoder have weights of their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from bench.retrieval_data import QuestionSet, locomo, longmemeval
from bench.retrieval_peers import CachedEncoder, fill_bank
from bench.retrieval_sets import made_sets
from numpy.typing import NDArray

from archivist.recall.answer_service import WITH_NEIGHBOURS
from archivist.recall.candidates_service import find_candidates
from archivist.recall.evidence import Candidates
from archivist.recall.query import Query
from archivist.recall.scoring import (
    ASSISTANT,
    LENT,
    Fusion,
    Relevance,
    add_neighbour_scores,
    boost_scores,
    discount_long,
    fuse,
    is_short_remark,
    lower_mentions,
    score_meaning,
)
from archivist.recall.service import KEPT
from archivist.recall.statements import is_remark
from archivist.store.results import IndexedDocument

GRID = {
    "words": (0.4, 0.6, 0.8, 1.2, 1.6),
    "crowding": (1.0, 4.0),
    "crowded": (0.0, 24.0),
    "length": (0.5,),
    "beside": (0.5,),
    "span": (0.0, 0.6),
}
CUT = 10
CANDIDATES = 64
# What a choice is below the better part on any set counts so much, beside the mean over the sets.
BELOW = 0.5
ALLOWED = 0.01
SAMPLE = 400


@dataclass(frozen=True, slots=True)
class Case:
    """One question with all that scoring needs, read once."""

    gold: frozenset[int]
    golds: int
    speakers: frozenset[str]
    candidates: Candidates
    documents: dict[int, IndexedDocument]
    beside: dict[tuple[str, int], IndexedDocument]
    cosines: dict[int, float]
    remarks: frozenset[int]


def all_sets(data: Path | None) -> Iterator[QuestionSet]:
    """Yield the sets on which the weights are chosen."""
    if data is not None:
        yield locomo(data / "locomo")
        yield longmemeval(data / "longmemeval")
    yield from made_sets(data)


def read_cases(questions: QuestionSet, encoder: CachedEncoder) -> Iterator[Case]:
    """Fill a bank for each collection, and read what its questions find."""
    every = max(1, len(questions.questions) // SAMPLE)
    for collection in questions.collections:
        with tempfile.TemporaryDirectory() as folder:
            bank, names = fill_bank(folder, collection.memories, encoder)
            for asked in collection.questions[::every]:
                query = Query(text=asked.text, kinds=("event",))
                question = bank.searches.prepare_question(query)
                with bank.reading() as reader:
                    found = find_candidates(reader, question, CANDIDATES)
                    documents = reader.indexed_documents([*{**found.words, **found.cosines}])
                    around = reader.documents_at(
                        [
                            (each.thread, each.position + step * side)
                            for each in documents.values()
                            for step in LENT
                            for side in (-1, 1)
                        ]
                    )
                    around = [each for each in around if each.kind == "event"]
                    cosines = reader.cosines(question.vector, encoder.name, [each.place for each in around])
                    short = {
                        each.record: each.place
                        for each in (*documents.values(), *around)
                        if is_short_remark(each) and ASSISTANT not in question.speakers
                    }
                    said = reader.records("event", list(short))
                remarks = frozenset(short[name] for name, event in said.items() if is_remark(event.text))
                known = {place: names[each.record] for place, each in documents.items()}
                known |= {each.place: names[each.record] for each in around}
                gold = frozenset(place for place, name in known.items() if name in asked.gold)
                beside = {(each.thread, each.position): each for each in around}
                yield Case(
                    gold, len(set(asked.gold)), question.speakers, found, documents, beside, cosines, remarks
                )
            bank.close()


def rank(case: Case, weights: Fusion) -> list[int]:
    """Return the order of a question's documents as recall would have it."""
    candidates = case.candidates
    found = fuse(candidates.words, candidates.ideal, candidates.cosines, candidates.baseline, weights)
    best = sorted(found, key=lambda place: (-found[place].total, place))[:KEPT]
    found = discount_long({place: found[place] for place in best}, case.documents, weights)
    documents = dict(case.documents)
    for place in best[:WITH_NEIGHBOURS]:
        for step in (*LENT, *(-step for step in LENT)):
            at = (case.documents[place].thread, case.documents[place].position + step)
            beside = case.beside.get(at)
            if beside is None or beside.place in found or candidates.baseline is None:
                continue
            cosine = case.cosines.get(beside.place)
            weight = found[place].words_weight
            meaning = 0.0 if cosine is None else score_meaning(cosine, candidates.baseline)
            found[beside.place] = Relevance((1 - weight) * meaning, 0.0, meaning, weight, cosine)
            documents[beside.place] = beside
    found = add_neighbour_scores(found, documents, candidates.baseline, weights)
    found = lower_mentions(found, case.remarks.intersection(found))
    found = boost_scores(found, documents, case.speakers, weights)
    order = sorted(found, key=lambda place: (-found[place].total, place))
    # Equal texts have equal scores; recall puts a repeat behind the others.
    prints = {place: (documents[place].length, found[place].words, found[place].cosine) for place in order}
    firsts = {prints[place]: place for place in reversed(order)}
    return sorted(order, key=lambda place: firsts[prints[place]] != place)


def recall_at_cut(case: Case, order: Sequence[int]) -> float:
    """Return the share of the gold memories among the first ten."""
    return len(case.gold.intersection(order[:CUT])) / case.golds


def better_part(cases: Sequence[Case]) -> float:
    """Return the recall of words alone or of vectors alone, whichever is better."""
    lists = ([each.candidates.words for each in cases], [each.candidates.cosines for each in cases])
    return max(
        float(
            np.mean(
                [
                    recall_at_cut(case, sorted(scores, key=lambda place: (-scores[place], place)))
                    for case, scores in zip(cases, part, strict=True)
                ]
            )
        )
        for part in lists
    )


def leave_one_out(cases: dict[str, list[Case]], present: Fusion) -> str:
    """Try the grid, and write what each choice by the other sets does on the one that was left out."""
    choices = [
        present._replace(**dict(zip(GRID, values, strict=True)), two_away=values[4] / 2)
        for values in product(*GRID.values())
    ]
    parts = np.array([better_part(each) for each in cases.values()])
    figures = np.array(
        [
            [np.mean([recall_at_cut(case, rank(case, weights)) for case in each]) for each in cases.values()]
            for weights in (present, *choices)
        ]
    )
    lines = [f"{'left out':28} better part   left out   difference   weights chosen by the others"]
    for column, name in enumerate(cases):
        others = [at for at in range(len(cases)) if at != column]
        row = choose(figures[1:, others], parts[others])
        figure = figures[1 + row, column]
        shown = " ".join(f"{key} {getattr(choices[row], key):g}" for key in GRID)
        lines.append(
            f"{name:28} {parts[column]:11.3f} {figure:10.3f} {figure - parts[column]:+12.3f}   {shown}"
        )
    chosen = choose(figures[1:], parts)
    lines.append(f"by all sets: {choices[chosen]}")
    for label, row in (("its figures", 1 + chosen), ("as it is now", 0)):
        lines.append(f"{label:12} " + " ".join(f"{figure:.3f}" for figure in figures[row]))
    return "\n".join(lines)


def choose(figures: NDArray[np.float64], parts: NDArray[np.float64]) -> int:
    """Return the row with the best mean, less what it is below the better part on any set."""
    below = np.maximum(0.0, parts - ALLOWED - figures).sum(axis=1)
    return int(np.argmax(figures.mean(axis=1) - BELOW * below))
