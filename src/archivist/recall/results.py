"""What recall answers, and how a record is shown; the classes of other kinds need not be imported."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.recall.scoring import Score, Weights

if TYPE_CHECKING:
    from archivist.records import Document, Entry, Episode, Event, Lesson

DEFAULT_LIMIT = 10
# So few texts without a vector are embedded during a query: the bundled table takes under a millisecond.
FRESH = 48
# Characters of a record that a list of hits shows.
_SHOWN = 400
# The kinds of event in which people and agents speak.
_SPEECH = ("message", "log", "verdict", "fix")


class Hit(NamedTuple):
    """One result. `notes` explain its rank, `window` is the text around it."""

    kind: str
    id: str
    name: str
    text: str
    score: float
    time: datetime | None
    why: Score
    notes: tuple[str, ...] = ()
    window: tuple[str, ...] = ()


class RecallResult(NamedTuple):
    """The results, the words that were searched for, and how many texts have no vector yet."""

    hits: tuple[Hit, ...]
    weights: Weights
    words: tuple[str, ...] = ()
    embedder: str = ""
    unembedded: int = 0
    problem: str = ""


class RecordText(NamedTuple):
    """The words of a document and where it says them: only texts of one place amend each other."""

    text: str
    place: str = ""


class RecordRenderer(NamedTuple):
    """How a kind of record is shown: its name, its text, and the place where its words can amend others.

    `words` is the text to compare where the shown text adds to it: that two entries have one role does not
    make them more similar.
    """

    name: Callable[[Any], str]
    text: Callable[[Any], str]
    place: Callable[[Any], str]
    words: Callable[[Any], str] | None = None


def name_of(kind: str, record: object) -> str:
    """Return what people call a record."""
    return RENDERERS[kind].name(record)


def text_of(kind: str, record: object) -> str:
    """Return a record's words on one line."""
    return RENDERERS[kind].text(record)


def record_text(kind: str, record: object) -> RecordText:
    """Return the words of a record and where it says them."""
    renderer = RENDERERS[kind]
    return RecordText((renderer.words or renderer.text)(record), renderer.place(record))


def _render_lesson(lesson: Lesson) -> str:
    # A mined lesson has its rule in the summary.
    has_rule = bool(lesson.rule) and not lesson.signature
    return f"{lesson.summary}: {lesson.rule}" if has_rule else lesson.summary


def _render_episode(episode: Episode) -> str:
    if episode.action:
        return _shorten(f"{episode.action.value}: {episode.task}: {episode.approach}. {episode.outcome}")
    return _shorten(f"{episode.status.value}: {episode.summary or episode.task}")


def _render_event(event: Event) -> str:
    who = event.role or event.agent or event.tool
    said = event.text or " ".join(finding.description for finding in event.findings) or event.output
    return _shorten(f"{who}: {said}" if who else said)


def _entry_words(entry: Entry) -> str:
    return f"{entry.action}. {entry.content}" if entry.content else entry.action


def _render_document(document: Document) -> str:
    # Most pieces begin with their own heading.
    has_heading = document.text.lstrip("# ").startswith(document.heading)
    return _shorten(document.text if has_heading else f"{document.heading}: {document.text}")


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


RENDERERS = {
    "lesson": RecordRenderer(lambda lesson: lesson.short_id, _render_lesson, lambda lesson: lesson.repo),
    "episode": RecordRenderer(lambda episode: episode.id, _render_episode, lambda episode: episode.id),
    "event": RecordRenderer(
        lambda event: event.id,
        _render_event,
        # What is said has one place; a call says nothing, so that it amends nothing.
        lambda event: "" if event.kind.value in _SPEECH else event.id,
    ),
    "fact": RecordRenderer(
        lambda fact: f"{fact.category}/{fact.key}",
        lambda fact: _shorten(f"{fact.category} {fact.key}: {fact.value}"),
        lambda fact: fact.project,
    ),
    "artifact": RecordRenderer(
        lambda artifact: artifact.path,
        lambda artifact: _shorten(f"{artifact.path} ({artifact.type.value}) {artifact.description}"),
        lambda artifact: artifact.id,
    ),
    "entry": RecordRenderer(
        lambda entry: f"cycle {entry.cycle}",
        lambda entry: _shorten(f"{f'cycle {entry.cycle} {entry.role}'.strip()}: {_entry_words(entry)}"),
        lambda _entry: "stream",
        _entry_words,
    ),
    "document": RecordRenderer(
        lambda document: f"{document.source}#{document.position}",
        _render_document,
        lambda document: document.id,
    ),
}
