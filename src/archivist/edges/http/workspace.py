"""The routes of the workspace's markdown."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.bodies import BodyRoute, ExecutionMode, set_execution_mode
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import Only, SaveBody, Tags
from archivist.edges.http.visits import Visitor, clean_json, json_response
from archivist.workspace.documents import learnings_view, overviews_view, plan_view, plans_view
from archivist.workspace.learnings import Learnings
from archivist.workspace.save import SaveResult, item_from
from archivist.workspace.topology import FileKind

router = APIRouter(prefix="/api/workspace", tags=["workspace"], route_class=BodyRoute)


@router.get("/plans", responses=answers.page_response("plans", answers.ExtensibleOut))
def plans(
    visitor: Visitor,
    asked: Asked,
    scope: Only = "",
    status: Tags = [],  # noqa: B006 FastAPI copies it
    tag: Tags = [],  # noqa: B006
) -> Response:
    """List the plans of a scope, as their front matter tells."""
    with visitor.bank() as bank:
        found = bank.workspace.retrieve_plans(scope, status=status, tags=tag)
    page = asked.page_by_rank(lambda _most: found, lambda plan: plan.path)
    return json_response({**plans_view(page.items), "next": page.next})


@router.get("/plan", responses=answers.item_response("plan", answers.ExtensibleOut))
def plan(
    visitor: Visitor,
    name: Annotated[str, Query(min_length=1, max_length=400, description="Its id, path or name.")],
    scope: Only = "",
) -> Response:
    """Return one plan in full."""
    with visitor.bank() as bank:
        detail = bank.workspace.retrieve_plan(name, scope)
    return json_response({"plan": {**plan_view(detail.plan), "content": detail.content}})


@router.get("/overview", responses=answers.page_response("overviews", answers.ExtensibleOut))
def overview(
    visitor: Visitor,
    asked: Asked,
    scope: Only = "",
    full: Annotated[bool, Query(description="Every overview in full, not only the one asked for.")] = False,
) -> Response:
    """Say what a scope is about: it in full, what lies below as abstracts."""
    with visitor.bank() as bank:
        found = bank.workspace.retrieve_overview(scope, is_full=full)
    page = asked.page_by_rank(lambda _most: found, lambda each: each.overview.path)
    return json_response({**overviews_view(page.items), "next": page.next})


@router.get("/learnings", responses=answers.model_response(answers.ExtensibleOut))
def learnings(
    visitor: Visitor,
    asked: Asked,
    scope: Only = "",
    tag: Tags = [],  # noqa: B006 FastAPI copies it
    category: Only = "",
    all: Annotated[bool, Query(description="Also those that were superseded.")] = False,  # noqa: A002
) -> Response:
    """Return the decisions and lessons of a scope, the decisions first."""
    with visitor.bank() as bank:
        found = bank.workspace.retrieve_learnings(scope, tags=tag, category=category, with_superseded=all)
    page = asked.page_by_rank(
        lambda _most: [*found.decisions, *found.lessons], lambda each: f"{each.path} {each.id}"
    )
    shown = Learnings(
        [each for each in page.items if each.kind is FileKind.DECISIONS],
        [each for each in page.items if each.kind is not FileKind.DECISIONS],
    )
    return json_response({**learnings_view(shown), "next": page.next})


@router.post("/save", responses=answers.model_response(answers.ExtensibleOut))
@set_execution_mode(lambda **_: ExecutionMode.LONG)
def save(body: SaveBody, visitor: Visitor) -> Response:
    """Write decisions, lessons and plans' statuses, unless they are there already or contradict what is."""
    items = [item_from(clean_json(each.model_dump(exclude_unset=True))) for each in body.items]
    with visitor.bank() as bank:
        done = bank.workspace.save_memory(items, body.scope, on_conflict=body.on_conflict, create=body.create)
    counts = {result.value: sum(each.result is result for each in done) for result in SaveResult}
    rows = [{**each._asdict(), "result": each.result.value, "kind": each.kind.value} for each in done]
    return json_response({**counts, "items": rows})
