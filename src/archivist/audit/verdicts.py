"""Judge briefed lessons and earlier fixes by a run's calls, its failures and its reviewers' findings.

What a run did with a lesson is one of

    followed         a remedy was carried out: the command with its important words, the path, the change
    ignored          the occasion came, and the remedy did not, or only after the failure or the wrong way
    not applicable   nothing that the lesson is about was touched
    unknown          no calls are known, or the lesson names nothing that a call could show

The occasion is the situation that the lesson is about: the run called the program that used to fail, touched
the file, or did what replaces the failing call. A step that only prepares for it is none. What the run merely
said or read does not count, since the brief itself is part of its transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
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
from archivist.reading.calls import event_failure
from archivist.reading.failures import failure_key, is_shell
from archivist.recall.keywords import Overlap, is_other_category, keywords, repeats
from archivist.records import Effect, Event, EventKind, Finding, Following, Lesson, Provenance, Verdict
from archivist.records.run_words import CALL_KINDS

# Half of a list of packages is enough: those that are installed already need no install.
_ENOUGH = 0.5
# The index of a call that was never made.
_NEVER = 1 << 60


class AdviceOutcome(NamedTuple):
    """What a run did with a lesson, and the result.

    `had_occasion` is None when that is unknown. `is_reaction` says that the advice is for when the failure
    has come, `has_failed_again` that it came again before the failing command succeeded: after the advice was
    followed, or after the first time if it was not.
    """

    following: Following
    had_occasion: bool | None = None
    is_reaction: bool = False
    has_failed_again: bool = False


def advice_outcomes(
    lessons: Iterable[Lesson],
    events: Sequence[Event],
    failed: Mapping[str, bool | None] | None = None,
    files: Mapping[str, frozenset[str]] | None = None,
) -> dict[str, AdviceOutcome]:
    """Return what a run did with each lesson, by id, reading its calls only once.

    `files` are those in which a lesson's findings were made, by its id.
    """
    log = _CallLog(events)
    known, places = failed or {}, files or {}
    outcomes = {}
    for lesson in lessons:
        advice = read_advice(lesson)
        advice = replace(advice, words=advice.words | places.get(lesson.id, frozenset()))
        outcomes[lesson.id] = _judge_advice(advice, failure_family(lesson), log, bool(known.get(lesson.id)))
    return outcomes


def _judge_advice(advice: Advice, family: str, log: _CallLog, failed: bool) -> AdviceOutcome:
    if not log.calls or not (advice.wanted or advice.unwanted or advice.purposes or advice.words):
        return AdviceOutcome(Following.UNKNOWN, True if failed else None, advice.is_reaction)
    done = min((log.followed_at(remedy, advice.unwanted) for remedy in advice.wanted), default=_NEVER)
    advised = [action for remedy in advice.wanted for action in remedy.actions]
    violating = (at for action in advice.unwanted for at, _ in log.calls_doing(action, advised))
    wrong = min(violating, default=_NEVER)
    is_replaced = done < _NEVER and not advice.is_preparation
    had_occasion = failed or wrong < _NEVER or is_replaced or log.touches(advice)
    if failed and done < _NEVER and not advice.is_reaction:
        # A remedy that came after the failure did not prevent it.
        wrong = next((at for at in range(done) if _shows_failure(log.calls[at], family)), wrong)
    if done < _NEVER:
        following = Following.FOLLOWED if done <= wrong else Following.IGNORED
    elif wrong < _NEVER:
        following = Following.IGNORED
    elif not had_occasion:
        following = Following.NOT_APPLICABLE
    elif advice.wanted:
        following = Following.IGNORED
    else:
        following = Following.UNKNOWN if failed else log.avoidance(advice.failing)
    has_failed_again = False
    if failed and advice.is_reaction:
        first = next((at for at, call in enumerate(log.calls, 1) if _shows_failure(call, family)), _NEVER)
        has_failed_again = log.fails_after(done if done < _NEVER else first, family, advice)
    return AdviceOutcome(following, had_occasion, advice.is_reaction, has_failed_again)


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
        """Say whether any call is related to what a lesson is about, apart from steps that prepare for it."""
        prepared = [action for remedy in advice.wanted for action in remedy.actions if advice.is_preparation]
        purposes = [
            program
            for purpose in sorted(advice.purposes)
            for program in LANGUAGE_PROGRAMS.get(purpose, (purpose,))
        ]
        if any(self._runs(purpose, prepared) for purpose in purposes):
            return True
        return any(
            not self._actions_of(at) or self._other_actions(at, prepared)
            for word in advice.words
            for at in self._calls_naming(word)
        )

    def _runs(self, purpose: str, prepared: Sequence[CommandAction]) -> bool:
        if purpose.lower() in self._tools:
            return True
        # A broken log may name a program by white space only.
        longest = max(purpose.split(), key=len, default="")
        return bool(longest) and any(
            purpose in (action.purpose, action.program, action.name)
            for at in self._calls_containing(longest)
            for action in self._other_actions(at, prepared)
        )

    def _other_actions(self, at: int, prepared: Sequence[CommandAction]) -> list[CommandAction]:
        """Return what a call does besides preparing."""
        return [action for action in self._actions_of(at) if not any(map(action.includes, prepared))]

    def avoidance(self, failing: Sequence[CommandAction]) -> Following:
        """Say whether a run followed a lesson that only names failing calls: it made them in another way."""
        made = []
        for action in failing:
            arguments = frozenset(word for word in action.words if not word.startswith("-"))
            made += [done for _, done in self.calls_doing(replace(action, words=arguments), ())]
        if not made:
            return Following.UNKNOWN
        return Following.IGNORED if any(done in failing for done in made) else Following.FOLLOWED

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
                better = (
                    rival
                    for rival in rivals
                    if done.name == rival.name != action.name
                    # The same call with more words: `cargo test x --lib` is not `cargo test <test>`.
                    or (rival.purpose == action.purpose and rival.words > action.words)
                )
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
    files: Mapping[str, frozenset[str]] | None = None,
) -> list[Verdict]:
    """Return a verdict on each lesson that a run was told, then on each that was withheld from it.

    Whether the failure occurred is decided by its signature if the lesson has one and the run was reflected
    on, else by the documented rule: it did when a finding repeats the lesson's words. A told lesson

    - did not help when its failure occurred. For advice that is for after the failure: when it came again;
    - was not needed when the run had no occasion for it;
    - helped when the occasion came, it was followed, and the failure did not occur. A fix of what the lesson
      describes, that no reviewer had to ask for, is following it;
    - was ignored when the occasion came and it was not followed;
    - else nobody can tell.

    A withheld lesson has no effect; its failures are what told lessons are compared with. `files` are those
    in which a lesson's findings were made.
    """
    told = {lesson.id: lesson for lesson in lessons}
    untold = {lesson.id: lesson for lesson in withheld if lesson.id not in told}
    judged = {**told, **untold}
    outcomes = {lesson.id: _outcome(lesson, evidence, overlap) for lesson in judged.values()}
    known = {lesson_id: failed for lesson_id, (_, failed) in outcomes.items()}
    seen = advice_outcomes(judged.values(), events, known, files)
    fixed = [finding for event in events if event.kind is EventKind.FIX for finding in event.findings]
    verdicts = []
    for lesson_id, (method, failed) in outcomes.items():
        advice = seen[lesson_id]
        if failed is False and any(repeats_lesson(finding, judged[lesson_id], overlap) for finding in fixed):
            advice = advice._replace(following=Following.FOLLOWED, had_occasion=True)
        if lesson_id in untold:
            advice = advice._replace(following=Following.WITHHELD)
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


def repeats_lesson(finding: Finding, lesson: Lesson, overlap: Overlap) -> bool:
    """Say whether a finding is what a lesson describes."""
    words, tags = keywords(lesson.summary), frozenset(word for tag in lesson.tags for word in keywords(tag))
    categories = lesson.tags if lesson.provenance is Provenance.REVIEWED else ()
    is_other = is_other_category(finding.category, categories)
    return repeats(keywords(finding.description), words, tags, overlap, is_other_category=is_other)


def _outcome(lesson: Lesson, evidence: RunEvidence, overlap: Overlap) -> tuple[str, bool | None]:
    """Return how it was decided whether a lesson's failure occurred, and whether it did."""
    # A signature is exact; words only make a repetition likely.
    if lesson.signature and evidence.failures is not None and failure_family(lesson):
        return "signature", lesson.signature in evidence.failures
    if evidence.findings is None:
        return "none", None
    return "keywords", any(repeats_lesson(finding, lesson, overlap) for finding in evidence.findings)


def _effect(method: str, advice: AdviceOutcome, *, failed: bool | None) -> Effect:
    # Whether a failure came again shows in the calls by its signature, not in findings.
    is_reaction = advice.is_reaction and method == "signature"
    is_withheld = advice.following is Following.WITHHELD
    if failed and not is_withheld and (not is_reaction or advice.has_failed_again):
        return Effect.INEFFECTIVE
    if advice.had_occasion is False:
        return Effect.NOT_NEEDED
    if failed is None or is_withheld:
        return Effect.UNKNOWN
    if advice.following is Following.FOLLOWED:
        return Effect.HELPFUL if advice.had_occasion else Effect.UNKNOWN
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
    found: dict[tuple[str, str], Regression] = {}
    for event in fixes:
        if event.run == run or event.kind is not EventKind.FIX:
            continue
        for fixed in event.findings:
            for finding in findings:
                if _repeats_finding(finding, fixed, overlap):
                    regression = Regression(event.run, fixed.description, finding)
                    # Fixes come newest first: the latest fix is the one that did not hold.
                    found.setdefault((fixed.description, finding.description), regression)
    return list(found.values())


def fixes_of(fixes: Iterable[Event], finding: Finding, overlap: Overlap) -> list[Event]:
    """Return the fixes of what a finding describes."""
    return [fix for fix in fixes if any(_repeats_finding(finding, each, overlap) for each in fix.findings)]


def _repeats_finding(finding: Finding, fixed: Finding, overlap: Overlap) -> bool:
    is_other = is_other_category(finding.category, (fixed.category,))
    words, known = keywords(finding.description), keywords(fixed.description)
    return repeats(words, known, frozenset(), overlap, is_other_category=is_other)
