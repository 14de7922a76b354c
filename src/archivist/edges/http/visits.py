"""The context of a request: its token, its actor, and the bank that it borrows."""

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
from archivist.text import replace_surrogates

KEY = "archivist.visit"
REPEATABLE = "archivist.repeatable"
# Far below Python's recursion limit of 1,000, which the encoders reach with deeper values.
_MAX_DEPTH = 64
# SQLite's integers have 64 bits with the sign.
_INT_BITS = 63


class IdempotentRequest(NamedTuple):
    """A request that may be repeated: the name of its key, and a digest of the request itself."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One authenticated request. `held` is the bank of one that runs in a transaction or lane throughout."""

    token: str
    name: str
    actor: Actor
    banks: BankPool
    lane: PoolLane = PoolLane.WRITE
    repeatable: IdempotentRequest | None = None
    held: Bank | None = None

    @classmethod
    def from_request(cls, request: Request) -> RequestContext:
        """Return the context that the middleware stored in a request."""
        context: RequestContext = request.scope[KEY]
        return context

    def bank(self, lane: PoolLane | None = None) -> AbstractContextManager[Bank]:
        """Borrow a bank that acts as the request's actor."""
        return nullcontext(self.held) if self.held else self.banks.borrow(self.actor, lane or self.lane)


async def _request_context(request: Request) -> RequestContext:
    context = RequestContext.from_request(request)
    if request.method in ("GET", "HEAD"):
        return replace(context, lane=PoolLane.READ)
    return replace(context, repeatable=request.scope.get(REPEATABLE))


Visitor = Annotated[RequestContext, Depends(_request_context)]


def json_response(value: object, status: int = 200) -> Response:
    """Return plain values as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def clean_json(value: object, depth: int = 0) -> object:
    """Return a JSON value that can be stored and returned unchanged, or refuse it."""
    if depth > _MAX_DEPTH:
        raise InputError("the value is nested too deeply", hint=f"at most {_MAX_DEPTH} levels")
    match value:
        case dict():
            return {replace_surrogates(key): clean_json(item, depth + 1) for key, item in value.items()}
        case list():
            return [clean_json(item, depth + 1) for item in value]
        case str():
            return replace_surrogates(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            raise InputError("NaN and Infinity are not JSON numbers", hint="send null or a text")
        case int() if value.bit_length() > _INT_BITS:
            raise InputError("a number has more than 64 bits", hint="send it as a text")
    return value
