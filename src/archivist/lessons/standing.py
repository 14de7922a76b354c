"""Decide the status of a lesson."""

from __future__ import annotations

from dataclasses import replace

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
