"""What is written to exported files: the lines in the shapes of the documents, ATIF trajectories of runs.

And how imported lines are recognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from archivist.access.rights import is_hidden_from
from archivist.capture.calls import arguments_from, target_of
from archivist.capture.formats.atif import OWN, text_of_arguments
from archivist.clock import to_short_text, to_text
from archivist.errors import RecordError
from archivist.files.jsonl import JsonLine, LineProblem, read_lines
from archivist.ids import derived_id
from archivist.layers.claims import fact_id
from archivist.projects import CHECKOUT, RunNumbers
from archivist.reading.command_risks import drop_risky_cures
from archivist.records import (
    Actor,
    Brief,
    Effect,
    Entry,
    Episode,
    EpisodeKind,
    Event,
    EventKind,
    Fact,
    Lesson,
    Status,
    Tally,
    Verdict,
    shapes,
)
from archivist.records.kinds import kind_for, record_type
from archivist.records.plain import from_plain, to_plain
from archivist.records.run_words import BEGAN, CALL_KINDS
from archivist.records.words import NOTES
from archivist.store.filters import equals
from archivist.store.protocol import Reader
from archivist.stream.entries import clean_entry

LESSONS = "lessons.jsonl"
ARCHIVE = "lessons-archive.jsonl"
EPISODES = "episodes.jsonl"
AUDIT = "audit.jsonl"
STREAM = "stream.jsonl"
# Written when asked for: what happened in runs is most of a bank.
EVENTS = "events.jsonl"
ALWAYS = (LESSONS, ARCHIVE, EPISODES, AUDIT)
EXPORTED = (*ALWAYS, STREAM, *(shape.file for shape in shapes.SHAPES))
ARCHIVE_NAMES = (ARCHIVE, "archive.jsonl")
# How the copy of a file is called that somebody kept before the bank did, and of one with edits by hand.
ORIGINAL, EDITED = ".before-archivist", ".edited"
# Keys of lessons that no file changes.
_COUNTED = frozenset((
    "frequency", "runs", "faded", "usage_count", "usageCount", "lastUsedAt", "runs_since_last_seen",
    "runsSinceLastSeen", "helpful", "ineffective", "ignored", "prior_uses", "priorUses", "tokenEstimate",
))  # fmt: skip
# Only an event of a run has all of these keys.
_EVENT_SIGNS = frozenset(("run", "seq", "kind"))
# Only an entry of the stream has all of these keys.
_STREAM_SIGNS = frozenset(("cycle", "action", "timestamp"))
_EFFECTIVENESS = "effectiveness_check"
# Keys of the cross-run document's audit records; others survive in `extra`.
_BRIEF_KEYS = frozenset((
    "ts", "run_id", "domain", "archetype", "lessons_injected", "lesson_count", "id", "lesson_uids",
))  # fmt: skip
_VERDICT_KEYS = frozenset((
    "type", "ts", "run_id", "lesson_id", "effectiveness", "lesson_uid", "effect", "following", "failed",
))  # fmt: skip


class LessonFormat(StrEnum):
    """The two documents' spellings of a lesson."""

    CROSS_RUN = "cross-run"
    REFLECTIVE = "reflective"


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """The records of files by kind, and the lines that hold none.

    Lessons and audit records stay lines until they are imported: how they are read depends on the bank.
    The flag of a lesson says whether its file is an archive.
    """

    lessons: list[tuple[JsonLine, bool]] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    audit: list[JsonLine] = field(default_factory=list)
    stream: list[Entry] = field(default_factory=list)
    kept: list[shapes.Kept] = field(default_factory=list)
    problems: list[LineProblem] = field(default_factory=list)
    # The files that hold events of runs, read again when they are imported: they may not fit in memory.
    event_files: dict[str, None] = field(default_factory=dict)

    def add_line(self, line: JsonLine | LineProblem, *, is_archive: bool) -> None:
        """Sort a line by what it holds, whatever its file is called."""
        if isinstance(line, LineProblem):
            self.problems.append(line)
            return
        value = line.value
        shape = shapes.shape_of(value)
        try:
            if shape is not None:
                self.kept.append(shapes.from_line(shape, value))
            elif value.keys() >= _EVENT_SIGNS:
                read_event(value)
                self.event_files[line.file] = None
            elif value.keys() >= _STREAM_SIGNS:
                self.stream.append(clean_entry(shapes.from_stream_line(value)))
            elif "lessons_injected" in value or value.get("type") == _EFFECTIVENESS:
                self.audit.append(line)
            elif value.get("kind") in list(EpisodeKind) or "sessionId" in value:
                self.episodes.append(shapes.from_episode_line(value))
            elif "description" in value or "summary" in value:
                # Parsed here only to report a bad line before anything is written.
                read_lesson(value, None, is_archive=is_archive)
                self.lessons.append((line, is_archive))
            else:
                raise RecordError("not a record: no lesson, run, audit record, stream entry or layer record")
        except RecordError as error:
            self.problems.append(LineProblem(line.file, line.number, error.message))

    def events_of(self, runs: Collection[str]) -> Iterator[Event]:
        """Yield the events of some runs."""
        for file in self.event_files:
            for line in read_lines(Path(file)):
                if isinstance(line, JsonLine) and line.value.keys() >= _EVENT_SIGNS:
                    with suppress(RecordError):
                        event = read_event(line.value)
                        if event.run in runs:
                            yield event


def read_event(value: Mapping[str, Any]) -> Event:
    """Read an event of a run; where its run began is not a file's to say."""
    event = from_plain(Event, value)
    return replace(event, extra={key: item for key, item in event.extra.items() if key != BEGAN})


def event_lines(reader: Reader) -> Iterator[dict[str, object]]:
    """Yield every event of every run, run by run."""
    for (run,) in reader.select_fields(Episode, ("id",), order=("id",)):
        for event in reader.select(Event, equals("run", run), order=("seq",)):
            plain = to_plain(event)
            yield {key: value for key, value in plain.items() if value not in ("", None, [], {})}


def with_own_id(record: shapes.Kept) -> shapes.Kept:
    """Return a record with the id that a fact of its name has in every bank; a file may give it another."""
    if not isinstance(record, Fact):
        return record
    return replace(record, id=fact_id(record.project, record.category, record.key))


def without_risky_cures(episode: Episode) -> Episode:
    """Return a run that notes no risky cures; which commands work only own runs tell."""
    notes = episode.extra.get(NOTES)
    safe = {NOTES: drop_risky_cures(notes)} if isinstance(notes, dict) else {}
    return replace(episode, extra={**episode.extra, **safe})


def without_claims(batch: ImportBatch) -> tuple[ImportBatch, Counter[str]]:
    """Return a batch without what would be told or counted as it stands, and how many of which were left.

    Only runs and lessons stay, and the lessons wait. Verdicts decide which lessons are told, core memory is
    in every prompt, facts, texts and the stream answer questions, a watched folder is read, the notes of a
    run say which commands helped, and its number says how much it aged the bank.
    """
    extras = [{key: value for key, value in each.extra.items() if key != NOTES} for each in batch.episodes]
    runs = zip(batch.episodes, extras, strict=True)
    episodes = [replace(episode, number=None, extra=extra) for episode, extra in runs]
    left = Counter(kind_for(type(record)).plural for record in batch.kept)
    left += Counter({"audit records": len(batch.audit), "stream entries": len(batch.stream)})
    left += Counter(
        {"notes of runs": sum(old != new for old, new in zip(batch.episodes, episodes, strict=True))}
    )
    return replace(batch, kept=[], episodes=episodes, audit=[], stream=[]), left


@dataclass(frozen=True, slots=True)
class FileImportResult:
    """What an import did: counts per kind, lessons that got another short id, bad lines.

    `waiting` are the lessons that a person must approve before runs are told them, and `left` counts, per
    kind, what was not taken because nobody vouched for the files.
    """

    created: Mapping[str, int]
    changed: Mapping[str, int]
    unchanged: Mapping[str, int]
    renumbered: Mapping[str, str]
    problems: tuple[LineProblem, ...]
    waiting: tuple[str, ...] = ()
    left: Mapping[str, int] = field(default_factory=dict)


def export_lines(
    reader: Reader, lesson_format: LessonFormat, actor: Actor, *, without: Collection[Status] = ()
) -> dict[str, list[dict[str, object]]]:
    """Return the lines of every file with what an actor may read, in a stable order."""
    every = [each for each in reader.select(Lesson, order=("number",)) if each.status not in without]
    lessons = [lesson for lesson in every if not is_hidden_from(lesson, actor)]
    tallies = reader.tallies([lesson.id for lesson in lessons])
    numbers = RunNumbers(reader)
    write = shapes.to_cross_run if lesson_format is LessonFormat.CROSS_RUN else shapes.to_reflective
    lines: dict[str, list[dict[str, object]]] = {LESSONS: [], ARCHIVE: []}
    for lesson in lessons:
        line = write(lesson, tallies.get(lesson.id, Tally()), numbers.count_unseen(lesson))
        lines[ARCHIVE if lesson.status.is_retired else LESSONS].append(line)
    # As they were archived: the documents append.
    archived = {lesson.short_id: (lesson.edited, lesson.number) for lesson in lessons}
    lines[ARCHIVE].sort(key=lambda line: archived[str(line.get("shortId") or line["id"])])
    short_ids = {lesson.id: lesson.short_id for lesson in lessons}
    lines[EPISODES] = [shapes.to_episode_line(episode) for episode in reader.select(Episode, order=("id",))]
    audit: list[Brief | Verdict] = [*reader.select(Brief, order=("time", "id"))]
    audit += reader.select(Verdict, order=("time", "id"))
    lines[AUDIT] = [audit_line(record, short_ids) for record in audit]
    lines[STREAM] = [shapes.to_stream_line(entry) for entry in reader.select(Entry, order=("seq",))]
    for shape in shapes.SHAPES:
        records = reader.select(record_type(shape.name), order=("id",))
        lines[shape.file] = [shapes.to_line(record) for record in records]
    return lines


def untaken_edits(
    written: Iterable[Mapping[str, Any]], found: Iterable[Mapping[str, Any]]
) -> tuple[list[str], bool]:
    """Return what was changed in the lines of known records since they were written, and which were deleted.

    Also say whether a person who vouches for the file could take any of it: counts come from runs.
    """
    lines = {line.get("id"): line for line in found}
    left, has_words = [], False
    for line in written:
        name, present = line.get("shortId") or line["id"], lines.get(line["id"])
        if present is None:
            left.append(f"the deletion of {name}")
            continue
        keys = [key for key in {**line, **present} if present.get(key) != line.get(key)]
        # A line of another time is another version, which is merged.
        is_version = any(key in keys for key in ("editedAt", "edited_at"))
        words = [key for key in keys if key not in _COUNTED and not is_version]
        has_words = has_words or bool(words)
        if keys:
            left.append(f"{', '.join(words) or 'the count'} of {name}")
    return left, has_words


def audit_line(record: Brief | Verdict, short_ids: Mapping[str, str]) -> dict[str, object]:
    """Write a brief or a verdict as a record of the cross-run document's `audit.jsonl`."""
    line: dict[str, object] = {"ts": to_short_text(record.time), "run_id": record.run}
    if isinstance(record, Verdict):
        line = {"type": _EFFECTIVENESS, **line}
        line["lesson_id"] = short_ids.get(record.lesson, record.lesson)
        line |= {"effectiveness": record.effectiveness, "lesson_uid": record.lesson}
        line |= {"effect": record.effect.value, "following": record.following.value, "failed": record.failed}
    else:
        line |= {"domain": record.domain, "archetype": record.role}
        line["lessons_injected"] = [short_ids.get(lesson, lesson) for lesson in record.lessons]
        line |= {"lesson_count": len(record.lessons), "id": record.id, "lesson_uids": list(record.lessons)}
    return line | {key: value for key, value in record.extra.items() if key not in line}


def read_lesson(
    value: Mapping[str, Any], reader: Reader | None, *, is_archive: bool
) -> shapes.ImportedLesson:
    """Read a lesson in any of the shapes; a line of an archive is archived unless it says otherwise.

    A cross-run line has a frequency but no runs, so it is read beside the lesson that the bank knows.
    """
    if shapes.is_old_memory(value):
        return shapes.from_old_memory(value)
    if shapes.is_reflective(value):
        imported = shapes.from_reflective(value)
    else:
        imported = shapes.from_cross_run(value)
        known = reader.get(Lesson, imported.lesson.id) if reader else None
        imported = shapes.from_cross_run(value, known=known) if known else imported
    if is_archive and "status" not in value and imported.lesson.status is not Status.SUPERSEDED:
        return replace(imported, lesson=replace(imported.lesson, status=Status.ARCHIVED))
    return imported


def read_audit_record(value: Mapping[str, Any], ids: Mapping[str, str]) -> Brief | Verdict:
    """Read a line of `audit.jsonl`; `ids` maps the short ids of the imported lessons to their global ids."""
    record_class: type[Brief | Verdict] = Brief if "lessons_injected" in value else Verdict
    fields: dict[str, object] = {"time": value.get("ts"), "run": value.get("run_id")}
    if record_class is Verdict:
        lesson = value.get("lesson_id")
        named = ids.get(lesson, lesson) if isinstance(lesson, str) else lesson
        fields["lesson"] = value.get("lesson_uid") or named
        # What the document calls helpful was only not found again.
        failed = {"helpful": False, "ineffective": True}.get(str(value.get("effectiveness")))
        ours = {name: value[name] for name in ("effect", "following", "failed") if name in value}
        effect = Effect.INEFFECTIVE if failed else Effect.UNKNOWN
        fields |= {"effect": effect.value, "failed": failed, **ours}
    else:
        lessons = value.get("lesson_uids")
        if not isinstance(lessons, list):
            names = value["lessons_injected"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise RecordError("lessons_injected: expected a list of ids")
            lessons = [ids.get(name, name) for name in names]
        made_id = derived_id("brief", str(value.get("run_id")), str(value.get("ts")))
        fields |= {"id": value.get("id") or made_id, "run": value.get("run_id") or "", "lessons": lessons}
        fields |= {"domain": value.get("domain") or "", "role": value.get("archetype") or ""}
    own = _BRIEF_KEYS if record_class is Brief else _VERDICT_KEYS
    return from_plain(
        record_class, {**fields, "extra": {key: item for key, item in value.items() if key not in own}}
    )


SCHEMA_VERSION = "ATIF-v1.8"
_SOURCES = {"user": "user", "assistant": "agent", "system": "system"}
_RESULT_FACTS = ("timed_out", "rejected", "result_missing")
# Standard fields of a step say these of an event; a run's id and log are the reader's.
_IN_MESSAGE = ("run", "time", "text")
_IN_CALL = (*_IN_MESSAGE, "tool", "output", "exit_code", "is_error", "duration_s")
_LOCAL_TO_RUN = ("id", "number", "trajectories", "extra")
_LOCAL_FACTS = (NOTES, CHECKOUT)


def to_atif(episode: Episode, events: Iterable[Event]) -> dict[str, Any]:
    """Return the trajectory; reading it back gives the same run and events."""
    ordered = sorted((event for event in events if event.run == episode.id), key=lambda event: event.seq)
    steps = [{"step_id": number, **_step_fields(event)} for number, event in enumerate(ordered, 1)]
    if not steps:
        # The format requires at least one step, and every run starts with its task.
        task = episode.task or "(nothing recorded)"
        steps = [{"step_id": 1, "source": "user", "message": task, "extra": {OWN: {}}}]
    agent = {
        "name": episode.agent or "unknown",
        "version": str(episode.extra.get("agent_version") or "unknown"),
    }
    if episode.model:
        maker = str(episode.extra.get("maker") or "")
        agent["model_name"] = f"{maker}/{episode.model}" if maker else episode.model
    metrics: dict[str, Any] = {}
    if usage := episode.usage:
        metrics = {
            "total_prompt_tokens": usage.input_tokens,
            "total_completion_tokens": usage.output_tokens,
            "total_cached_tokens": usage.cached_tokens,
            "total_cost_usd": usage.cost_usd,
        }
    own = _stated_fields(episode, _LOCAL_TO_RUN)
    own["extra"] = {key: value for key, value in episode.extra.items() if key not in _LOCAL_FACTS}
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": episode.session or episode.id,
        "trajectory_id": episode.id,
        "agent": agent,
        "steps": steps,
        "final_metrics": {**metrics, "total_steps": len(steps)},
        "extra": {"status": episode.status.value, OWN: own},
    }


def _stated_fields(record: Episode | Event, left_out: Sequence[str]) -> dict[str, Any]:
    given = {key: value for key, value in to_plain(record).items() if key not in left_out}
    return {
        key: value for key, value in given.items() if value is not False and value not in ("", None, [], {})
    }


def _step_fields(event: Event) -> dict[str, Any]:
    step: dict[str, Any] = {"timestamp": to_text(event.time)} if event.time is not None else {}
    if event.kind not in CALL_KINDS:
        extra: dict[str, Any] = {OWN: _stated_fields(event, _IN_MESSAGE)}
        if event.kind is not EventKind.MESSAGE:
            extra["event_type"] = event.name or event.kind.value
        source = _SOURCES.get(event.role, "system")
        return {**step, "source": source, "message": event.text, "extra": extra}
    own = _stated_fields(event, _IN_CALL)
    is_command = event.kind is not EventKind.EDIT and event.target == target_of(event.text)
    arguments = {"command": event.text} if is_command and event.text else {}
    if not is_command:
        arguments = dict(arguments_from(event.text))
    if event.text != text_of_arguments(arguments):
        own["text"] = event.text
    if not event.tool:
        own["tool"] = ""
    call_id = f"call-{event.seq}"
    facts: dict[str, Any] = {"tool_result_is_error": event.is_error}
    measured = {"exit_code": event.exit_code, "duration_s": event.duration_s}
    facts |= {key: value for key, value in measured.items() if value is not None}
    facts |= {key: True for key in _RESULT_FACTS if event.extra.get(key) is True}
    call = {"tool_call_id": call_id, "function_name": event.tool or "unknown", "arguments": arguments}
    result = {"source_call_id": call_id, "content": event.output, "extra": facts}
    return {
        **step,
        "source": "agent",
        "message": "",
        "tool_calls": [call],
        "observation": {"results": [result]},
        "extra": {OWN: own},
    }
