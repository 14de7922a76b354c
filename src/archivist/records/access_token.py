"""Access tokens: the hash of the secret, and the actor in whose name its bearer acts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from archivist.records.actor import Actor


class TokenState(StrEnum):
    """Whether a token grants access."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token for the bank. The secret itself is shown once; `digest` is its SHA-256."""

    id: str
    name: str = ""
    actor: Actor
    digest: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    extra: dict[str, object] = field(default_factory=dict)

    def state(self, now: datetime) -> TokenState:
        """Return whether it grants access at a time."""
        if self.revoked is not None and self.revoked <= now:
            return TokenState.REVOKED
        if self.expires is not None and self.expires <= now:
            return TokenState.EXPIRED
        return TokenState.VALID
