"""What a maker proposes as a lesson, and the circumstances in which it was met.

Miners, reviewers, people, agents, files and shares all describe a lesson as a `Candidate` and hand it to
`Lessons.keep` with a `Sighting`. Nothing else writes a lesson that is new or that was met again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from archivist.capture.clean import Cleaner
from archivist.capture.redaction import without_secrets
from archivist.capture.secret_rules import PLACEHOLDER_START
from archivist.recall.keywords import keywords
from archivist.records import (
    Actor,
    ActorKind,
    Category,
    Evidence,
    Lesson,
    LessonType,
    Provenance,
    Scope,
    Severity,
    Source,
)
from archivist.text import make_legible

NO_EVIDENCE = Evidence()
# The run of what is said outside of any.
MANUAL_RUN = "manual"
_TAGS_FROM_TEXT = 5
_TAG_CHARACTERS = 4


class LessonAttributes(TypedDict, total=False):
    """What can be said of a lesson beside its summary and type."""

    rule: str
    detail: str
    category: Category | str
    scope: Scope | str
    project: str
    repo: str
    task: str
    provider: str
    tool: str
    role: str
    domain: str
    tags: Sequence[str]
    importance: float
    severity: Severity | str
    remedies: Sequence[str]
    confirmed: bool


class NewLessonAttributes(LessonAttributes, total=False):
    """What can be said of a lesson that is added."""

    evidence: Evidence | Mapping[str, Sequence[str]]


class LessonChanges(LessonAttributes, total=False):
    """What can be changed in a lesson."""

    summary: str
    type: LessonType | str


def refuse_unknown(call: str, fields: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for a keyword that a call does not take, as Python does for any function."""
    for name in fields:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, sorted(LessonChanges.__optional_keys__), n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{hint}")


class LessonChange(StrEnum):
    """What keeping a candidate did to the bank; a dropped one was not written."""

    CREATED = "created"
    MET = "met"
    REFINED = "refined"
    UNCHANGED = "unchanged"
    DROPPED = "dropped"


class KeptLesson(NamedTuple):
    """The lesson that a candidate became or met, and what that changed."""

    lesson: Lesson
    change: LessonChange

    @property
    def is_new(self) -> bool:
        """Say whether the bank did not know the lesson before."""
        return self.change is LessonChange.CREATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A lesson as its maker describes it; the defaults are those of a mined one.

    `key` names the phenomenon, the same in every run that meets it. `remedies` are what made it work, best
    first. `events` show it in the run of the sighting, `evidence` is what else shows it, and
    `earlier_runs` met it before it was a lesson. `given` names the fields that a person stated. A candidate
    with `is_known_only` may meet a lesson but never becomes one; one with `is_finding` is a reviewer's. Of
    what `is_overcome` the run only shows the remedy: it does not count as having met it. `record` holds the
    id, times and counts of a candidate that is a whole record already; `number` is the short id that it asks
    for and `runs_since` how many runs have not met it. What a model worded takes the place of the lessons
    that it `supersedes`, and stands beside those that it `generalises`; `notes` are stored with a new lesson.
    """

    key: str = ""
    summary: str
    rule: str = ""
    detail: str = ""
    type: LessonType = LessonType.PATTERN
    category: Category = Category.HEURISTIC
    scope: Scope = Scope.REPO
    project: str = ""
    repo: str = ""
    task: str = ""
    provider: str = ""
    tool: str = ""
    role: str = ""
    domain: str = "code"
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    severity: Severity = Severity.WARNING
    remedies: tuple[str, ...] = ()
    evidence: Evidence = NO_EVIDENCE
    source: Source = Source.ARCHIVIST
    origin: str = "archivist"
    events: tuple[str, ...] = ()
    earlier_runs: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    is_known_only: bool = False
    is_overcome: bool = False
    is_finding: bool = False
    record: Lesson | None = None
    number: int = 0
    runs_since: int = 0
    supersedes: tuple[str, ...] = ()
    generalises: tuple[str, ...] = ()
    notes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Where and when candidates were met, by whom, and how far their maker is believed.

    `counted` is the run that counts as having met them: a session with its parts and subagents
    counts once. `run_count` is the bank's count of runs from which unseen runs are counted. A person has
    accepted the file or the clone when `is_accepted`; an agent that reported a run itself has no
    `is_own_run`, since it could have invented it: `brought_by` names it. `is_again` says that the run was
    reflected on before: then only the runs before it are known.
    """

    provenance: Provenance
    actor: Actor
    now: datetime
    run_count: int
    run: str = ""
    counted: str = ""
    session: str = ""
    trajectories: tuple[str, ...] = ()
    project: str = ""
    seen: datetime | None = None
    is_accepted: bool = False
    is_own_run: bool = True
    brought_by: str = ""
    is_again: bool = False

    def knows_less_than(self, lesson: Lesson) -> bool:
        """Say whether runs that it does not know gave a lesson its words and counts."""
        if not self.is_again or lesson.last_seen is None:
            return False
        seen = self.seen or self.now
        is_latest = self.run == lesson.last_seen_run
        return seen < lesson.last_seen or (seen == lesson.last_seen and not is_latest)

    @property
    def words_from(self) -> Provenance:
        """Return where the words of its candidates come from: only a person types, agents only suggest."""
        is_typed = self.provenance is Provenance.TYPED
        is_review = self.provenance is Provenance.REVIEWED
        if (
            (is_typed and self.actor.kind is not ActorKind.HUMAN)
            or (is_review and self.actor.kind is ActorKind.AGENT)
            or not self.is_own_run
        ):
            return Provenance.SUGGESTED
        return self.provenance

    @property
    def is_counted(self) -> bool:
        """Say whether it counts for a believed lesson: an own run met it, or a person said it again."""
        is_review = self.provenance is Provenance.REVIEWED
        return self.words_from.is_own or (is_review and self.is_own_run)


def said_by(actor: Actor, now: datetime, run_count: int) -> Sighting:
    """Return the sighting of what somebody says outside of any run."""
    return Sighting(
        provenance=Provenance.TYPED,
        actor=actor,
        now=now,
        run_count=run_count,
        run=MANUAL_RUN,
        counted=MANUAL_RUN,
    )


# The fields that a candidate and a lesson have in common; a candidate's `key` is a lesson's `signature`.
_SHARED = tuple(
    each.name for each in fields(Candidate) if each.name in Lesson.__slots__ and each.name != "number"
)
# Fields that cannot be edited. A statement that sets one is a record of its own and has no twin.
FIXED_FIELDS = frozenset((
    "id", "number", "created", "updated", "edited", "runs", "faded", "status", "evidence", "actor", "extra",
    "provenance", "brought_by", "accepted",
))  # fmt: skip
_LINES = ("summary", "rule")
_TEXTS = ("detail", "project", "repo", "task", "provider", "tool", "role", "domain", "origin")


def candidate_of(
    lesson: Lesson, *, number: int = 0, runs_since: int = 0, given: frozenset[str] = frozenset()
) -> Candidate:
    """Return a candidate that is a whole record: a person's, an agent's or a file's."""
    shared = {name: getattr(lesson, name) for name in _SHARED}
    return Candidate(
        **shared, key=lesson.signature, record=lesson, number=number, runs_since=runs_since, given=given
    )


def lesson_fields(candidate: Candidate) -> dict[str, Any]:
    """Return what a candidate says, by the names of a lesson's fields."""
    return {**{name: getattr(candidate, name) for name in _SHARED}, "signature": candidate.key}


def clean_candidate(candidate: Candidate, cleaner: Cleaner, *, is_exact: bool = False) -> Candidate:
    """Return a candidate without secrets, control characters and our own briefs in any of its texts.

    With `is_exact` control characters and line ends stay: what was exported is imported unchanged.
    """

    def clean(text: str) -> str:
        return cleaner.text(text if is_exact else make_legible(text))

    texts = {name: text for name in (*_LINES, *_TEXTS) if (text := getattr(candidate, name))}
    changes: dict[str, Any] = {name: clean(text) for name, text in texts.items()}
    if not is_exact:
        changes |= {name: " ".join(changes[name].split()) for name in _LINES if name in changes}
    # A tag that held a secret names nothing any more.
    changes["tags"] = tuple(tag for tag in map(clean, candidate.tags) if PLACEHOLDER_START not in tag)
    changes["remedies"] = tuple(map(clean, candidate.remedies))
    # A key is compared with those of later runs: it is redacted and otherwise left as it is.
    for name in ("key", "evidence", "events", "earlier_runs"):
        if (value := getattr(candidate, name)) and value != NO_EVIDENCE:
            changes[name] = cleaner.clean(value)
    if candidate.record is not None:
        extra: Any = without_secrets(candidate.record.extra, is_exact=True)
        changes["record"] = cleaner.clean(replace(candidate.record, extra=extra))
    return replace(candidate, **changes)


def clean_lesson(lesson: Lesson) -> Lesson:
    """Return a lesson without secrets, control characters and our own briefs in any of its texts."""
    cleaned = clean_candidate(candidate_of(lesson), Cleaner())
    return replace(cleaned.record or lesson, **lesson_fields(cleaned))


def clean_lesson_text(text: str) -> str:
    """Return a text without secrets, control characters and our own briefs."""
    return Cleaner().text(make_legible(text))


def derive_tags(summary: str) -> tuple[str, ...]:
    """Return the first few keywords of a summary; the marks of redacted secrets give none."""
    text = re.sub(rf"{re.escape(PLACEHOLDER_START)}[^\[\]]*\]", " ", summary)
    wanted = keywords(text)
    words = "".join(character if character.isalnum() else " " for character in text.lower()).split()
    tags = dict.fromkeys(word for word in words if word in wanted and len(word) >= _TAG_CHARACTERS)
    return tuple(tags)[:_TAGS_FROM_TEXT]
