"""Build the HTTP app and serve it: on this machine, or beyond it with TLS; with a link for a browser.

Errors are answered as `application/problem+json`, with a stable code and a hint.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from archivist import __version__, errors
from archivist.bank import Bank
from archivist.edges.http import brief_and_lessons, memory, runs, system, tiers
from archivist.edges.http.answers import ProblemOut
from archivist.edges.http.bodies import WRITING, remove_leftovers
from archivist.edges.http.events import EventHub
from archivist.edges.http.guard import AuthMiddleware, BrowserSessions
from archivist.edges.http.team import TeamApp
from archivist.edges.server import checks, listening
from archivist.edges.server.banks import BankPool
from archivist.edges.server.checks import Refusal
from archivist.paths import bank_name

if TYPE_CHECKING:
    import uvicorn

# Python's default is 5 ms. A shorter turn lets small requests run between the steps of a large one.
_SWITCH_INTERVAL_S = 0.001
# Routes are tried in this order, so the routers that get the most requests come first.
_ROUTERS = (
    brief_and_lessons.briefs, tiers.stream, memory.router, tiers.router, brief_and_lessons.router,
    runs.router, runs.longer,
    runs.uploads, system.plain, system.router, memory.workspace,
)  # fmt: skip
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same request is done once; its answer is kept for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}
# A body with hundreds of wrong fields would otherwise be answered with hundreds of lines.
_MAX_SHOWN = 5
_log = logging.getLogger("archivist.http")

# The status of an error's class, or of the nearest class above it.
STATUSES: dict[type[errors.ArchivistError], int] = {
    errors.NotFoundError: 404,
    errors.NothingToUndoError: 409,
    errors.StateError: 409,
    errors.ConfigError: 503,
    errors.InputError: 400,
    errors.AccessError: 403,
    errors.EmbedderError: 503,
    errors.ModelError: 503,
    errors.BankError: 503,
    errors.ArchivistError: 500,
}
# Where the records of a kind are listed.
_LISTS = {
    "lesson": "/api/lessons?all=true",
    "run": "/api/runs",
    "fact": "/api/memory/knowledge",
    "artifact": "/api/memory/artifacts",
    "task": "/api/memory/tasks",
    "entry": "/api/stream",
    "document": "/api/archive/sources",
    "proposal": "/api/proposals",
    "plan": "/api/workspace/plans",
    "tool": "/api/tools",
}
# A hint that names a command or a flag is of no use to an HTTP client.
_COMMAND = re.compile(r"\barchivist [a-z]|(?<!\S)--[a-z]")
# The answer to a body that is not JSON, not UTF-8, too deep, or has too large a number.
_BAD_JSON = Refusal(
    400, "bad_json", "the body is not readable JSON", hint="send an object in UTF-8, application/json"
)
# The problems that any operation may answer with.
DOCUMENTED = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503, 507)


def _install_handlers(app: FastAPI) -> None:
    """Let an app answer every error as a problem, or as a page where a browser asks for one."""

    def answer(request: Request, refusal: Refusal) -> Response:
        return checks.refusal_response(refusal, request.app.state.pages, request.scope)

    @app.exception_handler(errors.ArchivistError)
    async def handle_archivist_error(request: Request, error: errors.ArchivistError) -> Response:
        return answer(request, _refusal_of(error))

    @app.exception_handler(Refusal)
    async def handle_refusal(request: Request, refusal: Refusal) -> Response:
        return answer(request, refusal)

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(_request: Request, error: RequestValidationError) -> Response:
        problems: Sequence[Any] = error.errors()
        if any(detail.get("type") == "json_invalid" for detail in problems):
            return _BAD_JSON.response()
        # The values are not repeated: they may be secrets, or no text at all.
        shown = problems[:_MAX_SHOWN]
        lines = [f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}" for detail in shown]
        rest = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
        hint = "/openapi.json has the shape of every request"
        return Refusal(422, "bad_request", "; ".join(lines) + rest, hint=hint).response()

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        status, detail = error.status_code, str(error.detail)
        if status == 405:
            # Each method of a path is a route of its own, so the routes of the path are collected.
            routes = [route for route in request.app.router.routes if isinstance(route, Route)]
            matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
            allowed = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
            detail, hint = "the path does not support this method", f"it supports {allowed}"
            headers = {"Allow": allowed}
            return answer(request, Refusal(405, "no_such_method", detail, hint=hint, headers=headers))
        if status == 400:
            return _BAD_JSON.response()
        code, hint = ("no_such_path", "/openapi.json lists the paths") if status == 404 else ("refused", "")
        return answer(request, Refusal(status, code, detail, hint=hint, headers=error.headers))

    @app.exception_handler(Exception)
    async def handle_unexpected_error(request: Request, error: Exception) -> Response:
        _log.error("%s: unexpected error", type(error).__name__, exc_info=error)
        hint = "the server's log has the reason"
        return answer(request, Refusal(500, "internal", "an unexpected error occurred", hint=hint))


def _refusal_of(error: errors.ArchivistError) -> Refusal:
    """Return what a client is told of an error: neither paths of this machine nor commands."""
    status = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    if isinstance(error, errors.BankError | errors.ConfigError):
        # The message names paths of this machine, so it goes to the log only.
        _log.error("%s", error.message)
        is_locked = isinstance(error, errors.BankLockedError | errors.FilesLockedError)
        headers = {"Retry-After": "1"} if is_locked else {}
        detail, hint = "the bank cannot serve this now", "the server's log has the reason"
        return Refusal(status, error.code, detail, hint=hint, headers=headers)
    hint = error.hint
    if isinstance(error, errors.NotFoundError) and error.kind in _LISTS:
        hint = f"GET {_LISTS[error.kind]} lists what there is"
    elif _COMMAND.search(hint):
        is_denied = isinstance(error, errors.AccessError)
        hint = "use the token of another actor" if is_denied else "see /openapi.json for the requests"
    return Refusal(status, error.code, error.message, hint=hint)


class ServerHandle(NamedTuple):
    """A server that listens: its URL, the link for a browser, and the call that serves until stopped."""

    url: str
    link: str
    serve: Callable[[Callable[[], None]], None]
    """Serves until stopped; what it is given is called once the server answers."""


def open_server(
    open_bank: Callable[[], Bank],
    *,
    host: str,
    port: int,
    certificate: listening.Certificate | None = None,
    is_insecure: bool = False,
    is_quiet: bool = False,
    pages: checks.Pages | None = None,
    banks: Mapping[str, Callable[[], Bank]] | None = None,
    processes: int = 1,
) -> ServerHandle:
    """Listen at a host and port (0 picks a free one); beyond this machine only with TLS or `is_insecure`.

    `banks` are the banks by name when there are several; `open_bank` opens the first.
    """
    if not listening.is_loopback(host) and certificate is None and not is_insecure:
        why = "is reached from other machines, and tokens would travel in the clear"
        hint = "--tls-cert and --tls-key, or --insecure behind a proxy with TLS; 127.0.0.1 needs neither"
        raise errors.InputError(f"{host!r} {why}", hint=hint)
    with open_bank() as first:
        name, rules = bank_name(first.path), first.config.server
        browsers = BrowserSessions(first.actor, first.now, bank=name if banks is None else next(iter(banks)))
    listener = listening.listen(host, port)
    listening.use_one_thread_for_vectors()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    levels = {"archivist.http": logging.WARNING if is_quiet else logging.INFO, "uvicorn.error": logging.ERROR}
    for logger_name, level in levels.items():
        logger = logging.getLogger(logger_name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False

    is_beyond = not listening.is_loopback(host)
    make_app = partial(create_app, is_beyond_loopback=is_beyond, pages=pages, browsers=browsers)

    def make_one(announce: Callable[[], None] = lambda: None) -> uvicorn.Server:
        app = TeamApp(banks or {name: open_bank}, make_app, browsers, has_own_banks=rules.private_runs)
        make = partial(listening.make_server, app, silence_s=rules.silence_s, stop=app.stop)
        return make(certificate=certificate, announce=announce)

    url = listening.url_of(host, listener.getsockname()[1], "https" if certificate else "http")
    link = f"{url}/open?key={browsers.create_link()}"
    if certificate is not None:
        # What is wrong with it is reported before the address is.
        make_one()

    def serve(announce: Callable[[], None]) -> None:
        if processes == 1:
            make_one(announce).run(sockets=[listener])
            return
        announce()
        listening.serve_in_processes(processes, lambda: make_one().run(sockets=[listener]))

    return ServerHandle(url, link, serve)


def create_app(
    open_bank: Callable[[], Bank],
    *,
    is_beyond_loopback: bool = False,
    pages: checks.Pages | None = None,
    browsers: BrowserSessions | None = None,
    name: str = "",
    open_tokens: Callable[[], Bank] | None = None,
    person: str = "",
) -> FastAPI:
    """Return the app; `open_bank` is called for each connection of its pool.

    `app.state.browsers.create_link()` returns the key of a link that signs browsers in: `/open?key=…`.
    Among several banks it has a name, and its tokens may be those of another: those of a team let each
    `person` into that person's own bank.
    """
    first = open_bank()
    # Tokens are checked on a connection of their own, so that the check never waits for the pool.
    token_bank = (open_tokens or open_bank)()
    rules = first.config.server
    # One question at a time may wait for an embedding endpoint: the others have as many connections as ever.
    waits = first.config.recall.embedder.startswith("endpoint:")
    banks = BankPool(open_bank, rules.connections + waits)
    browsers = replace(browsers or BrowserSessions(first.actor, first.now), bank=name)
    incoming = checks.BodyReceiver(rules.silence_s)

    def is_let_in(token: str) -> bool:
        return browsers.is_valid(token) or token_bank.tokens.is_valid(token)

    hub = EventHub(first, open_bank(), rules, is_let_in)
    app = FastAPI(
        title="Archivist",
        version=__version__,
        summary="A memory that lets coding agents learn from their own runs.",
        lifespan=partial(_run_app, hub=hub, banks=banks, closed=(first, token_bank)),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.rules, app.state.browsers, app.state.incoming = rules, browsers, incoming
    app.state.events = hub
    app.state.pages, app.state.check_token = pages, partial(checks.check_token, token_bank)
    _install_handlers(app)
    # Added as they are: `include_router` would build every route a second time.
    app.router.routes.extend((*_api_routes(*_ROUTERS), *(pages.routes if pages else ())))
    app.add_middleware(
        AuthMiddleware, banks=banks, token_bank=token_bank, browsers=browsers, rules=rules, incoming=incoming,
        is_beyond_loopback=is_beyond_loopback, uploads=_api_routes(runs.uploads), pages=pages, person=person,
    )  # fmt: skip
    app.openapi = lambda: _openapi_document(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _run_app(
    _app: FastAPI, *, hub: EventHub, banks: BankPool, closed: Sequence[Bank]
) -> AsyncIterator[None]:
    """Watch for events while an app serves, and close its banks at the end."""
    # Besides those of other banks' apps.
    current_default_thread_limiter().total_tokens += banks.thread_count
    await run_sync(remove_leftovers)
    await hub.start()
    watching = asyncio.create_task(hub.watch())
    try:
        yield
    finally:
        hub.finish()
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        for bank in (hub.embedding_bank, *closed):
            bank.close()
        banks.close()


def _api_routes(*routers: APIRouter) -> list[APIRoute]:
    return [route for router in routers for route in router.routes if isinstance(route, APIRoute)]


def _openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, built once: with the token, the problems and the idempotency key."""
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = ProblemOut.model_json_schema()
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    content = {checks.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    problem = {"description": "What went wrong.", "content": content}
    for methods in document["paths"].values():
        for method, operation in methods.items():
            if method.upper() in WRITING:
                operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
            operation["responses"] |= {str(status): problem for status in DOCUMENTED}
    app.openapi_schema = document
    return document
