"""Tell what a run did with a lesson that it was told, from the calls it made.

    followed         a remedy was carried out: the command with its important words, the path, the change
    ignored          the occasion came, and the remedy did not, or only after the failure or the wrong way
    not applicable   nothing that the lesson is about was touched
    unknown          no calls are known, or the lesson names nothing that a call could show

What the run merely said or read does not count, since the brief itself is part of its transcript.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from archivist.audit.actions import CommandAction, command_actions
from archivist.audit.advice import LANGUAGE_PROGRAMS, Advice, AdvisedRemedy, failure_family, read_advice
from archivist.reading.calls import CALL_KINDS, event_failure
from archivist.reading.failures import failure_key, is_shell
from archivist.records import Event, EventKind, Following, Lesson

# Separates the calls: a character that no search text contains.
_BETWEEN = "\0"
# Half of a list of packages is enough: those that are installed already need no install.
_ENOUGH = 0.5
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


def judge_following(lesson: Lesson, events: Sequence[Event], *, failed: bool | None = None) -> Following:
    """Return what a run did with one lesson; `failed` says whether its failure is known to have come."""
    return advice_outcomes((lesson,), events, {lesson.id: failed})[lesson.id].following


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
    wrong = min((log.violated_at(action, advice.wanted) for action in advice.unwanted), default=_NEVER)
    if failed and done < _NEVER and not advice.is_reaction:
        wrong = min(wrong, log.failed_at(family, before=done))
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
    """A run's calls as one text: a search is one scan, and only the calls that match are parsed."""

    __slots__ = ("_actions", "_lower", "_parts", "_starts", "_text", "_tools", "calls")

    def __init__(self, events: Sequence[Event]) -> None:
        self.calls = [event for event in events if event.kind in CALL_KINDS]
        self._parts = []
        for event in self.calls:
            texts = [event.text] if event.target in event.text else [event.text, event.target]
            if event.kind is EventKind.EDIT:
                edit = (str(event.extra.get(name) or "") for name in ("old", "new"))
                texts = [event.target, event.text, *edit]
            self._parts.append("\n".join(texts))
        self._starts = [0, *accumulate(len(part) + len(_BETWEEN) for part in self._parts)][:-1]
        self._text = _BETWEEN.join(self._parts)
        self._lower = ""
        self._tools = {event.tool.lower() for event in self.calls}
        self._actions: dict[str, tuple[CommandAction, ...]] = {}

    def followed_at(self, remedy: AdvisedRemedy, unwanted: Sequence[CommandAction]) -> int:
        """Return the call that completed a remedy, or never."""
        if remedy.instead:
            for at in self._calls_containing(remedy.text):
                # In a substitution the old text may be escaped.
                part = self._parts[at]
                if remedy.instead in part or remedy.instead in part.replace("\\", ""):
                    return at
            return _NEVER
        if remedy.text:
            return next(self._calls_naming(remedy.text), _NEVER)
        return max((self._done_at(action, unwanted) for action in remedy.actions), default=_NEVER)

    def violated_at(self, unwanted: CommandAction, wanted: Sequence[AdvisedRemedy]) -> int:
        """Return the first call that does what a lesson speaks against and not what it asks for."""
        advised = [action for remedy in wanted for action in remedy.actions]
        for at, done in self._calls_doing(unwanted):
            if done.includes(unwanted) and not any(_fits_better(done, each, unwanted) for each in advised):
                return at
        return _NEVER

    def failed_at(self, failure: str, *, before: int) -> int:
        """Return the first call that met a failure, among those before another call, or never."""
        return next((at for at in range(before) if _shows_failure(self.calls[at], failure)), _NEVER)

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
        if any(True for word in advice.words for _ in self._calls_naming(word)):
            return True
        if purposes or advice.words:
            return False
        self._lower = self._lower or self._text.lower()
        return any(tag in self._lower for tag in advice.tags)

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
        for at, done in self._calls_doing(wanted):
            if not done.includes(wanted) or any(_fits_better(done, action, wanted) for action in unwanted):
                continue
            missing -= done.packages
            if not wanted.packages or len(missing) <= _ENOUGH * len(wanted.packages):
                return at
        return _NEVER

    def _calls_doing(self, action: CommandAction) -> Iterator[tuple[int, CommandAction]]:
        """Yield the actions of all calls that contain the words of an action."""
        for at in self._calls_containing(action.needle):
            if all(part in self._parts[at] for word in action.words for part in word.split()):
                yield from ((at, done) for done in self._actions_of(at))

    def _actions_of(self, at: int) -> tuple[CommandAction, ...]:
        event = self.calls[at]
        if event.kind is EventKind.EDIT or not is_shell(event.tool):
            return ()
        if event.text not in self._actions:
            self._actions[event.text] = command_actions(event.text)
        return self._actions[event.text]

    def _calls_naming(self, word: str) -> Iterator[int]:
        """Yield the calls that contain a word or path as such and not as a part of another."""
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
        """Yield the calls whose text contains another, in order, each once."""
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
    found = event_failure(event) if failure and _is_failed(event) else None
    return found is not None and failure_key(found) == failure


def _fits_better(done: CommandAction, one: CommandAction, other: CommandAction) -> bool:
    """Say whether what was done fits one of two actions better than the other."""
    if not done.includes(one):
        return False
    return (done.name == one.name, one.size) > (done.name == other.name, other.size)
