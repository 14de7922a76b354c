"""The routes of the tiers: stream, archive, core, working memory, proposals."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from archivist.archive.service import MAX_CHARACTERS
from archivist.bank import Bank
from archivist.core.proposals import MOST_REASON
from archivist.edges import views
from archivist.edges.http import answers, shapes
from archivist.edges.http.answers import Asked
from archivist.edges.http.bodies import BankRoute
from archivist.edges.views import View
from archivist.errors import NotFoundError
from archivist.layers.working_service import MOST_CHARACTERS, MOST_CONSTRAINTS
from archivist.records import DocumentType, EntryType, ProposalStatus
from archivist.stream.entries import ACTION_CHARACTERS, CONTENT_CHARACTERS
from archivist.stream.service import BY_CYCLE, LATEST

stream = APIRouter(prefix="/api", tags=["stream and archive"], route_class=BankRoute)
router = APIRouter(prefix="/api", tags=["core, working memory and proposals"], route_class=BankRoute)
_WORKING = answers.item_model("working", answers.WorkingOut | None)
_Scratch = Annotated[str, Field(max_length=MOST_CHARACTERS)]
_CORE = f"Within the tokens that `core` in the configuration gives to the section. {shapes.NESTED}"
# A search ranks no more hits than this, however far a client pages.
_MOST_HITS = 200


class EntryBody(shapes.Body):
    """What was done in a cycle."""

    action: Annotated[str, Field(min_length=1, max_length=ACTION_CHARACTERS, pattern=r"\S")]
    content: Annotated[str, Field(max_length=CONTENT_CHARACTERS)] = ""
    cycle: shapes.Count | None = None
    role: shapes.Word = ""
    importance: shapes.Weight = 5
    type: Annotated[EntryType, shapes.Enumerated] = EntryType.ACTION
    tags: shapes.Words = ()
    issues: shapes.References = ()
    prs: shapes.References = ()
    run: shapes.Word = ""


class TextBody(shapes.Body):
    """A text to archive."""

    content: Annotated[shapes.Text, Field(max_length=MAX_CHARACTERS)]
    type: Annotated[DocumentType, shapes.Enumerated]
    source: shapes.Word = ""
    roles: shapes.Words = ()
    issues: shapes.Numbers = ()
    tags: shapes.Words = ()
    importance: shapes.Weight = 5


@stream.post("/stream", status_code=201, response_model=answers.item_model("entry", answers.EntryOut))
def log(bank: Bank, entry: EntryBody) -> View:
    """Add an entry; the answer says why a reflection is due, if one is."""
    made = bank.stream.log(**entry.model_dump())
    return {"entry": views.entry_view(made), "reflection_due": bank.stream.due_reason()}


@stream.get("/stream", response_model=answers.page_model("entries", answers.EntryOut))
def entries(
    bank: Bank,
    asked: Asked,
    start_cycle: shapes.Cycle = None,
    end_cycle: shapes.Cycle = None,
    role: shapes.Only = "",
    min_importance: Annotated[shapes.Weight, Query()] = 1,
) -> View:
    """List entries: the latest first, or those of some cycles in order."""
    if start_cycle is None and end_cycle is None and min_importance == 1:
        page = asked.page_by_order(bank.stream.recent, LATEST, role=role)
    else:
        cycles = {"start": start_cycle or 0, "end": shapes.LARGEST if end_cycle is None else end_cycle}
        wanted = {**cycles, "role": role, "min_importance": min_importance}
        page = asked.page_by_order(bank.stream.by_cycle, BY_CYCLE, **wanted)
    return page.view("entries", views.entry_view)


@stream.get("/stream/search", response_model=answers.page_model("hits", answers.EntryOut))
def search_stream(
    bank: Bank,
    asked: Asked,
    query: shapes.Sought,
    role: shapes.Only = "",
    issue: shapes.Cycle = None,
    min_importance: Annotated[shapes.Weight | None, Query()] = None,
    start_cycle: shapes.Cycle = None,
    end_cycle: shapes.Cycle = None,
    hot: Annotated[bool, Query(description="Only entries of cycles that are not archived.")] = False,
) -> View:
    """Search entries by recency, importance and relevance, the best first."""
    cycles = (start_cycle, end_cycle) if start_cycle is not None or end_cycle is not None else None
    find = partial(bank.stream.search, query, role=role, issue=issue, min_importance=min_importance)
    find = partial(find, cycles=cycles, tier="stream" if hot else "")
    page = asked.page_by_rank(lambda limit: find(limit=limit), lambda found: found.entry.id, most=_MOST_HITS)
    return page.view("hits", lambda each: {**views.entry_view(each.entry), "score": round(each.hit.score, 6)})


@stream.post("/stream/cycle", status_code=201)
def begin_cycle(bank: Bank, role: shapes.Word = "") -> View:
    """Begin the next cycle and return its number."""
    return {"cycle": bank.stream.begin_cycle(role), "role": role}


@stream.post("/stream/reflect")
def reflect_stream(bank: Bank, if_due: bool = False) -> View:
    """Write recurring subjects since the last reflection to the stream and the archive."""
    return views.insights_view(bank.stream.reflect("" if if_due else "by hand"))


@stream.post("/archive", status_code=201, response_model=answers.page_model("pieces", answers.PieceOut))
def insert(bank: Bank, text: TextBody) -> View:
    """Store a text in pieces; the same text again changes nothing."""
    pieces = bank.documents.insert(**text.model_dump())
    shown = [views.piece_view(bank, piece) for piece in pieces]
    return {"source": pieces[0].source, "pieces": shown, "next": None}


@stream.get("/archive/search", response_model=answers.page_model("hits", answers.HitOut))
def search_archive(
    bank: Bank,
    asked: Asked,
    query: shapes.Sought,
    type: Annotated[DocumentType | None, Query()] = None,
    since: shapes.Since = None,
    until: shapes.Until = None,
) -> View:
    """Search the archive, texts and old cycles, the best first."""
    find = partial(bank.documents.search, query, type=type, dates=(since, until))
    page = asked.page_by_rank(
        lambda limit: find(limit=limit), lambda hit: f"{hit.kind}:{hit.id}", most=_MOST_HITS
    )
    return page.view("hits", views.hit_view)


@stream.get("/archive/sources", response_model=answers.page_model("sources", answers.SourceTextOut))
def sources(bank: Bank, asked: Asked, type: Annotated[DocumentType | None, Query()] = None) -> View:
    """List the texts of the archive by their names."""
    page = asked.page_by_key(bank.documents.sources(type=type), lambda text: text.source)
    return page.view(
        "sources",
        lambda text: {**text._asdict(), "type": text.type.value, "date": views.time_text(text.date)},
    )


@stream.get("/archive/text", response_model=answers.page_model("pieces", answers.PieceOut))
def read(
    bank: Bank,
    asked: Asked,
    source: Annotated[str, Query(min_length=1, max_length=1_000, description="Its name, or name#3.")],
) -> View:
    """Return a text's pieces in order, or one of them."""
    pieces = bank.documents.read(source)
    if not pieces:
        raise NotFoundError("document", source, hint="GET /api/archive/sources lists them")
    page = asked.page_by_key(pieces, lambda piece: piece.position)
    return {"source": pieces[0].source, **page.view("pieces", partial(views.piece_view, bank))}


@router.get("/core", response_model=answers.CoreOut)
def core(bank: Bank, role: shapes.Only = "") -> View:
    """Return the core blocks of a role, by default the actor's own, and their size."""
    return views.core_view(bank.core.view(role))


@router.patch("/core/{section}", response_model=answers.BlockOut)
def update_core(
    bank: Bank,
    section: Literal["status", "threads", "roleState", "lessons"],
    content: Annotated[str | dict[str, Any], Field(description=_CORE)],
    role: shapes.Role = "",
) -> View:
    """Change a block: the fields given replace, the rest stays. Playbook and rules change by proposals."""
    return views.block_view(bank.core.update(section, shapes.clean_json(content), role=role))


@router.post("/core/{section}", response_model=answers.BlockOut)
def append_core(
    bank: Bank,
    section: Literal["threads", "blockers", "inProgress", "recentlyShipped", "lessons"],
    item: Annotated[str | dict[str, Any], Field(description=_CORE)],
    role: shapes.Role = "",
) -> View:
    """Add to a list of core memory."""
    return views.block_view(bank.core.append(section, shapes.clean_json(item), role=role))


@router.get("/working", response_model=_WORKING)
def working(bank: Bank) -> View:
    """Return the working memory of the acting agent; nobody else's can be read."""
    return {"working": views.working_view(bank.working.get())}


@router.patch("/working", response_model=_WORKING)
def update_working(
    bank: Bank,
    plan: _Scratch | None = None,
    constraints: Annotated[list[_Scratch], Field(max_length=MOST_CONSTRAINTS)] | None = None,
    context: Annotated[dict[str, Any] | None, Field(description=shapes.NESTED)] = None,
    currentPlan: _Scratch | None = None,  # noqa: N803 the documented name
    activeConstraints: Annotated[list[_Scratch], Field(max_length=MOST_CONSTRAINTS)] | None = None,  # noqa: N803
    taskContext: Annotated[dict[str, Any] | None, Field(description=shapes.NESTED)] = None,  # noqa: N803
) -> View:
    """Change the plan, replace the constraints, set values of the context; what is left out stays."""
    kept = bank.working.update(
        plan=currentPlan if plan is None else plan,
        constraints=activeConstraints if constraints is None else constraints,
        context=shapes.clean_json(taskContext if context is None else context),
    )
    return {"working": views.working_view(kept)}


@router.post("/working/notes", response_model=_WORKING)
def note_working(bank: Bank, text: Annotated[_Scratch, Field(min_length=1, pattern=r"\S")]) -> View:
    """Add a note to the scratchpad."""
    return {"working": views.working_view(bank.working.note(text))}


@router.delete("/working")
def clear_working(bank: Bank) -> View:
    """Clear the working memory."""
    return {"cleared": bank.working.clear()}


@router.get("/proposals", response_model=answers.page_model("proposals", answers.ProposalOut))
def list_proposals(
    bank: Bank, asked: Asked, status: Annotated[ProposalStatus | None, Query()] = None
) -> View:
    """List the proposals, oldest first."""
    page = asked.page_by_key(bank.proposals.list(status), lambda proposal: proposal.number)
    return page.view("proposals", views.proposal_view)


@router.post("/proposals", status_code=201, response_model=answers.ProposalOut)
def propose(
    bank: Bank,
    section: Literal["playbook", "rules"],
    after: Annotated[shapes.Said, Field(description="Within core.playbook_tokens or core.rules_tokens.")],
    reason: Annotated[str, Field(min_length=1, max_length=MOST_REASON, pattern=r"\S")],
    role: shapes.Role = "",
    evidence: shapes.Words = (),
) -> View:
    """Propose a new text for the playbook or the rules."""
    made = bank.proposals.propose(section, after, reason=reason, role=role, evidence=evidence)
    return {**views.proposal_view(made), "diff": bank.proposals.diff(made.id)}


@router.get("/proposals/{id}", response_model=answers.ProposalOut)
def show_proposal(bank: Bank, id: shapes.Id) -> View:
    """Return a proposal: its change, its reason, and the evidence it cites."""
    cited, diff = list(bank.proposals.evidence(id)), bank.proposals.diff(id)
    return {**views.proposal_view(bank.proposals.get(id)), "cited": cited, "diff": diff}


@router.post("/proposals/{id}/{decision}", response_model=answers.ProposalOut)
def decide(
    bank: Bank, id: shapes.Id, decision: Literal["accept", "reject", "roll-back"], comment: shapes.Note = ""
) -> View:
    """Accept, reject or roll back a proposal; only configured approvers may."""
    verb = getattr(bank.proposals, decision.replace("-", "_"))
    return views.proposal_view(verb(id, comment=comment))
