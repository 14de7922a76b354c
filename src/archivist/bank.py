"""The one way in: a bank composes the rooms, owns the transactions and knows who acts.

A room is imported by the call that needs it: a brief must not wait for what only reflection uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist import config as configuration
from archivist.brief.rendering import BriefFormat, render
from archivist.brief.selection import GENERAL, Chosen, choose
from archivist.clock import Clock, system_clock
from archivist.config import Config
from archivist.errors import InputError, NotFoundError, NothingToUndoError, RecordError
from archivist.ids import IdSource, new_id
from archivist.places import CONFIG_NAME, bank_file
from archivist.records import (
    Actor,
    ActorKind,
    Brief,
    Episode,
    EpisodeStatus,
    Event,
    EventKind,
    Finding,
    Lesson,
    LessonType,
    Source,
    Status,
    Tally,
    Verdict,
)
from archivist.records.episode import updated
from archivist.records.lesson import SHORT_ID, checked
from archivist.stores.filters import Condition, any_of, at_least, at_most, equals, has, one_of
from archivist.stores.ledger import Change, Verification, undo_target
from archivist.stores.protocol import Reader, Store, Writer
from archivist.stores.rows import KINDS

if TYPE_CHECKING:
    from archivist.audit.report import Report
    from archivist.audit.verdicts import Regression
    from archivist.recall.keywords import Overlap
    from archivist.recall.query import LessonQuery
    from archivist.reflect.extraction import Extraction, Known
    from archivist.stores.files import Shape, Taken
    from archivist.stores.share import Shared

MANUAL_RUN = "manual"
_TAGS_FROM_TEXT = 5
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
    "extra",
}


@dataclass(frozen=True, slots=True)
class Told:
    """A brief: its text, the lessons in it, and the record's id when it was recorded."""

    text: str
    chosen: tuple[Chosen, ...]
    brief_id: str = ""


@dataclass(frozen=True, slots=True)
class Aged:
    """What a run's passing did: lessons that faded and lessons that were archived."""

    faded: tuple[Lesson, ...] = ()
    archived: tuple[Lesson, ...] = ()
    was_counted: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """Everything that finishing a run did."""

    run: str
    events: int
    extraction: Extraction
    aged: Aged
    verdicts: tuple[Verdict, ...]
    regressions: tuple[Regression, ...]


class Bank:
    """The memory of one project."""

    def __init__(
        self, store: Store, *, path: Path, actor: Actor, config: Config, clock: Clock, ids: IdSource
    ) -> None:
        self._store = store
        self.path = path
        self.actor = actor
        self.config = config
        self._clock = clock
        self._ids = ids

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = True,
        actor: Actor | None = None,
        config: Config | None = None,
        clock: Clock = system_clock,
        ids: IdSource = new_id,
    ) -> Bank:
        """Open the bank of a project folder (or a bank's file), making it when there is none."""
        from archivist.stores.sqlite import SqliteStore

        file = bank_file(Path(path))
        settings = config or configuration.load(file.parent / CONFIG_NAME)
        store = SqliteStore.open(file, create=create, busy_timeout_s=settings.store.busy_timeout_s)
        who = actor or Actor(ActorKind.HUMAN)
        return cls(store, path=file, actor=who, config=settings, clock=clock, ids=ids)

    def acting_as(self, actor: Actor) -> Bank:
        """Return the same bank in another actor's name."""
        return Bank(
            self._store, path=self.path, actor=actor, config=self.config, clock=self._clock, ids=self._ids
        )

    def close(self) -> None:
        """Let go of the bank."""
        self._store.close()

    def __enter__(self) -> Bank:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Make everything inside the block one change: all of it is kept, or none."""
        with self._store.writing(self.actor, self._clock()) as writer:
            yield writer

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Read within one unchanging view."""
        with self._store.reading() as reader:
            yield reader

    # Lessons

    def add(self, summary: str, *, type: LessonType | str = LessonType.PREFERENCE, **fields: Any) -> Lesson:  # noqa: A002
        """Add a lesson by hand: active at once, seen in no run yet but counted as once said."""
        from archivist.age.promotion import standing
        from archivist.records.plain import from_plain
        from archivist.records.shapes import USER_FEEDBACK

        now = self._clock()
        words = [word for word in _in_order(summary) if len(word) >= 4]
        values = {
            "id": self._ids(now),
            "created": now,
            "updated": now,
            "edited": now,
            "summary": summary.strip(),
            "type": str(type),
            "source": Source.MANUAL.value,
            "origin": USER_FEEDBACK,
            "origin_run": MANUAL_RUN,
            "runs": (MANUAL_RUN,),
            "tags": tuple(words[:_TAGS_FROM_TEXT]),
            "actor": self.actor,
        } | {name: value for name, value in fields.items() if value is not None}
        lesson = checked(from_plain(Lesson, values))
        with self.transaction() as writer:
            lesson = replace(lesson, number=writer.next_number(), unseen_from=writer.run_count())
            lesson = standing(lesson, promote_at_runs=self.config.lessons.promote_at_runs)
            writer.put(lesson, "add")
        return lesson

    def get(self, name: str) -> Lesson:
        """Return a lesson by its short id or its global one."""
        with self.reading() as reader:
            return _lesson(reader, name)

    def query(self, query: LessonQuery) -> list[Lesson]:
        """Return the lessons that a query asks for: the best text matches first, else the most frequent."""
        from archivist.recall.keywords import keywords

        with self.reading() as reader:
            conditions = _conditions(query)
            if not query.text.strip():
                order = ("-frequency", "-importance", "number")
                return reader.select(Lesson, *conditions, order=order, limit=query.limit)
            hits = reader.search(sorted(keywords(query.text)), kinds=("lesson",), scope=(), limit=1000)
            found = {lesson.id: lesson for lesson in reader.select(Lesson, *conditions)}
            ranked = [found[hit.id] for hit in hits if hit.id in found]
            return ranked[: query.limit] if query.limit is not None else ranked

    def views(self, lessons: Sequence[Lesson]) -> list[dict[str, object]]:
        """Return lessons as plain values, with what is counted for each."""
        from archivist.records.shapes import to_view

        with self.reading() as reader:
            tallies = reader.tallies([lesson.id for lesson in lessons])
            count = reader.run_count()
            return [to_view(lesson, tallies.get(lesson.id, Tally()), count) for lesson in lessons]

    def edit(self, name: str, **changes: Any) -> Lesson:
        """Change a lesson's words, scope or weight; its history keeps what it was."""
        from archivist.age.promotion import standing
        from archivist.records.plain import decoder, types_of

        kinds = types_of(Lesson)
        values = {}
        for field, value in changes.items():
            if field not in kinds or field in _FIXED_FIELDS:
                raise RecordError(f"{field}: cannot be edited")
            values[field] = decoder(kinds[field])(value)
        with self.transaction() as writer:
            lesson = _lesson(writer, name)
            changed = replace(lesson, **values)
            if changed == lesson:
                return lesson
            now = self._clock()
            changed = checked(replace(changed, updated=now, edited=now))
            changed = standing(changed, promote_at_runs=self.config.lessons.promote_at_runs)
            writer.put(changed, "edit")
        return changed

    def forget(self, name: str) -> Lesson:
        """Move a lesson to the archive, whatever its frequency."""
        return self._retire(name, Status.ARCHIVED, "", "forget")

    def archive(self, name: str, replacement: str = "") -> Lesson:
        """Retire a lesson; with a replacement it is superseded by that."""
        if not replacement:
            return self._retire(name, Status.ARCHIVED, "", "archive")
        return self._retire(name, Status.SUPERSEDED, replacement, "supersede")

    def record_usage(self, names: Sequence[str], *, run: str = "") -> Brief | None:
        """Record in one write that these lessons were used; reading alone never does."""
        if not names:
            return None
        with self.transaction() as writer:
            ids = tuple(dict.fromkeys(_lesson(writer, name).id for name in names))
            now = self._clock()
            brief = Brief(id=self._ids(now), time=now, run=run, lessons=ids)
            writer.put(brief, "use")
        return brief

    # Ledger

    def history(self, name: str) -> list[Change]:
        """Return every change of a record, oldest first."""
        with self.reading() as reader:
            changes = reader.changes(record_id=_record_id(reader, name))
            if not changes:
                raise NotFoundError("lesson", name)
            return changes

    def undo(self, name: str) -> Lesson | Episode | Brief | Verdict | None:
        """Take the last change of a record back; None when that was its making, so that it is gone."""
        from archivist.records.plain import from_plain

        with self.transaction() as writer:
            record_id = _record_id(writer, name)
            changes = [change for change in writer.changes(record_id=record_id) if change.entry.kind in KINDS]
            changes = [change for change in changes if change.entry.kind != "event"]
            target = undo_target(changes)
            if target is None:
                raise NothingToUndoError(name)
            taken, before = target
            if before is not None and before.is_erased:
                raise NothingToUndoError(name)
            kind = KINDS[taken.entry.kind]
            verb = f"undo {taken.entry.seq}"
            if before is None or before.after is None:
                writer.remove(kind, record_id, verb)
                return None
            record: Any = from_plain(kind, before.after)
            writer.put(record, verb)
            return record  # type: ignore[no-any-return]

    def verify(self) -> Verification:
        """Check the whole ledger, and every record against it."""
        with self.reading() as reader:
            return reader.verify()

    # Runs

    def record_episode(self, episode: Episode) -> Episode:
        """Record what a run was; a run that is known already is brought up to date."""
        return self.capture(episode, ())

    def capture(self, episode: Episode, events: Iterable[Event]) -> Episode:
        """Take a run in with its events. Taking the same run again changes nothing."""
        with self.transaction() as writer:
            known = writer.get(Episode, episode.id)
            episode = updated(known, episode) if known else episode
            writer.put(episode, "capture")
            writer.put_events(episode.id, events, "capture")
        return episode

    def extract(self, run: str, *, domain: str = "") -> Extraction:
        """Learn from the review findings of a captured run."""
        from archivist.reflect.extraction import extract, sightings

        with self.transaction() as writer:
            episode = _episode(writer, run)
            found = sightings(_events(writer, run, EventKind.VERDICT))
            counted = writer.select(Lesson, has("runs", run))
            known = _known(writer, counted)
            now = self._clock()
            result = extract(
                found,
                known,
                lambda lesson_id: _lesson(writer, lesson_id),
                cited={event for lesson in counted for event in lesson.evidence.events},
                run=run,
                domain=domain or episode.domain or GENERAL,
                run_count=episode.number or writer.run_count() + 1,
                now=now,
                actor=self.actor,
                rules=self.config.lessons,
                new_id=lambda: self._ids(now),
            )
            met = tuple(lesson for lesson in result.met if writer.put(lesson, "see"))
            created = tuple(replace(lesson, number=writer.next_number()) for lesson in result.created)
            for lesson in created:
                writer.put(lesson, "extract")
        return replace(result, met=met, created=created)

    def decay(self, run: str) -> Aged:
        """Let a run age the bank: lessons that enough runs did not meet fade. A run ages it only once."""
        from archivist.age.decay import decayed

        rules = self.config.decay
        with self.transaction() as writer:
            now = self._clock()
            episode = writer.get(Episode, run) or Episode(id=run, started=now)
            if episode.number is not None:
                return Aged(was_counted=False)
            count = writer.run_count() + 1
            writer.put(replace(episode, number=count), "age")
            due = any_of(
                (at_most("unseen_from", count - rules.unseen_runs),), (equals("last_seen_run", run),)
            )
            faded: list[Lesson] = []
            archived: list[Lesson] = []
            for lesson in writer.select(Lesson, one_of("status", (Status.ACTIVE, Status.CANDIDATE)), due):
                after = decayed(
                    lesson,
                    run=run,
                    run_count=count,
                    now=now,
                    unseen_runs=rules.unseen_runs,
                    preferences_fade=rules.preferences_fade,
                    promote_at_runs=self.config.lessons.promote_at_runs,
                )
                if not writer.put(after, "decay") or after.faded == lesson.faded:
                    continue
                (archived if after.status is Status.ARCHIVED else faded).append(after)
        return Aged(tuple(faded), tuple(archived))

    def start_run(
        self,
        run: str,
        *,
        task: str = "",
        domain: str = "",
        role: str = "",
        form: BriefFormat = BriefFormat.KNOWN_ISSUES,
        beside: Bank | None = None,
    ) -> Told:
        """Open a run and brief it: what an orchestrator calls before it spawns agents."""
        with self.transaction():
            opened = Episode(id=run, task=task, domain=domain, started=self._clock())
            with self.reading() as reader:
                is_known = reader.get(Episode, run) is not None
            if not is_known:
                self.record_episode(opened)
            return self.brief(domain=domain, role=role, run=run, form=form, beside=beside)

    def finish_run(
        self,
        episode: Episode,
        events: Sequence[Event],
        *,
        status: EpisodeStatus | None = None,
        domain: str = "",
        beside: Bank | None = None,
    ) -> Finished:
        """Close a run: capture, extract, decay, audit and look for regressions, as one change."""
        with self.transaction() as writer:
            if status is not None:
                known = writer.get(Episode, episode.id)
                finished = episode.finished or (known.finished if known else None) or self._clock()
                episode = replace(episode, status=status, finished=finished)
            self.capture(episode, events)
            extraction = self.extract(episode.id, domain=domain)
            aged = self.decay(episode.id)
            verdicts = self.audit(episode.id, beside=beside) if events else []
            came_back = self.regressions(episode.id)
        return Finished(episode.id, len(events), extraction, aged, tuple(verdicts), tuple(came_back))

    # Brief

    def brief(
        self,
        *,
        domain: str = "",
        role: str = "",
        run: str = "",
        max_lessons: int | None = None,
        form: BriefFormat = BriefFormat.KNOWN_ISSUES,
        beside: Bank | None = None,
    ) -> Told:
        """Say what a new run should know; with a run, record it. `beside` is the global bank."""
        rules = self.config.brief
        if max_lessons is not None:
            rules = replace(rules, max_lessons=max_lessons)
        offered = [Chosen(lesson) for lesson in self.offers(domain, role, rules)]
        if beside is not None:
            offered += [Chosen(lesson, is_global=True) for lesson in beside.offers(domain, role, rules)]
        chosen = tuple(choose(offered, domain=domain, role=role, rules=rules))
        brief_id = ""
        if run:
            now = self._clock()
            brief_id = self._ids(now)
            record = Brief(id=brief_id, time=now, run=run, domain=domain, role=role)
            mine = tuple(each.lesson.id for each in chosen if not each.is_global)
            theirs = tuple(each.lesson.id for each in chosen if each.is_global)
            with self.transaction() as writer:
                writer.put(replace(record, lessons=mine), "brief")
            if beside is not None and theirs:
                with beside.transaction() as writer:
                    writer.put(replace(record, lessons=theirs), "brief")
        return Told(render(chosen, form), chosen, brief_id)

    # Audit

    def audit(self, run: str, *, beside: Bank | None = None) -> list[Verdict]:
        """Judge each lesson that a run was told by what its reviewers found."""
        with self.transaction() as writer:
            _episode(writer, run)
            if not writer.count(Event, equals("run", run)):
                raise InputError(
                    f"run {run!r} has no events yet", hint="archivist extract EVENTS.jsonl takes them in"
                )
            findings = _findings(writer, run)
            verdicts = self.judge(writer, run, findings)
        if beside is not None:
            with beside.transaction() as writer:
                verdicts += beside.judge(writer, run, findings)
        return verdicts

    def audit_report(self) -> Report:
        """Sum up how the briefed lessons did."""
        from archivist.audit.report import report

        with self.reading() as reader:
            return report(reader.select(Verdict, order=("time",)), self.lesson_names())

    def regressions(self, run: str) -> list[Regression]:
        """Return what earlier runs had fixed and this one's reviewers found again."""
        from archivist.audit.verdicts import regressions

        with self.reading() as reader:
            _episode(reader, run)
            fixes = reader.select(Event, equals("kind", EventKind.FIX), order=("-time",))
            return regressions(fixes, _findings(reader, run), run=run, overlap=self._overlap)

    # Files

    def export(self, folder: Path, *, shape: Shape | None = None) -> dict[str, int]:
        """Write the bank as JSON lines in the documents' shapes; return how many lines each file has."""
        from archivist.jsonl import write_lines
        from archivist.stores.files import Shape, export_lines

        with self.reading() as reader:
            lines = export_lines(reader, shape or Shape.CROSS_RUN)
        return {name: write_lines(folder / name, values) for name, values in lines.items()}

    def import_files(self, paths: Sequence[Path], *, is_strict: bool = False) -> Taken:
        """Take exported files in: new records are added, known ones merged, bad lines left out."""
        from archivist.stores import files

        parcel = files.read_files(paths)
        if is_strict and parcel.problems:
            raise InputError(
                f"{len(parcel.problems)} bad lines, nothing was taken; the first: {parcel.problems[0]}",
                hint="without --strict the good lines are taken",
            )
        with self.transaction() as writer:
            return files.take(writer, parcel, promote_at_runs=self.config.lessons.promote_at_runs)

    def share(self, folder: Path) -> Shared:
        """Bring the bank and a folder kept in git together: take what others wrote, write what is ours."""
        from archivist.stores import share

        with self.transaction() as writer:
            replica = writer.setting("bank_id")
            if not replica:
                replica = self._ids(self._clock())
                writer.set_setting("bank_id", replica)
        pool = share.read_pool(folder, replica)
        with self.transaction() as writer:
            changed = share.take(writer, pool, promote_at_runs=self.config.lessons.promote_at_runs)
        with self.reading() as reader:
            ours = share.own_lines(reader, pool, promote_at_runs=self.config.lessons.promote_at_runs)
        written = share.write(folder, replica, ours)
        return share.Shared(changed=changed, written=written, problems=pool.problems)

    # The bank itself

    def status(self) -> dict[str, int]:
        """Return how much of everything there is."""
        with self.reading() as reader:
            lessons = {f"{word}_lessons": reader.count(Lesson, equals("status", word)) for word in Status}
            return {
                **lessons,
                "runs": reader.count(Episode),
                "runs_counted": reader.run_count(),
                "events": reader.count(Event),
                "briefs": reader.count(Brief),
                "verdicts": reader.count(Verdict),
            }

    def lesson_names(self) -> dict[str, tuple[str, str]]:
        """Return the short id and the words of every lesson by its global id."""
        with self.reading() as reader:
            rows = reader.select_fields(Lesson, ("id", "number", "summary"))
            return {row[0]: (f"m-{row[1]:03d}", row[2]) for row in rows}

    def reindex(self) -> None:
        """Build everything derived again from the records."""
        self._store.reindex()

    @property
    def _overlap(self) -> Overlap:
        from archivist.recall.keywords import Overlap

        return Overlap(self.config.lessons.finding_overlap, self.config.lessons.lesson_overlap)

    def _retire(self, name: str, status: Status, replacement: str, verb: str) -> Lesson:
        with self.transaction() as writer:
            lesson = _lesson(writer, name)
            by = _lesson(writer, replacement).id if replacement else lesson.superseded_by
            if by == lesson.id:
                raise RecordError(f"lesson {name!r} cannot supersede itself")
            if lesson.status is status and lesson.superseded_by == by:
                return lesson
            now = self._clock()
            retired = replace(lesson, status=status, superseded_by=by, updated=now, edited=now)
            writer.put(retired, verb)
        return retired

    def offers(self, domain: str, role: str, rules: configuration.BriefRules) -> list[Lesson]:
        """Return the most frequent lessons that a brief for this domain and role may choose from."""
        fitting = []
        if domain:
            fitting.append(one_of("domain", (domain, GENERAL)))
        if role:
            fitting.append(one_of("role", (role, "")))
        conditions: list[Condition] = [equals("status", Status.ACTIVE)]
        if fitting:
            conditions.append(any_of(fitting, (at_least("frequency", rules.always_at_frequency),)))
        with self.reading() as reader:
            return reader.select(Lesson, *conditions, order=("-frequency", "number"), limit=rules.max_lessons)

    def judge(self, writer: Writer, run: str, findings: Sequence[Finding]) -> list[Verdict]:
        """Write this bank's verdicts on what a run was told, given what its reviewers found."""
        from archivist.audit.verdicts import judge

        briefs = writer.select(Brief, equals("run", run), order=("time", "id"))
        ids = list(dict.fromkeys(lesson for brief in briefs for lesson in brief.lessons))
        lessons = [lesson for lesson_id in ids if (lesson := writer.get(Lesson, lesson_id))]
        verdicts = judge(lessons, findings, run=run, now=self._clock(), overlap=self._overlap)
        settled = []
        for verdict in verdicts:
            known = writer.get(Verdict, verdict.id)
            if known is not None and known.effect is verdict.effect:
                settled.append(known)
                continue
            writer.put(verdict, "judge")
            settled.append(verdict)
        return settled


def _in_order(text: str) -> list[str]:
    from archivist.recall.keywords import keywords

    wanted = keywords(text)
    words = ("".join(c if c.isalnum() else " " for c in text.lower())).split()
    return list(dict.fromkeys(word for word in words if word in wanted))


def _lesson(reader: Reader, name: str) -> Lesson:
    short = SHORT_ID.fullmatch(name.lower())
    if short:
        found = reader.select(Lesson, equals("number", int(short[1])), limit=1)
        if found:
            return found[0]
    lesson = reader.get(Lesson, name)
    if lesson is None:
        raise NotFoundError("lesson", name)
    return lesson


def _record_id(reader: Reader, name: str) -> str:
    return _lesson(reader, name).id if SHORT_ID.fullmatch(name.lower()) else name


def _episode(reader: Reader, run: str) -> Episode:
    episode = reader.get(Episode, run)
    if episode is None:
        raise NotFoundError("run", run)
    return episode


def _events(reader: Reader, run: str, kind: EventKind) -> list[Event]:
    return reader.select(Event, equals("run", run), equals("kind", kind), order=("seq",))


def _findings(reader: Reader, run: str) -> list[Finding]:
    return [finding for event in _events(reader, run, EventKind.VERDICT) for finding in event.findings]


def _known(reader: Reader, counted: Sequence[Lesson]) -> list[Known]:
    """Return the live lessons as matching needs them, and those this run was counted for."""
    import json

    from archivist.reflect.extraction import Known

    live = reader.select_fields(
        Lesson,
        ("id", "summary", "tags"),
        one_of("status", (Status.ACTIVE, Status.CANDIDATE, Status.QUARANTINED)),
    )
    known = {row[0]: Known(row[0], row[1], tuple(json.loads(row[2]))) for row in live}
    known |= {lesson.id: Known(lesson.id, lesson.summary, lesson.tags) for lesson in counted}
    return list(known.values())


def _conditions(query: LessonQuery) -> list[Condition]:
    conditions: list[Condition] = [one_of("status", query.statuses)] if query.statuses else []
    for field in ("scope", "category", "type", "repo", "task", "provider", "tool", "role", "domain"):
        value = getattr(query, field)
        if value:
            conditions.append(equals(field, value))
    if query.tags:
        conditions.append(any_of(*((has("tags", tag),) for tag in query.tags)))
    return conditions
