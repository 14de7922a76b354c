"""How attempts at tasks went: what was tried, how often it worked, and how that changed over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from archivist.audit.lift import Posterior, wilson
from archivist.records.episode import Episode, Usage
from archivist.records.run_words import Action
from archivist.records.words import Provenance

# Logged when an attempt begins; every other action ends one.
_BEGUN = (Action.ATTEMPTED, Action.RETRIED)
_MILLISECOND = 1000


class GroupBy(StrEnum):
    """What attempts can be counted by."""

    APPROACH = "approach"
    AGENT = "agent"
    PROVIDER = "provider"
    TASK = "task"


class PeriodUnit(StrEnum):
    """How long the periods of a series are."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class MergedAttempt(NamedTuple):
    """One attempt at a task, its logged beginning and end merged; `ended` is None before the end."""

    last: Episode
    ended: Action | None
    provider: str
    duration_ms: float | None
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Rate:
    """How a group of attempts went; `periods` is the series over time, if one was asked for.

    `reported_by_agents` counts those of which only the agent itself says how they ended.
    """

    name: str
    attempts: int
    completed: int
    failed: int
    mean_duration_ms: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    reported_by_agents: int = 0
    periods: tuple[Rate, ...] = ()

    @property
    def undecided_count(self) -> int:
        """Return how many attempts have no known end."""
        return self.attempts - self.completed - self.failed

    @property
    def share(self) -> float | None:
        """Return the completed share of the ended attempts, or None without any."""
        ended = self.completed + self.failed
        return self.completed / ended if ended else None

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the completed share (Wilson's score interval)."""
        return wilson(self.completed, self.completed + self.failed)


@dataclass(frozen=True, slots=True)
class Analytics:
    """The groups, most attempts first, and all of them together."""

    by: GroupBy
    step: PeriodUnit | None
    rows: tuple[Rate, ...]
    total: Rate


class ApproachResult(NamedTuple):
    """How one approach to one task went; `verdict` says it in words."""

    task: str
    approach: str
    attempts: int
    completed: int
    failed: int
    agents: tuple[str, ...]
    last: Episode
    verdict: str
    provenance: Provenance = Provenance.MINED


def merge_attempts(attempts: Iterable[Episode]) -> list[MergedAttempt]:
    """Return the logged attempts, oldest first.

    A beginning and the end that follows it, of the same task, agent and approach, are one attempt.
    """
    found: list[MergedAttempt] = []
    begun: dict[tuple[str, str, str], int] = {}
    logged = [attempt for attempt in attempts if attempt.action is not None]
    for last in sorted(logged, key=lambda last: (last.finished is not None, last.finished, last.id)):
        # Agents do not log an attempt's id, so the words must identify it.
        identity = (last.task, last.agent, fold_approach(last.approach))
        ended, usage = None if last.action in _BEGUN else last.action, last.usage or Usage()
        took_ms: float | None = None
        # An attempt that has only begun took no time yet.
        if last.started and last.finished and (ended or last.started != last.finished):
            took_ms = max(0.0, (last.finished - last.started).total_seconds() * _MILLISECOND)
        merged = MergedAttempt(last, ended, last.provider, took_ms, usage.input_tokens, usage.output_tokens)
        if ended is None:
            begun[identity] = len(found)
        elif (at := begun.pop(identity, None)) is not None:
            start = found[at]
            durations = [part.duration_ms for part in (start, merged) if part.duration_ms is not None]
            found[at] = merged._replace(
                provider=merged.provider or start.provider,
                duration_ms=sum(durations) if durations else None,
                tokens_in=start.tokens_in + merged.tokens_in,
                tokens_out=start.tokens_out + merged.tokens_out,
            )
            continue
        found.append(merged)
    return found


def fold_approach(approach: str) -> str:
    """Return an approach's words as they are compared, whatever their case and spaces."""
    return " ".join(approach.casefold().split())


def analyse_attempts(
    attempts: Iterable[Episode],
    by: GroupBy,
    step: PeriodUnit | None = None,
    provenances: Mapping[str, Provenance] | None = None,
) -> Analytics:
    """Count how attempts went, by approach, agent, provider or task, and over time if a step is given."""
    known = provenances or {}
    said = {name for name, provenance in known.items() if provenance is Provenance.SUGGESTED}
    merged = merge_attempts(attempts)
    groups: dict[str, list[MergedAttempt]] = defaultdict(list)
    for attempt in merged:
        name = _group_name(attempt, by)
        groups[fold_approach(name) if by is GroupBy.APPROACH else name].append(attempt)
    # A group is shown under its latest spelling.
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [_rate(_group_name(group[-1], by), group, step, said) for _, group in ranked]
    return Analytics(by, step, tuple(rows), _rate("all", merged, step, said))


def _group_name(attempt: MergedAttempt, by: GroupBy) -> str:
    return attempt.provider if by is GroupBy.PROVIDER else str(getattr(attempt.last, by.value))


def _rate(name: str, group: Sequence[MergedAttempt], step: PeriodUnit | None, said: Collection[str]) -> Rate:
    ends = Counter(attempt.ended for attempt in group)
    durations = [attempt.duration_ms for attempt in group if attempt.duration_ms is not None]
    periods: dict[str, list[MergedAttempt]] = defaultdict(list)
    for attempt in group:
        if attempt.last.finished is not None and step is not None:
            periods[period_name(attempt.last.finished, step)].append(attempt)
    return Rate(
        name,
        len(group),
        ends[Action.COMPLETED],
        ends[Action.FAILED],
        sum(durations) / len(durations) if durations else None,
        sum(attempt.tokens_in for attempt in group),
        sum(attempt.tokens_out for attempt in group),
        sum(attempt.last.id in said for attempt in group),
        tuple(_rate(period, tried, None, said) for period, tried in sorted(periods.items())),
    )


def period_name(moment: datetime, step: PeriodUnit) -> str:
    """Return the name of the day, week or month of a moment. The names sort as times do."""
    # A week belongs to the ISO year, which differs from the calendar year around New Year.
    formats = {PeriodUnit.DAY: "%Y-%m-%d", PeriodUnit.WEEK: "%G-W%V", PeriodUnit.MONTH: "%Y-%m"}
    return moment.strftime(formats[step])


def approach_results(
    attempts: Iterable[Episode], provenances: Mapping[str, Provenance] | None = None
) -> list[ApproachResult]:
    """Return what was tried for each task and how it went, own attempts first, then the most promising.

    What others brought is counted apart: `provenances` says where attempts come from, by their ids.
    """
    known = provenances or {}
    by_provenance: dict[Provenance, list[Episode]] = defaultdict(list)
    for episode in attempts:
        by_provenance[known.get(episode.id, Provenance.MINED)].append(episode)
    groups: dict[tuple[Provenance, str, str], list[MergedAttempt]] = defaultdict(list)
    for provenance, episodes in by_provenance.items():
        for attempt in merge_attempts(episodes):
            last = attempt.last
            groups[provenance, last.task, fold_approach(last.approach)].append(attempt)
    found = []
    for (provenance, *_), group in groups.items():
        ends = Counter(attempt.ended for attempt in group)
        # An attempt in progress has no outcome, and must not hide that of the one before.
        last = next((attempt.last for attempt in reversed(group) if attempt.ended), group[-1].last)
        completed, failed = ends[Action.COMPLETED], ends[Action.FAILED]
        agents = tuple(dict.fromkeys(attempt.last.agent for attempt in group if attempt.last.agent))
        verdict = _describe_result(completed, failed, len(group), group[-1].last)
        found.append(
            ApproachResult(
                last.task,
                last.approach,
                len(group),
                completed,
                failed,
                agents,
                last,
                verdict + provenance.mark,
                provenance,
            )
        )
    return sorted(
        found,
        key=lambda result: (
            result.provenance.is_own,
            expected_success(result),
            result.last.finished.isoformat() if result.last.finished else "",
            result.approach,
        ),
        reverse=True,
    )


def _describe_result(completed: int, failed: int, attempts: int, last: Episode) -> str:
    ended = completed + failed
    if not ended:
        return "begun, not known to have ended" if attempts == 1 else f"begun {attempts} times, never ended"
    if not failed:
        return "worked" if ended == 1 else f"worked every time ({ended})"
    if not completed:
        return "failed" if ended == 1 else f"failed every time ({ended})"
    words = {Action.COMPLETED: "worked", Action.FAILED: "failed"}
    outcome = words.get(last.action or Action.RETRIED, "not ended yet")
    return f"worked {completed} of {ended} times, last {outcome}"


def expected_success(tried: ApproachResult) -> float:
    """Return the chance that an approach works when it is tried again; a half before the first end."""
    return expected_chance(tried.completed, tried.failed)


def expected_chance(completed: int, failed: int) -> float:
    """Return the chance of success after so many successes and failures; a half after none."""
    return Posterior(completed, failed).mean
