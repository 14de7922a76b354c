"""The shapes of requests: checked once, here, and published in the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from archivist.clock import from_text
from archivist.errors import InputError
from archivist.text import replace_surrogates

# The largest number, also of a cycle, that a request may name.
LARGEST = (1 << 31) - 1
_WORDS = 4_000
# Far below Python's recursion limit of 1,000, which the encoders reach with deeper values.
_MAX_DEPTH = 64
# SQLite's integers have 64 bits with the sign.
_INT_BITS = 63
_RUN_AND_DAYS: JsonDict = {
    "required": ["run", "days"],
    "properties": {"run": {"minLength": 1}, "days": {"type": "integer"}},
}


# A float without a fraction is read as an integer: JSON does not distinguish 3.0 from 3.
_Whole = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
Said = Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"\S")]
Note = Annotated[str, Field(max_length=20_000)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Word = Annotated[str, Field(max_length=200)]
Words = Annotated[list[Word], Field(max_length=100)]
Numbers = Annotated[list[Annotated[int, Field(ge=0, le=LARGEST), _Whole]], Field(max_length=100)]
Count = Annotated[int, Field(ge=0, le=LARGEST), _Whole]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[int, Field(ge=1, le=10), _Whole]

LessonKind = Literal["pattern", "preference", "archetype_hint", "anti_pattern"]
Category = Literal[
    "heuristic", "anti_pattern", "tool_usage", "provider_quirk", "test_strategy", "infra", "prompting",
    "bugfix_pattern",
]  # fmt: skip
Scope = Literal["global", "project", "repo", "task", "tool", "provider"]
Severity = Literal["bug", "warning", "info", "recommendation"]
Standing = Literal["candidate", "active", "quarantined", "superseded", "archived"]
Ended = Literal["success", "partial", "failed", "aborted"]
Action = Literal["attempted", "completed", "failed", "retried"]
ArtifactKind = Literal["file", "patch", "test", "document", "config"]
EntryKind = Literal["action", "observation", "reflection", "decision"]
TextKind = Literal["cycle", "decision", "research", "spec", "lesson"]
MemoryKind = Literal["lesson", "episode", "event", "fact", "artifact", "entry", "document"]
ProposalStanding = Literal["open", "accepted", "rejected", "expired", "rolled_back"]
Form = Literal["markdown", "known-issues", "yaml"]
Format = Literal[
    "auto", "atif", "claude-code", "codex", "swe-agent", "mini-swe-agent", "openhands", "archeflow", "stream"
]

Id = Annotated[str, Path(min_length=1, max_length=400, description="An id.")]
Sought = Annotated[str, Query(min_length=1, max_length=_WORDS, pattern=r"\S", description="Plain words.")]
Only = Annotated[str, Query(max_length=400)]
Cycle = Annotated[int | None, Query(ge=0, le=LARGEST)]
Tags = Annotated[list[str], Query(max_length=100)]


def _parse_time(value: Any) -> datetime:
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        raise ValueError("expected an ISO 8601 time")
    try:
        return from_text(value)
    except OverflowError:
        raise ValueError("a time beyond the calendar") from None


Moment = Annotated[
    datetime, BeforeValidator(_parse_time), WithJsonSchema({"type": "string", "format": "date-time"})
]
Since = Annotated[Moment | None, Query(description="Only from this time on, ISO 8601.")]
Until = Annotated[Moment | None, Query(description="Only up to this time, ISO 8601.")]


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    def provided_fields(self) -> dict[str, Any]:
        """Return the fields that were given and are not null."""
        return {
            name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None
        }


class FactBody(Body):
    """A fact under a category and key."""

    category: Title
    key: Title
    value: Said
    project: Word = ""
    source: Word | None = None
    confidence: Share | None = None
    tags: Words = []


class AttemptBody(Body):
    """An attempt at a task, and its outcome."""

    task_id: Title
    agent_id: Title
    action: Action
    approach: Said
    outcome: Note | None = None
    duration_ms: Count | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    provider: Word = ""
    run: Word = ""
    id: Word = ""


class ArtifactBody(Body):
    """A file of the project that a task produced."""

    path: Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"\S")]
    task_id: Title
    agent_id: Word = ""
    type: ArtifactKind = "file"
    description: Note | None = None
    run: Word = ""


class _LessonFields(Body):
    category: Category | None = None
    scope: Scope | None = None
    severity: Severity | None = None
    domain: Word | None = None
    role: Word | None = None
    repo: Word | None = None
    task: Word | None = None
    provider: Word | None = None
    tool: Word | None = None
    tags: Words | None = None
    importance: Share | None = None
    rule: Note | None = None
    detail: Note | None = None


class LessonBody(_LessonFields):
    """A lesson to add."""

    summary: Said
    type: Annotated[
        LessonKind | None, Field(description="By default a preference of people, a pattern of an agent.")
    ] = None


class LessonEdit(_LessonFields):
    """The fields of a lesson to change."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    summary: Said | None = None
    type: LessonKind | None = None

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: give at least one field")
        return self


class BriefBody(Body):
    """The request of a brief: its audience, its task, its form."""

    task: Note = ""
    repo: Word = ""
    domain: Word = ""
    role: Word = ""
    provider: Word = ""
    tool: Word = ""
    tags: Words = []
    run: Word = ""
    preset: Literal["orchestrator", "subagent", "reviewer"] | None = None
    max_lessons: Annotated[int, Field(ge=1, le=1_000), _Whole] | None = None
    budget_tokens: Annotated[int, Field(ge=1, le=1_000_000), _Whole] | None = None
    format: Form | None = None
    fence: bool | None = None
    explain: bool = False


class HealBody(Body):
    """The output of a command that failed."""

    error: Text
    tool: Word = ""
    command: Note = ""
    repo: Word = ""


class RunBody(Body):
    """A run that starts."""

    run: Word = ""
    task: Note = ""
    domain: Word = ""
    role: Word = ""
    repo: Word = ""
    provider: Word = ""
    format: Form | None = None
    fence: bool | None = None


class ReviewEvent(BaseModel):
    """A review event as ArcheFlow writes it; it may have more fields."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: Annotated[str, Field(min_length=1)]
    data: dict[str, Any] | None = None


class FinishBody(Body):
    """How a run ended, with its review events as ArcheFlow writes them."""

    status: Ended | None = None
    domain: Word = ""
    events: Annotated[list[ReviewEvent], Field(max_length=100_000)] = []


class ReflectBody(Body):
    """The runs to reflect on: one, those of the last days, or all pending ones."""

    model_config = ConfigDict(json_schema_extra={"not": _RUN_AND_DAYS})

    run: Word = ""
    days: Annotated[int, Field(ge=1, le=36_500), _Whole] | None = None

    @model_validator(mode="after")
    def _require_single_choice(self) -> Self:
        if self.run and self.days:
            raise ValueError("run and days exclude each other: give one, or none for all pending runs")
        return self


class CheckBody(Body):
    """The run whose briefed lessons are judged."""

    run: Title


class CoreBody(Body):
    """The new content of a block: a text, or its fields."""

    content: str | dict[str, Any]
    role: Word = ""


class ItemBody(Body):
    """An item to add to a list of core memory."""

    item: str | dict[str, Any]
    role: Word = ""


class EntryBody(Body):
    """What was done in a cycle."""

    action: Said
    content: Note = ""
    cycle: Count | None = None
    role: Word = ""
    importance: Weight = 5
    type: EntryKind = "action"
    tags: Words = []
    issues: Numbers = []
    prs: Numbers = []
    run: Word = ""


class CycleBody(Body):
    """The role whose cycle begins."""

    role: Word = ""


class InsightBody(Body):
    """Whether to reflect on the stream only when a reflection is due."""

    if_due: bool = False


class TextBody(Body):
    """A text to archive."""

    content: Text
    type: TextKind
    source: Word = ""
    roles: Words = []
    issues: Numbers = []
    tags: Words = []
    importance: Weight = 5


class WorkingBody(Body):
    """Working memory; fields that are left out stay as they are."""

    plan: Note | None = None
    constraints: Annotated[list[Note], Field(max_length=100)] | None = None
    context: dict[str, Any] | None = None


class NoteBody(Body):
    """A note for the acting agent itself."""

    text: Said


class ProposalBody(Body):
    """A new text for the playbook or the rules."""

    section: Literal["playbook", "rules"]
    after: Said
    reason: Said
    role: Word = ""
    evidence: Words = []


class CommentBody(Body):
    """A comment on a decision."""

    comment: Note = ""


class SaveItem(Body):
    """A decision, a lesson or a plan's status; fields that are left out are derived from the text."""

    text: str | None = None
    kind: Annotated[str | None, Field(description="decision, lesson or plan_status.")] = None
    title: str | None = None
    category: str | None = None
    tags: Annotated[
        list[str] | str | None, Field(description="A list, or a text with commas in between.")
    ] = None
    date: Annotated[str | None, Field(description="YYYY-MM-DD.")] = None
    scope: str | None = None
    plan: str | None = None
    status: str | None = None


class SaveBody(Body):
    """Decisions, lessons and plans' statuses to write into the workspace."""

    items: Annotated[list[SaveItem], Field(min_length=1, max_length=1_000)]
    scope: Word = ""
    on_conflict: Literal["refuse", "supersede", "keep_both"] = "refuse"
    create: bool = False


def clean_json(value: object, depth: int = 0) -> object:
    """Return a JSON value that can be stored and returned unchanged, or refuse it."""
    if depth > _MAX_DEPTH:
        raise InputError("the value is nested too deeply", hint=f"at most {_MAX_DEPTH} levels")
    match value:
        case dict():
            return {replace_surrogates(key): clean_json(item, depth + 1) for key, item in value.items()}
        case list():
            return [clean_json(item, depth + 1) for item in value]
        case str():
            return replace_surrogates(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            raise InputError("NaN and Infinity are not JSON numbers", hint="send null or a text")
        case int() if value.bit_length() > _INT_BITS:
            raise InputError("a number has more than 64 bits", hint="send it as a text")
    return value
