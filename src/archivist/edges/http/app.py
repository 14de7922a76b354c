"""Put the HTTP door together: the guard, the routes, the events, and the document that tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from archivist import __version__
from archivist.bank import Bank
from archivist.edges.http import house, lessons, memory, problems, runs, stream, telling, tiers, workspace
from archivist.edges.http.answers import ProblemOut
from archivist.edges.http.banks import BankPool
from archivist.edges.http.bodies import WRITING, remove_leftovers
from archivist.edges.http.events import EventHub
from archivist.edges.http.guard import AuthMiddleware
from archivist.edges.http.security import BrowserSessions
from archivist.edges.wire.receiving import BodyReceiver
from archivist.edges.wire.refusals import MEDIA_TYPE

# What is asked most comes first.
_ROUTERS = (
    telling.router, stream.router, memory.router, tiers.router, lessons.router, runs.router, runs.longer,
    runs.uploads, house.router, workspace.router,
)  # fmt: skip
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same request is done once; its answer is kept for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


def create_app(open_bank: Callable[[], Bank], *, is_beyond_loopback: bool = False) -> FastAPI:
    """Return the app over the bank that `opened` opens, which is called for each connection.

    `app.state.browsers.create_link()` gives the key of a one-time link: `/open?key=…`.
    """
    first = open_bank()
    # Of its own, so that who is at the door is known however busy the house is.
    keys = open_bank()
    rules = first.config.server
    banks = BankPool(open_bank, rules.connections)
    browsers = BrowserSessions(first.actor, first.now)
    incoming = BodyReceiver(rules.silence_s)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = banks.thread_count
        await run_sync(remove_leftovers)
        embedding = open_bank()
        happenings = app.state.happenings = EventHub(first, embedding, rules)
        await happenings.start()
        banks.subscribe(happenings.wake)
        watching = asyncio.create_task(happenings.watch())
        try:
            yield
        finally:
            happenings.finish()
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            for bank in (embedding, first, keys):
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
    app.state.routes = [each for router in _ROUTERS for each in router.routes if isinstance(each, APIRoute)]
    problems.install_handlers(app)
    # They are whole already; a router that is included is asked again for each request.
    app.router.routes.extend(app.state.routes)
    app.add_middleware(
        AuthMiddleware,
        banks=banks,
        keys=keys,
        browsers=browsers,
        rules=rules,
        is_beyond_loopback=is_beyond_loopback,
        uploads=[route for route in runs.uploads.routes if isinstance(route, APIRoute)],
        incoming=incoming,
    )
    app.openapi = lambda: _openapi_document(app)  # type: ignore[method-assign]
    return app


def _openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, made once: with the token, the problems, and the keys of writes."""
    if app.openapi_schema:
        return app.openapi_schema
    told = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    parts = told.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        parts.pop(name, None)
    parts["Problem"] = ProblemOut.model_json_schema()
    told["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    told["security"] = [{"token": []}]
    for methods in told["paths"].values():
        for method, operation in methods.items():
            _document_operation(method.upper(), operation)
    app.openapi_schema = told
    return told


def _document_operation(method: str, operation: dict[str, Any]) -> None:
    answers: dict[str, Any] = operation["responses"]
    if method in WRITING:
        operation.setdefault("parameters", []).append(_KEY)
        # A body that nobody asked for is a mistake, of whatever type it is.
    for status in problems.DOCUMENTED:
        answers[str(status)] = {
            "description": "What went wrong.",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
