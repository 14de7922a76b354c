"""What attempts at tasks came to: what was tried, how often it worked, and how that went over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import sqrt
from typing import NamedTuple, assert_never

from archivist.audit.beta import posterior
from archivist.records.episode import Episode
from archivist.records.run_words import Action

_BEGUN = (Action.ATTEMPTED, Action.RETRIED)
_MILLISECOND = 1000
# So many standard deviations to either side hold 95 % of a normal distribution.
_NORMAL = 1.959963984540054


class GroupBy(StrEnum):
    """What attempts can be counted by."""

    APPROACH = "approach"
    AGENT = "agent"
    PROVIDER = "provider"
    TASK = "task"


class PeriodUnit(StrEnum):
    """How long the periods of a course over time are."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class MergedAttempt(NamedTuple):
    """One try at a task: what was logged of its beginning and of its end, put together.

    `ended` is None while nobody has said how it ended.
    """

    task: str
    agent: str
    provider: str
    approach: str
    ended: Action | None
    last: Episode
    duration_ms: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class Rate:
    """How a group of tries did; `periods` is its course over time, where one was asked for."""

    name: str
    attempts: int
    completed: int
    failed: int
    mean_duration_ms: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    periods: tuple[Rate, ...] = ()

    @property
    def undecided_count(self) -> int:
        """Return how many tries nobody has said the end of."""
        return self.attempts - self.completed - self.failed

    @property
    def share(self) -> float | None:
        """Return the completed share of what ended, or None before anything has."""
        ended = self.completed + self.failed
        return self.completed / ended if ended else None

    @property
    def interval(self) -> tuple[float, float]:
        """Return the bounds between which the true share lies with 95 % certainty, by Wilson's score.

        They hold the share that was seen, also where nothing failed or nothing worked; before anything
        ended they say nothing.
        """
        ended = self.completed + self.failed
        if not ended:
            return 0.0, 1.0
        share, spread = self.completed / ended, _NORMAL**2 / ended
        middle = (share + spread / 2) / (1 + spread)
        reach = _NORMAL * sqrt(share * (1 - share) / ended + spread / (4 * ended)) / (1 + spread)
        low = middle - reach if self.completed else 0.0
        high = middle + reach if self.failed else 1.0
        return max(0.0, min(low, share)), min(1.0, max(high, share))


@dataclass(frozen=True, slots=True)
class Analytics:
    """The groups, the most tried first, and all of them together."""

    by: GroupBy
    step: PeriodUnit | None
    rows: tuple[Rate, ...]
    total: Rate


class ApproachResult(NamedTuple):
    """What became of one approach to one task; `verdict` says it in words."""

    task: str
    approach: str
    attempts: int
    completed: int
    failed: int
    agents: tuple[str, ...]
    last: Episode
    verdict: str


def merge_attempts(attempts: Iterable[Episode]) -> list[MergedAttempt]:
    """Return the tries that the log tells of, oldest first.

    A beginning and the end that follows it, of the same task, agent and approach, are one try.
    """
    found: list[MergedAttempt] = []
    begun: dict[tuple[str, str, str], int] = {}
    for each in sorted(
        attempts, key=lambda attempt: (attempt.finished is not None, attempt.finished, attempt.id)
    ):
        if each.action is None:
            continue
        voice = (each.task, each.agent, fold_approach(each.approach))
        if each.action in _BEGUN:
            begun[voice] = len(found)
            found.append(_make_attempt(each, None))
            continue
        at = begun.pop(voice, None)
        if at is None:
            found.append(_make_attempt(each, each.action))
        else:
            found[at] = _join_end(found[at], _make_attempt(each, each.action))
    return found


def fold_approach(approach: str) -> str:
    """Return an approach's words as they are compared, whatever their case and spaces."""
    return " ".join(approach.casefold().split())


def _make_attempt(attempt: Episode, ended: Action | None) -> MergedAttempt:
    spent = attempt.usage
    return MergedAttempt(
        attempt.task,
        attempt.agent,
        attempt.provider,
        attempt.approach,
        ended,
        attempt,
        _duration_ms(attempt),
        spent.input_tokens if spent else 0,
        spent.output_tokens if spent else 0,
    )


def _duration_ms(attempt: Episode) -> float | None:
    """Return how long an attempt took; what has only begun says nothing of that."""
    if attempt.started is None or attempt.finished is None:
        return None
    took = (attempt.finished - attempt.started).total_seconds() * _MILLISECOND
    return None if attempt.action in _BEGUN and not took else max(0.0, took)


def _join_end(begun: MergedAttempt, end: MergedAttempt) -> MergedAttempt:
    durations = [each.duration_ms for each in (begun, end) if each.duration_ms is not None]
    return end._replace(
        provider=end.provider or begun.provider,
        duration_ms=sum(durations) if durations else None,
        tokens_in=begun.tokens_in + end.tokens_in,
        tokens_out=begun.tokens_out + end.tokens_out,
    )


def analyse_attempts(attempts: Iterable[Episode], by: GroupBy, step: PeriodUnit | None = None) -> Analytics:
    """Count how tries went, by approach, agent, provider or task, and over time when a step is given."""
    every = merge_attempts(attempts)
    groups: dict[str, list[MergedAttempt]] = defaultdict(list)
    for each in every:
        groups[_group_name(each, by)].append(each)
    rows = [
        _rate(_latest_spelling(group, by), group, step)
        for _, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return Analytics(by, step, tuple(rows), _rate("all", every, step))


def _group_name(each: MergedAttempt, by: GroupBy) -> str:
    return fold_approach(each.approach) if by is GroupBy.APPROACH else str(getattr(each, by.value))


def _latest_spelling(group: Sequence[MergedAttempt], by: GroupBy) -> str:
    return str(getattr(group[-1], by.value))


def _rate(name: str, group: Sequence[MergedAttempt], step: PeriodUnit | None) -> Rate:
    ends = Counter(each.ended for each in group)
    durations = [each.duration_ms for each in group if each.duration_ms is not None]
    periods: dict[str, list[MergedAttempt]] = defaultdict(list)
    for each in group if step else ():
        if each.last.finished is not None and step is not None:
            periods[period_name(each.last.finished, step)].append(each)
    return Rate(
        name,
        len(group),
        ends[Action.COMPLETED],
        ends[Action.FAILED],
        sum(durations) / len(durations) if durations else None,
        sum(each.tokens_in for each in group),
        sum(each.tokens_out for each in group),
        tuple(_rate(name, tried, None) for name, tried in sorted(periods.items())),
    )


def period_name(moment: datetime, step: PeriodUnit) -> str:
    """Return the name of the day, week or month in which a moment lies; the names sort as times do."""
    match step:
        case PeriodUnit.DAY:
            return f"{moment:%Y-%m-%d}"
        case PeriodUnit.WEEK:
            year, week, _ = moment.isocalendar()
            return f"{year:04d}-W{week:02d}"
        case PeriodUnit.MONTH:
            return f"{moment:%Y-%m}"
    assert_never(step)


def approach_results(attempts: Iterable[Episode]) -> list[ApproachResult]:
    """Return what was tried for each task and what became of it: what worked first, what failed last."""
    groups: dict[tuple[str, str], list[MergedAttempt]] = defaultdict(list)
    for each in merge_attempts(attempts):
        groups[each.task, fold_approach(each.approach)].append(each)
    found = [_approach_result(group) for group in groups.values()]
    return sorted(found, key=_worth_rank, reverse=True)


def _approach_result(group: Sequence[MergedAttempt]) -> ApproachResult:
    ends = Counter(each.ended for each in group)
    completed, failed, last = ends[Action.COMPLETED], ends[Action.FAILED], group[-1].last
    agents = tuple(dict.fromkeys(each.agent for each in group if each.agent))
    verdict = _describe_result(completed, failed, len(group), last)
    return ApproachResult(last.task, last.approach, len(group), completed, failed, agents, last, verdict)


def _describe_result(completed: int, failed: int, attempts: int, last: Episode) -> str:
    ended = completed + failed
    if not ended:
        return "begun, not known to have ended" if attempts == 1 else f"begun {attempts} times, never ended"
    if not failed:
        return "worked" if ended == 1 else f"worked every time ({ended})"
    if not completed:
        return "failed" if ended == 1 else f"failed every time ({ended})"
    how = {Action.COMPLETED: "worked", Action.FAILED: "failed"}.get(
        last.action or Action.RETRIED, "not ended yet"
    )
    return f"worked {completed} of {ended} times, last {how}"


def expected_success(tried: ApproachResult) -> float:
    """Return what to expect of an approach when it is tried again; a half before it was ever ended."""
    return posterior(tried.completed, tried.failed).mean


def _worth_rank(tried: ApproachResult) -> tuple[float, str, str]:
    when = tried.last.finished.isoformat() if tried.last.finished else ""
    return expected_success(tried), when, tried.approach
