"""What happened in a run, and whether what it was told helped; a hook makes none of these records."""

from dataclasses import dataclass, field
from datetime import datetime

from archivist.records.record import Record
from archivist.records.run_words import Effect, EventKind, Following
from archivist.records.words import Severity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Finding(Record):
    """One thing that a reviewer found or that a fix corrected."""

    description: str
    severity: Severity = Severity.INFO
    category: str = ""
    found_by: str = ""
    file: str = ""
    line: int | None = None
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Event(Record):
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Verdict(Record):
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

    @property
    def effectiveness(self) -> str:
        """Return what the cross-run document calls it: helpful when what was told was not found again."""
        if self.failed is None or self.following is Following.WITHHELD:
            return Effect.UNKNOWN.value
        return (Effect.INEFFECTIVE if self.failed else Effect.HELPFUL).value
