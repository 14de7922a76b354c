"""Share a bank through git: a folder in which no two clones ever write the same file.

Each bank writes only the files that carry its own id, so git has nothing to merge. Versions of a lesson are
merged when the folder is read, by a rule that gives every reader the same result. A bank writes a lesson when
the other files do not hold what it knows, and keeps the lines that it wrote before.

Anybody who can write to the folder can write any file of it. So a person accepts each origin once, in the
bank; what others write waits, and a bank reads its own file only if somebody else changed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, reduce
from typing import Any

from archivist.errors import RecordError
from archivist.files.jsonl import LineProblem
from archivist.lessons.standing import lesson_text, merge_lessons
from archivist.records import Brief, Lesson, Status, Verdict
from archivist.records.lesson import validate_lesson
from archivist.records.plain import from_plain, to_plain
from archivist.store.filters import equals, not_equals
from archivist.store.protocol import Reader

LESSONS = "lessons"
AUDIT = "audit"
# What each bank counts and trusts for itself.
_LOCAL = ("number", "unseen_from", "provenance", "brought_by", "accepted")
README = """# Shared memory

Lessons that Archivist learnt in the clones of this project. Each clone writes only its own files, so they
never conflict: commit them, pull, and run `archivist share` on this folder to import what the other clones
learnt. What a clone wrote is told to no run before you accept that clone: the command says how. Do not edit
the files by hand; use `archivist lessons edit`.
"""


@dataclass(frozen=True, slots=True)
class SharedRecords:
    """The records of a share folder by the clone whose file holds them: its origin."""

    lessons: dict[str, dict[str, Lesson]] = field(default_factory=dict)
    audit: dict[str, dict[str, Brief | Verdict]] = field(default_factory=dict)
    problems: list[LineProblem] = field(default_factory=list)
    latest: datetime | None = None

    @property
    def origins(self) -> list[str]:
        """Return the clones that wrote files, in a stable order."""
        return sorted({*self.lessons, *self.audit})

    def add_lesson(self, value: Mapping[str, Any], origin: str) -> None:
        """Add a line of a lessons file."""
        plain = {key: item for key, item in value.items() if key not in _LOCAL}
        lesson = validate_lesson(from_plain(Lesson, {**plain, "brought_by": origin}))
        if self.latest and max(lesson.created, lesson.updated, lesson.edited) > self.latest:
            # The version edited last wins: a date to come would win for good.
            raise RecordError("it is dated in the future")
        self.lessons.setdefault(origin, {})[lesson.id] = lesson

    def add_audit_record(self, value: Mapping[str, Any], origin: str) -> None:
        """Add a line of an audit file."""
        plain = {key: item for key, item in value.items() if key != "kind"}
        record: Brief | Verdict
        match value.get("kind"):
            case "brief":
                record = from_plain(Brief, plain)
            case "verdict":
                record = from_plain(Verdict, plain)
            case _:
                raise RecordError("neither a brief nor a verdict")
        self.audit.setdefault(origin, {})[record.id] = record

    def merged_lessons(self, origins: Iterable[str], *, promote_at_runs: int) -> list[Lesson]:
        """Return each lesson of some origins once, its versions merged, oldest first."""
        versions: dict[str, list[Lesson]] = {}
        for origin in origins:
            for lesson_id, lesson in self.lessons.get(origin, {}).items():
                versions.setdefault(lesson_id, []).append(lesson)
        merge = partial(merge_lessons, promote_at_runs=promote_at_runs)
        ordered = sorted(versions, key=lambda lesson_id: (versions[lesson_id][0].created, lesson_id))
        return [reduce(merge, versions[lesson_id]) for lesson_id in ordered]

    def audit_of(self, origins: Iterable[str]) -> dict[str, Brief | Verdict]:
        """Return the audit records of some origins by their ids."""
        return {key: record for origin in origins for key, record in self.audit.get(origin, {}).items()}


@dataclass(frozen=True, slots=True)
class ShareResult:
    """How many records of the bank a share changed, and how many lines it wrote.

    `waiting` counts the lessons of each origin that no person has accepted yet. It has the bank's own id,
    `origin`, when somebody else changed the bank's file. `united` are lessons that two clones learnt by
    themselves, each with the one that it supersedes; `conflicts` those that two clones reworded, each as it
    is now and as the other clone has it or had it.
    """

    changed: Mapping[str, int]
    written: Mapping[str, int]
    problems: tuple[LineProblem, ...]
    waiting: Mapping[str, int] = field(default_factory=dict)
    origin: str = ""
    united: tuple[tuple[Lesson, Lesson], ...] = ()
    conflicts: tuple[tuple[Lesson, Lesson], ...] = ()


def own_lines(
    reader: Reader,
    shared: SharedRecords,
    own: str,
    accepted: Iterable[str],
    promote_at_runs: int,
    unshared: Collection[str] = (),
) -> dict[str, list[dict[str, object]]]:
    """Return what accepted clones' files do not hold yet, and what this bank wrote before.

    Lessons of `unshared` projects stay here, and so do briefs with them and verdicts on them.
    """
    others = [origin for origin in accepted if origin != own]
    merged = shared.merged_lessons(others, promote_at_runs=promote_at_runs)
    known = {lesson.id: to_shared_line(lesson) for lesson in merged}
    written = shared.lessons.get(own, {})
    lessons = []
    # What is quarantined or waits here is not sent on: other clones trust this one.
    told = (not_equals("status", Status.QUARANTINED), equals("is_waiting", 0))
    kept_back: set[str] = set()
    for lesson in reader.select(Lesson, *told, order=("id",)):
        if lesson.repo in unshared:
            kept_back.add(lesson.id)
            continue
        line = to_shared_line(lesson)
        if lesson.id in written or known.get(lesson.id) != line:
            lessons.append(line)
    records: list[Brief | Verdict] = [*reader.select(Brief, order=("id",))]
    records += reader.select(Verdict, order=("id",))
    written_audit, known_audit = shared.audit.get(own, {}), shared.audit_of(others)
    audit = [
        {"kind": type(record).__name__.lower(), **to_plain(record)}
        for record in records
        if (record.id in written_audit or known_audit.get(record.id) != record)
        and kept_back.isdisjoint([record.lesson] if isinstance(record, Verdict) else record.lessons)
    ]
    return {LESSONS: lessons, AUDIT: audit}


def to_shared_line(lesson: Lesson) -> dict[str, object]:
    """Write a lesson without what each bank counts for itself, its sets in sorted order."""
    plain: dict[str, object] = to_plain(replace(lesson, tags=tuple(sorted(set(lesson.tags)))))
    return {key: plain[key] for key in sorted(plain) if key not in _LOCAL}


def has_news(version: Lesson, known: Lesson) -> bool:
    """Say whether a clone's version of a lesson has other words, has retired it, or was met in other runs."""
    if version.status.is_retired != known.status.is_retired or set(version.runs) - set(known.runs):
        return True
    return lesson_text(version) != lesson_text(known)


def is_later(record: Brief | Verdict, known: Brief | Verdict) -> bool:
    """Say whether a shared record replaces the known one: a brief never changes, a verdict may."""
    if not isinstance(record, Verdict) or not isinstance(known, Verdict):
        return False
    return (record.time, record.effect) > (known.time, known.effect)
