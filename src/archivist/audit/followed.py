"""Tell what a run did with a lesson that it was told, from the calls it made.

    followed         a remedy was carried out: the command with its telling words, the path, the change
    ignored          the occasion came, and the remedy did not, or only after the failure or the wrong way
    not applicable   nothing the lesson is about was touched
    unknown          no calls are known, or the lesson names nothing that a call could show

What the run merely said or read does not count; the brief itself stands in its transcript.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from archivist.audit.actions import CommandAction, command_actions
from archivist.audit.advice import KIN, Advice, AdvisedRemedy, failure_family, read_advice
from archivist.reading.failures import detect_failure, failure_key, is_shell
from archivist.records import Event, EventKind, Following, Lesson

_CALLS = (EventKind.TOOL_CALL, EventKind.EDIT, EventKind.TEST)
_BETWEEN = "\0"
# Half of a list of packages is enough: what is there already need not be installed.
_ENOUGH = 0.5
_NEVER = 1 << 60


class AdviceOutcome(NamedTuple):
    """What a run made of a lesson, and what came of it.

    `is_reaction` says that the advice is for when the failure has come, `has_failed_again` that the failure
    came after the advice was followed, before what had failed went well.
    """

    following: Following
    is_reaction: bool = False
    has_failed_again: bool = False


def judge_following(lesson: Lesson, events: Sequence[Event], *, failed: bool | None = None) -> Following:
    """Return what a run made of one lesson; `failed` says whether its failure is known to have come."""
    return advice_outcomes((lesson,), events, {lesson.id: failed})[lesson.id].following


def advice_outcomes(
    lessons: Iterable[Lesson], events: Sequence[Event], failed: dict[str, bool | None] | None = None
) -> dict[str, AdviceOutcome]:
    """Return what a run made of each lesson, by id, reading its calls only once."""
    trail = _CallLog(events)
    known = failed or {}
    return {
        lesson.id: _advice_outcome(lesson, trail, failed=bool(known.get(lesson.id))) for lesson in lessons
    }


def _advice_outcome(lesson: Lesson, trail: _CallLog, *, failed: bool) -> AdviceOutcome:
    advice = read_advice(lesson)
    if not trail.calls or not (advice.wanted or advice.unwanted or advice.purposes or advice.words):
        return AdviceOutcome(Following.UNKNOWN, advice.is_reaction)
    done = min((trail.followed_at(remedy, advice.unwanted) for remedy in advice.wanted), default=_NEVER)
    heeded = _judge_following(lesson, advice, trail, done, failed=failed)
    is_tried = failed and advice.is_reaction and done < _NEVER
    return AdviceOutcome(
        heeded, advice.is_reaction, is_tried and trail.fails_after(done, failure_family(lesson), advice)
    )


def _judge_following(
    lesson: Lesson, advice: Advice, trail: _CallLog, done: int, *, failed: bool
) -> Following:
    wrong = min((trail.violated_at(deed, advice.wanted) for deed in advice.unwanted), default=_NEVER)
    if failed and done < _NEVER and not advice.is_reaction:
        wrong = min(wrong, trail.failed_at(failure_family(lesson), before=done))
    if done < _NEVER:
        return Following.FOLLOWED if done <= wrong else Following.IGNORED
    if wrong < _NEVER:
        return Following.IGNORED
    if not failed and not trail.touches(advice):
        return Following.NOT_APPLICABLE
    return Following.IGNORED if advice.wanted else Following.UNKNOWN


class _CallLog:
    """A run's calls as one text: looking for a word is one scan, and only what holds it is parsed."""

    __slots__ = ("_deeds", "_lower", "_parts", "_starts", "_text", "_tools", "calls")

    def __init__(self, events: Sequence[Event]) -> None:
        self.calls = [event for event in events if event.kind in _CALLS]
        self._parts = [_call_text(event) for event in self.calls]
        self._starts = [0, *accumulate(len(part) + len(_BETWEEN) for part in self._parts)][:-1]
        self._text = _BETWEEN.join(self._parts)
        self._lower = ""
        self._tools = {event.tool.lower() for event in self.calls}
        self._deeds: dict[str, tuple[CommandAction, ...]] = {}

    def followed_at(self, remedy: AdvisedRemedy, unwanted: Sequence[CommandAction]) -> int:
        """Return the call by which a remedy was carried out, or never."""
        if remedy.instead:
            return next(
                (at for at in self._calls_containing(remedy.text) if self._has(at, remedy.instead)), _NEVER
            )
        if remedy.text:
            return next(self._calls_naming(remedy.text), _NEVER)
        return max((self._done_at(deed, unwanted) for deed in remedy.deeds), default=_NEVER)

    def violated_at(self, deed: CommandAction, wanted: Sequence[AdvisedRemedy]) -> int:
        """Return the first call that does what a lesson speaks against, unless it does what is wanted too."""
        asked = [each for remedy in wanted for each in remedy.deeds]
        for at, done in self._calls_doing(deed):
            if done.includes(deed) and not any(_fits_better(done, each, deed) for each in asked):
                return at
        return _NEVER

    def failed_at(self, failure: str, *, before: int) -> int:
        """Return the first call that met a failure, among those before another call, or never."""
        return next((at for at in range(before) if _shows_failure(self.calls[at], failure)), _NEVER)

    def fails_after(self, done: int, failure: str, advice: Advice) -> bool:
        """Say whether a failure came again once advice was followed, before what had failed went well."""
        advised = {deed.purpose for remedy in advice.wanted for deed in remedy.deeds}
        failing = advice.purposes - (advised - {deed.purpose for deed in advice.unwanted})
        for at in range(done, len(self.calls)):
            if _shows_failure(self.calls[at], failure):
                return True
            if not _is_failed(self.calls[at]) and any(
                each.purpose in failing for each in self._actions_of(at)
            ):
                return False
        return False

    def touches(self, advice: Advice) -> bool:
        """Say whether any call has to do with what a lesson is about."""
        purposes = [kin for purpose in sorted(advice.purposes) for kin in KIN.get(purpose, (purpose,))]
        if any(self._runs(purpose) for purpose in purposes):
            return True
        if any(True for word in advice.words for _ in self._calls_naming(word)):
            return True
        if purposes or advice.words:
            return False
        self._lower = self._lower or self._text.lower()
        return any(tag in self._lower for tag in advice.tags)

    def _runs(self, purpose: str) -> bool:
        if purpose.lower() in self._tools:
            return True
        # A name that is nothing but white space, as a broken log may have it, is nobody's.
        longest = max(purpose.split(), key=len, default="")
        return bool(longest) and any(
            purpose in (each.purpose, each.program, each.name)
            for at in self._calls_containing(longest)
            for each in self._actions_of(at)
        )

    def _has(self, at: int, text: str) -> bool:
        """Say whether a call holds a text, escaped for a pattern or not."""
        return text in self._parts[at] or text in self._parts[at].replace("\\", "")

    def _done_at(self, wanted: CommandAction, unwanted: Sequence[CommandAction]) -> int:
        missing = set(wanted.packages)
        for at, done in self._calls_doing(wanted):
            if not done.includes(wanted) or any(_fits_better(done, each, wanted) for each in unwanted):
                continue
            missing -= done.packages
            if not wanted.packages or len(missing) <= _ENOUGH * len(wanted.packages):
                return at
        return _NEVER

    def _calls_doing(self, deed: CommandAction) -> Iterator[tuple[int, CommandAction]]:
        for at in self._calls_containing(deed.needle):
            if all(part in self._parts[at] for word in deed.words for part in word.split()):
                yield from ((at, done) for done in self._actions_of(at))

    def _actions_of(self, at: int) -> tuple[CommandAction, ...]:
        event = self.calls[at]
        if event.kind is EventKind.EDIT or not is_shell(event.tool):
            return ()
        if event.text not in self._deeds:
            self._deeds[event.text] = command_actions(event.text)
        return self._deeds[event.text]

    def _calls_naming(self, word: str) -> Iterator[int]:
        """Yield the calls that hold a word or path as such and not as a part of another."""
        for at in self._calls_containing(word):
            text = self._parts[at]
            place = text.find(word)
            while place >= 0:
                around = text[place - 1 : place] + text[place + len(word) : place + len(word) + 1]
                if not any(char.isalnum() or char == "_" for char in around):
                    yield at
                    break
                place = text.find(word, place + 1)

    def _calls_containing(self, needle: str) -> Iterator[int]:
        """Yield the calls whose text holds another, in order, each once."""
        place = self._text.find(needle)
        while place >= 0:
            at = bisect_right(self._starts, place) - 1
            yield at
            if at + 1 == len(self._starts):
                return
            place = self._text.find(needle, self._starts[at + 1])


def _is_failed(event: Event) -> bool:
    return event.is_error or bool(event.exit_code)


def _shows_failure(event: Event, failure: str) -> bool:
    """Say whether a call met a failure."""
    if not failure or not _is_failed(event):
        return False
    said = event.text if is_shell(event.tool) and event.kind is not EventKind.EDIT else event.target
    met = detect_failure(event.tool, said, event.exit_code, event.is_error, event.output)
    return met is not None and failure_key(met) == failure


def _fits_better(done: CommandAction, one: CommandAction, other: CommandAction) -> bool:
    """Say whether what was done is the one of two things more than the other."""
    if not done.includes(one):
        return False
    return (done.name == one.name, one.size) > (done.name == other.name, other.size)


def _call_text(event: Event) -> str:
    if event.kind is not EventKind.EDIT:
        return event.text if event.target in event.text else f"{event.text}\n{event.target}"
    return f"{event.target}\n{event.text}\n{event.extra.get('old') or ''}\n{event.extra.get('new') or ''}"
