"""The routes of the memory layers: knowledge, episodes, artifacts, core, working memory, proposals."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

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
    CommentBody,
    CoreBody,
    FactBody,
    Id,
    ItemBody,
    NoteBody,
    Only,
    ProposalBody,
    ProposalStanding,
    Share,
    WorkingBody,
)
from archivist.edges.http.visits import Visitor, clean_json, json_response
from archivist.edges.views import (
    attempt_view,
    block_view,
    conflict_view,
    core_view,
    proposal_view,
    table_view,
)
from archivist.layers.artifacts_service import NEWEST as NEWEST_ARTIFACT
from archivist.layers.attempts_service import NEWEST as NEWEST_ATTEMPT
from archivist.layers.knowledge_service import BY_NAME
from archivist.records import ProposalStatus
from archivist.records.plain import to_plain

router = APIRouter(prefix="/api/memory", tags=["memory"], route_class=BodyRoute)
tiers = APIRouter(prefix="/api", tags=["core, working memory and proposals"], route_class=BodyRoute)
_Section = Literal["status", "threads", "roleState", "lessons"]
_List = Literal["threads", "blockers", "inProgress", "recentlyShipped", "lessons"]
_WORKING = answers.item_response("working", answers.WorkingOut | None)


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
    return json_response({"knowledge": [table_view(record) for record in page.items], "next": page.next})


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
    return json_response({"episodes": [attempt_view(attempt) for attempt in page.items], "next": page.next})


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
    return json_response({"artifacts": [table_view(record) for record in page.items], "next": page.next})


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


@tiers.get("/core", responses=answers.model_response(answers.CoreOut))
def core(visitor: Visitor, role: Only = "") -> Response:
    """Return the core blocks of a role, by default the actor's own, and their size."""
    with visitor.bank() as bank:
        return json_response(core_view(bank.core.view(role)))


@tiers.patch("/core/{section}", responses=answers.model_response(answers.BlockOut))
def update_core(section: _Section, body: CoreBody, visitor: Visitor) -> Response:
    """Change a block: the fields given replace, the rest stays. Playbook and rules change by proposals."""
    content: Any = clean_json(body.content)
    with visitor.bank() as bank:
        return json_response(block_view(bank.core.update(section, content, role=body.role)))


@tiers.post("/core/{section}", responses=answers.model_response(answers.BlockOut))
def append_core(section: _List, body: ItemBody, visitor: Visitor) -> Response:
    """Add to a list of core memory."""
    item: Any = clean_json(body.item)
    with visitor.bank() as bank:
        return json_response(block_view(bank.core.append(section, item, role=body.role)))


@tiers.get("/working", responses=_WORKING)
def working(visitor: Visitor) -> Response:
    """Return the working memory of the acting agent; nobody else's can be read."""
    with visitor.bank() as bank:
        return json_response({"working": to_plain(bank.working.get())})


@tiers.patch("/working", responses=_WORKING)
def update_working(body: WorkingBody, visitor: Visitor) -> Response:
    """Change the plan, replace the constraints, set values of the context."""
    context: Any = clean_json(body.context)
    with visitor.bank() as bank:
        kept = bank.working.update(plan=body.plan, constraints=body.constraints, context=context)
    return json_response({"working": to_plain(kept)})


@tiers.post("/working/notes", responses=_WORKING)
def note_working(body: NoteBody, visitor: Visitor) -> Response:
    """Add a note to the scratchpad."""
    with visitor.bank() as bank:
        return json_response({"working": to_plain(bank.working.note(body.text))})


@tiers.delete("/working", responses=answers.model_response(answers.ExtensibleOut))
def clear_working(visitor: Visitor) -> Response:
    """Clear the working memory."""
    with visitor.bank() as bank:
        return json_response({"cleared": bank.working.clear()})


@tiers.get("/proposals", responses=answers.page_response("proposals", answers.ProposalOut))
def list_proposals(
    visitor: Visitor, asked: Asked, status: Annotated[ProposalStanding | None, Query()] = None
) -> Response:
    """List the proposals, oldest first."""
    with visitor.bank() as bank:
        found = bank.proposals.list(ProposalStatus(status) if status else None)
    page = asked.page_by_key(found, lambda proposal: proposal.number)
    return json_response(
        {"proposals": [proposal_view(proposal) for proposal in page.items], "next": page.next}
    )


@tiers.post("/proposals", status_code=201, responses=answers.model_response(answers.ProposalOut, 201))
def propose(body: ProposalBody, visitor: Visitor) -> Response:
    """Propose a new text for the playbook or the rules."""
    with visitor.bank() as bank:
        made = bank.proposals.propose(
            body.section, body.after, reason=body.reason, role=body.role, evidence=body.evidence
        )
        return json_response({**proposal_view(made), "diff": bank.proposals.diff(made.id)}, 201)


@tiers.get("/proposals/{id}", responses=answers.model_response(answers.ProposalOut))
def show_proposal(id: Id, visitor: Visitor) -> Response:  # noqa: A002 what it is called everywhere
    """Return a proposal: its change, its reason, and the evidence it cites."""
    with visitor.bank() as bank:
        found = bank.proposals.get(id)
        cited, diff = list(bank.proposals.evidence(id)), bank.proposals.diff(id)
    return json_response({**proposal_view(found), "cited": cited, "diff": diff})


@tiers.post("/proposals/{id}/{decision}", responses=answers.model_response(answers.ProposalOut))
def decide(
    id: Id,  # noqa: A002
    decision: Literal["accept", "reject", "roll-back"],
    body: CommentBody,
    visitor: Visitor,
) -> Response:
    """Accept, reject or roll back a proposal; only configured approvers may."""
    with visitor.bank() as bank:
        verbs = {
            "accept": bank.proposals.accept,
            "reject": bank.proposals.reject,
            "roll-back": bank.proposals.roll_back,
        }
        return json_response(proposal_view(verbs[decision](id, comment=body.comment)))
