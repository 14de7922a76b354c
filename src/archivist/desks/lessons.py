"""Work on lessons: add, find, edit, retire, undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from archivist.access import Layer, Verb, may, may_change
from archivist.age.promotion import is_confirmed, standing
from archivist.errors import NotFoundError, NothingToUndoError, RecordError
from archivist.recall.keywords import keywords
from archivist.recall.query import LIVE, Query
from archivist.records import ActorKind, Brief, Episode, Lesson, LessonType, Source, Status, Tally, Verdict
from archivist.records.lesson import SHORT_ID, checked
from archivist.records.plain import decoder, from_plain, types_of
from archivist.records.shapes import USER_FEEDBACK, to_view
from archivist.records.tier_words import CoreSection
from archivist.stores.filters import Condition, among, any_of, equals, has, one_of
from archivist.stores.ledger import Change, undo_target
from archivist.stores.protocol import Reader
from archivist.stores.rows import kinds

if TYPE_CHECKING:
    from archivist.bank import Bank

MANUAL_RUN = "manual"
MOST_MET = ("-frequency", "-importance", "number")
_FILTERED = ("scope", "category", "type", "repo", "task", "provider", "tool", "role", "domain")
_TAGS_FROM_TEXT = 5
_TAG_CHARACTERS = 4
_FIXED_FIELDS = {
    "id",
    "number",
    "created",
    "updated",
    "edited",
    "runs",
    "faded",
    "status",
    "evidence",
    "actor",
    "extra",
}
# The kind of record that only its agent sees, and what seeing it takes.
_PRIVATE = "working"
_OWN = (Layer.WORKING, Verb.READ)
# Where a lesson comes from and how it was met: what makes it believed is not for an agent to say.
_ORIGINS = (
    "origin", "origin_run", "signature", "prior_uses", "last_seen", "last_seen_run", "unseen_from",
    "superseded_by", "source",
)  # fmt: skip
_CHANGED = (
    "an agent changes what it suggested itself until others confirm it: suggest a lesson of your own,"
    " or ask a person or the orchestrator"
)
_GUARDED = (CoreSection.PLAYBOOK, CoreSection.RULES)
_SETTLED = (
    "archivist proposals roll-back ID takes an accepted proposal back; working memory is its agent's;"
    " a revoked token stays so"
)
# More answers than anybody reads.
_TEXT_HITS = 200


def find(reader: Reader, name: str) -> Lesson:
    """Return a lesson by its short id or its global one."""
    short = SHORT_ID.fullmatch(name.lower())
    if short:
        found = reader.select(Lesson, equals("number", int(short[1])), limit=1)
        if found:
            return found[0]
    lesson = reader.get(Lesson, name)
    if lesson is None:
        raise NotFoundError("lesson", name)
    return lesson


def add(bank: Bank, summary: str, kind: LessonType | str | None, fields: dict[str, Any]) -> Lesson:
    """Add a lesson by hand: active at once, and counted as said once; an agent's is suggested."""
    if bank.actor.kind is ActorKind.AGENT:
        from archivist.desks.suggesting import suggest

        return suggest(bank, summary, {**fields, "type": kind}).lesson
    now = bank.now()
    words = [word for word in _in_order(summary) if len(word) >= _TAG_CHARACTERS]
    values = {
        "id": bank.new_id(now),
        "created": now,
        "updated": now,
        "edited": now,
        "summary": summary.strip(),
        "type": str(kind or LessonType.PREFERENCE),
        "source": Source.MANUAL.value,
        "origin": USER_FEEDBACK,
        "origin_run": MANUAL_RUN,
        "runs": (MANUAL_RUN,),
        "tags": tuple(words[:_TAGS_FROM_TEXT]),
        "actor": bank.actor,
    } | {name: value for name, value in fields.items() if value is not None}
    lesson = _without_secrets(checked(from_plain(Lesson, values)))
    with bank.transaction() as writer:
        lesson = replace(lesson, number=writer.next_number(), unseen_from=writer.run_count())
        lesson = standing(lesson, promote_at_runs=bank.config.lessons.promote_at_runs)
        writer.put(lesson, "add")
    return lesson


def _without_secrets(lesson: Lesson) -> Lesson:
    """Return a lesson with its secrets taken out: what people write is kept as long as what agents do."""
    from archivist.capture.redaction import redact

    summary, rule, detail = (redact(text).text for text in (lesson.summary, lesson.rule, lesson.detail))
    cleaned = replace(lesson, summary=summary, rule=rule, detail=detail)
    if cleaned == lesson:
        return lesson
    return replace(cleaned, tags=tuple(tag for tag in lesson.tags if tag.lower() in _spoken(cleaned)))


def _spoken(lesson: Lesson) -> str:
    return f"{lesson.summary} {lesson.rule} {lesson.detail}".lower()


def query(bank: Bank, asked: Query, after: Sequence[object] | None = None) -> list[Lesson]:
    """Return the lessons that a query asks for: the best answers first, else the most frequent.

    Without a text, `after` is a place in that order, behind which they stand. Answers are weighed by
    importance, recency and relevance unless the query names another preset.
    """
    from archivist.desks.recalling import recall
    from archivist.recall.merits import Preset

    asked = asked._replace(statuses=asked.statuses or LIVE, kinds=("lesson",))
    with bank.reading() as reader:
        if not asked.text.strip():
            conditions = _conditions(asked)
            return reader.select(Lesson, *conditions, order=MOST_MET, after=after, limit=asked.limit)
        limit = _TEXT_HITS if asked.limit is None else asked.limit
        preset = asked.preset or Preset.ARCHIVIST
        hits = recall(bank, asked._replace(limit=limit, preset=preset)).hits
        found = reader.records("lesson", [hit.id for hit in hits])
        return [found[hit.id] for hit in hits]


def views(bank: Bank, lessons: Sequence[Lesson]) -> list[dict[str, object]]:
    """Return lessons as plain values, with what is counted for each."""
    with bank.reading() as reader:
        tallies = reader.tallies([lesson.id for lesson in lessons])
        count = reader.run_count()
        return [to_view(lesson, tallies.get(lesson.id, Tally()), count) for lesson in lessons]


def edit(bank: Bank, name: str, changes: dict[str, Any]) -> Lesson:
    """Change a lesson's words, scope or weight."""
    types = types_of(Lesson)
    values = {}
    for field, value in changes.items():
        if field not in types or field in _FIXED_FIELDS:
            raise RecordError(f"{field}: cannot be edited")
        values[field] = decoder(types[field])(value)
    with bank.transaction() as writer:
        lesson = find(writer, name)
        changed = replace(lesson, **values)
        if changed == lesson:
            return lesson
        _require_change(bank, lesson, changed)
        now = bank.now()
        changed = _without_secrets(checked(replace(changed, updated=now, edited=now)))
        if bank.actor.kind is ActorKind.HUMAN:
            # What a person worded is believed, and no later run words it anew.
            changed = replace(changed, confirmed=True)
        changed = standing(changed, promote_at_runs=bank.config.lessons.promote_at_runs)
        writer.put(changed, "edit")
    return changed


def _require_change(bank: Bank, lesson: Lesson, changed: Lesson) -> None:
    """Refuse, and note in the ledger, an agent that changes what is not its own, or confirms itself."""
    if may(bank.actor, Layer.LESSONS, Verb.DECIDE):
        return
    is_raised = is_confirmed(changed) or any(
        getattr(changed, field) != getattr(lesson, field) for field in _ORIGINS
    )
    if is_raised or not may_change(bank.actor, lesson):
        bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=_CHANGED)


def retire(bank: Bank, name: str, verb: str, replacement: str = "") -> Lesson:
    """Archive a lesson, or mark it as superseded by its replacement."""
    status = Status.SUPERSEDED if replacement else Status.ARCHIVED
    with bank.transaction() as writer:
        lesson = find(writer, name)
        by = find(writer, replacement).id if replacement else lesson.superseded_by
        if by == lesson.id:
            raise RecordError(f"lesson {name!r} cannot supersede itself")
        if lesson.status is status and lesson.superseded_by == by:
            return lesson
        _require_change(bank, lesson, lesson)
        now = bank.now()
        retired = replace(lesson, status=status, superseded_by=by, updated=now, edited=now)
        writer.put(retired, verb)
    return retired


def names(bank: Bank) -> dict[str, tuple[str, str]]:
    """Return the short id and the words of every lesson by its global id."""
    with bank.reading() as reader:
        rows = reader.select_fields(Lesson, ("id", "number", "summary"))
        return {row[0]: (f"m-{row[1]:03d}", row[2]) for row in rows}


def record_usage(bank: Bank, names: Sequence[str], run: str) -> Brief | None:
    """Record in one write that lessons were used."""
    if not names:
        return None
    with bank.transaction() as writer:
        ids = tuple(dict.fromkeys(find(writer, name).id for name in names))
        now = bank.now()
        brief = Brief(id=bank.new_id(now), time=now, run=run, lessons=ids)
        writer.put(brief, "use")
    return brief


def history(bank: Bank, name: str) -> list[Change]:
    """Return every change of a record, oldest first."""
    with bank.reading() as reader:
        changes = reader.changes(record_id=_record_id(reader, name))
    shown = [
        change for change in changes if change.entry.kind != _PRIVATE or may(bank.actor, *_OWN, owner=name)
    ]
    if changes and not shown:
        bank.require(*_OWN, owner=name)
    if not changes:
        raise NotFoundError("lesson", name)
    return shown


def undo(bank: Bank, name: str) -> Lesson | Episode | Brief | Verdict | None:
    """Take the last change of a record back; None when that was its making."""
    with bank.transaction() as writer:
        record_id = _record_id(writer, name)
        known = kinds()
        changes = [change for change in writer.changes(record_id=record_id) if change.entry.kind in known]
        free = [change for change in changes if not _is_settled(change)]
        if changes and not free:
            bank.refuse(Layer.BANK, Verb.WRITE, what=name, hint=_SETTLED)
        target = undo_target(free)
        if target is None or (target[1] is not None and target[1].is_erased):
            raise NothingToUndoError(name)
        taken, before = target
        kind = known[taken.entry.kind]
        verb = f"undo {taken.entry.seq}"
        if before is None or before.after is None:
            writer.remove(kind, record_id, verb)
            return None
        record: Any = from_plain(kind, before.after)
        writer.put(record, verb)
        return record  # type: ignore[no-any-return]


def _is_settled(change: Change) -> bool:
    """Say whether a change is not for undo: an agent's own memory, and what somebody must approve."""
    kind, record = change.entry.kind, change.entry.record
    is_guarded = kind == "block" and record.partition(":")[0] in _GUARDED
    return is_guarded or kind in (_PRIVATE, "proposal", "token")


def _record_id(reader: Reader, name: str) -> str:
    from archivist.desks.lookup import named

    record = named(reader, name)
    return name if record is None else str(record.id)


def _in_order(text: str) -> list[str]:
    wanted = keywords(text)
    words = ("".join(c if c.isalnum() else " " for c in text.lower())).split()
    return list(dict.fromkeys(word for word in words if word in wanted))


def _conditions(asked: Query) -> list[Condition]:
    conditions: list[Condition] = [
        equals(field, value) for field in _FILTERED if (value := getattr(asked, field))
    ]
    if asked.tags:
        conditions.append(any_of(*((has("tags", tag),) for tag in asked.tags)))
    if asked.statuses:
        # Of a repository or of all, most lessons are live; what else is asked for may hold for few of them.
        is_of_most = asked.statuses == LIVE and len(conditions) == bool(asked.repo)
        conditions.append((among if is_of_most else one_of)("status", asked.statuses))
    return conditions
