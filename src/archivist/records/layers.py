"""What a project's agents share: facts, the conflicts about them, and what runs produced."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from archivist.errors import RecordError
from archivist.records.tier_words import ArtifactType, ConflictStatus

# Longer than any heading; a value may be as long as a page.
NAME_CHARACTERS = 200
VALUE_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Knowledge: what holds for a category and key. The id follows from project, category and key.

    `source` is who said it: an agent's name, `user` or `orchestrator`; `origin` the file that it came from.
    """

    id: str
    project: str = ""
    category: str
    key: str
    value: str
    source: str = ""
    confidence: float = 1.0
    created: datetime
    updated: datetime
    tags: tuple[str, ...] = ()
    origin: str = ""
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two sources that say different things under one key: what stood, what was said, and why one won.

    `kept` and `lost` are the values; a conflict is open until the orchestrator has decided.
    """

    id: str
    fact: str
    category: str
    key: str
    time: datetime
    kept: str
    kept_source: str = ""
    kept_confidence: float = 1.0
    lost: str
    lost_source: str = ""
    lost_confidence: float = 1.0
    reason: str
    status: ConflictStatus = ConflictStatus.OPEN
    decided: datetime | None = None
    decided_by: str = ""
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Something a run produced: a file of the workspace as it was when it was registered.

    `previous` is the artifact that the same path held before.
    """

    id: str
    task: str
    agent: str
    type: ArtifactType = ArtifactType.FILE
    path: str
    description: str = ""
    size_bytes: int
    checksum: str
    created: datetime
    run: str = ""
    previous: str = ""
    extra: dict[str, object] = field(default_factory=dict)


def validate_fact(fact: Fact) -> Fact:
    """Return the fact, or raise RecordError when a part of it is empty, too long or no share."""
    for name in ("category", "key"):
        text = getattr(fact, name)
        if not text.strip():
            raise RecordError(f"{name}: missing or empty")
        if len(text) > NAME_CHARACTERS:
            raise RecordError(f"{name}: {len(text)} characters, at most {NAME_CHARACTERS}")
    if not fact.value.strip():
        raise RecordError("value: missing or empty")
    if len(fact.value) > VALUE_CHARACTERS:
        raise RecordError(f"value: {len(fact.value)} characters, at most {VALUE_CHARACTERS}")
    if not 0 <= fact.confidence <= 1:
        raise RecordError(f"confidence: {fact.confidence:g} is not between 0 and 1")
    return fact
