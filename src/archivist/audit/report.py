"""Sum verdicts up: per lesson, overall and over time, and say what to do about a lesson."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from archivist.audit.beta import Beta, posterior
from archivist.audit.lift import HOLDOUT_SHARE, NO_LIFT, Arms, Lift, LiftConclusion, lift, pool_lift
from archivist.records import Effect, Following, Verdict

RUNS_PER_PERIOD = 20
_LEAST_MONTHS = 3
_LEAST_JUDGED = 8
_EVEN = 0.5
_OFTEN = 3
# When so many runs did without a lesson and it can hardly have prevented anything, it is not worth telling.
_LEAST_WITHHELD = 30
_LEAST_USE = 0.15
_HARDLY = 0.3


@dataclass(frozen=True, slots=True)
class ReportRow:
    """How one lesson, one month, or all of them did.

    `told` counts the runs it was put before, of which it was `followed`, `ignored` or not applicable in so
    many. `failed_though` counts those that followed it and failed nonetheless, `failed_heedless` those that
    ignored it and failed. `periods` are its own months, or every 20 runs when there are few months.
    """

    lesson: str
    summary: str
    helpful: int
    ineffective: int
    told: int = 0
    followed: int = 0
    ignored: int = 0
    not_applicable: int = 0
    failed_though: int = 0
    failed_heedless: int = 0
    lift: Lift = NO_LIFT
    periods: tuple[ReportRow, ...] = ()

    @property
    def judged_count(self) -> int:
        """Return how many verdicts say whether it helped."""
        return self.helpful + self.ineffective

    @property
    def share(self) -> float | None:
        """Return the helpful share, or None before the first verdict."""
        return self.helpful / self.judged_count if self.judged_count else None

    @property
    def posterior(self) -> Beta:
        """Return what to believe of the helpful share."""
        return posterior(self.helpful, self.ineffective)


@dataclass(frozen=True, slots=True)
class Report:
    """Verdicts per lesson, worst first, per month, and in all."""

    lessons: tuple[ReportRow, ...]
    months: tuple[ReportRow, ...]
    total: ReportRow


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
    verdicts: Iterable[Verdict],
    summaries: Mapping[str, tuple[str, str]],
    share: float = HOLDOUT_SHARE,
) -> Report:
    """Count verdicts; `summaries` gives each lesson's short id and words, `share` is what is held out."""
    found = sorted(verdicts, key=lambda verdict: (verdict.time, verdict.run, verdict.lesson))
    lessons = [
        _make_row(*summaries.get(lesson, (lesson, "")), group, share)
        for lesson, group in _group_verdicts(found, lambda verdict: verdict.lesson).items()
    ]
    months = [
        _make_row(month, "", group, share, is_whole=False)
        for month, group in _group_verdicts(found, _month).items()
    ]
    return Report(tuple(sorted(lessons, key=_worst_rank)), tuple(months), _make_row("all", "", found, share))


def recommend_steps(report: Report) -> tuple[LessonRecommendation, ...]:
    """Say of each lesson whether to retire it, to reword it or to keep it, worst first."""
    found = [_make_recommendation(line) for line in report.lessons]
    order = list(RecommendedStep)
    return tuple(sorted(found, key=lambda proposal: order.index(proposal.step)))


def _worst_rank(line: ReportRow) -> tuple[bool, bool, float, str]:
    return (
        line.lift.conclusion is not LiftConclusion.HARMS,
        not line.judged_count,
        line.posterior.mean,
        line.lesson,
    )


def _group_verdicts(verdicts: Iterable[Verdict], name: Callable[[Verdict], str]) -> dict[str, list[Verdict]]:
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(name(verdict), []).append(verdict)
    return groups


def _month(verdict: Verdict) -> str:
    return f"{verdict.time:%Y-%m}"


def _make_row(
    name: str, summary: str, verdicts: Sequence[Verdict], share: float, *, is_whole: bool = True
) -> ReportRow:
    effects = Counter(verdict.effect for verdict in verdicts)
    heeded = Counter(verdict.following for verdict in verdicts)
    failed = Counter(verdict.following for verdict in verdicts if verdict.failed)
    # What is done once the failure has come has not failed by its coming.
    failed_though = sum(
        verdict.following is Following.FOLLOWED and verdict.effect is Effect.INEFFECTIVE
        for verdict in verdicts
    )
    return ReportRow(
        lesson=name,
        summary=summary,
        helpful=effects[Effect.HELPFUL],
        ineffective=effects[Effect.INEFFECTIVE],
        told=len(verdicts) - heeded[Following.WITHHELD],
        followed=heeded[Following.FOLLOWED],
        ignored=heeded[Following.IGNORED],
        not_applicable=heeded[Following.NOT_APPLICABLE],
        failed_though=failed_though,
        failed_heedless=failed[Following.IGNORED],
        lift=_lift(verdicts, share),
        periods=_periods(verdicts, share) if is_whole else (),
    )


def _lift(verdicts: Sequence[Verdict], share: float) -> Lift:
    """Compare told with withheld runs, lesson by lesson when there are several."""
    by_lesson: dict[str, tuple[list[bool], list[bool]]] = {}
    for verdict in verdicts:
        if verdict.failed is not None:
            told, withheld = by_lesson.setdefault(verdict.lesson, ([], []))
            (withheld if verdict.following is Following.WITHHELD else told).append(verdict.failed)
    if len(by_lesson) == 1:
        return lift(*next(iter(by_lesson.values())), share)
    strata = [
        Arms(len(told), sum(told), len(withheld), sum(withheld)) for told, withheld in by_lesson.values()
    ]
    return pool_lift(strata, len({verdict.run for verdict in verdicts}), share)


def _periods(verdicts: Sequence[Verdict], share: float) -> tuple[ReportRow, ...]:
    """Return the course over time: per month, or per so many runs while there are few months."""
    groups = _group_verdicts(verdicts, _month)
    if len(groups) < _LEAST_MONTHS:
        runs = list(dict.fromkeys(verdict.run for verdict in verdicts))
        place = {run: at // RUNS_PER_PERIOD for at, run in enumerate(runs)}
        ends = [min((at + 1) * RUNS_PER_PERIOD, len(runs)) for at in range(len(runs))]
        groups = _group_verdicts(
            verdicts, lambda verdict: f"{place[verdict.run] * RUNS_PER_PERIOD + 1}-{ends[place[verdict.run]]}"
        )
    return tuple(_make_row(name, "", group, share, is_whole=False) for name, group in groups.items())


def _chance_of_use(arms: Arms) -> float:
    """Return the chance that being told prevents a worthwhile share of the failures."""
    told = posterior(int(arms.told_failed), int(arms.told - arms.told_failed))
    without = posterior(int(arms.withheld_failed), int(arms.withheld - arms.withheld_failed))
    size, rest = without.a + without.b, without.mean * (1 - _LEAST_USE)
    return Beta(rest * size, (1 - rest) * size).chance_above(told)


def _make_recommendation(line: ReportRow) -> LessonRecommendation:
    return LessonRecommendation(line.lesson, *_recommended_step(line))


def _recommended_step(line: ReportRow) -> tuple[RecommendedStep, str]:
    """Return what to do about a lesson and why; what the hold-out shows outweighs what verdicts suggest."""
    low, high = line.posterior.interval
    is_judged, helps = line.judged_count >= _LEAST_JUDGED, line.lift.conclusion is LiftConclusion.HELPS
    helped = f"helped {line.helpful} of {line.judged_count} times"
    if (
        line.lift.conclusion is LiftConclusion.HARMS
        and min(line.lift.arms.told, line.lift.arms.withheld) >= _LEAST_JUDGED
    ):
        return RecommendedStep.RETIRE, "runs that were told failed more often than those that were not"
    if is_judged and high < _EVEN and not helps:
        return RecommendedStep.RETIRE, f"{helped}, surely less than half"
    if line.lift.arms.withheld >= _LEAST_WITHHELD and _chance_of_use(line.lift.arms) < _HARDLY:
        return (
            RecommendedStep.RETIRE,
            f"withheld from {line.lift.arms.withheld:g} runs by lot, which did no worse",
        )
    if line.failed_though >= _OFTEN and line.failed_though >= _EVEN * line.followed:
        failed = f"{line.failed_though} of {line.followed} that followed it failed nonetheless"
        return RecommendedStep.REWORD, f"{failed}: mend the remedy"
    if line.failed_heedless >= _OFTEN and line.ignored > line.followed:
        failed = f"{line.ignored} of {line.told} ignored it, {line.failed_heedless} of them failed"
        return RecommendedStep.REWORD, f"{failed}: say it plainer"
    if helps:
        return RecommendedStep.KEEP, "runs that were told failed less often than those that were not"
    return RecommendedStep.KEEP, helped if is_judged and low > _EVEN else "too few runs to tell"
