"""What all services have in common: their bank, the check of access, and the check of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.errors import InputError

if TYPE_CHECKING:
    from archivist.access.rights import Layer, Verb
    from archivist.bank import Bank


class BankService:
    """Work on one subject of a bank, in the name of its actor."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Refuse, and note in the ledger, what the actor may not do."""
        self._bank.require(layer, verb, owner=owner)

    def explain(self, error: Exception) -> None:
        """Raise BankDamagedError if the bank's content is why the code failed in a way nobody foresaw."""
        self._bank.store.explain(error)


def require_name(name: str, what: str) -> None:
    """Refuse a name that says nothing: a script's unset variable must not mean anything at all."""
    if not name.strip():
        raise InputError(f"the name of the {what} is empty", hint="is a variable of the script unset?")
