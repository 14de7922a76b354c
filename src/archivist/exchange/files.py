"""A bank as files in the documents' shapes: written whole, read line by line, merged when taken in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from archivist.clock import to_short_text
from archivist.errors import RecordError
from archivist.exchange.merge import merge_lessons
from archivist.files.jsonl import JsonLine, LineProblem, read_lines
from archivist.ids import derived_id
from archivist.lessons.quarantine import distrust_imported
from archivist.lessons.standing import with_status
from archivist.records import (
    Brief,
    Effect,
    Entry,
    Episode,
    EpisodeKind,
    Lesson,
    Proposal,
    Status,
    Tally,
    Verdict,
)
from archivist.records.episode import merge_episode
from archivist.records.kinds import BY_NAME, kind_for
from archivist.records.lines import (
    SHAPES,
    Kept,
    from_line,
    from_stream_line,
    later_record,
    shape_of,
    to_line,
    to_stream_line,
)
from archivist.records.plain import from_plain
from archivist.records.shapes import (
    ImportedLesson,
    from_cross_run,
    from_episode_line,
    from_old_memory,
    from_reflective,
    is_old_memory,
    is_reflective,
    to_cross_run,
    to_episode_line,
    to_reflective,
)
from archivist.store.filters import equals
from archivist.store.protocol import Reader, Writer

LESSONS = "lessons.jsonl"
ARCHIVE = "lessons-archive.jsonl"
EPISODES = "episodes.jsonl"
AUDIT = "audit.jsonl"
STREAM = "stream.jsonl"
ALWAYS = (LESSONS, ARCHIVE, EPISODES, AUDIT)
_ARCHIVE_NAMES = ("lessons-archive.jsonl", "archive.jsonl")
_EFFECTIVENESS = "effectiveness_check"


class LessonFormat(StrEnum):
    """The two documents' spellings of a lesson."""

    CROSS_RUN = "cross-run"
    REFLECTIVE = "reflective"


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """What files held, sorted by kind, and the lines that held nothing usable."""

    lessons: list[tuple[JsonLine, bool]] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    audit: list[JsonLine] = field(default_factory=list)
    stream: list[Entry] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    problems: list[LineProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FileImportResult:
    """What taking files in did: counts per kind, lessons that got another short id, bad lines."""

    created: Mapping[str, int]
    changed: Mapping[str, int]
    unchanged: Mapping[str, int]
    renumbered: Mapping[str, str]
    problems: tuple[LineProblem, ...]


def export_lines(reader: Reader, shape: LessonFormat) -> dict[str, list[dict[str, object]]]:
    """Return every file's lines in a stable order."""
    lessons = reader.select(Lesson, order=("number",))
    tallies = reader.tallies([lesson.id for lesson in lessons])
    count = reader.run_count()
    write = to_cross_run if shape is LessonFormat.CROSS_RUN else to_reflective

    def lines(is_archive: bool) -> list[dict[str, object]]:
        retired = (Status.ARCHIVED, Status.SUPERSEDED)
        kept = [lesson for lesson in lessons if (lesson.status in retired) == is_archive]
        return [write(lesson, tallies.get(lesson.id, Tally()), count) for lesson in kept]

    short = {lesson.id: lesson.short_id for lesson in lessons}
    return {
        LESSONS: lines(is_archive=False),
        ARCHIVE: lines(is_archive=True),
        EPISODES: [to_episode_line(episode) for episode in reader.select(Episode, order=("id",))],
        AUDIT: [
            *(brief_line(brief, short) for brief in reader.select(Brief, order=("time", "id"))),
            *(verdict_line(verdict, short) for verdict in reader.select(Verdict, order=("time", "id"))),
        ],
        STREAM: [to_stream_line(entry) for entry in reader.select(Entry, order=("seq",))],
        **{
            shape.file: [to_line(each) for each in reader.select(shape.record, order=("id",))]
            for shape in SHAPES
        },
    }


def brief_line(brief: Brief, short: Mapping[str, str]) -> dict[str, object]:
    """Write a brief as the cross-run document's injection record."""
    line: dict[str, object] = {
        "ts": to_short_text(brief.time),
        "run_id": brief.run,
        "domain": brief.domain,
        "archetype": brief.role,
        "lessons_injected": [short.get(lesson, lesson) for lesson in brief.lessons],
        "lesson_count": len(brief.lessons),
        "id": brief.id,
        "lesson_uids": list(brief.lessons),
    }
    return {**line, **{key: value for key, value in brief.extra.items() if key not in line}}


def verdict_line(verdict: Verdict, short: Mapping[str, str]) -> dict[str, object]:
    """Write a verdict as the cross-run document's effectiveness record."""
    line: dict[str, object] = {
        "type": _EFFECTIVENESS,
        "ts": to_short_text(verdict.time),
        "run_id": verdict.run,
        "lesson_id": short.get(verdict.lesson, verdict.lesson),
        "effectiveness": verdict.effect.value,
        "lesson_uid": verdict.lesson,
    }
    return {**line, **{key: value for key, value in verdict.extra.items() if key not in line}}


def read_files(paths: Sequence[Path]) -> ImportBatch:
    """Read files line by line and sort the lines by what they hold, whatever the file is called."""
    parcel = ImportBatch()
    for path in paths:
        is_archive = path.name.removesuffix(".gz") in _ARCHIVE_NAMES
        for line in read_lines(path):
            if isinstance(line, LineProblem):
                parcel.problems.append(line)
                continue
            try:
                _sort_line(parcel, line, is_archive)
            except RecordError as error:
                parcel.problems.append(LineProblem(line.file, line.number, error.message))
    return parcel


def import_batch(writer: Writer, batch: ImportBatch, *, promote_at_runs: int) -> FileImportResult:
    """Take a parcel into a bank: new records are added, known ones merged."""
    counts: dict[str, Counter[str]] = {"created": Counter(), "changed": Counter(), "unchanged": Counter()}
    problems = list(batch.problems)
    renumbered: dict[str, str] = {}
    ids: dict[str, str] = {}

    def count(kind: str, is_known: bool, is_changed: bool) -> None:
        counts["unchanged" if not is_changed else "changed" if is_known else "created"][kind] += 1

    for episode in batch.episodes:
        known = writer.get(Episode, episode.id)
        count(
            "episodes",
            known is not None,
            writer.put(merge_episode(known, episode) if known else episode, "import"),
        )
    for line, is_archive in batch.lessons:
        imported = read_lesson(line.value, lambda name: writer.get(Lesson, name), is_archive=is_archive)
        before = writer.get(Lesson, imported.lesson.id)
        lesson = adopt_lesson(writer, imported, before, promote_at_runs=promote_at_runs)
        count("lessons", before is not None, writer.put(lesson, "import"))
        if imported.number:
            ids[f"m-{imported.number:03d}"] = lesson.id
            if imported.number != lesson.number:
                renumbered[f"m-{imported.number:03d}"] = lesson.short_id
    for kept in batch.kept:
        _import_record(writer, kept, count)
    for line in batch.audit:
        try:
            record = (
                _parse_brief(line.value, ids)
                if "lessons_injected" in line.value
                else _parse_verdict(line.value, ids)
            )
        except RecordError as error:
            problems.append(LineProblem(line.file, line.number, error.message))
            continue
        is_known = writer.get(type(record), record.id) is not None
        count("briefs" if isinstance(record, Brief) else "verdicts", is_known, writer.put(record, "import"))
    return FileImportResult(
        counts["created"], counts["changed"], counts["unchanged"], renumbered, tuple(problems)
    )


def _import_record(writer: Writer, kept: Kept, count: Callable[[str, bool, bool], None]) -> None:
    """Take a record of a layer or tier in: of two versions the later one stays."""
    before = writer.get(type(kept), kept.id)
    if isinstance(kept, Proposal) and before is None:
        taken = writer.select_fields(Proposal, ("id",), equals("number", kept.number))
        last = writer.select_fields(Proposal, ("number",), order=("-number",), limit=1)
        kept = replace(kept, number=last[0][0] + 1) if taken else kept
    after = kept if before is None else later_record(before, kept)
    count(kind_for(type(kept)).plural, before is not None, writer.put(after, "import"))


def read_lesson(
    value: Mapping[str, Any], find: Callable[[str], Lesson | None], *, is_archive: bool
) -> ImportedLesson:
    """Read a lesson in either shape; one in the archive's file is archived unless it says otherwise."""
    if is_old_memory(value):
        return from_old_memory(value)
    if is_reflective(value):
        imported = from_reflective(value)
    else:
        imported = from_cross_run(value)
        known = find(imported.lesson.id)
        if known is not None:
            imported = from_cross_run(value, known=known)
    if is_archive and "status" not in value and imported.lesson.status is not Status.SUPERSEDED:
        return replace(imported, lesson=replace(imported.lesson, status=Status.ARCHIVED))
    return imported


def adopt_lesson(
    writer: Writer, imported: ImportedLesson, before: Lesson | None, *, promote_at_runs: int
) -> Lesson:
    """Give an imported lesson its place in this bank: its number, its count of unseen runs, its standing."""
    claimed = distrust_imported(imported.lesson, before)
    if before is not None and claimed is before:
        return before
    lesson = replace(claimed, unseen_from=writer.run_count() - imported.runs_since)
    if before is not None:
        lesson = replace(lesson, number=before.number)
        return merge_lessons(before, lesson, promote_at_runs=promote_at_runs)
    wanted = imported.number
    is_free = wanted and not writer.select_fields(Lesson, ("id",), equals("number", wanted))
    number = wanted if is_free else writer.next_number()
    writer.reserve_number(number)
    return with_status(replace(lesson, number=number), promote_at_runs=promote_at_runs)


def _sort_line(parcel: ImportBatch, line: JsonLine, is_archive: bool) -> None:
    value = line.value
    shape = shape_of(value)
    if shape is not None:
        parcel.kept.append(from_line(shape, value))
    elif value.keys() >= BY_NAME["entry"].signs:
        parcel.stream.append(from_stream_line(value))
    elif "lessons_injected" in value or value.get("type") == _EFFECTIVENESS:
        parcel.audit.append(line)
    elif value.get("kind") in list(EpisodeKind) or "sessionId" in value:
        parcel.episodes.append(from_episode_line(value))
    elif "description" in value or "summary" in value:
        # Read once here for its problems; read again inside the transaction, beside what is known.
        read_lesson(value, lambda _name: None, is_archive=is_archive)
        parcel.lessons.append((line, is_archive))
    else:
        raise RecordError("no record of ours: neither a lesson, a run, an audit record nor one of a layer")


def _parse_brief(value: Mapping[str, Any], ids: Mapping[str, str]) -> Brief:
    told = value["lessons_injected"]
    uids = value.get("lesson_uids")
    named = uids if isinstance(uids, list) else [ids.get(name, name) for name in _require_texts(told)]
    known = {"ts", "run_id", "domain", "archetype", "lessons_injected", "lesson_count", "id", "lesson_uids"}
    fields = {
        "id": value.get("id") or derived_id("brief", str(value.get("run_id")), str(value.get("ts"))),
        "time": value.get("ts"),
        "run": value.get("run_id") or "",
        "domain": value.get("domain") or "",
        "role": value.get("archetype") or "",
        "lessons": named,
        "extra": {key: item for key, item in value.items() if key not in known},
    }
    return from_plain(Brief, fields)


def _parse_verdict(value: Mapping[str, Any], ids: Mapping[str, str]) -> Verdict:
    known = {"type", "ts", "run_id", "lesson_id", "effectiveness", "lesson_uid"}
    lesson = value.get("lesson_id")
    fields = {
        "run": value.get("run_id"),
        "lesson": value.get("lesson_uid") or (ids.get(lesson, lesson) if isinstance(lesson, str) else lesson),
        "time": value.get("ts"),
        "effect": value.get("effectiveness") or Effect.UNKNOWN.value,
        "extra": {key: item for key, item in value.items() if key not in known},
    }
    return from_plain(Verdict, fields)


def _require_texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RecordError("lessons_injected: expected a list of ids")
    return value
