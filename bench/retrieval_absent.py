"""Measure how often recall says "nothing found", and choose the evidence from which on it answers.

Each bank is asked its own questions and questions that it cannot answer:

other bank     questions of other banks
adversarial    LoCoMo's own: what one speaker said is asked of the other
withheld       its own questions, without the memories that answer them
same project   questions about the messages of one project that none of them answers

A question is lost when its answer is among the first ten and it is told "nothing found". For each set that
evidence is chosen, by the length of a bank's texts, that loses at most 2 % of any other set. The last two
kinds of question and LoCoMo's have the words of the bank: what tells them apart is only in the meaning of the
sentences.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
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

from archivist.recall.query import Query
from archivist.recall.scoring import EVIDENCE_BY_LENGTH, LEAST_EVIDENCE, excess_length, fuse, fusion_of
from archivist.recall.service import KEPT, find_candidates

PROJECT = Path(__file__).with_name("project_questions.jsonl")
LOST = 0.02
BY_LENGTH = (0.0, 0.15, 0.3)
CANDIDATES, CUT = 64, 10
MOST_ASKED = 300
SEED = 17
# Its banks are below the size from which on evidence is asked for.
SMALL = "LongMemEval half"
TALKS = {"LoCoMo", SMALL}
KINDS = ("other bank", "same project", "adversarial", "withheld")


class Asked(NamedTuple):
    """A question's kind, or `found` and `missed` of those that have an answer, its evidence, and the length
    of the texts that it finds.
    """

    kind: str
    evidence: float
    length: float


def measure_absent(sets: Sequence[QuestionSet], encoder: CachedEncoder, locomo: Path | None) -> str:
    """Write the table of what is said to questions without an answer, each set left out of the choice."""
    asked = {each.name: list(_ask_set(each, sets, encoder, locomo)) for each in sets}
    asked["project"] = list(_ask_project(encoder))
    lines = [f"{'left out':18} by length  least   lost" + "".join(f"  {kind:>12}" for kind in KINDS)]
    for name, found in asked.items():
        others = [each for other, each in asked.items() if other not in (name, SMALL)]
        present = EVIDENCE_BY_LENGTH, LEAST_EVIDENCE
        for label, (by_length, least) in ((name, choose(others)), ("  as it is now", present)):
            shares = _shares_below(found, by_length, least)
            cells = "".join(f"  {shares[kind]:12.2f}" if kind in shares else f"{'':14}" for kind in KINDS)
            lines.append(f"{label:18} {by_length:9.2f} {least:6.2f} {shares['found']:6.3f}{cells}")
    every = [each for name, each in asked.items() if name != SMALL]
    return "\n".join([*lines, "by all sets: {:.2f} by length, at least {:.2f}".format(*choose(every))])


def choose(sets: Sequence[Sequence[Asked]]) -> tuple[float, float]:
    """Return the weight of the length and the bound that refuse most, and lose at most 2 % of each set."""
    choices = []
    for by_length in BY_LENGTH:
        least = min(
            float(np.quantile([_evidence(each, by_length) for each in found if each.kind == "found"], LOST))
            for found in sets
        )
        shares = [_shares_below(found, by_length, least) for found in sets]
        refused = [share for each in shares for kind, share in each.items() if kind in KINDS[:2]]
        choices.append((float(np.mean(refused)), by_length, least))
    return max(choices)[1:]


def _evidence(asked: Asked, by_length: float) -> float:
    return asked.evidence - by_length * asked.length


def _shares_below(found: Sequence[Asked], by_length: float, least: float) -> dict[str, float]:
    by_kind: defaultdict[str, list[bool]] = defaultdict(list)
    for each in found:
        by_kind[each.kind].append(_evidence(each, by_length) < least)
    return {kind: float(np.mean(values)) for kind, values in by_kind.items()}


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
        if each is questions or not is_other_kind:
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
            found = fuse(candidates.words, candidates.ideal, candidates.cosines, candidates.baseline, fusion)
            answers = {place for place, each in documents.items() if names.get(each.record) in gold}
            best = sorted(found, key=lambda place: (-found[place].total, place))
            is_missed = bool(gold) and answers.isdisjoint(best[:CUT])
            length = excess_length([documents[place] for place in best[:KEPT]])
            yield Asked("missed" if is_missed else kind, candidates.weigh_evidence(found), length)
            if answers:
                rest = {place: why for place, why in found.items() if place not in answers}
                yield Asked("withheld", candidates.weigh_evidence(rest), length)
        bank.close()
