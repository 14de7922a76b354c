"""The connections that a server holds: each request borrows one bank, in the name of its own actor.

They stand in lanes: who reads never waits for who writes, and neither for a log that is being read. SQLite
lets one write at a time, and Python one think at a time, so that more than a few of a lane gain nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from queue import Empty, LifoQueue
from threading import Lock

from archivist.bank import Bank
from archivist.bus import Listener
from archivist.edges.wire.refusals import Refusal
from archivist.records import Actor

_WRITERS = 2
# Who waits for a connection waits in a thread of his own. There are so many that the other lanes go on.
_MOST_WAITING = 100


class PoolLane(StrEnum):
    """What a connection is borrowed for."""

    READ = "read"
    WRITE = "write"
    LOG = "log"


# How long somebody waits for a connection: a log of a hundred megabytes takes its time.
_PATIENCE_S = {PoolLane.READ: 30.0, PoolLane.WRITE: 30.0, PoolLane.LOG: 300.0}


class BankPool:
    """The connections to one bank, by lanes; of each the latest used first, because it is the warmest.

    One connection serves one request at a time: what is inside a transaction is nobody else's.
    """

    def __init__(self, open_bank: Callable[[], Bank], readers: int) -> None:
        self._open = open_bank
        self._most = {PoolLane.READ: readers, PoolLane.WRITE: _WRITERS, PoolLane.LOG: 1}
        self._free: dict[PoolLane, LifoQueue[Bank]] = {lane: LifoQueue() for lane in PoolLane}
        self._all: dict[PoolLane, list[Bank]] = {lane: [] for lane in PoolLane}
        self._waiting = dict.fromkeys(PoolLane, 0)
        self._lock = Lock()
        self._listeners: list[Listener] = []

    @property
    def thread_count(self) -> int:
        """Return how many threads it takes so that no lane ever waits for the thread of another."""
        return sum(self._most.values()) + len(PoolLane) * _MOST_WAITING

    def subscribe(self, listener: Listener) -> None:
        """Let a listener hear the live messages of every connection, also of later ones."""
        with self._lock:
            self._listeners.append(listener)
            for bank in self._all_banks():
                bank.bus.subscribe(listener)

    @contextmanager
    def borrow(self, actor: Actor, lane: PoolLane) -> Iterator[Bank]:
        """Lend a bank that acts in somebody's name; wait for one when all of the lane are out.

        Who waited for it waits so much less for another process to let him write: it is one patience.
        """
        until = time.monotonic() + _PATIENCE_S[lane]
        bank = self._acquire(lane)
        try:
            left_s = max(0.0, until - time.monotonic())
            yield bank.acting_as(actor, timeout_s=min(left_s, bank.config.store.busy_timeout_s))
        finally:
            self._free[lane].put(bank)

    def close(self) -> None:
        """Let go of every connection that is not lent: to close one in use is to wait for its user."""
        with self._lock:
            for free in self._free.values():
                with suppress(Empty):
                    while True:
                        free.get_nowait().close()
            self._all = {lane: [] for lane in PoolLane}

    def _all_banks(self) -> list[Bank]:
        return [bank for banks in self._all.values() for bank in banks]

    def _acquire(self, lane: PoolLane) -> Bank:
        try:
            return self._free[lane].get_nowait()
        except Empty:
            bank = self._open_another(lane)
        return bank if bank is not None else self._wait_for_bank(lane)

    def _wait_for_bank(self, lane: PoolLane) -> Bank:
        with self._lock:
            if self._waiting[lane] >= _MOST_WAITING:
                raise _busy_refusal(lane)
            self._waiting[lane] += 1
        try:
            return self._free[lane].get(timeout=_PATIENCE_S[lane])
        except Empty:
            raise _busy_refusal(lane) from None
        finally:
            with self._lock:
                self._waiting[lane] -= 1

    def _open_another(self, lane: PoolLane) -> Bank | None:
        with self._lock:
            if len(self._all[lane]) >= self._most[lane]:
                return None
            bank = self._open()
            for listener in self._listeners:
                bank.bus.subscribe(listener)
            self._all[lane].append(bank)
            return bank


def _busy_refusal(lane: PoolLane) -> Refusal:
    again = {"Retry-After": "1"}
    what = {PoolLane.READ: "read", PoolLane.WRITE: "write", PoolLane.LOG: "have a log read"}[lane]
    return Refusal(503, "busy", f"too many wait to {what}", hint="try again", headers=again)
