"""Match the words of a prompt or a task with lessons that speak of the same, or with a project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Lesson

MAX_LESSONS = 3
# A single common word is chance; two that make up a third of a lesson's words are not.
_MIN_WORDS = 2
_MIN_SHARE = 1 / 3
# Words of tasks of any project.
_IN_ANY_TASK = frozenset([
    "add", "bug", "change", "check", "code", "error", "fail", "failing", "fails", "feature", "fix",
    "implement", "issue", "make", "new", "please", "project", "refactor", "remove", "run", "support", "test",
    "tests", "update", "use", "write",
])  # fmt: skip


def match_prompt(prompt: frozenset[str], lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons of whose words a prompt holds enough, the largest share first."""
    found: list[tuple[float, int, int, Lesson]] = []
    for lesson in lessons:
        words = keywords(lesson.summary)
        common = len(words & prompt)
        if common >= _MIN_WORDS and common / len(words) >= _MIN_SHARE:
            found.append((-common / len(words), -lesson.frequency, lesson.number, lesson))
    return [lesson for *_, lesson in sorted(found, key=lambda each: each[:3])]


def select_untold(
    lessons: Sequence[Lesson], briefed_ids: Iterable[str], most: int = MAX_LESSONS
) -> list[Lesson]:
    """Return the first few lessons that were not given yet."""
    known = frozenset(briefed_ids)
    return [lesson for lesson in lessons if lesson.id not in known][:most]


def project_of(words: frozenset[str], tasks: Iterable[tuple[str, str]]) -> str:
    """Return the project in which a task with these words was done; nothing when that is in doubt.

    Words that tasks of several projects hold say nothing. Another project's advice is worse than none: of the
    rest at least two must be common, and make up a good part of both.
    """
    held = [(project, keywords(task)) for project, task in tasks]
    projects: dict[str, set[str]] = {}
    for project, task in held:
        for word in task & words:
            projects.setdefault(word, set()).add(project)
    shared = _IN_ANY_TASK.union(word for word, names in projects.items() if len(names) > 1)
    rare = words - shared
    common: dict[str, int] = {}
    for project, task in held:
        if matches(rare, task - shared, frozenset(), Overlap()):
            common[project] = max(common.get(project, 0), len(rare & task))
    most = max((_MIN_WORDS, *common.values()))
    best = [project for project, count in common.items() if count == most]
    return best[0] if len(best) == 1 else ""
