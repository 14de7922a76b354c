"""Measure how often recall says "nothing found", and choose the evidence from which on it answers.

Each bank is asked its own questions and questions that it cannot answer:

other bank     questions of other banks
adversarial    LoCoMo's own: what one speaker said is asked of the other
withheld       its own questions, without the memories that answer them
same project   questions about the messages of one project that none of them answers

A question is lost when its answer is among the first ten and it is told "nothing found". For each set that
evidence is chosen that loses at most 2 % of any other set. The last two kinds of question and LoCoMo's have
the words of the bank: what tells them apart is only in the meaning of the sentences.
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
from archivist.recall.scoring import LEAST_EVIDENCE, fuse, fusion_of
from archivist.recall.service import find_candidates

PROJECT = Path(__file__).with_name("project_questions.jsonl")
LOST = 0.02
CANDIDATES, CUT = 64, 10
MOST_ASKED = 300
SEED = 17
# Its banks are below the size from which on evidence is asked for.
SMALL = "LongMemEval half"
TALKS = {"LoCoMo", SMALL}
KINDS = ("other bank", "same project", "adversarial", "withheld")


class Asked(NamedTuple):
    """A question's kind, or `found` and `missed` of those that have an answer, and its evidence."""

    kind: str
    evidence: float


def measure_absent(sets: Sequence[QuestionSet], encoder: CachedEncoder, locomo: Path | None) -> str:
    """Write the table of what is said to questions without an answer, each set left out of the choice."""
    asked = {each.name: list(_ask_set(each, sets, encoder, locomo)) for each in sets}
    asked["project"] = list(_ask_project(encoder))
    least = {
        name: float(np.quantile([each.evidence for each in found if each.kind == "found"], LOST))
        for name, found in asked.items()
    }
    lines = [f"{'left out':18} chosen   lost" + "".join(f"  {kind:>12}" for kind in KINDS)]
    for name, found in asked.items():
        chosen = min(value for other, value in least.items() if other not in (name, SMALL))
        for label, bound in ((name, chosen), ("  as it is now", LEAST_EVIDENCE)):
            shares = _shares_below(found, bound)
            cells = "".join(f"  {shares[kind]:12.2f}" if kind in shares else f"{'':14}" for kind in KINDS)
            lines.append(f"{label:18} {bound:6.2f} {shares['found']:6.3f}{cells}")
    return "\n".join(lines)


def _shares_below(found: Sequence[Asked], bound: float) -> dict[str, float]:
    by_kind: defaultdict[str, list[bool]] = defaultdict(list)
    for each in found:
        by_kind[each.kind].append(each.evidence < bound)
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
            best = sorted(found, key=lambda place: (-found[place].total, place))[:CUT]
            is_missed = bool(gold) and answers.isdisjoint(best)
            yield Asked("missed" if is_missed else kind, candidates.weigh_evidence(found))
            if answers:
                rest = {place: why for place, why in found.items() if place not in answers}
                yield Asked("withheld", candidates.weigh_evidence(rest))
        bank.close()
