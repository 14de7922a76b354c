"""The MCP server as an HTTP application: a token of the bank on every request, Host and Origin checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.authentication import AuthenticationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse

from archivist.errors import ArchivistError
from archivist.records.tokens import TokenState

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from archivist.bank import Bank
    from archivist.edges.mcp.server import MemoryServer

PATH = "/mcp"
_MAX_BODY_BYTES = 2 * 1024 * 1024


class BankTokens:
    """Let those in who hold a token of the bank, in the name that it was handed out for."""

    def __init__(self, memory: MemoryServer) -> None:
        self._memory = memory

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token this is; None when it is nobody's here, has expired or was revoked."""
        try:
            return await self._memory.reading.do(lambda bank: _holder(bank.opened(), token))
        except ArchivistError as error:
            raise AuthenticationError(f"{error.message}; {error.hint}") from error


class Completed:
    """See every response to its end: a stream that is cut off when the server closes just stops."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and end what was begun of an answer."""
        is_open = False

        async def sent(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        await self._app(scope, receive, sent)
        if is_open and scope["type"] == "http":
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def http_app(memory: MemoryServer, *, host: str = "127.0.0.1") -> Starlette:
    """Return the application for an address of this machine; its lifespan runs the sessions."""
    tokens = BankTokens(memory)
    names = ["127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host]
    places = [f"{name}:*" for name in dict.fromkeys(names)]
    app = memory.offered().streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        max_request_body_size=_MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            allowed_hosts=places, allowed_origins=[f"http://{place}" for place in places]
        ),
        token_verifier=tokens,
    )
    # The last to be added is the first to see a request.
    app.add_middleware(AuthContextMiddleware)
    app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(tokens), on_error=_unavailable)
    app.add_middleware(Completed)
    return app


def _holder(bank: Bank, secret: str) -> AccessToken | None:
    held = bank.tokens.holder(secret)
    if held is None or held.state(bank.now()) is not TokenState.VALID:
        return None
    # The key itself goes no further than here.
    return AccessToken(token=held.id, client_id=held.id, scopes=[], subject=str(held.actor))


def _unavailable(_connection: HTTPConnection, error: Exception) -> JSONResponse:
    """Answer that the bank, in which the tokens lie, cannot be asked now."""
    return JSONResponse({"error": "unavailable", "error_description": str(error)}, status_code=503)
