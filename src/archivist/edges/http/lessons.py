"""The routes of lessons."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.bodies import BodyRoute
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import (
    Category,
    Id,
    LessonBody,
    LessonEdit,
    LessonKind,
    Only,
    Scope,
    Standing,
    Tags,
)
from archivist.edges.http.visits import Visitor, json_response
from archivist.edges.views import history_views, lesson_views
from archivist.errors import InputError
from archivist.lessons.service import MOST_MET
from archivist.recall.query import LIVE
from archivist.recall.query import Query as Question
from archivist.records import Category as CategoryWord
from archivist.records import Scope as ScopeWord
from archivist.records import Status

router = APIRouter(prefix="/api/lessons", tags=["lessons"], route_class=BodyRoute)
_TEXT_HITS = 200


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
