"""Measure what replaced what, and fit the weights of its signs.

    python -m bench.amended_pairs --fit

The pairs of amended_pairs.jsonl were written before the rules, most by people who did not know them: an
earlier and a later text with a question, half of them about the same thing. All stand in one bank, among
messages about other things. Those of amended_pairs_other.jsonl (with --pairs) are of other kinds and domains.

newer first    amended pairs of which the later text stands above the earlier one
replaced       pairs of which the earlier text is said to be replaced by the later one
older first    questions for the past that find the earlier text first
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from bench.retrieval_data import AROUND, Memory
from bench.retrieval_peers import CachedEncoder, fill_bank
from numpy.typing import NDArray

from archivist.recall.embedders.static import StaticEmbedder
from archivist.recall.query import Query
from archivist.recall.results import Hit
from archivist.recall.statements import WEIGHTS, read_signs, read_statement, share_of_words

PAIRS = Path(__file__).with_name("amended_pairs.jsonl")
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
# Pairs of other texts among the first hits are many: they count less in the fit.
OTHERS, RIDGE, ROUNDS = 0.03, 1.0, 60


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts about one thing, and whether the later replaces the earlier."""

    older: str
    newer: str
    question: str
    replaced: bool
    about_past: bool


def main() -> int:
    """Print the table, and with --fit the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, default=PAIRS, metavar="FILE")
    parser.add_argument("--fit", action="store_true", help="print the weights that these pairs choose")
    options = parser.parse_args()
    pairs = [Pair(**json.loads(line)) for line in options.pairs.read_text("utf-8").splitlines()]
    answers = ask(pairs)
    print(describe(pairs, answers))
    if options.fit:
        print(fit(pairs, answers))
    return 0


def ask(pairs: list[Pair]) -> list[list[tuple[str, Hit]]]:
    """Return what each question finds, with the names of the memories."""
    around = AROUND.strip().splitlines()
    memories = [
        Memory(f"x{n}", text, "user", START + timedelta(hours=7 * n)) for n, text in enumerate(around)
    ]
    for n, pair in enumerate(pairs):
        memories.append(Memory(f"o{n}", pair.older, "user", START + timedelta(hours=n)))
        memories.append(Memory(f"n{n}", pair.newer, "user", START + timedelta(days=60, hours=n)))
    # Each in a thread of its own: neighbours lend nothing.
    memories = [
        Memory(each.id, each.text, each.speaker, each.time, each.id, 1)
        for each in sorted(memories, key=lambda each: (each.time or START, each.id))
    ]
    with tempfile.TemporaryDirectory() as folder:
        bank, names = fill_bank(folder, memories, CachedEncoder(StaticEmbedder(), None))
        found = [
            [(names[hit.id], hit) for hit in bank.recall(Query(pair.question, kinds=("event",))).hits]
            for pair in pairs
        ]
        bank.close()
    return found


def describe(pairs: list[Pair], answers: list[list[tuple[str, Hit]]]) -> str:
    """Write the table."""
    first, replaced = [], []
    for pair, found in zip(pairs, answers, strict=True):
        # By the texts: some stand in several pairs, and a repeat is put behind the others.
        said = {
            f"user: {' '.join(text.split())}": which for which, text in (("o", pair.older), ("n", pair.newer))
        }
        first.append(next((said[hit.text] for _, hit in found if hit.text in said), ""))
        newer = [hit.name for _, hit in found if said.get(hit.text) == "n"]
        notes = [note for _, hit in found if said.get(hit.text) == "o" for note in hit.notes]
        replaced.append(any(note.startswith(f"replaced by {name}:") for name in newer for note in notes))
    kinds = {
        "amended": [n for n, pair in enumerate(pairs) if pair.replaced and not pair.about_past],
        "ordinary": [n for n, pair in enumerate(pairs) if not pair.replaced],
        "about the past": [n for n, pair in enumerate(pairs) if pair.about_past],
    }
    lines = [f"{'':16} pairs  newer first  replaced  older first"]
    for name, places in kinds.items():
        counts = [sum(first[n] == "n" for n in places), sum(replaced[n] for n in places)]
        counts.append(sum(first[n] == "o" for n in places))
        lines.append(f"{name:16} {len(places):5}  {counts[0]:11}  {counts[1]:8}  {counts[2]:11}")
    return "\n".join(lines)


def fit(pairs: list[Pair], answers: list[list[tuple[str, Hit]]]) -> str:
    """Return the weights by logistic regression over the pairs among the first hits."""
    rows, labels, counts = [], [], []
    for n, (pair, found) in enumerate(zip(pairs, answers, strict=True)):
        best = max((hit.why.why.total for _, hit in found), default=0.0)
        for newer, new in found:
            for older, old in found:
                is_pair = (newer, older) == (f"n{n}", f"o{n}")
                relevance = new.why.why.total, old.why.why.total
                if (
                    pair.about_past
                    or new.time is None
                    or old.time is None
                    or new.time <= old.time
                    or relevance[1] < 0.6 * best
                    or relevance[0] < 0.25 * best
                    or share_of_words(read_statement(new.text).stems, read_statement(old.text).stems) < 0.2
                ):
                    continue
                texts = (new.text.removeprefix("user: "), old.text.removeprefix("user: "))
                signs = read_signs(*texts, pair.question, relevance[0] / relevance[1])
                rows.append([1.0, *(signs[name] for name in WEIGHTS if name)])
                labels.append(float(is_pair and pair.replaced))
                counts.append(1.0 if is_pair else OTHERS)
    weights = _regress(np.array(rows), np.array(labels), np.array(counts))
    return ", ".join(f"{name or 'none'} {weight:+.2f}" for name, weight in zip(WEIGHTS, weights, strict=True))


def _regress(
    rows: NDArray[np.float64], labels: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    weights = np.zeros(rows.shape[1])
    ridge = np.full(rows.shape[1], RIDGE)
    ridge[0] = 1e-6
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (counts * (chance - labels)) + ridge * weights
        curve = (rows * (counts * chance * (1 - chance))[:, None]).T @ rows + np.diag(ridge)
        weights -= np.linalg.solve(curve, slope)
    return weights


if __name__ == "__main__":
    raise SystemExit(main())
