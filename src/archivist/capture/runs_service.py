"""Work on runs: capture, learn from findings, age, audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, Verb, may
from archivist.audit.lift import HOLDOUT_SHARE as HOLDOUT
from archivist.audit.report import RecommendedStep, Report, build_report, recommend_steps
from archivist.audit.verdicts import Regression, RunEvidence, regressions
from archivist.audit.verdicts import judge_lessons as judge_lessons
from archivist.brief.select import GENERAL
from archivist.errors import InputError, NotFoundError
from archivist.lessons import service as lesson_desk
from archivist.lessons.decay import decay_lesson
from archivist.recall.keywords import Overlap
from archivist.records import (
    Brief,
    Effect,
    Episode,
    EpisodeStatus,
    Event,
    EventKind,
    Finding,
    Following,
    Lesson,
    LessonType,
    Status,
    Verdict,
)
from archivist.records.episode import merge_episode
from archivist.records.words import NOTES as NOTES
from archivist.reflect.findings import Extraction, LessonStub, run_findings
from archivist.reflect.findings import extract as extract_findings
from archivist.service import require_name
from archivist.store.filters import any_of, at_most, contains_item, equals, one_of
from archivist.store.protocol import Reader, Writer

if TYPE_CHECKING:
    from archivist.bank import Bank


LATEST = ("-finished", "-started", "id")
# So many fixes most like a finding are compared with it.
_FIXES = 50
# So many of a run's events are searched for signs that a lesson was followed.
_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class AgeingResult:
    """What a run's passing did: lessons that faded and lessons that were archived."""

    faded: tuple[Lesson, ...] = ()
    archived: tuple[Lesson, ...] = ()
    was_counted: bool = True


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Everything that finishing a run did."""

    run: str
    events: int
    extraction: Extraction
    aged: AgeingResult
    verdicts: tuple[Verdict, ...]
    regressions: tuple[Regression, ...]


def capture(bank: Bank, episode: Episode, events: Iterable[Event]) -> Episode:
    """Take a run in with its events. Taking the same run again changes nothing."""
    require_name(episode.id, "run")
    with bank.transaction() as writer:
        known = writer.get(Episode, episode.id)
        # What was tried is written by those who log attempts, not by whoever brings a run of the same name.
        if episode.action or (known and known.action):
            bank.require(Layer.EPISODES, Verb.WRITE)
        episode = merge_episode(known, episode) if known else episode
        writer.put(episode, "capture")
        writer.put_events(episode.id, events, "capture")
    return episode


def extract(bank: Bank, run: str, domain: str) -> Extraction:
    """Learn from the review findings of a captured run."""
    with bank.transaction() as writer:
        episode = find(writer, run)
        found = run_findings(_events(writer, run, EventKind.VERDICT))
        if not found:
            # Nothing to compare with every lesson that there is.
            return Extraction((), (), 0)
        counted = writer.select(Lesson, contains_item("runs", run))
        now = bank.now()
        result = extract_findings(
            found,
            _matchable_lessons(writer, counted),
            lambda lesson_id: lesson_desk.find(writer, lesson_id),
            cited={event for lesson in counted for event in lesson.evidence.events},
            run=run,
            domain=domain or episode.domain or GENERAL,
            run_count=episode.number or writer.run_count() + 1,
            now=now,
            actor=bank.actor,
            rules=bank.config.lessons,
            new_id=lambda: bank.new_id(now),
        )
        met = tuple(
            lesson
            for lesson in (_with_trusted_status(bank, writer, each) for each in result.met)
            if writer.put(lesson, "see")
        )
        created = tuple(
            replace(_with_trusted_status(bank, writer, lesson), number=writer.next_number())
            for lesson in result.created
        )
        for lesson in created:
            writer.put(lesson, "extract")
    return replace(result, met=met, created=created)


def _with_trusted_status(bank: Bank, reader: Reader, lesson: Lesson) -> Lesson:
    """Return a lesson that was met with the standing it had, where only an agent says that it was."""
    if may(bank.actor, Layer.LESSONS, Verb.DECIDE):
        return lesson
    before = reader.get(Lesson, lesson.id)
    if lesson.status is Status.QUARANTINED:
        return lesson
    return replace(lesson, status=before.status if before else Status.CANDIDATE)


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


def open_run(bank: Bank, run: str, task: str, domain: str, repo: str = "") -> None:
    """Record that a run has begun; one that is known already is left as it is."""
    with bank.transaction() as writer:
        if writer.get(Episode, run) is None:
            begun = Episode(id=run, project=repo, task=task, domain=domain, started=bank.now())
            capture(bank, begun, ())


def finish(
    bank: Bank,
    episode: Episode,
    events: Sequence[Event],
    *,
    status: EpisodeStatus | None,
    domain: str,
    global_bank: Bank | None,
) -> FinishedRun:
    """Close a run: capture, extract, decay, audit and look for regressions, as one change."""
    from archivist.core.proposals_service import propose_rules_quietly

    with bank.transaction() as writer:
        known = writer.get(Episode, episode.id)
        finished = episode.finished or (known.finished if known else None) or bank.now()
        told = [status, episode.status, known.status if known else None]
        # Nobody said what it came to.
        closed = next(
            (each for each in told if each and each is not EpisodeStatus.RUNNING), EpisodeStatus.PARTIAL
        )
        episode = replace(episode, status=closed, finished=finished)
        capture(bank, episode, events)
        extraction = extract(bank, episode.id, domain)
        aged = decay(bank, episode.id)
        verdicts = audit(bank, episode.id, global_bank) if events else []
        came_back = find_regressions(bank, episode.id)
    propose_rules_quietly(bank)
    return FinishedRun(episode.id, len(events), extraction, aged, tuple(verdicts), tuple(came_back))


def audit(bank: Bank, run: str, global_bank: Bank | None) -> list[Verdict]:
    """Judge each lesson that a run was told by what its reviewers found."""
    with bank.transaction() as writer:
        find(writer, run)
        if not writer.count(Event, equals("run", run)):
            raise InputError(
                f"run {run!r} has no events yet", hint="archivist extract EVENTS.jsonl takes them in"
            )
        evidence = _load_evidence(writer, run)
        is_briefed = bool(writer.count(Brief, equals("run", run))) or global_bank is not None
        events = writer.select(Event, equals("run", run), order=("seq",), limit=_EVENTS) if is_briefed else ()
        verdicts = _judge(bank, writer, run, evidence, events)
    if global_bank is not None:
        with global_bank.transaction() as writer:
            verdicts += _judge(global_bank, writer, run, evidence, events)
    return verdicts


def audit_report(bank: Bank) -> Report:
    """Sum up how the briefed lessons did."""
    with bank.reading() as reader:
        share = bank.config.brief.holdout or HOLDOUT
        return build_report(reader.select(Verdict, order=("time",)), bank.lesson_names(), share)


def find_regressions(bank: Bank, run: str) -> list[Regression]:
    """Return what earlier runs had fixed and this one's reviewers found again."""
    with bank.reading() as reader:
        find(reader, run)
        findings = _findings(reader, run)
        return regressions(_similar_fixes(reader, findings), findings, run=run, overlap=_overlap(bank))


def _similar_fixes(reader: Reader, findings: Sequence[Finding]) -> list[Event]:
    """Return the fixes that share words with the findings, the newest first."""
    from archivist.recall.keywords import keywords
    from archivist.store.results import SearchFilter, TextQuery
    from archivist.store.scope_tokens import scope_token

    fixes = SearchFilter(groups=((scope_token("event", EventKind.FIX),),))
    found: dict[str, Event] = {}
    for finding in findings:
        words = TextQuery(tuple(sorted(keywords(finding.description))))
        places = [hit.place for hit in reader.search(words, search_filter=fixes, limit=_FIXES)]
        found |= reader.records("event", [each.record for each in reader.indexed_documents(places).values()])
    return sorted(found.values(), key=lambda event: (event.time is not None, event.time), reverse=True)


def list_runs(
    bank: Bank, project: str, task: str, limit: int | None, after: Sequence[object] | None = None
) -> list[Episode]:
    """Return the runs, the latest first, of one project or task; behind a place in that order."""
    conditions = [equals(field, value) for field, value in (("project", project), ("task", task)) if value]
    with bank.reading() as reader:
        return reader.select(Episode, *conditions, order=LATEST, after=after, limit=limit)


def to_trajectory(bank: Bank, run: str) -> dict[str, object]:
    """Return a run as an ATIF trajectory."""
    from archivist.exchange.atif import to_atif

    with bank.reading() as reader:
        return to_atif(find(reader, run), reader.select(Event, equals("run", run), order=("seq",)))


def find(reader: Reader, run: str) -> Episode:
    """Return a run's episode."""
    require_name(run, "run")
    episode = reader.get(Episode, run)
    if episode is None:
        raise NotFoundError("run", run)
    return episode


def root_run(reader: Reader, episode: Episode) -> str:
    """Return the run that a part or a subagent's run belongs to; any other is its own."""
    seen = {episode.id}
    while episode.parent and episode.parent not in seen:
        parent = reader.get(Episode, episode.parent)
        if parent is None:
            return episode.parent
        seen.add(parent.id)
        episode = parent
    return episode.id


def _overlap(bank: Bank) -> Overlap:
    return Overlap(bank.config.lessons.finding_overlap, bank.config.lessons.lesson_overlap)


def _events(reader: Reader, run: str, kind: EventKind) -> list[Event]:
    return reader.select(Event, equals("run", run), equals("kind", kind), order=("seq",))


def _findings(reader: Reader, run: str) -> list[Finding]:
    return [finding for event in _events(reader, run, EventKind.VERDICT) for finding in event.findings]


def _matchable_lessons(reader: Reader, counted: Sequence[Lesson]) -> list[LessonStub]:
    """Return the live lessons as matching needs them, and those this run was counted for."""
    live = reader.select_fields(
        Lesson,
        ("id", "summary", "tags"),
        one_of("status", (Status.ACTIVE, Status.CANDIDATE, Status.QUARANTINED)),
    )
    known = {row[0]: LessonStub(row[0], row[1], tuple(json.loads(row[2]))) for row in live}
    known |= {lesson.id: LessonStub(lesson.id, lesson.summary, lesson.tags) for lesson in counted}
    return list(known.values())


def _load_evidence(reader: Reader, run: str) -> RunEvidence:
    """Return what is known of a run: what its reviewers found, which failures reflection saw in it."""
    reviews = _events(reader, run, EventKind.VERDICT)
    notes = find(reader, run).extra.get(NOTES)
    failures = notes.get("failures") if isinstance(notes, dict) else None
    return RunEvidence(
        findings=tuple(finding for event in reviews for finding in event.findings) if reviews else None,
        failures=frozenset(failures) if isinstance(failures, dict) else None,
    )


def _judge(
    bank: Bank, writer: Writer, run: str, evidence: RunEvidence, events: Sequence[Event]
) -> list[Verdict]:
    """Write one bank's verdicts on what a run was told and not told, given what is known of it."""
    briefs = writer.select(Brief, equals("run", run), order=("time", "id"))
    told, withheld = (
        _load_lessons(writer, [lesson for brief in briefs for lesson in getattr(brief, field)])
        for field in ("lessons", "withheld")
    )
    verdicts = judge_lessons(
        told,
        evidence,
        run=run,
        now=bank.now(),
        overlap=_overlap(bank),
        withheld=withheld,
        events=events,
    )
    settled = []
    for verdict in verdicts:
        known = writer.get(Verdict, verdict.id)
        if known is not None and replace(known, time=verdict.time) == verdict:
            settled.append(known)
            continue
        writer.put(verdict, "judge")
        settled.append(verdict)
        if verdict.following is Following.FOLLOWED and verdict.effect is Effect.HELPFUL:
            _reset_decay(bank, writer, verdict.lesson)
        if verdict.effect is Effect.INEFFECTIVE or verdict.following is Following.WITHHELD:
            _retire_if_useless(bank, writer, verdict.lesson)
    return settled


def _load_lessons(reader: Reader, ids: Sequence[str]) -> list[Lesson]:
    found = reader.records("lesson", list(dict.fromkeys(ids)))
    return [found[lesson_id] for lesson_id in dict.fromkeys(ids) if lesson_id in found]


def _reset_decay(bank: Bank, writer: Writer, lesson_id: str) -> None:
    """Let a lesson that was followed and helped not fade for want of the failure that it prevents."""
    lesson, count = writer.get(Lesson, lesson_id), writer.run_count()
    # Half-way to fading is early enough, and most runs then write nothing.
    if lesson is not None and 2 * lesson.runs_since(count) >= bank.config.decay.unseen_runs:
        writer.put(replace(lesson, unseen_from=count, updated=bank.now()), "heed")


def _retire_if_useless(bank: Bank, writer: Writer, lesson_id: str) -> None:
    """Archive a lesson of which verdicts say that it does not help; people judge what they confirmed."""
    lesson = writer.get(Lesson, lesson_id)
    if (
        lesson is None
        or not lesson.status.is_live
        or lesson.confirmed
        or lesson.type is LessonType.PREFERENCE
    ):
        return
    found = build_report(
        writer.select(Verdict, equals("lesson", lesson_id)), {}, bank.config.brief.holdout or HOLDOUT
    )
    (proposal,) = recommend_steps(found)
    if proposal.step is RecommendedStep.RETIRE:
        now = bank.now()
        reasons = {**lesson.extra, "retired": proposal.reason}
        retired = replace(lesson, status=Status.ARCHIVED, extra=reasons, updated=now, edited=now)
        writer.put(retired, "retire")
