"""Say what was found, a way for each kind of record, by its name: no other kind need be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.recall.amendments import RecordText

if TYPE_CHECKING:
    from archivist.records import Document, Entry, Episode, Event, Lesson

_SHOWN = 400
_SPEECH = ("message", "log", "verdict", "fix")


class _RecordRenderer(NamedTuple):
    """How a kind of record is told: its name, its text, and where its words can amend others.

    Some are told with more than they say: that two entries are of one role makes them no more alike.
    """

    name: Callable[[Any], str]
    text: Callable[[Any], str]
    place: Callable[[Any], str]
    words: Callable[[Any], str] | None = None

    def own_text(self, record: object) -> str:
        """Return what a record itself says."""
        return (self.words or self.text)(record)


def name_of(kind: str, record: object) -> str:
    """Return what people call a record."""
    return _WAYS[kind].name(record)


def text_of(kind: str, record: object) -> str:
    """Return a record's words on one line."""
    return _WAYS[kind].text(record)


def record_text(kind: str, record: object) -> RecordText:
    """Return what a record says and where."""
    return RecordText(_WAYS[kind].own_text(record), _WAYS[kind].place(record))


def _render_lesson(lesson: Lesson) -> str:
    # What was mined says its rule in the summary.
    is_said = not lesson.rule or lesson.signature
    return lesson.summary if is_said else f"{lesson.summary}: {lesson.rule}"


def _render_episode(episode: Episode) -> str:
    if episode.action:
        return _shorten_text(f"{episode.action.value}: {episode.task}: {episode.approach}. {episode.outcome}")
    return _shorten_text(f"{episode.status.value}: {episode.summary or episode.task}")


def _render_event(event: Event) -> str:
    who = event.role or event.agent or event.tool
    said = event.text or " ".join(each.description for each in event.findings) or event.output
    return _shorten_text(f"{who}: {said}" if who else said)


def _place_of_event(event: Event) -> str:
    """Return one place for all that is said; a call says nothing, so that it amends nothing."""
    return "" if event.kind.value in _SPEECH else event.id


def _shorten_text(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _render_entry(entry: Entry) -> str:
    who = f"cycle {entry.cycle} {entry.role}".strip()
    return _shorten_text(f"{who}: {_entry_words(entry)}")


def _entry_words(entry: Entry) -> str:
    return f"{entry.action}. {entry.content}" if entry.content else entry.action


def _render_document(document: Document) -> str:
    # A piece begins with its own heading.
    words = (
        document.text
        if document.text.lstrip("# ").startswith(document.heading)
        else (f"{document.heading}: {document.text}")
    )
    return _shorten_text(words)


_WAYS = {
    "lesson": _RecordRenderer(lambda lesson: lesson.short_id, _render_lesson, lambda lesson: lesson.repo),
    "episode": _RecordRenderer(lambda episode: episode.id, _render_episode, lambda episode: episode.id),
    "event": _RecordRenderer(lambda event: event.id, _render_event, _place_of_event),
    "fact": _RecordRenderer(
        lambda fact: f"{fact.category}/{fact.key}",
        lambda fact: _shorten_text(f"{fact.category} {fact.key}: {fact.value}"),
        lambda fact: fact.project,
    ),
    "artifact": _RecordRenderer(
        lambda artifact: artifact.path,
        lambda artifact: _shorten_text(f"{artifact.path} ({artifact.type.value}) {artifact.description}"),
        lambda artifact: artifact.id,
    ),
    "entry": _RecordRenderer(
        lambda entry: f"cycle {entry.cycle}", _render_entry, lambda _entry: "stream", _entry_words
    ),
    "document": _RecordRenderer(
        lambda document: f"{document.source}#{document.position}",
        _render_document,
        lambda document: document.id,
    ),
}
