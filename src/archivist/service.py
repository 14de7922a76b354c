"""What all services have in common: their bank, the check of access, and the check of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.errors import InputError

if TYPE_CHECKING:
    from archivist.access.rights import Layer, Verb
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# As in git. Only longer ids than these are shown shortened: `build-1` never means `build-10`.
_SHORTEST_BEGINNING = 4
LONGEST_WHOLE_ID = 20
# As many as a line holds.
_LISTED = 3


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


def complete_id(reader: Reader, kind: str, name: str) -> str:
    """Return the only long id that begins with a name of four characters or more, or the name.

    A run comes before its parts and subagents, whose ids begin with its own.
    """
    if len(name) < _SHORTEST_BEGINNING or not name.isascii():
        return name
    # Hooks ask for no ids, and need not import it.
    from archivist.store.filters import starts_with

    rows = reader.select_fields(kind, ("id",), *starts_with("id", name), order=("id",))
    found = [row[0] for row in rows if len(row[0]) > LONGEST_WHOLE_ID]
    if not all(each.startswith(found[0]) for each in found):
        listed = ", ".join(found[:_LISTED]) + (", …" if len(found) > _LISTED else "")
        raise InputError(f"{name!r} is the beginning of {len(found)} ids: {listed}", hint="write more of it")
    return found[0] if found else name


def require_name(name: str, what: str) -> None:
    """Refuse a name that says nothing: a script's unset variable must not mean anything at all."""
    if not name.strip():
        raise InputError(f"the name of the {what} is empty", hint="is a variable of the script unset?")
