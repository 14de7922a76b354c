"""Judge briefed lessons, and fixes, by what the run met and what its reviewers found."""

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
    """What is known of a run: its reviewers' findings, and the failures it met by their signatures.

    None stands for not known: nobody reviewed the run, or nobody has reflected on it.
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

    Whether the failure occurred is decided by its signature where the lesson has one and the run was read
    for failures, else by the documented rule: it did when a finding repeats the lesson's words. A lesson
    whose failure occurred was ineffective, but for advice about what to do once it has: that was helpful when
    it was followed and the failure did not come again, ineffective when it did. When it did not occur,

    - a told lesson judged by findings was helpful, as documented;
    - one judged by signature was helpful when it was followed, `ignored` when there was occasion to and the
      run did without it, and unknown when the run never came near or nobody can tell whether it was followed:
      what had no occasion was not prevented, and counting it as help would let a lesson about nothing rise to
      the top.

    A withheld lesson has no effect to judge; whether its failure occurred is what told ones are held against.
    """
    told = {lesson.id: lesson for lesson in lessons}
    kept = {lesson.id: lesson for lesson in withheld if lesson.id not in told}
    found = [keywords(finding.description) for finding in evidence.findings or ()]
    outcomes = {
        lesson.id: _outcome(lesson, evidence, found, overlap) for lesson in (*told.values(), *kept.values())
    }
    seen = advice_outcomes(told.values(), events, {each: failed for each, (_, failed) in outcomes.items()})
    verdicts = []
    for lesson_id, (method, failed) in outcomes.items():
        heeded = seen.get(lesson_id, AdviceOutcome(Following.WITHHELD))
        verdicts.append(
            Verdict(
                run=run,
                lesson=lesson_id,
                time=now,
                effect=_effect(method, heeded, failed=failed),
                following=heeded.following,
                failed=failed,
                extra={"method": method.value},
            )
        )
    return verdicts


def _outcome(
    lesson: Lesson, evidence: RunEvidence, found: Sequence[frozenset[str]], overlap: Overlap
) -> tuple[Method, bool | None]:
    """Return how it was decided whether a lesson's failure occurred, and whether it did."""
    if lesson.signature and evidence.failures is not None and failure_family(lesson):
        return Method.SIGNATURE, lesson.signature in evidence.failures
    if evidence.findings is None:
        return Method.NONE, None
    words = keywords(lesson.summary)
    tags = frozenset(word for tag in lesson.tags for word in keywords(tag))
    return Method.KEYWORDS, any(matches(finding, words, tags, overlap) for finding in found)


def _effect(method: Method, heeded: AdviceOutcome, *, failed: bool | None) -> Effect:
    if failed is None or heeded.following is Following.WITHHELD:
        return Effect.UNKNOWN
    is_reaction = heeded.is_reaction and method is Method.SIGNATURE
    if failed and (not is_reaction or heeded.has_failed_again):
        return Effect.INEFFECTIVE
    if method is Method.KEYWORDS or heeded.following is Following.FOLLOWED:
        return Effect.HELPFUL
    return Effect.IGNORED if heeded.following is Following.IGNORED else Effect.UNKNOWN


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
