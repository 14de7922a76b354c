"""The MCP server as an HTTP application: a token on every request, and every answer to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.responses import Response

from archivist.edges.mcp.lines import error_response
from archivist.edges.mcp.sessions import Sessions, Streams
from archivist.edges.wire.gate import Authenticator, TokenCheck, bearer_secret, check_token
from archivist.edges.wire.receiving import MEGABYTE, BodyReceiver, check_length, stopping_refusal
from archivist.edges.wire.refusals import Refusal, add_default_headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from archivist.config import ServerRules
    from archivist.edges.mcp.server import MemoryServer
    from archivist.records import Token

PATH = "/mcp"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"


class McpAuthMiddleware:
    """Let in who shows a token, in the name that it was handed out for; refuse as every door does."""

    def __init__(self, app: ASGIApp, memory: MemoryServer, rules: ServerRules) -> None:
        self._app = app
        self._memory = memory
        self._most_bytes = rules.max_body_mb * MEGABYTE
        self._gate = Authenticator(rules, self._find_token)
        self._incoming = BodyReceiver(rules.silence_s)
        self._sessions = Sessions()
        self._streams = Streams(memory, rules)

    def stop(self) -> None:
        """Let go of who sends and who listens: they would outlast the server."""
        self._incoming.stop()
        self._streams.finish()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _ResponseSender(send)
        try:
            headers = self._gate.check_headers(scope)
            token = await self._gate.require_token(scope, bearer_secret(headers))
            self._gate.count_request(token.id)
            body = await self._read_body(headers, receive)
            wrong = _bad_message_response(body) if scope["method"] == "POST" else None
            if wrong is not None:
                await wrong(scope, receive, answer.send)
                return
            await self._serve_request(
                {**scope, "user": _authenticated_user(token)}, headers, _replay_body(body, receive), answer
            )
        except Refusal as refused:
            await refused.response()(scope, receive, answer.send)
        except asyncio.CancelledError:
            # The server has waited long enough for this request, and stops.
            if answer.status:
                raise
            await stopping_refusal().response()(scope, receive, answer.send)

    async def _find_token(self, secret: str) -> TokenCheck | None:
        return await self._memory.reading.run(lambda bank: check_token(bank.ensure_open(), secret))

    async def _read_body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        check_length(headers.get("content-length", ""), self._most_bytes)
        limited, pieces = self._incoming.limit_receive(receive, self._most_bytes), bytearray()
        while True:
            message = await limited()
            pieces += message.get("body", b"")
            if not message.get("more_body"):
                return bytes(pieces)

    async def _serve_request(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, answer: _ResponseSender
    ) -> None:
        token, name = scope["user"].access_token.client_id, headers.get(_SESSION, "")
        if not name and headers.get(_VERSION, HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS:
            # Only the era of handshakes has sessions, and only who has none asks for one.
            self._sessions.check_room(token)
        with anyio.CancelScope() as until, self._sessions.track_request(token, name):
            answer.on_stream = lambda: self._streams.add(until, token)
            try:
                await self._app(scope, receive, answer.send)
            finally:
                self._streams.remove(until)
        # A stream that was cut off just stops; the answer is still to be ended.
        await answer.end()
        if answer.session and not name:
            surplus = self._sessions.add(token, answer.session)
            if surplus is not None:
                await self._end_session(scope, surplus)
        elif name and scope["method"] == "DELETE":
            self._sessions.remove(token, name)

    async def _end_session(self, scope: Scope, name: str) -> None:
        """End a session as its client would, in the client's name."""
        headers = [(b"host", b"localhost"), (_SESSION.encode(), name.encode())]
        asked = {**scope, "method": "DELETE", "headers": headers}

        async def unheard(_message: Message) -> None:
            return

        await self._app(asked, _replay_body(b"", _receive_disconnect), unheard)


class _ResponseSender:
    """What is sent of an answer: with the headers of every answer, and to its end."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_open = False
        self.status = 0
        self.session = ""
        self.on_stream = _do_nothing

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            add_default_headers(message)
            self.status = message["status"]
            headers = dict(message["headers"])
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                self.on_stream()
            self.session = headers.get(_SESSION.encode(), b"").decode("latin-1") if self.status < 400 else ""
        self._is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
        await self._send(message)

    async def end(self) -> None:
        if self._is_open:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


def make_http_app(memory: MemoryServer, rules: ServerRules) -> McpAuthMiddleware:
    """Return the application; its lifespan runs the sessions."""
    app = memory.build_server().streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        max_request_body_size=rules.max_body_mb * MEGABYTE,
        # The door has looked at them before.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.add_middleware(AuthContextMiddleware)
    return McpAuthMiddleware(app, memory, rules)


def _authenticated_user(token: Token) -> AuthenticatedUser:
    # The key itself goes no further than the gate.
    return AuthenticatedUser(
        AccessToken(token=token.id, client_id=token.id, scopes=[], subject=str(token.actor))
    )


def _bad_message_response(body: bytes) -> Response | None:
    """Return the answer to a body that is no message, in the words in which such a line is answered."""
    try:
        types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError as error:
        told = error_response(error)
        said = told.model_dump_json(by_alias=True, exclude_unset=True) if told else ""
        return Response(said, 400, media_type="application/json")
    return None


def _replay_body(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next


async def _receive_disconnect() -> Message:
    return {"type": "http.disconnect"}


def _do_nothing() -> None:
    return
