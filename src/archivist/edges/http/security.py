"""The browsers that may come in: by a link that opens once, and a cookie from then on."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit

from archivist.access.service import digest_of
from archivist.records import Actor

_LINK_HOLDS = timedelta(minutes=15)
SESSION_HOLDS = timedelta(hours=12)


def cookie_name(host: str) -> str:
    """Return what a browser's cookie is called at a Host header: servers at other ports share its jar."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"archivist-{port}" if port else "archivist"


class BrowserSession(NamedTuple):
    """Who a browser's key belongs to."""

    id: str
    actor: Actor
    expires: datetime


@dataclass
class BrowserSessions:
    """The browsers that came by a one-time link. Kept in memory alone: they end with the server."""

    actor: Actor
    now: Callable[[], datetime]
    _links: dict[str, datetime] = field(default_factory=dict)
    _keys: dict[str, BrowserSession] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def create_link(self) -> str:
        """Return the key of a new link, which opens once."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._links[digest_of(key)] = self.now() + _LINK_HOLDS
        return key

    def redeem_link(self, key: str) -> str | None:
        """Return a browser's own key for that of a link; None when it was used, is too old or unknown."""
        with self._lock:
            digest = digest_of(key)
            found = next((each for each in self._links if compare_digest(each, digest)), None)
            until = self._links.pop(found) if found else None
            if until is None or until < self.now():
                return None
            own = secrets.token_urlsafe(32)
            name = f"browser-{secrets.token_hex(4)}"
            self._keys[digest_of(own)] = BrowserSession(name, self.actor, self.now() + SESSION_HOLDS)
            return own

    def find_session(self, key: str) -> BrowserSession | None:
        """Return who a browser's key belongs to, or None."""
        with self._lock:
            known = self._keys.get(digest_of(key))
        return known if known and known.expires > self.now() else None

    def is_valid(self, name: str) -> bool:
        """Say whether the browser of this id may still come in."""
        with self._lock:
            return any(each.id == name and each.expires > self.now() for each in self._keys.values())
