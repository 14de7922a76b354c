"""The enums of runs, and of verdicts on what they were told."""

from __future__ import annotations

from enum import StrEnum

from archivist.records.words import ORCHESTRATOR_RUN, SUBAGENT_RUN


class EpisodeKind(StrEnum):
    """What sort of run an episode records."""

    ORCHESTRATOR_RUN = ORCHESTRATOR_RUN
    SUBAGENT_RUN = SUBAGENT_RUN
    HEALER_RUN = "healer_run"


class EpisodeStatus(StrEnum):
    """How a run ended; `running` until it has."""

    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    ABORTED = "aborted"


# In an episode's `extra`, what a task is about that is named by its id alone.
TITLE = "title"
# What could not be read in its log: how many lines, the first of them, and whether the log ends in one.
UNREAD = "unread"
# How a written summary tells a run's end.
OUTCOMES = {
    EpisodeStatus.RUNNING: "Still running",
    EpisodeStatus.SUCCESS: "Succeeded",
    EpisodeStatus.PARTIAL: "Got part of the way",
    EpisodeStatus.FAILED: "Failed",
    EpisodeStatus.ABORTED: "Aborted",
}


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


CALL_KINDS = (EventKind.TOOL_CALL, EventKind.EDIT, EventKind.TEST)


class Action(StrEnum):
    """The outcome of an attempt."""

    ATTEMPTED = "attempted"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRIED = "retried"


class Following(StrEnum):
    """What a run did with a lesson: followed or ignored it, had no occasion to, or was not told it."""

    FOLLOWED = "followed"
    IGNORED = "ignored"
    NOT_APPLICABLE = "not_applicable"
    WITHHELD = "withheld"
    UNKNOWN = "unknown"


class Effect(StrEnum):
    """Whether a briefed lesson helped: it was needed, was followed, and its failure did not come."""

    HELPFUL = "helpful"
    INEFFECTIVE = "ineffective"
    IGNORED = "ignored"
    NOT_NEEDED = "not_needed"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        """Return the effect as people are told it."""
        words = {"helpful": "helped", "ineffective": "did not help", "not_needed": "not needed"}
        return words.get(self.value, "not known" if self is Effect.UNKNOWN else self.value)


# Where a call or a message keeps the folder that it was made in, when that is not where its run began.
FOLDER = "cwd"
# Marks a run whose caller said how it ended.
DECIDED = "decided"
# Marks, in a run's notes, that its log calls it a success though a check failed to the end.
LEFT_FAILING = "left_failing"
# Where a run keeps the role that it was started in.
ROLE = "role"
# The shell that a call was made in, where it stays open for the calls after it.
OPEN_SHELL = "shell"
# What a log says of approvals: on if the agent could ask for one, else off.
APPROVALS = "approvals"
# Where the run began; kept beside the folder until the event is filed.
BEGAN = "began"
# Marks a message that a person typed, as far as the log tells. The user's role alone says nothing: clients,
# harnesses and other agents speak in it too.
TYPED = "typed"
# How the placeholder of a secret begins that was taken out of a text.
REDACTED = "[redacted:"
# The run that a reflection on the stream is about, in what it left in the archive.
OF_RUN = "of_run"
