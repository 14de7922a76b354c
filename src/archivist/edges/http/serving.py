"""Build the HTTP app and serve it: on this machine, or beyond it with TLS; with a link for a browser."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from archivist import __version__
from archivist.bank import Bank
from archivist.edges.http import brief, lessons, memory, problems, runs, stream, system, workspace
from archivist.edges.http.answers import ProblemOut
from archivist.edges.http.banks import BankPool
from archivist.edges.http.bodies import WRITING, remove_leftovers
from archivist.edges.http.events import EventHub
from archivist.edges.http.guard import AuthMiddleware, BrowserSessions
from archivist.edges.wire.listening import is_loopback, listen, url_of, use_one_thread_for_vectors
from archivist.edges.wire.receiving import BodyReceiver
from archivist.edges.wire.refusals import MEDIA_TYPE
from archivist.edges.wire.serving import Certificate, make_server
from archivist.errors import InputError

__all__ = ["Certificate", "ServerHandle", "create_app", "open_server"]

# Python's default is 5 ms. A shorter turn lets small requests run between the steps of a large one.
_SWITCH_INTERVAL_S = 0.001
# Routes are tried in this order, so the routers that get the most requests come first.
_ROUTERS = (
    brief.router, stream.router, memory.router, memory.tiers, lessons.router, runs.router, runs.longer,
    runs.uploads, system.router, workspace.router,
)  # fmt: skip
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same request is done once; its answer is kept for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


class ServerHandle(NamedTuple):
    """A server that listens: its URL, the link for a browser, and the call that serves until stopped."""

    url: str
    link: str
    serve: Callable[[], None]


def open_server(
    open_bank: Callable[[], Bank],
    *,
    host: str,
    port: int,
    certificate: Certificate | None = None,
    is_insecure: bool = False,
    is_quiet: bool = False,
) -> ServerHandle:
    """Listen at a host and port (0 picks a free one); beyond this machine only with TLS or `is_insecure`."""
    if not is_loopback(host) and certificate is None and not is_insecure:
        raise InputError(
            f"{host!r} is reached from other machines, and tokens would travel in the clear",
            hint="--tls-cert and --tls-key, or --insecure behind a proxy with TLS; 127.0.0.1 needs neither",
        )
    listener = listen(host, port)
    use_one_thread_for_vectors()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    app = create_app(open_bank, is_beyond_loopback=not is_loopback(host))
    _log_to_stderr(is_quiet)

    def stop_streams() -> None:
        app.state.incoming.stop()
        if hasattr(app.state, "events"):
            app.state.events.finish()

    silence_s = app.state.rules.silence_s
    server = make_server(app, silence_s=silence_s, stop=stop_streams, certificate=certificate)
    url = url_of(host, listener.getsockname()[1], "https" if certificate else "http")
    link = f"{url}/open?key={app.state.browsers.create_link()}"
    return ServerHandle(url, link, lambda: server.run(sockets=[listener]))


def _log_to_stderr(is_quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    for name, level in (
        ("archivist.http", logging.WARNING if is_quiet else logging.INFO),
        ("uvicorn.error", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False


def create_app(open_bank: Callable[[], Bank], *, is_beyond_loopback: bool = False) -> FastAPI:
    """Return the app; `open_bank` is called for each connection of its pool.

    `app.state.browsers.create_link()` returns the key of a one-time link: `/open?key=…`.
    """
    first = open_bank()
    # Tokens are checked on a connection of their own, so that the check never waits for the pool.
    token_bank = open_bank()
    rules = first.config.server
    banks = BankPool(open_bank, rules.connections)
    browsers = BrowserSessions(first.actor, first.now)
    incoming = BodyReceiver(rules.silence_s)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = banks.thread_count
        await run_sync(remove_leftovers)
        embedding_bank = open_bank()
        hub = app.state.events = EventHub(first, embedding_bank, rules)
        await hub.start()
        banks.subscribe(hub.wake)
        watching = asyncio.create_task(hub.watch())
        try:
            yield
        finally:
            hub.finish()
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            for bank in (embedding_bank, first, token_bank):
                bank.close()
            banks.close()

    app = FastAPI(
        title="Archivist",
        version=__version__,
        summary="A memory that lets coding agents learn from their own runs.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.rules, app.state.browsers, app.state.incoming = rules, browsers, incoming
    app.state.is_valid = lambda token: browsers.is_valid(token) or first.tokens.is_valid(token)
    app.state.routes = _api_routes(*_ROUTERS)
    problems.install_handlers(app)
    # Added as they are: `include_router` would build every route a second time.
    app.router.routes.extend(app.state.routes)
    app.add_middleware(
        AuthMiddleware,
        banks=banks,
        token_bank=token_bank,
        browsers=browsers,
        rules=rules,
        is_beyond_loopback=is_beyond_loopback,
        uploads=_api_routes(runs.uploads),
        incoming=incoming,
    )
    app.openapi = lambda: _openapi_document(app)  # type: ignore[method-assign]
    return app


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
    problem = {
        "description": "What went wrong.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for methods in document["paths"].values():
        for method, operation in methods.items():
            if method.upper() in WRITING:
                operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
            operation["responses"] |= {str(status): problem for status in problems.DOCUMENTED}
    app.openapi_schema = document
    return document
