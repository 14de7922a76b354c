"""Say what was found, a way for each kind of record, by its name: no other kind need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.recall.order import Said

if TYPE_CHECKING:
    from archivist.records import Episode, Event, Lesson

_SHOWN = 400
_SPEECH = ("message", "log", "verdict", "fix")


class _Way(NamedTuple):
    """How a kind of record is told: its name, its text, and where its words can amend others."""

    name: Callable[[Any], str]
    text: Callable[[Any], str]
    place: Callable[[Any], str]


def name_of(kind: str, record: object) -> str:
    """Return what people call a record."""
    return _WAYS[kind].name(record)


def text_of(kind: str, record: object) -> str:
    """Return a record's words on one line."""
    return _WAYS[kind].text(record)


def said_by(kind: str, record: object) -> Said:
    """Return what a record says and where."""
    return Said(_WAYS[kind].text(record), _WAYS[kind].place(record))


def _lesson(lesson: Lesson) -> str:
    # What was mined says its rule in the summary.
    is_said = not lesson.rule or lesson.signature
    return lesson.summary if is_said else f"{lesson.summary}: {lesson.rule}"


def _episode(episode: Episode) -> str:
    return _short(f"{episode.status.value}: {episode.summary or episode.task}")


def _event(event: Event) -> str:
    who = event.role or event.agent or event.tool
    said = event.text or " ".join(each.description for each in event.findings) or event.output
    return _short(f"{who}: {said}" if who else said)


def _place_of_event(event: Event) -> str:
    """Return one place for all that is said; a call says nothing, so that it amends nothing."""
    return "" if event.kind.value in _SPEECH else event.id


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


_WAYS = {
    "lesson": _Way(lambda lesson: lesson.short_id, _lesson, lambda lesson: lesson.repo),
    "episode": _Way(lambda episode: episode.id, _episode, lambda episode: episode.id),
    "event": _Way(lambda event: event.id, _event, _place_of_event),
}
