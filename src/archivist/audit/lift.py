"""How much a lesson changes: failures of the runs that were told it against those that it was withheld from.

Which runs are told is decided by lot, so that the difference is the lesson's doing. Runs count by what they
were given, not by what they made of it: those that follow a lesson differ from those that do not in more
than the lesson.

The interval of one lesson is Newcombe's hybrid score interval (1998, his method 10): it is made of two Wilson
intervals, stays within ±1 and is honest with ten runs and with none that failed. Several lessons are pooled
by Mantel and Haenszel's risk difference, each lesson a stratum, with Klingenberg's interval (2014), which
turns the test with Sato's variance round and holds with many sparse strata. Lessons of the same run are
taken as independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, sqrt

from archivist.audit.beta import Beta, posterior

__all__ = ["Arms", "Beta", "Lift", "LiftConclusion", "lift", "newcombe", "pool_lift", "posterior", "wilson"]

HOLDOUT_SHARE = 0.1
MOST_RUNS = 100_000
_Z = 1.959963984540054
_EVERYTHING = (-1.0, 1.0)
_NOTHING = 1e-9


class LiftConclusion(StrEnum):
    """What a lift says in a word."""

    HELPS = "helps"
    HARMS = "harms"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Arms:
    """How many runs were told a lesson and how many not, and how many of each failed.

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
    def rate_told(self) -> float | None:
        """Return the failure rate of the runs that were told, None without any."""
        return self.told_failed / self.told if self.told else None

    @property
    def rate_withheld(self) -> float | None:
        """Return the failure rate of the runs that were not told, None without any."""
        return self.withheld_failed / self.withheld if self.withheld else None

    def with_more(self, runs: float, share: float) -> Arms:
        """Return the arms after so many more runs at the same rates."""
        told, withheld = self.told + runs * (1 - share), self.withheld + runs * share
        return Arms(told, told * (self.rate_told or 0.0), withheld, withheld * (self.rate_withheld or 0.0))


@dataclass(frozen=True, slots=True)
class Lift:
    """By how much being told lowers the failure rate; all None without runs on both sides.

    `difference` is the rate without less the rate with, so that above zero is better. Of pooled lessons it
    is weighed lesson by lesson and need not be the difference of the two rates of `arms`. `runs_needed` is
    how many more runs make it an even chance that the interval excludes zero, if the present rates are the
    true ones; 0 when it does already, None when there is no difference or it would take too many.
    """

    arms: Arms = Arms()
    difference: float | None = None
    interval: tuple[float, float] | None = None
    runs_needed: int | None = None

    @property
    def conclusion(self) -> LiftConclusion:
        """Return what the interval shows."""
        return _conclude(self.interval or _EVERYTHING)


NO_LIFT = Lift()


def lift(told: Sequence[bool], withheld: Sequence[bool], share: float = HOLDOUT_SHARE) -> Lift:
    """Compare runs, each given by whether it failed; `share` of coming runs will not be told."""
    arms = Arms(len(told), sum(told), len(withheld), sum(withheld))
    if not arms.is_compared:
        return Lift(arms)
    return Lift(
        arms,
        (arms.rate_withheld or 0.0) - (arms.rate_told or 0.0),
        newcombe(arms),
        _runs_needed(lambda runs: newcombe(arms.with_more(runs, share)), share),
    )


def pool_lift(strata: Iterable[Arms], runs: int, share: float = HOLDOUT_SHARE) -> Lift:
    """Compare over several lessons that were seen in so many runs; each lesson is compared with itself."""
    found = list(strata)
    compared = [arms for arms in found if arms.is_compared]
    total = Arms(*(sum(getattr(arms, name) for arms in found) for name in Arms.__slots__))
    if not compared:
        return Lift(total)

    def after(more: float) -> tuple[float, float]:
        # Coming runs meet the lessons as often as the past ones did.
        return _klingenberg(
            [arms.with_more(more * (arms.told + arms.withheld) / max(runs, 1), share) for arms in compared]
        )

    return Lift(total, _mantel_haenszel(compared), after(0), _runs_needed(after, share))


def wilson(failed: float, runs: float) -> tuple[float, float]:
    """Return Wilson's 95 % score interval of a rate."""
    middle = (failed + _Z**2 / 2) / (runs + _Z**2)
    half = _Z / (runs + _Z**2) * sqrt(max(0.0, failed * (runs - failed) / runs) + _Z**2 / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def newcombe(arms: Arms) -> tuple[float, float]:
    """Return Newcombe's 95 % hybrid score interval of the rate without less the rate with."""
    with_, without = arms.rate_told or 0.0, arms.rate_withheld or 0.0
    low_told, high_told = wilson(arms.told_failed, arms.told)
    low_withheld, high_withheld = wilson(arms.withheld_failed, arms.withheld)
    difference = without - with_
    return (
        max(-1.0, difference - sqrt((without - low_withheld) ** 2 + (high_told - with_) ** 2)),
        min(1.0, difference + sqrt((high_withheld - without) ** 2 + (with_ - low_told) ** 2)),
    )


def _weight(arms: Arms) -> float:
    return arms.told * arms.withheld / (arms.told + arms.withheld)


def _mantel_haenszel(strata: Sequence[Arms]) -> float:
    weighed = sum(_weight(arms) * ((arms.rate_withheld or 0.0) - (arms.rate_told or 0.0)) for arms in strata)
    return weighed / sum(map(_weight, strata))


def _klingenberg(strata: Sequence[Arms]) -> tuple[float, float]:
    """Return the differences that a test with Sato's variance does not refuse: between a parabola's roots."""
    difference, weight = _mantel_haenszel(strata), sum(map(_weight, strata))
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


def _conclude(interval: tuple[float, float]) -> LiftConclusion:
    low, high = interval
    if low > _NOTHING:
        return LiftConclusion.HELPS
    return LiftConclusion.HARMS if high < -_NOTHING else LiftConclusion.NOT_SHOWN


def _runs_needed(after: Callable[[float], tuple[float, float]], share: float) -> int | None:
    """Return how many more runs until the interval excludes zero, by doubling and then halving."""

    def is_shown(runs: int) -> bool:
        return _conclude(after(runs)) is not LiftConclusion.NOT_SHOWN

    if is_shown(0):
        return 0
    if not 0 < share < 1 or not is_shown(MOST_RUNS):
        return None
    enough = 1
    while not is_shown(enough):
        enough *= 2
    few, enough = enough // 2, min(enough, MOST_RUNS)
    while enough - few > 1:
        middle = ceil((few + enough) / 2)
        if is_shown(middle):
            enough = middle
        else:
            few = middle
    return enough
