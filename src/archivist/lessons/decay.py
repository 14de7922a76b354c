"""Let lessons fade that no run meets any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from archivist.lessons.standing import with_status
from archivist.records import Lesson, LessonType, Status


def decay_lesson(
    lesson: Lesson,
    *,
    run: str,
    run_count: int,
    now: datetime,
    unseen_runs: int,
    preferences_fade: bool,
    promote_at_runs: int,
) -> Lesson:
    """Return the lesson after a run has aged the bank, `run_count` being that run's own number.

    A lesson met in this very run starts counting from here. One that `unseen_runs` runs did not meet
    loses one frequency and starts counting anew; at frequency 0 it is archived.
    """
    if lesson.last_seen_run == run:
        return lesson if lesson.unseen_from == run_count else replace(lesson, unseen_from=run_count)
    if lesson.runs_since(run_count) < unseen_runs:
        return lesson
    if lesson.type is LessonType.PREFERENCE and not preferences_fade:
        return lesson
    fainter = replace(lesson, faded=lesson.faded + 1, unseen_from=run_count, updated=max(now, lesson.updated))
    if fainter.frequency == 0:
        return replace(fainter, status=Status.ARCHIVED, edited=max(now, lesson.edited))
    return with_status(fainter, promote_at_runs=promote_at_runs)
