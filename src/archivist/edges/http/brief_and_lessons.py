"""The routes of briefs, of recall and of lessons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Header, Query
from pydantic import ConfigDict, Field, model_validator

from archivist.bank import Bank
from archivist.brief.select import BriefFormat, BriefRequest
from archivist.edges.http import answers, shapes
from archivist.edges.http.answers import Asked
from archivist.edges.http.bodies import BankRoute, set_lane
from archivist.edges.server.banks import BankReach, PoolLane
from archivist.edges.views import View, brief_view, history_views, hit_view, lesson_views
from archivist.errors import InputError
from archivist.lessons.service import MOST_MET
from archivist.recall.query import LIVE
from archivist.recall.query import Query as Question
from archivist.recall.results import Hit
from archivist.records import Category, Lesson, LessonType, Scope, Severity, Status

briefs = APIRouter(prefix="/api", tags=["brief and recall"], route_class=BankRoute)
router = APIRouter(prefix="/api/lessons", tags=["lessons"], route_class=BankRoute)
_LESSON = answers.item_model("lesson", answers.LessonOut)
_MemoryKind = Literal["lesson", "episode", "event", "fact", "artifact", "task", "entry", "document"]
_ReadVersion = Annotated[
    str, Header(alias="If-Match", max_length=70, description="The `version` of the words that you read.")
]
_TEXT_HITS = 200
_MOST_HITS = 1_000


class RunBody(shapes.Body):
    """A run that starts, and what its brief is about."""

    run: shapes.Word = ""
    task: shapes.Note = ""
    domain: shapes.Word = ""
    role: shapes.Word = ""
    repo: shapes.Word = ""
    provider: shapes.Word = ""
    form: Annotated[BriefFormat | None, shapes.Enumerated, Field(alias="format")] = None
    fence: bool | None = None


class BriefBody(RunBody):
    """The request of a brief: its audience, its task, its form."""

    tool: shapes.Word = ""
    tags: shapes.AskedWords = ()
    preset: Literal["orchestrator", "subagent", "reviewer"] | None = None
    max_lessons: Annotated[int, Field(ge=1, le=1_000), shapes.Whole] | None = None
    budget_tokens: Annotated[int, Field(ge=1, le=1_000_000), shapes.Whole] | None = None
    explain: bool = False


class LessonFields(shapes.Body):
    """What can be said of a lesson."""

    category: Annotated[Category | None, shapes.Enumerated] = None
    scope: Annotated[Scope | None, shapes.Enumerated] = None
    severity: Annotated[Severity | None, shapes.Enumerated] = None
    domain: shapes.Word | None = None
    role: shapes.Word | None = None
    repo: shapes.Word | None = None
    task: shapes.Word | None = None
    provider: shapes.Word | None = None
    tool: shapes.Word | None = None
    tags: shapes.Words | None = None
    importance: shapes.Share | None = None
    rule: shapes.Rule | None = None
    detail: shapes.Note | None = None
    type: Annotated[
        LessonType | None,
        shapes.Enumerated,
        Field(description="By default a preference of people, a pattern of an agent."),
    ] = None


class LessonBody(LessonFields):
    """A lesson to add."""

    summary: shapes.Summary


class LessonEdit(LessonFields):
    """The fields of a lesson to change."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    summary: shapes.Summary | None = None

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: give at least one field")
        return self


async def _read_audience(
    domain: shapes.Only = "",
    role: shapes.Only = "",
    provider: shapes.Only = "",
    tool: shapes.Only = "",
    repo: shapes.Only = "",
) -> dict[str, Any]:
    return {"domain": domain, "role": role, "provider": provider, "tool": tool, "repo": repo}


_Audience = Annotated[dict[str, Any], Depends(_read_audience)]


@briefs.post("/brief", response_model=answers.BriefOut)
@set_lane(lambda wanted, **_: PoolLane.WRITE if wanted.run else PoolLane.READ)
def brief(bank: Bank, wanted: BriefBody) -> View:
    """Return what a new run should know; with a run it is recorded."""
    request = BriefRequest(**wanted.model_dump(exclude={"explain", "tags"}), tags=tuple(wanted.tags))
    told = bank.brief(request)
    why = {"reasons": bank.briefs.explain_selection(told, request)} if wanted.explain else {}
    return {**brief_view(bank, told), **why}


@briefs.post("/heal", response_model=answers.BriefOut)
@set_lane(lambda **_: PoolLane.READ)
def heal(
    bank: Bank, error: shapes.Text, tool: shapes.Word = "", command: shapes.Note = "", repo: shapes.Word = ""
) -> View:
    """Return what earlier runs did about an error: what worked, and in how many of them."""
    return brief_view(bank, bank.briefs.heal(error, tool=tool, command=command, repo=repo))


@briefs.get("/recall", response_model=answers.page_model("hits", answers.HitOut))
def recall(
    bank: Bank,
    reach: BankReach,
    asked: Asked,
    audience: _Audience,
    query: shapes.Sought,
    kind: Annotated[tuple[_MemoryKind, ...], Query(max_length=10)] = (),
    tag: shapes.Tags = (),
    run: shapes.Only = "",
    agent: shapes.Only = "",
    issue: shapes.Cycle = None,
    since: shapes.Since = None,
    until: shapes.Until = None,
    since_cycle: shapes.Cycle = None,
    until_cycle: shapes.Cycle = None,
    importance: Annotated[shapes.Share, Query()] = 0.0,
    preset: Annotated[str | None, Query(pattern="^(relevance|archivist|generative)$")] = None,
    window: Annotated[int, Query(ge=0, le=20)] = 0,
    banks: Annotated[
        str, Query(alias="bank", max_length=2_000, description="`all` or `a,b`: banks of this token.")
    ] = "",
) -> View:
    """Find what answers a question, in every kind of memory, the best first; also in several banks."""
    question = Question(
        text=query, kinds=tuple(dict.fromkeys(kind)), tags=tag, run=run, agent=agent, issue=issue,
        since=since, until=until, since_cycle=since_cycle, until_cycle=until_cycle,
        min_importance=importance, preset=preset, window=window, **audience,
    )  # fmt: skip

    def find(limit: int) -> Sequence[Hit]:
        if not banks:
            return bank.recall(question._replace(limit=limit)).hits
        with reach.open(banks) as opened:
            return bank.recall_across(opened, question._replace(limit=limit)).hits

    page = asked.page_by_rank(find, lambda hit: f"{hit.kind}:{hit.id}", most=_MOST_HITS)
    return page.view("hits", hit_view)


@router.get("", response_model=answers.page_model("lessons", answers.LessonOut))
def list_lessons(
    bank: Bank,
    asked: Asked,
    audience: _Audience,
    text: shapes.Matched = "",
    type: Annotated[LessonType | None, Query()] = None,
    category: Annotated[Category | None, Query()] = None,
    scope: Annotated[Scope | None, Query()] = None,
    status: Annotated[Status | None, Query()] = None,
    all: Annotated[bool, Query(description="Also superseded and archived ones.")] = False,
    task: shapes.Only = "",
    tag: shapes.Tags = (),
) -> View:
    """List lessons: the most frequent first, or the best matches of a text."""
    usual = tuple(Status) if all else (*LIVE, Status.QUARANTINED)
    question = Question(
        text=text, type=type or "", category=category, scope=scope, statuses=(status,) if status else usual,
        task=task, tags=tag, **audience,
    )  # fmt: skip
    if text.strip():

        def find(limit: int) -> Sequence[Lesson]:
            return bank.lessons.query(question._replace(limit=limit))

        page = asked.page_by_rank(find, lambda lesson: lesson.id, most=_TEXT_HITS)
    else:
        page = asked.page_by_order(
            lambda after, limit: bank.lessons.page(question._replace(limit=limit), after=after), MOST_MET
        )
    return {"lessons": lesson_views(bank, page.items), "next": page.next}


@router.post("", status_code=201, response_model=_LESSON)
def add_lesson(bank: Bank, lesson: LessonBody) -> View:
    """Add a lesson: active at once; what an agent or orchestrator adds waits for a person."""
    return _lesson_answer(bank, bank.lessons.add(**lesson.provided_fields()))


@router.get("/{id}", response_model=_LESSON)
def show_lesson(bank: Bank, id: shapes.Id) -> View:
    """Return a lesson by its short id (m-001) or its global one."""
    lesson = bank.lessons.get(id)
    return _lesson_answer(bank, lesson, stale=bank.liveness.find_stale([lesson]).get(lesson.id, ""))


@router.patch("/{id}", response_model=_LESSON)
def edit_lesson(bank: Bank, id: shapes.Id, changes: LessonEdit) -> View:
    """Change a lesson; its history keeps the earlier version."""
    fields = changes.provided_fields()
    if not fields:
        raise InputError("nothing to change", hint="set at least one field that is not null")
    return _lesson_answer(bank, bank.lessons.edit(id, **fields))


@router.post("/{id}/approve", response_model=_LESSON)
def approve_lesson(bank: Bank, id: shapes.Id, version: _ReadVersion = "") -> View:
    """Approve a lesson as it is worded; only a person may.

    If it has another `version` by now, the answer is 409. Quarantined words, and an agent's that it has
    changed, need one. `replaced` names the lessons that it replaces, `kept_beside` those of yours that stay.
    """
    return _lesson_answer(bank, bank.lessons.approve(id, version.strip('"')))


@router.delete("/{id}", response_model=_LESSON)
def forget_lesson(
    bank: Bank,
    id: shapes.Id,
    replaced_by: Annotated[str, Query(max_length=400, description="The lesson that says it better.")] = "",
) -> View:
    """Move a lesson to the archive, whatever its frequency."""
    return _lesson_answer(bank, bank.lessons.archive(id, replaced_by) if replaced_by else bank.forget(id))


def _lesson_answer(bank: Bank, lesson: Lesson, **more: Any) -> View:
    return {"lesson": {**lesson_views(bank, [lesson])[0], **more}}


@router.get("/{id}/history", response_model=answers.page_model("history", answers.ChangeOut))
def lesson_history(bank: Bank, id: shapes.Id, asked: Asked) -> View:
    """List every change of a lesson, oldest first."""
    changes = bank.ledger.history(bank.lessons.get(id).id)
    return asked.page_by_key(history_views(changes), lambda view: view["seq"]).view("history", dict)
