"""Sum up a run for its episode, and keep the section of lessons in a progress file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from archivist.lessons.candidate import Candidate
from archivist.reading.run import RunReading
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Lesson
from archivist.text import split_around

HEADING = "## Lessons learned"
_START = "<!-- archivist:lessons -->"
_END = "<!-- /archivist:lessons -->"
_SHOWN = 5
_TASK_CHARS = 160
_PATH_PARTS = 3
_TIMEOUT = "timed_out"
_OUTCOMES = {
    EpisodeStatus.RUNNING: "Still running",
    EpisodeStatus.SUCCESS: "Succeeded",
    EpisodeStatus.PARTIAL: "Got part of the way",
    EpisodeStatus.FAILED: "Failed",
    EpisodeStatus.ABORTED: "Aborted",
}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a few lines."""

    outcome: str
    worked: tuple[str, ...]
    failed: tuple[str, ...]
    decisions: tuple[str, ...]


def summarise_run(
    episode: Episode, events: Sequence[Event], reading: RunReading, candidates: Sequence[Candidate]
) -> RunSummary:
    """Sum up a run from its events and from what was learnt.

    Every call that did not succeed counts as a failure, whoever caused it: only some are worth a lesson.
    """
    calls = sum(event.kind in (EventKind.TOOL_CALL, EventKind.EDIT) for event in events)
    kinds = [act.key or _TIMEOUT for act in reading.acts if act.has_failed or act.event.extra.get(_TIMEOUT)]
    failures = f"{_plural(len(kinds), 'failure')} of {_plural(len(set(kinds)), 'kind')}"
    asked = " ".join(episode.task.split())
    task = f": {asked[:_TASK_CHARS].rstrip()}{'…' if len(asked) > _TASK_CHARS else ''}" if asked else ""
    outcome = f"{_OUTCOMES[episode.status]}{task}".rstrip(".")
    worked = [candidate.summary for candidate in candidates if candidate.remedies]
    # Purposes with how often they failed and went well.
    tried = [(purpose, tried.failed + tried.timeout, tried.ok) for purpose, tried in reading.attempts.items()]
    reliable = sorted((-ok, purpose) for purpose, bad, ok in tried if not bad and ok > 1)
    worked += [f"`{purpose}` worked {-ok} times" for ok, purpose in reliable]
    failed = [candidate.summary for candidate in candidates if not candidate.remedies]
    failing = sorted((-bad, purpose, ok) for purpose, bad, ok in tried if bad)
    failed += [f"`{purpose}` failed {-bad} of {ok - bad} times" for bad, purpose, ok in failing]
    targets = [event.target for event in events if event.kind is EventKind.EDIT and event.target]
    # Where the checkout lies does not matter to another run: the last parts of a path are enough.
    edits = Counter(
        "/".join([part for part in path.split("/") if part][-_PATH_PARTS:]) if path.startswith("/") else path
        for path in targets
    )
    decisions = [f"changed `{target}`" for target, _ in edits.most_common(_SHOWN)]
    decisions += [f"the user said: {' '.join(event.text.split())[:120]}" for event in reading.said[1:3]]
    return RunSummary(
        f"{outcome}. {_plural(calls, 'tool call')}, {failures if kinds else 'no failures'}.",
        tuple(worked[:_SHOWN]),
        tuple(failed[:_SHOWN]),
        tuple(decisions[:_SHOWN]),
    )


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def with_lessons(text: str, lessons: Sequence[Lesson]) -> str:
    """Return the text of a progress file with these lessons as its section. Without any the section goes."""
    first, *others = split_around(text, _START, _END)
    rest = "\n\n".join((first.rstrip("\n") if others else first, *(part.strip("\n") for part in others)))
    rest = rest.rstrip("\n")
    if not lessons:
        return f"{rest}\n" if rest.strip() else ""
    lines = [f"- {' '.join(lesson.summary.split())} ({lesson.short_id})" for lesson in lessons]
    section = "\n".join([_START, HEADING, "", *lines, _END])
    return f"{rest}\n\n{section}\n" if rest.strip() else f"{section}\n"
