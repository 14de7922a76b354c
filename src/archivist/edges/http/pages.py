"""Cut lists into pages: an opaque cursor says where the next one begins."""

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
# Names of several hundred letters are part of some places.
_MAX_CURSOR = 8_000
_INT_BITS = 63
_MOST_SHOWN = 1 << 40


class Page(NamedTuple, Generic[T]):
    """Some of a list, and the cursor of the rest; None at the end."""

    items: Sequence[T]
    next: str | None


class Paging(NamedTuple):
    """What of a list is asked for. `mark` stands for the question that a cursor belongs to.

    `place` is that of the last thing that was shown: its values of what the list is ordered by. What is gone
    or has come meanwhile moves nothing of the rest. Where an order is found anew each time (`ranked`), it is
    how many were shown, and the last one's name.
    """

    limit: int
    place: Spot
    mark: str

    def page_by_order(
        self, fetch: Callable[[Spot | None, int], Sequence[T]], order: Sequence[str]
    ) -> Page[T]:
        """Return the page of a list that a store orders; `fetch` gives so many behind a place."""
        return self._make_page(fetch(self.place or None, self.limit + 1), lambda each: cursor_of(each, order))

    def page_by_key(self, found: Sequence[T], key: Callable[[T], int | str]) -> Page[T]:
        """Return the page of a list that is there as a whole, ordered by a key that no two things share."""
        begins = 0
        if self.place:
            after: Any = self.place[0]
            if len(self.place) != 1 or not isinstance(after, type(key(found[0])) if found else int | str):
                raise CursorError
            begins = bisect_right(found, after, key=key)
        return self._make_page(found[begins : begins + self.limit + 1], lambda last: (key(last),))

    def page_by_rank(self, fetch: Callable[[int | None], Sequence[T]], name: Callable[[T], str]) -> Page[T]:
        """Return the page of a ranking, which is made anew for each page; `fetch` gives so many of the best.

        It goes on behind the last thing that was shown, wherever that stands now; if it is gone, behind as
        many as were shown.
        """
        shown, last = self._ranked_offset()
        found = fetch(shown + self.limit + 1)
        if shown and not (len(found) >= shown and name(found[shown - 1]) == last):
            found = fetch(None)
            shown = next((number for number, each in enumerate(found, 1) if name(each) == last), shown)
        return self._make_page(
            found[shown : shown + self.limit + 1], lambda last: (shown + self.limit, name(last))
        )

    def _ranked_offset(self) -> tuple[int, str]:
        match self.place:
            case ():
                return 0, ""
            case (int(shown), str(last)) if 0 < shown < _MOST_SHOWN:
                return shown, last
        raise CursorError

    def _make_page(self, found: Sequence[T], place: Callable[[T], Spot]) -> Page[T]:
        """Return what is shown of one more than that, and the cursor behind it."""
        items = found[: self.limit]
        return Page(items, self._make_cursor(place(items[-1])) if len(found) > self.limit else None)

    def _make_cursor(self, place: Spot) -> str:
        text = json.dumps([self.mark, *place], separators=(",", ":"), ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")


async def _paging_from_query(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Most items.")] = DEFAULT_LIMIT,
    cursor: Annotated[
        str, Query(max_length=_MAX_CURSOR, description="Where to go on: `next` of the answer before.")
    ] = "",
) -> Paging:
    about = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in ("limit", "cursor"))
    words = json.dumps([request.url.path, about])
    mark = blake2s(words.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Paging(limit, _parse_cursor(cursor, mark) if cursor else (), mark)


Asked = Annotated[Paging, Depends(_paging_from_query)]


def _parse_cursor(cursor: str, mark: str) -> Spot:
    """Return the place that a cursor tells, or refuse what is none of ours.

    Whether the place is one of the list, the list says: it alone knows what it is ordered by.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        made_for, *place = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, TypeError, RecursionError):
        raise CursorError("the cursor is none of ours") from None
    if made_for != mark or not place or not all(_is_scalar(each) for each in place):
        raise CursorError
    return tuple(place)


def _is_scalar(value: object) -> bool:
    match value:
        case bool():
            return False
        case int():
            return value.bit_length() <= _INT_BITS
        case str():
            # JSON can spell half of a surrogate pair; no name holds one.
            return value.isascii() or value.encode("utf-8", "replace").decode() == value
    return value is None or isinstance(value, float)


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(word)
