"""Decide whether a candidate repeats a lesson that the bank has.

The key names the phenomenon: the same key is the same lesson, and the same failure of another script or port
is another lesson. When the keys differ otherwise, the words decide: summary and rule are compared as sets of
words, tags add a little, and the names in backticks (commands, modules, flags) must overlap. The weights and
the threshold separate the labelled pairs in `tests/lessons/test_duplicates.py` best.
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
# Words that stand in many commands and identify none.
_COMMON_NAMES = frozenset(["pip", "install", "python", "run", "the", "npm", "git", "add", "use"])


@dataclass(frozen=True, slots=True)
class ComparableText:
    """The words of a lesson or candidate that are compared."""

    summary: str
    rule: str
    tags: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Return the names in backticks: what the lesson is about."""
        found = (
            name for code in _CODE.findall(f"{self.summary} {self.rule}") for name in _NAME.findall(code)
        )
        return frozenset(name.lower() for name in found) - _COMMON_NAMES


def comparable_text(lesson: Lesson | Candidate) -> ComparableText:
    """Return the words of a lesson or candidate."""
    return ComparableText(lesson.summary, lesson.rule, frozenset(lesson.tags))


def text_similarity(first: ComparableText, second: ComparableText) -> float:
    """Return how alike two lessons are, from 0 to 1; a part that only one of them has is not compared."""
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
    """Return the lesson that a candidate repeats: the one of its key, else the most alike of its scope."""
    words = comparable_text(candidate)
    best: tuple[float, Lesson] | None = None
    for lesson in lessons:
        if candidate.key and lesson.signature == candidate.key:
            return lesson
        if lesson.repo != candidate.repo or lesson.provider != candidate.provider:
            continue
        if have_different_subjects(lesson.signature, candidate.key):
            continue
        score = text_similarity(words, comparable_text(lesson))
        if score >= DUPLICATE_AT and (best is None or score > best[0]):
            best = score, lesson
    return best[1] if best else None


def is_refined(candidate: Candidate, lesson: Lesson) -> bool:
    """Say whether a candidate has a remedy and the lesson that it repeats has none."""
    return bool(candidate.remedies or candidate.rule) and not (lesson.remedies or lesson.rule)


def drop_duplicates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates without those that repeat an earlier, more important one."""
    kept: list[tuple[Candidate, ComparableText]] = []
    for candidate in candidates:
        words = comparable_text(candidate)
        is_repeated = any(
            candidate.key == other.key
            or (
                not have_different_subjects(candidate.key, other.key)
                and text_similarity(words, other_words) >= DUPLICATE_AT
            )
            for other, other_words in kept
        )
        if not is_repeated:
            kept.append((candidate, words))
    return [candidate for candidate, _ in kept]


def _fuzzy_ratio(first: str, second: str) -> float:
    # Sorted words ignore their order, sets ignore an added clause; the mean does neither entirely.
    a, b = first.lower(), second.lower()
    return (fuzz.token_sort_ratio(a, b) + fuzz.token_set_ratio(a, b)) / 200
