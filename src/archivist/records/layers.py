"""What the agents of a project share: tasks, facts and conflicts about them, artifacts; and access tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from archivist.errors import RecordError
from archivist.records.actor import Actor
from archivist.records.tier_words import ArtifactType, ConflictStatus, RetryDecision, TaskState
from archivist.records.words import Provenance
from archivist.text import is_blank

# A name is at most as long as a heading; a value may have several pages.
NAME_CHARACTERS = 200
VALUE_CHARACTERS = 20_000
TITLE_CHARACTERS = 2_000
# More attempts of one kind repeat what fails.
MAX_ATTEMPTS = 100
# How the source begins of what a file says and nobody vouches for.
FILE_SOURCE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Knowledge: the value of a category and key. The id follows from project, category and key.

    `source` is who stated it: an agent's name, `user`, `orchestrator`, or `file NAME` where nobody vouches
    for the file; `origin` is the file that it came from.
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

    @property
    def is_of_file(self) -> bool:
        """Say whether a file says it and nobody else: any other source stands above it."""
        return self.source.partition(" ")[0] == FILE_SOURCE

    @property
    def provenance(self) -> Provenance | None:
        """Return that it was brought by a file; None for all others."""
        return Provenance.IMPORTED if self.origin or self.is_of_file else None


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

    @property
    def project(self) -> str:
        """Return the project of the fact."""
        return str(self.extra.get("project", ""))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to be done. Its id is the name by which attempts and artifacts refer to it.

    It can begin when the tasks in `needs` and the tasks that have it as their parent are done. `approaches`
    are ways to do it, the preferred one first; `approach` is the one of the last attempt, `run` its run.
    `retry` and `reason` say what was decided after a failure, and why.
    """

    id: str
    title: str
    parent: str = ""
    needs: tuple[str, ...] = ()
    owner: str = ""
    state: TaskState = TaskState.OPEN
    approaches: tuple[str, ...] = ()
    approach: str = ""
    attempts: int = 0
    max_attempts: int = 3
    retry: RetryDecision | None = None
    reason: str = ""
    result: str = ""
    run: str = ""
    created: datetime
    updated: datetime
    started: datetime | None = None
    finished: datetime | None = None
    extra: dict[str, object] = field(default_factory=dict)


def validate_task(task: Task) -> Task:
    """Return the task, or raise RecordError when a part of it is empty, too long or out of range."""
    limits = {"id": NAME_CHARACTERS, "owner": NAME_CHARACTERS, "parent": NAME_CHARACTERS}
    for name, most in {**limits, "title": TITLE_CHARACTERS, "result": VALUE_CHARACTERS}.items():
        text = getattr(task, name)
        if is_blank(text) and name in ("id", "title"):
            raise RecordError(f"{name}: missing or empty", hint="say in a sentence what is to be done")
        if len(text) > most:
            raise RecordError(f"{name}: {len(text)} characters, at most {most}")
    if task.attempts < 0 or not 1 <= task.max_attempts <= MAX_ATTEMPTS:
        raise RecordError(f"max_attempts: {task.max_attempts} is not between 1 and {MAX_ATTEMPTS}")
    if task.id in (*task.needs, task.parent):
        raise RecordError(f"needs: {task.id!r} cannot wait for itself")
    return task


def validate_fact(fact: Fact) -> Fact:
    """Return the fact, or raise RecordError when a part of it is empty, too long or out of range."""
    limits = {"category": NAME_CHARACTERS, "key": NAME_CHARACTERS, "value": VALUE_CHARACTERS}
    for name, most in limits.items():
        text = getattr(fact, name)
        if is_blank(text):
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
