"""Learn from what reviewers found: the documented cross-run rule, as a pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from archivist.config import LessonRules
from archivist.lessons.standing import record_sighting, with_status
from archivist.recall.keywords import KeywordIndex, Overlap
from archivist.records import (
    Actor,
    Category,
    Event,
    EventKind,
    Evidence,
    Finding,
    Lesson,
    LessonType,
    Severity,
    Source,
)
from archivist.records.lesson import LONGEST_CHARACTERS

# How much a lesson of each severity matters until something better is known of it.
IMPORTANCE = {
    Severity.BUG: 0.8,
    Severity.WARNING: 0.6,
    Severity.INFO: 0.4,
    Severity.RECOMMENDATION: 0.3,
}


@dataclass(frozen=True, slots=True)
class RunFinding:
    """One finding of a run and its own name: the event's, and its place in it."""

    finding: Finding
    id: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a run changes: lessons met again, lessons new, and how many findings were too slight to keep."""

    met: tuple[Lesson, ...]
    created: tuple[Lesson, ...]
    slight: int


@dataclass(frozen=True, slots=True)
class LessonStub:
    """A lesson as matching needs it: whole records are fetched only for those that match."""

    id: str
    summary: str
    tags: tuple[str, ...]


def run_findings(events: Iterable[Event]) -> list[RunFinding]:
    """Return the findings of all review verdicts, in the order they were made."""
    return [
        RunFinding(finding, f"{event.id}.{place}")
        for event in events
        if event.kind is EventKind.VERDICT
        for place, finding in enumerate(event.findings)
    ]


def extract(
    found: Sequence[RunFinding],
    known: Sequence[LessonStub],
    fetch: Callable[[str], Lesson],
    *,
    cited: Set[str],
    run: str,
    domain: str,
    run_count: int,
    now: datetime,
    actor: Actor,
    rules: LessonRules,
    new_id: Callable[[], str],
) -> Extraction:
    """Compare a run's findings with what is known.

    A finding that repeats a lesson counts for it once in this run. One that repeats none, and is bad
    enough, becomes a candidate. `known` holds the live lessons and every lesson this run was counted
    for already, `cited` the findings that those have as evidence: extracting a run again changes
    nothing, whatever became of its lessons and their words.
    """
    index = KeywordIndex(Overlap(rules.finding_overlap, rules.lesson_overlap))
    for lesson in known:
        index.add(lesson.id, lesson.summary, lesson.tags)
    touched: dict[str, Lesson] = {}
    created: dict[str, Lesson] = {}
    slight = 0
    for each in found:
        if each.id in cited:
            continue
        match = index.find(each.finding.description)
        if match is None:
            if each.finding.severity.rank < rules.candidate_severity.rank:
                slight += 1
                continue
            fresh = make_candidate(each, lesson_id=new_id(), run=run, domain=domain, now=now, actor=actor)
            fresh = with_status(replace(fresh, unseen_from=run_count), promote_at_runs=rules.promote_at_runs)
            created[fresh.id] = fresh
            index.add(fresh.id, fresh.summary, fresh.tags)
        elif match.key not in created:
            before = touched.get(match.key) or fetch(match.key)
            if not before.status.is_retired:
                touched[match.key] = record_sighting(
                    before,
                    run=run,
                    event=each.id,
                    now=now,
                    run_count=run_count,
                    promote_at_runs=rules.promote_at_runs,
                )
    return Extraction(tuple(touched.values()), tuple(created.values()), slight)


def make_candidate(
    sighting: RunFinding, *, lesson_id: str, run: str, domain: str, now: datetime, actor: Actor
) -> Lesson:
    """Make the lesson that a finding seen for the first time may become."""
    finding = sighting.finding
    category = finding.category.strip()
    told = finding.description.strip()
    is_long = len(told) > LONGEST_CHARACTERS
    return Lesson(
        id=lesson_id,
        created=now,
        updated=now,
        edited=now,
        summary=f"{told[: LONGEST_CHARACTERS - 1]}…" if is_long else told,
        detail=told if is_long else "",
        type=LessonType.PATTERN,
        category=Category.ANTI_PATTERN if finding.severity is Severity.BUG else Category.HEURISTIC,
        domain=category or domain or "general",
        tags=(category,) if category else (),
        importance=IMPORTANCE[finding.severity],
        severity=finding.severity,
        evidence=Evidence(episodes=(run,), events=(sighting.id,)),
        source=Source.ARCHIVIST,
        origin=finding.found_by,
        actor=actor,
        runs=(run,),
        origin_run=run,
        last_seen_run=run,
        last_seen=now,
    )
