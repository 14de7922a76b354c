"""Work on lessons: keep, find, edit, retire, age."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from archivist.access.rights import (
    Layer,
    Verb,
    decides,
    is_hidden_from,
    may,
    may_change,
    reads,
    writes,
)
from archivist.capture.clean import Cleaner, clean_name
from archivist.capture.runs import require_own_run, task_runs
from archivist.clock import from_text
from archivist.errors import ChangedError, InputError, NotFoundError, RecordError, StateError
from archivist.lessons.candidate import (
    FIXED_FIELDS,
    MANUAL_RUN,
    Candidate,
    KeptLesson,
    LessonChange,
    LessonChanges,
    NewLessonAttributes,
    Sighting,
    candidate_of,
    clean_lesson,
    clean_lesson_text,
    derive_tags,
    refuse_unknown,
    said_by,
)
from archivist.lessons.evidence_service import find_repository, met_with, require_support, resolve_evidence
from archivist.lessons.facets import facet_conditions, score_record
from archivist.lessons.quarantine import (
    APPROVAL_HINT,
    WAITS_FOR,
    lesson_suspicion,
    may_release,
    quarantine_reason,
)
from archivist.lessons.standing import (
    SUPERSEDES,
    AgeingResult,
    decay_lesson,
    find_lesson,
    is_confirmed,
    is_edit,
    is_of_person,
    is_reworded,
    lesson_text,
    lesson_version,
    merge_evidence,
    merge_sets,
    named_replacements,
    needs_version,
    note_claim,
    superseded_ids,
    unite_twins,
    with_status,
    without_old_words,
)
from archivist.lessons.support import choose_calls
from archivist.projects import RunNumbers, claim_name, names_of
from archivist.recall.query import LIVE, Query
from archivist.records import (
    ARCHIVIST,
    ActorKind,
    Brief,
    Episode,
    Event,
    Lesson,
    LessonType,
    Provenance,
    Source,
    Status,
    Tally,
)
from archivist.records.lesson import validate_lesson
from archivist.records.plain import decoder, from_plain, types_of
from archivist.records.shapes import USER_FEEDBACK, to_view
from archivist.records.words import MAX_RUN_COUNT, NOTES, RETIRED
from archivist.service import BankService, require_name
from archivist.store.filters import (
    Condition,
    any_of,
    at_least,
    at_most,
    equals,
    one_of,
    one_of_unindexed,
)

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

AGENT_ORIGIN = "agent"
# The role of an actor that recovers failed runs.
HEALER = "healer"
_SHARED_FIELDS = ("category", "scope", "task", "provider", "tool", "domain", "tags", "importance", "severity")
_MOST_CITED = 20
MOST_MET = ("-frequency", "-importance", "number")
_FILTERED = ("scope", "category", "type", "repo", "role", "domain")
# A text query without a limit: more results than a person reads.
_TEXT_HITS = 200
# What an agent may say of a lesson; the bank counts the rest.
_SUGGESTED_FIELDS = frozenset((
    "rule", "detail", "type", "category", "scope", "project", "repo", "task", "provider", "tool", "role",
    "domain", "tags", "importance", "severity",
))  # fmt: skip
# What makes a lesson believed: an agent must not set it.
_ORIGINS = (
    "origin", "origin_run", "signature", "prior_uses", "last_seen", "last_seen_run", "unseen_from",
    "superseded_by", "source",
)  # fmt: skip
_CHANGE_HINT = (
    "an agent may change only its own suggestions, until others confirm them: suggest a lesson of your own,"
    " or ask a person or the orchestrator"
)


class Lessons(BankService):
    """What was learnt."""

    # Keep

    @writes(Layer.LESSONS)
    def keep(self, candidate: Candidate, sighting: Sighting) -> KeptLesson:
        """Store a candidate as a new lesson, or as one more sighting of the lesson that it repeats."""
        return self.keep_many((candidate,), sighting)[0]

    @writes(Layer.LESSONS)
    def keep_many(
        self, candidates: Iterable[Candidate], sighting: Sighting, *, max_created: int | None = None
    ) -> list[KeptLesson]:
        """Keep the candidates of one sighting in order; those beyond `max_created` new ones are dropped.

        This is the only way in for a lesson. It cleans every text, finds the lesson that says the same,
        unites the evidence and decides the status.
        """
        # Comparing lessons needs rapidfuzz, which reading and editing them do not.
        from archivist.lessons.keep_service import keep_in_batches

        if sighting.provenance not in (Provenance.SUGGESTED, Provenance.REVIEWED):
            self.require(Layer.LESSONS, Verb.DECIDE)
        return keep_in_batches(self._bank, candidates, Cleaner().clean(sighting), max_created=max_created)

    @writes(Layer.LESSONS)
    def add(
        self,
        /,
        summary: str,
        *,
        type: LessonType | str | None = None,  # noqa: A002
        **fields: Unpack[NewLessonAttributes],
    ) -> Lesson:
        """Add a lesson by hand: active at once, and a preference unless the type is another.

        What an agent adds is a suggestion: a candidate, and a pattern unless the type is another.
        """
        refuse_unknown("add", fields, types_of(Lesson))
        values = {**fields, "type": str(type) if type else None}
        if self._bank.actor.kind is ActorKind.AGENT:
            return self._keep_suggestion(summary, values).lesson
        return self._keep_statement(summary, values).lesson

    @writes(Layer.LESSONS)
    def suggest(
        self,
        /,
        summary: str,
        *,
        run: str = "",
        evidence: Sequence[str] = (),
        supersedes: Sequence[str] = (),
        **fields: Any,
    ) -> KeptLesson:
        """Keep a lesson in the name of the actor, and say whether it is new or was met again.

        An agent's lesson stays a candidate until another run meets it; anybody else's is active at once. It
        supersedes the named lessons now, or those that the actor may not change when a person approves it;
        what a person said stays.
        """
        is_agent = self._bank.actor.kind is ActorKind.AGENT
        if is_agent:
            # Before the transaction: others need not wait while the cited events are searched.
            claim = f"{summary} . {fields.get('rule', '')}"
            require_support(self._bank, claim, evidence, self.get_many(supersedes))
        with self._bank.transaction():
            older = self.get_many(supersedes)
            if is_agent:
                kept = self._keep_suggestion(summary, fields, run=run.strip(), evidence=evidence)
            else:
                given = {name: value for name, value in fields.items() if value not in ("", ())}
                if evidence:
                    given["evidence"] = resolve_evidence(self._bank, evidence)
                kept = self._keep_statement(summary, {"type": LessonType.PATTERN.value, **given})
            return self._supersede(older, kept) if older else kept

    @writes(Layer.LESSONS)
    def merge(self, names: Sequence[str], *, summary: str = "", rule: str = "") -> KeptLesson:
        """Make one lesson of several that say the same; the others are superseded, their own runs counted.

        Where the actor may not change one of them, the merged lesson is a suggestion: it takes their place
        when a person approves it.
        """
        with self._bank.transaction() as writer:
            lessons = list({lesson.id: lesson for lesson in self.get_many(names)}.values())
            if len(lessons) < 2:
                raise InputError("name two different lessons", hint="archivist lessons list shows their ids")
            first, *others = lessons
            if not all(may_change(self._bank.actor, lesson) for lesson in lessons):
                words = summary or first.summary
                fields = {name: getattr(first, name) for name in (*_SHARED_FIELDS, "repo", "project")}
                shown = [lesson.evidence for lesson in lessons]
                entries = writer.records("entry", [name for each in shown for name in each.logs])
                cited = [*(name for each in shown for name in (*each.events, *each.episodes)), *entries]
                fields["rule"] = rule or first.rule
                return self.suggest(words, supersedes=names, evidence=cited[:_MOST_CITED], **fields)
            merged = first
            for other in others:
                merged = replace(
                    merged,
                    runs=merge_sets(merged.runs, other.runs) if other.provenance.is_own else merged.runs,
                    tags=tuple(dict.fromkeys((*merged.tags, *other.tags))),
                    evidence=merge_evidence(merged.evidence, other.evidence),
                    importance=max(merged.importance, other.importance),
                    remedies=tuple(dict.fromkeys((*merged.remedies, *other.remedies))),
                )
            merged = replace(merged, summary=summary or merged.summary, rule=rule or merged.rule)
            merged = self._settle(clean_lesson(validate_lesson(merged)))
            writer.put(merged, "merge")
            return self._supersede(others, KeptLesson(merged, LessonChange.MET))

    @decides(Layer.LESSONS)
    def join_twins(self) -> list[tuple[Lesson, Lesson]]:
        """Make one lesson of those that several clones learnt by themselves; return each with its twin."""
        believed = (one_of("status", (*LIVE, Status.ARCHIVED)), equals("is_waiting", 0))
        promote_at_runs = self._bank.config.lessons.promote_at_runs
        with self._bank.transaction() as writer:
            united = unite_twins(writer, writer.select(Lesson, *believed), promote_at_runs=promote_at_runs)
            for lesson, twin in united:
                writer.put(lesson, "share")
                writer.put(twin, "supersede")
        return united

    def _supersede(self, older: Sequence[Lesson], kept: KeptLesson) -> KeptLesson:
        """Retire older lessons in favour of one; those that the actor may not change when it is approved."""
        lesson = kept.lesson
        others = [other for other in older if other.id != lesson.id and not other.status.is_retired]
        for other in others:
            if may_change(self._bank.actor, other):
                self._retire(other.id, "supersede", lesson.id)
        pending = [other.id for other in others if not may_change(self._bank.actor, other)]
        if not pending:
            return kept
        if not may_change(self._bank.actor, lesson):
            raise InputError(
                f"{lesson.short_id} says the same, and only a person may let it take the place of others",
                hint=f"use other words, or ask for archivist lessons merge {lesson.short_id} …",
            )
        # Of a lesson that a person may have read, what it replaces is changed as its words are.
        edited = lesson.edited if kept.is_new else self._bank.now()
        lesson = replace(lesson, edited=edited, extra={**lesson.extra, SUPERSEDES: sorted(pending)})
        with self._bank.transaction() as writer:
            writer.put(lesson, "suggest")
        return kept._replace(lesson=lesson)

    def _keep_statement(self, summary: str, fields: dict[str, Any]) -> KeptLesson:
        """Keep what a person or an orchestrator states."""
        bank = self._bank
        given = {name: value for name, value in fields.items() if value is not None}
        words = " ".join(clean_lesson_text(summary).split())
        values = {
            "summary": words,
            "type": LessonType.PREFERENCE.value,
            "source": (Source.HEALER if bank.actor.role == HEALER else Source.MANUAL).value,
            "origin": USER_FEEDBACK,
            "origin_run": MANUAL_RUN,
            "runs": (MANUAL_RUN,),
            "tags": derive_tags(words),
        }
        with bank.transaction() as writer:
            if repo := given.get("repo"):
                given["repo"] = self._file_under(writer, repo)
            record = self._new_record(values | given)
            sighting = said_by(bank.actor, record.updated, writer.run_count())
            return self.keep(candidate_of(record, given=frozenset(given)), sighting)

    def _file_under(self, writer: Writer, repo: str) -> str:
        from archivist.projects import file_under

        return file_under(writer, repo, self._bank.folder, self._bank.root)

    def _keep_suggestion(
        self, summary: str, fields: dict[str, Any], *, run: str = "", evidence: Sequence[str] = ()
    ) -> KeptLesson:
        """Keep what an agent suggests: it may be wrong, or repeat a text that it read somewhere.

        A run that the bank does not know counts as the day does. An agent can invent names of runs, and
        repeating itself under several names must not make a lesson active.
        """
        bank = self._bank
        unknown = sorted(fields.keys() - _SUGGESTED_FIELDS)
        if unknown:
            raise RecordError(f"{unknown[0]}: an agent cannot set it")
        cited = resolve_evidence(self._bank, evidence)
        # Cleaned before they are lowered: the forms of keys are recognised by their capitals.
        tags = (clean_lesson_text(tag).strip().lower() for tag in fields.get("tags") or ())
        values = {name: value for name, value in fields.items() if value is not None}
        values["summary"] = " ".join(clean_lesson_text(summary).split())
        values["tags"] = tuple(dict.fromkeys(filter(None, tags)))
        source = Source.HEALER if bank.actor.role == HEALER else Source.ARCHIVIST
        record = self._new_record({**values, "origin": AGENT_ORIGIN, "source": source.value})
        if is_confirmed(record):
            raise InputError(
                "type: an agent cannot add a preference",
                hint="pattern, anti_pattern or archetype_hint; ask a person to add a preference",
            )
        now = record.created
        with bank.transaction() as writer:
            counted = f"told-{now.date().isoformat()}"
            # A run that an agent reported is as easy to invent as a name.
            if run and writer.is_own_run(run):
                counted = run
                cited = replace(cited, episodes=tuple(sorted({*cited.episodes, run})))
            record = replace(
                record,
                repo=record.repo or find_repository(writer, cited, record.scope),
                evidence=cited,
                runs=(counted,),
                origin_run=run or counted,
                last_seen_run=counted,
                last_seen=now,
            )
            most = bank.config.reflect.max_memories_per_run
            added = equals("origin_run", run), equals("origin", AGENT_ORIGIN)
            is_full = bool(run) and writer.count(Lesson, *added) >= most
            sighting = Sighting(
                provenance=Provenance.SUGGESTED,
                actor=bank.actor,
                now=now,
                run_count=writer.run_count(),
                run=counted,
                counted=counted,
            )
            kept = self.keep(replace(candidate_of(record), is_known_only=is_full), sighting)
            if kept.change is LessonChange.DROPPED:
                raise StateError(
                    f"run {run!r} has added {most} lessons already",
                    hint="keep the most important ones; reflect.max_memories_per_run is the limit",
                )
        return kept

    def _new_record(self, values: dict[str, Any]) -> Lesson:
        now, actor = self._bank.now(), self._bank.actor
        by = "" if actor.kind is ActorKind.HUMAN else actor.name
        times = {"created": now, "updated": now, "edited": now}
        made = {"id": self._bank.new_id(now), "actor": actor, "brought_by": by, **times}
        return validate_lesson(from_plain(Lesson, made | values))

    # Read

    @reads(Layer.LESSONS)
    def get(self, name: str) -> Lesson:
        """Return a lesson by its short id or its global one."""
        lessons = self.get_many((name,))
        if not lessons:
            raise NotFoundError("lesson", name)
        return lessons[0]

    @reads(Layer.LESSONS)
    def get_many(self, names: Iterable[str]) -> list[Lesson]:
        """Return lessons by their ids; for an agent without quarantined ones."""
        with self._bank.reading() as reader:
            lessons = [find_lesson(reader, name) for name in names]
        return [lesson for lesson in lessons if not is_hidden_from(lesson, self._bank.actor)]

    @reads(Layer.LESSONS)
    def query(self, query: Query) -> list[Lesson]:
        """Return the lessons that a query asks for, the best first.

        They are ranked by importance, recency and relevance unless the query names another preset. Without a
        text, relevance is the share of the asked tags that a lesson has.
        """
        from archivist.recall.scoring import Preset, is_match

        with self._bank.reading() as reader:
            conditions = self._conditions(reader, query)
            if query.text.strip():
                limit = _TEXT_HITS if query.limit is None else query.limit
                statuses = self._visible_statuses(query)
                preset = query.preset or Preset.ARCHIVIST
                # What only the record tells is looked at afterwards.
                is_closer = query.phase or query.error or query.task or query.provider
                asked = query._replace(
                    limit=_TEXT_HITS if is_closer else limit,
                    preset=preset,
                    statuses=statuses,
                    kinds=("lesson",),
                    task="",
                    provider="",
                )
                hits = self._bank.searches.recall(asked).hits if statuses else ()
                ids = [hit.id for hit in hits if not query.is_matching or is_match(hit.why.why)]
                found = {
                    lesson.id: lesson for lesson in reader.select(Lesson, one_of("id", ids), *conditions)
                }
                return [found[lesson_id] for lesson_id in ids if lesson_id in found][:limit]
            fields = ("id", "importance", "last_seen", "updated", "tags")
            rows = reader.select_fields(Lesson, fields, *conditions, order=("number",))
            now, rules = self._bank.now(), self._bank.config.recall
            scores = {
                name: score_record(
                    importance,
                    from_text(seen or updated),
                    json.loads(tags) if query.tags else (),
                    query.tags,
                    now=now,
                    rules=rules,
                )
                for name, importance, seen, updated, tags in rows
            }
            best = sorted(scores, key=lambda name: -scores[name])[: query.limit]
            records = reader.records("lesson", best)
            return [records[name] for name in best]

    @reads(Layer.LESSONS)
    def page(self, query: Query, *, after: Sequence[object] | None = None) -> list[Lesson]:
        """Return a page of the lessons that a query without a text asks for, the most frequent first.

        `after` is the sort key of the last lesson of the page before.
        """
        with self._bank.reading() as reader:
            conditions = self._conditions(reader, query)
            return reader.select(Lesson, *conditions, order=MOST_MET, after=after, limit=query.limit)

    def _visible_statuses(self, query: Query) -> tuple[Status, ...]:
        statuses = query.statuses or LIVE
        if self._bank.actor.kind is not ActorKind.AGENT:
            return statuses
        return tuple(status for status in statuses if status is not Status.QUARANTINED)

    def _conditions(self, reader: Reader, query: Query) -> list[Condition]:
        """Return what a lesson must be to answer a query, and to be shown to the actor."""
        query, actor = self._bank.searches.keep_apart(query), self._bank.actor
        statuses = self._visible_statuses(query)
        conditions: list[Condition] = [
            equals(field, value) for field in _FILTERED if (value := getattr(query, field))
        ]
        runs = task_runs(reader, query.task) if query.task else ()
        conditions += facet_conditions(query, runs, met_with(reader, query.provider))
        if actor.kind is ActorKind.AGENT:
            is_by_itself = (equals("provenance", Provenance.SUGGESTED), equals("brought_by", actor.name))
            conditions.append(any_of((equals("is_waiting", 0),), is_by_itself))
        # Most lessons of a repository are live, so an index on the status would only slow this down.
        is_of_most = {*LIVE} <= {*statuses} and len(conditions) == bool(query.repo)
        return [*conditions, (one_of_unindexed if is_of_most else one_of)("status", statuses)]

    @reads(Layer.LESSONS)
    def views(self, lessons: Sequence[Lesson]) -> list[dict[str, object]]:
        """Return lessons as plain values, with what is counted for each."""
        with self._bank.reading() as reader:
            ids = [lesson.id for lesson in lessons]
            tallies = reader.tallies(ids)
            numbers = RunNumbers(reader)
            unseen = {lesson.id: numbers.count_unseen(lesson) for lesson in lessons}
            pending = {name for lesson in lessons for name in superseded_ids(lesson)}
            found = reader.records("lesson", sorted(pending))
            retired = reader.select(Lesson, one_of("superseded_by", ids), order=("number",)) if ids else []
        return [
            {
                **to_view(lesson, tallies.get(lesson.id, Tally()), unseen[lesson.id]),
                "version": lesson_version(lesson),
                **named_replacements(lesson, found),
                "replaced": [other.short_id for other in retired if other.superseded_by == lesson.id],
                "quarantined_for": quarantine_reason(lesson),
                "waits_for": WAITS_FOR if lesson.is_waiting and not lesson.status.is_retired else "",
            }
            for lesson in lessons
        ]

    @reads(Layer.LESSONS)
    def latest(self, limit: int) -> list[Lesson]:
        """Return the newest lessons that are not retired."""
        statuses = (*LIVE, *(() if self._bank.actor.kind is ActorKind.AGENT else (Status.QUARANTINED,)))
        with self._bank.reading() as reader:
            found = reader.select(Lesson, one_of_unindexed("status", statuses), order=("-id",), limit=limit)
        return [lesson for lesson in found if not is_hidden_from(lesson, self._bank.actor)]

    @decides(Layer.LESSONS)
    def waiting(self, limit: int) -> list[Lesson]:
        """Return the lessons from elsewhere that no run is told before a person approves them."""
        with self._bank.reading() as reader:
            live, is_waiting = one_of("status", LIVE), equals("is_waiting", 1)
            return reader.select(Lesson, live, is_waiting, order=("number",), limit=limit)

    @reads(Layer.LESSONS)
    def of_run(self, episode: Episode) -> list[Lesson]:
        """Return the lessons about failures that a run met, and those that it met last."""
        notes = episode.extra.get(NOTES)
        failures = notes.get("failures") if isinstance(notes, dict) else None
        with self._bank.reading() as reader:
            found = reader.select(Lesson, one_of("signature", list(failures or {})), order=("number",))
            found += reader.select(Lesson, equals("last_seen_run", episode.id), order=("number",))
        unique = {lesson.id: lesson for lesson in found if episode.id in lesson.evidence.episodes}
        return [lesson for lesson in unique.values() if not is_hidden_from(lesson, self._bank.actor)]

    @reads(Layer.RUNS)
    def cited_calls(self, lesson: Lesson) -> dict[str, Event]:
        """Return by what it shows: a call that failed and one that worked, or the message of a wish."""
        with self._bank.reading() as reader:
            cited = reader.records("event", lesson.evidence.events).values()
        return choose_calls(lesson, list(cited))

    @reads(Layer.LESSONS)
    def lesson_names(self, ids: Collection[str] | None = None) -> dict[str, tuple[str, str]]:
        """Return the short id and the summary of every lesson, or of these, by its global id."""
        wanted = () if ids is None else (one_of("id", ids),)
        with self._bank.reading() as reader:
            rows = reader.select_fields(Lesson, ("id", "number", "summary"), *wanted)
        return {row[0]: (f"m-{row[1]:03d}", row[2]) for row in rows}

    # Decide

    @writes(Layer.LESSONS)
    def edit(self, /, name: str, **changes: Unpack[LessonChanges]) -> Lesson:
        """Change a lesson's words, scope or weight; the ledger keeps the earlier version."""
        types = types_of(Lesson)
        values = {}
        refuse_unknown("edit", changes, types)
        for field, value in changes.items():
            if field in FIXED_FIELDS:
                raise RecordError(f"{field}: cannot be edited")
            values[field] = decoder(types[field])(value)
        bank = self._bank
        with bank.transaction() as writer:
            lesson = find_lesson(writer, name)
            if values.get("repo", "") not in ("", lesson.repo) and bank.actor.kind is not ActorKind.AGENT:
                values["repo"] = self._file_under(writer, values["repo"])
            if "role" in values and lesson.is_learnt_hint:
                # A learnt role says who finds it, a stated one whom it is for.
                values.setdefault("type", LessonType.PATTERN)
            changed = replace(lesson, **without_old_words(writer, lesson, values))
            if changed == lesson:
                return lesson
            self._require_change(lesson, changed)
            changed = clean_lesson(validate_lesson(changed))
            is_suspicious = lesson.status is Status.QUARANTINED and bool(lesson_suspicion(changed))
            # A change of its weight or scope approves no lesson that waits.
            is_approved = not lesson.is_waiting or lesson_text(changed)[:-1] != lesson_text(lesson)[:-1]
            # Of words that an agent changed, a person's edit approves none that it does not restate.
            is_read = not is_reworded(lesson) or not any(
                getattr(lesson, field) for field in {"rule", "detail", "remedies"} - values.keys()
            )
            if bank.actor.kind is ActorKind.HUMAN and is_approved and is_read and not is_suspicious:
                # A person's words are believed, and later runs do not reword them.
                changed = replace(changed, confirmed=True)
                if lesson.is_found_useless and lesson_text(changed) != lesson_text(lesson):
                    # The verdicts were about other words.
                    extra = {key: value for key, value in lesson.extra.items() if key != RETIRED}
                    changed = replace(changed, status=Status.CANDIDATE, extra=extra)
            elif bank.actor.kind is not ActorKind.HUMAN and lesson_text(changed) != lesson_text(lesson):
                # What a person approved were other words.
                changed = replace(
                    changed,
                    confirmed=False,
                    accepted=False,
                    provenance=Provenance.SUGGESTED,
                    brought_by=bank.actor.name,
                )
            changed = self._settle(changed)
            if not is_edit(lesson, changed):
                # A tag must not let these words win over another clone's later ones.
                changed = replace(changed, edited=lesson.edited)
            if lesson.status is Status.QUARANTINED and changed.status.is_live:
                self._require_release(lesson)
            writer.put(changed, "edit")
        return changed

    @decides(Layer.LESSONS)
    def approve(self, name: str, version: str = "") -> Lesson:
        """Approve a lesson as it is worded; only a person may.

        `version` is that of the words that the person read: if they were changed, nothing is approved.
        Quarantined words, and an agent's that it has changed, are approved only by their version; how often
        somebody else met it is not approved. What it replaces is superseded, except what a person said.
        """
        with self._bank.transaction() as writer:
            lesson = find_lesson(writer, name)
            if self._bank.actor.kind is not ActorKind.HUMAN:
                self._bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=APPROVAL_HINT)
            if lesson.status.is_retired:
                undo = f"archivist undo {lesson.short_id}"
                raise StateError(f"lesson {name!r} is {lesson.status}", hint=undo)
            if lesson.confirmed:
                return lesson
            if version and version != lesson_version(lesson):
                raise ChangedError(lesson.short_id)
            if not version and needs_version(lesson):
                why = "is quarantined" if lesson.status is Status.QUARANTINED else "was changed by an agent"
                raise StateError(
                    f"{lesson.short_id} {why}: name the version that you read",
                    hint=f"archivist lessons show {lesson.short_id} prints it",
                )
            named = [writer.get(Lesson, other) for other in superseded_ids(lesson)]
            others = [other for other in named if other is not None and not other.status.is_retired]
            stay = [other.id for other in others if is_of_person(other)]
            extra = {name: value for name, value in lesson.extra.items() if name != SUPERSEDES}
            extra |= note_claim(lesson) | ({SUPERSEDES: stay} if stay else {})
            runs = lesson.runs[:1] if lesson.is_waiting else lesson.runs
            approved = self._settle(replace(lesson, confirmed=True, extra=extra, runs=runs))
            writer.put(approved, "approve")
            for other in others:
                if other.id not in stay:
                    self._retire(other.id, "supersede", approved.id)
        return approved

    @decides(Layer.LESSONS)
    def claim(self, repo: str, *, is_taken: bool = False) -> None:
        """Say that a name is that of the caller's repository; with `is_taken` also another one's name."""
        from archivist.capture.redaction import validate_name

        bank, repo = self._bank, validate_name("repo", repo)
        if bank.actor.kind is not ActorKind.HUMAN:
            bank.refuse(Layer.LESSONS, Verb.DECIDE, what=repo, hint="ask a person to claim the name")
        with bank.transaction() as writer:
            claim_name(writer, repo, bank.folder or bank.root, bank.root, is_taken=is_taken)
            self.join_twins()

    @writes(Layer.LESSONS)
    def forget(self, name: str) -> Lesson:
        """Move a lesson to the archive, whatever its frequency."""
        return self._retire(name, "forget")

    @writes(Layer.LESSONS)
    def archive(self, name: str, replacement: str = "") -> Lesson:
        """Retire a lesson; with a replacement it is superseded by that one."""
        return self._retire(name, "supersede" if replacement else "archive", replacement)

    def _retire(self, name: str, verb: str, replacement: str = "") -> Lesson:
        status = Status.SUPERSEDED if replacement else Status.ARCHIVED
        with self._bank.transaction() as writer:
            lesson = find_lesson(writer, name)
            by = find_lesson(writer, replacement).id if replacement else lesson.superseded_by
            if by == lesson.id:
                raise RecordError(f"lesson {name!r} cannot supersede itself")
            if lesson.status is status and lesson.superseded_by == by and not lesson.is_found_useless:
                return lesson
            self._require_change(lesson, lesson)
            # What a person decides needs no verdicts.
            extra = {name: value for name, value in lesson.extra.items() if name != RETIRED}
            retired = self._settle(replace(lesson, status=status, superseded_by=by, extra=extra))
            writer.put(retired, verb)
        return retired

    def _settle(self, lesson: Lesson) -> Lesson:
        """Return an edited lesson with the time of the edit and the status that follows from it."""
        now = self._bank.now()
        return self._with_status(replace(lesson, updated=now, edited=now))

    def _with_status(self, lesson: Lesson) -> Lesson:
        return with_status(lesson, promote_at_runs=self._bank.config.lessons.promote_at_runs)

    def _require_change(self, lesson: Lesson, changed: Lesson) -> None:
        """Refuse an agent that changes a lesson of others, or makes its own lesson believed."""
        if changed.confirmed and not lesson.confirmed and self._bank.actor.kind is not ActorKind.HUMAN:
            self._bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=APPROVAL_HINT)
        if may(self._bank.actor, Layer.LESSONS, Verb.DECIDE):
            return
        is_raised = is_confirmed(changed) or any(
            getattr(changed, field) != getattr(lesson, field) for field in _ORIGINS
        )
        if is_raised or not may_change(self._bank.actor, lesson):
            self._bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=_CHANGE_HINT)

    def _require_release(self, lesson: Lesson) -> None:
        if not may_release(self._bank.actor, lesson):
            self._bank.refuse(Layer.LESSONS, Verb.DECIDE, what=lesson.short_id, hint=APPROVAL_HINT)

    # Count

    @writes(Layer.LESSONS)
    def record_usage(self, names: Sequence[str], *, run: str = "") -> Brief | None:
        """Record in one write that these lessons were used; reading alone does not record it."""
        if not names:
            return None
        run = clean_name(run)
        with self._bank.transaction() as writer:
            if run:
                require_own_run(self._bank, writer, run)
            ids = tuple(dict.fromkeys(find_lesson(writer, name).id for name in names))
            now = self._bank.now()
            brief = Brief(id=self._bank.new_id(now), time=now, run=run, lessons=ids)
            writer.put(brief, "use")
        return brief

    @writes(Layer.RUNS)
    def decay(self, run: str) -> AgeingResult:
        """Count a run, and lower the frequency of its project's lessons that enough runs did not meet.

        The archivist ages them, whoever reports the run. A run counts once. Only own runs count: by reporting
        runs an agent could retire any lesson.
        """
        require_name(run, "run")
        rules, run = self._bank.config.decay, clean_name(run)
        faded, archived = list[Lesson](), list[Lesson]()
        archivist_bank = self._bank.acting_as(ARCHIVIST)
        with self._bank.transaction() as writer, archivist_bank.transaction() as archivist:
            require_own_run(self._bank, writer, run)
            if not may(self._bank.actor, Layer.LESSONS, Verb.DECIDE):
                return AgeingResult(was_counted=False)
            now = self._bank.now()
            known = writer.get(Episode, run)
            episode = known or Episode(id=run, started=now)
            if episode.number is not None or (known and not writer.is_own_run(run)):
                return AgeingResult(was_counted=False)
            count = min(writer.run_count() + 1, MAX_RUN_COUNT)
            # In a bank of before a log may have given it to a run.
            for holder in writer.select(Episode, equals("number", count)):
                writer.put(replace(holder, number=None), "age")
            (archivist if known else writer).put(replace(episode, number=count), "age")
            numbers = RunNumbers(writer)
            due_from = dict.fromkeys(
                names_of(writer, episode.project), numbers.due_from(episode.project, rules.unseen_runs)
            )
            due_from[""] = numbers.due_from("", rules.unseen_runs)
            is_due = ((equals("repo", name), at_most("unseen_from", due)) for name, due in due_from.items())
            due = any_of(*is_due, (at_least("unseen_from", count),), (equals("last_seen_run", run),))
            for lesson in writer.select(Lesson, one_of("status", LIVE), due):
                after = decay_lesson(
                    lesson,
                    run=run,
                    run_count=count,
                    now=now,
                    due_from=due_from.get(lesson.repo),
                    preferences_fade=rules.preferences_fade,
                )
                after = after if after.faded == lesson.faded else self._with_status(after)
                if archivist.put(after, "decay") and after.faded != lesson.faded:
                    (archived if after.status is Status.ARCHIVED else faded).append(after)
        return AgeingResult(tuple(faded), tuple(archived))
