"""Decide which runs are old enough to delete, and when to warn that a bank has grown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from archivist.clock import from_text
from archivist.config import RetentionRules
from archivist.store.results import Sizes

_MB = 1_000_000
# Pruning less than a twentieth is not worth a recommendation.
_WORTH_FREEING = 0.05


class RetentionReason(StrEnum):
    """Why a run stays."""

    YOUNG = "young"
    UNDATED = "without a date"
    WAITING = "waiting for reflection"
    CITED = "cited by a lesson"
    LAST = "counts the runs"
    RECENT = "among the latest of its project, or captured lately"


@dataclass(frozen=True, slots=True)
class RetentionNeeds:
    """What must stay: cited runs and events, queued and recent runs, and the one with the highest number."""

    runs: frozenset[str] = frozenset()
    events: Mapping[str, frozenset[str]] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    last: str = ""
    recent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RunDeletion:
    """What is deleted of a run: all of it when it is whole, else only the events that no lesson cites."""

    run: str
    events: int
    bytes: int
    cited: frozenset[str] = frozenset()
    is_whole: bool = True


def collect_needs(
    evidence: Iterable[tuple[Iterable[str], Iterable[str]]],
    waiting: Iterable[str],
    last: str,
    recent: Iterable[str] = (),
) -> RetentionNeeds:
    """Collect what must stay from the runs and events that each lesson cites."""
    runs: set[str] = set()
    events: dict[str, frozenset[str]] = {}
    for cited_runs, cited_events in evidence:
        runs.update(cited_runs)
        for event in cited_events:
            run = event.rpartition("#")[0]
            events[run] = events.get(run, frozenset()) | {event}
    return RetentionNeeds(frozenset(runs), events, frozenset(waiting), last, frozenset(recent))


def latest_end(dates: Iterable[Sequence[str | None]]) -> datetime | None:
    """Return when the last of some runs ended, or else started, from the times of each end and start."""
    ends, starts = zip(*dates, strict=True)
    latest = max(filter(None, ends), default="") or max(filter(None, starts), default="")
    return from_text(latest) if latest else None


def decide_retention(
    run: str,
    ended: datetime | None,
    needs: RetentionNeeds,
    before: datetime,
    *,
    uncited: tuple[int, int] = (0, 0),
    kin: frozenset[str] = frozenset(),
) -> RetentionReason | RunDeletion:
    """Return what to delete of a run that ended at a time, or why it stays.

    When a lesson cites single events of a run, these events and the run's record stay and the other events
    are deleted; a run that is cited as a whole stays whole. The run with the highest number stays because
    lessons count from it. `kin` are the runs of its session (its parts, its subagents and its parents), whose
    records are deleted together or not at all. `uncited` are the number and the bytes of its events that no
    lesson cites.
    """
    kin = kin | {run}
    if ended is None:
        return RetentionReason.UNDATED
    if ended >= before:
        return RetentionReason.YOUNG
    if kin & needs.waiting:
        return RetentionReason.WAITING
    if kin & needs.recent:
        return RetentionReason.RECENT
    cited = needs.events.get(run, frozenset())
    if not cited and run in needs.runs:
        return RetentionReason.CITED
    if kin & (needs.runs | needs.events.keys()):
        going = RunDeletion(run, *uncited, cited, is_whole=False)
        return going if uncited[0] else RetentionReason.CITED
    if needs.last in kin:
        return RetentionReason.LAST
    return RunDeletion(run, *uncited)


def child_runs(parents: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the direct children of each run, from pairs of a run and its parent."""
    found: dict[str, list[str]] = {}
    for name, parent in parents:
        if parent:
            found.setdefault(parent, []).append(name)
    return found


def descendant_runs(run: str, known: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the runs below a run: its parts, its subagents' runs, and those below them."""
    found = {run: None}
    waiting = [run]
    while waiting:
        fresh = [child for child in known.get(waiting.pop(), ()) if child not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return list(found)[1:]


def session_families(known: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """Return all runs of the session for each run that has a parent or a child."""
    found: dict[str, frozenset[str]] = {}
    for top in known.keys() - {name for names in known.values() for name in names}:
        family = frozenset((top, *descendant_runs(top, known)))
        found.update(dict.fromkeys(family, family))
    return found


def growth_warnings(sizes: Sizes, prunable: int, rules: RetentionRules) -> list[str]:
    """Return what makes a bank large and what helps, once it is larger than configured.

    `prunable` are the bytes that pruning frees.
    """
    if sizes.total < rules.warn_at_mb * _MB:
        return []
    days = rules.episodes_days
    kind, size = max(sizes.kinds.items(), key=lambda item: item[1], default=("records", 0))
    said = f"{kind} are {round(100 * sizes.share(size))} % of {format_mb(sizes.total)}"
    freed = prunable + sizes.free
    if freed < sizes.total * _WORTH_FREEING:
        return [f"{said}, but little is older than {days} days: archivist prune with a smaller --days"]
    return [f"{said}: archivist prune --days {days} --yes frees about {format_mb(freed)}"]


def format_mb(size: int) -> str:
    """Return a size as text in megabytes."""
    return f"{size / _MB:.0f} MB" if size >= 10 * _MB else f"{size / _MB:.1f} MB"
