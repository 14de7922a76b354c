"""Open the bank when it is first needed, let calls in one by one, and say in whose name a request acts."""

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
# How long a call waits for those before it and for other processes, all in all; and how many may wait.
_PATIENCE_S = 30.0
_MOST_WAITING = 100
UNNAMED = "mcp"
_MAX_NAME = 64
_ODD = re.compile(r"[^\w.@+-]+")


class LazyBank:
    """A bank that is opened by the first call that needs it, and again when its file was replaced.

    Not for several threads at once: its caller lets one call in after another.
    """

    def __init__(self, open_bank: Callable[[], Bank]) -> None:
        self._open = open_bank
        self._bank: Bank | None = None
        self._file: tuple[int, int] | None = None
        # How much longer who has its turn may wait for another process to let it write.
        self.left_s = _PATIENCE_S

    def acting_as(self, actor: Actor) -> Bank:
        """Return the bank in an actor's name."""
        bank = self.ensure_open()
        return bank.acting_as(actor, timeout_s=min(self.left_s, bank.config.store.busy_timeout_s))

    def ensure_open(self) -> Bank:
        """Return the bank, opened now if it is not; NoBankError when there is none."""
        if self._bank is not None and _file_identity(self._bank) != self._file:
            # What is written to a file that was deleted or swapped is lost with it.
            self.close()
        if self._bank is None:
            self._bank = self._open()
            self._file = _file_identity(self._bank)
        return self._bank

    def close(self) -> None:
        """Let go of the bank; a later call opens it again."""
        bank, self._bank = self._bank, None
        if bank is not None:
            bank.close()


class CallQueue:
    """A way to the bank, with a connection of its own, on which one call goes after another."""

    def __init__(self, open_bank: Callable[[], Bank], purpose: str) -> None:
        self.bank = LazyBank(open_bank)
        self._purpose = purpose
        # The connection takes one call at a time anyhow; here they queue without holding threads.
        self._turn = anyio.Lock(fast_acquire=True)

    async def run(self, work: Callable[[LazyBank], T]) -> T:
        """Do work on the bank in a thread, in turn. Once begun it is finished, whoever left.

        Who waited for its turn waits so much less for another process to let it write: it is one patience.
        """
        until = time.monotonic() + _PATIENCE_S
        await self._acquire_turn()
        try:
            return await anyio.to_thread.run_sync(self._run_work, work, until)
        finally:
            self._turn.release()

    async def _acquire_turn(self) -> None:
        if self._turn.statistics().tasks_waiting >= _MOST_WAITING:
            raise self._busy_error()
        try:
            with anyio.fail_after(_PATIENCE_S):
                await self._turn.acquire()
        except TimeoutError:
            raise self._busy_error() from None

    def _run_work(self, work: Callable[[LazyBank], T], until: float) -> T:
        self.bank.left_s = max(0.0, until - time.monotonic())
        return work(self.bank)

    def _busy_error(self) -> BankError:
        return BankError(f"busy: too many wait to {self._purpose}", hint="try again in a while")


def agent_from_client(client: str) -> Actor:
    """Return the agent that a client's name stands for; the name may be anything that a client sends."""
    name = _ODD.sub("-", client)[:_MAX_NAME].strip("-.")
    return Actor(ActorKind.AGENT, name or UNNAMED)


def _file_identity(bank: Bank) -> tuple[int, int] | None:
    try:
        found = bank.path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
