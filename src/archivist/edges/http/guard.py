"""Stand before every request: is it for us, from whom, not too often, not too large; and note it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.config import ServerRules
from archivist.edges.http.banks import BankPool
from archivist.edges.http.security import BrowserSessions, cookie_name
from archivist.edges.http.visits import KEY, RequestContext
from archivist.edges.wire.gate import Authenticator, TokenCheck, bearer_secret, check_token
from archivist.edges.wire.receiving import MEGABYTE, BodyReceiver, check_length, stopping_refusal
from archivist.edges.wire.refusals import Refusal, add_default_headers
from archivist.records import Actor, ActorKind

OPEN_PATH = "/open"
_STRANGER = Actor(ActorKind.AGENT)
_log = logging.getLogger("archivist.http.access")


class AuthMiddleware:
    """Let in who shows a token, and refuse everybody else before the app hears of it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        banks: BankPool,
        keys: Bank,
        browsers: BrowserSessions,
        rules: ServerRules,
        is_beyond_loopback: bool,
        uploads: Sequence[Route],
        incoming: BodyReceiver,
    ) -> None:
        self._app = app
        self._banks = banks
        self._keys = keys
        self._browsers = browsers
        self._rules = rules
        self._uploads = uploads
        self._incoming = incoming
        self._gate = Authenticator(rules, self._find_token, is_beyond_loopback=is_beyond_loopback)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        noted = _RequestLog(scope, send)
        try:
            headers = self._gate.check_headers(scope)
            visit = scope[KEY] = await self._authenticate(scope, headers)
            noted.name = visit.name
            self._gate.count_request(visit.token)
            limited = self._incoming.limit_receive(receive, self._body_limit(scope, headers))
            await self._app(_head_as_get(scope), limited, noted.send)
        except Refusal as refusal:
            await refusal.response()(scope, receive, noted.send)
        except asyncio.CancelledError:
            # The server has waited long enough for this request, and stops.
            if noted.status:
                raise
            await stopping_refusal().response()(scope, receive, noted.send)
        finally:
            noted.write_log()

    async def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> RequestContext:
        if not self._keys.is_there:
            # What were written now into the file that is open would be gone with it.
            raise Refusal(503, "no_bank", "the bank was removed or replaced", hint="start the server again")
        if scope["path"] == OPEN_PATH and scope["method"] in ("GET", "HEAD"):
            # A stranger may guess at links no more often than at tokens.
            self._gate.count_anonymous(scope)
            return RequestContext("", "link", _STRANGER, self._banks)
        secret, cookie = bearer_secret(headers), _session_cookie(headers)
        if secret is None and cookie is not None:
            known = self._browsers.find_session(cookie)
            if known is None:
                raise self._gate.unauthorized_refusal(scope, "bad_token", "the browser's link has ended")
            return RequestContext(known.id, known.id, known.actor, self._banks)
        token = await self._gate.require_token(scope, secret)
        return RequestContext(token.id, token.name, token.actor, self._banks)

    async def _find_token(self, secret: str) -> TokenCheck | None:
        # Who reads waits for nobody, and to go to a thread and back takes longer than to look.
        return check_token(self._keys, secret)

    def _body_limit(self, scope: Scope, headers: Mapping[str, str]) -> int:
        is_upload = any(route.matches(scope)[0] is Match.FULL for route in self._uploads)
        most = (self._rules.max_upload_mb if is_upload else self._rules.max_body_mb) * MEGABYTE
        check_length(headers.get("content-length", ""), most)
        return most


class _RequestLog:
    """One request as it goes into the log: no query, no header, nothing of what was said."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        self._is_over = False
        self.status = 0
        self.name = "-"

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            add_default_headers(message)
        elif self._scope["method"] == "HEAD":
            # The head is all of the answer, also of one that would never end.
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        if not self._is_over:
            self._is_over = self._scope["method"] == "HEAD" and message["type"] == "http.response.body"
            await self._send(message)

    def write_log(self) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        took = (time.perf_counter() - self._began) * 1000
        path = self._scope["path"].encode("unicode_escape").decode()[:200]
        _log.info(
            "%s %s %s %.1f ms %r", self._scope["method"][:10], path, self.status or "-", took, self.name
        )


def _head_as_get(scope: Scope) -> Scope:
    """Return a request for an answer's head as one for the answer; a link that opens once stays unused."""
    if scope["method"] != "HEAD" or scope["path"] == OPEN_PATH:
        return scope
    return {**scope, "method": "GET"}


def _session_cookie(headers: Mapping[str, str]) -> str | None:
    """Return the value of our own cookie, whatever other servers of this host have put beside it."""
    own = cookie_name(headers.get("host", ""))
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == own:
            return value.strip('"')
    return None
