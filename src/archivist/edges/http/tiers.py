"""The routes of the tiers: stream, archive, core, working memory, proposals."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.answers import Asked, json_response
from archivist.edges.http.banks import Visitor
from archivist.edges.http.bodies import BodyRoute
from archivist.edges.http.shapes import (
    LARGEST,
    CommentBody,
    CoreBody,
    Cycle,
    CycleBody,
    EntryBody,
    Id,
    InsightBody,
    ItemBody,
    NoteBody,
    Only,
    ProposalBody,
    ProposalStanding,
    Since,
    Sought,
    TextBody,
    TextKind,
    Until,
    Weight,
    WorkingBody,
    clean_json,
)
from archivist.edges.views import (
    block_view,
    core_view,
    entry_view,
    hit_view,
    insights_view,
    piece_view,
    proposal_view,
    time_text,
)
from archivist.errors import NotFoundError
from archivist.records import ProposalStatus
from archivist.records.plain import to_plain
from archivist.stream.service import BY_CYCLE, LATEST

stream = APIRouter(prefix="/api", tags=["stream and archive"], route_class=BodyRoute)
router = APIRouter(prefix="/api", tags=["core, working memory and proposals"], route_class=BodyRoute)
_Section = Literal["status", "threads", "roleState", "lessons"]
_List = Literal["threads", "blockers", "inProgress", "recentlyShipped", "lessons"]
_WORKING = answers.item_response("working", answers.WorkingOut | None)
# A search ranks no more hits than this, however far a client pages.
_MOST_HITS = 200


@stream.post("/stream", status_code=201, responses=answers.item_response("entry", answers.EntryOut, 201))
def log(body: EntryBody, visitor: Visitor) -> Response:
    """Add an entry; the answer says why a reflection is due, if one is."""
    fields = body.model_dump()
    with visitor.bank() as bank:
        entry = bank.stream.log(fields.pop("action"), **fields)
        return json_response({"entry": entry_view(entry), "reflection_due": bank.stream.due_reason()}, 201)


@stream.get("/stream", responses=answers.page_response("entries", answers.EntryOut))
def entries(
    visitor: Visitor,
    asked: Asked,
    start_cycle: Cycle = None,
    end_cycle: Cycle = None,
    role: Only = "",
    min_importance: Annotated[Weight, Query()] = 1,
) -> Response:
    """List entries: the latest first, or those of some cycles in order."""
    with visitor.bank() as bank:
        if start_cycle is None and end_cycle is None and min_importance == 1:
            page = asked.page_by_order(
                lambda after, most: bank.stream.recent(most, role=role, after=after), LATEST
            )
        else:
            last = LARGEST if end_cycle is None else end_cycle
            page = asked.page_by_order(
                lambda after, most: bank.stream.by_cycle(
                    start_cycle or 0, last, role=role, min_importance=min_importance, after=after, limit=most
                ),
                BY_CYCLE,
            )
    return page.response("entries", entry_view)


@stream.get("/stream/search", responses=answers.page_response("hits", answers.EntryOut))
def search_stream(
    visitor: Visitor,
    asked: Asked,
    query: Sought,
    role: Only = "",
    issue: Cycle = None,
    min_importance: Annotated[Weight | None, Query()] = None,
    start_cycle: Cycle = None,
    end_cycle: Cycle = None,
    archived: Annotated[bool, Query(description="Also entries that have left the hot cycles.")] = False,
) -> Response:
    """Search entries by recency, importance and relevance, the best first."""
    cycles = (start_cycle, end_cycle) if start_cycle is not None or end_cycle is not None else None
    with visitor.bank() as bank:
        page = asked.page_by_rank(
            lambda most: bank.stream.search(
                query,
                role=role,
                issue=issue,
                min_importance=min_importance,
                limit=min(most or _MOST_HITS, _MOST_HITS),
                cycles=cycles,
                tier="" if archived else "stream",
            ),
            lambda found: found.entry.id,
        )
    return page.response(
        "hits", lambda found: {**entry_view(found.entry), "score": round(found.hit.score, 6)}
    )


@stream.post("/stream/cycle", status_code=201, responses=answers.model_response(answers.ExtensibleOut, 201))
def begin_cycle(body: CycleBody, visitor: Visitor) -> Response:
    """Begin the next cycle and return its number."""
    with visitor.bank() as bank:
        return json_response({"cycle": bank.stream.begin_cycle(body.role), "role": body.role}, 201)


@stream.post("/stream/reflect", responses=answers.model_response(answers.ExtensibleOut))
def reflect_stream(body: InsightBody, visitor: Visitor) -> Response:
    """Write recurring subjects since the last reflection to the stream and the archive."""
    with visitor.bank() as bank:
        return json_response(insights_view(bank.stream.reflect("" if body.if_due else "by hand")))


@stream.post("/archive", status_code=201, responses=answers.page_response("pieces", answers.PieceOut, 201))
def insert(body: TextBody, visitor: Visitor) -> Response:
    """Store a text in pieces; the same text again changes nothing."""
    fields = body.model_dump()
    with visitor.bank() as bank:
        pieces = bank.documents.insert(fields.pop("content"), **fields)
    return json_response(
        {"source": pieces[0].source, "pieces": [piece_view(piece) for piece in pieces], "next": None}, 201
    )


@stream.get("/archive/search", responses=answers.page_response("hits", answers.HitOut))
def search_archive(
    visitor: Visitor,
    asked: Asked,
    query: Sought,
    type: Annotated[TextKind | None, Query()] = None,  # noqa: A002 the documented name
    since: Since = None,
    until: Until = None,
) -> Response:
    """Search the archive, texts and old cycles, the best first."""
    with visitor.bank() as bank:
        page = asked.page_by_rank(
            lambda most: bank.documents.search(
                query, type=type, dates=(since, until), limit=min(most or _MOST_HITS, _MOST_HITS)
            ),
            lambda hit: f"{hit.kind}:{hit.id}",
        )
    return page.response("hits", hit_view)


@stream.get("/archive/sources", responses=answers.page_response("sources", answers.SourceTextOut))
def sources(
    visitor: Visitor,
    asked: Asked,
    type: Annotated[TextKind | None, Query()] = None,  # noqa: A002 the documented name
) -> Response:
    """List the texts of the archive by their names."""
    with visitor.bank() as bank:
        texts = bank.documents.sources(type=type)
    page = asked.page_by_key(texts, lambda text: text.source)
    rows = [{**text._asdict(), "type": text.type.value, "date": time_text(text.date)} for text in page.items]
    return json_response({"sources": rows, "next": page.next})


@stream.get("/archive/text", responses=answers.page_response("pieces", answers.PieceOut))
def read(
    visitor: Visitor,
    asked: Asked,
    source: Annotated[str, Query(min_length=1, max_length=1_000, description="Its name, or name#3.")],
) -> Response:
    """Return a text's pieces in order, or one of them."""
    with visitor.bank() as bank:
        pieces = bank.documents.read(source)
    if not pieces:
        raise NotFoundError("document", source, hint="GET /api/archive/sources lists them")
    page = asked.page_by_key(pieces, lambda piece: piece.position)
    rows = [piece_view(piece) for piece in page.items]
    return json_response({"source": pieces[0].source, "pieces": rows, "next": page.next})


@router.get("/core", responses=answers.model_response(answers.CoreOut))
def core(visitor: Visitor, role: Only = "") -> Response:
    """Return the core blocks of a role, by default the actor's own, and their size."""
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
    """Return the working memory of the acting agent; nobody else's can be read."""
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
    """Clear the working memory."""
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
    return page.response("proposals", proposal_view)


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
    """Return a proposal: its change, its reason, and the evidence it cites."""
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
    """Accept, reject or roll back a proposal; only configured approvers may."""
    with visitor.bank() as bank:
        verbs = {
            "accept": bank.proposals.accept,
            "reject": bank.proposals.reject,
            "roll-back": bank.proposals.roll_back,
        }
        return json_response(proposal_view(verbs[decision](id, comment=body.comment)))
