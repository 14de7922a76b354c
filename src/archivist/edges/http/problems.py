"""Say over HTTP what went wrong: `application/problem+json` with a stable code and a hint."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from archivist.edges.wire.refusals import Refusal, problem_response
from archivist.errors import (
    AccessError,
    ArchivistError,
    BankError,
    BankLockedError,
    ConfigError,
    DecidedError,
    EmbedderError,
    FilesLockedError,
    InputError,
    NotFoundError,
    NothingToUndoError,
)

_SHOWN = 5
_log = logging.getLogger("archivist.http")

# What an error's class means to a client.
STATUSES: dict[type[ArchivistError], int] = {
    NotFoundError: 404,
    NothingToUndoError: 409,
    DecidedError: 409,
    ConfigError: 503,
    InputError: 400,
    AccessError: 403,
    EmbedderError: 503,
    BankError: 503,
    ArchivistError: 500,
}
# Where the records of a kind are listed.
_LISTS = {
    "lesson": "/api/lessons?all=true",
    "run": "/api/runs",
    "fact": "/api/memory/knowledge",
    "artifact": "/api/memory/artifacts",
    "entry": "/api/stream",
    "document": "/api/archive/sources",
    "proposal": "/api/proposals",
    "plan": "/api/workspace/plans",
    "tool": "/api/tools",
}
# A hint for who sits at the machine: a command, or a flag of one.
_COMMAND = re.compile(r"\barchivist [a-z]|(?<!\S)--[a-z]")
# What every operation may answer beside what it is asked for.
DOCUMENTED = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503, 507)


def status_of(error: ArchivistError) -> int:
    """Return the status of an error's class, or of the nearest class above it."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def install_handlers(app: FastAPI) -> None:
    """Let an app answer every error as a problem."""
    app.add_exception_handler(ArchivistError, _handle_archivist_error)
    app.add_exception_handler(Refusal, _handle_refusal)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(Exception, _handle_unexpected_error)


async def _handle_archivist_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ArchivistError)  # noqa: S101 it is registered for this class
    status = status_of(error)
    if isinstance(error, BankError | ConfigError):
        # Where the bank lies on this machine is nobody's business outside.
        _log.error("%s", error.message)
        again = {"Retry-After": "1"} if isinstance(error, BankLockedError | FilesLockedError) else {}
        return problem_response(
            status, error.code, "the bank cannot serve this now", "the server's own output says why", again
        )
    return problem_response(status, error.code, error.message, _http_hint(error))


def _http_hint(error: ArchivistError) -> str:
    """Return what to do about an error as a client can do it, who has no command line here."""
    if isinstance(error, NotFoundError) and error.kind in _LISTS:
        return f"GET {_LISTS[error.kind]} lists what there is"
    if not _COMMAND.search(error.hint):
        return error.hint
    if isinstance(error, AccessError):
        return "GET / says as whom you are here; a token of another actor may"
    return "/openapi.json tells what can be asked"


async def _handle_refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101 it is registered for this class
    return error.response()


async def _handle_validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 it is registered for this class
    errors: Sequence[Any] = error.errors()
    if any(each.get("type") == "json_invalid" for each in errors):
        return _bad_json_response()
    # What was sent is not repeated: it may be a secret, or no text at all.
    told = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in errors[:_SHOWN]]
    rest = f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return problem_response(
        422, "bad_request", "; ".join(told) + rest, "/openapi.json has the shape of every request"
    )


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 it is registered for this class
    if error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request))
        told = "the path does not know that method"
        return problem_response(405, "no_such_method", told, f"it knows {allowed}", {"Allow": allowed})
    if error.status_code == 400:
        return _bad_json_response()
    codes = {404: "no_such_path"}
    hint = "/openapi.json lists the paths" if error.status_code in codes else ""
    code = codes.get(error.status_code, "refused")
    return problem_response(error.status_code, code, str(error.detail), hint, error.headers)


def _bad_json_response() -> Response:
    """Return the answer to a body that cannot be read: not JSON, not UTF-8, too deep, too large a number."""
    return problem_response(
        400, "bad_json", "the body is no JSON that can be read", "an object in UTF-8, application/json"
    )


def _allowed_methods(request: Request) -> list[str]:
    """Return every method of a path: each has a route of its own, which knows only itself."""
    routes: Sequence[APIRoute] = request.app.state.routes
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in found for method in route.methods or ()})


async def _handle_unexpected_error(_request: Request, error: Exception) -> Response:
    _log.error("%s: an error that nobody foresaw", type(error).__name__, exc_info=error)
    return problem_response(500, "internal", "something went wrong here", "the server's own output says what")
