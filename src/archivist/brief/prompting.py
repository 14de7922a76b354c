"""Tell which lessons a prompt itself brings up: those that speak of what it speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archivist.recall.keywords import keywords
from archivist.records import Lesson

MOST_LESSONS = 3
# A single common word is chance; two that make up a good part of what a lesson says are not.
_LEAST_WORDS = 2
_LEAST_SHARE = 1 / 3


def brought_up(prompt: frozenset[str], lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons of whose words a prompt holds enough, the largest share first."""
    shares = [(_share(prompt, lesson), lesson) for lesson in lessons]
    found = [(share, lesson) for share, lesson in shares if share >= _LEAST_SHARE]
    found.sort(key=lambda each: (-each[0], -each[1].frequency, each[1].number))
    return [lesson for _, lesson in found]


def _share(prompt: frozenset[str], lesson: Lesson) -> float:
    words = keywords(lesson.summary)
    common = words & prompt
    return len(common) / len(words) if len(common) >= _LEAST_WORDS else 0.0


def fresh(lessons: Sequence[Lesson], told: Iterable[str], most: int = MOST_LESSONS) -> list[Lesson]:
    """Return the first few lessons that were not told yet."""
    known = frozenset(told)
    return [lesson for lesson in lessons if lesson.id not in known][:most]
