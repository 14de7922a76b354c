"""Work on lessons: add, find, edit, retire, undo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archivist.access.rights import Layer, Verb, decides, may, may_change, reads, writes
from archivist.audit.verdicts import judge_lessons as judge_lessons
from archivist.errors import InputError, NotFoundError, NothingToUndoError, RecordError
from archivist.lessons.decay import decay_lesson
from archivist.lessons.quarantine import is_hidden_from, lesson_suspicion, quarantine_reason
from archivist.lessons.standing import is_confirmed, merge_sets, with_status
from archivist.recall.keywords import keywords
from archivist.recall.query import LIVE, Query
from archivist.records import (
    ActorKind,
    Brief,
    Episode,
    Lesson,
    LessonType,
    Source,
    Status,
    Tally,
    Verdict,
)
from archivist.records.kinds import types_by_kind
from archivist.records.lesson import SHORT_ID, validate_lesson
from archivist.records.plain import decoder, from_plain, types_of
from archivist.records.shapes import USER_FEEDBACK, to_view
from archivist.records.tier_words import CoreSection
from archivist.records.words import NOTES as NOTES
from archivist.service import BankService, require_name
from archivist.store.filters import (
    Condition,
    any_of,
    at_most,
    contains_item,
    equals,
    one_of,
    one_of_unindexed,
)
from archivist.store.ledger import LedgerChange, undo_target
from archivist.store.protocol import Reader, Writer
from archivist.text import make_legible

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.lessons.suggest_service import SuggestionResult
    from archivist.store.protocol import Writer

MANUAL_RUN = "manual"
MOST_MET = ("-frequency", "-importance", "number")
_FILTERED = ("scope", "category", "type", "repo", "task", "provider", "tool", "role", "domain")
_TAGS_FROM_TEXT = 5
_TAG_CHARACTERS = 4
# What a lesson is for: the same words for another place are another lesson.
_PLACE = ("scope", "project", "repo", "task", "provider", "tool", "role", "domain")
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
# Where a lesson comes from and how it was met: what makes it believed is not for an agent to say.
_ORIGINS = (
    "origin", "origin_run", "signature", "prior_uses", "last_seen", "last_seen_run", "unseen_from",
    "superseded_by", "source",
)  # fmt: skip
_CHANGED = (
    "an agent changes what it suggested itself until others confirm it: suggest a lesson of your own,"
    " or ask a person or the orchestrator"
)
_APPROVAL = "what waits in quarantine a person approves: archivist lessons approve ID"
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


def get(bank: Bank, name: str) -> Lesson:
    """Return a lesson by its name; what waits for a person is not there for an agent."""
    found = get_readable(bank, (name,))
    if not found:
        raise NotFoundError("lesson", name)
    return found[0]


def get_readable(bank: Bank, names: Iterable[str]) -> list[Lesson]:
    """Return the lessons that are called so, without those that wait for a person when an agent asks."""
    with bank.reading() as reader:
        found = [find(reader, name) for name in names]
    return [each for each in found if not is_hidden_from(each, bank.actor)]


def add(bank: Bank, summary: str, kind: LessonType | str | None, fields: dict[str, Any]) -> Lesson:
    """Add a lesson by hand: active at once, and counted as said once; an agent's is suggested."""
    return add_or_confirm(bank, summary, kind, fields).lesson


def add_or_confirm(
    bank: Bank, summary: str, kind: LessonType | str | None, fields: dict[str, Any]
) -> SuggestionResult:
    """Add a lesson, or take it as said again when the same words stand there for the same place."""
    from archivist.lessons.suggest_service import SuggestionResult, suggest

    if bank.actor.kind is ActorKind.AGENT:
        return suggest(bank, summary, {**fields, "type": kind})
    told = {**fields, "type": str(kind) if kind else None}
    given = {name: value for name, value in told.items() if value is not None}
    fresh = _draft_lesson(bank, summary, given)
    with bank.transaction() as writer:
        # Who says more than people do, an id or a time, makes a record of its own.
        known = None if given.keys() & _FIXED_FIELDS else _find_same(writer, fresh)
        if known is not None:
            return SuggestionResult(_confirm_lesson(bank, writer, known, fresh, given), is_new=False)
        lesson = replace(fresh, number=writer.next_number(), unseen_from=writer.run_count())
        lesson = with_status(lesson, promote_at_runs=bank.config.lessons.promote_at_runs)
        writer.put(lesson, "add")
    return SuggestionResult(lesson, is_new=True)


def _draft_lesson(bank: Bank, summary: str, given: dict[str, Any]) -> Lesson:
    """Return what a person says as a lesson that has no number yet."""
    now, words = bank.now(), " ".join(make_legible(summary).split())
    tags = [word for word in _ordered_keywords(words) if len(word) >= _TAG_CHARACTERS]
    values = {
        "id": bank.new_id(now),
        "created": now,
        "updated": now,
        "edited": now,
        "summary": words,
        "type": LessonType.PREFERENCE.value,
        "source": Source.MANUAL.value,
        "origin": USER_FEEDBACK,
        "origin_run": MANUAL_RUN,
        "runs": (MANUAL_RUN,),
        "tags": tuple(tags[:_TAGS_FROM_TEXT]),
        "actor": bank.actor,
    }
    return _redact_lesson(validate_lesson(from_plain(Lesson, values | given)))


def _find_same(reader: Reader, fresh: Lesson) -> Lesson | None:
    """Return the live lesson that says the same words for the same place."""
    place = [getattr(fresh, field) for field in _PLACE]
    found = (each for each in reader.lessons_with_summary(fresh.summary) if each.status.is_live)
    return next((each for each in found if [getattr(each, field) for field in _PLACE] == place), None)


def _confirm_lesson(
    bank: Bank, writer: Writer, known: Lesson, fresh: Lesson, given: dict[str, Any]
) -> Lesson:
    """Confirm a lesson that a person says anew, and take what else is said of it this time."""
    changes: dict[str, Any] = {name: getattr(fresh, name) for name in given}
    met = replace(known, runs=merge_sets(known.runs, (MANUAL_RUN,)), **changes)
    if not is_confirmed(met):
        met = replace(met, confirmed=True)
    if met == known:
        return known
    now = bank.now()
    met = replace(met, updated=now, edited=now)
    met = with_status(met, promote_at_runs=bank.config.lessons.promote_at_runs)
    writer.put(met, "see")
    return met


def _redact_lesson(lesson: Lesson) -> Lesson:
    """Return a lesson without secrets and control characters: what people write is kept as agents' words."""
    from archivist.capture.redaction import redact

    texts = (lesson.summary, lesson.rule, lesson.detail)
    summary, rule, detail = (redact(make_legible(text)).text for text in texts)
    cleaned = replace(lesson, summary=summary, rule=rule, detail=detail)
    if cleaned == lesson:
        return lesson
    return replace(cleaned, tags=tuple(tag for tag in lesson.tags if tag.lower() in _full_text(cleaned)))


def _full_text(lesson: Lesson) -> str:
    return f"{lesson.summary} {lesson.rule} {lesson.detail}".lower()


def query_lessons(bank: Bank, asked: Query, after: Sequence[object] | None = None) -> list[Lesson]:
    """Return the lessons that a query asks for: the best answers first, else the most frequent.

    Without a text, `after` is a place in that order, behind which they stand. Answers are weighed by
    importance, recency and relevance unless the query names another preset.
    """
    from archivist.projects import resolve_name
    from archivist.recall.fusion import is_match
    from archivist.recall.scoring import Preset

    statuses = asked.statuses or LIVE
    if bank.actor.kind is ActorKind.AGENT:
        # What waits is for people to read.
        statuses = tuple(each for each in statuses if each is not Status.QUARANTINED)
        if not statuses:
            return []
    asked = asked._replace(statuses=statuses, kinds=("lesson",))
    with bank.reading() as reader:
        if not asked.text.strip():
            conditions = _conditions(asked._replace(repo=asked.repo and resolve_name(reader, asked.repo)))
            return reader.select(Lesson, *conditions, order=MOST_MET, after=after, limit=asked.limit)
        limit = _TEXT_HITS if asked.limit is None else asked.limit
        preset = asked.preset or Preset.ARCHIVIST
        recalled = bank.searches.recall(asked._replace(limit=limit, preset=preset)).hits
        hits = [hit for hit in recalled if not asked.is_matching or is_match(hit.why.why)]
        found = reader.records("lesson", [hit.id for hit in hits])
        return [found[hit.id] for hit in hits]


def views(bank: Bank, lessons: Sequence[Lesson]) -> list[dict[str, object]]:
    """Return lessons as plain values, with what is counted for each."""
    with bank.reading() as reader:
        tallies = reader.tallies([lesson.id for lesson in lessons])
        count = reader.run_count()
        return [
            {
                **to_view(lesson, tallies.get(lesson.id, Tally()), count),
                "quarantined_for": quarantine_reason(lesson),
            }
            for lesson in lessons
        ]


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
        changed = _redact_lesson(validate_lesson(replace(changed, updated=now, edited=now)))
        is_held = lesson.status is Status.QUARANTINED and bool(lesson_suspicion(changed))
        if bank.actor.kind is ActorKind.HUMAN and not is_held:
            # What a person worded is believed, and no later run words it anew.
            changed = replace(changed, confirmed=True)
        changed = with_status(changed, promote_at_runs=bank.config.lessons.promote_at_runs)
        if changed.status.is_live:
            _require_person(bank, lesson)
        writer.put(changed, "edit")
    return changed


def approve(bank: Bank, name: str) -> Lesson:
    """Believe a lesson as it stands, in a person's name: also one that waits in quarantine."""
    with bank.transaction() as writer:
        lesson = find(writer, name)
        _require_person(bank, lesson)
        if lesson.status.is_retired:
            raise InputError(f"lesson {name!r} is {lesson.status}", hint=f"archivist undo {lesson.short_id}")
        if lesson.confirmed:
            return lesson
        now = bank.now()
        approved = replace(lesson, confirmed=True, updated=now, edited=now)
        approved = with_status(approved, promote_at_runs=bank.config.lessons.promote_at_runs)
        writer.put(approved, "approve")
    return approved


def _require_change(bank: Bank, lesson: Lesson, changed: Lesson) -> None:
    """Refuse, and note in the ledger, an agent that changes what is not its own, or confirms itself."""
    if may(bank.actor, Layer.LESSONS, Verb.DECIDE):
        return
    is_raised = is_confirmed(changed) or any(
        getattr(changed, field) != getattr(lesson, field) for field in _ORIGINS
    )
    if is_raised or not may_change(bank.actor, lesson):
        bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=_CHANGED)


def _require_person(bank: Bank, lesson: Lesson) -> None:
    """Refuse, and note in the ledger, whoever is no person and would release a lesson from quarantine."""
    if lesson.status is Status.QUARANTINED and bank.actor.kind is not ActorKind.HUMAN:
        bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=_APPROVAL)


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


def lesson_names(bank: Bank) -> dict[str, tuple[str, str]]:
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


def history(bank: Bank, name: str) -> list[LedgerChange]:
    """Return every change of a record, oldest first."""
    from archivist.ledger.service import find_by_name, is_visible_to

    with bank.reading() as reader:
        record = find_by_name(reader, name)
        changes = reader.changes(record_id=name if record is None else str(record.id))
    shown = [each for each in changes if is_visible_to(bank.actor, each.entry.kind, each.entry.record)]
    if not shown or is_hidden_from(record, bank.actor):
        raise NotFoundError("lesson", name)
    return shown


def undo(bank: Bank, name: str) -> Lesson | Episode | Brief | Verdict | None:
    """Take the last change of a record back; None when that was its making.

    What has no id that people know goes by what it is called, also when it was removed: a fact, an artifact
    by its path, and a text with all of the pieces that changed together.
    """
    from archivist.ledger.service import find_by_label, find_by_name, last_changed_ids

    with bank.transaction() as writer:
        known = _record_id(writer, name)
        if known != name or writer.changes(record_id=known, limit=1):
            restored: Lesson | Episode | Brief | Verdict | None = _undo_record(bank, writer, name, known)
            return restored
        for each in last_changed_ids(writer, name) or [known]:
            _undo_record(bank, writer, name, each)
        kept: Lesson | Episode | Brief | Verdict | None = find_by_name(writer, name) or find_by_label(
            writer, name
        )
    return kept


def _undo_record(bank: Bank, writer: Writer, name: str, record_id: str) -> Any:
    known = types_by_kind()
    changes = [change for change in writer.changes(record_id=record_id) if change.entry.kind in known]
    free = [change for change in changes if not _is_protected(change)]
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
    if isinstance(record, Lesson) and record.status.is_live:
        _require_person(bank, find(writer, record_id))
    writer.put(record, verb)
    return record


def _is_protected(change: LedgerChange) -> bool:
    """Say whether a change is not for undo: an agent's own memory, and what somebody must approve."""
    kind, record = change.entry.kind, change.entry.record
    is_guarded = kind == "block" and record.partition(":")[0] in _GUARDED
    return is_guarded or kind in ("working", "proposal", "token")


def _record_id(reader: Reader, name: str) -> str:
    from archivist.ledger.service import find_by_name

    record = find_by_name(reader, name)
    return name if record is None else str(record.id)


def _ordered_keywords(text: str) -> list[str]:
    wanted = keywords(text)
    words = ("".join(c if c.isalnum() else " " for c in text.lower())).split()
    return list(dict.fromkeys(word for word in words if word in wanted))


def _conditions(asked: Query) -> list[Condition]:
    conditions: list[Condition] = [
        equals(field, value) for field in _FILTERED if (value := getattr(asked, field))
    ]
    if asked.tags:
        conditions.append(any_of(*((contains_item("tags", tag),) for tag in asked.tags)))
    if asked.statuses:
        # Of a repository or of all, most lessons are live; what else is asked for may hold for few of them.
        is_of_most = asked.statuses == LIVE and len(conditions) == bool(asked.repo)
        conditions.append((one_of_unindexed if is_of_most else one_of)("status", asked.statuses))
    return conditions


@dataclass(frozen=True, slots=True)
class AgeingResult:
    """What a run's passing did: lessons that faded and lessons that were archived."""

    faded: tuple[Lesson, ...] = ()
    archived: tuple[Lesson, ...] = ()
    was_counted: bool = True


def decay(bank: Bank, run: str) -> AgeingResult:
    """Let a run age the bank: lessons that enough runs did not meet fade. A run ages it only once.

    An agent's does not: it could say that it ran often enough to retire what others know.
    """
    require_name(run, "run")
    if not may(bank.actor, Layer.LESSONS, Verb.DECIDE):
        return AgeingResult(was_counted=False)
    rules = bank.config.decay
    with bank.transaction() as writer:
        now = bank.now()
        episode = writer.get(Episode, run) or Episode(id=run, started=now)
        if episode.number is not None:
            return AgeingResult(was_counted=False)
        count = writer.run_count() + 1
        writer.put(replace(episode, number=count), "age")
        due = any_of((at_most("unseen_from", count - rules.unseen_runs),), (equals("last_seen_run", run),))
        faded: list[Lesson] = []
        archived: list[Lesson] = []
        for lesson in writer.select(Lesson, one_of("status", (Status.ACTIVE, Status.CANDIDATE)), due):
            after = decay_lesson(
                lesson,
                run=run,
                run_count=count,
                now=now,
                unseen_runs=rules.unseen_runs,
                preferences_fade=rules.preferences_fade,
                promote_at_runs=bank.config.lessons.promote_at_runs,
            )
            if not writer.put(after, "decay") or after.faded == lesson.faded:
                continue
            (archived if after.status is Status.ARCHIVED else faded).append(after)
    return AgeingResult(tuple(faded), tuple(archived))


class Lessons(BankService):
    """What was learnt."""

    @writes(Layer.LESSONS)
    def add(
        self,
        /,
        summary: str,
        *,
        type: LessonType | str | None = None,  # noqa: A002
        **fields: Any,
    ) -> Lesson:
        """Add a lesson by hand: a preference unless the type is another; active at once, said once.

        What an agent adds is a candidate: a pattern unless the type is another, and never a preference.
        """
        return add(self._bank, summary, type, fields)

    @writes(Layer.LESSONS)
    def suggest(
        self, /, summary: str, *, run: str = "", evidence: Sequence[str] = (), **fields: Any
    ) -> SuggestionResult:
        """Keep a lesson in the name of whoever tells it, and say whether it is new or was met again."""
        from archivist.lessons import suggest_service as suggesting

        return suggesting.suggest_or_add(self._bank, summary, run=run, evidence=evidence, **fields)

    @reads(Layer.LESSONS)
    def get(self, name: str) -> Lesson:
        """Return a lesson by its short id or its global one."""
        return get(self._bank, name)

    @reads(Layer.LESSONS)
    def get_many(self, names: Iterable[str]) -> list[Lesson]:
        """Return lessons by their ids; for an agent without those that wait for a person."""
        return get_readable(self._bank, names)

    @reads(Layer.LESSONS)
    def query(self, query: Query, *, after: Sequence[object] | None = None) -> list[Lesson]:
        """Return the lessons that a query asks for: the best text matches first, else the most frequent.

        Without a text, `after` is a place in that order, behind which they stand.
        """
        return query_lessons(self._bank, query, after)

    @reads(Layer.LESSONS)
    def views(self, chosen: Sequence[Lesson]) -> list[dict[str, object]]:
        """Return lessons as plain values, with what is counted for each."""
        return views(self._bank, chosen)

    @writes(Layer.LESSONS)
    def edit(self, /, name: str, **changes: Any) -> Lesson:
        """Change a lesson's words, scope or weight; its history keeps what it was."""
        return edit(self._bank, name, changes)

    @decides(Layer.LESSONS)
    def approve(self, name: str) -> Lesson:
        """Believe a lesson as it stands; out of quarantine only a person lets one."""
        return approve(self._bank, name)

    @writes(Layer.LESSONS)
    def forget(self, name: str) -> Lesson:
        """Move a lesson to the archive, whatever its frequency."""
        return retire(self._bank, name, "forget")

    @writes(Layer.LESSONS)
    def archive(self, name: str, replacement: str = "") -> Lesson:
        """Retire a lesson; with a replacement it is superseded by that."""
        return retire(self._bank, name, "supersede" if replacement else "archive", replacement)

    @writes(Layer.LESSONS)
    def record_usage(self, names: Sequence[str], *, run: str = "") -> Brief | None:
        """Record in one write that these lessons were used; reading alone never does."""
        return record_usage(self._bank, names, run)

    @reads(Layer.LESSONS)
    def lesson_names(self) -> dict[str, tuple[str, str]]:
        """Return the short id and the words of every lesson by its global id."""
        return lesson_names(self._bank)

    @writes(Layer.RUNS)
    def decay(self, run: str) -> AgeingResult:
        """Let a run age the bank: lessons that enough runs did not meet fade. A run ages it only once."""
        return decay(self._bank, run)
