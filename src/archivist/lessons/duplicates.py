"""Tell whether a candidate is a lesson that the bank has already.

The key names the phenomenon: the same key is the same lesson, and the same failure of another script or port
never is. Where the keys differ otherwise, the words decide:
summary and rule are compared as sets of words, with tags as a nudge, and the names in backticks (commands,
modules, flags) must not contradict each other. The weights and the threshold are those that separate the
labelled pairs in `tests/lessons/test_duplicates.py` best.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from archivist.lessons.candidate import Candidate
from archivist.reading.failures import have_different_subjects
from archivist.records import Lesson

SUMMARY_WEIGHT = 0.6
NAME_WEIGHT = 0.3
RULE_WEIGHT = 0.15
TAG_WEIGHT = 0.05
DUPLICATE_AT = 0.78

_CODE = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_DULL = frozenset(["pip", "install", "python", "run", "the", "npm", "git", "add", "use"])


@dataclass(frozen=True, slots=True)
class ComparableText:
    """What of a lesson or candidate is compared."""

    summary: str
    rule: str
    tags: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Return the names that stand in backticks: what the lesson is about."""
        found = (
            name for code in _CODE.findall(f"{self.summary} {self.rule}") for name in _NAME.findall(code)
        )
        return frozenset(name.lower() for name in found) - _DULL


def comparable_text(each: Lesson | Candidate) -> ComparableText:
    """Return the words of a lesson or candidate."""
    return ComparableText(each.summary, each.rule, frozenset(each.tags))


def text_similarity(first: ComparableText, second: ComparableText) -> float:
    """Return how much two lessons say the same, from 0 to 1; what only one of them has is not compared."""
    parts = [(SUMMARY_WEIGHT, _fuzzy_ratio(first.summary, second.summary))]
    if first.names and second.names:
        if not first.names & second.names:
            return 0.0
        parts.append((NAME_WEIGHT, len(first.names & second.names) / len(first.names | second.names)))
    if first.rule and second.rule:
        parts.append((RULE_WEIGHT, _fuzzy_ratio(first.rule, second.rule)))
    if first.tags and second.tags:
        shared = len(first.tags & second.tags)
        parts.append((TAG_WEIGHT, shared / min(len(first.tags), len(second.tags))))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def find_duplicate(candidate: Candidate, lessons: Iterable[Lesson]) -> Lesson | None:
    """Return the lesson that a candidate repeats: by key, else the most alike of its scope, or None."""
    mine = comparable_text(candidate)
    best: tuple[float, Lesson] | None = None
    for lesson in lessons:
        if candidate.key and lesson.signature == candidate.key:
            return lesson
        if lesson.repo != candidate.repo or lesson.provider != candidate.provider:
            continue
        if have_different_subjects(lesson.signature, candidate.key):
            continue
        score = text_similarity(mine, comparable_text(lesson))
        if score >= DUPLICATE_AT and (best is None or score > best[0]):
            best = score, lesson
    return best[1] if best else None


def is_refined(candidate: Candidate, lesson: Lesson) -> bool:
    """Say whether a candidate says more than the lesson it repeats: a remedy where there was none."""
    return bool(candidate.remedies or candidate.rule) and not (lesson.remedies or lesson.rule)


def drop_duplicates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates without those that repeat an earlier, more important one."""
    kept: list[Candidate] = []
    for candidate in candidates:
        mine = comparable_text(candidate)
        if not any(_is_duplicate(candidate, mine, other) for other in kept):
            kept.append(candidate)
    return kept


def _is_duplicate(candidate: Candidate, mine: ComparableText, other: Candidate) -> bool:
    if candidate.key == other.key:
        return True
    return (
        not have_different_subjects(candidate.key, other.key)
        and text_similarity(mine, comparable_text(other)) >= DUPLICATE_AT
    )


def _fuzzy_ratio(first: str, second: str) -> float:
    # Sorting words forgives their order, sets forgive an added clause; the mean forgives neither wholly.
    a, b = first.lower(), second.lower()
    return (fuzz.token_sort_ratio(a, b) + fuzz.token_set_ratio(a, b)) / 200
