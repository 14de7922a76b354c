"""Stand before every request of a door: is it for us, from whom, and not too often."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.types import Scope

from archivist.bank import Bank
from archivist.config import ServerRules
from archivist.edges.wire.refusals import Refusal
from archivist.edges.wire.security import RateLimiter, is_own_host, is_own_origin
from archivist.errors import ArchivistError
from archivist.records.access_token import Token, TokenState

# Of these a request has one at most; of a second one nobody could say which counts.
_SINGLE = frozenset(
    (b"host", b"authorization", b"content-length", b"content-type", b"origin", b"cookie", b"idempotency-key",
     b"last-event-id", b"mcp-session-id", b"mcp-protocol-version", b"transfer-encoding")
)  # fmt: skip
_LENGTH = "Content-Length or Transfer-Encoding, not both"
_FAILURES_PER_MINUTE = 120
_TOKEN = "archivist token create --actor KIND:NAME, then Authorization: Bearer TOKEN"  # noqa: S105 a hint


class TokenCheck(NamedTuple):
    """A token whose key was shown, and whether it still holds."""

    token: Token
    state: TokenState


def check_token(bank: Bank, secret: str) -> TokenCheck | None:
    """Return the token of which this is the key; None when it is nobody's here."""
    token = bank.tokens.find_by_secret(secret)
    return None if token is None else TokenCheck(token, token.state(bank.now()))


class Authenticator:
    """Let in who shows a token. `find` asks the bank for the token of a key."""

    def __init__(
        self,
        rules: ServerRules,
        find: Callable[[str], Awaitable[TokenCheck | None]],
        *,
        is_beyond_loopback: bool = False,
    ) -> None:
        self._find = find
        self._is_beyond = is_beyond_loopback
        self._hosts = rules.hosts.split(",")
        self._rates = RateLimiter(rules.rate_per_minute, time.monotonic)
        self._failures = RateLimiter(max(_FAILURES_PER_MINUTE, rules.rate_per_minute // 100), time.monotonic)

    def check_headers(self, scope: Scope) -> dict[str, str]:
        """Return the headers of a request that is for us; of a target with a host, take the path."""
        found = _read_headers(scope)
        if scope["path"][:1] not in ("/", "*"):
            self._normalize_path(scope)
        host, origin = found.get("host", ""), found.get("origin")
        self._check_host(host)
        is_foreign = origin is not None and not is_own_origin(origin, host)
        if is_foreign or found.get("sec-fetch-site") == "cross-site":
            raise Refusal(403, "foreign_origin", "a page of another site may not ask", hint="ask from here")
        return found

    async def require_token(self, scope: Scope, secret: str | None) -> Token:
        """Return the token that lets a request in; Refusal when there is none that holds."""
        if secret is None:
            raise self.unauthorized_refusal(scope, "no_token", "a token is needed")
        try:
            found = await self._find(secret)
        except ArchivistError as error:
            raise Refusal(503, error.code, "the bank cannot serve this now", hint=error.hint) from None
        if found is None:
            raise self.unauthorized_refusal(scope, "bad_token", "the token is unknown here")
        if found.state is not TokenState.VALID:
            raise self.unauthorized_refusal(
                scope, f"token_{found.state.value}", f"the token is {found.state.value}"
            )
        return found.token

    def count_request(self, token: str) -> None:
        """Count a request of somebody's; refuse it when he asks too often."""
        _refuse_if_limited(self._rates.wait_s(token))

    def count_anonymous(self, scope: Scope) -> None:
        """Count a request of nobody's by its address: a stranger may guess only so often."""
        client = scope.get("client")
        _refuse_if_limited(self._failures.wait_s(str(client[0]) if client else ""))

    def unauthorized_refusal(self, scope: Scope, code: str, detail: str) -> Refusal:
        """Return the refusal of who shows nothing that lets him in."""
        self.count_anonymous(scope)
        asked = "Bearer" if code == "no_token" else 'Bearer error="invalid_token"'
        return Refusal(401, code, detail, hint=_TOKEN, headers={"WWW-Authenticate": asked})

    def _check_host(self, host: str) -> None:
        if not is_own_host(host, allowed_hosts=self._hosts, is_beyond_loopback=self._is_beyond):
            raise Refusal(
                403,
                "unknown_host",
                "this server is not called so",
                hint="server.hosts names the hosts that it is",
            )

    def _normalize_path(self, scope: Scope) -> None:
        """Read `http://host/path`, as a proxy asks, as its path: every server has to understand it."""
        try:
            target = urlsplit(scope["raw_path"].decode("ascii"))
        except ValueError:
            return
        if target.scheme in ("http", "https"):
            self._check_host(target.netloc)
            path = target.path or "/"
            scope["path"], scope["raw_path"] = unquote(path), path.encode("ascii")


def bearer_secret(headers: Mapping[str, str]) -> str | None:
    """Return the key that a request shows: empty when it shows something else, None when it shows nothing."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, secret = given.strip().partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _read_headers(scope: Scope) -> dict[str, str]:
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


def _refuse_if_limited(seconds: float) -> None:
    if seconds:
        again = {"Retry-After": str(math.ceil(seconds))}
        raise Refusal(429, "too_many", "too many requests", hint="server.rate_per_minute", headers=again)
