"""Judge what runs were told, report whether it helped, and find regressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.audit.lift import HOLDOUT_SHARE as HOLDOUT
from archivist.audit.report import RecommendedStep, Report, build_report, recommend_steps
from archivist.audit.verdicts import Regression, RunEvidence, regressions
from archivist.audit.verdicts import judge_lessons as judge_lessons
from archivist.capture.runs import find_run
from archivist.errors import InputError
from archivist.recall.keywords import Overlap
from archivist.records import (
    Brief,
    Effect,
    Event,
    EventKind,
    Finding,
    Following,
    Lesson,
    LessonType,
    Status,
    Verdict,
)
from archivist.records.words import NOTES as NOTES
from archivist.service import BankService
from archivist.store.filters import equals, one_of
from archivist.store.protocol import Reader, Writer

if TYPE_CHECKING:
    from archivist.bank import Bank


# So many fixes most like a finding are compared with it.
_FIXES = 50


# So many of a run's events are searched for signs that a lesson was followed.
_EVENTS = 20_000


def audit(bank: Bank, run: str, global_bank: Bank | None) -> list[Verdict]:
    """Judge each lesson that a run was told by what its reviewers found."""
    with bank.transaction() as writer:
        run = find_run(writer, run).id
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
        return build_report(reader.select(Verdict, order=("time",)), bank.lessons.lesson_names(), share)


def find_regressions(bank: Bank, run: str) -> list[Regression]:
    """Return what earlier runs had fixed and this one's reviewers found again."""
    with bank.reading() as reader:
        find_run(reader, run)
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


def _overlap(bank: Bank) -> Overlap:
    return Overlap(bank.config.lessons.finding_overlap, bank.config.lessons.lesson_overlap)


def _events(reader: Reader, run: str, kind: EventKind) -> list[Event]:
    return reader.select(Event, equals("run", run), equals("kind", kind), order=("seq",))


def _findings(reader: Reader, run: str) -> list[Finding]:
    return [finding for event in _events(reader, run, EventKind.VERDICT) for finding in event.findings]


def _load_evidence(reader: Reader, run: str) -> RunEvidence:
    """Return what is known of a run: what its reviewers found, which failures reflection saw in it."""
    reviews = _events(reader, run, EventKind.VERDICT)
    notes = find_run(reader, run).extra.get(NOTES)
    # A review that ran nothing could meet no failure: that it met none says nothing about a lesson.
    has_calls = reader.count(Event, equals("run", run), one_of("kind", (EventKind.TOOL_CALL, EventKind.EDIT)))
    failures = notes.get("failures") if isinstance(notes, dict) and has_calls else None
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


class Audits(BankService):
    """Whether lessons helped."""

    @writes(Layer.RUNS)
    def audit(self, run: str, *, global_bank: Bank | None = None) -> list[Verdict]:
        """Judge each lesson that a run was told by what its reviewers found."""
        return audit(self._bank, run, global_bank)

    @reads(Layer.RUNS)
    def audit_report(self) -> Report:
        """Sum up how the briefed lessons did."""
        return audit_report(self._bank)

    @reads(Layer.RUNS)
    def regressions(self, run: str) -> list[Regression]:
        """Return what earlier runs had fixed and this one's reviewers found again."""
        return find_regressions(self._bank, run)
