"""Rank what a run on a project should be told: how often and how lately the project met it comes first.

    score = frequency · ½^(runs since / half-life) + importance / 2 + ¼ when the remedy is known

Likeness to the task's words only settles ties: it says little about which failures a run will meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archivist.brief.selection import Chosen, says_remedy
from archivist.config import BriefRules
from archivist.records import Lesson, Status

HALF_LIFE_RUNS = 20
REMEDY_BONUS = 0.25
CHARACTERS_PER_TOKEN = 4
# What a line has besides the lesson's own words: its number and its marks.
_LINE_CHARACTERS = 28


def score(lesson: Lesson, runs_since: int) -> float:
    """Return how much a lesson deserves to be told."""
    lately: float = 0.5 ** (runs_since / HALF_LIFE_RUNS)
    remedy = REMEDY_BONUS if lesson.rule or lesson.remedies else 0.0
    return lesson.frequency * lately + lesson.importance / 2 + remedy


def rank(
    offered: Sequence[Chosen],
    *,
    runs_since: Mapping[str, int],
    likeness: Mapping[str, float],
    rules: BriefRules,
) -> list[Chosen]:
    """Return the lessons to tell, best first, within the number and the budget that the rules allow.

    Lessons met in one run only come after all others, and no more of them than the rules allow.
    """

    def key(each: Chosen) -> tuple[bool, float, float, int]:
        lesson = each.lesson
        merit = score(lesson, runs_since.get(lesson.id, 0))
        return (
            lesson.status is Status.CANDIDATE,
            -round(merit, 3),
            -likeness.get(lesson.id, 0.0),
            lesson.number,
        )

    told: list[Chosen] = []
    room = rules.budget_tokens * CHARACTERS_PER_TOKEN
    candidates_left = rules.max_candidates
    for each in sorted(offered, key=key):
        if len(told) >= rules.max_lessons:
            break
        is_candidate = each.lesson.status is Status.CANDIDATE
        cost = characters(each.lesson)
        if cost > room or (is_candidate and not candidates_left):
            continue
        told.append(each)
        room -= cost
        candidates_left -= is_candidate
    return told


def characters(lesson: Lesson) -> int:
    """Return how much room a lesson takes in a brief."""
    rule = 0 if says_remedy(lesson) else len(lesson.rule)
    return len(lesson.summary) + rule + _LINE_CHARACTERS
