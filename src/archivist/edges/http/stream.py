"""The routes of the stream and the archive."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from archivist.edges.http import answers
from archivist.edges.http.bodies import BodyRoute
from archivist.edges.http.pages import Asked
from archivist.edges.http.shapes import (
    CycleBody,
    EntryBody,
    InsightBody,
    Only,
    Since,
    Sought,
    TextBody,
    TextKind,
    Until,
    Weight,
)
from archivist.edges.http.visits import Visitor, json_response
from archivist.edges.views import entry_view, hit_view, insights_view, piece_view, time_text
from archivist.errors import NotFoundError
from archivist.stream.service import BY_CYCLE, LATEST

router = APIRouter(prefix="/api", tags=["stream and archive"], route_class=BodyRoute)
# The largest cycle that a query may name; an open range ends here.
_LAST_CYCLE = (1 << 31) - 1
# A search ranks no more hits than this, however far a client pages.
_MOST_HITS = 200
_Cycle = Annotated[int | None, Query(ge=0, le=_LAST_CYCLE)]


@router.post("/stream", status_code=201, responses=answers.item_response("entry", answers.EntryOut, 201))
def log(body: EntryBody, visitor: Visitor) -> Response:
    """Add an entry; the answer says why a reflection is due, if one is."""
    fields = body.model_dump()
    with visitor.bank() as bank:
        entry = bank.stream.log(fields.pop("action"), **fields)
        return json_response({"entry": entry_view(entry), "reflection_due": bank.stream.due_reason()}, 201)


@router.get("/stream", responses=answers.page_response("entries", answers.EntryOut))
def entries(
    visitor: Visitor,
    asked: Asked,
    start_cycle: _Cycle = None,
    end_cycle: _Cycle = None,
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
            last = _LAST_CYCLE if end_cycle is None else end_cycle
            page = asked.page_by_order(
                lambda after, most: bank.stream.by_cycle(
                    start_cycle or 0, last, role=role, min_importance=min_importance, after=after, limit=most
                ),
                BY_CYCLE,
            )
    return json_response({"entries": [entry_view(entry) for entry in page.items], "next": page.next})


@router.get("/stream/search", responses=answers.page_response("hits", answers.EntryOut))
def search_stream(
    visitor: Visitor,
    asked: Asked,
    query: Sought,
    role: Only = "",
    issue: _Cycle = None,
    min_importance: Annotated[Weight | None, Query()] = None,
    start_cycle: _Cycle = None,
    end_cycle: _Cycle = None,
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
    rows = [{**entry_view(found.entry), "score": round(found.hit.score, 6)} for found in page.items]
    return json_response({"hits": rows, "next": page.next})


@router.post("/stream/cycle", status_code=201, responses=answers.model_response(answers.ExtensibleOut, 201))
def begin_cycle(body: CycleBody, visitor: Visitor) -> Response:
    """Begin the next cycle and return its number."""
    with visitor.bank() as bank:
        return json_response({"cycle": bank.stream.begin_cycle(body.role), "role": body.role}, 201)


@router.post("/stream/reflect", responses=answers.model_response(answers.ExtensibleOut))
def reflect_stream(body: InsightBody, visitor: Visitor) -> Response:
    """Write recurring subjects since the last reflection to the stream and the archive."""
    with visitor.bank() as bank:
        return json_response(insights_view(bank.stream.reflect("" if body.if_due else "by hand")))


@router.post("/archive", status_code=201, responses=answers.page_response("pieces", answers.PieceOut, 201))
def insert(body: TextBody, visitor: Visitor) -> Response:
    """Store a text in pieces; the same text again changes nothing."""
    fields = body.model_dump()
    with visitor.bank() as bank:
        pieces = bank.documents.insert(fields.pop("content"), **fields)
    return json_response(
        {"source": pieces[0].source, "pieces": [piece_view(piece) for piece in pieces], "next": None}, 201
    )


@router.get("/archive/search", responses=answers.page_response("hits", answers.HitOut))
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
    return json_response({"hits": [hit_view(hit) for hit in page.items], "next": page.next})


@router.get("/archive/sources", responses=answers.page_response("sources", answers.SourceTextOut))
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


@router.get("/archive/text", responses=answers.page_response("pieces", answers.PieceOut))
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
