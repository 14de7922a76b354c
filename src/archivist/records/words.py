"""The enums of lessons and actors.

Those of runs and of tiers are in files of their own: making a class takes a cold process a tenth of a
millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

# No bank has counted more runs: a hundred a day take 27 years.
MAX_RUN_COUNT = 1_000_000
# The setting of a bank that says what killed erasures left to be cleaned.
UNFINISHED_ERASURES = "unfinished_erasures"
# The setting that lists the files which a bank wrote, with their digests.
WRITTEN_FILES = "written_files"
# The key in an episode's `extra` under which reflection keeps its notes.
NOTES = "reflection"
# Two kinds of runs, for a brief that makes no enum of them.
ORCHESTRATOR_RUN, SUBAGENT_RUN = "orchestrator_run", "subagent_run"
# Marks a call that asked to run outside of its harness's sandbox.
OUTSIDE_SANDBOX = "outside_sandbox"
# What helped then: advice to the clients that can be asked for it.
OUTSIDE_ADVICE = "ask to run it outside of the sandbox"
OUTSIDE_ADVICE_FOR_ALL = "ask to run them outside of the sandbox"
# The key in those notes of what a language model told of the run.
BY_MODEL = "model"
# The origin of a lesson whose words are a language model's; which one and which question, its extra says.
MODEL_ORIGIN = "model"
# Separates a run's id from the project of its part in another repository.
PART = "@"


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
    """How severe a finding is."""

    BUG = "bug"
    WARNING = "warning"
    INFO = "info"
    RECOMMENDATION = "recommendation"

    @property
    def rank(self) -> int:
        """Return 3 for a bug down to 0 for a recommendation."""
        return 3 - list(Severity).index(self)


class Source(StrEnum):
    """Which part of the system wrote a lesson."""

    ARCHIVIST = "archivist"
    HEALER = "healer"
    MANUAL = "manual"


class Provenance(StrEnum):
    """Where a lesson's words come from: it decides how its twin is found and whether runs are told them."""

    MINED = "mined"
    REVIEWED = "reviewed"
    TYPED = "typed"
    SUGGESTED = "suggested"
    IMPORTED = "imported"
    SHARED = "shared"

    @property
    def is_own(self) -> bool:
        """Say whether the words come from runs that were captured here, or from the user."""
        return self in (Provenance.MINED, Provenance.REVIEWED, Provenance.TYPED)

    @property
    def label(self) -> str:
        """Return it in words, as people and agents read it."""
        return _PROVENANCE_LABELS[self]

    @property
    def mark(self) -> str:
        """Return what is put behind a text that is not the user's own, or nothing."""
        return "" if self.is_own else f" ({self.label})"


_PROVENANCE_LABELS = {
    Provenance.MINED: "from own runs",
    Provenance.REVIEWED: "from a review of own runs",
    Provenance.TYPED: "typed by the user",
    Provenance.SUGGESTED: "said by an agent",
    Provenance.IMPORTED: "from a file",
    Provenance.SHARED: "from a colleague",
}


# Where a lesson notes how often a file said that it was met, before a run of this bank met it.
CLAIMED = "frequency_claimed"
# Where a lesson from elsewhere notes that an own run has met it. The gate alone writes both.
MET_HERE = "met_here"
# Of a lesson that its verdicts retired: why.
RETIRED = "retired"
# Where a record keeps which agents it quotes, and which file brought it if nobody vouched for that file.
SAID_BY = "said_by"
BROUGHT_BY = "brought_by"


def stated_provenance(extra: Mapping[str, object]) -> Provenance | None:
    """Return what a record's own notes say of who wrote it: an agent, or a file; None without such notes."""
    if extra.get(SAID_BY):
        return Provenance.SUGGESTED
    return Provenance.IMPORTED if extra.get(BROUGHT_BY) else None


class Status(StrEnum):
    """The state of a lesson."""

    CANDIDATE = "candidate"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"

    @property
    def is_live(self) -> bool:
        """Say whether it may be briefed: a live lesson is a candidate or active."""
        return self in (Status.CANDIDATE, Status.ACTIVE)

    @property
    def is_retired(self) -> bool:
        """Say whether runs no longer count for it; for a quarantined lesson they do."""
        return self in (Status.SUPERSEDED, Status.ARCHIVED)


class ActorKind(StrEnum):
    """Who can act."""

    HUMAN = "human"
    ORCHESTRATOR = "orchestrator"
    AGENT = "agent"
    ARCHIVIST = "archivist"
