"""The shapes of what is answered, as the OpenAPI document tells them; a test compares the two."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, create_model


class ExtensibleOut(BaseModel):
    """An answer that may say more than is listed."""

    model_config = ConfigDict(extra="allow")


class ProblemOut(ExtensibleOut):
    """What went wrong."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str


class FactRow(ExtensibleOut):
    """A row of the knowledge table."""

    id: str
    project: str
    category: str
    key: str
    value: str
    source: str
    confidence: float
    created_at: str
    updated_at: str


class AttemptRow(ExtensibleOut):
    """A row of the episodes table."""

    id: str
    task_id: str
    agent_id: str
    action: str
    approach: str
    outcome: str | None
    duration_ms: int | None
    tokens_in: int | None
    tokens_out: int | None
    created_at: str | None


class ArtifactRow(ExtensibleOut):
    """A row of the artifacts table."""

    id: str
    task_id: str
    agent_id: str
    type: str
    path: str
    description: str
    size_bytes: int
    checksum: str
    created_at: str


class LessonOut(ExtensibleOut):
    """A lesson with what is counted for it."""

    id: str
    uid: str
    summary: str
    rule: str
    type: str
    category: str
    tags: list[str]
    importance: float
    frequency: int
    status: str
    quarantined_for: str


class RunOut(ExtensibleOut):
    """A run."""

    run: str
    task: str
    project: str
    status: str
    started: str | None
    finished: str | None


class BriefOut(ExtensibleOut):
    """A brief."""

    text: str
    lessons: list[LessonOut]
    brief: str
    withheld: list[str]
    stale: dict[str, str]


class HitOut(ExtensibleOut):
    """Something that was found."""

    id: str
    uid: str
    kind: str
    text: str
    score: float
    time: str | None


class ChangeOut(ExtensibleOut):
    """A change of a record."""

    seq: int
    time: str
    actor: str
    verb: str
    kind: str
    after: dict[str, Any] | None


class EntryOut(ExtensibleOut):
    """An entry of the stream."""

    id: str
    cycle: int
    timestamp: str
    role: str
    action: str
    importance: int
    type: str
    content: str


class PieceOut(ExtensibleOut):
    """A piece of an archived text."""

    id: str
    source: str
    position: int
    type: str
    text: str


class SourceTextOut(ExtensibleOut):
    """A text of the archive."""

    source: str
    type: str
    pieces: int
    tokens: int
    date: str | None


class ProposalOut(ExtensibleOut):
    """A change of playbook or rules that somebody must accept."""

    id: str
    uid: str
    section: str
    after: str
    reason: str
    status: str


class WorkingOut(ExtensibleOut):
    """What an agent has in mind."""

    id: str
    plan: str
    constraints: list[str]
    context: dict[str, Any]
    scratchpad: list[str]


class CaptureOut(ExtensibleOut):
    """What a log brought."""

    file: str
    runs: list[RunOut]
    events: int
    skipped: int
    unchanged: bool


class LearningOut(ExtensibleOut):
    """What was learnt."""

    created: int
    updated: int
    lessons: list[LessonOut]


class CoreOut(ExtensibleOut):
    """What a role has in its context."""

    role: str
    text: str
    tokens: int
    budget: int


class BlockOut(ExtensibleOut):
    """A block of core memory."""

    id: str
    section: str
    content: dict[str, Any]


class FactPutOut(ExtensibleOut):
    """A fact that was said, whether it stands, and what it contradicts."""

    knowledge: FactRow
    changed: bool
    conflict: dict[str, Any] | None


def page_response(name: str, item: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the documented answer of a list: some items, and the cursor of the rest."""
    title = f"{name.title().replace('_', '')}Page"
    fields: dict[str, Any] = {name: (list[item], ...), "next": (str | None, ...)}
    return {status: {"model": create_model(title, __base__=ExtensibleOut, **fields)}}


def item_response(name: str, item: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the documented answer of one thing under a name."""
    title = f"One{name.title().replace('_', '')}"
    fields: dict[str, Any] = {name: (item, ...)}
    return {status: {"model": create_model(title, __base__=ExtensibleOut, **fields)}}


def model_response(model: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return the documented answer of this shape."""
    return {status: {"model": model}}
