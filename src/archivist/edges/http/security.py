"""Who may come in, and how often: hosts, origins, keys and rates. All policy; the guard applies it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest
from ipaddress import ip_address
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit

from archivist.desks.tokens import digest_of
from archivist.records import Actor

_LINK_HOLDS = timedelta(minutes=15)
SESSION_HOLDS = timedelta(hours=12)
_BUCKETS = 10_000


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_own_host(given: str, *, known: Iterable[str], is_beyond: bool) -> bool:
    """Say whether a Host header names this server.

    A page that points its own name at this machine comes with that name, never with a bare address: so an
    address is believed, one of this machine always and any when the server listens beyond it; names are
    believed when they are known.
    """
    host = host_of(given)
    if not host:
        return False
    if is_loopback(host) or host in {each.strip().lower() for each in known if each.strip()}:
        return True
    if not is_beyond:
        return False
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def host_of(given: str) -> str:
    """Return the host of a Host header without its port; nothing when it is none."""
    try:
        parts = urlsplit(f"//{given}")
        is_bare = parts.netloc == given and "@" not in given and not (parts.path or parts.query)
        # To ask for the port is to have it checked.
        _ = parts.port
    except ValueError:
        return ""
    return (parts.hostname or "").lower() if is_bare and given else ""


def cookie_name(host: str) -> str:
    """Return what a browser's cookie is called at a Host header: servers at other ports share its jar."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"archivist-{port}" if port else "archivist"


def is_own_origin(origin: str, host: str) -> bool:
    """Say whether a page that asks was served by the host that it asks."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class Known(NamedTuple):
    """Who a browser's key belongs to."""

    id: str
    actor: Actor
    expires: datetime


@dataclass
class Browsers:
    """The browsers that came by a one-time link. Kept in memory alone: they end with the server."""

    actor: Actor
    now: Callable[[], datetime]
    _links: dict[str, datetime] = field(default_factory=dict)
    _keys: dict[str, Known] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def link(self) -> str:
        """Return the key of a new link, which opens once."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._links[digest_of(key)] = self.now() + _LINK_HOLDS
        return key

    def opened(self, key: str) -> str | None:
        """Return a browser's own key for that of a link; None when it was used, is too old or unknown."""
        with self._lock:
            digest = digest_of(key)
            found = next((each for each in self._links if compare_digest(each, digest)), None)
            until = self._links.pop(found) if found else None
            if until is None or until < self.now():
                return None
            own = secrets.token_urlsafe(32)
            name = f"browser-{secrets.token_hex(4)}"
            self._keys[digest_of(own)] = Known(name, self.actor, self.now() + SESSION_HOLDS)
            return own

    def holder(self, key: str) -> Known | None:
        """Return who a browser's key belongs to, or None."""
        with self._lock:
            known = self._keys.get(digest_of(key))
        return known if known and known.expires > self.now() else None

    def is_valid(self, name: str) -> bool:
        """Say whether the browser of this id may still come in."""
        with self._lock:
            return any(each.id == name and each.expires > self.now() for each in self._keys.values())


class Rates:
    """How many requests each has left: so many a minute, a minute's worth at once."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def wait_s(self, name: str) -> float:
        """Take one request of somebody's; return 0, or how many seconds he must wait for the next."""
        now = self._clock()
        left, at = self._left.get(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._most / 60)
        if left < 1:
            return (1 - left) * 60 / self._most
        if len(self._left) > _BUCKETS:
            self._left.clear()
        self._left[name] = (left - 1, now)
        return 0.0
