"""The doors into other libraries: each is imported by its own name, and needs its extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.errors import InputError
from archivist.records.actor import Actor
from archivist.records.words import ActorKind

if TYPE_CHECKING:
    from archivist.bank import Bank


def missing_library_error(library: str, extra: str) -> InputError:
    """Return the error for a library that is not installed, with what installs it."""
    return InputError(
        f"{library} is not installed", hint=f'pip install "archivist-memory[{extra}]" brings it in'
    )


def with_actor(
    bank: Bank, name: str, actor: Actor | None = None, *, kind: ActorKind = ActorKind.AGENT
) -> Bank:
    """Return a bank in the name of the program that is let in: as told, else with no person's rights.

    Who opens a bank in Python is a person unless they say otherwise; a model that they hand it to is none.
    """
    if actor is None and bank.actor.kind is not ActorKind.HUMAN:
        return bank
    return bank.acting_as(actor or Actor(kind, name))
