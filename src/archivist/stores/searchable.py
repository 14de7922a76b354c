"""Say what of a record the text index holds: its words, and its scope as tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from hashlib import blake2s

from archivist.records import Episode, Lesson


@dataclass(frozen=True, slots=True)
class Document:
    """A record as the index sees it."""

    text: str
    scope: tuple[str, ...]


def scope_token(field: str, value: str) -> str:
    """Return the token that stands for a field's value inside the index, whatever characters it has."""
    return f"{field}{blake2s(value.casefold().encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


@singledispatch
def document(_record: object) -> Document | None:
    """Return the record's document, or None for a kind that is not searched."""
    return None


@document.register
def _(lesson: Lesson) -> Document:
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
    tokens = [scope_token(field, value) for field, value in scoped.items() if value]
    tokens += [scope_token("tag", tag) for tag in lesson.tags]
    words = (lesson.summary, lesson.rule, lesson.detail, " ".join(lesson.tags))
    return Document("\n".join(word for word in words if word), tuple(tokens))


@document.register
def _(episode: Episode) -> Document:
    scoped = {
        "kind": "episode",
        "status": episode.status.value,
        "task": episode.task,
        "domain": episode.domain,
    }
    tokens = [scope_token(field, value) for field, value in scoped.items() if value]
    tokens += [scope_token("tag", tag) for tag in episode.tags]
    words = (episode.task, episode.summary, " ".join(episode.tags))
    return Document("\n".join(word for word in words if word), tuple(tokens))
