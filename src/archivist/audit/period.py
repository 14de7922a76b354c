"""Whether memory helped in a period: its runs compared with those before, and the answer in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import sqrt
from typing import NamedTuple

from archivist.audit.curve import quantile
from archivist.audit.lift import LEAST_CASES, Lift, LiftConclusion, conclude
from archivist.errors import InputError

_BY_HOLDOUT = {
    LiftConclusion.HELPS: "yes, memory helped",
    LiftConclusion.HARMS: "no, memory did harm",
    LiftConclusion.NOT_SHOWN: "cannot tell yet, no difference can be shown",
    LiftConclusion.TOO_FEW: "cannot tell yet, too few runs",
}
_NO_RUN = "cannot tell yet, no run to judge"
# Other things than memory change over time, too.
_BY_TIME = _BY_HOLDOUT | {
    LiftConclusion.HELPS: "probably, fewer failures than before",
    LiftConclusion.HARMS: "probably not, more failures than before",
}


class AuditPeriod(NamedTuple):
    """A stretch of time from `since` up to `until`, which is not part of it; None is without a bound.

    `days` is set for the last so many days.
    """

    since: datetime | None = None
    until: datetime | None = None
    days: int = 0

    @property
    def is_all(self) -> bool:
        """Say whether it has no bounds."""
        return self.since is None and self.until is None

    @property
    def before(self) -> AuditPeriod | None:
        """Return the period of the same length before it; None when it has no length."""
        if self.since is None or self.until is None:
            return None
        try:
            return AuditPeriod(self.since - (self.until - self.since), self.since)
        except OverflowError:
            return None

    def holds(self, moment: datetime) -> bool:
        """Say whether a moment is in it."""
        return (self.since is None or self.since <= moment) and (self.until is None or moment < self.until)

    @property
    def name(self) -> str:
        """Return it in words."""
        if self.days:
            return "Last 24 hours" if self.days == 1 else f"Last {self.days} days"
        if self.since and self.until:
            last = self.until - timedelta(microseconds=1)
            return f"{self.since:%Y-%m-%d} to {last:%Y-%m-%d}"
        return f"Before {self.until:%Y-%m-%d}" if self.until else "Since the first brief"

    @property
    def name_before(self) -> str:
        """Return in words what it is compared with."""
        if self.since is None or self.until is None:
            return "before it"
        days = round((self.until - self.since) / timedelta(days=1))
        return f"in the {days} days before" if days > 1 else "in as much time before"


def resolve_period(
    now: datetime, *, days: int = 0, since: datetime | None = None, until: datetime | None = None
) -> AuditPeriod:
    """Return the period of the last days, or from one time up to another."""
    if days and (since or until):
        raise InputError("a number of days and a date", hint="give one of the two")
    if days:
        return AuditPeriod(now - timedelta(days=days), now, days)
    until = until or (now if since else None)
    if since and until and since >= until:
        raise InputError("the period ends before it begins", hint="the earlier date is the first")
    return AuditPeriod(since, until)


class FailureChange(NamedTuple):
    """The failures of a period's runs and of the runs before it; `difference` below zero is better.

    `difference` is of failures per run, with its 95 % interval; None while either side has too few runs.
    """

    runs: int
    failures: int
    runs_before: int
    failures_before: int
    difference: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def conclusion(self) -> LiftConclusion:
        """Return what the interval shows."""
        if self.low is None or self.high is None:
            return LiftConclusion.TOO_FEW
        return conclude((-self.high, -self.low))


class PeriodAnswer(NamedTuple):
    """Whether memory helped in a period: the answer in a few words, and the figures behind it."""

    period: AuditPeriod
    change: FailureChange
    conclusion: LiftConclusion
    name: str
    headline: str
    figures: str

    @property
    def text(self) -> str:
        """Return the whole answer: for which time, the answer, and its figures."""
        return f"{self.name}: {self.headline}. {self.figures[:1].upper()}{self.figures[1:]}."


def compare_failures(before: Sequence[int], after: Sequence[int]) -> FailureChange:
    """Compare the failures of runs, each given by its number (Welch's interval of two means)."""
    found = FailureChange(len(after), sum(after), len(before), sum(before))
    if min(len(before), len(after)) < LEAST_CASES:
        return found
    # Counts vary at least as chance does (Poisson): a few runs that are all alike prove no certainty.
    pooled = (sum(before) + sum(after)) / (len(before) + len(after))
    errors = []
    for counts in (before, after):
        mean = sum(counts) / len(counts)
        variance = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
        errors.append(max(variance, pooled) / len(counts))
    difference = sum(after) / len(after) - sum(before) / len(before)
    total = sum(errors)
    freedom = min(len(before), len(after)) - 1
    if total:
        sizes = (len(before), len(after))
        freedom = int(total**2 / sum(e**2 / (size - 1) for e, size in zip(errors, sizes, strict=True)))
    reach = quantile(freedom) * sqrt(total)
    return found._replace(difference=difference, low=difference - reach, high=difference + reach)


def answer_period(
    period: AuditPeriod,
    change: FailureChange,
    *,
    lessons: int,
    told: int,
    lift: Lift,
    last_run: datetime | None = None,
    connected: datetime | None = None,
) -> PeriodAnswer:
    """Say whether memory helped: by the hold-out, which is random, or where that is small by the runs before.

    `lessons` were told `told` times; `lift` compares told runs with those from which lessons were withheld.
    `last_run` is when the latest run of all began, `connected` when memory was set up here, if no run was
    told anything yet.
    """

    def count(number: int, noun: str) -> str:
        return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

    name = period.name if told or not period.is_all else "So far"
    if not change.runs and not told:
        figures = f"connected {connected:%-d %b %Y}; " if connected else ""
        figures += (
            f"the last session began {last_run:%-d %b %Y}" if last_run else "no session was captured yet"
        )
        return PeriodAnswer(period, change, LiftConclusion.TOO_FEW, name, _NO_RUN, figures)
    parts = [f"{count(change.runs, 'run')}, {count(lessons, 'lesson')} told {count(told, 'time')}"]
    if not told:
        parts[0] = f"{count(change.runs, 'run')}, no told lesson judged yet"
        parts += [f"connected {connected:%-d %b %Y}"] if connected else []
    if change.difference is None:
        before = f"{change.failures_before:,} in {count(change.runs_before, 'run')} {period.name_before}"
        before = before if change.runs_before else f"no run {period.name_before} to compare with"
        parts.append(f"{count(change.failures, 'failure')} met, {before}")
    else:
        now, then = change.failures / change.runs, change.failures_before / change.runs_before
        interval = f"change {change.difference:+.1f}, 95 % interval {change.low:+.1f} to {change.high:+.1f}"
        parts.append(f"failures per run {now:.1f}, {period.name_before} {then:.1f} ({interval})")
    conclusion, words = change.conclusion, _BY_TIME
    if not lift.arms.is_few and lift.difference is not None and lift.interval is not None:
        low, high = lift.interval
        interval = f"95 % interval {-high:+.0%} to {-low:+.0%}"
        parts.append(
            f"{-lift.difference:+.0%} failures when told rather than withheld at random ({interval})"
        )
        conclusion, words = lift.conclusion, _BY_HOLDOUT
    elif not told:
        # What was not told cannot have helped.
        conclusion = LiftConclusion.TOO_FEW
    return PeriodAnswer(period, change, conclusion, name, words[conclusion], "; ".join(parts))
