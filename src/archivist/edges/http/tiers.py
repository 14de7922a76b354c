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
from archivist.edges.http.views import core_view, proposal_view
from archivist.edges.http.visits import Visitor, answer, plain_json
from archivist.errors import InputError
from archivist.records import Block, ProposalStatus
from archivist.records.plain import to_plain

router = APIRouter(prefix="/api", tags=["core, working memory and proposals"], route_class=BodyRoute)
_Section = Literal["status", "threads", "roleState", "lessons"]
_List = Literal["threads", "blockers", "inProgress", "recentlyShipped", "lessons"]
_WORKING = answers.one("working", answers.Working | None)


@router.get("/core", responses=answers.of(answers.Core))
def core(visitor: Visitor, role: Only = "") -> Response:
    """Return what a role has in its context, by default the actor's own, and what it costs."""
    with visitor.bank() as bank:
        return answer(core_view(bank.core.view(role)))


@router.patch("/core/{section}", responses=answers.of(answers.Block))
def update_core(section: _Section, body: CoreBody, visitor: Visitor) -> Response:
    """Change a block: the fields given replace, the rest stays. Playbook and rules change by proposals."""
    content: Any = plain_json(body.content)
    with visitor.bank() as bank:
        return answer(_block(bank.core.update(section, content, role=body.role)))


@router.post("/core/{section}", responses=answers.of(answers.Block))
def append_core(section: _List, body: ItemBody, visitor: Visitor) -> Response:
    """Add to a list of core memory."""
    item: Any = plain_json(body.item)
    with visitor.bank() as bank:
        return answer(_block(bank.core.append(section, item, role=body.role)))


def _block(block: Block) -> dict[str, object]:
    return {"id": block.id, **to_plain(block)}


@router.get("/working", responses=_WORKING)
def working(visitor: Visitor) -> Response:
    """Return what the acting agent has in mind; nobody else's can be read."""
    with visitor.bank() as bank:
        return answer({"working": to_plain(bank.working.get())})


@router.patch("/working", responses=_WORKING)
def update_working(body: WorkingBody, visitor: Visitor) -> Response:
    """Change the plan, replace the constraints, set values of the context."""
    context: Any = plain_json(body.context)
    with visitor.bank() as bank:
        kept = bank.working.update(plan=body.plan, constraints=body.constraints, context=context)
    return answer({"working": to_plain(kept)})


@router.post("/working/notes", responses=_WORKING)
def note_working(body: NoteBody, visitor: Visitor) -> Response:
    """Add a note to the scratchpad."""
    with visitor.bank() as bank:
        return answer({"working": to_plain(bank.working.note(body.text))})


@router.delete("/working", responses=answers.of(answers.Open))
def clear_working(visitor: Visitor) -> Response:
    """Let go of everything."""
    with visitor.bank() as bank:
        return answer({"cleared": bank.working.clear()})


@router.get("/proposals", responses=answers.page_of("proposals", answers.Proposal))
def list_proposals(
    visitor: Visitor, asked: Asked, status: Annotated[ProposalStanding | None, Query()] = None
) -> Response:
    """List the proposals, oldest first."""
    with visitor.bank() as bank:
        found = bank.proposals.list(ProposalStatus(status) if status else None)
    page = asked.among(found, lambda proposal: proposal.number)
    return answer({"proposals": [proposal_view(each) for each in page.items], "next": page.next})


@router.post("/proposals", status_code=201, responses=answers.of(answers.Proposal, 201))
def propose(body: ProposalBody, visitor: Visitor) -> Response:
    """Propose a new text for the playbook or the rules."""
    with visitor.bank() as bank:
        made = bank.proposals.propose(
            body.section, body.after, reason=body.reason, role=body.role, evidence=body.evidence
        )
        return answer({**proposal_view(made), "diff": bank.proposals.diff(made.id)}, 201)


@router.get("/proposals/{id}", responses=answers.of(answers.Proposal))
def show_proposal(id: Id, visitor: Visitor) -> Response:  # noqa: A002 what it is called everywhere
    """Return a proposal: what it changes and why, and what it cites."""
    with visitor.bank() as bank:
        found = bank.proposals.get(id)
        cited, diff = list(bank.proposals.evidence(id)), bank.proposals.diff(id)
    return answer({**proposal_view(found), "cited": cited, "diff": diff})


@router.post("/proposals/{id}/{decision}", responses=answers.of(answers.Proposal))
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
        return answer(proposal_view(verbs[decision](id, comment=body.comment)))
