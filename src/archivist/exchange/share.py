"""Share a bank through git: a folder in which no two clones ever write the same file.

Each bank writes only the files that carry its own id, so git has nothing to merge. Versions of a lesson are
merged when the folder is read, by a rule that gives every reader the same result. A bank writes a lesson when
the other files do not hold what it knows, and keeps the lines that it wrote before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from archivist.errors import RecordError
from archivist.files.jsonl import LineProblem
from archivist.lessons.standing import merge_lessons
from archivist.records import Brief, Lesson, Status, Verdict
from archivist.records.lesson import validate_lesson
from archivist.records.plain import from_plain, to_plain
from archivist.store.filters import not_equals
from archivist.store.protocol import Reader

LESSONS = "lessons"
AUDIT = "audit"
# What each bank counts for itself.
_LOCAL = ("number", "unseen_from")
README = """# Shared memory

Lessons that Archivist learnt in the clones of this project. Each clone writes only its own files, so they
never conflict: commit them, pull, and run `archivist share` on this folder to import what the other clones
learnt. Do not edit the files by hand; use `archivist lessons edit`.
"""


@dataclass(frozen=True, slots=True)
class SharedRecords:
    """The records of a share folder: those that other clones wrote, and those that this bank wrote."""

    others: dict[str, list[Lesson]] = field(default_factory=dict)
    own: dict[str, Lesson] = field(default_factory=dict)
    other_audit: dict[str, Brief | Verdict] = field(default_factory=dict)
    own_audit: dict[str, Brief | Verdict] = field(default_factory=dict)
    problems: list[LineProblem] = field(default_factory=list)

    def add_lesson(self, value: Mapping[str, Any], *, is_own: bool) -> None:
        """Add a line of a lessons file."""
        plain = {key: item for key, item in value.items() if key not in _LOCAL}
        lesson = validate_lesson(from_plain(Lesson, plain))
        if is_own:
            self.own[lesson.id] = lesson
        else:
            self.others.setdefault(lesson.id, []).append(lesson)

    def add_audit_record(self, value: Mapping[str, Any], *, is_own: bool) -> None:
        """Add a line of an audit file."""
        kinds: dict[object, type[Brief | Verdict]] = {"brief": Brief, "verdict": Verdict}
        if value.get("kind") not in kinds:
            raise RecordError("neither a brief nor a verdict")
        plain = {key: item for key, item in value.items() if key != "kind"}
        record = from_plain(kinds[value["kind"]], plain)
        (self.own_audit if is_own else self.other_audit)[record.id] = record

    def merged_lessons(self, *, promote_at_runs: int) -> list[Lesson]:
        """Return each lesson once, its versions merged, oldest first."""
        versions = {lesson_id: list(lessons) for lesson_id, lessons in self.others.items()}
        for lesson_id, lesson in self.own.items():
            versions.setdefault(lesson_id, []).append(lesson)
        ordered = sorted(versions, key=lambda lesson_id: (versions[lesson_id][0].created, lesson_id))
        return [_merge_all(versions[lesson_id], promote_at_runs) for lesson_id in ordered]


@dataclass(frozen=True, slots=True)
class ShareResult:
    """How many records of the bank a share changed, and how many lines it wrote."""

    changed: Mapping[str, int]
    written: Mapping[str, int]
    problems: tuple[LineProblem, ...]


def own_lines(
    reader: Reader, shared: SharedRecords, *, promote_at_runs: int
) -> dict[str, list[dict[str, object]]]:
    """Return what the other clones' files do not hold yet, and what this bank wrote before."""
    lessons = []
    # Quarantined lessons are not sent to other clones.
    for lesson in reader.select(Lesson, not_equals("status", Status.QUARANTINED), order=("id",)):
        line = to_shared_line(lesson)
        versions = shared.others.get(lesson.id)
        is_known = versions and to_shared_line(_merge_all(versions, promote_at_runs)) == line
        if lesson.id in shared.own or not is_known:
            lessons.append(line)
    records: list[Brief | Verdict] = [*reader.select(Brief, order=("id",))]
    records += reader.select(Verdict, order=("id",))
    audit = [
        {"kind": type(record).__name__.lower(), **to_plain(record)}
        for record in records
        if record.id in shared.own_audit or shared.other_audit.get(record.id) != record
    ]
    return {LESSONS: lessons, AUDIT: audit}


def to_shared_line(lesson: Lesson) -> dict[str, object]:
    """Write a lesson without what each bank counts for itself, its sets in sorted order."""
    plain: dict[str, object] = to_plain(replace(lesson, tags=tuple(sorted(set(lesson.tags)))))
    return {key: plain[key] for key in sorted(plain) if key not in _LOCAL}


def is_later(record: Brief | Verdict, known: Brief | Verdict) -> bool:
    """Say whether a shared record replaces the known one: a brief never changes, a verdict may."""
    if not isinstance(record, Verdict) or not isinstance(known, Verdict):
        return False
    return (record.time, record.effect) > (known.time, known.effect)


def _merge_all(versions: Iterable[Lesson], promote_at_runs: int) -> Lesson:
    merged, *rest = versions
    for version in rest:
        merged = merge_lessons(merged, version, promote_at_runs=promote_at_runs)
    return merged
