"""Tell what the words of a prompt or a task bring up: lessons that speak of the same, or a project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Lesson

MOST_LESSONS = 3
# A single common word is chance; two that make up a good part of what a lesson says are not.
_LEAST_WORDS = 2
_LEAST_SHARE = 1 / 3
# What tasks of any project say.
_IN_ANY_TASK = frozenset([
    "add", "bug", "change", "check", "code", "error", "fail", "failing", "fails", "feature", "fix",
    "implement", "issue", "make", "new", "please", "project", "refactor", "remove", "run", "support", "test",
    "tests", "update", "use", "write",
])  # fmt: skip


def match_prompt(prompt: frozenset[str], lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons of whose words a prompt holds enough, the largest share first."""
    shares = [(_word_share(prompt, lesson), lesson) for lesson in lessons]
    found = [(share, lesson) for share, lesson in shares if share >= _LEAST_SHARE]
    found.sort(key=lambda each: (-each[0], -each[1].frequency, each[1].number))
    return [lesson for _, lesson in found]


def _word_share(prompt: frozenset[str], lesson: Lesson) -> float:
    words = keywords(lesson.summary)
    common = words & prompt
    return len(common) / len(words) if len(common) >= _LEAST_WORDS else 0.0


def select_untold(
    lessons: Sequence[Lesson], briefed_ids: Iterable[str], most: int = MOST_LESSONS
) -> list[Lesson]:
    """Return the first few lessons that were not told yet."""
    known = frozenset(briefed_ids)
    return [lesson for lesson in lessons if lesson.id not in known][:most]


def project_of(words: frozenset[str], tasks: Iterable[tuple[str, str]]) -> str:
    """Return the project that one of these tasks was done in, when its words are those; else nothing.

    Words that tasks of several projects hold tell of none. Another project's advice is worse than none: of
    the rest at least two must be common, and make up a good part of both.
    """
    held = [(project, keywords(task)) for project, task in tasks]
    projects: dict[str, set[str]] = {}
    for project, task in held:
        for word in task & words:
            projects.setdefault(word, set()).add(project)
    shared = _IN_ANY_TASK.union(word for word, those in projects.items() if len(those) > 1)
    telling = words - shared
    common: dict[str, int] = {}
    for project, task in held:
        if matches(telling, task - shared, frozenset(), Overlap()):
            common[project] = max(common.get(project, 0), len(telling & task))
    most = max((_LEAST_WORDS, *common.values()))
    best = [project for project, count in common.items() if count == most]
    return best[0] if len(best) == 1 else ""
