"""The routes of knowledge, episodes and artifacts, and of the workspace's markdown."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.answers import Asked, json_response
from archivist.edges.http.banks import Visitor
from archivist.edges.http.bodies import BodyRoute, ExecutionMode, set_execution_mode
from archivist.edges.http.shapes import (
    Action,
    ArtifactBody,
    ArtifactKind,
    AttemptBody,
    FactBody,
    Id,
    Only,
    SaveBody,
    Share,
    Tags,
    clean_json,
)
from archivist.edges.views import (
    attempt_view,
    conflict_view,
    table_view,
)
from archivist.layers.artifacts_service import NEWEST as NEWEST_ARTIFACT
from archivist.layers.attempts_service import NEWEST as NEWEST_ATTEMPT
from archivist.layers.knowledge_service import BY_NAME
from archivist.workspace.documents import learnings_view, overviews_view, plan_view, plans_view
from archivist.workspace.learnings import Learnings
from archivist.workspace.save import SaveResult, item_from
from archivist.workspace.topology import FileKind

router = APIRouter(prefix="/api/memory", tags=["memory"], route_class=BodyRoute)
workspace = APIRouter(prefix="/api/workspace", tags=["workspace"], route_class=BodyRoute)


@router.get("/knowledge", responses=answers.page_response("knowledge", answers.FactRow))
def knowledge(
    visitor: Visitor,
    asked: Asked,
    project: Only = "",
    category: Only = "",
    key: Only = "",
    text: Annotated[str, Query(max_length=4_000, description="Best matches of these words first.")] = "",
    min_confidence: Annotated[Share, Query()] = 0.0,
) -> Response:
    """List facts: by category and key, or the best matches of a text first."""
    with visitor.bank() as bank:
        query = partial(
            bank.knowledge.query,
            category=category,
            key=key,
            text=text,
            project=project,
            min_confidence=min_confidence,
        )
        if text.strip():
            page = asked.page_by_rank(lambda most: query(limit=most), lambda fact: fact.id)
        else:
            page = asked.page_by_order(lambda after, most: query(after=after, limit=most), BY_NAME)
    return page.response("knowledge", table_view)


@router.post("/knowledge", responses=answers.model_response(answers.FactPutOut))
def put_knowledge(body: FactBody, visitor: Visitor) -> Response:
    """Put a fact under a category and key; of two sources the more confident one stands, else the newer."""
    with visitor.bank() as bank:
        kept = bank.knowledge.put(
            body.category,
            body.key,
            body.value,
            source=body.source or "",
            confidence=1.0 if body.confidence is None else body.confidence,
            project=body.project,
            tags=body.tags,
        )
    conflict = conflict_view(kept.conflict) if kept.conflict else None
    return json_response(
        {"knowledge": table_view(kept.fact), "changed": kept.is_changed, "conflict": conflict}
    )


@router.delete("/knowledge/{id:path}", responses=answers.item_response("knowledge", answers.FactRow))
def remove_knowledge(id: Id, visitor: Visitor) -> Response:  # noqa: A002 the documented name
    """Remove a fact; its history stays."""
    with visitor.bank() as bank:
        return json_response({"knowledge": table_view(bank.knowledge.remove(id))})


@router.get("/episodes", responses=answers.page_response("episodes", answers.AttemptRow))
def episodes(
    visitor: Visitor,
    asked: Asked,
    task_id: Only = "",
    agent_id: Only = "",
    action: Annotated[Action | None, Query()] = None,
    provider: Only = "",
) -> Response:
    """List attempts, the latest first: for a task, or by an agent."""
    with visitor.bank() as bank:
        page = asked.page_by_order(
            lambda after, most: bank.attempts.query(
                task=task_id, agent=agent_id, action=action, provider=provider, after=after, limit=most
            ),
            NEWEST_ATTEMPT,
        )
    return page.response("episodes", attempt_view)


@router.post(
    "/episodes", status_code=201, responses=answers.item_response("episode", answers.AttemptRow, 201)
)
def log_episode(body: AttemptBody, visitor: Visitor) -> Response:
    """Log an attempt at a task; with an id, the same again changes nothing."""
    with visitor.bank() as bank:
        made = bank.attempts.log(
            body.task_id,
            agent=body.agent_id,
            action=body.action,
            approach=body.approach,
            outcome=body.outcome or "",
            duration_ms=body.duration_ms,
            tokens_in=body.tokens_in,
            tokens_out=body.tokens_out,
            provider=body.provider,
            run=body.run,
            id=body.id,
        )
    return json_response({"episode": attempt_view(made)}, 201)


@router.get("/artifacts", responses=answers.page_response("artifacts", answers.ArtifactRow))
def artifacts(
    visitor: Visitor,
    asked: Asked,
    task_id: Only = "",
    agent_id: Only = "",
    type: Annotated[ArtifactKind | None, Query()] = None,  # noqa: A002 the documented name
    path: Annotated[str, Query(max_length=1_000)] = "",
) -> Response:
    """List artifacts, the latest first: for a task, or of a type."""
    with visitor.bank() as bank:
        page = asked.page_by_order(
            lambda after, most: bank.artifacts.query(
                task=task_id, agent=agent_id, type=type, path=path, after=after, limit=most
            ),
            NEWEST_ARTIFACT,
        )
    return page.response("artifacts", table_view)


@router.post(
    "/artifacts", status_code=201, responses=answers.item_response("artifact", answers.ArtifactRow, 201)
)
def register_artifact(body: ArtifactBody, visitor: Visitor) -> Response:
    """Register a file of the project with its size and SHA-256 as of now."""
    with visitor.bank() as bank:
        made = bank.artifacts.register(
            body.path,
            task=body.task_id,
            agent=body.agent_id,
            type=body.type,
            description=body.description or "",
            run=body.run,
        )
    return json_response({"artifact": table_view(made)}, 201)


@router.delete("/artifacts/{id:path}", responses=answers.item_response("artifact", answers.ArtifactRow))
def remove_artifact(id: Id, visitor: Visitor) -> Response:  # noqa: A002 the documented name
    """Remove an artifact from the register; the file stays."""
    with visitor.bank() as bank:
        return json_response({"artifact": table_view(bank.artifacts.remove(id))})


@workspace.get("/plans", responses=answers.page_response("plans", answers.ExtensibleOut))
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


@workspace.get("/plan", responses=answers.item_response("plan", answers.ExtensibleOut))
def plan(
    visitor: Visitor,
    name: Annotated[str, Query(min_length=1, max_length=400, description="Its id, path or name.")],
    scope: Only = "",
) -> Response:
    """Return one plan in full."""
    with visitor.bank() as bank:
        detail = bank.workspace.retrieve_plan(name, scope)
    return json_response({"plan": {**plan_view(detail.plan), "content": detail.content}})


@workspace.get("/overview", responses=answers.page_response("overviews", answers.ExtensibleOut))
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


@workspace.get("/learnings", responses=answers.model_response(answers.ExtensibleOut))
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


@workspace.post("/save", responses=answers.model_response(answers.ExtensibleOut))
@set_execution_mode(lambda **_: ExecutionMode.LONG)
def save(body: SaveBody, visitor: Visitor) -> Response:
    """Write decisions, lessons and plans' statuses, unless they are there already or contradict what is."""
    items = [item_from(clean_json(each.model_dump(exclude_unset=True))) for each in body.items]
    with visitor.bank() as bank:
        done = bank.workspace.save_memory(items, body.scope, on_conflict=body.on_conflict, create=body.create)
    counts = {result.value: sum(each.result is result for each in done) for result in SaveResult}
    rows = [{**each._asdict(), "result": each.result.value, "kind": each.kind.value} for each in done]
    return json_response({**counts, "items": rows})
