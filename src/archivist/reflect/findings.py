"""Learn from reviewers' findings by the documented cross-run rule, as a pure function."""

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

# The importance of a lesson by the severity of its finding, until verdicts say more.
IMPORTANCE = {
    Severity.BUG: 0.8,
    Severity.WARNING: 0.6,
    Severity.INFO: 0.4,
    Severity.RECOMMENDATION: 0.3,
}


@dataclass(frozen=True, slots=True)
class RunFinding:
    """One finding of a run with an id of its own: the event's, and its index there."""

    finding: Finding
    id: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a run changes: lessons met again, new lessons, and how many findings were below the threshold."""

    met: tuple[Lesson, ...]
    created: tuple[Lesson, ...]
    slight: int


@dataclass(frozen=True, slots=True)
class LessonStub:
    """The part of a lesson that matching needs: whole records are fetched only for matches."""

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
    """Compare a run's findings with the known lessons.

    A finding that repeats a lesson counts for it once in this run. One that repeats none, and is severe
    enough, becomes a candidate. `known` holds the live lessons and every lesson that this run was counted
    for already, `cited` the findings that those have as evidence: extracting a run again changes nothing,
    even if its lessons were retired or reworded.
    """
    index = KeywordIndex(Overlap(rules.finding_overlap, rules.lesson_overlap))
    for lesson in known:
        index.add(lesson.id, lesson.summary, lesson.tags)
    touched: dict[str, Lesson] = {}
    created: dict[str, Lesson] = {}
    slight = 0
    for sighting in found:
        if sighting.id in cited:
            continue
        match = index.find(sighting.finding.description)
        if match is None:
            if sighting.finding.severity.rank < rules.candidate_severity.rank:
                slight += 1
                continue
            fresh = make_candidate(sighting, lesson_id=new_id(), run=run, domain=domain, now=now, actor=actor)
            fresh = with_status(replace(fresh, unseen_from=run_count), promote_at_runs=rules.promote_at_runs)
            created[fresh.id] = fresh
            index.add(fresh.id, fresh.summary, fresh.tags)
        elif match.key not in created:
            before = touched.get(match.key) or fetch(match.key)
            if not before.status.is_retired:
                touched[match.key] = record_sighting(
                    before,
                    run=run,
                    event=sighting.id,
                    now=now,
                    run_count=run_count,
                    promote_at_runs=rules.promote_at_runs,
                )
    return Extraction(tuple(touched.values()), tuple(created.values()), slight)


def make_candidate(
    sighting: RunFinding, *, lesson_id: str, run: str, domain: str, now: datetime, actor: Actor
) -> Lesson:
    """Make the candidate of a finding that was seen for the first time."""
    finding = sighting.finding
    category = finding.category.strip()
    text = finding.description.strip()
    is_long = len(text) > LONGEST_CHARACTERS
    return Lesson(
        id=lesson_id,
        created=now,
        updated=now,
        edited=now,
        summary=f"{text[: LONGEST_CHARACTERS - 1]}…" if is_long else text,
        detail=text if is_long else "",
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
