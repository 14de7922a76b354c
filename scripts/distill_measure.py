"""Measure a table on held-out packages: agreement with the teacher, and finding a text by what names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from distill_corpus import Pair
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Matrix]
COMPARED = 200_000


@dataclass(frozen=True, slots=True)
class Held:
    """What a table is measured with: texts and the teacher's vectors of them, and pairs."""

    texts: list[str]
    vectors: Matrix
    pairs: list[Pair]


def figures(embed: Embed, held: Held) -> dict[str, float]:
    """Return how far likeness agrees with the teacher's, and recall by kind of pair."""
    found = {"spearman": _agreement(embed(held.texts), held.vectors)}
    found["neighbours@10"] = _shared_neighbours(embed(held.texts), held.vectors)
    for kind in sorted({pair.kind for pair in held.pairs}):
        pairs = [pair for pair in held.pairs if pair.kind == kind]
        queries, answers = embed([pair.query for pair in pairs]), embed([pair.answer for pair in pairs])
        found[f"{kind} recall@1"] = _recall_at_1(queries, answers)
    return found


def table_of(columns: dict[str, dict[str, float]]) -> str:
    """Return figures side by side, one line each."""
    names = list(next(iter(columns.values())))
    lines = [" " * 22 + "".join(f"{title:>10}" for title in columns)]
    lines += [
        f"{name:22}" + "".join(f"{column[name]:10.3f}" for column in columns.values()) for name in names
    ]
    return "\n".join(lines)


def _agreement(ours: Matrix, theirs: Matrix) -> float:
    one, other = np.random.default_rng(1).integers(0, len(ours), (2, COMPARED))
    one, other = one[one != other], other[one != other]
    ranks = [np.argsort(np.argsort((rows[one] * rows[other]).sum(1))) for rows in (ours, theirs)]
    return float(np.corrcoef(*ranks)[0, 1])


def _shared_neighbours(ours: Matrix, theirs: Matrix) -> float:
    nearest = [np.argsort(-(rows @ rows.T - 2 * np.eye(len(rows))), 1)[:, :10] for rows in (ours, theirs)]
    return float(
        np.mean([len(set(a) & set(b)) / 10 for a, b in zip(*(n.tolist() for n in nearest), strict=True)])
    )


def _recall_at_1(queries: Matrix, answers: Matrix) -> float:
    return float(np.mean(np.argmax(queries @ answers.T, 1) == np.arange(len(queries))))
