"""The MCP server as an HTTP app: a token on every request, and limits for sessions and streams."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anyio
import mcp_types as types
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.config import ServerRules
from archivist.edges.mcp.server import MemoryServer, error_response
from archivist.edges.server import checks
from archivist.edges.server.checks import MEGABYTE, Refusal
from archivist.errors import ArchivistError

PATH = "/mcp"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
# The SDK keeps the state of every session in memory until its client ends it, and many never do.
MAX_SESSIONS = 50
# How often the tokens of open streams are looked up: 30 µs each.
_CHECK_S = 0.5
_log = logging.getLogger(__name__)


class McpAuthMiddleware(checks.GuardedApp):
    """Let requests with a valid token in, as the token's actor, and refuse all others."""

    def __init__(self, app: ASGIApp, memory: MemoryServer, rules: ServerRules) -> None:
        super().__init__(app, rules, checks.BodyReceiver(rules.silence_s))
        self._memory = memory
        self._sessions = Sessions()
        self._streams = Streams(memory)

    def stop(self) -> None:
        """End uploads and streams, which would delay the shutdown."""
        self.bodies.stop()
        self._streams.finish()

    async def find_token(self, secret: str) -> checks.TokenCheck | None:
        """Look the token of a secret up in the bank."""
        return await self._memory.reading.run(lambda bank: checks.check_token(bank, secret))

    async def serve_request(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Pass an authenticated request with a JSON-RPC message on, within the limits of its token."""
        token = await self.require_token(checks.bearer_secret(headers))
        max_bytes = self.rules.max_body_mb * MEGABYTE
        sender = checks.limited_name(token.id, token.actor)
        limited = self.bodies.limit_receive(receive, headers, max_bytes, sender)
        body = await Request(scope, limited).body()
        try:
            if scope["method"] == "POST":
                types.jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError as error:
            # A body that is not a message gets the answer that it gets over stdio.
            answer = error_response(error)
            text = answer.model_dump_json(by_alias=True, exclude_unset=True) if answer else ""
            await Response(text, 400, media_type="application/json")(scope, receive, send)
            return
        # The secret itself is not passed on.
        access = AccessToken(token=token.id, client_id=token.id, scopes=[], subject=str(token.actor))
        scope = {**scope, "user": AuthenticatedUser(access)}
        name = headers.get(_SESSION, "")
        if not name and headers.get(_VERSION, HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS:
            # Only revisions with a handshake have sessions, and only a request without one opens one.
            self._sessions.check_room(token.id)
        session, is_open = "", False

        async def send_noted(message: Message) -> None:
            nonlocal session, is_open
            if message["type"] == "http.response.start":
                given = dict(message["headers"])
                if given.get(b"content-type", b"").startswith(b"text/event-stream"):
                    self._streams.add(stream_scope, token.id)
                if message["status"] < 400:
                    session = given.get(_SESSION.encode(), b"").decode("latin-1")
            is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        with anyio.CancelScope() as stream_scope, self._sessions.track_request(token.id, name):
            try:
                await self.app(scope, _replay_body(body, receive), send_noted)
            finally:
                self._streams.remove(stream_scope)
        if is_open:
            # A cancelled stream stops in the middle; its response must still be ended.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        if session and not name:
            surplus = self._sessions.add(token.id, session)
            if surplus is not None:
                await self._end_session(scope, surplus)
        elif name and scope["method"] == "DELETE":
            self._sessions.remove(token.id, name)

    async def _end_session(self, scope: Scope, name: str) -> None:
        """End a session by the DELETE that its client would send."""
        headers = [(b"host", b"localhost"), (_SESSION.encode(), name.encode())]

        async def receive_disconnect() -> Message:
            return {"type": "http.disconnect"}

        async def discard(_message: Message) -> None:
            return

        request = {**scope, "method": "DELETE", "headers": headers}
        await self.app(request, _replay_body(b"", receive_disconnect), discard)


class Sessions:
    """The sessions of each token, and how many requests of each are running."""

    def __init__(self, limit: int = MAX_SESSIONS) -> None:
        self._limit = limit
        # Token → session → running requests; the session unused for the longest time comes first.
        self._held = defaultdict[str, dict[str, int]](dict)

    def check_room(self, token: str) -> None:
        """Refuse another session to a token whose sessions are all in use."""
        held = self._held[token]
        if len(held) >= self._limit and all(held.values()):
            hint = "end one with DELETE, or use protocol revision 2026-07-28, which has no sessions"
            detail = f"{self._limit} sessions of this token are in use"
            raise Refusal(429, "too_many_sessions", detail, hint=hint, headers={"Retry-After": "60"})

    def add(self, token: str, name: str) -> str | None:
        """Add a session; return the one to end for it, unused for the longest time, if there are too many."""
        held = self._held[token]
        held[name] = 0
        idle = next((session for session, uses in held.items() if not uses), None)
        if len(held) <= self._limit or idle is None:
            return None
        del held[idle]
        return idle

    def remove(self, token: str, name: str) -> None:
        """Remove a session."""
        self._held[token].pop(name, None)

    @contextmanager
    def track_request(self, token: str, name: str) -> Iterator[None]:
        """Count a request of a session while it runs."""
        held = self._held[token]
        if name not in held:
            yield
            return
        held[name] = held.pop(name) + 1
        try:
            yield
        finally:
            if name in held:
                held[name] -= 1


class Streams:
    """The open event streams by token; they end with their token, or with the server."""

    def __init__(self, memory: MemoryServer) -> None:
        self._memory = memory
        self._open: dict[anyio.CancelScope, str] = {}
        self._watching: asyncio.Task[None] | None = None

    def add(self, scope: anyio.CancelScope, token: str) -> None:
        """Add a response that is an event stream."""
        self._open[scope] = token
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def remove(self, scope: anyio.CancelScope) -> None:
        """Remove a stream that has ended; other responses are ignored."""
        self._open.pop(scope, None)

    def finish(self) -> None:
        """End all streams."""
        for scope in list(self._open):
            scope.cancel()

    async def _watch(self) -> None:
        """End the streams of tokens that were revoked or have expired."""

        def find_ended(bank: Bank) -> set[str]:
            return {token for token in set(self._open.values()) if not bank.tokens.is_valid(token)}

        while self._open:
            await asyncio.sleep(_CHECK_S)
            try:
                ended = await self._memory.reading.run(find_ended)
            except ArchivistError as error:
                # The bank cannot be read now; the next look tries again.
                _log.warning("streams: %s", error.message)
                continue
            for scope, token in list(self._open.items()):
                if token in ended:
                    scope.cancel()


def make_http_app(memory: MemoryServer, rules: ServerRules) -> McpAuthMiddleware:
    """Return the app; its lifespan runs the sessions."""
    app = memory.build_server().streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        max_request_body_size=rules.max_body_mb * MEGABYTE,
        # GuardedApp checks Host and Origin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.add_middleware(AuthContextMiddleware)
    return McpAuthMiddleware(app, memory, rules)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next
