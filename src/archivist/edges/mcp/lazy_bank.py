"""Open the bank at first use, run its calls one after another, and name the actor of a client."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from archivist.errors import BankError
from archivist.records.actor import Actor
from archivist.records.words import ActorKind

if TYPE_CHECKING:
    from archivist.bank import Bank

T = TypeVar("T")
# How long a call waits for calls before it and for other processes together, and how many may wait.
_TIMEOUT_S = 30.0
_MAX_WAITING = 100
UNNAMED = "mcp"
_MAX_NAME = 64


class LazyBank:
    """A bank that is opened by the first call, and again when its file was replaced.

    Not thread-safe: CallQueue runs one call after another.
    """

    def __init__(self, open_bank: Callable[[], Bank]) -> None:
        self._open = open_bank
        self._bank: Bank | None = None
        self._file: tuple[int, int] | None = None
        # How much longer the running call may wait for another process's write lock.
        self.left_s = _TIMEOUT_S

    def acting_as(self, actor: Actor) -> Bank:
        """Return the bank acting as an actor."""
        bank = self.ensure_open()
        return bank.acting_as(actor, timeout_s=min(self.left_s, bank.config.store.busy_timeout_s))

    def ensure_open(self) -> Bank:
        """Return the bank, opening it if needed; raise NoBankError when there is none."""
        if self._bank is not None and _file_identity(self._bank) != self._file:
            # Writes to a deleted or replaced file would be lost.
            self.close()
        if self._bank is None:
            self._bank = self._open()
            self._file = _file_identity(self._bank)
        return self._bank

    def close(self) -> None:
        """Close the bank; a later call opens it again."""
        bank, self._bank = self._bank, None
        if bank is not None:
            bank.close()


class CallQueue:
    """A connection to the bank on which calls run one after another."""

    def __init__(self, open_bank: Callable[[], Bank], purpose: str) -> None:
        self.bank = LazyBank(open_bank)
        self._purpose = purpose
        # Calls wait here, on the event loop, instead of each holding a thread.
        self._turn = anyio.Lock(fast_acquire=True)

    async def run(self, work: Callable[[LazyBank], T]) -> T:
        """Run work on the bank in a thread, in turn. Work that has begun finishes even if the caller left.

        The time spent waiting is taken off the time to wait for the write lock: one timeout covers both.
        """
        deadline = time.monotonic() + _TIMEOUT_S

        def run_work() -> T:
            self.bank.left_s = max(0.0, deadline - time.monotonic())
            return work(self.bank)

        if self._turn.statistics().tasks_waiting >= _MAX_WAITING:
            raise self._busy_error()
        try:
            with anyio.fail_after(_TIMEOUT_S):
                await self._turn.acquire()
        except TimeoutError:
            raise self._busy_error() from None
        try:
            return await anyio.to_thread.run_sync(run_work)
        finally:
            self._turn.release()

    def _busy_error(self) -> BankError:
        return BankError(f"busy: too many calls wait to {self._purpose}", hint="try again in a while")


def agent_from_client(client: str) -> Actor:
    """Return the agent of a client's name, which may be any text."""
    name = re.sub(r"[^\w.@+-]+", "-", client)[:_MAX_NAME].strip("-.")
    return Actor(ActorKind.AGENT, name or UNNAMED)


def _file_identity(bank: Bank) -> tuple[int, int] | None:
    try:
        found = bank.path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
