"""Say what earlier runs did about an error: what worked, in how many runs, and what did not help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from archivist.records import Lesson

_SHOWN = 3


class Recovery(NamedTuple):
    """What is known of one failure: its words, the runs that met it, and the remedies that then worked."""

    failure: str
    runs: int
    worked: tuple[tuple[str, int], ...]
    unresolved: int
    lessons: tuple[Lesson, ...] = ()


def family_of(key: str) -> str:
    """Return what a failure's key says beside the repository, so that other repositories' runs count too."""
    return key.partition("|")[2] or key


def recovery(
    key: str, subject: str, digests: Iterable[Mapping[str, Any]], lessons: Sequence[Lesson]
) -> Recovery | None:
    """Return what the digests of earlier runs and the lessons say of a failure, or None for nothing.

    What the same repository met counts; only when it never met it, what others did. A failure that is about
    something (a module, a flag, a file) is the same only when it is about that.
    """
    every = list(digests)
    for is_it in (lambda other: other == key, lambda other: family_of(other) == family_of(key)):
        met = [
            found
            for digest in every
            for other, found in _failures(digest)
            if is_it(other) and _is_about(subject, found.get("subjects"))
        ]
        known = tuple(
            lesson
            for lesson in lessons
            if lesson.signature and is_it(lesson.signature) and _names(lesson, subject)
        )
        if met or known:
            return _summed(met, _best(known), subject)
    return None


def _best(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Return the lessons that are told: those that know a remedy and were met most."""
    order = sorted(lessons, key=lambda lesson: (not lesson.remedies, -lesson.frequency, lesson.number))
    return tuple(order[:_SHOWN])


def told(found: Recovery) -> str:
    """Return a recovery as text, facts only: a healer decides by itself."""
    lines = ["### What earlier runs did about this error", ""]
    if found.failure:
        times = "once" if found.runs == 1 else f"in {found.runs} runs"
        lines.append(f"Met {times}: {found.failure}")
    worked = dict(found.worked)
    for lesson in found.lessons:
        for remedy in lesson.remedies:
            worked.setdefault(remedy, lesson.frequency)
    for remedy, count in sorted(worked.items(), key=lambda item: -item[1])[:_SHOWN]:
        lines.append(f"- worked in {count} {'run' if count == 1 else 'runs'}: {_as_code(remedy)}")
    if found.unresolved:
        was = "run" if found.unresolved == 1 else "runs"
        lines.append(f"- {found.unresolved} {was} found no remedy")
    if not worked:
        lines += [f"- {' '.join(lesson.summary.split())}" for lesson in found.lessons[:_SHOWN]]
    return "\n".join(lines) + "\n"


def _is_about(subject: str, subjects: object) -> bool:
    if not subject or not isinstance(subjects, list) or not subjects:
        return True
    return any(str(each).lower() == subject.lower() for each in subjects)


def _names(lesson: Lesson, subject: str) -> bool:
    words = f"{lesson.summary} {lesson.rule} {' '.join(lesson.tags)}".lower()
    return not subject or subject.lower() in words


def _summed(met: Sequence[Mapping[str, Any]], lessons: tuple[Lesson, ...], subject: str) -> Recovery:
    worked: Counter[str] = Counter()
    unresolved = 0
    for each in met:
        remedies = {str(remedy[1]) for remedy in each.get("remedies") or () if len(remedy) > 1 and remedy[1]}
        # Of several things that were missing, only what names this one is its remedy.
        remedies = {remedy for remedy in remedies if subject.lower() in remedy.lower()} or remedies
        worked.update(remedies)
        unresolved += not remedies
    line = next((str(each["line"]) for each in met if each.get("line")), "")
    return Recovery(" ".join(line.split()), len(met), tuple(worked.most_common()), unresolved, lessons)


def _failures(digest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    found = digest.get("failures")
    return list(found.items()) if isinstance(found, Mapping) else []


def _as_code(remedy: str) -> str:
    return remedy if "`" in remedy else f"`{remedy}`"
