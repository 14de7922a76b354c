"""Read and write records as JSON lines in the shapes of the documents, without loss.

A shape is a table of names: which key of the document holds which field. A field that the document has no
key for is written under our own name in the document's spelling, so that a bank's files are complete and the
document's own readers still work. Keys that we do not know survive in `extra`. Lessons and runs have the
shapes of two documents. For the records of layers and tiers, names and the keys by which a line is recognised
stand in the rows of `kinds.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from archivist.clock import to_short_text
from archivist.errors import RecordError
from archivist.ids import derived_id
from archivist.records.episode import Episode
from archivist.records.kinds import BY_NAME, KINDS, Kind, kind_for
from archivist.records.lesson import UNNAMED_RUN, Evidence, Lesson, Tally, validate_lesson
from archivist.records.plain import field_names, from_plain, to_plain
from archivist.records.words import Category, LessonType, Scope, Source, Status
from archivist.text import is_blank

if TYPE_CHECKING:
    from archivist.records.layers import Artifact, Conflict, Fact, Task
    from archivist.records.tiers import Block, Document, Entry, Folder, Proposal

USER_FEEDBACK = "user_feedback"

_OLD_IMPORTANCE = {"low": 0.3, "medium": 0.5, "high": 0.7, "critical": 0.9}

_TALLY = ("helpful", "ineffective", "ignored")

# field of ours → key of the cross-run document (snake_case)
_CROSS_RUN = {
    "updated": "ts",
    "origin_run": "run_id",
    "type": "type",
    "origin": "source",
    "summary": "description",
    "severity": "severity",
    "domain": "domain",
    "tags": "tags",
    "role": "archetype",
    "last_seen_run": "last_seen_run",
    "id": "uid",
    "created": "created_at",
    "edited": "edited_at",
    "last_seen": "last_seen_at",
    "source": "written_by",
}

_CROSS_RUN_ORDER = (
    "id", "ts", "run_id", "type", "source", "description", "frequency", "severity", "domain", "tags",
    "archetype", "last_seen_run", "runs_since_last_seen",
)  # fmt: skip

# field of ours → key of the reflective-memory document (camelCase)
_REFLECTIVE = {
    "id": "id",
    "created": "createdAt",
    "scope": "scope",
    "project": "projectRoot",
    "repo": "repoId",
    "task": "taskId",
    "superseded_by": "supersededBy",
    "updated": "updatedAt",
    "edited": "editedAt",
    "last_seen": "lastSeenAt",
}
_REFLECTIVE_EVIDENCE = {
    "episodes": "episodeIds",
    "trajectories": "trajectoryIds",
    "sessions": "sessionIds",
    "logs": "runLogPaths",
    "events": "eventIds",
}
_EPISODE = {
    "project": "projectRoot",
    "task": "taskId",
    "subtask": "subtaskId",
    "session": "sessionId",
    "started": "startedAt",
    "finished": "finishedAt",
}

# Not exported: each bank numbers, counts and trusts for itself. What a file claims of that is not read.
_TRUST = ("provenance", "brought_by", "accepted")
_LOCAL = ("number", "unseen_from", "extra", *_TRUST)
Kept: TypeAlias = "Fact | Conflict | Artifact | Task | Block | Document | Folder | Proposal"
# The kinds whose later version wins when two are merged.
SHAPES = tuple(kind for kind in KINDS if kind.times)
# The place in the stream and the tier are given by the bank that an entry is in.
_LOCAL_TO_STREAM = ("seq", "is_archived")


def _spell_camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


# The fields that a document has no key for come after the others, in the document's spelling.
_OWN = [name for name in field_names(Lesson) if name not in _LOCAL]
_CROSS_RUN_KEYS = _CROSS_RUN | {name: name for name in _OWN if name not in _CROSS_RUN}
_REFLECTIVE_KEYS = _REFLECTIVE | {name: _spell_camel_case(name) for name in _OWN if name not in _REFLECTIVE}
_EPISODE_KEYS = {
    name: _EPISODE.get(name, _spell_camel_case(name)) for name in field_names(Episode) if name != "extra"
}


@dataclass(frozen=True, slots=True)
class ImportedLesson:
    """A lesson as it was read from a line, with its short number and the runs since it was last seen."""

    lesson: Lesson
    number: int
    runs_since: int


def is_reflective(value: Mapping[str, Any]) -> bool:
    """Say whether a lesson is in the shape of the reflective document, not of the cross-run document."""
    return "summary" in value and "description" not in value


def to_cross_run(lesson: Lesson, tally: Tally, unseen_runs: int) -> dict[str, object]:
    """Write a lesson as a line of the cross-run document's `lessons.jsonl`."""
    plain = _with_short_times(lesson)
    values = {key: plain[name] for name, key in _CROSS_RUN_KEYS.items()} | {
        "id": lesson.short_id,
        "archetype": lesson.role or None,
        "frequency": lesson.shown_frequency,
        "runs_since_last_seen": unseen_runs,
        "usage_count": lesson.prior_uses + tally.used,
        **{name: getattr(tally, name) for name in _TALLY},
    }
    return _add_extra({key: values.pop(key) for key in _CROSS_RUN_ORDER} | values, lesson.extra)


def from_cross_run(value: Mapping[str, Any], *, known: Lesson | None = None) -> ImportedLesson:
    """Read a line of the cross-run document; `known` is the lesson that the bank has under its id."""
    _require_texts(value, "description", "ts")
    fields = _read_keys(
        value, _CROSS_RUN_KEYS, {"id", "frequency", "runs_since_last_seen", "usage_count", *_TALLY, *_TRUST}
    )
    short = value.get("id")
    fields.setdefault("id", derived_id(str(short or ""), str(value["description"])))
    for name in ("created", "edited"):
        fields.setdefault(name, value["ts"])
    if fields.get("last_seen_run") and "last_seen_at" not in value:
        fields["last_seen"] = value["ts"]
    if "source" not in fields and fields.get("origin") == USER_FEEDBACK:
        fields["source"] = Source.MANUAL.value
    if isinstance(fields.get("severity"), str):
        fields["severity"] = fields["severity"].lower()
    is_anti_pattern = fields.get("type") == LessonType.ANTI_PATTERN.value
    fields.setdefault("category", (Category.ANTI_PATTERN if is_anti_pattern else Category.HEURISTIC).value)
    lesson = validate_lesson(from_plain(Lesson, fields))
    if "runs" not in value:
        lesson = _with_frequency(lesson, _read_count(value, "frequency", 1), known)
    if "status" not in value and not lesson.frequency:
        lesson = replace(lesson, status=Status.ARCHIVED)
    return ImportedLesson(lesson, _parse_short_id(short), _read_count(value, "runs_since_last_seen", 0))


def to_reflective(lesson: Lesson, tally: Tally, unseen_runs: int) -> dict[str, object]:
    """Write a lesson as a line of the reflective document's `lessons.jsonl`; empty options are left out."""
    plain = _with_short_times(lesson)
    line: dict[str, object] = {key: plain[name] for name, key in _REFLECTIVE_KEYS.items()}
    line["evidence"] = {
        key: list(getattr(lesson.evidence, name)) for name, key in _REFLECTIVE_EVIDENCE.items()
    }
    line["usageCount"] = lesson.prior_uses + tally.used
    line["lastUsedAt"] = _last_used(lesson, tally)
    line = {key: value for key, value in line.items() if value not in ("", None)}
    # A line without it is of the repository of its `projectRoot`.
    line |= {"repoId": lesson.repo} if lesson.project else {}
    line["shortId"] = lesson.short_id
    line["frequency"] = lesson.shown_frequency
    line["runsSinceLastSeen"] = unseen_runs
    return _add_extra(line | {name: getattr(tally, name) for name in _TALLY}, lesson.extra)


def from_reflective(value: Mapping[str, Any]) -> ImportedLesson:
    """Read a line of the reflective document. Its lessons have passed its own gate: they are active."""
    _require_texts(value, "id", "createdAt", "summary")
    spent = {
        "usageCount",
        "lastUsedAt",
        "shortId",
        "frequency",
        "runsSinceLastSeen",
        "broughtBy",
        *_TALLY,
        *_TRUST,
    }
    fields = _read_keys(value, _REFLECTIVE_KEYS, spent)
    for name in ("updated", "edited"):
        fields.setdefault(name, value["createdAt"])
    evidence = fields.get("evidence", {})
    if not isinstance(evidence, Mapping):
        raise RecordError("evidence: expected an object")
    cited = {name: evidence.get(key) for name, key in _REFLECTIVE_EVIDENCE.items()}
    fields["evidence"] = from_plain(Evidence, {name: ids for name, ids in cited.items() if ids is not None})
    importance = fields.get("importance")
    if isinstance(importance, int | float) and 1 < importance <= 100:
        fields["importance"] = importance / 100
    if "prior_uses" not in fields:
        fields["prior_uses"] = _read_count(value, "usageCount", 0)
        fields["prior_last_used"] = value.get("lastUsedAt")
    fields.setdefault("confirmed", True)
    if "type" not in fields and fields.get("category") == Category.ANTI_PATTERN.value:
        fields["type"] = LessonType.ANTI_PATTERN.value
    lesson = validate_lesson(from_plain(Lesson, fields))
    if "runs" not in value:
        runs = tuple(sorted({*lesson.evidence.episodes})) or (f"{UNNAMED_RUN}1",)
        lesson = replace(lesson, runs=runs)
    if "status" not in value:
        lesson = replace(lesson, status=Status.SUPERSEDED if lesson.superseded_by else Status.ACTIVE)
    return ImportedLesson(
        lesson, _parse_short_id(value.get("shortId")), _read_count(value, "runsSinceLastSeen", 0)
    )


def is_old_memory(value: Mapping[str, Any]) -> bool:
    """Say whether a line is of the older `memories.jsonl`, in which lessons were memories of three types."""
    # Our own export of such a memory keeps the key.
    return "memoryType" in value and value.keys().isdisjoint(("summary", "uid"))


def from_old_memory(value: Mapping[str, Any]) -> ImportedLesson:
    """Read a line of the older `memories.jsonl`.

    Those files repeat one failure many times: lines with the same text become one lesson.
    """
    _require_texts(value, "id", "description", "createdAt")
    content = value.get("content")
    content = content if isinstance(content, Mapping) else {}
    scope = value.get("scope")
    has_failed = content.get("outcome") in ("failure", "failed", "error")
    known = {
        "id": derived_id("memory", str(scope), " ".join(value["description"].lower().split())),
        "created": value["createdAt"],
        "updated": value.get("updatedAt") or value["createdAt"],
        "edited": value["createdAt"],
        "summary": value["description"],
        "detail": content.get("errorMessage") or "",
        "category": (Category.ANTI_PATTERN if has_failed else Category.HEURISTIC).value,
        "scope": scope if scope in list(Scope) else Scope.PROJECT.value,
        "tags": value.get("tags") or [],
        "importance": _OLD_IMPORTANCE.get(str(value.get("importance")), 0.5),
        "source": Source.MANUAL.value if value.get("source") == "user" else Source.ARCHIVIST.value,
        "origin": str(value.get("source") or ""),
        "runs": [value["id"]],
        "status": (Status.ARCHIVED if value.get("status") == "archived" else Status.CANDIDATE).value,
        "prior_uses": _read_count(value, "accessCount", 0),
        "prior_last_used": value.get("lastAccessedAt"),
    }
    extra = {key: value[key] for key in ("memoryType", "content") if key in value}
    return ImportedLesson(validate_lesson(from_plain(Lesson, {**known, "extra": extra})), 0, 0)


def to_view(lesson: Lesson, tally: Tally, unseen_runs: int) -> dict[str, object]:
    """Write a lesson under our own names, complete, with all of its counts."""
    plain = _with_short_times(lesson)
    return {
        "id": lesson.short_id,
        "uid": lesson.id,
        **{name: value for name, value in plain.items() if name not in ("id", "number", "unseen_from")},
        "frequency": lesson.frequency,
        "runs_since_last_seen": unseen_runs,
        "usage_count": lesson.prior_uses + tally.used,
        "last_used": _last_used(lesson, tally),
        **{name: getattr(tally, name) for name in _TALLY},
    }


def to_episode_line(episode: Episode) -> dict[str, object]:
    """Write an episode as a line of the reflective document's `episodes.jsonl`."""
    plain = _with_short_times(episode)
    line = {key: plain[name] for name, key in _EPISODE_KEYS.items() if plain[name] not in ("", None)}
    return _add_extra(line, episode.extra)


def from_episode_line(value: Mapping[str, Any]) -> Episode:
    """Read a line of the reflective document's `episodes.jsonl`."""
    _require_texts(value, "id")
    return from_plain(Episode, _read_keys(value, _EPISODE_KEYS))


def _with_short_times(record: Any) -> dict[str, Any]:
    """Return a record as plain values, with times as the documents write them."""
    plain: dict[str, Any] = to_plain(record)
    times = {name: getattr(record, name) for name in plain if isinstance(getattr(record, name), datetime)}
    return plain | {name: to_short_text(moment) for name, moment in times.items()}


def _last_used(lesson: Lesson, tally: Tally) -> str | None:
    last_used = max(filter(None, (lesson.prior_last_used, tally.last_used)), default=None)
    return to_short_text(last_used) if last_used else None


def _read_keys(
    value: Mapping[str, Any], keys: Mapping[str, str], spent: Collection[str] = ()
) -> dict[str, Any]:
    """Return a line's values by our field names; keys that are neither known nor spent go to `extra`."""
    fields = {name: value[key] for name, key in keys.items() if value.get(key) is not None}
    known = {*keys.values(), *spent}
    return {**fields, "extra": {key: item for key, item in value.items() if key not in known}}


def _add_extra(line: dict[str, Any], extra: Mapping[str, object]) -> dict[str, Any]:
    return {**line, **{key: value for key, value in extra.items() if key not in line}}


def _require_texts(value: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if not isinstance(value.get(key), str) or is_blank(value[key]):
            raise RecordError(f"{key}: missing or empty")


def _read_count(value: Mapping[str, Any], key: str, default: int) -> int:
    number = value.get(key, default)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0 or number > 1_000_000:
        raise RecordError(f"{key}: expected a count, not {number!r}")
    return number


def _parse_short_id(short: object) -> int:
    return (BY_NAME["lesson"].parse_short_id(short) or 0) if isinstance(short, str) else 0


def _with_frequency(lesson: Lesson, frequency: int, known: Lesson | None) -> Lesson:
    """Give a lesson the runs that a bare count implies: named ones, known ones, and unnamed ones."""
    runs = {run for run in (lesson.origin_run, lesson.last_seen_run) if run}
    runs.update(known.runs if known else ())
    faded = known.faded if known else 0
    for unnamed in count(1):
        if len(runs) - faded >= frequency:
            break
        runs.add(f"{UNNAMED_RUN}{unnamed}")
    faded = faded if known else len(runs) - frequency
    return replace(lesson, runs=tuple(sorted(runs)), faded=faded)


def shape_of(value: Mapping[str, Any]) -> Kind | None:
    """Return the kind that a line is of, or None when it is of none of these."""
    return next((kind for kind in SHAPES if kind.signs <= value.keys()), None)


def to_line(record: Kept | Entry, *, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """Write a record under the document's names; what it has no name for is written under ours."""
    keys = kind_for(type(record)).keys
    plain = _with_short_times(record)
    extra = plain.pop("extra", {})
    return _add_extra({keys.get(name, name): plain[name] for name in plain if name not in left_out}, extra)


def from_line(kind: Kind, value: Mapping[str, Any]) -> Kept:
    """Read a line of a known kind; one without an id gets the id that its fields always have."""
    from archivist.records.layers import Artifact, Fact, Task, validate_fact, validate_task
    from archivist.records.tiers import Document, validate_document

    fields = _read_fields(kind, value)
    if kind.name == "fact":
        if "created" in fields:
            fields.setdefault("updated", fields["created"])
        same = [str(fields.get(name, "")) for name in ("project", "category", "key")]
        fields.setdefault("id", derived_id("fact", *same))
    elif kind.name != "block":
        # A block's id follows from its section.
        same = [str(fields[name]) for name in sorted(fields) if name != "extra"]
        fields.setdefault("id", derived_id(kind.file, *same))
    record: Kept = from_plain(kind.record, fields)
    if isinstance(record, Fact):
        validate_fact(record)
    elif isinstance(record, Task):
        validate_task(record)
    elif isinstance(record, Document):
        validate_document(record)
    elif isinstance(record, Artifact) and record.size_bytes < 0:
        raise RecordError(f"size_bytes: {record.size_bytes} is below 0")
    return record


def later_record(one: Kept, other: Kept) -> Kept:
    """Return the later one of two versions of a record."""
    names = kind_for(type(one)).times
    # The first one of equal times.
    return max(one, other, key=lambda record: max(filter(None, (getattr(record, name) for name in names))))


def to_stream_line(entry: Entry) -> dict[str, object]:
    """Write an entry of the stream as a line, without what only this bank's stream knows."""
    return to_line(entry, left_out=_LOCAL_TO_STREAM if entry.run else (*_LOCAL_TO_STREAM, "run"))


def from_stream_line(value: Mapping[str, Any]) -> Entry:
    """Read a line of the stream; one without an id gets the id that cycle, time, role and action give it.

    Raises RecordError in the line's own spelling. The caller gives the entry its place in the stream.
    """
    from archivist.records.tiers import Entry, validate_entry

    kind = BY_NAME["entry"]
    fields = _read_fields(kind, value, unread=(*_LOCAL_TO_STREAM, *kind.keys))
    same = [str(fields.get(name, "")) for name in ("cycle", "time", "role", "action")]
    fields["id"] = fields.get("id") or derived_id("entry", *same)
    for name in ("cycle", "time", "action"):
        if name not in fields:
            raise RecordError(f"{kind.keys.get(name, name)}: missing")
    try:
        return validate_entry(from_plain(Entry, {**fields, "seq": 0}))
    except RecordError as error:
        name, colon, rest = error.message.partition(":")
        raise RecordError(f"{kind.keys.get(name, name)}{colon}{rest}", hint=error.hint) from None


def _read_fields(kind: Kind, value: Mapping[str, Any], *, unread: Sequence[str] = ()) -> dict[str, Any]:
    """Return a line's values by our field names; keys that are unknown or not to be read go to `extra`."""
    ours = {key: name for name, key in kind.keys.items()}
    record: Any = kind.record
    known = field_names(record)
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in value.items():
        name = ours.get(key, key)
        if key in unread or name not in known or name == "extra":
            extra[key] = item
        elif item is not None:
            fields[name] = item
    return {**fields, "extra": extra} if "extra" in known else fields
