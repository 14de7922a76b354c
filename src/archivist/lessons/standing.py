"""Decide the status of a lesson, and lower its frequency when runs no longer meet it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from archivist.lessons.quarantine import is_quarantined
from archivist.records import Lesson, LessonType, Source, Status


def with_status(lesson: Lesson, *, promote_at_runs: int) -> Lesson:
    """Return the lesson as candidate, active or quarantined; a retired lesson keeps its status.

    Preferences and what a person wrote or approved are active at once. Any other lesson is active while
    `promote_at_runs` distinct runs have met it. A lesson that looks like a prompt injection stays quarantined
    until a person approves it, however many runs met it.
    """
    if lesson.status.is_retired:
        return lesson
    if is_quarantined(lesson):
        status = Status.QUARANTINED
    elif is_confirmed(lesson) or lesson.frequency >= promote_at_runs:
        status = Status.ACTIVE
    else:
        status = Status.CANDIDATE
    return lesson if lesson.status is status else replace(lesson, status=status)


def is_confirmed(lesson: Lesson) -> bool:
    """Say whether a lesson is active without a second run."""
    return lesson.confirmed or lesson.type is LessonType.PREFERENCE or lesson.source is Source.MANUAL


def merge_sets(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the union of two sets, sorted: the order in which records hold sets."""
    return tuple(sorted({*first, *second}))


@dataclass(frozen=True, slots=True)
class AgeingResult:
    """The lessons that a run made fade and those that it archived."""

    faded: tuple[Lesson, ...] = ()
    archived: tuple[Lesson, ...] = ()
    was_counted: bool = True


def decay_lesson(
    lesson: Lesson, *, run: str, run_count: int, now: datetime, unseen_runs: int, preferences_fade: bool
) -> Lesson:
    """Return the lesson after a run has aged the bank; `run_count` is that run's own number.

    A lesson that this run met is counted as unseen from here on. After `unseen_runs` runs without
    recurrence its frequency drops by one and the count starts again; at frequency 0 it is archived.
    """
    if lesson.last_seen_run == run:
        return lesson if lesson.unseen_from == run_count else replace(lesson, unseen_from=run_count)
    if lesson.runs_since(run_count) < unseen_runs:
        return lesson
    if lesson.type is LessonType.PREFERENCE and not preferences_fade:
        return lesson
    faded = replace(lesson, faded=lesson.faded + 1, unseen_from=run_count, updated=max(now, lesson.updated))
    if faded.frequency == 0:
        return replace(faded, status=Status.ARCHIVED, edited=max(now, lesson.edited))
    return faded
