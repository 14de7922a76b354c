"""Judge the lessons that runs were told, report whether they helped, and find regressions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.audit.curve import CurvePoint, count_failures, learning_curve
from archivist.audit.lift import HOLDOUT_SHARE
from archivist.audit.period import AuditPeriod, answer_period, compare_failures
from archivist.audit.report import (
    LessonRecommendation,
    RecommendedStep,
    Report,
    build_report,
    recommend_steps,
)
from archivist.audit.verdicts import Regression, RunEvidence, fixes_of, judge_lessons, regressions
from archivist.capture.runs import find_run, require_own_run, resolve_run
from archivist.clock import from_text
from archivist.errors import StateError
from archivist.lessons.standing import cited_findings, is_said_here
from archivist.projects import RunNumbers, other_projects
from archivist.recall.keywords import Overlap, keywords
from archivist.records import (
    ARCHIVIST,
    Brief,
    Effect,
    Episode,
    Event,
    EventKind,
    Finding,
    Following,
    Lesson,
    LessonType,
    Provenance,
    Status,
    Verdict,
)
from archivist.records.words import NOTES, RETIRED
from archivist.service import BankService
from archivist.store.filters import contains_text, equals, one_of
from archivist.store.protocol import Reader, Writer
from archivist.store.results import SearchFilter, TextQuery, scope_token
from archivist.text import first_words

if TYPE_CHECKING:
    from archivist.bank import Bank

# The most similar fixes that a finding is compared with.
_FIXES = 50
# The events of a run that are searched for signs that a lesson was followed.
_EVENTS = 20_000
# The latest runs that a report compares: each has its notes to read, 2,000 in about 60 ms.
_MOST_RUNS = 2_000
# The runs of the learning curve: more would not show.
_CURVE_RUNS = 400
# A retired lesson whose failure none of so many runs met needs nobody.
_LATEST_RUNS = 20
ALL = AuditPeriod()


class Audits(BankService):
    """Whether lessons helped."""

    @writes(Layer.RUNS)
    def audit(self, run: str, *, global_bank: Bank | None = None) -> list[Verdict]:
        """Judge each lesson that a run was told, by the failures it met and what its reviewers found.

        A run that an agent reported or a file brought judges nothing: it could have been invented.
        """
        with self._bank.transaction() as writer:
            episode = find_run(writer, resolve_run(writer, run))
            run = episode.id
            require_own_run(self._bank, writer, run)
            notes, reviews = episode.extra.get(NOTES), _reviews(writer, run)
            if not writer.count(Event, equals("run", run)):
                raise StateError(
                    f"run {run!r} has no events yet", hint="import them with: archivist extract EVENTS.jsonl"
                )
            if not writer.is_own_run(run):
                return []
            # A review that ran nothing could meet no failure: that it met none says nothing about a lesson.
            is_call = one_of("kind", (EventKind.TOOL_CALL, EventKind.EDIT))
            has_calls = writer.count(Event, equals("run", run), is_call)
            failures = notes.get("failures") if isinstance(notes, dict) and has_calls else None
            found = tuple(finding for event in reviews for finding in event.findings)
            evidence = RunEvidence(
                findings=found if reviews else None,
                failures=frozenset(failures) if isinstance(failures, dict) else None,
            )
            is_briefed = bool(writer.count(Brief, equals("run", run))) or global_bank is not None
            events: Sequence[Event] = ()
            if is_briefed:
                events = writer.select(Event, equals("run", run), order=("seq",), limit=_EVENTS)
            verdicts = _judge(self._bank, writer, run, evidence, events)
        if global_bank is not None:
            with global_bank.transaction() as writer:
                verdicts += _judge(global_bank, writer, run, evidence, events)
        return verdicts

    @reads(Layer.LESSONS)
    def retired_again(self) -> list[LessonRecommendation]:
        """Return which lessons their verdicts retired although the latest runs met their failure again."""
        with self._bank.reading() as reader:
            noted = equals("status", Status.ARCHIVED), contains_text("extra", f'"{RETIRED}"')
            others = other_projects(reader, self._bank.folder, self._bank.root)
            numbers = RunNumbers(reader)
            retired = {
                lesson.id: lesson
                for lesson in reader.select(Lesson, *noted, order=("number",))
                if lesson.is_found_useless
                and lesson.repo not in others
                and numbers.count_unseen(lesson) < _LATEST_RUNS
            }
            verdicts = reader.select(Verdict, one_of("lesson", list(retired))) if retired else []
        found = []
        for row in build_report(verdicts, {}, _holdout_share(self._bank)).lessons:
            name = retired[row.lesson].short_id
            how = (
                "not followed" if row.not_followed > row.followed else str(retired[row.lesson].extra[RETIRED])
            )
            step = f"reword it (archivist lessons edit {name} --summary TEXT)"
            reason = f"told {row.told} times, {how}: {step}, or change what makes the agent call it so"
            found.append(LessonRecommendation(name, RecommendedStep.REWORD, reason))
        return found

    @reads(Layer.RUNS)
    def audit_report(self, period: AuditPeriod = ALL, *, project: str = "", lesson: str = "") -> Report:
        """Sum up how the briefed lessons did in the runs of a period, of all projects or one, or one lesson.

        A verdict counts for the time at which its run began. The runs are compared with those of the same
        length of time before; those of all time with the runs before the first that was told something.
        """
        with self._bank.reading() as reader:
            runs = _read_runs(reader, project)
            asked = [equals("lesson", lesson)] if lesson else []
            judged = reader.select(Verdict, *asked, order=("time",))
            of_project = [equals("project", project)] if project else []
            # Every run that was judged counts, also one that was only extracted.
            began = {
                run: from_text(started or finished) if started or finished else None
                for run, started, finished in reader.select_fields(
                    Episode, ("id", "started", "finished"), *of_project
                )
            }
            judged = [replace(each, time=began.get(each.run) or each.time) for each in judged]
            judged = [each for each in judged if period.holds(each.time)]
            if project:
                judged = [each for each in judged if each.run in began]
            if not project and not lesson:
                # Lessons of other repositories than the caller's are not named.
                others = other_projects(reader, self._bank.folder, self._bank.root)
                known = reader.records("lesson", sorted({each.lesson for each in judged})) if others else {}
                strange = {name for name, each in known.items() if each.repo in others}
                judged = [each for each in judged if each.lesson not in strange]
            names = self._bank.lessons.lesson_names({verdict.lesson for verdict in judged})
            has_briefs = bool(reader.select_fields(Brief, ("id",), limit=1))
            first = () if has_briefs else reader.entries(after=0, limit=1)
        report = build_report(judged, names, _holdout_share(self._bank))
        told_at = (each.time for each in judged if each.following is not Following.WITHHELD)
        compared = AuditPeriod(since=min(told_at, default=None)) if period.is_all else period
        earlier = compared.before or AuditPeriod(until=compared.since)
        change = compare_failures(
            [count for _, moment, count in runs if compared.since and earlier.holds(moment)],
            [count for _, moment, count in runs if compared.holds(moment)],
        )
        told = sum(bool(row.told) for row in report.lessons)
        answer = answer_period(
            period,
            change,
            lessons=told,
            told=report.total.told,
            lift=report.total.lift,
            last_run=runs[-1][1] if runs else None,
            connected=first[0].time if first else None,
        )
        return replace(report, answer=answer)

    @reads(Layer.RUNS)
    def learning_curve(self, project: str = "", period: AuditPeriod = ALL) -> tuple[CurvePoint, ...]:
        """Return how many failures the latest own runs met, of all projects or one, over time.

        Of a period the runs that it is compared with are part.
        """
        with self._bank.reading() as reader:
            runs = _read_runs(reader, project)
        shown = period._replace(since=period.before.since if period.before else period.since)
        counted = [(moment, count) for _, moment, count in runs if shown.holds(moment)]
        return learning_curve(counted[-_CURVE_RUNS:])

    @reads(Layer.RUNS)
    def briefs_of(self, run: str) -> list[Brief]:
        """Return what a run was told and what was withheld from it, oldest first."""
        with self._bank.reading() as reader:
            return reader.select(Brief, equals("run", run), order=("time", "id"))

    @reads(Layer.RUNS)
    def first_brief(self) -> datetime | None:
        """Return when the first run began that was told something, None if none was yet."""
        with self._bank.reading() as reader:
            rows = reader.select_fields(Brief, ("run", "time"), order=("time",), limit=1)
            runs = reader.select_fields(Episode, ("started",), equals("id", rows[0][0])) if rows else []
        began = [each for (each,) in runs if each] or [time for _, time in rows]
        return from_text(began[0]) if began else None

    @reads(Layer.RUNS)
    def runs_of_briefs(self, briefs: Iterable[str]) -> dict[str, str]:
        """Return the run that each of these briefs was given to."""
        with self._bank.reading() as reader:
            rows = reader.select_fields(Brief, ("id", "run"), one_of("id", tuple(briefs)))
        return {str(brief): str(run) for brief, run in rows}

    @reads(Layer.RUNS)
    def run_names(self, runs: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Return how people recognise runs: by the first words of the task, and when each began."""
        fields = ("id", "task", "summary", "started", "finished")
        with self._bank.reading() as reader:
            rows = reader.select_fields(Episode, fields, one_of("id", tuple(dict.fromkeys(runs))))
        return {
            run: (first_words(task or summary), began or ended) for run, task, summary, began, ended in rows
        }

    @reads(Layer.RUNS)
    def verdicts(self, *, run: str = "", lesson: str = "", limit: int | None = None) -> list[Verdict]:
        """Return the verdicts on a run's lessons, or on a lesson in all runs, newest first."""
        asked = {"run": run, "lesson": lesson}
        conditions = [equals(name, value) for name, value in asked.items() if value]
        with self._bank.reading() as reader:
            return reader.select(Verdict, *conditions, order=("-time", "-id"), limit=limit)

    @reads(Layer.RUNS)
    def verdicts_by_id(self, ids: Iterable[str]) -> dict[str, Verdict]:
        """Return verdicts by their ids, without those that are gone."""
        with self._bank.reading() as reader:
            found: dict[str, Verdict] = reader.records("verdict", list(ids))
        return found

    @reads(Layer.RUNS)
    def regressions(self, run: str) -> list[Regression]:
        """Return what earlier runs had fixed and this run's reviewers found again."""
        with self._bank.reading() as reader:
            run = find_run(reader, resolve_run(reader, run)).id
            findings = [finding for event in _reviews(reader, run) for finding in event.findings]
            fixes = _similar_fixes(reader, findings)
        return regressions(fixes, findings, run=run, overlap=_overlap(self._bank))

    @reads(Layer.RUNS)
    def fixed_again(self, run: str) -> dict[str, str]:
        """Return the findings of a run that had been fixed before and were fixed again, by their names.

        Each comes with the run of the fix that did not hold, which may be the same run.
        """
        overlap = _overlap(self._bank)
        is_fix = (equals("run", run), equals("kind", EventKind.FIX))
        found: dict[str, str] = {}
        with self._bank.reading() as reader:
            own = reader.select(Event, *is_fix, order=("seq",))
            for review in _reviews(reader, run) if own else ():
                for at, finding in enumerate(review.findings):
                    fixes = fixes_of(own, finding, overlap)
                    earlier = [fix for fix in fixes if fix.seq < review.seq]
                    if len(earlier) == len(fixes):
                        continue
                    others = [fix for fix in _similar_fixes(reader, [finding]) if fix.run != run]
                    if held := earlier or fixes_of(others, finding, overlap):
                        found[f"{review.id}.{at}"] = held[0].run
        return found


def _read_runs(reader: Reader, project: str) -> list[tuple[str, datetime, int]]:
    """Return the latest own runs that were reflected on, oldest first: when each began, and its failures."""

    def read() -> list[tuple[str, datetime, int]]:
        fields = ("id", "started", "finished", "extra")
        is_own = one_of("provenance", (Provenance.MINED, Provenance.REVIEWED))
        whole = [equals("parent", ""), equals("action", None), is_own]
        whole += [equals("project", project)] if project else []
        rows = reader.select_fields(Episode, fields, *whole, order=("-finished", "-id"), limit=_MOST_RUNS)
        timed = [
            (run, from_text(started or finished), count_failures(json.loads(extra).get(NOTES)))
            for run, started, finished, extra in reversed(rows)
            if started or finished
        ]
        found = [(run, moment, count) for run, moment, count in timed if count is not None]
        if not any(count for _, _, count in found):
            # A bank of reviews alone knows no calls: what its reviewers found are the failures.
            reviews = reader.select(Event, equals("kind", EventKind.VERDICT))
            findings = Counter({event.run: 0 for event in reviews})
            for event in reviews:
                findings[event.run] += len(event.findings)
            known = {run for run, *_ in found} | findings.keys()
            found = [(run, moment, findings[run]) for run, moment, _ in timed if run in known]
        return sorted(found, key=lambda each: each[1])

    return reader.get_cached(("own runs", project), read, kinds=frozenset(("episode", "event")))


def _holdout_share(bank: Bank) -> float:
    return bank.config.brief.holdout or HOLDOUT_SHARE


def _overlap(bank: Bank) -> Overlap:
    return Overlap(bank.config.lessons.finding_overlap, bank.config.lessons.lesson_overlap)


def _reviews(reader: Reader, run: str) -> list[Event]:
    return reader.select(Event, equals("run", run), equals("kind", EventKind.VERDICT), order=("seq",))


def _similar_fixes(reader: Reader, findings: Sequence[Finding]) -> list[Event]:
    """Return the fixes of own runs that resemble findings, the newest first."""
    only_fixes = SearchFilter(groups=((scope_token("event", EventKind.FIX),),))
    similar: dict[str, Event] = {}
    for finding in findings:
        words = TextQuery(tuple(sorted(keywords(finding.description))))
        places = [hit.place for hit in reader.search(words, search_filter=only_fixes, limit=_FIXES)]
        documents = reader.indexed_documents(places).values()
        similar |= reader.records("event", [document.record for document in documents])
    provenances = reader.run_provenances(fix.run for fix in similar.values())
    own = [fix for fix in similar.values() if fix.run in provenances and provenances[fix.run].is_own]
    # Of fixes of the same time that is the latest whose run came last.
    came = {run: origin.seq for run in {fix.run for fix in own} if (origin := reader.run_origin(run))}
    own.sort(key=lambda fix: (fix.time is not None, fix.time, came.get(fix.run, 0), fix.seq), reverse=True)
    return own


def _judge(
    bank: Bank, writer: Writer, run: str, evidence: RunEvidence, events: Sequence[Event]
) -> list[Verdict]:
    """Write one bank's verdicts on the lessons that a run was told, and on those withheld from it.

    What an agent recorded under the id of the user's run does not count.
    """
    briefs = [
        brief
        for brief in writer.select(Brief, equals("run", run), order=("time", "id"))
        if not writer.is_by_agent(brief.id)
    ]
    told = _load_lessons(writer, [lesson for brief in briefs for lesson in brief.lessons])
    withheld = _load_lessons(writer, [lesson for brief in briefs for lesson in brief.withheld])
    verdicts = judge_lessons(
        told,
        evidence,
        run=run,
        now=bank.now(),
        overlap=_overlap(bank),
        withheld=withheld,
        events=events,
        files={
            lesson.id: frozenset(finding.file for _, finding in cited_findings(writer, lesson)) - {""}
            for lesson in (*told, *withheld)
            if lesson.provenance is Provenance.REVIEWED
        },
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
            # A lesson that was followed and helped must not fade, since it prevents its own recurrence.
            lesson, count = writer.get(Lesson, verdict.lesson), writer.run_count()
            # Half-way to fading is early enough, and most runs then write nothing.
            if (
                lesson is not None
                and 2 * RunNumbers(writer).count_unseen(lesson) >= bank.config.decay.unseen_runs
            ):
                with bank.acting_as(ARCHIVIST).transaction() as archivist:
                    archivist.put(replace(lesson, unseen_from=count, updated=bank.now()), "heed")
        if verdict.effect is Effect.INEFFECTIVE or verdict.following is Following.WITHHELD:
            _retire_if_useless(bank, writer, verdict.lesson)
    return settled


def _load_lessons(reader: Reader, ids: Sequence[str]) -> list[Lesson]:
    found = reader.records("lesson", list(dict.fromkeys(ids)))
    return [found[lesson_id] for lesson_id in dict.fromkeys(ids) if lesson_id in found]


def _retire_if_useless(bank: Bank, writer: Writer, lesson_id: str) -> None:
    """Archive a lesson that does not help, by its verdicts; what a person decided on stays theirs."""
    lesson = writer.get(Lesson, lesson_id)
    if lesson is None or not lesson.status.is_live:
        return
    if lesson.confirmed or lesson.type is LessonType.PREFERENCE:
        return
    report = build_report(writer.select(Verdict, equals("lesson", lesson_id)), {}, _holdout_share(bank))
    (recommendation,) = recommend_steps(report)
    if recommendation.step is RecommendedStep.RETIRE and not is_said_here(writer, lesson):
        now = bank.now()
        extra = {**lesson.extra, RETIRED: recommendation.reason}
        retired = replace(lesson, status=Status.ARCHIVED, extra=extra, updated=now, edited=now)
        with bank.acting_as(ARCHIVIST).transaction() as archivist:
            archivist.put(retired, "retire")
