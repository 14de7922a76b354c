"""The documented routes of the layers: knowledge, episodes, artifacts."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.bodies import BodyRoute
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import (
    Action,
    ArtifactBody,
    ArtifactKind,
    AttemptBody,
    FactBody,
    Id,
    Only,
    Share,
)
from archivist.edges.http.visits import Visitor, json_response
from archivist.edges.views import attempt_view, conflict_view, table_view
from archivist.layers.artifacts import service as artifact_desk
from archivist.layers.attempts import service as attempts
from archivist.layers.knowledge.service import BY_NAME

router = APIRouter(prefix="/api/memory", tags=["memory"], route_class=BodyRoute)


@router.get("/knowledge", responses=answers.page_response("knowledge", answers.FactRow))
def knowledge(
    visitor: Visitor,
    asked: Asked,
    project: Only = "",
    category: Only = "",
    key: Only = "",
    text: Annotated[str, Query(max_length=4_000, description="Best answers to these words first.")] = "",
    min_confidence: Annotated[Share, Query()] = 0.0,
) -> Response:
    """List what holds: by category and key, or the best answers to a text first."""
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
    return json_response({"knowledge": [table_view(each) for each in page.items], "next": page.next})


@router.post("/knowledge", responses=answers.model_response(answers.FactPutOut))
def put_knowledge(body: FactBody, visitor: Visitor) -> Response:
    """Say what holds under a category and key; of two sources the surer word stands, else the newer."""
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
    """List what was tried, the latest first: for a task, or by an agent."""
    with visitor.bank() as bank:
        page = asked.page_by_order(
            lambda after, most: bank.attempts.query(
                task=task_id, agent=agent_id, action=action, provider=provider, after=after, limit=most
            ),
            attempts.NEWEST,
        )
    return json_response({"episodes": [attempt_view(each) for each in page.items], "next": page.next})


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
    """List what was produced, the latest first: for a task, or of a type."""
    with visitor.bank() as bank:
        page = asked.page_by_order(
            lambda after, most: bank.artifacts.query(
                task=task_id, agent=agent_id, type=type, path=path, after=after, limit=most
            ),
            artifact_desk.NEWEST,
        )
    return json_response({"artifacts": [table_view(each) for each in page.items], "next": page.next})


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
    """Take an artifact off the register; the file stays."""
    with visitor.bank() as bank:
        return json_response({"artifact": table_view(bank.artifacts.remove(id))})
