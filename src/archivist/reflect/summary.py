"""Write down what happened in a run: its outcome, what worked, what failed, what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from archivist.lessons.candidate import Candidate
from archivist.reading.history import AttemptCounts
from archivist.reading.run import RunReading
from archivist.records import Episode, EpisodeStatus, Event, EventKind

_SHOWN = 5
_TASK_CHARS = 160
_PATH_PARTS = 3
_TIMEOUT = "timed_out"
_OUTCOMES = {
    EpisodeStatus.RUNNING: "Still running",
    EpisodeStatus.SUCCESS: "Succeeded",
    EpisodeStatus.PARTIAL: "Got part of the way",
    EpisodeStatus.FAILED: "Failed",
    EpisodeStatus.ABORTED: "Was broken off",
}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The story of a run in a few lines."""

    outcome: str
    worked: tuple[str, ...]
    failed: tuple[str, ...]
    decisions: tuple[str, ...]


def summarise_run(
    episode: Episode, events: Sequence[Event], reading: RunReading, candidates: Sequence[Candidate]
) -> RunSummary:
    """Sum a run up from its events and from what was learnt of it.

    A failure is a call that did not go well, whoever's doing it was: only some are worth a lesson.
    """
    calls = sum(event.kind in (EventKind.TOOL_CALL, EventKind.EDIT) for event in events)
    kinds = [act.key or _TIMEOUT for act in reading.acts if act.has_failed or act.event.extra.get(_TIMEOUT)]
    asked = " ".join(episode.task.split())
    task = f": {asked[:_TASK_CHARS].rstrip()}{'…' if len(asked) > _TASK_CHARS else ''}" if asked else ""
    outcome = f"{_OUTCOMES[episode.status]}{task}"
    met = (
        f"{_plural(len(kinds), 'failure')} of {_plural(len(set(kinds)), 'kind')}" if kinds else "no failures"
    )
    outcome = f"{outcome.rstrip('.')}. {_plural(calls, 'tool call')}, {met}."
    worked = [each.summary for each in candidates if each.remedies]
    worked += [
        f"`{purpose}` worked {tries.ok} times"
        for purpose, tries in _rank_attempts(reading.attempts, lambda tries: tries.ok)
        if not _failure_count(tries) and tries.ok > 1
    ]
    failed = [each.summary for each in candidates if not each.remedies]
    failed += [
        f"`{purpose}` failed {_failure_count(tries)} of {_failure_count(tries) + tries.ok} times"
        for purpose, tries in _rank_attempts(reading.attempts, _failure_count)
    ]
    return RunSummary(
        outcome, tuple(worked[:_SHOWN]), tuple(failed[:_SHOWN]), _decisions(events, reading.said)
    )


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _failure_count(tries: AttemptCounts) -> int:
    return tries.failed + tries.timeout


def _rank_attempts(
    attempts: Mapping[str, AttemptCounts], count: Callable[[AttemptCounts], int]
) -> list[tuple[str, AttemptCounts]]:
    """Return the attempts of which any are counted, those with the most first."""
    counted = [(purpose, tries) for purpose, tries in attempts.items() if count(tries)]
    return sorted(counted, key=lambda each: (-count(each[1]), each[0]))


def _decisions(events: Sequence[Event], said: Sequence[Event]) -> tuple[str, ...]:
    edits = Counter(
        _short_path(event.target) for event in events if event.kind is EventKind.EDIT and event.target
    )
    changed = [f"changed `{target}`" for target, _ in edits.most_common(_SHOWN)]
    asked = [f"the user said: {' '.join(event.text.split())[:120]}" for event in said[1:3]]
    return tuple([*changed, *asked][:_SHOWN])


def _short_path(path: str) -> str:
    """Return the last parts of a path: where the checkout lies says nothing to another run."""
    parts = [part for part in path.split("/") if part]
    return "/".join(parts[-_PATH_PARTS:]) if path.startswith("/") else path
