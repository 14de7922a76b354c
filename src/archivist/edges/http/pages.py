"""Split lists into pages: an opaque cursor names where the next page begins."""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from hashlib import blake2s
from typing import Annotated, Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar

from fastapi import Depends, Query, Request

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
_INT_BITS = 63
_MAX_SHOWN = 1 << 40


class Page(NamedTuple, Generic[T]):
    """A part of a list, and the cursor of the rest; None at the end."""

    items: Sequence[T]
    next: str | None


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
        self, fetch: Callable[[Spot | None, int], Sequence[T]], order: Sequence[str]
    ) -> Page[T]:
        """Return the page of a list that a store orders; `fetch(after, limit)` reads from a place on."""
        items = fetch(self.place or None, self.limit + 1)
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

    def page_by_rank(self, fetch: Callable[[int | None], Sequence[T]], name: Callable[[T], str]) -> Page[T]:
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
        items = fetch(shown + self.limit + 1)
        if shown and not (len(items) >= shown and name(items[shown - 1]) == last):
            items = fetch(None)
            shown = next((number for number, item in enumerate(items, 1) if name(item) == last), shown)
        return self._make_page(
            items[shown : shown + self.limit + 1], lambda item: (shown + self.limit, name(item))
        )

    def _make_page(self, items: Sequence[T], place_of: Callable[[T], Spot]) -> Page[T]:
        """Return the page of items, one more than are shown, and the cursor after it."""
        page = items[: self.limit]
        if len(items) <= self.limit:
            return Page(page, None)
        text = json.dumps([self.mark, *place_of(page[-1])], separators=(",", ":"), ensure_ascii=False)
        cursor = base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")
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

    def reject_constant(word: str) -> NoReturn:
        raise ValueError(word)

    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        made_for, *place = json.loads(text, parse_constant=reject_constant)
    except (ValueError, TypeError, RecursionError):
        raise CursorError("the cursor is malformed") from None
    if made_for != mark or not place or not all(_is_scalar(value) for value in place):
        raise CursorError
    return tuple(place)


def _is_scalar(value: object) -> bool:
    match value:
        case bool():
            return False
        case int():
            return value.bit_length() <= _INT_BITS
        case str():
            # JSON can spell half of a surrogate pair; no stored name contains one.
            return value.isascii() or value.encode("utf-8", "replace").decode() == value
    return value is None or isinstance(value, float)
