"""Sum up verdicts per lesson, overall and over time, and recommend what to do about a lesson."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from statistics import NormalDist

from archivist.audit.lift import (
    HOLDOUT_SHARE,
    LEAST_CASES,
    NO_LIFT,
    Arms,
    Lift,
    LiftConclusion,
    Posterior,
    lift,
    pool_lift,
)
from archivist.audit.period import PeriodAnswer
from archivist.records import Effect, Following, Verdict

# A young bank has few months: periods of 20 runs show a trend earlier.
RUNS_PER_PERIOD = 20
_LEAST_MONTHS = 3
_EVEN = 0.5
# One or two runs that failed may have failed for another reason.
_OFTEN = 3
# After this many runs without it, a lesson whose chance to prevent 15 % of the failures is below 0.3 goes.
_LEAST_WITHHELD = 30
_LEAST_USE = 0.15
_LEAST_CHANCE = 0.3


@dataclass(frozen=True, slots=True)
class ReportRow:
    """How one lesson, one month, or all of them did.

    `told` counts the runs that were given it. It was `helpful`, `ineffective`, `ignored` or `not_needed` in
    them, and in the `unknown` rest nobody can tell. `followed` and `not_followed` count what runs did with
    it, `failed_though` those that followed it and still failed, `failed_heedless` those that did not follow
    it and failed. `not_found_again` and `found_again` count the cross-run document's verdicts, helpful and
    ineffective. `periods` are its months, or every 20 runs when there are few months.
    """

    lesson: str
    summary: str
    helpful: int
    ineffective: int
    told: int = 0
    ignored: int = 0
    not_needed: int = 0
    followed: int = 0
    not_followed: int = 0
    failed_though: int = 0
    failed_heedless: int = 0
    not_found_again: int = 0
    found_again: int = 0
    lift: Lift = NO_LIFT
    periods: tuple[ReportRow, ...] = ()

    @property
    def judged_count(self) -> int:
        """Return how many verdicts say whether it helped."""
        return self.helpful + self.ineffective

    @property
    def unknown(self) -> int:
        """Return in how many runs nobody can tell whether it helped."""
        return self.told - self.judged_count - self.ignored - self.not_needed

    @property
    def share(self) -> float | None:
        """Return the share of the judged runs in which it helped, or None while they are too few."""
        return self.helpful / self.judged_count if self.judged_count >= LEAST_CASES else None

    @property
    def ratio(self) -> float | None:
        """Return the document's ratio of helpful to ineffective runs; None while none was ineffective."""
        return self.not_found_again / self.found_again if self.found_again else None

    @property
    def posterior(self) -> Posterior:
        """Return what to believe about the helpful share."""
        return Posterior(self.helpful, self.ineffective)


@dataclass(frozen=True, slots=True)
class Report:
    """Verdicts per lesson, worst first, per month, and in total; `answer` says whether memory helped."""

    lessons: tuple[ReportRow, ...]
    months: tuple[ReportRow, ...]
    total: ReportRow
    answer: PeriodAnswer | None = None


class RecommendedStep(StrEnum):
    """What to do about a lesson."""

    RETIRE = "retire"
    REWORD = "reword"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class LessonRecommendation:
    """What the verdicts suggest for one lesson, and why."""

    lesson: str
    step: RecommendedStep
    reason: str


def build_report(
    verdicts: Iterable[Verdict], summaries: Mapping[str, tuple[str, str]], share: float = HOLDOUT_SHARE
) -> Report:
    """Count verdicts; `summaries` gives each lesson's short id and summary, `share` is the holdout."""
    found = sorted(verdicts, key=lambda verdict: (verdict.time, verdict.run, verdict.lesson))
    lessons = [
        _make_row(*summaries.get(lesson, (lesson, "")), group, share)
        for lesson, group in _group_verdicts(found, lambda verdict: verdict.lesson).items()
    ]
    lessons.sort(
        key=lambda row: (
            row.lift.conclusion is not LiftConclusion.HARMS,
            not row.judged_count,
            row.posterior.mean,
            row.lesson,
        )
    )
    months = [
        _make_row(month, "", group, share, has_periods=False)
        for month, group in _group_verdicts(found, "{0.time:%Y-%m}".format).items()
    ]
    return Report(tuple(lessons), tuple(months), _make_row("all", "", found, share))


def recommend_steps(report: Report) -> tuple[LessonRecommendation, ...]:
    """Recommend for each lesson whether to retire, reword or keep it, worst first."""
    found = [LessonRecommendation(row.lesson, *_recommended_step(row)) for row in report.lessons]
    order = list(RecommendedStep)
    return tuple(sorted(found, key=lambda recommendation: order.index(recommendation.step)))


def _group_verdicts(verdicts: Iterable[Verdict], name: Callable[[Verdict], str]) -> dict[str, list[Verdict]]:
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(name(verdict), []).append(verdict)
    return groups


def _make_row(
    name: str, summary: str, verdicts: Sequence[Verdict], share: float, *, has_periods: bool = True
) -> ReportRow:
    effects = Counter(verdict.effect for verdict in verdicts)
    following = Counter(verdict.following for verdict in verdicts)
    failed = Counter(verdict.following for verdict in verdicts if verdict.failed)
    documented = Counter(verdict.effectiveness for verdict in verdicts)
    # Advice for after the failure has not failed because the failure came.
    failed_though = sum(
        verdict.following is Following.FOLLOWED and verdict.effect is Effect.INEFFECTIVE
        for verdict in verdicts
    )
    return ReportRow(
        lesson=name,
        summary=summary,
        helpful=effects[Effect.HELPFUL],
        ineffective=effects[Effect.INEFFECTIVE],
        told=len(verdicts) - following[Following.WITHHELD],
        followed=following[Following.FOLLOWED],
        ignored=effects[Effect.IGNORED],
        not_needed=sum(
            verdict.effect is Effect.NOT_NEEDED and verdict.following is not Following.WITHHELD
            for verdict in verdicts
        ),
        not_followed=following[Following.IGNORED],
        failed_though=failed_though,
        failed_heedless=failed[Following.IGNORED],
        not_found_again=documented[Effect.HELPFUL.value],
        found_again=documented[Effect.INEFFECTIVE.value],
        lift=_compare_arms(verdicts, share),
        periods=_periods(verdicts, share) if has_periods else (),
    )


def _compare_arms(verdicts: Sequence[Verdict], share: float) -> Lift:
    """Compare told with withheld runs that had an occasion, lesson by lesson when there are several."""
    by_lesson: dict[str, tuple[list[bool], list[bool]]] = {}
    for verdict in verdicts:
        if verdict.failed is not None and verdict.effect is not Effect.NOT_NEEDED:
            told, withheld = by_lesson.setdefault(verdict.lesson, ([], []))
            (withheld if verdict.following is Following.WITHHELD else told).append(verdict.failed)
    if len(by_lesson) == 1:
        return lift(*next(iter(by_lesson.values())), share)
    strata = [
        Arms(len(told), sum(told), len(withheld), sum(withheld)) for told, withheld in by_lesson.values()
    ]
    return pool_lift(strata, len({verdict.run for verdict in verdicts}), share)


def _periods(verdicts: Sequence[Verdict], share: float) -> tuple[ReportRow, ...]:
    """Return the rows over time: per month, or per 20 runs while there are few months."""
    groups = _group_verdicts(verdicts, "{0.time:%Y-%m}".format)
    if len(groups) < _LEAST_MONTHS:
        runs = list(dict.fromkeys(verdict.run for verdict in verdicts))
        period: dict[str, str] = {}
        for start in range(0, len(runs), RUNS_PER_PERIOD):
            end = min(start + RUNS_PER_PERIOD, len(runs))
            period |= dict.fromkeys(runs[start:end], f"{start + 1}-{end}")
        groups = _group_verdicts(verdicts, lambda verdict: period[verdict.run])
    return tuple(_make_row(name, "", group, share, has_periods=False) for name, group in groups.items())


def _failure_rate(failed: float, runs: float) -> NormalDist:
    """Return what to believe about a failure rate: a normal distribution with the posterior's moments."""
    bad, good = failed + 1, runs - failed + 1
    size = bad + good
    return NormalDist(bad / size, sqrt(bad * good / (size**2 * (size + 1))))


def _recommended_step(row: ReportRow) -> tuple[RecommendedStep, str]:
    """Return what to do about a lesson and why. The holdout outweighs the verdicts."""
    low, high = row.posterior.interval
    arms, conclusion = row.lift.arms, row.lift.conclusion
    is_judged, helps = row.judged_count >= LEAST_CASES, conclusion is LiftConclusion.HELPS
    helped = f"helped {row.helpful} of {row.judged_count} times"
    if conclusion is LiftConclusion.HARMS:
        return RecommendedStep.RETIRE, "runs that were told failed more often than those that were not"
    if is_judged and high < _EVEN and not helps:
        return RecommendedStep.RETIRE, f"{helped}, surely less than half"
    if arms.withheld >= _LEAST_WITHHELD:
        without = _failure_rate(arms.withheld_failed, arms.withheld)
        prevented = without * (1 - _LEAST_USE) - _failure_rate(arms.told_failed, arms.told)
        if 1 - prevented.cdf(0) < _LEAST_CHANCE:
            reason = f"randomly withheld from {arms.withheld:g} runs, which did no worse"
            return RecommendedStep.RETIRE, reason
    if row.failed_though >= _OFTEN and row.failed_though >= _EVEN * row.followed:
        failed = f"{row.failed_though} of {row.followed} runs that followed it still failed"
        return RecommendedStep.REWORD, f"{failed}: correct the remedy"
    if row.failed_heedless >= _OFTEN and row.not_followed > row.followed:
        failed = (
            f"{row.not_followed} of {row.told} runs did not follow it"
            f" ({row.failed_heedless} failed, which counts as did not help; the others as ignored)"
        )
        return RecommendedStep.REWORD, f"{failed}: word it more clearly"
    if helps:
        return RecommendedStep.KEEP, "runs that were told failed less often than those that were not"
    return RecommendedStep.KEEP, helped if is_judged and low > _EVEN else "too few runs to tell"
