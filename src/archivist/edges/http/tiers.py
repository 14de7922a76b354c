"""The routes of core memory, working memory and proposals."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.bodies import BodyRoute
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import (
    CommentBody,
    CoreBody,
    Id,
    ItemBody,
    NoteBody,
    Only,
    ProposalBody,
    ProposalStanding,
    WorkingBody,
)
from archivist.edges.http.visits import Visitor, clean_json, json_response
from archivist.edges.views import block_view, core_view, proposal_view
from archivist.errors import InputError
from archivist.records import ProposalStatus
from archivist.records.plain import to_plain

router = APIRouter(prefix="/api", tags=["core, working memory and proposals"], route_class=BodyRoute)
_Section = Literal["status", "threads", "roleState", "lessons"]
_List = Literal["threads", "blockers", "inProgress", "recentlyShipped", "lessons"]
_WORKING = answers.item_response("working", answers.WorkingOut | None)


@router.get("/core", responses=answers.model_response(answers.CoreOut))
def core(visitor: Visitor, role: Only = "") -> Response:
    """Return what a role has in its context, by default the actor's own, and what it costs."""
    with visitor.bank() as bank:
        return json_response(core_view(bank.core.view(role)))


@router.patch("/core/{section}", responses=answers.model_response(answers.BlockOut))
def update_core(section: _Section, body: CoreBody, visitor: Visitor) -> Response:
    """Change a block: the fields given replace, the rest stays. Playbook and rules change by proposals."""
    content: Any = clean_json(body.content)
    with visitor.bank() as bank:
        return json_response(block_view(bank.core.update(section, content, role=body.role)))


@router.post("/core/{section}", responses=answers.model_response(answers.BlockOut))
def append_core(section: _List, body: ItemBody, visitor: Visitor) -> Response:
    """Add to a list of core memory."""
    item: Any = clean_json(body.item)
    with visitor.bank() as bank:
        return json_response(block_view(bank.core.append(section, item, role=body.role)))


@router.get("/working", responses=_WORKING)
def working(visitor: Visitor) -> Response:
    """Return what the acting agent has in mind; nobody else's can be read."""
    with visitor.bank() as bank:
        return json_response({"working": to_plain(bank.working.get())})


@router.patch("/working", responses=_WORKING)
def update_working(body: WorkingBody, visitor: Visitor) -> Response:
    """Change the plan, replace the constraints, set values of the context."""
    context: Any = clean_json(body.context)
    with visitor.bank() as bank:
        kept = bank.working.update(plan=body.plan, constraints=body.constraints, context=context)
    return json_response({"working": to_plain(kept)})


@router.post("/working/notes", responses=_WORKING)
def note_working(body: NoteBody, visitor: Visitor) -> Response:
    """Add a note to the scratchpad."""
    with visitor.bank() as bank:
        return json_response({"working": to_plain(bank.working.note(body.text))})


@router.delete("/working", responses=answers.model_response(answers.ExtensibleOut))
def clear_working(visitor: Visitor) -> Response:
    """Let go of everything."""
    with visitor.bank() as bank:
        return json_response({"cleared": bank.working.clear()})


@router.get("/proposals", responses=answers.page_response("proposals", answers.ProposalOut))
def list_proposals(
    visitor: Visitor, asked: Asked, status: Annotated[ProposalStanding | None, Query()] = None
) -> Response:
    """List the proposals, oldest first."""
    with visitor.bank() as bank:
        found = bank.proposals.list(ProposalStatus(status) if status else None)
    page = asked.page_by_key(found, lambda proposal: proposal.number)
    return json_response({"proposals": [proposal_view(each) for each in page.items], "next": page.next})


@router.post("/proposals", status_code=201, responses=answers.model_response(answers.ProposalOut, 201))
def propose(body: ProposalBody, visitor: Visitor) -> Response:
    """Propose a new text for the playbook or the rules."""
    with visitor.bank() as bank:
        made = bank.proposals.propose(
            body.section, body.after, reason=body.reason, role=body.role, evidence=body.evidence
        )
        return json_response({**proposal_view(made), "diff": bank.proposals.diff(made.id)}, 201)


@router.get("/proposals/{id}", responses=answers.model_response(answers.ProposalOut))
def show_proposal(id: Id, visitor: Visitor) -> Response:  # noqa: A002 what it is called everywhere
    """Return a proposal: what it changes and why, and what it cites."""
    with visitor.bank() as bank:
        found = bank.proposals.get(id)
        cited, diff = list(bank.proposals.evidence(id)), bank.proposals.diff(id)
    return json_response({**proposal_view(found), "cited": cited, "diff": diff})


@router.post("/proposals/{id}/{decision}", responses=answers.model_response(answers.ProposalOut))
def decide(
    id: Id,  # noqa: A002
    decision: Literal["accept", "reject", "roll-back"],
    body: CommentBody,
    visitor: Visitor,
) -> Response:
    """Accept, reject or roll back a proposal, as those may who approve."""
    with visitor.bank() as bank:
        verbs = {
            "accept": bank.proposals.accept,
            "reject": bank.proposals.reject,
            "roll-back": bank.proposals.roll_back,
        }
        if decision not in verbs:
            raise InputError(f"no decision {decision!r}", hint="accept, reject or roll-back")
        return json_response(proposal_view(verbs[decision](id, comment=body.comment)))
