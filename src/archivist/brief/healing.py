"""Say what earlier runs did about an error: what worked, and in how many of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from archivist.records import Lesson
else:
    # A cold process that finds nothing to tell makes no class for an annotation.
    Lesson = Any

# So many lessons and remedies are told.
SHOWN = 3
_LONGEST = 200
# Ways of overcoming a failure that are told in words, not as a command.
_SPOKEN = ("said", "edit", "path")
# Of what an error says a lesson about the same holds most; a few words are like anything.
_LEAST_LIKE = 2 / 3
_LEAST_WORDS = 3
_IN_ANY_ERROR = frozenset(["code", "error", "errors", "exception", "exit", "failed", "fatal", "file", "line"])


class Recovery(NamedTuple):
    """What is known of one failure: the runs that met it, and what then worked, each with how well.

    `elsewhere` are the repositories that met it, when they are not the one that asks.
    """

    runs: int
    worked: tuple[str, ...]
    lessons: tuple[Lesson, ...] = ()
    elsewhere: tuple[str, ...] = ()


def failure_family(key: str) -> str:
    """Return what a failure's key says beside the repository, so that other repositories' runs count too."""
    return key.partition("|")[2] or key


def find_recovery(
    key: str, subject: str, digests: Iterable[Mapping[str, Any]], lessons: Sequence[Lesson]
) -> Recovery | None:
    """Return what the digests of earlier runs and the lessons say of a failure, or None for nothing.

    What the same repository met counts; only when it never met it, what others did. A failure that is about
    something (a module, a flag, a file) is the same only when it is about that. Having been met, with nothing
    that helped, is nothing to tell.
    """
    every = list(digests)
    for is_it in (lambda other: other == key, lambda other: failure_family(other) == failure_family(key)):
        met = [
            (other, found)
            for digest in every
            for other, found in _failures(digest)
            if is_it(other) and _is_about(subject, found.get("subjects"))
        ]
        known = tuple(
            lesson
            for lesson in lessons
            if lesson.signature
            and is_it(lesson.signature)
            and names_subject(subject, f"{lesson.summary} {lesson.rule}", lesson.remedies, lesson.tags)
        )
        worked = _describe_remedies([found for _, found in met], subject)
        if worked or any(_advice(lesson) for lesson in known):
            keys = (*(other for other, _ in met), *(lesson.signature for lesson in known))
            places = {_repository_of(each) for each in keys} - {"", _repository_of(key)}
            return Recovery(len(met), worked, _best_lessons(known), tuple(sorted(places)))
    return None


def _repository_of(key: str) -> str:
    """Return the repository of a failure's key, or nothing for a key without one."""
    return key.partition("|")[0] if "|" in key else ""


def _describe_remedies(met: Sequence[Mapping[str, Any]], subject: str) -> tuple[str, ...]:
    """Say what worked in runs, the latest given first, in how many of them, and whether it failed since."""
    ways = {text: way for each in met for text, way in _remedies(each, subject).items()}
    if not ways:
        return ()
    from archivist.reading.remedies import WARNING, is_destructive, proofs

    told: list[str] = []
    warned: list[str] = []
    proven = proofs([(_remedies(each, subject), each.get("in_vain") or ()) for each in reversed(met)])
    for text in sorted(ways, key=lambda text: proven[text].rank):
        runs, has_failed, *_ = proven[text]
        shown = text if ways[text] in _SPOKEN else _as_code(text)
        if ways[text] not in _SPOKEN and is_destructive(text):
            # What one run destroyed is not told; of what several did a healer is warned.
            warned += [f"{_format_runs(runs)} did {shown}, {WARNING}"] if runs > 1 else []
        else:
            told.append(f"worked in {_format_runs(runs)}{', then failed' if has_failed else ''}: {shown}")
    return (*told, *warned)


def _best_lessons(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Return the lessons that are told: those that know a remedy and were met most."""
    order = sorted(lessons, key=lambda lesson: (not lesson.remedies, -lesson.frequency, lesson.number))
    return tuple(order[:SHOWN])


def render_recovery(found: Recovery, failure: str) -> str:
    """Return a recovery as text, facts only: a healer decides by itself. `failure` is what the error says.

    What comes from another repository says so.
    """
    lines = ["### What earlier runs did about this error", ""]
    if found.runs:
        times = "once" if found.runs == 1 else f"in {found.runs} runs"
        where = f", in {_join_names(found.elsewhere)}" if found.elsewhere else ""
        lines.append(f"Met {times}{where}: {' '.join(failure.split())[:_LONGEST]}")
    lines += [f"- {each}" for each in found.worked[:SHOWN]] or [
        _advice_line(lesson, found.elsewhere) for lesson in found.lessons if _advice(lesson)
    ]
    return "\n".join(lines) + "\n"


def _advice_line(lesson: Lesson, elsewhere: Sequence[str]) -> str:
    place = _repository_of(lesson.signature)
    where = f" in {place}" if place in elsewhere else ""
    return (
        f"- advised by {lesson.short_id}, met in {_format_runs(len(lesson.runs))}{where}: {_advice(lesson)}"
    )


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - 2
    return f"{names[0]}, {names[1]} and {more} more" if more > 0 else " and ".join(names)


def _advice(lesson: Lesson) -> str:
    """Return what a lesson says to do; of several remedies its own words say which is for what."""
    if len(lesson.remedies) == 1:
        is_spoken = failure_family(lesson.signature).startswith("edit_not_applied:")
        return lesson.remedies[0] if is_spoken else _as_code(lesson.remedies[0])
    # A lesson without a rule only says that it was met.
    return " ".join(lesson.summary.split()) if lesson.rule else ""


def _format_runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _is_about(subject: str, subjects: object) -> bool:
    if not subject or not isinstance(subjects, list) or not subjects:
        return True
    return any(str(each).lower() == subject.lower() for each in subjects)


def names_subject(subject: str, words: str, remedies: Iterable[str], tags: Iterable[str]) -> bool:
    """Say whether a lesson's words or tags name a thing; what it advises instead is not what it is about.

    A longer name is another's: `pvlib-python` is no `pvlib`.
    """
    if not subject:
        return True
    for remedy in remedies:
        words = words.replace(remedy, " ")
    whole = rf"(?<![\w-]){re.escape(subject.lower())}(?![\w-])"
    return re.search(whole, f"{words} {' '.join(tags)}".lower()) is not None


def is_similar_error(error: Iterable[str], words: Iterable[str]) -> bool:
    """Say whether the words of a lesson are so much of those of an error that it is likely about the same."""
    asked = set(error) - _IN_ANY_ERROR
    common = len(asked.intersection(words))
    return common >= max(_LEAST_WORDS, _LEAST_LIKE * len(asked))


def _remedies(found: Mapping[str, Any], subject: str) -> dict[str, str]:
    """Return what worked in a run against a failure that is about something, not its likes, and how."""
    return {
        str(text): str(way[0]) if way else ""
        for about, text, *way in found.get("cures") or ()
        if text and _is_about(subject, [about])
    }


def _failures(digest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    found = digest.get("failures")
    return list(found.items()) if isinstance(found, Mapping) else []


def _as_code(remedy: str) -> str:
    return remedy if "`" in remedy else f"`{remedy}`"
