"""Answer errors as `application/problem+json`, with a stable code and a hint."""

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

# A body with hundreds of wrong fields would otherwise be answered with hundreds of lines.
_MAX_SHOWN = 5
_log = logging.getLogger("archivist.http")

# The status of an error's class.
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
# A hint that names a command or a flag is of no use to an HTTP client.
_COMMAND = re.compile(r"\barchivist [a-z]|(?<!\S)--[a-z]")
# The problems that any operation may answer with.
DOCUMENTED = (400, 401, 403, 404, 408, 409, 413, 415, 422, 500, 503, 507)


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
        # The message names paths of this machine, so it goes to the log only.
        _log.error("%s", error.message)
        headers = {"Retry-After": "1"} if isinstance(error, BankLockedError | FilesLockedError) else {}
        detail, hint = "the bank cannot serve this now", "the server's log has the reason"
        return problem_response(status, error.code, detail, hint, headers)
    hint = error.hint
    if isinstance(error, NotFoundError) and error.kind in _LISTS:
        hint = f"GET {_LISTS[error.kind]} lists what there is"
    elif _COMMAND.search(hint):
        is_denied = isinstance(error, AccessError)
        hint = "use the token of another actor" if is_denied else "see /openapi.json for the requests"
    return problem_response(status, error.code, error.message, hint)


async def _handle_refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101 it is registered for this class
    return error.response()


async def _handle_validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 it is registered for this class
    errors: Sequence[Any] = error.errors()
    if any(detail.get("type") == "json_invalid" for detail in errors):
        return _bad_json_response()
    # The values are not repeated: they may be secrets, or no text at all.
    lines = [
        f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}" for detail in errors[:_MAX_SHOWN]
    ]
    rest = f"; and {len(errors) - _MAX_SHOWN} more" if len(errors) > _MAX_SHOWN else ""
    hint = "/openapi.json has the shape of every request"
    return problem_response(422, "bad_request", "; ".join(lines) + rest, hint)


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 it is registered for this class
    if error.status_code == 405:
        # Each method of a path is a route of its own, so the routes of the path are collected.
        routes: Sequence[APIRoute] = request.app.state.routes
        matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        allowed = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
        detail = "the path does not support this method"
        return problem_response(405, "no_such_method", detail, f"it supports {allowed}", {"Allow": allowed})
    if error.status_code == 400:
        return _bad_json_response()
    is_unknown = error.status_code == 404
    code, hint = ("no_such_path", "/openapi.json lists the paths") if is_unknown else ("refused", "")
    return problem_response(error.status_code, code, str(error.detail), hint, error.headers)


def _bad_json_response() -> Response:
    """Return the answer to a body that is not JSON, not UTF-8, too deep, or has too large a number."""
    detail = "the body is not readable JSON"
    return problem_response(400, "bad_json", detail, "send an object in UTF-8, application/json")


async def _handle_unexpected_error(_request: Request, error: Exception) -> Response:
    _log.error("%s: unexpected error", type(error).__name__, exc_info=error)
    return problem_response(
        500, "internal", "an unexpected error occurred", "the server's log has the reason"
    )
