"""Check every request before the app sees it: its headers, its token or cookie, its size; and log it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.config import ServerRules
from archivist.edges.http.banks import KEY, BankPool, RequestContext
from archivist.edges.wire.gate import (
    MEGABYTE,
    Authenticator,
    BodyReceiver,
    Refusal,
    TokenCheck,
    add_default_headers,
    bearer_secret,
    check_length,
    check_token,
    stopping_refusal,
    unauthorized_refusal,
)
from archivist.records import Actor, ActorKind

OPEN_PATH = "/open"
# A working day. Links are shown in a terminal, whose history others may read, so they end much sooner.
SESSION_LIFETIME = timedelta(hours=12)
_LINK_LIFETIME = timedelta(minutes=15)
_ANONYMOUS = Actor(ActorKind.AGENT)
_log = logging.getLogger("archivist.http.access")


class AuthMiddleware:
    """Let requests with a valid token or browser session in, and refuse all others."""

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
        self._app = app
        self._banks = banks
        self._token_bank = token_bank
        self._browsers = browsers
        self._rules = rules
        self._uploads = uploads
        self._incoming = incoming

        async def find_token(secret: str) -> TokenCheck | None:
            # On the event loop: the indexed read is shorter than the way to a thread and back.
            return check_token(token_bank, secret)

        self._gate = Authenticator(rules, find_token, is_beyond_loopback=is_beyond_loopback)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        log = _RequestLog(scope, send)
        try:
            headers = self._gate.check_headers(scope)
            context = scope[KEY] = await self._authenticate(scope, headers)
            log.name = context.name
            is_upload = any(route.matches(scope)[0] is Match.FULL for route in self._uploads)
            max_bytes = (self._rules.max_upload_mb if is_upload else self._rules.max_body_mb) * MEGABYTE
            check_length(headers.get("content-length", ""), max_bytes)
            # HEAD is answered as GET without its body, but must not use a one-time link up.
            is_head = scope["method"] == "HEAD" and scope["path"] != OPEN_PATH
            limited = self._incoming.limit_receive(receive, max_bytes)
            await self._app({**scope, "method": "GET"} if is_head else scope, limited, log.send)
        except Refusal as refusal:
            await refusal.response()(scope, receive, log.send)
        except asyncio.CancelledError:
            # The graceful shutdown has timed out while this request was running.
            if log.status:
                raise
            await stopping_refusal().response()(scope, receive, log.send)
        finally:
            log.write()

    async def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> RequestContext:
        if not self._token_bank.is_there:
            # Writes to the deleted file that is still open would be lost.
            raise Refusal(503, "no_bank", "the bank was removed or replaced", hint="start the server again")
        if scope["path"] == OPEN_PATH and scope["method"] in ("GET", "HEAD"):
            return RequestContext("", "link", _ANONYMOUS, self._banks)
        # Read by hand: other servers of the host may have set malformed cookies beside ours.
        own, pairs = cookie_name(headers.get("host", "")), headers.get("cookie", "").split(";")
        cookies = (pair.strip().partition("=") for pair in pairs)
        cookie = next((value.strip('"') for name, _, value in cookies if name == own), None)
        secret = bearer_secret(headers)
        if secret is None and cookie is not None:
            session = self._browsers.find_session(cookie)
            if session is None:
                raise unauthorized_refusal("bad_token", "the browser session has ended")
            return RequestContext(session.id, session.id, session.actor, self._banks)
        token = await self._gate.require_token(secret)
        return RequestContext(token.id, token.name, token.actor, self._banks)


class _RequestLog:
    """The log line of one request: method, path, status, time and token; no query, header or body."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._started = time.perf_counter()
        self._is_over = False
        self.status = 0
        self.name = "-"

    async def send(self, message: Message) -> None:
        is_head = self._scope["method"] == "HEAD"
        if message["type"] == "http.response.start":
            self.status = message["status"]
            add_default_headers(message)
        elif is_head:
            # One empty body, also for an event stream, which would never end.
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        if not self._is_over:
            self._is_over = is_head and message["type"] == "http.response.body"
            await self._send(message)

    def write(self) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        elapsed_ms = (time.perf_counter() - self._started) * 1000
        path = self._scope["path"].encode("unicode_escape").decode()[:200]
        method, status = self._scope["method"][:10], self.status or "-"
        _log.info("%s %s %s %.1f ms %r", method, path, status, elapsed_ms, self.name)


def cookie_name(host: str) -> str:
    """Return the cookie's name for a Host header: cookies do not tell ports apart, so the name does."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"archivist-{port}" if port else "archivist"


class BrowserSession(NamedTuple):
    """The session of a browser that came by a one-time link."""

    id: str
    actor: Actor
    expires: datetime


@dataclass
class BrowserSessions:
    """The browser sessions, and the links that start one. Kept in memory: they end with the server."""

    actor: Actor
    now: Callable[[], datetime]
    _links: dict[str, datetime] = field(default_factory=dict)
    _sessions: dict[str, BrowserSession] = field(default_factory=dict)
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
            digest = _digest_of(key)
            known = next((link for link in self._links if compare_digest(link, digest)), None)
            expires = self._links.pop(known) if known else None
            if expires is None or expires < self.now():
                return None
            session_key = secrets.token_urlsafe(32)
            name = f"browser-{secrets.token_hex(4)}"
            session = BrowserSession(name, self.actor, self.now() + SESSION_LIFETIME)
            self._sessions[_digest_of(session_key)] = session
            return session_key

    def find_session(self, key: str) -> BrowserSession | None:
        """Return the session of a key, or None when it is unknown or has expired."""
        with self._lock:
            session = self._sessions.get(_digest_of(key))
        return session if session and session.expires > self.now() else None

    def is_valid(self, session_id: str) -> bool:
        """Say whether the session of this id is still valid."""
        with self._lock:
            return any(
                session.id == session_id and session.expires > self.now()
                for session in self._sessions.values()
            )


def _digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
