"""Share a bank through git: a folder in which no two clones ever write the same file.

Each bank writes only the files that carry its own id, so git has nothing to merge; the merging is
done here when the folder is read, by a rule that gives every reader the same answer. A bank writes a
lesson when the others' files do not say of it what this bank knows, and keeps the lines that it wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archivist.errors import InputError, RecordError
from archivist.files.jsonl import LineProblem, read_lines, write_lines
from archivist.lessons.merge import merge_lessons
from archivist.records import Brief, Lesson, Status, Verdict
from archivist.records.lesson import validate_lesson
from archivist.records.plain import from_plain, to_plain
from archivist.store.filters import not_equals
from archivist.store.protocol import Reader, Writer

LESSONS = "lessons"
AUDIT = "audit"
_LOCAL = ("number", "unseen_from")
_README = """# Shared memory

Lessons that Archivist learnt in the clones of this project. Each clone writes only its own files, so
they never conflict: commit them, pull, and run `archivist share` on this folder to take in what the
others learnt. Do not edit them by hand; `archivist lessons edit` does.
"""


@dataclass(frozen=True, slots=True)
class SharedRecords:
    """What a share folder holds: every version of each record, apart by who wrote it."""

    others: dict[str, list[Lesson]]
    own: dict[str, Lesson]
    other_audit: dict[str, Brief | Verdict]
    own_audit: dict[str, Brief | Verdict]
    problems: tuple[LineProblem, ...]


@dataclass(frozen=True, slots=True)
class ShareResult:
    """What sharing did."""

    changed: Mapping[str, int]
    written: Mapping[str, int]
    problems: tuple[LineProblem, ...]


def read_shared(folder: Path, replica: str) -> SharedRecords:
    """Read every clone's files; a line that cannot be read costs only itself."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder")
    pool = SharedRecords({}, {}, {}, {}, ())
    problems: list[LineProblem] = []
    for path in sorted(folder.glob(f"{LESSONS}/*.jsonl")):
        for value in _read_records(path, problems, _parse_lesson):
            if path.stem == replica:
                pool.own[value.id] = value
            else:
                pool.others.setdefault(value.id, []).append(value)
    for path in sorted(folder.glob(f"{AUDIT}/*.jsonl")):
        for value in _read_records(path, problems, _parse_audit_record):
            (pool.own_audit if path.stem == replica else pool.other_audit)[value.id] = value
    return replace(pool, problems=tuple(problems))


def merged_lessons(shared: SharedRecords, *, promote_at_runs: int) -> list[Lesson]:
    """Return each lesson of the folder once, its versions merged, oldest first."""
    versions = {lesson_id: list(lessons) for lesson_id, lessons in shared.others.items()}
    for lesson_id, lesson in shared.own.items():
        versions.setdefault(lesson_id, []).append(lesson)
    ordered = sorted(versions, key=lambda lesson_id: (versions[lesson_id][0].created, lesson_id))
    return [_merge_versions(versions[lesson_id], promote_at_runs) for lesson_id in ordered]


def merge_audit(writer: Writer, shared: SharedRecords) -> int:
    """Take in briefs and verdicts of the folder; return how many changed the bank."""
    changed = 0
    for record in (*shared.other_audit.values(), *shared.own_audit.values()):
        known = writer.get(type(record), record.id)
        if known is None or _is_later(record, known):
            changed += writer.put(record, "share")
    return changed


def own_lines(
    reader: Reader, shared: SharedRecords, *, promote_at_runs: int
) -> dict[str, list[dict[str, object]]]:
    """Return what this bank has to say that the others' files do not, and what it said before."""
    lessons = []
    # What waits for a person of this bank is not for others to read.
    for lesson in reader.select(Lesson, not_equals("status", Status.QUARANTINED), order=("id",)):
        said = shared.others.get(lesson.id)
        if (
            lesson.id in shared.own
            or not said
            or to_shared_line(_merge_versions(said, promote_at_runs)) != to_shared_line(lesson)
        ):
            lessons.append(to_shared_line(lesson))
    records: list[Brief | Verdict] = [*reader.select(Brief, order=("id",))]
    records += reader.select(Verdict, order=("id",))
    audit = [
        {"kind": type(record).__name__.lower(), **to_plain(record)}
        for record in records
        if record.id in shared.own_audit or shared.other_audit.get(record.id) != record
    ]
    return {LESSONS: lessons, AUDIT: audit}


def write_own_files(
    folder: Path, replica: str, lines: Mapping[str, list[dict[str, object]]]
) -> dict[str, int]:
    """Write this bank's own files, and the note that explains the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "README.md"
    if not note.exists():
        note.write_text(_README, encoding="utf-8")
    return {name: write_lines(folder / name / f"{replica}.jsonl", values) for name, values in lines.items()}


def to_shared_line(lesson: Lesson) -> dict[str, object]:
    """Write a lesson without what each bank counts for itself, in the one order of its sets."""
    plain: dict[str, object] = to_plain(replace(lesson, tags=tuple(sorted(set(lesson.tags)))))
    return {key: plain[key] for key in sorted(plain) if key not in _LOCAL}


def _merge_versions(versions: Iterable[Lesson], promote_at_runs: int) -> Lesson:
    first, *rest = versions
    for lesson in rest:
        first = merge_lessons(first, lesson, promote_at_runs=promote_at_runs)
    return first


def _is_later(record: Brief | Verdict, known: Brief | Verdict) -> bool:
    return isinstance(record, Verdict) and isinstance(known, Verdict) and (
        (record.time, record.effect) > (known.time, known.effect)
    )  # fmt: skip


def _read_records(path: Path, problems: list[LineProblem], read: Any) -> Iterable[Any]:
    if not path.stat().st_size:
        return
    for line in read_lines(path):
        if isinstance(line, LineProblem):
            problems.append(line)
            continue
        try:
            yield read(line.value)
        except RecordError as error:
            problems.append(LineProblem(line.file, line.number, error.message))


def _parse_lesson(value: Mapping[str, Any]) -> Lesson:
    return validate_lesson(
        from_plain(Lesson, {key: item for key, item in value.items() if key not in _LOCAL})
    )


def _parse_audit_record(value: Mapping[str, Any]) -> Brief | Verdict:
    fields = {key: item for key, item in value.items() if key != "kind"}
    if value.get("kind") == "brief":
        return from_plain(Brief, fields)
    if value.get("kind") == "verdict":
        return from_plain(Verdict, fields)
    raise RecordError("neither a brief nor a verdict")
