"""What a run was."""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from archivist.errors import RecordError
from archivist.records.record import Record
from archivist.records.run_words import DECIDED, LEFT_FAILING, Action, EpisodeKind, EpisodeStatus
from archivist.records.words import NOTES, PART


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Usage(Record):
    """What a run spent. `efficiency` is the share of its tool calls that did not fail.

    A cost that nobody reported is None: most logs only count tokens.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    efficiency: float | None = None
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Episode(Record):
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


def require_readable(episode: Episode) -> Episode:
    """Return a caller's episode with plain texts as the words they stand for, or raise RecordError.

    What is written with a word of another set could not be read again.
    """
    found: dict[str, object] = {}
    for name, words in (("kind", EpisodeKind), ("status", EpisodeStatus)):
        value = getattr(episode, name)
        if not isinstance(value, words):
            if value not in list(words):
                raise RecordError(f"{name}: {value!r} is none of {', '.join(words)}")
            found[name] = words(value)
    for name in ("tags", "trajectories"):
        values = getattr(episode, name)
        if isinstance(values, str) or not all(isinstance(value, str) for value in values):
            raise RecordError(f"{name}: a sequence of texts is expected, not {values!r}"[:200])
    return replace(episode, **found) if found else episode  # type: ignore[arg-type]


def merge_episode(known: Episode, seen: Episode) -> Episode:
    """Merge two versions of a run: the newer one's values win, where it has any."""
    newer = {
        field.name: value
        for field in fields(Episode)
        if (value := getattr(seen, field.name)) not in ("", (), None, {}) and field.name != "extra"
    }
    if seen.status is EpisodeStatus.RUNNING:
        newer.pop("status")
    if seen.kind is EpisodeKind.ORCHESTRATOR_RUN:
        # A log does not know that it is a healer's; who started the run may.
        newer.pop("kind")
    notes = known.extra.get(NOTES)
    if isinstance(notes, dict) and notes.get(LEFT_FAILING) and not seen.extra.get(DECIDED):
        # The same log says again that it went well; what has grown it reflection reads again.
        newer.pop("status", None)
    if known.agent and seen.agent == seen.provider:
        # A log names its harness; who started the run knows which agent did it.
        newer.pop("agent", None)
    if NOTES in known.extra and known.usage and seen.usage:
        # Reflection saw failures that a log does not mark; what has grown it reads again.
        newer["usage"] = replace(seen.usage, efficiency=known.usage.efficiency)
    tags = tuple(dict.fromkeys((*known.tags, *seen.tags)))
    return replace(known, **{**newer, "tags": tags, "extra": {**known.extra, **seen.extra}})


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
