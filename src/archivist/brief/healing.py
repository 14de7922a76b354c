"""Say what earlier runs did about an error: what worked, and in how many of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from archivist.records import Lesson
else:
    # A cold process that finds nothing to tell makes no class for an annotation.
    Lesson = Any

_SHOWN = 3
_LONGEST = 200


class Recovery(NamedTuple):
    """What is known of one failure: the runs that met it, and what then worked in how many of them."""

    runs: int
    worked: tuple[tuple[str, int], ...]
    lessons: tuple[Lesson, ...] = ()


def family_of(key: str) -> str:
    """Return what a failure's key says beside the repository, so that other repositories' runs count too."""
    return key.partition("|")[2] or key


def recovery(
    key: str, subject: str, digests: Iterable[Mapping[str, Any]], lessons: Sequence[Lesson]
) -> Recovery | None:
    """Return what the digests of earlier runs and the lessons say of a failure, or None for nothing.

    What the same repository met counts; only when it never met it, what others did. A failure that is about
    something (a module, a flag, a file) is the same only when it is about that. Having been met, with nothing
    that helped, is nothing to tell.
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
        worked = Counter(remedy for each in met for remedy in _remedies(each, subject))
        if worked or any(_advice(lesson) for lesson in known):
            return Recovery(len(met), tuple(worked.most_common()), _best(known))
    return None


def _best(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Return the lessons that are told: those that know a remedy and were met most."""
    order = sorted(lessons, key=lambda lesson: (not lesson.remedies, -lesson.frequency, lesson.number))
    return tuple(order[:_SHOWN])


def told(found: Recovery, failure: str) -> str:
    """Return a recovery as text, facts only: a healer decides by itself. `failure` is what the error says."""
    lines = ["### What earlier runs did about this error", ""]
    if found.runs:
        times = "once" if found.runs == 1 else f"in {found.runs} runs"
        lines.append(f"Met {times}: {' '.join(failure.split())[:_LONGEST]}")
    worked = [f"- worked in {_runs(count)}: {_as_code(remedy)}" for remedy, count in found.worked[:_SHOWN]]
    lines += worked or [_advised(lesson) for lesson in found.lessons if _advice(lesson)]
    return "\n".join(lines) + "\n"


def _advised(lesson: Lesson) -> str:
    return f"- advised by {lesson.short_id}, met in {_runs(len(lesson.runs))}: {_advice(lesson)}"


def _advice(lesson: Lesson) -> str:
    """Return what a lesson says to do; of several remedies its own words say which is for what."""
    if len(lesson.remedies) == 1:
        return _as_code(lesson.remedies[0])
    # A lesson without a rule only says that it was met.
    return " ".join(lesson.summary.split()) if lesson.rule else ""


def _runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _is_about(subject: str, subjects: object) -> bool:
    if not subject or not isinstance(subjects, list) or not subjects:
        return True
    return any(str(each).lower() == subject.lower() for each in subjects)


def _names(lesson: Lesson, subject: str) -> bool:
    """Say whether a lesson is about a thing; what it advises instead is not what it is about."""
    words = f"{lesson.summary} {lesson.rule}"
    for remedy in lesson.remedies:
        words = words.replace(remedy, " ")
    return not subject or subject.lower() in f"{words} {' '.join(lesson.tags)}".lower()


def _remedies(found: Mapping[str, Any], subject: str) -> set[str]:
    """Return what worked in a run against a failure that is about something, and not against its likes."""
    return {str(text) for about, text in found.get("cures") or () if text and _is_about(subject, [about])}


def _failures(digest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    found = digest.get("failures")
    return list(found.items()) if isinstance(found, Mapping) else []


def _as_code(remedy: str) -> str:
    return remedy if "`" in remedy else f"`{remedy}`"
