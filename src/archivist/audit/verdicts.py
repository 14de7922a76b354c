"""Judge briefed lessons, and fixes, by what the run's reviewers found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Effect, Event, EventKind, Finding, Lesson, Verdict


def judge(
    lessons: Iterable[Lesson], findings: Sequence[Finding], *, run: str, now: datetime, overlap: Overlap
) -> list[Verdict]:
    """Return a verdict on each briefed lesson: ineffective when a finding repeats it, else helpful."""
    found = [keywords(finding.description) for finding in findings]
    verdicts = []
    for lesson in lessons:
        words = keywords(lesson.summary)
        tags = frozenset(word for tag in lesson.tags for word in keywords(tag))
        is_repeated = any(matches(finding, words, tags, overlap) for finding in found)
        effect = Effect.INEFFECTIVE if is_repeated else Effect.HELPFUL
        verdicts.append(Verdict(run=run, lesson=lesson.id, time=now, effect=effect))
    return verdicts


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
