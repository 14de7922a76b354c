"""Learn from what reviewers found: each finding of a run is a candidate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from archivist.config import LessonRules
from archivist.lessons.candidate import Candidate
from archivist.records import Category, Event, EventKind, Finding, Lesson, Scope, Severity
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
    """What the findings of a run changed: lessons met, lessons new, findings below the threshold."""

    met: tuple[Lesson, ...] = ()
    created: tuple[Lesson, ...] = ()
    slight: int = 0


def run_findings(events: Iterable[Event]) -> list[RunFinding]:
    """Return the findings of all review verdicts, in the order they were made."""
    return [
        RunFinding(finding, f"{event.id}.{place}")
        for event in events
        if event.kind is EventKind.VERDICT
        for place, finding in enumerate(event.findings)
    ]


def make_finding_candidate(found: RunFinding, *, domain: str, rules: LessonRules) -> Candidate:
    """Make the candidate of a finding; below the configured severity it may only meet a known lesson."""
    finding = found.finding
    category = finding.category.strip()
    told = finding.description.strip()
    is_long = len(told) > LONGEST_CHARACTERS
    return Candidate(
        summary=f"{told[: LONGEST_CHARACTERS - 1]}…" if is_long else told,
        detail=told if is_long else "",
        category=Category.ANTI_PATTERN if finding.severity is Severity.BUG else Category.HEURISTIC,
        scope=Scope.PROJECT,
        domain=category or domain or "general",
        tags=(category,) if category else (),
        importance=IMPORTANCE[finding.severity],
        severity=finding.severity,
        origin=finding.found_by,
        events=(found.id,),
        is_known_only=finding.severity.rank < rules.candidate_severity.rank,
    )
