"""The routes of briefs and of recall."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.brief.select import BriefRequest
from archivist.edges.http import answers
from archivist.edges.http.banks import PoolLane
from archivist.edges.http.bodies import BodyRoute, ExecutionMode, set_execution_mode
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import (
    BriefBody,
    HealBody,
    MemoryKind,
    Only,
    Share,
    Since,
    Sought,
    Tags,
    Until,
)
from archivist.edges.http.visits import Visitor, json_response
from archivist.edges.views import brief_view, hit_view
from archivist.recall.query import Query as Question

router = APIRouter(prefix="/api", tags=["brief and recall"], route_class=BodyRoute)
_MOST_HITS = 1_000
_Cycle = Annotated[int | None, Query(ge=0, le=(1 << 31) - 1)]


@router.post("/brief", responses=answers.model_response(answers.BriefOut))
@set_execution_mode(lambda body, **_: ExecutionMode.WRITES if body.run else ExecutionMode.READS)
def brief(body: BriefBody, visitor: Visitor) -> Response:
    """Return what a new run should know; with a run it is recorded."""
    asked = body.model_dump(exclude={"format", "explain", "tags"})
    request = BriefRequest(**asked, form=body.format, tags=tuple(body.tags))
    with visitor.bank(PoolLane.WRITE if body.run else PoolLane.READ) as bank:
        told = bank.brief(request)
        why = {"reasons": bank.briefs.reasons(told)} if body.explain else {}
        return json_response({**brief_view(bank, told), **why})


@router.post("/heal", responses=answers.model_response(answers.BriefOut))
@set_execution_mode(lambda **_: ExecutionMode.READS)
def heal(body: HealBody, visitor: Visitor) -> Response:
    """Return what earlier runs did about an error: what worked, and in how many of them."""
    with visitor.bank(PoolLane.READ) as bank:
        told = bank.briefs.heal(body.error, tool=body.tool, command=body.command, repo=body.repo)
        return json_response(brief_view(bank, told))


@router.get("/recall", responses=answers.page_response("hits", answers.HitOut))
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
    issue: _Cycle = None,
    since: Since = None,
    until: Until = None,
    since_cycle: _Cycle = None,
    until_cycle: _Cycle = None,
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
    return json_response({"hits": [hit_view(each) for each in page.items], "next": page.next})
