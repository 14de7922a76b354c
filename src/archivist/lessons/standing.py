"""The life of a lesson as a record: find it, decide its status, let it fade, merge its versions.

The merge of two versions that two clones hold is commutative, associative and idempotent: sets are united,
counters come from their sets or take the larger value, words and status come from the version edited last.
When two versions were edited at the same instant, the one whose words sort last wins, so that every clone
decides alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from archivist.clock import to_text
from archivist.errors import NotFoundError, RecordError
from archivist.lessons.quarantine import is_quarantined
from archivist.records import (
    ActorKind,
    Event,
    Evidence,
    Finding,
    Lesson,
    LessonType,
    Provenance,
    Source,
    Status,
)
from archivist.records.lesson import SHORT_ID
from archivist.records.plain import canonical_json, digest_of, field_names, to_plain
from archivist.records.words import CLAIMED, MODEL_ORIGIN
from archivist.service import complete_id
from archivist.store.filters import equals

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

# What does not come from the version edited last: sets, counters and what each bank counts for itself.
_APART = {
    "id", "number", "created", "updated", "tags", "evidence", "runs", "faded", "confirmed", "last_seen_run",
    "last_seen", "unseen_from", "prior_uses", "prior_last_used", "provenance", "brought_by", "accepted",
}  # fmt: skip

# What does: the words, to whom they are told, and the status.
_WORDED = tuple(name for name in field_names(Lesson) if name not in {*_APART, "edited"})
# The ledger's verbs by which a person decides about a lesson: the words, or that it is retired.
_DECISIONS = frozenset(("add", "edit", "approve", "merge", "undo", "forget", "archive"))
# Those by which somebody words a lesson.
_TYPED = frozenset(("add", "edit", "merge", "suggest"))
# What a twin adds to the lesson that supersedes it.
_COUNTED = (
    "tags", "evidence", "runs", "faded", "last_seen_run", "last_seen", "prior_uses", "prior_last_used",
    "updated",
)  # fmt: skip
_CITED = field_names(Evidence)
# Where a suggestion notes the lessons of others that it asks to replace.
SUPERSEDES = "supersedes"
# What decides to which runs a lesson is told.
_AUDIENCE = ("type", "category", "scope", "project", "repo", "task", "provider", "tool", "role", "domain")


def find_lesson(reader: Reader, name: str) -> Lesson:
    """Return a lesson by its short id, its global one or the beginning of that."""
    short = SHORT_ID.fullmatch(name.lower())
    found = reader.select(Lesson, equals("number", int(short[1])), limit=1) if short else []
    lesson = found[0] if found else reader.get(Lesson, name)
    if lesson is None:
        lesson = reader.get(Lesson, complete_id(reader, "lesson", name))
    if lesson is None:
        number = name.lower().lstrip("m-_ ")
        # A short id that does not exist is no help for itself.
        is_near = short is None and number.isascii() and number.isdecimal() and len(number) < 7
        raise NotFoundError("lesson", name, hint=f"did you mean m-{int(number):03d}?" if is_near else "")
    return lesson


def cited_findings(
    reader: Reader, lesson: Lesson, known: dict[str, Event] | None = None
) -> list[tuple[str, Finding]]:
    """Return the findings that a lesson cites by their event and index, each with its run.

    `known` keeps the events that were read: many lessons cite one review.
    """
    cited = [
        (event, int(at))
        for event, _, at in (name.rpartition(".") for name in lesson.evidence.events)
        if at.isdecimal()
    ]
    events = {} if known is None else known
    events |= reader.records("event", [event for event, _ in cited if event not in events])
    return [
        (events[event].run, events[event].findings[at])
        for event, at in cited
        if event in events and at < len(events[event].findings)
    ]


def with_status(lesson: Lesson, *, promote_at_runs: int) -> Lesson:
    """Return the lesson as candidate, active or quarantined; a retired lesson keeps its status.

    What nobody here vouches for is a candidate, whatever it claims. Preferences and what a person wrote or
    approved are active at once. Any other lesson is active while `promote_at_runs` distinct runs have met
    it. Suspicious words stay quarantined until a person approves them, however many runs met them.
    """
    if lesson.status.is_retired:
        return lesson
    if is_quarantined(lesson):
        status = Status.QUARANTINED
    elif not lesson.is_waiting and (is_confirmed(lesson) or lesson.frequency >= promote_at_runs):
        status = Status.ACTIVE
    else:
        status = Status.CANDIDATE
    return lesson if lesson.status is status else replace(lesson, status=status)


def is_confirmed(lesson: Lesson) -> bool:
    """Say whether a lesson is active without a second run; a wish that only a model found is not."""
    is_wish = lesson.type is LessonType.PREFERENCE and lesson.origin != MODEL_ORIGIN
    return lesson.confirmed or is_wish or lesson.source is Source.MANUAL


def lesson_text(lesson: Lesson) -> tuple[object, ...]:
    """Return a lesson's words: all that is told of it."""
    return lesson.summary, lesson.rule, lesson.detail, lesson.remedies, sorted(lesson.tags)


def lesson_version(lesson: Lesson) -> str:
    """Return the digest of what a person approves: the words, where they are told, and what they replace."""
    audience = (getattr(lesson, name) for name in _AUDIENCE)
    return digest_of(*lesson_text(lesson), *audience, superseded_ids(lesson))


def needs_version(lesson: Lesson) -> bool:
    """Say whether an approval must name the version: suspicious words, or an agent's that were changed.

    Otherwise an agent could change its words after a person has read them.
    """
    return lesson.status is Status.QUARANTINED or is_reworded(lesson)


def note_claim(lesson: Lesson) -> dict[str, object]:
    """Return what a lesson of a file keeps of its claimed count once it is met or approved here."""
    return {CLAIMED: lesson.claimed_frequency} if lesson.claimed_frequency > 1 else {}


def is_reworded(lesson: Lesson) -> bool:
    """Say whether an agent's suggestion, which a person may have read, was changed and is not approved."""
    is_changed = lesson.edited != lesson.created
    return lesson.provenance is Provenance.SUGGESTED and is_changed and not lesson.confirmed


def superseded_ids(lesson: Lesson) -> list[str]:
    """Return the lessons that an agent or a model asks to replace; a file's claim counts for nothing."""
    is_ours = lesson.provenance in (Provenance.SUGGESTED, Provenance.MINED)
    pending = lesson.extra.get(SUPERSEDES) if is_ours else None
    return [str(name) for name in pending] if isinstance(pending, list | tuple) else []


def named_replacements(lesson: Lesson, found: Mapping[str, Lesson]) -> dict[str, list[str]]:
    """Return which lessons an approval replaces, and which of a person it leaves though it names them."""
    named = (found[name] for name in superseded_ids(lesson) if name in found)
    live = [other for other in named if not other.status.is_retired]
    return {
        "supersedes": [other.short_id for other in live if not is_of_person(other)],
        "kept_beside": [other.short_id for other in live if is_of_person(other)],
    }


def is_of_person(lesson: Lesson) -> bool:
    """Say whether a person said a lesson, approved it or accepted where it comes from."""
    return is_confirmed(lesson) or lesson.provenance is Provenance.TYPED or lesson.accepted


def merge_sets(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the union of two sets, sorted: the order in which records hold sets."""
    return tuple(sorted({*first, *second})) if first or second else ()


@dataclass(frozen=True, slots=True)
class AgeingResult:
    """The lessons that a run made fade and those that it archived."""

    faded: tuple[Lesson, ...] = ()
    archived: tuple[Lesson, ...] = ()
    was_counted: bool = True


def decay_lesson(
    lesson: Lesson, *, run: str, run_count: int, now: datetime, due_from: int | None, preferences_fade: bool
) -> Lesson:
    """Return the lesson after a run has aged the bank; `run_count` is that run's own number.

    A lesson that this run met is counted as unseen from here on. One that was met since by a run that has
    not aged the bank is unseen for the first time. The frequency of one that is unseen since `due_from` drops
    by one and the count starts again; at frequency 0 it is archived. `due_from` is None where the run is
    another project's. What a person wrote or approved does not fade.
    """
    if lesson.last_seen_run == run or run in lesson.runs:
        return lesson if lesson.unseen_from == run_count else replace(lesson, unseen_from=run_count)
    if lesson.unseen_from >= run_count:
        lesson = replace(lesson, unseen_from=run_count - 1)
    if due_from is None or lesson.unseen_from > due_from:
        return lesson
    is_lasting = not preferences_fade if lesson.type is LessonType.PREFERENCE else is_confirmed(lesson)
    if is_lasting or lesson.is_waiting:
        # What waits would leave the list of what a person is to decide, unseen.
        return lesson
    faded = replace(lesson, faded=lesson.faded + 1, unseen_from=run_count, updated=max(now, lesson.updated))
    if faded.frequency == 0:
        return replace(faded, status=Status.ARCHIVED, edited=max(now, lesson.edited))
    return faded


def merge_lessons(first: Lesson, second: Lesson, *, promote_at_runs: int) -> Lesson:
    """Return one lesson from two versions of it, with the status that it has earned."""
    merged = merge_versions(first, second)
    return merged if merged is first else with_status(merged, promote_at_runs=promote_at_runs)


def merge_versions(first: Lesson, second: Lesson) -> Lesson:
    """Return one lesson from two versions of it; its status is that of the version edited last."""
    if first.id != second.id:
        raise RecordError(f"lessons {first.id!r} and {second.id!r} are not versions of one lesson")
    if first == second:
        return first
    worded = max(first, second, key=_edit_order)
    seen = max(
        first,
        second,
        key=lambda version: (to_text(version.last_seen) if version.last_seen else "", version.last_seen_run),
    )
    return replace(
        worded,
        number=min(filter(None, (first.number, second.number)), default=0),
        created=min(first.created, second.created),
        updated=max(first.updated, second.updated),
        tags=first.tags if first.tags == second.tags else merge_sets(first.tags, second.tags),
        evidence=merge_evidence(first.evidence, second.evidence),
        runs=merge_sets(first.runs, second.runs),
        faded=max(first.faded, second.faded),
        confirmed=first.confirmed or second.confirmed,
        last_seen_run=seen.last_seen_run,
        last_seen=seen.last_seen,
        unseen_from=max(first.unseen_from, second.unseen_from),
        prior_uses=max(first.prior_uses, second.prior_uses),
        prior_last_used=max(filter(None, (first.prior_last_used, second.prior_last_used)), default=None),
    )


def is_said_here(reader: Reader, lesson: Lesson) -> bool:
    """Say whether a person typed, reworded, approved or retired a lesson in this bank; a tag says nothing."""
    before: Mapping[str, object] | None = None
    for change in reader.changes(record_id=lesson.id):
        after, verb = change.after, change.entry.verb.split()[0]
        is_decision = change.entry.actor.kind is ActorKind.HUMAN and verb in _DECISIONS
        if is_decision and (verb == "approve" or before is None or after is None):
            return True
        if is_decision and before and after and any(before.get(name) != after.get(name) for name in _WORDED):
            return True
        before = after
    return False


def without_old_words(reader: Reader, lesson: Lesson, changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes that, with a new summary, clear the remedies it does not name and a rule nobody typed.

    They say what the old words said, and would stand below the new ones.
    """
    summary = changes.get("summary", lesson.summary)
    if summary == lesson.summary:
        return changes
    before, is_typed = "", False
    for change in reader.changes(record_id=lesson.id) if lesson.rule else ():
        rule = str((change.after or {}).get("rule", ""))
        if rule == lesson.rule != before:
            is_typed = change.entry.verb.split()[0] in _TYPED
        before = rule
    remedies = tuple(remedy for remedy in lesson.remedies if remedy in summary)
    return {"remedies": remedies, **({} if is_typed else {"rule": ""}), **changes}


def counted_elsewhere(ours: Lesson, theirs: Lesson) -> Lesson:
    """Return our version of a lesson with what another counts for it: its words are not taken."""
    return replace(ours, **{name: getattr(theirs, name) for name in _COUNTED})


def unite_twins(
    reader: Reader, lessons: Iterable[Lesson], *, promote_at_runs: int
) -> list[tuple[Lesson, Lesson]]:
    """Return each lesson that several clones learnt by themselves, with one that it now supersedes.

    They are about the same failure of the same place, or say the same. What a person said here is never
    superseded; else what a person confirmed stays, else the oldest: every clone decides alike, and the
    counts come from the runs of both. What a person retired here does not come back as another's twin.
    """
    groups: dict[tuple[object, ...], list[Lesson]] = {}
    for lesson in lessons:
        about = lesson.signature or " ".join(lesson.summary.casefold().split())
        place = (lesson.scope, lesson.repo, lesson.task, lesson.provider, lesson.role, lesson.type)
        groups.setdefault((about, *place), []).append(lesson)
    united = []
    for group in groups.values():
        if len(group) == 1:
            continue
        said = {lesson.id for lesson in group if is_said_here(reader, lesson)}
        standing = [lesson for lesson in group if lesson.status.is_live or lesson.id in said]
        if not any(lesson.status.is_live for lesson in standing):
            continue
        first, *others = sorted(
            standing,
            key=lambda each: (
                each.id not in said,
                not each.status.is_live,
                not each.confirmed,
                each.created,
                each.id,
            ),
        )
        for other in (each for each in others if each.id not in said):
            first = merge_lessons(first, counted_elsewhere(first, other), promote_at_runs=promote_at_runs)
            # Later than any edit that is known, so that no clone's older version brings it back.
            edited = max(first.edited, other.edited) + timedelta(microseconds=1)
            gone = replace(other, status=Status.SUPERSEDED, superseded_by=first.id, edited=edited)
            united.append((first, replace(gone, updated=max(edited, gone.updated))))
    return united


def is_edit(before: Lesson, after: Lesson) -> bool:
    """Say whether a change is an edit: one of tags and counts is united with other clones' instead."""
    return _edit_order(replace(after, edited=before.edited)) != _edit_order(before)


def _edit_order(lesson: Lesson) -> tuple[object, ...]:
    """Order versions by their last edit; active and candidate are one, since both are derived."""
    plain = {name: to_plain(getattr(lesson, name)) for name in _WORDED}
    if lesson.status.is_live:
        plain["status"] = Status.CANDIDATE.value
    return lesson.edited, canonical_json(plain)


def merge_evidence(first: Evidence, second: Evidence) -> Evidence:
    """Return what either version cites."""
    return Evidence(**{name: merge_sets(getattr(first, name), getattr(second, name)) for name in _CITED})
