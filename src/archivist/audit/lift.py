"""How much a lesson changes: failures of the runs that were told it, against those it was withheld from.

Which runs are told is random, so that the difference is caused by the lesson. Runs that had no occasion for
it are left out on both sides: they could not fail. All others count by what they were given, not by what they
made of it: runs that follow a lesson differ from those that do not in more than the lesson.

The interval of one lesson is Newcombe's hybrid score interval (1998, his method 10): it is made of two Wilson
intervals, stays within ±1 and holds with ten runs and with none that failed. Several lessons are pooled by
Mantel and Haenszel's risk difference, each lesson a stratum, with Klingenberg's interval (2014), which
inverts the test with Sato's variance and holds with many sparse strata. Lessons of the same run are taken as
independent of each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from statistics import NormalDist

# The share of runs from which a lesson is withheld unless the configuration says otherwise.
HOLDOUT_SHARE = 0.1
# Fewer cases than this may be chance: no rate is told of them, and nothing is decided by them.
LEAST_CASES = 8
# A difference that more runs than this would have to show is too small to matter.
MOST_RUNS = 100_000
# The number of standard deviations to either side that holds 95 % of a normal distribution.
_Z = NormalDist().inv_cdf(0.975)
# An interval that touches zero only by rounding shows nothing.
_ROUNDING = 1e-9


class LiftConclusion(StrEnum):
    """What a lift shows, in a word."""

    HELPS = "helps"
    HARMS = "harms"
    NOT_SHOWN = "not shown"
    TOO_FEW = "too few runs"


@dataclass(frozen=True, slots=True)
class Posterior:
    """What to believe about a share after some good and bad outcomes."""

    good: int
    bad: int

    @property
    def mean(self) -> float:
        """Return the expected share: a half before the first outcome (Laplace's rule)."""
        return (self.good + 1) / (self.good + self.bad + 2)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share."""
        return wilson(self.good, self.good + self.bad)


@dataclass(frozen=True, slots=True)
class Arms:
    """How many runs were told a lesson and how many were not, and how many of each failed.

    The numbers need not be whole: they are also used to ask what more runs would show.
    """

    told: float = 0
    told_failed: float = 0
    withheld: float = 0
    withheld_failed: float = 0

    @property
    def is_compared(self) -> bool:
        """Say whether there are runs on both sides."""
        return self.told > 0 and self.withheld > 0

    @property
    def is_few(self) -> bool:
        """Say whether either side has too few runs for a rate."""
        return min(self.told, self.withheld) < LEAST_CASES

    @property
    def rate_told(self) -> float | None:
        """Return the failure rate of the runs that were told, None without any."""
        return self.told_failed / self.told if self.told else None

    @property
    def rate_withheld(self) -> float | None:
        """Return the failure rate of the runs that were not told, None without any."""
        return self.withheld_failed / self.withheld if self.withheld else None

    @property
    def difference(self) -> float:
        """Return the rate without the lesson less the rate with it, so that above zero is better."""
        return (self.rate_withheld or 0.0) - (self.rate_told or 0.0)

    @property
    def weight(self) -> float:
        """Return the weight in a pooled difference (Mantel and Haenszel)."""
        return self.told * self.withheld / (self.told + self.withheld)

    def with_more(self, runs: float, share: float) -> Arms:
        """Return the arms after more runs at the same rates; `share` of them are not told."""
        told, withheld = self.told + runs * (1 - share), self.withheld + runs * share
        return Arms(told, told * (self.rate_told or 0.0), withheld, withheld * (self.rate_withheld or 0.0))


@dataclass(frozen=True, slots=True)
class Lift:
    """By how much being told lowers the failure rate; all None without runs on both sides.

    `difference` is the rate without the lesson less the rate with it, so that above zero is better. For
    pooled lessons it is weighted lesson by lesson and need not be the difference of the two rates of `arms`.
    `runs_needed` is how many more runs make it an even chance that the interval excludes zero, if the present
    rates are the true ones; 0 when it does already, None when there is no difference or it would take too
    many.
    """

    arms: Arms = Arms()
    difference: float | None = None
    interval: tuple[float, float] | None = None
    runs_needed: int | None = None

    @property
    def conclusion(self) -> LiftConclusion:
        """Return what the interval shows, as far as there are enough runs on both sides."""
        if self.arms.is_few:
            return LiftConclusion.TOO_FEW
        return conclude(self.interval or (-1.0, 1.0))


NO_LIFT = Lift()


def lift(told: Sequence[bool], withheld: Sequence[bool], share: float = HOLDOUT_SHARE) -> Lift:
    """Compare runs, each given by whether it failed; `share` of future runs will not be told."""
    arms = Arms(len(told), sum(told), len(withheld), sum(withheld))
    if not arms.is_compared:
        return Lift(arms)
    needed = _runs_needed(lambda runs: newcombe(arms.with_more(runs, share)), share)
    return Lift(arms, arms.difference, newcombe(arms), needed)


def pool_lift(strata: Iterable[Arms], runs: int, share: float = HOLDOUT_SHARE) -> Lift:
    """Compare several lessons that were seen in this many runs; each lesson is compared with itself."""
    found = list(strata)
    compared = [arms for arms in found if arms.is_compared]
    total = Arms(*(sum(getattr(arms, name) for arms in found) for name in Arms.__slots__))
    if not compared:
        return Lift(total)

    def interval_after(more: float) -> tuple[float, float]:
        # Future runs meet the lessons as often as the past ones did.
        return _klingenberg(
            [arms.with_more(more * (arms.told + arms.withheld) / max(runs, 1), share) for arms in compared]
        )

    needed = _runs_needed(interval_after, share)
    return Lift(total, _pooled_difference(compared), interval_after(0), needed)


def wilson(hits: float, runs: float) -> tuple[float, float]:
    """Return Wilson's 95 % score interval of a rate. Without runs it says nothing."""
    if not runs:
        return 0.0, 1.0
    middle = (hits + _Z**2 / 2) / (runs + _Z**2)
    half = _Z / (runs + _Z**2) * sqrt(max(0.0, hits * (runs - hits) / runs) + _Z**2 / 4)
    # Rounding must not exclude the observed rate, which is a bound itself at 0 and 1.
    return max(0.0, min(middle - half, hits / runs)), min(1.0, max(middle + half, hits / runs))


def newcombe(arms: Arms) -> tuple[float, float]:
    """Return Newcombe's 95 % hybrid score interval of the difference."""
    with_, without = arms.rate_told or 0.0, arms.rate_withheld or 0.0
    low_told, high_told = wilson(arms.told_failed, arms.told)
    low_withheld, high_withheld = wilson(arms.withheld_failed, arms.withheld)
    return (
        max(-1.0, arms.difference - sqrt((without - low_withheld) ** 2 + (high_told - with_) ** 2)),
        min(1.0, arms.difference + sqrt((high_withheld - without) ** 2 + (with_ - low_told) ** 2)),
    )


def _pooled_difference(strata: Sequence[Arms]) -> float:
    return sum(arms.weight * arms.difference for arms in strata) / sum(arms.weight for arms in strata)


def _klingenberg(strata: Sequence[Arms]) -> tuple[float, float]:
    """Return the differences that a test with Sato's variance does not reject: between a parabola's roots."""
    difference, weight = _pooled_difference(strata), sum(arms.weight for arms in strata)
    slope = level = 0.0
    for arms in strata:
        one, failed = arms.withheld, arms.withheld_failed
        other, other_failed = arms.told, arms.told_failed
        runs = one + other
        slope += (one**2 * other_failed - other**2 * failed + one * other * (other - one) / 2) / runs**2
        level += (failed * (other - other_failed) + other_failed * (one - failed)) / (2 * runs)
    middle = difference + _Z**2 * slope / (2 * weight**2)
    half = sqrt(max(0.0, middle**2 - difference**2 + _Z**2 * level / weight**2))
    return max(-1.0, middle - half), min(1.0, middle + half)


def conclude(interval: tuple[float, float]) -> LiftConclusion:
    """Return what the interval of an improvement shows."""
    low, high = interval
    if low > _ROUNDING:
        return LiftConclusion.HELPS
    return LiftConclusion.HARMS if high < -_ROUNDING else LiftConclusion.NOT_SHOWN


def _runs_needed(interval_after: Callable[[float], tuple[float, float]], share: float) -> int | None:
    """Return how many more runs it takes until the interval excludes zero."""

    def is_shown(runs: int) -> bool:
        return conclude(interval_after(runs)) is not LiftConclusion.NOT_SHOWN

    if is_shown(0):
        return 0
    if not 0 < share < 1 or not is_shown(MOST_RUNS):
        return None
    return 1 + bisect_left(range(1, MOST_RUNS), True, key=is_shown)
