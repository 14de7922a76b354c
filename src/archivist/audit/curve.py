"""The learning curve: how many failures runs met, over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

# Fewer runs a group give an interval too wide to read, and more groups than this a crowded axis.
_RUNS_A_GROUP = 5
_MOST_GROUPS = 12
# The 97.5 % quantile of Student's t by degrees of freedom, up to 11; above it the normal's is near enough.
_QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20)
_NORMAL = 2.1


class CurvePoint(NamedTuple):
    """Some consecutive runs: the day of the first, their number, and the mean with its 95 % interval."""

    since: datetime
    runs: int
    mean: float
    low: float
    high: float


def count_failures(notes: object) -> int | None:
    """Return how many different failures the notes on a run tell of; None for a run without notes.

    A failure may stand there under several names: once as what failed, once by what overcame it.
    """
    failures = notes.get("failures") if isinstance(notes, dict) else None
    if not isinstance(failures, dict):
        return None
    told = [each for each in failures.values() if isinstance(each, dict)]
    return len({(str(each.get("command")), str(each.get("line"))) for each in told})


def failed_steps(notes: object, run: str) -> set[int]:
    """Return the numbers of a run's steps in which the notes on it found a failure."""
    failures = notes.get("failures") if isinstance(notes, dict) else None
    told = [
        each for each in (failures.values() if isinstance(failures, dict) else ()) if isinstance(each, dict)
    ]
    # The calls that failed come first, and behind them what overcame the failure.
    events = [str(name) for each in told for name in (each.get("events") or ())[: int(each.get("n") or 1)]]
    steps = (name.removeprefix(f"{run}#") for name in events if name.startswith(f"{run}#"))
    return {int(step) for step in steps if step.isdecimal()}


def quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    return _QUANTILES[freedom - 1] if freedom <= len(_QUANTILES) else _NORMAL


def learning_curve(runs: Sequence[tuple[datetime, int]]) -> tuple[CurvePoint, ...]:
    """Return the failures per run over groups of consecutive runs; `runs` is ordered by time.

    Nothing is returned before there are enough runs for two groups: one point is no curve.
    """
    groups = min(_MOST_GROUPS, len(runs) // _RUNS_A_GROUP)
    if groups < 2:
        return ()
    edges = [len(runs) * at // groups for at in range(groups + 1)]
    points = []
    for start, end in pairwise(edges):
        counts = [count for _, count in runs[start:end]]
        mean, freedom = sum(counts) / len(counts), len(counts) - 1
        variance = sum((count - mean) ** 2 for count in counts) / freedom
        reach = quantile(freedom) * sqrt(variance / len(counts))
        points.append(CurvePoint(runs[start][0], len(counts), mean, max(0.0, mean - reach), mean + reach))
    return tuple(points)
