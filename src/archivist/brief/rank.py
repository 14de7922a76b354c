"""Rank what a run on a project should be told: how often and how lately the project met it comes first.

    chance  = frequency · ½^(runs since / half-life)
    trust   = (helpful + 1) ÷ (helpful + ineffective + 2), the mean of a Beta posterior: ½ before any verdict;
              where the hold-out has withheld it often enough, the chance that being told prevents its failure
    merit   = (chance + importance / 2 + ¼ when the remedy is known) · (½ + trust)

Likeness to the task's words only settles ties: it says little about which failures a run will meet. What is
hardly likely any more is not told at all, and of lessons that say the same no more than two.
"""

from collections.abc import Callable, Mapping, Sequence
from math import erf, sqrt
from typing import NamedTuple

from archivist.brief.select import BriefedLesson, says_remedy
from archivist.config import BriefRules
from archivist.records import Lesson, Status, Tally
from archivist.text import CHARACTERS_PER_TOKEN

HALF_LIFE_RUNS = 20
REMEDY_BONUS = 0.25
# Below this chance a lesson is not worth its tokens: one sighting, seventy runs ago.
LEAST_CHANCE = 0.09
# What a line has besides the lesson's own words: its number and its marks.
_LINE_CHARACTERS = 28
# Two lessons of which so large a share of the words is common say the same.
_ALIKE = 0.6
# From so many runs of either kind on, told and withheld are compared.
_COMPARED_RUNS = 5
_MOST_ALIKE = 2


class LessonScore(NamedTuple):
    """How much a lesson deserves to be told, and each part of it."""

    total: float
    chance: float
    trust: float


def score_lesson(lesson: Lesson, runs_since: int, tally: Tally | None = None) -> LessonScore:
    """Return how much a lesson deserves to be told."""
    has_remedy = bool(lesson.rule or lesson.remedies)
    return score_row(lesson.frequency, lesson.importance, has_remedy, runs_since, tally)


def score_row(
    frequency: int, importance: float, has_remedy: bool, runs_since: int, tally: Tally | None = None
) -> LessonScore:
    """Return the merit of what a lesson's row says, without the lesson."""
    trust = trust_in(tally) if tally is not None else 0.5
    chance = frequency * 0.5 ** (runs_since / HALF_LIFE_RUNS)
    remedy = REMEDY_BONUS if has_remedy else 0.0
    return LessonScore((chance + importance / 2 + remedy) * (0.5 + trust), chance, trust)


def trust_in(tally: Tally) -> float:
    """Return from 0 to 1 how far a lesson proved helpful; a half when nothing is known."""
    if min(tally.told, tally.withheld) < _COMPARED_RUNS:
        return (tally.helpful + 1) / (tally.helpful + tally.ineffective + 2)
    means, variance = [], 0.0
    for failed, runs in ((tally.told_failed, tally.told), (tally.withheld_failed, tally.withheld)):
        mean = (failed + 1) / (runs + 2)
        means.append(mean)
        variance += mean * (1 - mean) / (runs + 3)
    # Both posteriors are near enough to normal from five runs on.
    return (1 + erf((means[1] - means[0]) / sqrt(2 * variance))) / 2


def rank_lessons(
    offered: Sequence[BriefedLesson],
    *,
    runs_since: Mapping[str, int],
    similarity: Mapping[str, float],
    rules: BriefRules,
    tallies: Mapping[str, Tally] | None = None,
    tokens: Callable[[str], int] | None = None,
) -> list[BriefedLesson]:
    """Return the lessons to tell, best first, within the number and the budget that the rules allow.

    Lessons met in one run only come after all others, and no more of them than the rules allow. `tokens`
    counts a text's tokens; without it four characters are one.
    """
    merits = {
        each.lesson.id: score_lesson(
            each.lesson, runs_since.get(each.lesson.id, 0), (tallies or {}).get(each.lesson.id)
        )
        for each in offered
    }

    def key(each: BriefedLesson) -> tuple[bool, float, float, int]:
        lesson = each.lesson
        return (
            lesson.status is Status.CANDIDATE,
            -round(merits[lesson.id].total, 3),
            -similarity.get(lesson.id, 0.0),
            lesson.number,
        )

    told: list[BriefedLesson] = []
    words: dict[str, frozenset[str]] = {}
    room: float = rules.budget_tokens
    candidates_left = rules.max_candidates
    likely = [each for each in offered if merits[each.lesson.id].chance >= LEAST_CHANCE]
    for each in sorted(likely, key=key):
        if len(told) >= rules.max_task_lessons:
            break
        is_candidate = each.lesson.status is Status.CANDIDATE
        cost = cost_in_tokens(each.lesson, tokens)
        if cost > room or (is_candidate and not candidates_left) or _is_redundant(each.lesson, told, words):
            continue
        told.append(each)
        room -= cost
        candidates_left -= is_candidate
    return told


def cost_in_tokens(lesson: Lesson, tokens: Callable[[str], int] | None = None) -> float:
    """Return how much room a lesson takes in a brief."""
    text = lesson.summary if says_remedy(lesson) else f"{lesson.summary} {lesson.rule}"
    characters = len(text) + _LINE_CHARACTERS
    return characters / CHARACTERS_PER_TOKEN if tokens is None else tokens(text) + _LINE_CHARACTERS // 4


def _is_redundant(lesson: Lesson, told: Sequence[BriefedLesson], words: dict[str, frozenset[str]]) -> bool:
    """Say whether enough of what is told already says the same; `words` keeps those of each lesson."""
    return sum(_are_equivalent(lesson, each.lesson, words) for each in told) >= _MOST_ALIKE


def _are_equivalent(one: Lesson, other: Lesson, words: dict[str, frozenset[str]]) -> bool:
    """Say whether two lessons ask for the same, or are worded alike; mined ones share many words anyway."""
    if one.signature and other.signature:
        return bool(one.remedies) and one.remedies[0] == next(iter(other.remedies), None)
    mine, others = _words_of(one, words), _words_of(other, words)
    return len(mine & others) >= _ALIKE * len(mine | others)


def _words_of(lesson: Lesson, words: dict[str, frozenset[str]]) -> frozenset[str]:
    if lesson.id not in words:
        from archivist.recall.keywords import keywords

        words[lesson.id] = keywords(lesson.summary)
    return words[lesson.id]
