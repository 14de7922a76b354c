"""Posteriors and lifts: exact where there is a law, honest where there is chance."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from archivist.audit.beta import Beta, incomplete_beta, posterior
from archivist.audit.lift import MOST_RUNS, Arms, Lift, LiftConclusion, lift, newcombe, pool_lift, wilson

counts = st.integers(0, 300)
parameters = st.floats(0.3, 400)
shares = st.floats(0.001, 0.999)


def _binomial(trials: int, hits: int, chance: float) -> float:
    return math.comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits)


# Posterior


@given(st.integers(1, 40), st.integers(1, 40), shares)
def test_the_distribution_is_the_binomials_tail(a: int, b: int, share: float) -> None:
    trials = a + b - 1
    tail = sum(_binomial(trials, hits, share) for hits in range(a, trials + 1))
    assert incomplete_beta(a, b, share) == pytest.approx(tail, abs=1e-11)


@given(parameters, parameters, shares)
def test_the_distribution_mirrors_itself(a: float, b: float, share: float) -> None:
    assert incomplete_beta(a, b, share) == pytest.approx(1 - incomplete_beta(b, a, 1 - share), abs=1e-10)


@given(counts, counts, shares)
def test_a_quantile_undoes_the_distribution(helpful: int, ineffective: int, chance: float) -> None:
    belief = posterior(helpful, ineffective)
    assert belief.cdf(belief.quantile(chance)) == pytest.approx(chance, abs=1e-9)


@given(counts, counts)
def test_more_help_is_believed_more_and_the_bounds_enclose_the_mean(helpful: int, ineffective: int) -> None:
    belief = posterior(helpful, ineffective)
    low, high = belief.interval
    assert 0 <= low < belief.mean < high <= 1
    assert posterior(helpful + 1, ineffective).mean > belief.mean
    assert posterior(helpful + 1, ineffective).interval[0] > low


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_the_chance_of_being_above_another_is_exact(a: int, b: int, c: int, d: int) -> None:
    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    exact = math.fsum(
        math.exp(log_beta(c + i, b + d) - math.log(b + i) - log_beta(1 + i, b) - log_beta(c, d))
        for i in range(a)
    )
    assert Beta(a, b).chance_above(Beta(c, d)) == pytest.approx(exact, abs=1e-6)


def test_a_posterior_knows_its_well_known_values() -> None:
    assert posterior(0, 0).interval == pytest.approx((0.025, 0.975))
    assert posterior(9, 0).interval[0] == pytest.approx(0.025 ** (1 / 10))
    assert posterior(3, 1, prior=(0.5, 0.5)).mean == pytest.approx(0.7)
    assert posterior(7, 7).chance_above(0.5) == pytest.approx(0.5)
    assert posterior(90, 10).chance_above(posterior(10, 90)) == pytest.approx(1.0)


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
        low, high = posterior(helpful, 25 - helpful).interval
        held += low <= truth <= high
    assert 0.93 <= held / TRIALS <= 0.97
