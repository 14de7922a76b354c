"""Check every request before the app sees it: its headers, its token or cookie, its size; and log it."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Lock
from urllib.parse import urlsplit

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.capture.clean import clean_name
from archivist.config import ServerRules
from archivist.edges.http.banks import KEY, BankPool, RequestContext
from archivist.edges.server.checks import (
    MEGABYTE,
    BodyReceiver,
    GuardedApp,
    Refusal,
    TokenCheck,
    bearer_secret,
    check_token,
    unauthorized_refusal,
)
from archivist.records import Actor, ActorKind

# The paths that need no token: the link for a browser, and the probe of a container or a proxy.
OPEN_PATH, HEALTH_PATH = "/open", "/health"
# A working day. Links are shown in a terminal, whose history others may read, so they end much sooner.
SESSION_LIFETIME = timedelta(hours=12)
_LINK_LIFETIME = timedelta(minutes=15)
_ANONYMOUS = Actor(ActorKind.AGENT)
_MAX_LOGGED_PATH = 200
_log = logging.getLogger("archivist.http.access")


class AuthMiddleware(GuardedApp):
    """Let requests with a valid token or browser session in, refuse all others, and log them."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        banks: BankPool,
        token_bank: Bank,
        browsers: BrowserSessions,
        rules: ServerRules,
        is_beyond_loopback: bool,
        uploads: Sequence[Route],
        incoming: BodyReceiver,
    ) -> None:
        super().__init__(app, rules, incoming, is_beyond_loopback=is_beyond_loopback)
        self._banks = banks
        self._token_bank = token_bank
        self._browsers = browsers
        self._uploads = uploads

    async def find_token(self, secret: str) -> TokenCheck | None:
        """Look a token up on the event loop: the indexed read is shorter than the way to a thread."""
        return check_token(self._token_bank, secret)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve and log a request: method, path without secrets, status, time, token; no query or body."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        started, status, is_over = time.perf_counter(), 0, False
        is_head = scope["method"] == "HEAD"

        async def send_noted(message: Message) -> None:
            nonlocal status, is_over
            is_body = message["type"] == "http.response.body"
            if not is_body:
                status = message["status"]
            elif is_head:
                # One empty body, also for an event stream, which would never end.
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            if not is_over:
                is_over = is_head and is_body
                await send(message)

        try:
            await super().__call__(scope, receive, send_noted)
        finally:
            if _log.isEnabledFor(logging.INFO):
                elapsed_ms = (time.perf_counter() - started) * 1000
                path = clean_name(scope["path"][:_MAX_LOGGED_PATH]).encode("unicode_escape").decode()
                name = scope[KEY].name if KEY in scope else "-"
                _log.info("%s %s %s %.1f ms %r", scope["method"][:10], path, status or "-", elapsed_ms, name)

    async def serve_request(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Pass an authenticated request on, with a limit to its body."""
        scope[KEY] = await self._authenticate(scope, headers)
        is_upload = any(route.matches(scope)[0] is Match.FULL for route in self._uploads)
        max_bytes = (self.rules.max_upload_mb if is_upload else self.rules.max_body_mb) * MEGABYTE
        limited = self.bodies.limit_receive(receive, headers, max_bytes)
        # HEAD is answered as GET without its body, but must not use a one-time link up.
        is_head = scope["method"] == "HEAD" and scope["path"] != OPEN_PATH
        await self.app({**scope, "method": "GET"} if is_head else scope, limited, send)

    async def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> RequestContext:
        if not self._token_bank.is_there:
            # Writes to the deleted file that is still open would be lost.
            raise Refusal(503, "no_bank", "the bank was removed or replaced", hint="start the server again")
        if scope["path"] in (OPEN_PATH, HEALTH_PATH) and scope["method"] in ("GET", "HEAD"):
            return RequestContext("", scope["path"][1:], _ANONYMOUS, self._banks)
        # Read by hand: other servers of the host may have set malformed cookies beside ours.
        own, pairs = cookie_name(headers.get("host", "")), headers.get("cookie", "").split(";")
        cookies = (pair.strip().partition("=") for pair in pairs)
        cookie = next((value.strip('"') for name, _, value in cookies if name == own), None)
        secret = bearer_secret(headers)
        if secret is None and cookie is not None:
            session = self._browsers.find_session(cookie)
            if session is None:
                raise unauthorized_refusal("bad_token", "the browser session has ended")
            return RequestContext(session, session, self._browsers.actor, self._banks)
        token = await self.require_token(secret)
        return RequestContext(token.id, token.name, token.actor, self._banks)


def cookie_name(host: str) -> str:
    """Return the cookie's name for a Host header: cookies do not tell ports apart, so the name does."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"archivist-{port}" if port else "archivist"


@dataclass
class BrowserSessions:
    """The browser sessions, and the links that start one. Kept in memory: they end with the server."""

    actor: Actor
    now: Callable[[], datetime]
    _links: dict[str, datetime] = field(default_factory=dict)
    # The id of each session, and when it ends.
    _sessions: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def create_link(self) -> str:
        """Return the key of a new link, which opens once."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._links[_digest_of(key)] = self.now() + _LINK_LIFETIME
        return key

    def redeem_link(self, key: str) -> str | None:
        """Return the session key for a link's key; None when it was used, has expired or is unknown."""
        with self._lock:
            expires = self._links.pop(_digest_of(key), None)
            if expires is None or expires < self.now():
                return None
            session_key, session_id = secrets.token_urlsafe(32), f"browser-{secrets.token_hex(4)}"
            self._sessions[_digest_of(session_key)] = (session_id, self.now() + SESSION_LIFETIME)
            return session_key

    def find_session(self, key: str) -> str | None:
        """Return the id of a key's session, or None when it is unknown or has expired."""
        with self._lock:
            session_id, expires = self._sessions.get(_digest_of(key), ("", self.now()))
        return session_id if expires > self.now() else None

    def is_valid(self, session_id: str) -> bool:
        """Say whether the session of this id is still valid."""
        with self._lock:
            return any(name == session_id and end > self.now() for name, end in self._sessions.values())


def _digest_of(key: str) -> str:
    """Return a key's digest, by which it is looked up: how long that takes tells nothing of the key."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
