"""Lower the frequency of lessons that runs no longer meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from archivist.records import Lesson, LessonType, Status


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
