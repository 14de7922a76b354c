"""Integrations with other libraries: each is imported by its own name, and needs its extra."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from archivist.errors import ArchivistError, InputError
from archivist.records.actor import Actor
from archivist.records.words import ActorKind

if TYPE_CHECKING:
    from archivist.bank import Bank

T = TypeVar("T")


def missing_library_error(library: str, extra: str) -> InputError:
    """Return the error for a library that is not installed, with the command that installs it."""
    return InputError(f"{library} is not installed", hint=f'pip install "archivist-memory[{extra}]"')


def error_with_hint(error: ArchivistError) -> str:
    """Return what went wrong and what to do about it, in one line."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


def with_actor(
    bank: Bank, name: str, actor: Actor | None = None, *, kind: ActorKind = ActorKind.AGENT
) -> Bank:
    """Return the bank acting as the given actor, else as a named agent if it acts as a person.

    A bank that is opened in Python acts as a person by default; a model must not have a person's rights.
    """
    if actor is None and bank.actor.kind is not ActorKind.HUMAN:
        return bank
    return bank.acting_as(actor or Actor(kind, name))


async def run_to_completion(work: Callable[[], T]) -> T:
    """Run work in a thread; if the caller is cancelled meanwhile, wait for its end first."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
