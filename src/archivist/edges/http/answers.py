"""The shapes of answers, as the OpenAPI document tells them, and the pages of lists.

A test compares the documented shapes with the answers. An opaque cursor names where the next page begins.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from hashlib import blake2s
from typing import Annotated, Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, create_model
from starlette.responses import Response

from archivist.errors import CursorError
from archivist.store.rows import cursor_of

T = TypeVar("T")
Scalar: TypeAlias = str | int | float | None
Spot: TypeAlias = tuple[Scalar, ...]
DEFAULT_LIMIT = 50
MAX_LIMIT = 200
# Some cursors hold names of several hundred letters.
_MAX_CURSOR = 8_000
# SQLite's integers have 64 bits with the sign; a cursor with a larger one would fail in the store.
_Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_CURSOR = msgspec.json.Decoder(list[str | _Integer | float | None])
_MAX_SHOWN = 1 << 40


class ExtensibleOut(BaseModel):
    """An answer that may say more than is listed."""

    model_config = ConfigDict(extra="allow")


def _shape(name: str, doc: str, texts: str = "", /, **fields: Any) -> Any:
    """Return the model of an answer that always has these texts and fields."""
    kinds = {**dict.fromkeys(texts.split(), str), **fields}
    required: dict[str, Any] = {field: (kind, ...) for field, kind in kinds.items()}
    return create_model(name, __base__=ExtensibleOut, __doc__=doc or None, **required)


def _list_of(item: Any) -> Any:
    return list[item]


_TEXT = str | None
_COUNT = int | None
_OBJECT = dict[str, Any]

ProblemOut = _shape("ProblemOut", "What went wrong.", "type title detail code hint", status=int)

# Rows of the documented tables.
_FACT = "id project category key value source created_at updated_at"
FactRow = _shape("FactRow", "A row of the knowledge table.", _FACT, confidence=float)
_NUMBERS = dict.fromkeys(("duration_ms", "tokens_in", "tokens_out"), _COUNT)
_ATTEMPT = "id task_id agent_id action approach provenance"
AttemptRow = _shape(
    "AttemptRow", "A row of the episodes table.", _ATTEMPT, outcome=_TEXT, created_at=_TEXT, **_NUMBERS
)
_ARTIFACT = "id task_id agent_id type path description checksum created_at"
ArtifactRow = _shape("ArtifactRow", "A row of the artifacts table.", _ARTIFACT, size_bytes=int)
ArtifactCheckRow = _shape(
    "ArtifactCheckRow", "An artifact, and whether its file is as it was registered.",
    f"{_ARTIFACT} state note", size_bytes=int,
)  # fmt: skip
_TASK = "id title parent owner state approach reason result run created updated"
TaskRow = _shape(
    "TaskRow", "A task, and what it waits for.", _TASK,
    needs=list[str], approaches=list[str], waits_for=list[str], attempts=int, max_attempts=int, retry=_TEXT,
    started=_TEXT, finished=_TEXT,
)  # fmt: skip
_CONFLICT = "id fact project category key time kept kept_source lost lost_source reason status"
ConflictRow = _shape(
    "ConflictRow", "A contradiction between two sources of a fact.", _CONFLICT, decided=_TEXT
)
AnalyticsOut = _shape(
    "AnalyticsOut", "Success rates by name, and of all.", "by", step=_TEXT, rows=list[_OBJECT], total=_OBJECT
)
_CLAIM = "A fact that was stated, whether it changed anything, and what it contradicts."
FactPutOut = _shape("FactPutOut", _CLAIM, knowledge=FactRow, changed=bool, conflict=_OBJECT | None)

# Lessons and runs.
_LESSON = "id uid summary rule type category status quarantined_for provenance brought_by waits_for"
LessonOut = _shape(
    "LessonOut", "A lesson with its counts.", _LESSON, tags=list[str], importance=float, frequency=int
)
RunOut = _shape("RunOut", "A run.", "run task project status provenance", started=_TEXT, finished=_TEXT)
_WORKS = "A command of the project, and in how many of the runs that tried it it passed."
WorkingCommandOut = _shape(
    "WorkingCommandOut", _WORKS, "purpose command folder errors", passed=int, tried=int, found_in=int
)
_FAILS = "A call that runs of the project often fail in: for which cause, in how many of the latest runs."
FailingCallOut = _shape("FailingCallOut", _FAILS, "call error", met=int, runs=int)
BriefOut = _shape(
    "BriefOut", "A brief.", "text why_no_lesson brief",
    lessons=_list_of(LessonOut), withheld=list[str], stale=dict[str, str], works=_list_of(WorkingCommandOut),
    fails=_list_of(FailingCallOut),
)  # fmt: skip
HitOut = _shape("HitOut", "A search result.", "id uid kind text", score=float, time=_TEXT, provenance=_TEXT)
ChangeOut = _shape(
    "ChangeOut", "A change of a record.", "time actor verb kind change", seq=int, after=_OBJECT | None
)
CaptureOut = _shape(
    "CaptureOut", "What was read from a log.", "file",
    runs=_list_of(RunOut), events=int, skipped=int, unchanged=bool,
)  # fmt: skip
LearningOut = _shape("LearningOut", "What was learnt.", created=int, updated=int, lessons=_list_of(LessonOut))

# Tiers.
_ENTRY = "id timestamp role action type content"
EntryOut = _shape("EntryOut", "An entry of the stream.", _ENTRY, cycle=int, importance=int)
PieceOut = _shape(
    "PieceOut", "A piece of an archived text.", "id source type text", position=int, provenance=_TEXT
)
SourceTextOut = _shape(
    "SourceTextOut", "A text of the archive.", "source type", pieces=int, tokens=int, date=_TEXT
)
ProposalOut = _shape(
    "ProposalOut", "A change of playbook or rules that needs approval.", "id uid section after reason status"
)
WorkingOut = _shape(
    "WorkingOut", "The working memory of an agent.", "id plan",
    constraints=list[str], context=_OBJECT, scratchpad=list[str],
)  # fmt: skip
CoreOut = _shape("CoreOut", "What a role has in its context.", "role text", tokens=int, budget=int)
BlockOut = _shape("BlockOut", "A block of core memory.", "id section", content=_OBJECT)


def page_model(name: str, item: Any) -> Any:
    """Return the model of a list: some items under a name, and the cursor of the rest."""
    return _shape(f"{name.title()}Page", "", **{name: _list_of(item), "next": _TEXT})


def item_model(name: str, item: Any) -> Any:
    """Return the model of one thing under a name."""
    return _shape(f"One{name.title()}", "", **{name: item})


def json_response(value: object, status: int = 200) -> Response:
    """Return plain values as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


class Page(NamedTuple, Generic[T]):
    """A part of a list, and the cursor of the rest; None at the end."""

    items: Sequence[T]
    next: str | None

    def view(self, name: str, view: Callable[[T], object]) -> dict[str, object]:
        """Return the page: the views of its items under a name, and the cursor of the rest."""
        return {name: [view(item) for item in self.items], "next": self.next}


class Paging(NamedTuple):
    """The page that a request asks for. `mark` identifies the query that a cursor belongs to.

    `place` holds the last shown item's values in the list's order, so that items that come or go meanwhile
    do not shift the rest. For a ranking, which is computed anew for each page, it is how many items were
    shown and the name of the last.
    """

    limit: int
    place: Spot
    mark: str

    def page_by_order(
        self, query: Callable[..., Sequence[T]], order: Sequence[str], **wanted: Any
    ) -> Page[T]:
        """Return the page of what is wanted in a store's order; `query` takes `after` and `limit` too."""
        items = query(**wanted, after=self.place or None, limit=self.limit + 1)
        return self._make_page(items, lambda item: cursor_of(item, order))

    def page_by_key(self, items: Sequence[T], key: Callable[[T], int | str]) -> Page[T]:
        """Return the page of a whole list that is sorted by a unique key."""
        start = 0
        if self.place:
            after: Any = self.place[0]
            if len(self.place) != 1 or not isinstance(after, type(key(items[0])) if items else int | str):
                raise CursorError
            start = bisect_right(items, after, key=key)
        return self._make_page(items[start : start + self.limit + 1], lambda last: (key(last),))

    def page_of(self, items: Sequence[T], name: Callable[[T], str]) -> Page[T]:
        """Return the page of a whole list that is made anew for each request."""
        return self.page_by_rank(lambda _most: items, name)

    def page_by_rank(
        self, fetch: Callable[[Any], Sequence[T]], name: Callable[[T], str], *, most: int | None = None
    ) -> Page[T]:
        """Return the page of a ranking, which is made anew for each page; `fetch` returns the best n.

        It continues after the last shown item, wherever that ranks now; if it is gone, after as many items
        as were shown.
        """
        match self.place:
            case ():
                shown, last = 0, ""
            case (int(shown), str(last)) if 0 < shown < _MAX_SHOWN:
                pass
            case _:
                raise CursorError
        items = fetch(min(shown + self.limit + 1, most or _MAX_SHOWN))
        if shown and not (len(items) >= shown and name(items[shown - 1]) == last):
            items = fetch(most)
            shown = next((number for number, item in enumerate(items, 1) if name(item) == last), shown)
        return self._make_page(
            items[shown : shown + self.limit + 1], lambda item: (shown + self.limit, name(item))
        )

    def _make_page(self, items: Sequence[T], place_of: Callable[[T], Spot]) -> Page[T]:
        """Return the page of items, one more than are shown, and the cursor after it."""
        page = items[: self.limit]
        if len(items) <= self.limit:
            return Page(page, None)
        text = msgspec.json.encode([self.mark, *place_of(page[-1])])
        cursor = base64.urlsafe_b64encode(text).decode().rstrip("=")
        return Page(page, cursor)


async def _paging_from_query(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Most items.")] = DEFAULT_LIMIT,
    cursor: Annotated[
        str, Query(max_length=_MAX_CURSOR, description="Where to go on: `next` of the answer before.")
    ] = "",
) -> Paging:
    query = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in ("limit", "cursor"))
    question = json.dumps([request.url.path, query])
    mark = blake2s(question.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Paging(limit, _parse_cursor(cursor, mark) if cursor else (), mark)


Asked = Annotated[Paging, Depends(_paging_from_query)]


def _parse_cursor(cursor: str, mark: str) -> Spot:
    """Return the place in a cursor, or refuse a cursor that is not ours.

    Whether the place exists is checked by the list, which alone knows its order.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        made_for, *place = _CURSOR.decode(text)
    except (ValueError, RecursionError):
        raise CursorError("the cursor is malformed") from None
    if made_for != mark or not place:
        raise CursorError
    return tuple(place)
