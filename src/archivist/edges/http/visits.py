"""Who is at the door: the token that was shown, and the bank that it opens."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import msgspec
from fastapi import Depends, Request
from starlette.responses import Response

from archivist.bank import Bank
from archivist.edges.http.banks import BankPool, PoolLane
from archivist.errors import InputError
from archivist.records import Actor

KEY = "archivist.visit"
REPEATABLE = "archivist.repeatable"
_MAX_DEPTH = 64
_INT_BITS = 63


class IdempotentRequest(NamedTuple):
    """A request that may come again: its name, and what tells it from others of that name."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request that was let in: the id of its token, and in whose name it acts.

    `held` is the bank of a request that is done within one transaction, or one lane, from its beginning.
    """

    token: str
    name: str
    actor: Actor
    banks: BankPool
    lane: PoolLane = PoolLane.WRITE
    repeatable: IdempotentRequest | None = None
    held: Bank | None = None

    @classmethod
    def from_request(cls, request: Request) -> RequestContext:
        """Return the visit that the guard found a request to be."""
        visit: RequestContext = request.scope[KEY]
        return visit

    def bank(self, lane: PoolLane | None = None) -> AbstractContextManager[Bank]:
        """Open the bank in the visitor's name, in the lane of what the request does."""
        return nullcontext(self.held) if self.held else self.banks.borrow(self.actor, lane or self.lane)


async def _request_context(request: Request) -> RequestContext:
    visit = RequestContext.from_request(request)
    if request.method in ("GET", "HEAD"):
        return replace(visit, lane=PoolLane.READ)
    return replace(visit, repeatable=request.scope.get(REPEATABLE))


Visitor = Annotated[RequestContext, Depends(_request_context)]


def json_response(value: object, status: int = 200) -> Response:
    """Return plain values as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def clean_json(value: object, depth: int = 0) -> object:
    """Return a JSON value of any shape, or refuse one that could not be kept and given back."""
    if depth > _MAX_DEPTH:
        raise InputError("the value is nested too deeply", hint=f"at most {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {_replace_surrogates(key): clean_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [clean_json(each, depth + 1) for each in value]
    if isinstance(value, str):
        return _replace_surrogates(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise InputError("a number that is none", hint="JSON has no NaN and no Infinity")
    if isinstance(value, int) and value.bit_length() > _INT_BITS:
        raise InputError("a number beyond 64 bits", hint="send it as a text")
    return value


def _replace_surrogates(text: str) -> str:
    # JSON can spell half of a surrogate pair; UTF-8 cannot hold it.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
