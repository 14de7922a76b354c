"""The closed sets of words that records are written in."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """What a lesson is about."""

    GLOBAL = "global"
    PROJECT = "project"
    REPO = "repo"
    TASK = "task"
    TOOL = "tool"
    PROVIDER = "provider"


class Category(StrEnum):
    """What sort of advice a lesson is."""

    HEURISTIC = "heuristic"
    ANTI_PATTERN = "anti_pattern"
    TOOL_USAGE = "tool_usage"
    PROVIDER_QUIRK = "provider_quirk"
    TEST_STRATEGY = "test_strategy"
    INFRA = "infra"
    PROMPTING = "prompting"
    BUGFIX_PATTERN = "bugfix_pattern"


class LessonType(StrEnum):
    """How a lesson came to be believed."""

    PATTERN = "pattern"
    PREFERENCE = "preference"
    ARCHETYPE_HINT = "archetype_hint"
    ANTI_PATTERN = "anti_pattern"


class Severity(StrEnum):
    """How bad a finding is; `rank` orders it."""

    BUG = "bug"
    WARNING = "warning"
    INFO = "info"
    RECOMMENDATION = "recommendation"

    @property
    def rank(self) -> int:
        """Return 3 for the worst down to 0 for a mere recommendation."""
        return 3 - list(Severity).index(self)


class Source(StrEnum):
    """Which part of the system wrote a lesson."""

    ARCHIVIST = "archivist"
    HEALER = "healer"
    MANUAL = "manual"


class Status(StrEnum):
    """Where a lesson stands."""

    CANDIDATE = "candidate"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"

    @property
    def is_live(self) -> bool:
        """Say whether runs still count for it: a live lesson is a candidate or active."""
        return self in (Status.CANDIDATE, Status.ACTIVE)


class EpisodeKind(StrEnum):
    """What sort of run an episode records."""

    ORCHESTRATOR_RUN = "orchestrator_run"
    SUBAGENT_RUN = "subagent_run"
    HEALER_RUN = "healer_run"


class EpisodeStatus(StrEnum):
    """How a run ended; `running` until it has."""

    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    ABORTED = "aborted"


class EventKind(StrEnum):
    """What sort of thing happened."""

    START = "start"
    FINISH = "finish"
    MESSAGE = "message"
    TOOL_CALL = "tool_call"
    EDIT = "edit"
    TEST = "test"
    VERDICT = "verdict"
    FIX = "fix"
    LOG = "log"
    OTHER = "other"


class Action(StrEnum):
    """What became of an attempt."""

    ATTEMPTED = "attempted"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRIED = "retried"


class ArtifactType(StrEnum):
    """What sort of thing a run produced."""

    FILE = "file"
    PATCH = "patch"
    TEST = "test"
    DOCUMENT = "document"
    CONFIG = "config"


class ConflictStatus(StrEnum):
    """Whether somebody has decided what holds."""

    OPEN = "open"
    UPHELD = "upheld"
    REVERSED = "reversed"


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
    """Where a proposal stands."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    ROLLED_BACK = "rolled_back"


class ActorKind(StrEnum):
    """Who can act."""

    HUMAN = "human"
    ORCHESTRATOR = "orchestrator"
    AGENT = "agent"
    ARCHIVIST = "archivist"


class Following(StrEnum):
    """What a run did with a lesson: told and heeded or not, without occasion to, or not told on purpose."""

    FOLLOWED = "followed"
    IGNORED = "ignored"
    NOT_APPLICABLE = "not_applicable"
    WITHHELD = "withheld"
    UNKNOWN = "unknown"


class Effect(StrEnum):
    """Whether a briefed lesson did its work."""

    HELPFUL = "helpful"
    INEFFECTIVE = "ineffective"
    IGNORED = "ignored"
    UNKNOWN = "unknown"
