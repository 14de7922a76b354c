"""What recall answers, and how a record is shown; the classes of other kinds need not be imported."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.recall.scoring import Score, Weights

if TYPE_CHECKING:
    from archivist.records import Artifact, Document, Entry, Episode, Event, Fact, Lesson

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


class _RenderedRecord(NamedTuple):
    """How a record is shown: its name, its text, and the place where its words can amend others.

    `words` is the text to compare where the shown text adds to it: that two entries have one role does not
    make them more similar.
    """

    name: str
    text: str
    place: str
    words: str = ""


def name_of(kind: str, record: object) -> str:
    """Return what people call a record."""
    return RENDERERS[kind](record).name


def text_of(kind: str, record: object) -> str:
    """Return a record's words on one line."""
    return RENDERERS[kind](record).text


def record_text(kind: str, record: object) -> RecordText:
    """Return the words of a record and where it says them."""
    _, text, place, words = RENDERERS[kind](record)
    return RecordText(words or text, place)


def _render_lesson(lesson: Lesson) -> _RenderedRecord:
    # A mined lesson has its rule in the summary.
    has_rule = bool(lesson.rule) and not lesson.signature
    text = f"{lesson.summary}: {lesson.rule}" if has_rule else lesson.summary
    return _RenderedRecord(lesson.short_id, text, lesson.repo)


def _render_episode(episode: Episode) -> _RenderedRecord:
    text = f"{episode.status.value}: {episode.summary or episode.task}"
    if episode.action:
        text = f"{episode.action.value}: {episode.task}: {episode.approach}. {episode.outcome}"
    return _RenderedRecord(episode.id, _shorten(text), episode.id)


def _render_event(event: Event) -> _RenderedRecord:
    who = event.role or event.agent or event.tool
    said = event.text or " ".join(finding.description for finding in event.findings) or event.output
    # What is said has one place; a call says nothing, so that it amends nothing.
    place = "" if event.kind.value in _SPEECH else event.id
    return _RenderedRecord(event.id, _shorten(f"{who}: {said}" if who else said), place)


def _render_fact(fact: Fact) -> _RenderedRecord:
    text = _shorten(f"{fact.category} {fact.key}: {fact.value}")
    return _RenderedRecord(f"{fact.category}/{fact.key}", text, fact.project)


def _render_artifact(artifact: Artifact) -> _RenderedRecord:
    text = _shorten(f"{artifact.path} ({artifact.type.value}) {artifact.description}")
    return _RenderedRecord(artifact.path, text, artifact.id)


def _render_entry(entry: Entry) -> _RenderedRecord:
    words = f"{entry.action}. {entry.content}" if entry.content else entry.action
    text = _shorten(f"{f'cycle {entry.cycle} {entry.role}'.strip()}: {words}")
    return _RenderedRecord(f"cycle {entry.cycle}", text, "stream", words)


def _render_document(document: Document) -> _RenderedRecord:
    # Most pieces begin with their own heading.
    has_heading = document.text.lstrip("# ").startswith(document.heading)
    text = _shorten(document.text if has_heading else f"{document.heading}: {document.text}")
    return _RenderedRecord(f"{document.source}#{document.position}", text, document.id)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


RENDERERS: dict[str, Callable[[Any], _RenderedRecord]] = {
    "lesson": _render_lesson,
    "episode": _render_episode,
    "event": _render_event,
    "fact": _render_fact,
    "artifact": _render_artifact,
    "entry": _render_entry,
    "document": _render_document,
}
