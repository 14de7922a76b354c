"""Say what of a record the index holds: its words, what is embedded of it, its scope, place and weight.

Every kind of record is found through one index; a new kind joins it by registering its document here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from archivist.records.words import Status
from archivist.store.scope_tokens import scope_token, split_name

if TYPE_CHECKING:
    from archivist.records import Artifact, Entry, Episode, Event, Fact, Lesson
    from archivist.records import Document as Text

R = TypeVar("R")

# Where nobody said how important something is.
EPISODE_IMPORTANCE = 0.4
EVENT_IMPORTANCE = 0.3
ARTIFACT_IMPORTANCE = 0.4
STREAM = "stream"

# Enough of a text to find it by; logs hold outputs of any length.
_TEXT = 4000
_OUTPUT = 240
_ERROR_OUTPUT = 1200
_SPOKEN = 2000

# Words that say what sort of party speaks, not which one.
_ANY_SPEAKER = frozenset(
    [
        "",
        "user",
        "assistant",
        "system",
        "tool",
        "human",
        "agent",
        "model",
        "ai",
        "developer",
        "function",
        "bot",
    ]
)
# The kinds of event in which people and agents speak.
_SPEECH = frozenset(("message", "log", "verdict", "fix"))
_NAME = re.compile(r"[^\W_]{3,80}")


class SearchDocument(NamedTuple):
    """A record as the index sees it. `spoken` is what is embedded of it; nothing of what machines print."""

    text: str
    spoken: str = ""
    scope: tuple[str, ...] = ()
    is_hidden: bool = False
    superseded_by: str = ""
    speaker: str = ""
    time: datetime | None = None
    cycle: int | None = None
    importance: float = 0.0
    thread: str = ""
    position: int = 0


# By the record's name: who writes one kind need not load all the others.
_DOCUMENTS: dict[str, Callable[[Any], SearchDocument | None]] = {}


def build_search_document(record: object) -> SearchDocument | None:
    """Return the record's document, or None for a kind that is not searched."""
    make = _DOCUMENTS.get(type(record).__name__)
    return make(record) if make is not None else None


def _register(
    name: str,
) -> Callable[[Callable[[R], SearchDocument | None]], Callable[[R], SearchDocument | None]]:
    """Register how the document of a record of this name is made."""

    def register(make: Callable[[R], SearchDocument | None]) -> Callable[[R], SearchDocument | None]:
        _DOCUMENTS[name] = make
        return make

    return register


@_register("Lesson")
def _lesson_document(lesson: Lesson) -> SearchDocument:
    scoped = {
        "kind": "lesson",
        "status": lesson.status.value,
        "scope": lesson.scope.value,
        "category": lesson.category.value,
        "type": lesson.type.value,
        "domain": lesson.domain,
        "role": lesson.role,
        "task": lesson.task,
        "repo": lesson.repo,
        "provider": lesson.provider,
        "tool": lesson.tool,
    }
    said = _join_texts(lesson.summary, lesson.rule, lesson.detail)
    return SearchDocument(
        text=_searchable_text(said, " ".join(lesson.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens(scoped, lesson.tags),
        is_hidden=lesson.status in (Status.ARCHIVED, Status.QUARANTINED),
        superseded_by=lesson.superseded_by,
        time=lesson.last_seen or lesson.updated,
        importance=lesson.importance,
    )


@_register("Episode")
def _episode_document(episode: Episode) -> SearchDocument:
    scoped = {
        "kind": "episode",
        "status": episode.status.value,
        "task": episode.task,
        "domain": episode.domain,
        "repo": episode.project,
        "provider": episode.provider,
        "role": episode.agent,
        "agent": episode.agent,
        "action": episode.action.value if episode.action else "",
    }
    said = _join_texts(episode.task, episode.approach, episode.outcome, episode.summary)
    return SearchDocument(
        text=_searchable_text(said, " ".join(episode.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens(scoped, episode.tags),
        time=episode.finished or episode.started,
        importance=EPISODE_IMPORTANCE,
    )


@_register("Event")
def _event_document(event: Event) -> SearchDocument | None:
    output = event.output[:_ERROR_OUTPUT] if event.is_error else event.output[:_OUTPUT]
    found = " ".join(finding.description for finding in event.findings)
    text = _join_texts(event.text[:_TEXT], found[:_TEXT], output)
    if not text.strip():
        return None
    who = event.role or event.agent
    cycle = event.extra.get("cycle")
    scoped = {"kind": "event", "role": who, "tool": event.tool, "run": event.run, "event": event.kind.value}
    return SearchDocument(
        text=_searchable_text(text, event.target if event.target not in event.text else ""),
        spoken=_join_texts(event.text, found)[:_SPOKEN] if event.kind.value in _SPEECH else "",
        scope=_scope_tokens(scoped, ()),
        speaker="" if who.casefold() in _ANY_SPEAKER else who.casefold(),
        time=event.time,
        cycle=cycle if isinstance(cycle, int) else None,
        importance=EVENT_IMPORTANCE,
        thread=event.run,
        position=event.seq,
    )


@_register("Fact")
def _fact_document(fact: Fact) -> SearchDocument:
    scoped = {"kind": "fact", "type": fact.category, "source": fact.source, "repo": fact.project}
    said = f"{fact.category} {fact.key}: {fact.value}"
    return SearchDocument(
        text=_searchable_text(said[:_TEXT], " ".join(fact.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens(scoped, fact.tags),
        time=fact.updated,
        importance=fact.confidence,
    )


@_register("Artifact")
def _artifact_document(artifact: Artifact) -> SearchDocument:
    scoped = {
        "kind": "artifact",
        "type": artifact.type.value,
        "task": artifact.task,
        "agent": artifact.agent,
        "run": artifact.run,
    }
    return SearchDocument(
        text=_searchable_text(artifact.path, artifact.description, artifact.task),
        spoken=_join_texts(artifact.path, artifact.description)[:_SPOKEN],
        scope=_scope_tokens(scoped, ()),
        time=artifact.created,
        importance=ARTIFACT_IMPORTANCE,
    )


@_register("Entry")
def _entry_document(entry: Entry) -> SearchDocument:
    scoped = {
        "kind": "entry",
        "role": entry.role,
        "type": entry.type.value,
        "run": entry.run,
        "tier": "archive" if entry.is_archived else "stream",
    }
    said = _join_texts(entry.action, entry.content)
    references = [f"#{number}" for number in (*entry.issues, *entry.prs) if f"#{number}" not in said]
    return SearchDocument(
        text=_searchable_text(said[:_TEXT], " ".join((*entry.tags, *references))),
        spoken=said[:_SPOKEN],
        scope=(*_scope_tokens(scoped, entry.tags), *_reference_tokens(entry.issues, entry.prs)),
        speaker=entry.role.casefold(),
        time=entry.time,
        cycle=entry.cycle,
        importance=entry.importance / 10,
        thread=STREAM,
        position=entry.seq,
    )


@_register("Document")
def _archive_document(text: Text) -> SearchDocument:
    scoped = {"kind": "document", "type": text.type.value, "tier": "archive", "source": text.source}
    said = _join_texts(text.heading, text.text)
    roles = [scope_token("role", role) for role in text.roles]
    return SearchDocument(
        # Whole: a piece of the archive is bounded, and code in it is longer than anything else.
        text=_searchable_text(said, " ".join(text.tags)),
        spoken=said[:_SPOKEN],
        scope=(*_scope_tokens(scoped, text.tags), *roles, *_reference_tokens(text.issues, ())),
        time=text.date or text.created,
        importance=text.importance / 10,
        thread=f"archive:{text.source}",
        position=text.position,
    )


def _reference_tokens(issues: Iterable[int], prs: Iterable[int]) -> list[str]:
    issued = [scope_token("issue", str(number)) for number in issues]
    return [*issued, *(scope_token("pr", str(number)) for number in prs)]


def _join_texts(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _searchable_text(*parts: str) -> str:
    """Return texts with their camel-case names split beside them, so that either spelling finds them."""
    text = _join_texts(*parts)
    names = dict.fromkeys(name for name in _NAME.findall(text) if _is_camel(name))
    return _join_texts(text, " ".join(" ".join(split_name(name)) for name in names)) if names else text


def _is_camel(name: str) -> bool:
    return (
        not name.isupper()
        and not name[1:].islower()
        and not name[1:].isdigit()
        and any(map(str.isupper, name[1:]))
    )


def _scope_tokens(scoped: dict[str, str], tags: Iterable[str]) -> tuple[str, ...]:
    named = [scope_token(field, value) for field, value in scoped.items() if value]
    return (*named, *(scope_token("tag", tag) for tag in tags))
