"""Cut lists into pages: an opaque cursor says where the next one begins."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from hashlib import blake2s
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Depends, Query, Request

from archivist.edges.http.problems import Refusal

T = TypeVar("T")
DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_MAX_CURSOR = 1_000
_MAX_PLACE = 1 << 40


class Page(NamedTuple, Generic[T]):
    """Some of a list, and the cursor of the rest; None at the end."""

    items: Sequence[T]
    next: str | None


class Paging(NamedTuple):
    """What of a list is asked for. `mark` stands for the question that a cursor belongs to."""

    limit: int
    place: int
    last: str
    mark: str

    def cut(self, fetch: Callable[[int | None], Sequence[T]], name: Callable[[T], str]) -> Page[T]:
        """Return the page; `fetch` gives the first so many of the list, or all of it.

        What came into the list before the place of the cursor moves that place on: it is found again by
        the name of the last thing that was shown.
        """
        found = fetch(self.place + self.limit + 1)
        place = self.place
        if place and not (len(found) >= place and name(found[place - 1]) == self.last):
            found = fetch(None)
            place = next((n for n, each in enumerate(found, 1) if name(each) == self.last), place)
        items = found[place : place + self.limit]
        is_more = len(found) > place + self.limit
        return Page(items, self._cursor(place + len(items), name(items[-1])) if is_more else None)

    def _cursor(self, place: int, last: str) -> str:
        text = json.dumps([place, last, self.mark], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def _asked(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Most items.")] = DEFAULT_LIMIT,
    cursor: Annotated[
        str, Query(max_length=_MAX_CURSOR, description="Where to go on: `next` of the answer before.")
    ] = "",
) -> Paging:
    about = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in ("limit", "cursor"))
    words = json.dumps([request.url.path, about])
    mark = blake2s(words.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    place, last = _read(cursor, mark) if cursor else (0, "")
    return Paging(limit, place, last, mark)


Asked = Annotated[Paging, Depends(_asked)]


def _read(cursor: str, mark: str) -> tuple[int, str]:
    hint = "give the `next` of an answer to the same question"
    try:
        whole: Any = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
        place, last, made_for = whole
    except (ValueError, TypeError, RecursionError):
        raise Refusal(400, "bad_cursor", "the cursor is none of ours", hint=hint) from None
    is_ours = type(place) is int and 0 < place < _MAX_PLACE and isinstance(last, str)
    if not is_ours or made_for != mark:
        raise Refusal(400, "bad_cursor", "the cursor belongs to another question", hint=hint)
    return place, last
