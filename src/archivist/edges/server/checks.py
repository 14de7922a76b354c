"""Check every request of a server: its headers, its token, its body; and refuse what fails a check."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archivist.bank import Bank
from archivist.config import ServerRules
from archivist.edges.server.listening import is_loopback
from archivist.errors import ArchivistError, without_middle
from archivist.records import Actor, ActorKind
from archivist.records.layers import Token, TokenState

MEGABYTE = 1024 * 1024
MEDIA_TYPE = "application/problem+json"
_DEFAULT_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
# Headers that must not be repeated.
_SINGLE_HEADERS = frozenset(
    (b"host", b"authorization", b"content-length", b"content-type", b"origin", b"cookie", b"idempotency-key",
     b"last-event-id", b"mcp-session-id", b"mcp-protocol-version", b"transfer-encoding")
)  # fmt: skip
# Bodies that one token may have unfinished. Agents send one or two at a time; 150 held up all others.
_MAX_UNFINISHED = 32
_TOKEN_HINT = "archivist token create --actor KIND:NAME, then Authorization: Bearer TOKEN"  # noqa: S105


class Refusal(Exception):  # noqa: N818 not an error of the package, but an answer to a client
    """A request that is not answered as it wishes: what went wrong, and what to do."""

    def __init__(
        self, status: int, code: str, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(without_middle(detail))
        self.status = status
        self.code = code
        self.hint = without_middle(hint)
        self.headers = headers

    def response(self) -> Response:
        """Return the refusal as a response."""
        problem = {
            "type": f"urn:archivist:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": str(self),
            "code": self.code,
            "hint": self.hint,
        }
        body = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace")
        return Response(body, self.status, headers=self.headers, media_type=MEDIA_TYPE)


class Pages(NamedTuple):
    """The pages for browsers: their routes, which paths need no token, and how a refusal looks."""

    routes: Sequence[BaseRoute]
    is_public: Callable[[str], bool]
    render_refusal: Callable[[Refusal, Scope], Response]


def refusal_response(refusal: Refusal, pages: Pages | None, scope: Scope) -> Response:
    """Return a refusal as a page where a browser asks for one, else as a problem."""
    accepted = (value for name, value in scope["headers"] if name == b"accept")
    if pages is None or scope["path"].startswith("/api/") or b"text/html" not in next(accepted, b""):
        return refusal.response()
    return pages.render_refusal(refusal, scope)


class BodyReceiver:
    """The bodies that are being received. Used only from the event loop."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        # Each body that is waited for, with the name of its sender.
        self._waits: dict[asyncio.Timeout, str] = {}
        self._is_over = False

    def stop(self) -> None:
        """Refuse every body that is not complete: its rest could arrive after the server has ended."""
        self._is_over = True
        for wait in self._waits:
            wait.reschedule(asyncio.get_running_loop().time())

    def limit_receive(
        self, receive: Receive, headers: Mapping[str, str], max_bytes: int, sender: str = ""
    ) -> Receive:
        """Return a `receive` that raises Refusal for too large a body or too long a pause in it.

        A named sender may have few bodies unfinished at a time.
        """
        length = headers.get("content-length", "")
        # 20 digits hold any 64-bit length, and int() refuses numbers of more than 4,300 digits.
        if length.isdecimal() and int(length[:20]) > max_bytes:
            raise _too_large_refusal(max_bytes)
        received_bytes, is_complete = 0, False

        async def receive_limited() -> Message:
            nonlocal received_bytes, is_complete
            if is_complete:
                return await receive()
            if self._is_over:
                raise _stopping_refusal()
            if sender and list(self._waits.values()).count(sender) >= _MAX_UNFINISHED:
                raise crowded_refusal("too_many_bodies", "this token has too many unfinished requests")
            try:
                async with asyncio.timeout(self._silence_s) as wait:
                    self._waits[wait] = sender
                    try:
                        message = await receive()
                    finally:
                        self._waits.pop(wait, None)
            except TimeoutError:
                if self._is_over:
                    raise _stopping_refusal() from None
                hint = "send the whole body, without long pauses"
                raise Refusal(408, "too_slow", "the body did not arrive in time", hint=hint) from None
            if message["type"] == "http.disconnect":
                detail = "the body ended before its length"
                raise Refusal(400, "body_ended_early", detail, hint="send all of it")
            is_complete = not message.get("more_body", False)
            received_bytes += len(message.get("body", b""))
            if received_bytes > max_bytes:
                raise _too_large_refusal(max_bytes)
            return message

        return receive_limited


def crowded_refusal(code: str, detail: str) -> Refusal:
    """Return the refusal of a token that holds as many connections as it may."""
    return Refusal(429, code, detail, hint="end some of them first", headers={"Retry-After": "10"})


def limited_name(token: str, actor: Actor) -> str:
    """Return by which name a sender's connections are counted; a person's are not."""
    return "" if actor.kind is ActorKind.HUMAN else token


def _stopping_refusal() -> Refusal:
    headers = {"Retry-After": "5", "Connection": "close"}
    return Refusal(503, "stopping", "the server is stopping", hint="try again in a while", headers=headers)


def _too_large_refusal(max_bytes: int) -> Refusal:
    hint = "server.max_body_mb and server.max_upload_mb set the limits"
    return Refusal(413, "too_large", f"the body is larger than {max_bytes // MEGABYTE} MB", hint=hint)


TokenCheck = tuple[Token, TokenState]


def check_token(bank: Bank, secret: str) -> TokenCheck | None:
    """Return the token of a secret and whether it is still valid; None when the bank has none."""
    token = bank.tokens.find_by_secret(secret)
    return None if token is None else (token, token.state(bank.now()))


class GuardedApp(ABC):
    """An app behind the checks of its requests: only those of this host, with a valid token, get in."""

    def __init__(
        self, app: ASGIApp, rules: ServerRules, bodies: BodyReceiver, *, is_beyond_loopback: bool = False
    ) -> None:
        self.app = app
        self.rules = rules
        self.bodies = bodies
        self._is_beyond_loopback = is_beyond_loopback
        self._hosts = rules.hosts.split(",")

    @abstractmethod
    async def find_token(self, secret: str) -> TokenCheck | None:
        """Look the token of a secret up in the bank."""

    @abstractmethod
    async def serve_request(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Authenticate a request with these headers and pass it on, or raise Refusal."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        has_started = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                names = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in _DEFAULT_HEADERS if header[0] not in names),
                ]
            await send(message)

        try:
            await self.serve_request(scope, self._check_headers(scope), receive, send_guarded)
        except Refusal as refusal:
            await self.respond(refusal, scope)(scope, receive, send_guarded)
        except asyncio.CancelledError:
            # The graceful shutdown has timed out while this request was running.
            if has_started:
                raise
            await _stopping_refusal().response()(scope, receive, send_guarded)

    def respond(self, refusal: Refusal, _scope: Scope) -> Response:
        """Return the response to a request that is refused."""
        return refusal.response()

    def _check_headers(self, scope: Scope) -> dict[str, str]:
        """Return the headers of a request to this server; an absolute target is reduced to its path."""
        headers = _read_headers(scope)
        if scope["path"][:1] not in ("/", "*"):
            # Proxies send the target `http://host/path` (RFC 9112, 3.2.2).
            with suppress(ValueError):
                target = urlsplit(scope["raw_path"].decode("ascii"))
                if target.scheme in ("http", "https"):
                    self._check_host(target.netloc)
                    path = target.path or "/"
                    scope["path"], scope["raw_path"] = unquote(path), path.encode("ascii")
        host, origin = headers.get("host", ""), headers.get("origin")
        self._check_host(host)
        # Where a name of server.hosts is called, a proxy may end TLS in front of this server.
        schemes = (scope.get("scheme", "http"), *(() if is_loopback(host_of(host)) else ("https",)))
        is_foreign = origin is not None and not is_own_origin(origin, host, schemes)
        if is_foreign or headers.get("sec-fetch-site") == "cross-site":
            detail = "cross-site requests are refused"
            raise Refusal(403, "foreign_origin", detail, hint="send it from this site")
        return headers

    async def require_token(self, secret: str | None) -> Token:
        """Return the token of a request; raise Refusal when it has none that is valid."""
        if secret is None:
            raise unauthorized_refusal("no_token", "a token is needed")
        try:
            found = await self.find_token(secret)
        except ArchivistError as error:
            raise Refusal(503, error.code, "the bank cannot serve this now", hint=error.hint) from None
        if found is None:
            raise unauthorized_refusal("bad_token", "the token is unknown here")
        token, state = found
        if state is not TokenState.VALID:
            raise unauthorized_refusal(f"token_{state.value}", f"the token is {state.value}")
        return token

    def _check_host(self, host: str) -> None:
        if not is_own_host(host, allowed_hosts=self._hosts, is_beyond_loopback=self._is_beyond_loopback):
            detail = "the Host header does not name this server"
            raise Refusal(403, "unknown_host", detail, hint="server.hosts lists the allowed names")


def unauthorized_refusal(code: str, detail: str) -> Refusal:
    """Return the refusal of a request without a valid token."""
    challenge = "Bearer" if code == "no_token" else 'Bearer error="invalid_token"'
    return Refusal(401, code, detail, hint=_TOKEN_HINT, headers={"WWW-Authenticate": challenge})


def bearer_secret(headers: Mapping[str, str]) -> str | None:
    """Return the secret of the Authorization header: empty for another scheme, None without the header."""
    authorization = headers.get("authorization")
    if authorization is None:
        return None
    scheme, _, secret = authorization.strip().partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def is_own_host(given: str, *, allowed_hosts: Iterable[str], is_beyond_loopback: bool) -> bool:
    """Say whether a Host header names this server.

    DNS rebinding sends the attacker's name, never a bare address. So a loopback address is always accepted,
    any address when the server listens beyond loopback, and a name only when it is allowed.
    """
    host = host_of(given)
    if is_loopback(host) or host in {name.strip().lower() for name in allowed_hosts if name.strip()}:
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return is_beyond_loopback


def host_of(given: str) -> str:
    """Return the host of a Host header without its port; empty when the header is malformed."""
    try:
        parts = urlsplit(f"//{given}")
        is_bare = parts.netloc == given and "@" not in given and not (parts.path or parts.query)
        # Reading the port validates it.
        _ = parts.port
    except ValueError:
        return ""
    return (parts.hostname or "").lower() if is_bare and given else ""


def is_own_origin(origin: str, host: str, schemes: Sequence[str]) -> bool:
    """Say whether an Origin header names the host that the request goes to, with one of these schemes."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in schemes and parts.netloc.lower() == host.lower()


def _read_headers(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = {}
    seen: set[bytes] = set()
    for name, value in scope["headers"]:
        if name in _SINGLE_HEADERS and name in seen:
            raise Refusal(400, "double_header", f"the header {name.decode('latin-1')} is repeated")
        seen.add(name)
        headers[name.decode("latin-1")] = value.decode("latin-1")
    if "content-length" in headers and "transfer-encoding" in headers:
        # A proxy in front could read another request out of it (request smuggling).
        detail, close = "the request gives its length in two ways", {"Connection": "close"}
        hint = "send Content-Length or Transfer-Encoding, not both"
        raise Refusal(400, "double_length", detail, hint=hint, headers=close)
    return headers
