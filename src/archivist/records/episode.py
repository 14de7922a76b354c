"""What a run was, what happened in it, and whether what it was told helped."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from archivist.records.run_words import Action, Effect, EpisodeKind, EpisodeStatus, EventKind, Following
from archivist.records.words import PART, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run spent."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    efficiency: float | None = None
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One run or subtask. Its id is the run's id.

    `number` counts the runs that have aged the bank; None until this one has. An attempt at a task, as
    orchestrators log it, has an action, the approach that was tried, and its outcome.
    """

    id: str
    parent: str = ""
    project: str = ""
    task: str = ""
    subtask: str = ""
    session: str = ""
    agent: str = ""
    provider: str = ""
    model: str = ""
    kind: EpisodeKind = EpisodeKind.ORCHESTRATOR_RUN
    started: datetime | None = None
    finished: datetime | None = None
    status: EpisodeStatus = EpisodeStatus.RUNNING
    summary: str = ""
    domain: str = ""
    tags: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()
    usage: Usage | None = None
    number: int | None = None
    action: Action | None = None
    approach: str = ""
    outcome: str = ""
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def is_part(self) -> bool:
        """Say whether it is the part of a run in another repository, not a run that another one started."""
        return bool(self.parent) and self.id.startswith(f"{self.parent}{PART}")


def merge_episode(known: Episode, seen: Episode) -> Episode:
    """Merge two versions of a run: the newer one's values win, where it has any."""
    newer = {
        field.name: value
        for field in fields(Episode)
        if (value := getattr(seen, field.name)) not in ("", (), None, {}) and field.name != "extra"
    }
    if seen.status is EpisodeStatus.RUNNING:
        newer.pop("status")
    return replace(known, **{**newer, "extra": {**known.extra, **seen.extra}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a reviewer found or that a fix corrected."""

    description: str
    severity: Severity = Severity.INFO
    category: str = ""
    found_by: str = ""
    file: str = ""
    line: int | None = None
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in a run. `name` is what the log itself calls it.

    For a tool call `text` is the command or the arguments as given, `target` the command or file that they
    resolve to, and `output` the result, without its middle when it is long.
    """

    run: str
    seq: int
    kind: EventKind = EventKind.OTHER
    name: str = ""
    time: datetime | None = None
    agent: str = ""
    role: str = ""
    phase: str = ""
    tool: str = ""
    target: str = ""
    text: str = ""
    output: str = ""
    exit_code: int | None = None
    is_error: bool = False
    duration_s: float | None = None
    findings: tuple[Finding, ...] = ()
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the id by which evidence refers to it."""
        return f"{self.run}#{self.seq}"


# Where a usage keeps which of its numbers were not reported: the record itself has 0 for them.
UNREPORTED = "unsaid"


def reported_tokens(attempt: Episode) -> tuple[int | None, int | None]:
    """Return the input and output tokens of an attempt, each None if it was not reported."""
    usage = attempt.usage
    if usage is None:
        return None, None
    noted = usage.extra.get(UNREPORTED)
    missing = noted if isinstance(noted, list | tuple) else ()
    return None if "in" in missing else usage.input_tokens, None if "out" in missing else usage.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The effect of one briefed or withheld lesson in one run.

    `failed` says whether the lesson's failure occurred; None when that is unknown.
    """

    run: str
    lesson: str
    time: datetime
    effect: Effect
    following: Following = Following.UNKNOWN
    failed: bool | None = None
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the id of a run's verdict on a lesson: judging it again replaces the verdict."""
        return f"{self.run}:{self.lesson}"
