"""Judge briefed lessons and earlier fixes by the failures of a run and its reviewers' findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from archivist.audit.advice import failure_family
from archivist.audit.followed import AdviceOutcome, advice_outcomes
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Effect, Event, EventKind, Finding, Following, Lesson, Verdict


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """What is known about a run: its reviewers' findings, and the signatures of the failures it met.

    None means unknown: the run was not reviewed, or not reflected on.
    """

    findings: tuple[Finding, ...] | None
    failures: Set[str] | None


class Method(StrEnum):
    """How it was decided whether a lesson's failure occurred."""

    SIGNATURE = "signature"
    KEYWORDS = "keywords"
    NONE = "none"


def judge_lessons(
    lessons: Iterable[Lesson],
    evidence: RunEvidence,
    *,
    run: str,
    now: datetime,
    overlap: Overlap,
    withheld: Iterable[Lesson] = (),
    events: Sequence[Event] = (),
) -> list[Verdict]:
    """Return a verdict on each lesson that a run was told, then on each that was withheld from it.

    Whether the failure occurred is decided by its signature if the lesson has one and the run was reflected
    on, else by the documented rule: it did when a finding repeats the lesson's words. A lesson whose failure
    occurred was ineffective. Advice for after the failure is the exception: it was helpful when it was
    followed and the failure did not come again, ineffective when it did. If the failure did not occur,

    - a told lesson judged by findings was helpful, as documented;
    - one judged by signature was helpful when it was followed, `ignored` when there was an occasion and the
      run did not follow it, and unknown without an occasion or when nobody can tell: counting that as help
      would let a lesson about nothing rise to the top.

    A withheld lesson has no effect; its failures are what told lessons are compared with.
    """
    told = {lesson.id: lesson for lesson in lessons}
    untold = {lesson.id: lesson for lesson in withheld if lesson.id not in told}
    found = [keywords(finding.description) for finding in evidence.findings or ()]
    outcomes = {
        lesson.id: _outcome(lesson, evidence, found, overlap) for lesson in (*told.values(), *untold.values())
    }
    known = {lesson_id: failed for lesson_id, (_, failed) in outcomes.items()}
    seen = advice_outcomes(told.values(), events, known)
    verdicts = []
    for lesson_id, (method, failed) in outcomes.items():
        advice = seen.get(lesson_id, AdviceOutcome(Following.WITHHELD))
        verdicts.append(
            Verdict(
                run=run,
                lesson=lesson_id,
                time=now,
                effect=_effect(method, advice, failed=failed),
                following=advice.following,
                failed=failed,
                extra={"method": method.value},
            )
        )
    return verdicts


def _outcome(
    lesson: Lesson, evidence: RunEvidence, found: Sequence[frozenset[str]], overlap: Overlap
) -> tuple[Method, bool | None]:
    """Return how it was decided whether a lesson's failure occurred, and whether it did."""
    # A signature is exact; words only make a repetition likely.
    if lesson.signature and evidence.failures is not None and failure_family(lesson):
        return Method.SIGNATURE, lesson.signature in evidence.failures
    if evidence.findings is None:
        return Method.NONE, None
    words = keywords(lesson.summary)
    tags = frozenset(word for tag in lesson.tags for word in keywords(tag))
    return Method.KEYWORDS, any(matches(finding, words, tags, overlap) for finding in found)


def _effect(method: Method, advice: AdviceOutcome, *, failed: bool | None) -> Effect:
    if failed is None or advice.following is Following.WITHHELD:
        return Effect.UNKNOWN
    # Whether a failure came again shows in the calls by its signature, not in findings.
    is_reaction = advice.is_reaction and method is Method.SIGNATURE
    if failed and (not is_reaction or advice.has_failed_again):
        return Effect.INEFFECTIVE
    if method is Method.KEYWORDS or advice.following is Following.FOLLOWED:
        return Effect.HELPFUL
    return Effect.IGNORED if advice.following is Following.IGNORED else Effect.UNKNOWN


@dataclass(frozen=True, slots=True)
class Regression:
    """Something that an earlier run fixed and a reviewer found again."""

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
                    # Fixes come newest first: the latest fix is the one that did not hold.
                    found.setdefault((fixed.description, finding.description), regression)
    return list(found.values())
