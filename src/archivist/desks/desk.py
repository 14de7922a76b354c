"""What the desks of the layers and tiers have in common: a bank, and its check of who may."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.access import Layer, Verb
    from archivist.bank import Bank


class Desk:
    """The place where the work on one layer is done, in the name of the bank's actor."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Refuse, and note in the ledger, what the actor may not do."""
        self._bank.require(layer, verb, owner=owner)
