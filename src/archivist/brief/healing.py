"""Say what earlier runs did about an error: what worked, in how many runs, and what did not help."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from archivist.records import Lesson
else:
    # A cold process that finds nothing to tell makes no class for an annotation.
    Lesson = Any

_SHOWN = 3


class Recovery(NamedTuple):
    """What is known of one failure: its words, the runs that met it, and what then worked in how many."""

    failure: str
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
    something (a module, a flag, a file) is the same only when it is about that. Having been met once, with
    nothing that helped, is nothing to tell.
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
        if known or len(met) > 1 or any(each.get("remedies") for each in met):
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
    worked = [f"- worked in {_runs(count)}: {_as_code(remedy)}" for remedy, count in found.worked[:_SHOWN]]
    lines += worked or _advised(found.lessons) or ["- what helped is not known"]
    return "\n".join(lines) + "\n"


def _advised(lessons: Sequence[Lesson]) -> list[str]:
    """Return what lessons advise: their remedies, else their words where they say what to do."""
    remedies = {remedy: lesson for lesson in reversed(lessons) for remedy in reversed(lesson.remedies)}
    advised = [
        f"- advised by {lesson.short_id}, met in {_runs(lesson.frequency)}: {_as_code(remedy)}"
        for remedy, lesson in reversed(remedies.items())
    ]
    # A lesson without a rule only says once more that it was met.
    said = [f"- {' '.join(lesson.summary.split())}" for lesson in lessons if lesson.rule]
    return (advised or said)[:_SHOWN]


def _runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _is_about(subject: str, subjects: object) -> bool:
    if not subject or not isinstance(subjects, list) or not subjects:
        return True
    return any(str(each).lower() == subject.lower() for each in subjects)


def _names(lesson: Lesson, subject: str) -> bool:
    words = f"{lesson.summary} {lesson.rule} {' '.join(lesson.tags)}".lower()
    return not subject or subject.lower() in words


def _summed(met: Sequence[Mapping[str, Any]], lessons: tuple[Lesson, ...], subject: str) -> Recovery:
    worked: Counter[str] = Counter()
    for each in met:
        # A remedy: its way, its text, what it was done instead of.
        remedies = [remedy for remedy in each.get("remedies") or () if len(remedy) > 1 and remedy[1]]
        # Of several things that were missing or wrong, only what names this one is its remedy.
        about = [each for each in remedies if subject.lower() in " ".join(map(str, each[1:3])).lower()]
        worked.update({str(remedy[1]) for remedy in about or remedies})
    line = next((str(each["line"]) for each in met if each.get("line")), "")
    return Recovery(" ".join(line.split()), len(met), tuple(worked.most_common()), lessons)


def _failures(digest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    found = digest.get("failures")
    return list(found.items()) if isinstance(found, Mapping) else []


def _as_code(remedy: str) -> str:
    return remedy if "`" in remedy else f"`{remedy}`"
