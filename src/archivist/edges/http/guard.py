"""Stand before every request: is it for us, from whom, not too often, not too large; and note it."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping, Sequence

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.config import ServerRules
from archivist.edges.http.banks import Banks
from archivist.edges.http.problems import Refusal
from archivist.edges.http.receiving import MEGABYTE, Incoming, stopping, too_large
from archivist.edges.http.security import Browsers, Rates, cookie_name, is_own_host, is_own_origin
from archivist.edges.http.visits import KEY, Visit
from archivist.errors import BankError
from archivist.records import Actor, ActorKind
from archivist.records.tokens import TokenState

OPEN_PATH = "/open"
# Of these a request has one at most; of a second one nobody could say which counts.
_SINGLE = frozenset(
    (b"host", b"authorization", b"content-length", b"content-type", b"origin", b"cookie", b"idempotency-key",
     b"last-event-id", b"transfer-encoding")
)  # fmt: skip
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_LENGTH = "Content-Length or Transfer-Encoding, not both"
_FAILURES_PER_MINUTE = 120
_STRANGER = Actor(ActorKind.AGENT)
_log = logging.getLogger("archivist.http.access")


class Guard:
    """Let in who shows a token, and refuse everybody else before the app hears of it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        banks: Banks,
        keys: Bank,
        browsers: Browsers,
        rules: ServerRules,
        is_beyond: bool,
        uploads: Sequence[Route],
        incoming: Incoming,
    ) -> None:
        self._app = app
        self._banks = banks
        self._keys = keys
        self._browsers = browsers
        self._rules = rules
        self._is_beyond = is_beyond
        self._uploads = uploads
        self._incoming = incoming
        self._hosts = rules.hosts.split(",")
        self._rates = Rates(rules.rate_per_minute, time.monotonic)
        self._failures = Rates(max(_FAILURES_PER_MINUTE, rules.rate_per_minute // 100), time.monotonic)
        # Of its own, so that who is at the door is known however busy the house is.
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        noted = _Noted(scope, send)
        try:
            headers = _headers(scope)
            self._check_address(headers)
            visit = scope[KEY] = await self._visit(scope, headers)
            noted.name = visit.name
            _wait(self._rates.wait_s(visit.token))
            limited = self._incoming.limited(receive, self._most_bytes(scope, headers))
            await self._app(_as_get(scope), limited, noted.send)
        except Refusal as refusal:
            await refusal.response()(scope, receive, noted.send)
        except asyncio.CancelledError:
            # The server has waited long enough for this request, and stops.
            if noted.status:
                raise
            await stopping().response()(scope, receive, noted.send)
        finally:
            noted.note()

    def _check_address(self, headers: Mapping[str, str]) -> None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_own_host(host, known=self._hosts, is_beyond=self._is_beyond):
            raise Refusal(
                403,
                "unknown_host",
                "this server is not called so",
                hint="server.hosts names the hosts that it is",
            )
        is_foreign = origin is not None and not is_own_origin(origin, host)
        if is_foreign or headers.get("sec-fetch-site") == "cross-site":
            raise Refusal(403, "foreign_origin", "a page of another site may not ask", hint="ask from here")

    async def _visit(self, scope: Scope, headers: Mapping[str, str]) -> Visit:
        if not self._keys.is_there:
            # What were written now into the file that is open would be gone with it.
            raise Refusal(503, "no_bank", "the bank was removed or replaced", hint="start the server again")
        if scope["path"] == OPEN_PATH and scope["method"] in ("GET", "HEAD"):
            # A stranger may guess at links no more often than at tokens.
            _wait(self._failures.wait_s(_address(scope)))
            return Visit("", "link", _STRANGER, self._banks)
        secret, cookie = _bearer(headers), _cookie(headers)
        if secret is None and cookie is None:
            raise self._unknown(scope, "no_token", "a token is needed")
        if secret is not None:
            visit = await self._holder(scope, secret)
        else:
            known = self._browsers.holder(cookie or "")
            if known is None:
                raise self._unknown(scope, "bad_token", "the browser's link has ended")
            visit = Visit(known.id, known.id, known.actor, self._banks)
        return visit

    async def _holder(self, scope: Scope, secret: str) -> Visit:
        if self._limiter is None:
            self._limiter = CapacityLimiter(2)
        try:
            token = await run_sync(self._keys.tokens.holder, secret, limiter=self._limiter)
        except BankError as error:
            raise Refusal(503, error.code, "the bank cannot serve this now", hint="try again") from None
        if token is None:
            raise self._unknown(scope, "bad_token", "the token is unknown here")
        state = token.state(self._keys.now())
        if state is not TokenState.VALID:
            raise self._unknown(scope, f"token_{state.value}", f"the token is {state.value}")
        return Visit(token.id, token.name, token.actor, self._banks)

    def _unknown(self, scope: Scope, code: str, detail: str) -> Refusal:
        _wait(self._failures.wait_s(_address(scope)))
        hint = "archivist token create --actor KIND:NAME, then Authorization: Bearer TOKEN"
        return Refusal(401, code, detail, hint=hint, headers={"WWW-Authenticate": "Bearer"})

    def _most_bytes(self, scope: Scope, headers: Mapping[str, str]) -> int:
        is_upload = any(route.matches(scope)[0] is Match.FULL for route in self._uploads)
        most = (self._rules.max_upload_mb if is_upload else self._rules.max_body_mb) * MEGABYTE
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > most:
            raise too_large(most)
        return most


class _Noted:
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
            given = {name.lower() for name, _ in message.get("headers", ())}
            message["headers"] = [
                *message.get("headers", ()),
                *(pair for pair in _HEADERS if pair[0] not in given),
            ]
        elif self._scope["method"] == "HEAD":
            # The head is all of the answer, also of one that would never end.
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        if not self._is_over:
            self._is_over = self._scope["method"] == "HEAD" and message["type"] == "http.response.body"
            await self._send(message)

    def note(self) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        took = (time.perf_counter() - self._began) * 1000
        path = self._scope["path"].encode("unicode_escape").decode()[:200]
        _log.info(
            "%s %s %s %.1f ms %r", self._scope["method"][:10], path, self.status or "-", took, self.name
        )


def _as_get(scope: Scope) -> Scope:
    """Return a request for an answer's head as one for the answer; a link that opens once stays unused."""
    if scope["method"] != "HEAD" or scope["path"] == OPEN_PATH:
        return scope
    return {**scope, "method": "GET"}


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    seen: set[bytes] = set()
    for name, value in scope["headers"]:
        if name in _SINGLE and name in seen:
            raise Refusal(400, "double_header", f"the header {name.decode('latin-1')} is there twice")
        seen.add(name)
        found[name.decode("latin-1")] = value.decode("latin-1")
    if "content-length" in found and "transfer-encoding" in found:
        # Two servers in a row could read two different requests out of it.
        close = {"Connection": "close"}
        raise Refusal(
            400, "double_length", "the body's length is told in two ways", hint=_LENGTH, headers=close
        )
    return found


def _bearer(headers: Mapping[str, str]) -> str | None:
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, secret = given.strip().partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Mapping[str, str]) -> str | None:
    """Return the value of our own cookie, whatever other servers of this host have put beside it."""
    own = cookie_name(headers.get("host", ""))
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == own:
            return value.strip('"')
    return None


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _wait(seconds: float) -> None:
    if seconds:
        again = {"Retry-After": str(math.ceil(seconds))}
        raise Refusal(429, "too_many", "too many requests", hint="server.rate_per_minute", headers=again)
