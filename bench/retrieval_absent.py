"""Measure how often recall says "nothing found", and choose the evidence from which on it answers.

Each bank is asked its own questions and questions that it cannot answer:

other bank     questions of other banks
adversarial    LoCoMo's own: what one speaker said is asked of the other
withheld       its own questions, without the memories that answer them
same project   questions about the messages of one project that none of them answers

A question is lost when its answer is among the first ten and it is told "nothing found". For each set the
weights and the bound are chosen that lose at most 2 % of any other set. Beside the sets that fit the weights
of recall there are LongMemEval's small banks, joined by ten, and a bank of the texts of all other sets. The
last two kinds of question and LoCoMo's have the words of the bank: what tells them apart is only in the
meaning of the sentences. The last row of a set is what a bound of its own would reach, which nobody knows
beforehand.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench.retrieval_data import (
    AROUND,
    Collection,
    Memory,
    Question,
    QuestionSet,
    adversarial,
)
from bench.retrieval_peers import CachedEncoder, fill_bank

from archivist.recall import evidence
from archivist.recall.candidates_service import find_candidates
from archivist.recall.query import Query
from archivist.recall.scoring import fuse, fusion_of
from archivist.recall.service import KEPT, read_cover

PROJECT = Path(__file__).with_name("project_questions.jsonl")
LOST = 0.02
COVERED = (0.0, 1.0, 1.5, 2.0)
BY_LENGTH = (0.1, 0.15, 0.2, 0.25, 0.3)
BY_SIZE = (0.0, 0.05, 0.075, 0.1)
CANDIDATES, CUT = 64, 10
MOST_ASKED = 300
SEED = 17
# Its banks are below the size from which on evidence is asked for.
SMALL, JOINED, EVERYTHING = "LongMemEval half", "LongMemEval joined", "all in one"
BANKS_JOINED = 10
TALKS = {"LoCoMo", JOINED, EVERYTHING}
KINDS = ("other bank", "same project", "adversarial", "withheld")


class Weights(NamedTuple):
    """What the texts that are read count, and by how much the bound rises with the length and the size."""

    covered: float
    by_length: float
    by_size: float


PRESENT = Weights(evidence.COVERED, evidence.BY_LENGTH, evidence.BY_SIZE)


class Asked(NamedTuple):
    """A question's kind, or `found` and `missed` of those that have an answer; its evidence, and how much the
    best texts cover; the length of what it finds and the size of the bank; whether evidence is asked for.
    """

    kind: str
    evidence: float
    covered: float
    length: float
    size: float
    is_weighed: bool

    def exceeds(self, weights: Weights) -> float:
        """Return the evidence above what is asked for beside the bound."""
        least = weights.by_length * self.length + weights.by_size * self.size
        return self.evidence + weights.covered * self.covered - least


def measure_absent(sets: Sequence[QuestionSet], encoder: CachedEncoder, locomo: Path | None) -> str:
    """Write the table of what is said to questions without an answer, each set left out of the choice."""
    sets = [*(each for each in sets if each.name != SMALL), *_join(sets)]
    asked = {each.name: list(_ask_set(each, sets, encoder, locomo)) for each in sets}
    asked["project"] = list(_ask_project(encoder))
    lines = [
        f"{'left out':18} covered  by length  by size  least   lost"
        + "".join(f"  {kind:>12}" for kind in KINDS)
    ]
    for name, found in asked.items():
        weights, least = choose([each for other, each in asked.items() if other != name])
        own = _find_bound(found, PRESENT)
        rows = (
            (name, weights, least),
            ("  as it is now", PRESENT, evidence.least_evidence(encoder.name, 0.0, 0.0)),
        )
        for label, weights, least in (*rows, ("  by its own bound", PRESENT, own)):
            shares = _shares_below(found, weights, least)
            cells = "".join(f"  {shares[kind]:12.2f}" if kind in shares else f"{'':14}" for kind in KINDS)
            numbers = f"{weights.covered:7.2f} {weights.by_length:10.2f} {weights.by_size:8.3f} {least:6.2f}"
            lines.append(f"{label:18} {numbers} {shares['found']:6.3f}{cells}")
    weights, least = choose(list(asked.values()))
    return "\n".join([*lines, f"by all sets: {weights}, at least {least:.2f}"])


def choose(sets: Sequence[Sequence[Asked]]) -> tuple[Weights, float]:
    """Return the weights and the bound that refuse most, and lose at most 2 % of each set."""
    choices = []
    for weights in map(Weights._make, product(COVERED, BY_LENGTH, BY_SIZE)):
        least = min(_find_bound(found, weights) for found in sets)
        shares = [_shares_below(found, weights, least) for found in sets]
        refused = [share for each in shares for kind, share in each.items() if kind in KINDS[:2]]
        choices.append((float(np.mean(refused)), weights, least))
    return max(choices)[1:]


def _find_bound(found: Sequence[Asked], weights: Weights) -> float:
    """Return the highest bound that loses at most 2 % of the answers of a set."""
    answered = [each for each in found if each.kind == "found"]
    values = sorted(each.exceeds(weights) for each in answered if each.is_weighed)
    lost = int(LOST * len(answered))
    return values[lost] if lost < len(values) else 9.0


def _shares_below(found: Sequence[Asked], weights: Weights, least: float) -> dict[str, float]:
    by_kind: defaultdict[str, list[bool]] = defaultdict(list)
    for each in found:
        by_kind[each.kind].append(each.is_weighed and each.exceeds(weights) < least)
    return {kind: float(np.mean(values)) for kind, values in by_kind.items()}


def _join(sets: Sequence[QuestionSet]) -> Iterator[QuestionSet]:
    """Yield LongMemEval in banks that are large enough, and a bank of all texts but those."""
    by_name = {each.name: each.collections for each in sets}
    if small := by_name.get(SMALL):
        banks = range(0, len(small), BANKS_JOINED)
        yield QuestionSet(JOINED, tuple(_join_banks(small[at : at + BANKS_JOINED]) for at in banks))
    # What was asked is a part of what was answered.
    others = [bank for name, banks in by_name.items() if name not in (SMALL, "asked") for bank in banks]
    yield QuestionSet(EVERYTHING, (_join_banks(others),))


def _join_banks(banks: Sequence[Collection]) -> Collection:
    """Return banks as one, their ids and threads kept apart."""
    memories = [
        replace(each, id=f"{at}-{each.id}", thread=f"{at}-{each.thread}")
        for at, bank in enumerate(banks)
        for each in bank.memories
    ]
    questions = [
        replace(each, gold=tuple(f"{at}-{name}" for name in each.gold))
        for at, bank in enumerate(banks)
        for each in bank.questions
    ]
    return Collection(tuple(memories), tuple(questions))


def _ask_set(
    questions: QuestionSet, sets: Sequence[QuestionSet], encoder: CachedEncoder, locomo: Path | None
) -> Iterator[Asked]:
    drawn = random.Random(SEED)
    banks = questions.collections
    unanswered = adversarial(locomo) if locomo and questions.name == "LoCoMo" else [()] * len(banks)
    every = max(1, len(questions.questions) // MOST_ASKED)
    for collection, refused in zip(banks, unanswered, strict=True):
        others = list(_other_questions(collection, questions, sets))
        count = min(max(1, MOST_ASKED // len(banks)), len(others))
        wanted = [("other bank", text) for text in drawn.sample(others, count)]
        wanted += [("adversarial", text) for text in refused[:count]]
        yield from _ask_bank(collection.memories, collection.questions[::every], wanted, encoder)


def _other_questions(
    collection: Collection, questions: QuestionSet, sets: Sequence[QuestionSet]
) -> Iterator[str]:
    """Yield what is asked of other banks: of other conversations, or of other texts that are no talk."""
    for each in sets:
        is_same_text = {each.name, questions.name} == {"asked", "answered"}
        is_other_kind = is_same_text or bool({each.name, questions.name} & TALKS)
        is_elsewhere = questions.name == EVERYTHING and each.name == JOINED
        if each is questions or not is_other_kind or is_elsewhere:
            yield from (
                asked.text
                for other in each.collections
                if other is not collection
                for asked in other.questions
            )


def _ask_project(encoder: CachedEncoder) -> Iterator[Asked]:
    start = datetime(2026, 3, 2, tzinfo=UTC)
    memories = [
        Memory(f"m{n}", text, "user", start + timedelta(hours=n), f"m{n}", 1)
        for n, text in enumerate(AROUND.strip().splitlines())
    ]
    asked = [json.loads(line) for line in PROJECT.read_text("utf-8").splitlines()]
    # All of its answers are found.
    kinds = [("found" if each["is_answered"] else "same project", each["text"]) for each in asked]
    yield from _ask_bank(memories, (), kinds, encoder)


def _ask_bank(
    memories: Sequence[Memory],
    questions: Sequence[Question],
    others: Sequence[tuple[str, str]],
    encoder: CachedEncoder,
) -> Iterator[Asked]:
    fusion = fusion_of(encoder.name)
    with tempfile.TemporaryDirectory() as folder:
        bank, names = fill_bank(folder, memories, encoder)
        for kind, text, gold in (
            *(("found", each.text, each.gold) for each in questions),
            *((kind, text, ()) for kind, text in others),
        ):
            question = bank.searches.prepare_question(Query(text, kinds=("event",)))
            with bank.reading() as reader:
                candidates = find_candidates(reader, question, CANDIDATES)
                documents = reader.indexed_documents([*{**candidates.words, **candidates.cosines}])
                found = fuse(
                    candidates.words, candidates.ideal, candidates.cosines, candidates.baseline, fusion
                )
                answers = {place for place, each in documents.items() if names.get(each.record) in gold}
                best = sorted(found, key=lambda place: (-found[place].total, place))
                is_missed = bool(gold) and answers.isdisjoint(best[:CUT])
                length = evidence.excess_length([documents[place] for place in best[:KEPT]])
                size = evidence.excess_size(candidates.documents)
                is_weighed = candidates.asks_for_evidence(text)
                for label, left in (("missed" if is_missed else kind, {}), ("withheld", answers)):
                    rest = {place: why for place, why in found.items() if place not in left}
                    read = {place: documents[place] for place in rest}
                    covered = read_cover(reader, candidates, rest, read)
                    if label != "withheld" or answers:
                        weight = candidates.weigh_evidence(rest)
                        yield Asked(label, weight, covered, length, size, is_weighed)
        bank.close()
