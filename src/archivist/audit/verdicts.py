"""Judge briefed lessons, and fixes, by what the run's reviewers found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Effect, Event, EventKind, Finding, Lesson, Verdict


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a run: its reviewers' findings, and the failures it met by their signatures.

    None stands for not known: nobody reviewed the run, or nobody has reflected on it.
    """

    findings: tuple[Finding, ...] | None
    failures: Set[str] | None


def judge(
    lessons: Iterable[Lesson], evidence: Evidence, *, run: str, now: datetime, overlap: Overlap
) -> list[Verdict]:
    """Return a verdict on each briefed lesson: ineffective when the run met it again, else helpful.

    A lesson that was learnt from logs is met when its failure is, any other when a finding repeats its
    words. Without the evidence that a lesson needs the verdict is unknown.
    """
    found = [keywords(finding.description) for finding in evidence.findings or ()]
    return [
        Verdict(run=run, lesson=lesson.id, time=now, effect=_effect(lesson, evidence, found, overlap))
        for lesson in lessons
    ]


def _effect(lesson: Lesson, evidence: Evidence, found: Sequence[frozenset[str]], overlap: Overlap) -> Effect:
    if lesson.signature and evidence.failures is not None:
        return Effect.INEFFECTIVE if lesson.signature in evidence.failures else Effect.HELPFUL
    if evidence.findings is None:
        return Effect.UNKNOWN
    words = keywords(lesson.summary)
    tags = frozenset(word for tag in lesson.tags for word in keywords(tag))
    is_repeated = any(matches(finding, words, tags, overlap) for finding in found)
    return Effect.INEFFECTIVE if is_repeated else Effect.HELPFUL


@dataclass(frozen=True, slots=True)
class Regression:
    """Something fixed in an earlier run that a reviewer found again."""

    fixed_in: str
    fixed: str
    found: Finding


def regressions(
    fixes: Iterable[Event], findings: Sequence[Finding], *, run: str, overlap: Overlap
) -> list[Regression]:
    """Return the findings of a run that repeat what earlier runs had fixed, newest fix first."""
    words = [(finding, keywords(finding.description)) for finding in findings]
    found: dict[tuple[str, str], Regression] = {}
    for event in fixes:
        if event.run == run or event.kind is not EventKind.FIX:
            continue
        for fixed in event.findings:
            known = keywords(fixed.description)
            for finding, said in words:
                if matches(said, known, frozenset(), overlap):
                    regression = Regression(event.run, fixed.description, finding)
                    found.setdefault((fixed.description, finding.description), regression)
    return list(found.values())
