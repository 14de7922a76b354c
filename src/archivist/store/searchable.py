"""What the index holds of a record: its words, the text to embed, its scope, place and importance.

Every kind of record is found through one index; `DOCUMENTS` has a function for each searchable kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.records.kinds import KINDS
from archivist.records.words import Status
from archivist.store.results import scope_token, split_name

if TYPE_CHECKING:
    from archivist.records import Artifact, Document, Entry, Episode, Event, Fact, Lesson, Task

# Importance where nobody gave one.
EPISODE_IMPORTANCE = 0.4
EVENT_IMPORTANCE = 0.3
ARTIFACT_IMPORTANCE = 0.4
TASK_IMPORTANCE = 0.4
STREAM = "stream"

# Characters that are indexed: enough of a text to find it by. Logs have outputs of any length.
_TEXT = 4000
_OUTPUT = 240
_ERROR_OUTPUT = 1200
_SPOKEN = 2000

# A sort of speaker, not the name of one.
SPEAKER_SORTS = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "agent", "model", "ai", "bot"), "assistant"),
    **dict.fromkeys(("", "system", "tool", "developer", "function"), ""),
}
# The role of what a client puts into a conversation: instructions, reminders, output of its own commands.
_INJECTED = "system"
# The kinds of event in which people and agents speak.
_SPEECH = frozenset(("message", "log", "verdict", "fix"))
_NAME = lazy_pattern(r"[^\W_]{3,80}")
# A letter that may be a capital, within a word: most texts have none. Looked for by the letter itself, which
# is rare, and not by what stands before it: half the time.
_INNER_CAPITAL = lazy_pattern(r"[^\W\d_a-z](?<=[^\W_].)")


class SearchDocument(NamedTuple):
    """A record as the index sees it. `spoken` is the text to embed; it contains no output of machines."""

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


def build_search_document(record: object) -> SearchDocument | None:
    """Return the record's document, or None when it is not searchable or has no words."""
    build = _BY_CLASS.get(type(record).__name__)
    return build(record) if build is not None else None


def _build_lesson(lesson: Lesson) -> SearchDocument:
    fields = (
        "status", "scope", "category", "type", "domain", "role", "task", "repo", "provider", "tool",
    )  # fmt: skip
    said = _join_texts(lesson.summary, lesson.rule, lesson.detail)
    return SearchDocument(
        text=_with_split_names(said, " ".join(lesson.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens("lesson", {name: getattr(lesson, name) for name in fields}, lesson.tags),
        # What its verdicts retired is told at no start, and answers those who ask.
        is_hidden=lesson.is_waiting
        or lesson.status is Status.QUARANTINED
        or (lesson.status is Status.ARCHIVED and not lesson.is_found_useless),
        superseded_by=lesson.superseded_by,
        time=lesson.last_seen or lesson.updated,
        importance=lesson.importance,
    )


def _build_episode(episode: Episode) -> SearchDocument:
    scope = {
        "status": episode.status,
        "task": episode.task,
        "domain": episode.domain,
        "repo": episode.project,
        "provider": episode.provider,
        "role": episode.agent,
        "agent": episode.agent,
        "action": episode.action or "",
    }
    said = _join_texts(episode.task, episode.approach, episode.outcome, episode.summary)
    return SearchDocument(
        text=_with_split_names(said, " ".join(episode.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens("episode", scope, episode.tags),
        time=episode.finished or episode.started,
        importance=EPISODE_IMPORTANCE,
    )


def _build_event(event: Event) -> SearchDocument | None:
    output = event.output[: _ERROR_OUTPUT if event.is_error else _OUTPUT]
    findings = " ".join(finding.description for finding in event.findings)
    text = _join_texts(event.text[:_TEXT], findings[:_TEXT], output)
    if not text.strip():
        return None
    who = event.role or event.agent
    is_speech = event.kind.value in _SPEECH
    speaker = who.casefold()
    if speaker in SPEAKER_SORTS:
        speaker = SPEAKER_SORTS[speaker] if is_speech else ""
    cycle = event.extra.get("cycle")
    return SearchDocument(
        text=_with_split_names(text, event.target if event.target not in event.text else ""),
        spoken=_join_texts(event.text, findings)[:_SPOKEN] if is_speech and who != _INJECTED else "",
        scope=_event_scope(who, event.tool, event.run, event.kind.value),
        speaker=speaker,
        time=event.time,
        cycle=cycle if isinstance(cycle, int) else None,
        importance=EVENT_IMPORTANCE,
        thread=event.run,
        position=event.seq,
    )


@lru_cache(maxsize=1024)
def _event_scope(role: str, tool: str, run: str, kind: str) -> tuple[str, ...]:
    """Return the tokens of an event, most of which it shares with others of its run."""
    return _scope_tokens("event", {"role": role, "tool": tool, "run": run, "event": kind})


def _build_fact(fact: Fact) -> SearchDocument:
    scope = {"type": fact.category, "source": fact.source, "repo": fact.project}
    said = f"{fact.category} {fact.key}: {fact.value}"
    return SearchDocument(
        text=_with_split_names(said[:_TEXT], " ".join(fact.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens("fact", scope, fact.tags),
        time=fact.updated,
        importance=fact.confidence,
    )


def _build_artifact(artifact: Artifact) -> SearchDocument:
    scope = {name: getattr(artifact, name) for name in ("type", "task", "agent", "run")}
    return SearchDocument(
        text=_with_split_names(artifact.path, artifact.description, artifact.task),
        spoken=_join_texts(artifact.path, artifact.description)[:_SPOKEN],
        scope=_scope_tokens("artifact", scope),
        time=artifact.created,
        importance=ARTIFACT_IMPORTANCE,
    )


def _build_task(task: Task) -> SearchDocument:
    scope = {"status": task.state, "task": task.id, "agent": task.owner, "role": task.owner}
    said = _join_texts(task.title, task.result)
    return SearchDocument(
        text=_with_split_names(said[:_TEXT], task.id, task.reason),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens("task", scope),
        time=task.updated,
        importance=TASK_IMPORTANCE,
    )


def _build_entry(entry: Entry) -> SearchDocument:
    tier = "archive" if entry.is_archived else "stream"
    scope = {"role": entry.role, "type": entry.type, "run": entry.run, "tier": tier}
    said = _join_texts(entry.action, entry.content)
    # A tracker gives each number once: `#84` and `PR #84` are one thread.
    numbers = tuple(dict.fromkeys((*entry.issues, *entry.prs)))
    references = [f"#{number}" for number in numbers if f"#{number}" not in said]
    return SearchDocument(
        text=_with_split_names(said[:_TEXT], " ".join((*entry.tags, *references))),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens("entry", scope, entry.tags, issue=numbers, pr=numbers),
        speaker=entry.role.casefold(),
        time=entry.time,
        cycle=entry.cycle,
        importance=entry.importance / 10,
        thread=STREAM,
        position=entry.seq,
    )


def _build_document(document: Document) -> SearchDocument:
    scope = {"type": document.type, "tier": "archive", "source": document.source}
    said = _join_texts(document.heading, document.text)
    return SearchDocument(
        # Whole: a piece of the archive is bounded, and code in it is longer than anything else.
        text=_with_split_names(said, " ".join(document.tags)),
        spoken=said[:_SPOKEN],
        scope=_scope_tokens("document", scope, document.tags, role=document.roles, issue=document.issues),
        time=document.date or document.created,
        importance=document.importance / 10,
        thread=f"archive:{document.source}",
        position=document.position,
    )


DOCUMENTS: dict[str, Callable[[Any], SearchDocument | None]] = {
    "lesson": _build_lesson,
    "episode": _build_episode,
    "event": _build_event,
    "fact": _build_fact,
    "artifact": _build_artifact,
    "task": _build_task,
    "entry": _build_entry,
    "document": _build_document,
}
_BY_CLASS = {kind.class_name: DOCUMENTS[kind.name] for kind in KINDS if kind.is_searchable}


def _join_texts(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _with_split_names(*parts: str) -> str:
    """Return texts followed by the parts of their camel-case names, so that either spelling is found."""
    text = _join_texts(*parts)
    if not _INNER_CAPITAL.search(text):
        return text
    names = dict.fromkeys(
        name
        for name in _NAME.findall(text)
        # Most words are ruled out by the quick tests.
        if not name.isupper()
        and not name[1:].islower()
        and not name[1:].isdigit()
        and any(map(str.isupper, name[1:]))
    )
    return _join_texts(text, " ".join(" ".join(split_name(name)) for name in names)) if names else text


def _scope_tokens(
    kind: str, scope: dict[str, str], tags: Iterable[str] = (), **lists: Iterable[object]
) -> tuple[str, ...]:
    """Return the tokens by which a search is filtered; fields without a value have none."""
    fields = [("kind", kind), *scope.items(), *(("tag", tag) for tag in tags)]
    fields += [(name, str(value)) for name, values in lists.items() for value in values]
    return tuple(scope_token(name, str(value)) for name, value in fields if value or name == "tag")
