"""Posteriors and lifts: exact where there is a law, honest where there is chance."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from archivist.audit.lift import (
    MOST_RUNS,
    Arms,
    Lift,
    LiftConclusion,
    Posterior,
    lift,
    newcombe,
    pool_lift,
    wilson,
)

counts = st.integers(0, 300)


def _binomial(trials: int, hits: int, chance: float) -> float:
    return math.comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits)


# Posterior


@given(counts, counts)
def test_more_help_is_believed_more_and_the_bounds_enclose_the_mean(helpful: int, ineffective: int) -> None:
    belief = Posterior(helpful, ineffective)
    low, high = belief.interval
    assert 0 <= low < belief.mean < high <= 1
    more = Posterior(helpful + 1, ineffective)
    assert more.mean > belief.mean
    assert more.interval[0] > low


@pytest.mark.parametrize("trials", [8, 15, 40, 120])
def test_the_interval_holds_the_true_share_as_often_as_it_says(trials: int) -> None:
    chances = [place / 100 for place in range(3, 98)]
    covered = [
        math.fsum(
            _binomial(trials, hits, chance)
            for hits in range(trials + 1)
            if wilson(hits, trials)[0] <= chance <= wilson(hits, trials)[1]
        )
        for chance in chances
    ]
    assert math.fsum(covered) / len(covered) == pytest.approx(0.95, abs=0.012)
    assert min(covered) > 0.82


def test_a_posterior_knows_its_well_known_values() -> None:
    assert (Posterior(0, 0).mean, Posterior(0, 0).interval) == (0.5, (0.0, 1.0))
    assert Posterior(3, 1).mean == pytest.approx(4 / 6)
    # Nothing failed: the lower bound is n / (n + z²).
    assert Posterior(9, 0).interval == pytest.approx((9 / (9 + 1.959964**2), 1.0))
    low, high = Posterior(7, 7).interval
    assert low == pytest.approx(1 - high)


# Lift


@given(counts, counts, counts, counts)
def test_the_interval_lies_around_the_difference_and_turns_with_the_sides(
    a: int, b: int, c: int, d: int
) -> None:
    assume(a + b and c + d)
    low, high = newcombe(Arms(a + b, a, c + d, c))
    assert -1 <= low <= c / (c + d) - a / (a + b) <= high <= 1
    turned = newcombe(Arms(c + d, c, a + b, a))
    assert turned == pytest.approx((-high, -low))


def test_newcombes_published_example() -> None:
    # Newcombe 1998, table II (a): 56/70 against 48/80 by method 10.
    assert newcombe(Arms(80, 48, 70, 56)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


@pytest.mark.req("N2")
def test_a_difference_is_named_and_without_both_sides_there_is_none() -> None:
    assert lift([True], []) == Lift(Arms(1, 1, 0, 0))
    helps = lift([False] * 90 + [True] * 10, [True] * 8 + [False] * 2)
    assert (helps.conclusion, helps.runs_needed) == (LiftConclusion.HELPS, 0)
    assert helps.difference == pytest.approx(0.7)
    assert lift([True] * 50, [False] * 20).conclusion is LiftConclusion.HARMS
    same = lift([True, False] * 20, [True, False] * 5)
    assert (same.conclusion, same.difference, same.runs_needed) == (LiftConclusion.NOT_SHOWN, 0, None)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 20), st.integers(0, 20), st.floats(0.05, 0.5))
def test_the_runs_needed_are_the_fewest_that_would_show_it(
    ok: int, failed: int, ok_without: int, failed_without: int, share: float
) -> None:
    found = lift([True] * failed + [False] * ok, [True] * failed_without + [False] * ok_without, share)
    needed = found.runs_needed
    if needed:
        assert not _excludes_zero(newcombe(found.arms.with_more(needed - 1, share)))
        assert _excludes_zero(newcombe(found.arms.with_more(needed, share)))
    elif needed is None:
        assert not _excludes_zero(newcombe(found.arms.with_more(MOST_RUNS, share)))
    else:
        assert found.conclusion is not LiftConclusion.NOT_SHOWN


def _excludes_zero(interval: tuple[float, float]) -> bool:
    return interval[0] > 1e-9 or interval[1] < -1e-9


@given(st.integers(1, 200), counts, st.integers(1, 200), counts)
def test_pooling_one_lesson_is_that_lesson(
    ok: int, failed: int, ok_without: int, failed_without: int
) -> None:
    arms = Arms(ok + failed, failed, ok_without + failed_without, failed_without)
    found = pool_lift([arms, Arms(told=7, told_failed=3)], runs=50)
    assert found.difference == pytest.approx((arms.rate_withheld or 0) - (arms.rate_told or 0))
    low, high = found.interval or (1, -1)
    assert low - 1e-9 <= (found.difference or 0) <= high + 1e-9


@pytest.mark.req("N2")
def test_pooling_compares_each_lesson_with_itself() -> None:
    # Withheld mostly where failures are rare: the crude rates say that telling harms.
    easy, hard = Arms(20, 0, 180, 18), Arms(180, 90, 20, 12)
    found = pool_lift([easy, hard], runs=200)
    assert (found.arms.rate_told or 0) > (found.arms.rate_withheld or 0)
    assert found.difference == pytest.approx(0.1)


# Chance: what is promised of the intervals holds over many trials of a seeded die.

TRIALS = 1500


def _arms(die: random.Random, told: int, withheld: int, with_: float, without: float) -> Arms:
    return Arms(
        told,
        sum(die.random() < with_ for _ in range(told)),
        withheld,
        sum(die.random() < without for _ in range(withheld)),
    )


def _coverage(truth: float, draw: Callable[[], tuple[float, float]]) -> float:
    held = 0
    for _ in range(TRIALS):
        low, high = draw()
        held += low <= truth <= high
    return held / TRIALS


@pytest.mark.req("N2")
@pytest.mark.parametrize(("with_", "without"), [(0.1, 0.4), (0.3, 0.3), (0.05, 0.6), (0.5, 0.3)])
def test_a_lessons_interval_holds_the_truth_as_often_as_it_says(with_: float, without: float) -> None:
    die = random.Random(7)  # noqa: S311 -- trials, not secrets
    found = _coverage(without - with_, lambda: newcombe(_arms(die, 180, 20, with_, without)))
    assert 0.93 <= found <= 0.97


@pytest.mark.req("N2")
def test_the_pooled_interval_holds_the_truth_as_often_as_it_says() -> None:
    die = random.Random(11)  # noqa: S311 -- trials, not secrets
    rates = [(0.05, 0.2), (0.15, 0.3), (0.25, 0.4), (0.35, 0.5), (0.45, 0.6)] * 2

    def draw() -> tuple[float, float]:
        strata = [_arms(die, 27, 3, *each) for each in rates]
        return pool_lift(strata, runs=30).interval or (1, -1)

    assert 0.93 <= _coverage(0.15, draw) <= 0.97


def test_a_posteriors_interval_holds_the_truth_as_often_as_it_says() -> None:
    die = random.Random(13)  # noqa: S311 -- trials, not secrets
    held = 0
    for _ in range(TRIALS):
        truth = die.random()
        helpful = sum(die.random() < truth for _ in range(25))
        low, high = Posterior(helpful, 25 - helpful).interval
        held += low <= truth <= high
    assert 0.93 <= held / TRIALS <= 0.97
