"""Who may come in, and how often: hosts, origins and rates. All policy; the gate applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

_BUCKETS = 10_000


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_own_host(given: str, *, allowed_hosts: Iterable[str], is_beyond_loopback: bool) -> bool:
    """Say whether a Host header names this server.

    A page that points its own name at this machine comes with that name, never with a bare address: so an
    address is believed, one of this machine always and any when the server listens beyond it; names are
    believed when they are known.
    """
    host = host_of(given)
    if not host:
        return False
    if is_loopback(host) or host in {each.strip().lower() for each in allowed_hosts if each.strip()}:
        return True
    if not is_beyond_loopback:
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


def is_own_origin(origin: str, host: str) -> bool:
    """Say whether a page that asks was served by the host that it asks."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class RateLimiter:
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
