"""What was learnt."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from archivist.errors import RecordError
from archivist.records.actor import ARCHIVIST, Actor
from archivist.records.words import Category, LessonType, Scope, Severity, Source, Status

SHORT_ID = re.compile(r"m-(\d{1,12})")
# What is told must be short: ten times the longest that was ever learnt from a run.
LONGEST_CHARACTERS = 2_000

# A count that was imported without naming its runs is kept as runs with this mark, so that frequency
# stays the size of a set.
UNNAMED_RUN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where a lesson was seen: ids and paths, never copies."""

    episodes: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One thing worth telling the next run, with everything the five documents know about it.

    `edited` is the last change of its words or standing, `updated` of anything: a sighting must not
    make old words win over new ones when two clones meet. `unseen_from` is the bank's run count from
    which unseen runs are counted; a sighting and a decay move it. `signature` names the phenomenon by which
    a later run is known to have met it again, `remedies` what made it work, best first.
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
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def short_id(self) -> str:
        """Return the id that people say, `m-001`."""
        return f"m-{self.number:03d}"

    @property
    def frequency(self) -> int:
        """Return how many distinct runs met it, less what has faded."""
        return max(0, len(self.runs) - self.faded)

    def runs_since(self, run_count: int) -> int:
        """Return how many runs of the bank have not met it, given how many there were."""
        return max(0, run_count - self.unseen_from)


def validate_lesson(lesson: Lesson) -> Lesson:
    """Return the lesson, or raise RecordError when it says nothing or too much or weighs nothing."""
    if not lesson.summary.strip():
        raise RecordError("a lesson needs words", hint="one sentence that says what was learnt")
    for name in ("summary", "rule"):
        size = len(getattr(lesson, name))
        if size > LONGEST_CHARACTERS:
            raise RecordError(
                f"{name}: {size} characters, and a lesson is told in at most {LONGEST_CHARACTERS}",
                hint="say it in a sentence; long texts are for archivist archive add or knowledge set",
            )
    if not 0 <= lesson.importance <= 1:
        raise RecordError(f"importance: {lesson.importance:g} is not between 0 and 1")
    return lesson


class Tally(NamedTuple):
    """What the briefs and verdicts say of one lesson; derived, never canonical.

    `told` and `withheld` count the runs of which it is known whether the lesson's failure occurred, when they
    were told it and when it was withheld from them.
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
