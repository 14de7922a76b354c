"""The routes of briefs, of recall and of lessons."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.brief.select import BriefRequest
from archivist.edges.http import answers
from archivist.edges.http.answers import Asked, json_response
from archivist.edges.http.banks import PoolLane, Visitor
from archivist.edges.http.bodies import BodyRoute, ExecutionMode, set_execution_mode
from archivist.edges.http.shapes import (
    BriefBody,
    Category,
    Cycle,
    HealBody,
    Id,
    LessonBody,
    LessonEdit,
    LessonKind,
    MemoryKind,
    Only,
    Scope,
    Share,
    Since,
    Sought,
    Standing,
    Tags,
    Until,
)
from archivist.edges.views import brief_view, history_views, hit_view, lesson_views
from archivist.errors import InputError
from archivist.lessons.service import MOST_MET
from archivist.recall.query import LIVE
from archivist.recall.query import Query as Question
from archivist.records import Category as CategoryWord
from archivist.records import Scope as ScopeWord
from archivist.records import Status

briefs = APIRouter(prefix="/api", tags=["brief and recall"], route_class=BodyRoute)
router = APIRouter(prefix="/api/lessons", tags=["lessons"], route_class=BodyRoute)
_TEXT_HITS = 200
_MOST_HITS = 1_000


@briefs.post("/brief", responses=answers.model_response(answers.BriefOut))
@set_execution_mode(lambda body, **_: ExecutionMode.WRITES if body.run else ExecutionMode.READS)
def brief(body: BriefBody, visitor: Visitor) -> Response:
    """Return what a new run should know; with a run it is recorded."""
    asked = body.model_dump(exclude={"format", "explain", "tags"})
    request = BriefRequest(**asked, form=body.format, tags=tuple(body.tags))
    with visitor.bank(PoolLane.WRITE if body.run else PoolLane.READ) as bank:
        told = bank.brief(request)
        why = {"reasons": bank.briefs.reasons(told)} if body.explain else {}
        return json_response({**brief_view(bank, told), **why})


@briefs.post("/heal", responses=answers.model_response(answers.BriefOut))
@set_execution_mode(lambda **_: ExecutionMode.READS)
def heal(body: HealBody, visitor: Visitor) -> Response:
    """Return what earlier runs did about an error: what worked, and in how many of them."""
    with visitor.bank(PoolLane.READ) as bank:
        told = bank.briefs.heal(body.error, tool=body.tool, command=body.command, repo=body.repo)
        return json_response(brief_view(bank, told))


@briefs.get("/recall", responses=answers.page_response("hits", answers.HitOut))
def recall(
    visitor: Visitor,
    asked: Asked,
    query: Sought,
    kind: Annotated[list[MemoryKind], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
    tag: Tags = [],  # noqa: B006
    role: Only = "",
    provider: Only = "",
    tool: Only = "",
    repo: Only = "",
    domain: Only = "",
    run: Only = "",
    agent: Only = "",
    issue: Cycle = None,
    since: Since = None,
    until: Until = None,
    since_cycle: Cycle = None,
    until_cycle: Cycle = None,
    importance: Annotated[Share, Query()] = 0.0,
    preset: Annotated[str | None, Query(pattern="^(relevance|archivist|generative)$")] = None,
    window: Annotated[int, Query(ge=0, le=20)] = 0,
) -> Response:
    """Find what answers a question, in every kind of memory, the best first."""
    question = Question(
        text=query,
        kinds=tuple(dict.fromkeys(kind)),
        tags=tuple(tag),
        role=role,
        provider=provider,
        tool=tool,
        repo=repo,
        domain=domain,
        run=run,
        agent=agent,
        issue=issue,
        since=since,
        until=until,
        since_cycle=since_cycle,
        until_cycle=until_cycle,
        min_importance=importance,
        preset=preset,
        window=window,
    )
    with visitor.bank() as bank:
        page = asked.page_by_rank(
            lambda most: bank.recall(question._replace(limit=min(most or _MOST_HITS, _MOST_HITS))).hits,
            lambda hit: f"{hit.kind}:{hit.id}",
        )
    return page.response("hits", hit_view)


@router.get("", responses=answers.page_response("lessons", answers.LessonOut))
def list_lessons(
    visitor: Visitor,
    asked: Asked,
    text: Annotated[str, Query(max_length=4_000, description="Best matches of this text first.")] = "",
    type: Annotated[LessonKind | None, Query()] = None,  # noqa: A002 the field's own name
    category: Annotated[Category | None, Query()] = None,
    scope: Annotated[Scope | None, Query()] = None,
    status: Annotated[Standing | None, Query()] = None,
    all: Annotated[bool, Query(description="Also superseded and archived ones.")] = False,  # noqa: A002
    domain: Only = "",
    role: Only = "",
    repo: Only = "",
    task: Only = "",
    provider: Only = "",
    tool: Only = "",
    tag: Tags = [],  # noqa: B006 FastAPI copies it
) -> Response:
    """List lessons: the most frequent first, or the best matches of a text."""
    question = Question(
        text=text,
        type=type or "",
        category=CategoryWord(category) if category else None,
        scope=ScopeWord(scope) if scope else None,
        statuses=(Status(status),) if status else tuple(Status) if all else (*LIVE, Status.QUARANTINED),
        domain=domain,
        role=role,
        repo=repo,
        task=task,
        provider=provider,
        tool=tool,
        tags=tuple(tag),
    )
    with visitor.bank() as bank:
        if text.strip():
            page = asked.page_by_rank(
                lambda most: bank.lessons.query(question._replace(limit=min(most or _TEXT_HITS, _TEXT_HITS))),
                lambda lesson: lesson.id,
            )
        else:
            page = asked.page_by_order(
                lambda after, most: bank.lessons.query(question._replace(limit=most), after=after), MOST_MET
            )
        return json_response({"lessons": lesson_views(bank, page.items), "next": page.next})


@router.post("", status_code=201, responses=answers.item_response("lesson", answers.LessonOut, 201))
def add_lesson(body: LessonBody, visitor: Visitor) -> Response:
    """Add a lesson: active at once, or a candidate when an agent adds it."""
    given = body.provided_fields()
    with visitor.bank() as bank:
        lesson = bank.lessons.add(given.pop("summary"), **given)
        return json_response({"lesson": lesson_views(bank, [lesson])[0]}, 201)


@router.get("/{id}", responses=answers.item_response("lesson", answers.LessonOut))
def show_lesson(id: Id, visitor: Visitor) -> Response:  # noqa: A002 what it is called everywhere
    """Return a lesson by its short id (m-001) or its global one."""
    with visitor.bank() as bank:
        lesson = bank.lessons.get(id)
        stale = bank.liveness.find_stale([lesson]).get(lesson.id, "")
        return json_response({"lesson": {**lesson_views(bank, [lesson])[0], "stale": stale}})


@router.patch("/{id}", responses=answers.item_response("lesson", answers.LessonOut))
def edit_lesson(id: Id, body: LessonEdit, visitor: Visitor) -> Response:  # noqa: A002
    """Change a lesson; its history keeps the earlier version."""
    changes = body.provided_fields()
    if not changes:
        raise InputError("nothing to change", hint="set at least one field that is not null")
    with visitor.bank() as bank:
        return json_response({"lesson": lesson_views(bank, [bank.lessons.edit(id, **changes)])[0]})


@router.post("/{id}/approve", responses=answers.item_response("lesson", answers.LessonOut))
def approve_lesson(id: Id, visitor: Visitor) -> Response:  # noqa: A002
    """Approve a lesson; only a person may approve a quarantined one."""
    with visitor.bank() as bank:
        return json_response({"lesson": lesson_views(bank, [bank.lessons.approve(id)])[0]})


@router.delete("/{id}", responses=answers.item_response("lesson", answers.LessonOut))
def forget_lesson(
    id: Id,  # noqa: A002
    visitor: Visitor,
    replaced_by: Annotated[str, Query(max_length=400, description="The lesson that says it better.")] = "",
) -> Response:
    """Move a lesson to the archive, whatever its frequency."""
    with visitor.bank() as bank:
        gone = bank.lessons.archive(id, replaced_by) if replaced_by else bank.forget(id)
        return json_response({"lesson": lesson_views(bank, [gone])[0]})


@router.get("/{id}/history", responses=answers.page_response("history", answers.ChangeOut))
def lesson_history(id: Id, visitor: Visitor, asked: Asked) -> Response:  # noqa: A002
    """List every change of a lesson, oldest first."""
    with visitor.bank() as bank:
        changes = bank.ledger.history(bank.lessons.get(id).id)
    page = asked.page_by_key(history_views(changes), lambda view: view["seq"])
    return json_response({"history": page.items, "next": page.next})
