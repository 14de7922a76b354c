"""Judge briefed lessons and earlier fixes by a run's calls, its failures and its reviewers' findings.

What a run did with a lesson is one of

    followed         a remedy was carried out: the command with its important words, the path, the change
    ignored          the occasion came, and the remedy did not, or only after the failure or the wrong way
    not applicable   nothing that the lesson is about was touched
    unknown          no calls are known, or the lesson names nothing that a call could show

What the run merely said or read does not count, since the brief itself is part of its transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from archivist.audit.advice import (
    LANGUAGE_PROGRAMS,
    SOURCE,
    Advice,
    AdvisedRemedy,
    CommandAction,
    command_actions,
    failure_family,
    read_advice,
)
from archivist.reading.calls import CALL_KINDS, event_failure
from archivist.reading.failures import failure_key, is_shell
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Effect, Event, EventKind, Finding, Following, Lesson, Verdict

# Half of a list of packages is enough: those that are installed already need no install.
_ENOUGH = 0.5
# How it was decided whether a lesson's failure occurred.
_BY_SIGNATURE, _BY_KEYWORDS = "signature", "keywords"
# The index of a call that was never made.
_NEVER = 1 << 60


class AdviceOutcome(NamedTuple):
    """What a run did with a lesson, and the result.

    `is_reaction` says that the advice is for when the failure has come, `has_failed_again` that the failure
    came after the advice was followed, before the failing command succeeded.
    """

    following: Following
    is_reaction: bool = False
    has_failed_again: bool = False


def advice_outcomes(
    lessons: Iterable[Lesson], events: Sequence[Event], failed: dict[str, bool | None] | None = None
) -> dict[str, AdviceOutcome]:
    """Return what a run did with each lesson, by id, reading its calls only once."""
    log = _CallLog(events)
    known = failed or {}
    return {lesson.id: _judge_lesson(lesson, log, failed=bool(known.get(lesson.id))) for lesson in lessons}


def _judge_lesson(lesson: Lesson, log: _CallLog, *, failed: bool) -> AdviceOutcome:
    advice, family = read_advice(lesson), failure_family(lesson)
    if not log.calls or not (advice.wanted or advice.unwanted or advice.purposes or advice.words):
        return AdviceOutcome(Following.UNKNOWN, advice.is_reaction)
    done = min((log.followed_at(remedy, advice.unwanted) for remedy in advice.wanted), default=_NEVER)
    advised = [action for remedy in advice.wanted for action in remedy.actions]
    violating = (at for action in advice.unwanted for at, _ in log.calls_doing(action, advised))
    wrong = min(violating, default=_NEVER)
    if failed and done < _NEVER and not advice.is_reaction:
        # A remedy that came after the failure did not prevent it.
        wrong = next((at for at in range(done) if _shows_failure(log.calls[at], family)), wrong)
    if done < _NEVER:
        following = Following.FOLLOWED if done <= wrong else Following.IGNORED
    elif wrong < _NEVER:
        following = Following.IGNORED
    elif not failed and not log.touches(advice):
        following = Following.NOT_APPLICABLE
    else:
        following = Following.IGNORED if advice.wanted else Following.UNKNOWN
    is_tried = failed and advice.is_reaction and done < _NEVER
    return AdviceOutcome(following, advice.is_reaction, is_tried and log.fails_after(done, family, advice))


class _CallLog:
    """A run's calls as texts, which are searched first: only the calls that match are parsed."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.calls = [event for event in events if event.kind in CALL_KINDS]
        self._texts = []
        for event in self.calls:
            edit = ("old", "new") if event.kind is EventKind.EDIT else ()
            changed = (str(event.extra.get(name) or "") for name in edit)
            self._texts.append("\n".join((event.text, event.target, *changed)))
        self._tools = {event.tool.lower() for event in self.calls}
        self._actions: dict[str, tuple[CommandAction, ...]] = {}

    def followed_at(self, remedy: AdvisedRemedy, unwanted: Sequence[CommandAction]) -> int:
        """Return the call that completed a remedy, or never."""
        if remedy.instead:
            for at in self._calls_containing(remedy.text):
                # In a substitution the old text may be escaped.
                if remedy.instead in self._texts[at].replace("\\", ""):
                    return at
            return _NEVER
        if remedy.text:
            return next(self._calls_naming(remedy.text), _NEVER)
        return max((self._done_at(action, unwanted) for action in remedy.actions), default=_NEVER)

    def fails_after(self, done: int, failure: str, advice: Advice) -> bool:
        """Say whether a failure came again after advice was followed and before its command succeeded."""
        advised = {action.purpose for remedy in advice.wanted for action in remedy.actions}
        # Running the remedy is no proof; the command that failed must succeed.
        failing = advice.purposes - (advised - {action.purpose for action in advice.unwanted})
        for at, call in enumerate(self.calls[done:], done):
            if _shows_failure(call, failure):
                return True
            if not _is_failed(call) and any(action.purpose in failing for action in self._actions_of(at)):
                return False
        return False

    def touches(self, advice: Advice) -> bool:
        """Say whether any call is related to what a lesson is about."""
        purposes = [
            program
            for purpose in sorted(advice.purposes)
            for program in LANGUAGE_PROGRAMS.get(purpose, (purpose,))
        ]
        if any(self._runs(purpose) for purpose in purposes):
            return True
        return any(True for word in advice.words for _ in self._calls_naming(word))

    def _runs(self, purpose: str) -> bool:
        if purpose.lower() in self._tools:
            return True
        # A broken log may name a program by white space only.
        longest = max(purpose.split(), key=len, default="")
        return bool(longest) and any(
            purpose in (action.purpose, action.program, action.name)
            for at in self._calls_containing(longest)
            for action in self._actions_of(at)
        )

    def _done_at(self, wanted: CommandAction, unwanted: Sequence[CommandAction]) -> int:
        missing = set(wanted.packages)
        for at, done in self.calls_doing(wanted, unwanted):
            missing -= done.packages
            if not wanted.packages or len(missing) <= _ENOUGH * len(wanted.packages):
                return at
        return _NEVER

    def calls_doing(
        self, action: CommandAction, rivals: Sequence[CommandAction]
    ) -> Iterator[tuple[int, CommandAction]]:
        """Yield the calls that do an action, each with what it does, unless that fits a rival better."""
        # `source` may be written as a dot.
        purpose = "" if action.purpose == SOURCE else max(action.purpose.split(), key=len, default="")
        parts = [part for word in action.words for part in word.split()]
        for at in self._calls_containing(purpose):
            for done in self._actions_of(at) if all(part in self._texts[at] for part in parts) else ():
                better = (rival for rival in rivals if done.name == rival.name != action.name)
                if done.includes(action) and not any(map(done.includes, better)):
                    yield at, done

    def _actions_of(self, at: int) -> tuple[CommandAction, ...]:
        event = self.calls[at]
        if event.kind is EventKind.EDIT or not is_shell(event.tool):
            return ()
        if event.text not in self._actions:
            self._actions[event.text] = command_actions(event.text)
        return self._actions[event.text]

    def _calls_naming(self, word: str) -> Iterator[int]:
        """Yield the calls that contain a word or path as such and not as a part of another."""
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        return (at for at in self._calls_containing(word) if whole.search(self._texts[at]))

    def _calls_containing(self, needle: str) -> Iterator[int]:
        """Yield the calls whose text contains another, in order."""
        return (at for at, text in enumerate(self._texts) if needle in text)


def _is_failed(event: Event) -> bool:
    return (event.is_error or bool(event.exit_code)) and not event.extra.get("rejected")


def _shows_failure(event: Event, failure: str) -> bool:
    """Say whether a call met a failure."""
    found = event_failure(event) if failure and _is_failed(event) else None
    return found is not None and failure_key(found) == failure


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """What is known about a run: its reviewers' findings, and the signatures of the failures it met.

    None means unknown: the run was not reviewed, or not reflected on.
    """

    findings: tuple[Finding, ...] | None
    failures: Set[str] | None


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
                extra={"method": method},
            )
        )
    return verdicts


def _outcome(
    lesson: Lesson, evidence: RunEvidence, found: Sequence[frozenset[str]], overlap: Overlap
) -> tuple[str, bool | None]:
    """Return how it was decided whether a lesson's failure occurred, and whether it did."""
    # A signature is exact; words only make a repetition likely.
    if lesson.signature and evidence.failures is not None and failure_family(lesson):
        return _BY_SIGNATURE, lesson.signature in evidence.failures
    if evidence.findings is None:
        return "none", None
    words = keywords(lesson.summary)
    tags = frozenset(word for tag in lesson.tags for word in keywords(tag))
    return _BY_KEYWORDS, any(matches(finding, words, tags, overlap) for finding in found)


def _effect(method: str, advice: AdviceOutcome, *, failed: bool | None) -> Effect:
    if failed is None or advice.following is Following.WITHHELD:
        return Effect.UNKNOWN
    # Whether a failure came again shows in the calls by its signature, not in findings.
    is_reaction = advice.is_reaction and method == _BY_SIGNATURE
    if failed and (not is_reaction or advice.has_failed_again):
        return Effect.INEFFECTIVE
    if method == _BY_KEYWORDS or advice.following is Following.FOLLOWED:
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
