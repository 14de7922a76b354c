"""Decide whether a lesson is believed yet."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from archivist.lessons.quarantine import is_quarantined
from archivist.records import Lesson, LessonType, Source, Status


def with_status(lesson: Lesson, *, promote_at_runs: int) -> Lesson:
    """Return the lesson as candidate, active or in quarantine by what is known of it; retired ones stay.

    Preferences and what a human or an approver confirmed are active at once; anything else is when it
    was met in a second distinct run, and is a candidate again when it has faded below that. Words that would
    command their reader are neither, however often they are met, until a person approves them.
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
    """Say whether a lesson needs no second run."""
    return lesson.confirmed or lesson.type is LessonType.PREFERENCE or lesson.source is Source.MANUAL


def record_sighting(
    lesson: Lesson, *, run: str, event: str, now: datetime, run_count: int, promote_at_runs: int
) -> Lesson:
    """Return the lesson after a run met it; the same run never counts twice."""
    if run in lesson.runs:
        return lesson
    evidence = replace(
        lesson.evidence,
        episodes=merge_sets(lesson.evidence.episodes, (run,)),
        events=merge_sets(lesson.evidence.events, (event,)),
    )
    seen = replace(
        lesson,
        runs=merge_sets(lesson.runs, (run,)),
        evidence=evidence,
        last_seen_run=run,
        last_seen=now,
        updated=max(now, lesson.updated),
        unseen_from=run_count,
    )
    return with_status(seen, promote_at_runs=promote_at_runs)


def merge_sets(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the two sets as one, in the one order that sets are kept in."""
    return tuple(sorted({*first, *second}))
