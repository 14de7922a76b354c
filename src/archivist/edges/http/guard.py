"""Check every request before the app sees it: its headers, its token or cookie, its size; and log it."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.capture.clean import clean_name
from archivist.config import ServerRules
from archivist.edges.server import checks
from archivist.edges.server.banks import KEY, BankPool, RequestContext
from archivist.edges.server.checks import Refusal
from archivist.records import Actor, ActorKind

# The paths that need no token: the link for a browser, and the probe of a container or a proxy.
OPEN_PATH, HEALTH_PATH = "/open", "/health"
# A working day.
SESSION_LIFETIME = timedelta(hours=12)
_ANONYMOUS = Actor(ActorKind.AGENT)
_MAX_LOGGED_PATH = 200
_log = logging.getLogger("archivist.http.access")


class AuthMiddleware(checks.GuardedApp):
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
        incoming: checks.BodyReceiver,
        pages: checks.Pages | None = None,
        person: str = "",
    ) -> None:
        super().__init__(app, rules, incoming, is_beyond_loopback=is_beyond_loopback)
        self._person = person
        self._banks = banks
        self._token_bank = token_bank
        self._browsers = browsers
        self._uploads = uploads
        self._pages = pages

    def respond(self, refusal: Refusal, scope: Scope) -> Response:
        """Return the refusal as a page where a browser asks for one."""
        return checks.refusal_response(refusal, self._pages, scope)

    async def find_token(self, secret: str) -> checks.TokenCheck | None:
        """Look a token up on the event loop: the indexed read is shorter than the way to a thread."""
        return checks.check_token(self._token_bank, secret)

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
        context = scope[KEY] = await self._authenticate(scope, headers)
        is_upload = any(route.matches(scope)[0] is Match.FULL for route in self._uploads)
        max_bytes = (self.rules.max_upload_mb if is_upload else self.rules.max_body_mb) * checks.MEGABYTE
        sender = checks.limited_name(context.token, context.actor)
        limited = self.bodies.limit_receive(receive, headers, max_bytes, sender)
        # HEAD is answered as GET without its body, but must not use a one-time link up.
        is_head = scope["method"] == "HEAD" and scope["path"] != OPEN_PATH
        await self.app({**scope, "method": "GET"} if is_head else scope, limited, send)

    async def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> RequestContext:
        if not self._token_bank.is_there:
            # Writes to the deleted file that is still open would be lost.
            raise Refusal(503, "no_bank", "the bank was removed or replaced", hint="start the server again")
        is_open = scope["path"] == OPEN_PATH and scope["method"] in ("GET", "HEAD", "POST")
        is_public = self._pages is not None and self._pages.is_public(scope["path"])
        if is_open or ((is_public or scope["path"] == HEALTH_PATH) and scope["method"] in ("GET", "HEAD")):
            return RequestContext("", scope["path"][1:], _ANONYMOUS, self._banks)
        cookie, secret = find_cookie(headers), checks.bearer_secret(headers)
        if secret is None and cookie is not None:
            session = self._browsers.find_session(cookie)
            is_ours = session is not None and session.bank == self._browsers.bank
            is_let_in = not session or not session.token or self._token_bank.tokens.is_valid(session.token)
            if session is None or not is_ours or not is_let_in:
                raise checks.unauthorized_refusal("bad_token", "the browser session has ended")
            self._require_person(session.actor)
            who = session.token or session.id, session.name, session.actor
            return RequestContext(*who, self._banks, is_owner=not session.token)
        token = await self.require_token(secret)
        self._require_person(token.actor)
        return RequestContext(token.id, token.name, token.actor, self._banks)

    def _require_person(self, actor: Actor) -> None:
        """Refuse everybody but the owner of a person's own bank."""
        if self._person and actor.person != self._person:
            raise Refusal(403, "not_yours", "this bank is another person's", hint="ask its owner to share")


def find_cookie(headers: Mapping[str, str]) -> str | None:
    """Return our cookie; read by hand, since other servers of the host may have set malformed ones."""
    own, pairs = cookie_name(headers.get("host", "")), headers.get("cookie", "").split(";")
    cookies = (pair.strip().partition("=") for pair in pairs)
    return next((value.strip('"') for name, _, value in cookies if name == own), None)


def cookie_name(host: str) -> str:
    """Return the cookie's name for a Host header: cookies do not tell ports apart, so the name does."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"archivist-{port}" if port else "archivist"


class BrowserSession(NamedTuple):
    """A browser that is signed in: in whose name, by which token if by one, and to which bank."""

    id: str
    name: str
    actor: Actor
    token: str
    bank: str


@dataclass(frozen=True)
class BrowserSessions:
    """The browser sessions, and the link that starts one.

    A session is a signed text that the browser keeps, so that every process of a server accepts it. The
    secret is the server's, made when it starts: sessions and the link end with the server.
    """

    actor: Actor
    now: Callable[[], datetime]
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    bank: str = ""

    def create_link(self) -> str:
        """Return the key of the link, which signs browsers in as long as the server runs."""
        return self._sign(f"link {self.bank}")

    def redeem_link(self, key: str) -> str | None:
        """Return the session key for a link's key; None when it is unknown."""
        is_known = compare_digest(key.encode("utf-8", "replace"), self.create_link().encode())
        return self.start_session(self.actor) if is_known else None

    def start_session(self, actor: Actor, token: str = "", name: str = "") -> str:
        """Start a session in an actor's name, valid at most as long as the token; return its key."""
        expires = int((self.now() + SESSION_LIFETIME).timestamp())
        session_id = f"browser-{secrets.token_hex(4)}-{expires}"
        session = BrowserSession(session_id, name or session_id, actor, token, self.bank)
        text = json.dumps([*session._replace(actor=str(actor))])  # type: ignore[arg-type]
        body = urlsafe_b64encode(text.encode()).decode()
        return f"{body}.{self._sign(body)}"

    def find_session(self, key: str) -> BrowserSession | None:
        """Return the session of a key to any bank of the server; None when it is unknown or has expired."""
        body, _, seal = key.partition(".")
        if not compare_digest(seal.encode("utf-8", "replace"), self._sign(body).encode()):
            return None
        session_id, name, actor, token, bank = json.loads(urlsafe_b64decode(body))
        session = BrowserSession(session_id, name, Actor.parse(actor), token, bank)
        return session if self.is_valid(session_id) else None

    def is_valid(self, session_id: str) -> bool:
        """Say whether a session has not expired, by its id; only a session of ours has such an id."""
        kind, _, expires = session_id.rpartition("-")
        return kind.startswith("browser-") and self.now().timestamp() < int(expires)

    def _sign(self, text: str) -> str:
        return hmac.new(self.secret, text.encode("utf-8", "replace"), sha256).hexdigest()
