"""Measure how often recall says "nothing found", and choose the evidence from which on it answers.

Each bank is asked its own questions and questions that it cannot answer:

other bank     questions of other banks
adversarial    LoCoMo's own: what one speaker said is asked of the other
withheld       its own questions, without the memories that answer them
same project   questions about the messages of one project that none of them answers

A question is lost when its answer is among the first ten and it is told "nothing found". Beside the sets that
fit the weights of recall there are those of what is installed here, LongMemEval's small banks, joined by ten,
and a bank of the texts of all other sets. Each set is also asked in small banks of its neighbouring texts.
For each set, in all its sizes, the weights and the bound are chosen that refuse most and lose at most 2 % of
any other set. Questions of the last two kinds and LoCoMo's adversarial ones have the words of the bank: what
tells them apart is only in the meaning of the sentences. The last column is what a bound of its own would
reach, which nobody knows beforehand. What recall asks less in small banks is only in what is in use.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from bench.retrieval_sets import installed_sets, split_banks
from numpy.typing import NDArray

from archivist.recall import evidence
from archivist.recall.answer_service import read_cover
from archivist.recall.candidates_service import find_candidates
from archivist.recall.query import Query
from archivist.recall.scoring import fuse, fusion_of
from archivist.recall.service import KEPT

PROJECT = Path(__file__).with_name("project_questions.jsonl")
LOST = 0.02
CANDIDATES, CUT = 64, 10
MOST_ASKED, MOST_IN_SMALL, LEAST_ANSWERED = 300, 150, 50
SEED, SEARCHES, TRIALS = 17, 3, 900
# Its own banks are small.
SMALL, JOINED, EVERYTHING = "LongMemEval half", "LongMemEval joined", "all in one"
BANKS_JOINED = 10
SIZES = (32, 80, 160)
TALKS = {"LoCoMo", JOINED, EVERYTHING}
KINDS = ("other bank", "same project", "adversarial", "withheld")
# Sets of which one may answer what is asked of the other.
ALIKE = ({"asked", "answered"}, {"packages", "manuals", "notes"})
ELSEWHERE = {(EVERYTHING, JOINED), ("LoCoMo", JOINED), (JOINED, "LoCoMo")}
# Sets of the same texts are left out together.
FAMILIES = {"asked": "answered", JOINED: SMALL}


class Asked(NamedTuple):
    """A question's kind, or `found` and `missed` of those that have an answer; the parts of its evidence,
    whether evidence is asked for, and whether the bank is so large that recall is not careful.
    """

    kind: str
    parts: tuple[float, ...]
    is_weighed: bool
    is_large: bool


# Of the evidence, of what the best texts cover, and of the length and size for which more is asked.
PARTS = (*evidence.AnswerEvidence._fields, "covered", "length", "size")
PRESENT = np.array([*evidence.WEIGHTS, evidence.COVERED, -evidence.BY_LENGTH, -evidence.BY_SIZE])


def measure_absent(sets: Sequence[QuestionSet], encoder: CachedEncoder, locomo: Path | None) -> str:
    """Write the table of what is said to questions without an answer, each set left out of the choice."""
    sets = [*(each for each in sets if each.name != SMALL), *_join(sets), *installed_sets()]
    split = [split_banks(each, size) for each in sets if each.name != EVERYTHING for size in SIZES]
    asked = {each.name: list(_ask_set(each, sets, encoder, locomo)) for each in (*sets, *split)}
    asked["project"] = list(_ask_project(encoder))
    lines = [
        f"{'':28} in use: lost  refused   left out: lost  refused   own bound"
        + "".join(f"  {kind:>12}" for kind in KINDS[2:])
    ]
    chosen = {
        family: choose([found for name, found in asked.items() if _family(name) != family])
        for family in dict.fromkeys(map(_family, asked))
    }
    least = evidence.least_evidence(encoder.name, 0.0, 0.0)
    for name, found in asked.items():
        shares = _shares_below(found, PRESENT, least, evidence.CAREFUL)
        left_out = _shares_below(found, *chosen[_family(name)])
        own = _shares_below(found, PRESENT, _find_bound(found, PRESENT))
        lost = shares.get("found", np.nan), left_out.get("found", np.nan)
        cells = (lost[0], _refused(shares), lost[1], _refused(left_out), _refused(own))
        others = (f"{shares[kind]:12.2f}" if kind in shares else f"{'':12}" for kind in KINDS[2:])
        row = "{:12.3f} {:8.2f} {:16.3f} {:8.2f} {:11.2f}  ".format(*cells)
        lines.append(f"{name:28} {row}{'  '.join(others)}")
    weights, least = choose(list(asked.values()))
    values = ", ".join(f"{part} {weight:.2f}" for part, weight in zip(PARTS, weights, strict=True))
    return "\n".join([*lines, f"by all sets: {values}, at least {least:.2f}"])


def _family(name: str) -> str:
    name = name.partition(", banks of")[0]
    return FAMILIES.get(name, name)


def _refused(shares: dict[str, float]) -> float:
    return float(np.mean([shares[kind] for kind in KINDS[:2] if kind in shares] or [np.nan]))


def choose(sets: Sequence[Sequence[Asked]]) -> tuple[NDArray[np.float64], float]:
    """Return the weights and the bound that refuse most, and lose at most 2 % of each set.

    The mean of several searches, each of which keeps the random changes that help, at the scale of the
    present weight of what is covered.
    """
    scale = np.array([each.parts for found in sets for each in found]).std(axis=0) + 1e-9
    kinds = (("found",), KINDS[:2])
    weighed = [
        [
            np.array([each.parts for each in found if each.kind in kind and each.is_weighed]).reshape(
                -1, len(PARTS)
            )
            / scale
            for found in sets
        ]
        for kind in kinds
    ]
    counts = [sum(each.kind == "found" for each in found) for found in sets]
    answered = [
        (rows, int(LOST * count))
        for rows, count in zip(weighed[0], counts, strict=True)
        if count >= LEAST_ANSWERED
    ]
    foreign = [rows for rows in weighed[1] if len(rows)]
    shares = np.concatenate([np.full(len(rows), 1 / len(rows) / len(foreign)) for rows in foreign])
    stacked = np.vstack(foreign)
    start = PRESENT * scale / np.linalg.norm(PRESENT * scale)

    def judge(weights: NDArray[np.float64]) -> float:
        weights = weights / np.linalg.norm(weights)
        least = min(float(np.partition(rows @ weights, lost)[lost]) for rows, lost in answered)
        refused = 1 / (1 + np.exp(np.clip((stacked @ weights - least) / 0.12, -30, 30)))
        return float(shares @ refused - 0.002 * np.abs(weights - start).sum())

    found = []
    for seed in range(SEARCHES):
        drawn, best, step = np.random.default_rng(seed), start, 0.2
        value = judge(best)
        for trial in range(TRIALS):
            tried = best.copy()
            tried[drawn.integers(len(best), size=1 + (drawn.random() < 0.4))] += drawn.normal() * step
            if (reached := judge(tried)) > value:
                best, value = tried / np.linalg.norm(tried), reached
            step *= 0.8 if trial % 150 == 149 else 1.0
        found.append(best / scale)
    weights = np.mean(found, axis=0)
    weights *= evidence.COVERED / weights[PARTS.index("covered")]
    counted = [each for each, count in zip(sets, counts, strict=True) if count >= LEAST_ANSWERED]
    return weights, min(_find_bound(each, weights) for each in counted)


def _find_bound(found: Sequence[Asked], weights: NDArray[np.float64]) -> float:
    """Return the highest bound that loses at most 2 % of the answers of a set."""
    answered = [each for each in found if each.kind == "found"]
    values = sorted(float(weights @ each.parts) for each in answered if each.is_weighed)
    lost = int(LOST * len(answered))
    return values[lost] if lost < len(values) else 9.0


def _shares_below(
    found: Sequence[Asked], weights: NDArray[np.float64], least: float, careful: float = 0.0
) -> dict[str, float]:
    by_kind: defaultdict[str, list[bool]] = defaultdict(list)
    for each in found:
        asked_for = least if each.is_large else least - careful
        by_kind[each.kind].append(each.is_weighed and float(weights @ each.parts) < asked_for)
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
    most = MOST_IN_SMALL if ", banks of" in questions.name else MOST_ASKED
    every = max(1, len(questions.questions) // most)
    for collection, refused in zip(banks, unanswered, strict=True):
        others = list(_other_questions(collection, questions, sets))
        count = min(max(1, most // len(banks)), len(others))
        wanted = [("other bank", text) for text in drawn.sample(others, count)]
        wanted += [("adversarial", text) for text in refused[:count]]
        yield from _ask_bank(collection.memories, collection.questions[::every], wanted, encoder)


def _other_questions(
    collection: Collection, questions: QuestionSet, sets: Sequence[QuestionSet]
) -> Iterator[str]:
    """Yield what is asked of other banks: of other conversations, or of other texts that are no talk."""
    name = questions.name.partition(", banks of")[0]
    for each in sets:
        is_same_text = any({each.name, name} <= kinds for kinds in ALIKE)
        is_other_kind = is_same_text or bool({each.name, name} & TALKS)
        # In a small bank of a conversation other conversations are those of the other set.
        is_split = name != questions.name
        is_elsewhere = (is_split or name == EVERYTHING) and (name, each.name) in ELSEWHERE
        if each is questions or (not is_other_kind and each.name != name) or is_elsewhere:
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
                        parts = (*candidates.find_evidence(rest), covered, length, size)
                        yield Asked(label, parts, is_weighed, candidates.is_large())
        bank.close()
