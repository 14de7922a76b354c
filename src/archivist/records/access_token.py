"""Who may come in from outside: the hash of what they show, and in whose name they act."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from archivist.records.actor import Actor


class TokenState(StrEnum):
    """Whether a token lets its bearer in."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A key to the bank that somebody holds. The key itself is shown once; `digest` is its SHA-256."""

    id: str
    name: str = ""
    actor: Actor
    digest: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    extra: dict[str, object] = field(default_factory=dict)

    def state(self, now: datetime) -> TokenState:
        """Say whether it lets its bearer in at a time."""
        if self.revoked is not None and self.revoked <= now:
            return TokenState.REVOKED
        if self.expires is not None and self.expires <= now:
            return TokenState.EXPIRED
        return TokenState.VALID
