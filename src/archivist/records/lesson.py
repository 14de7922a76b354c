"""What was learnt."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.errors import RecordError
from archivist.records.actor import ARCHIVIST, Actor
from archivist.records.record import Record
from archivist.records.words import (
    CLAIMED,
    MODEL_ORIGIN,
    RETIRED,
    Category,
    LessonType,
    Provenance,
    Scope,
    Severity,
    Source,
    Status,
)
from archivist.text import is_blank

SHORT_ID = lazy_pattern(r"m-(\d{3}|[1-9]\d{3,11})")
# A brief must be short: this is ten times the longest summary that was mined from a run.
LONGEST_CHARACTERS = 2_000

# How the signature of a lesson begins, behind its project, that tells what the user often asks for.
REQUEST_KEY = "asked:"
# An imported count that names no runs is stored as runs with this mark, so that frequency stays the size of
# a set.
UNNAMED_RUN = "?"
# Tags of lessons that say that a failure is nobody's bug.
_ACQUITTALS = frozenset(("flaky", "not-your-bug"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Evidence(Record):
    """Where a lesson was seen: ids and paths, never copies."""

    episodes: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Lesson(Record):
    """One thing worth telling the next run, with the fields of all five documents.

    `edited` is the last change of its words or status, `updated` of anything: a sighting must not let old
    words win over new ones when two clones are merged. `unseen_from` is the bank's run count from which
    unseen runs are counted; a sighting and a decay move it. `signature` identifies the failure by which a
    later run is recognised to have met it again, `remedies` are what worked, best first.

    `provenance` is set by the gate alone, never by a file or an agent. `brought_by` names the agent, the file
    or the colleague's clone. A person has `accepted` that file or clone, or `confirmed` the lesson itself.
    """

    id: str
    number: int = 0
    created: datetime
    updated: datetime
    edited: datetime
    summary: str
    rule: str = ""
    detail: str = ""
    type: LessonType = LessonType.PATTERN
    category: Category = Category.HEURISTIC
    scope: Scope = Scope.PROJECT
    project: str = ""
    repo: str = ""
    task: str = ""
    provider: str = ""
    tool: str = ""
    role: str = ""
    domain: str = "general"
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    severity: Severity = Severity.INFO
    evidence: Evidence = Evidence()
    source: Source = Source.ARCHIVIST
    origin: str = ""
    signature: str = ""
    remedies: tuple[str, ...] = ()
    actor: Actor = ARCHIVIST
    runs: tuple[str, ...] = ()
    faded: int = 0
    confirmed: bool = False
    origin_run: str = ""
    last_seen_run: str = ""
    last_seen: datetime | None = None
    unseen_from: int = 0
    status: Status = Status.CANDIDATE
    superseded_by: str = ""
    prior_uses: int = 0
    prior_last_used: datetime | None = None
    provenance: Provenance = Provenance.MINED
    brought_by: str = ""
    accepted: bool = False
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def is_request(self) -> bool:
        """Say whether it is what the user often asks for, and no rule of theirs."""
        return self.signature.partition("|")[2].startswith(REQUEST_KEY)

    @property
    def is_finding(self) -> bool:
        """Say whether a reviewer of the user's runs worded it."""
        return self.provenance is Provenance.REVIEWED

    @property
    def is_learnt_hint(self) -> bool:
        """Say whether its role is the one whose reviews mostly find it: that hides it from nobody."""
        is_reviewed = self.provenance in (Provenance.REVIEWED, Provenance.SHARED)
        return is_reviewed and self.type is LessonType.ARCHETYPE_HINT

    @property
    def short_id(self) -> str:
        """Return the id for people, `m-001`."""
        return f"m-{self.number:03d}"

    @property
    def frequency(self) -> int:
        """Return how many distinct runs met it, minus decay."""
        return max(0, len(self.runs) - self.faded)

    @property
    def claimed_frequency(self) -> int:
        """Return how often a file says that it was met; nobody here has seen that."""
        if self.is_waiting and self.provenance in (Provenance.IMPORTED, Provenance.SHARED):
            return self.frequency
        noted = self.extra.get(CLAIMED)
        return noted if isinstance(noted, int) and not self.status.is_retired else 0

    @property
    def shown_frequency(self) -> int:
        """Return the count that lists and files show: what a file claims is not lowered by being met here."""
        return max(self.frequency, self.claimed_frequency)

    @property
    def met_in(self) -> str:
        """Return in how many runs it was met, in words, and how many of them still count, if fewer."""
        seen = len(self.runs)
        runs = "1 run" if seen == 1 else f"{seen} runs"
        return runs if seen <= self.frequency else f"{runs} ({self.frequency} after ageing)"

    @property
    def is_found_useless(self) -> bool:
        """Say whether its verdicts retired it from briefs, and no person did."""
        return self.status is Status.ARCHIVED and bool(self.extra.get(RETIRED))

    @property
    def worded_by(self) -> str:
        """Return the language model that chose its words; empty where none did."""
        noted = self.extra.get("model") if self.origin == MODEL_ORIGIN else None
        return str(noted.get("name") or "unnamed") if isinstance(noted, dict) else ""

    @property
    def is_acquittal(self) -> bool:
        """Say whether it only says that a failure is nobody's bug: it cannot prevent it."""
        return not _ACQUITTALS.isdisjoint(self.tags)

    @property
    def is_waiting(self) -> bool:
        """Say whether nobody here vouches for its words: no run is told them before a person approves it."""
        return not (self.provenance.is_own or self.accepted or self.confirmed)


def validate_lesson(lesson: Lesson) -> Lesson:
    """Return the lesson, or raise RecordError when it is empty, too long or its importance out of range."""
    if is_blank(lesson.summary):
        raise RecordError("a lesson needs words", hint="one sentence that says what was learnt")
    for name in ("summary", "rule"):
        size = len(getattr(lesson, name))
        if size > LONGEST_CHARACTERS:
            raise RecordError(
                f"{name}: {size} characters, at most {LONGEST_CHARACTERS}",
                hint="write one sentence; long texts belong to archivist archive add or knowledge set",
            )
    if not 0 <= lesson.importance <= 1:
        raise RecordError(f"importance: {lesson.importance:g} is not between 0 and 1")
    return lesson


class Tally(NamedTuple):
    """What the briefs and verdicts say of one lesson; derived, never canonical.

    `told` and `withheld` count the runs that were told the lesson, or from which it was withheld, and of
    which it is known whether its failure occurred.
    """

    used: int = 0
    last_used: datetime | None = None
    helpful: int = 0
    ineffective: int = 0
    ignored: int = 0
    told: int = 0
    told_failed: int = 0
    withheld: int = 0
    withheld_failed: int = 0
