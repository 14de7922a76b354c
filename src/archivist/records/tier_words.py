"""The enums of layers and tiers."""

from __future__ import annotations

from enum import StrEnum


class ArtifactType(StrEnum):
    """What sort of thing a run produced."""

    FILE = "file"
    PATCH = "patch"
    TEST = "test"
    DOCUMENT = "document"
    CONFIG = "config"


class ConflictStatus(StrEnum):
    """Whether a conflict is decided, and how."""

    OPEN = "open"
    UPHELD = "upheld"
    REVERSED = "reversed"


class TaskState(StrEnum):
    """Where a task stands."""

    OPEN = "open"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RetryDecision(StrEnum):
    """What was decided after a failed attempt."""

    RETRY = "retry"
    GIVE_UP = "give_up"


class CoreSection(StrEnum):
    """The blocks of core memory."""

    PLAYBOOK = "playbook"
    RULES = "rules"
    STATUS = "status"
    THREADS = "threads"
    ROLE_STATE = "role_state"
    LESSONS = "lessons"


class EntryType(StrEnum):
    """What sort of thing an agent logged."""

    ACTION = "action"
    OBSERVATION = "observation"
    REFLECTION = "reflection"
    DECISION = "decision"


class DocumentType(StrEnum):
    """What sort of text is archived."""

    CYCLE = "cycle"
    DECISION = "decision"
    RESEARCH = "research"
    SPEC = "spec"
    LESSON = "lesson"


class ProposalStatus(StrEnum):
    """The state of a proposal."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    ROLLED_BACK = "rolled_back"
    WITHDRAWN = "withdrawn"
