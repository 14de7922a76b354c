"""The routes of the workspace's markdown."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.bodies import BodyRoute, Manner, done_as
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import Only, SaveBody, Tags
from archivist.edges.http.visits import Visitor, answer, plain_json
from archivist.workspace.answers import learnings_view, overviews_view, plan_view, plans_view
from archivist.workspace.learnings import Learnings
from archivist.workspace.save import Result, item_from
from archivist.workspace.topology import Kind

router = APIRouter(prefix="/api/workspace", tags=["workspace"], route_class=BodyRoute)


@router.get("/plans", responses=answers.page_of("plans", answers.Open))
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
    page = asked.ranked(lambda _most: found, lambda plan: plan.path)
    return answer({**plans_view(page.items), "next": page.next})


@router.get("/plan", responses=answers.one("plan", answers.Open))
def plan(
    visitor: Visitor,
    name: Annotated[str, Query(min_length=1, max_length=400, description="Its id, path or name.")],
    scope: Only = "",
) -> Response:
    """Return one plan in full."""
    with visitor.bank() as bank:
        detail = bank.workspace.retrieve_plan(name, scope)
    return answer({"plan": {**plan_view(detail.plan), "content": detail.content}})


@router.get("/overview", responses=answers.page_of("overviews", answers.Open))
def overview(
    visitor: Visitor,
    asked: Asked,
    scope: Only = "",
    full: Annotated[bool, Query(description="Every overview in full, not only the one asked for.")] = False,
) -> Response:
    """Say what a scope is about: it in full, what lies below as abstracts."""
    with visitor.bank() as bank:
        found = bank.workspace.retrieve_overview(scope, is_full=full)
    page = asked.ranked(lambda _most: found, lambda each: each.overview.path)
    return answer({**overviews_view(page.items), "next": page.next})


@router.get("/learnings", responses=answers.of(answers.Open))
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
    page = asked.ranked(
        lambda _most: [*found.decisions, *found.lessons], lambda each: f"{each.path} {each.id}"
    )
    shown = Learnings(
        [each for each in page.items if each.kind is Kind.DECISIONS],
        [each for each in page.items if each.kind is not Kind.DECISIONS],
    )
    return answer({**learnings_view(shown), "next": page.next})


@router.post("/save", responses=answers.of(answers.Open))
@done_as(lambda **_: Manner.LONG)
def save(body: SaveBody, visitor: Visitor) -> Response:
    """Write decisions, lessons and plans' statuses, unless they are there already or contradict what is."""
    items = [item_from(plain_json(each.model_dump(exclude_unset=True))) for each in body.items]
    with visitor.bank() as bank:
        done = bank.workspace.save_memory(items, body.scope, on_conflict=body.on_conflict, create=body.create)
    counts = {result.value: sum(each.result is result for each in done) for result in Result}
    rows = [{**each._asdict(), "result": each.result.value, "kind": each.kind.value} for each in done]
    return answer({**counts, "items": rows})
