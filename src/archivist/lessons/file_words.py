"""The one rule for every door by which the words of a file come in: they are the file's.

A person runs the import, but whoever can write the file chose the words. Unless that person vouches for them
(`--approve`), they are marked wherever they are told, change nothing that others said here, and where they
would be told as facts or unasked, risky ones are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, Verb
from archivist.lessons.agent_words import order_suspicion
from archivist.lessons.risky_text import is_plain_name, suspicion
from archivist.records.layers import FILE_SOURCE
from archivist.records.words import ActorKind

if TYPE_CHECKING:
    from archivist.bank import Bank

VOUCH_HINT = "--approve if you have read the file and vouch for it"


class FileWords(NamedTuple):
    """The words of one file; `is_approved` if a person vouches for them."""

    file: str
    is_approved: bool = False

    @property
    def speaker(self) -> str:
        """Return who says them, as lists show it; nothing where a person vouches for them."""
        name = Path(self.file).name
        shown = name if is_plain_name(name) else ""
        return "" if self.is_approved else f"{FILE_SOURCE} {shown}".rstrip()

    def refusal(self, *texts: str) -> str:
        """Return why these words may not be told as facts, or an empty string."""
        return "" if self.is_approved else suspicion(*texts) or order_suspicion(*texts)


def require_voucher(bank: Bank, layer: Layer, what: str) -> None:
    """Refuse everybody but a person: only a person can vouch for what others wrote."""
    if bank.actor.kind is not ActorKind.HUMAN:
        hint = "only a person can vouch for what others wrote"
        bank.refuse(layer, Verb.DECIDE, what=what, hint=hint)
