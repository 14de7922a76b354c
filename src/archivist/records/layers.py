"""What the agents of a project share: facts, conflicts about them, what runs produced; and access tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from archivist.errors import RecordError
from archivist.records.actor import Actor
from archivist.records.tier_words import ArtifactType, ConflictStatus

# A name is at most as long as a heading; a value may have several pages.
NAME_CHARACTERS = 200
VALUE_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Knowledge: the value of a category and key. The id follows from project, category and key.

    `source` is who stated it: an agent's name, `user` or `orchestrator`; `origin` the file that it came from.
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
    """Two sources that state different values under one key, and why one of them was kept.

    A conflict is open until the orchestrator has decided.
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
    """Something that a run produced: a file of the workspace as it was when it was registered.

    `previous` is the artifact that was registered at the same path before.
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
    """Return the fact, or raise RecordError when a part of it is empty, too long or out of range."""
    limits = {"category": NAME_CHARACTERS, "key": NAME_CHARACTERS, "value": VALUE_CHARACTERS}
    for name, most in limits.items():
        text = getattr(fact, name)
        if not text.strip():
            raise RecordError(f"{name}: missing or empty")
        if len(text) > most:
            raise RecordError(f"{name}: {len(text)} characters, at most {most}")
    if not 0 <= fact.confidence <= 1:
        raise RecordError(f"confidence: {fact.confidence:g} is not between 0 and 1")
    return fact


class TokenState(StrEnum):
    """Whether a token grants access."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token for the bank. The secret itself is shown once; `digest` is its SHA-256."""

    id: str
    name: str = ""
    actor: Actor
    digest: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    extra: dict[str, object] = field(default_factory=dict)

    def state(self, now: datetime) -> TokenState:
        """Return whether it grants access at a time."""
        if self.revoked is not None and self.revoked <= now:
            return TokenState.REVOKED
        if self.expires is not None and self.expires <= now:
            return TokenState.EXPIRED
        return TokenState.VALID
