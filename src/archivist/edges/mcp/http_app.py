"""The MCP server as an HTTP application: a token of the bank on every request, Host and Origin checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthenticationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse

from archivist.errors import ArchivistError
from archivist.records.tokens import TokenState

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection

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
            return await self._memory.in_turn(lambda: self._holder(token))
        except ArchivistError as error:
            raise AuthenticationError(f"{error.message}; {error.hint}") from error

    def _holder(self, secret: str) -> AccessToken | None:
        bank = self._memory.bank.opened()
        held = bank.tokens.holder(secret)
        if held is None or held.state(bank.now()) is not TokenState.VALID:
            return None
        # The key itself goes no further than here.
        return AccessToken(token=held.id, client_id=held.id, scopes=[], subject=str(held.actor))


def http_app(memory: MemoryServer) -> Starlette:
    """Return the application; its lifespan runs the sessions."""
    tokens = BankTokens(memory)
    app = memory.offered().streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        max_request_body_size=_MAX_BODY_BYTES,
        # A loopback name makes the SDK check Host and Origin against this machine's own.
        host="127.0.0.1",
        token_verifier=tokens,
    )
    # The last to be added is the first to see a request.
    app.add_middleware(AuthContextMiddleware)
    app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(tokens), on_error=_unavailable)
    return app


def _unavailable(_connection: HTTPConnection, error: Exception) -> JSONResponse:
    """Answer that the bank, in which the tokens lie, cannot be asked now."""
    return JSONResponse({"error": "unavailable", "error_description": str(error)}, status_code=503)
