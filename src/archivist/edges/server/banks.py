"""The server's pool of bank connections, and the context of a request that borrows one.

The pool has lanes: reads never wait for writes, and neither waits for a log that is being read. SQLite
allows one writer at a time and Python runs one thread at a time, so more connections a lane gain nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from queue import Empty, LifoQueue
from threading import Lock
from typing import NamedTuple

from archivist.bank import Bank
from archivist.edges.server.checks import Refusal
from archivist.errors import ArchivistError
from archivist.records import Actor

KEY = "archivist.visit"
# Where a server of several banks says how a request reaches the others.
REACH = "archivist.reach"
_WRITERS = 2
# Each waiting request occupies a thread, and there are threads for all lanes at this limit.
_MAX_WAITING = 100


class PoolLane(StrEnum):
    """What a connection is borrowed for: to read, to write, or for long work that may be repeated."""

    READ = "read"
    WRITE = "write"
    LOG = "upload logs"


# How long a request waits for a connection. Reading a log of 100 MB takes minutes.
_TIMEOUT_S = {PoolLane.READ: 30.0, PoolLane.WRITE: 30.0, PoolLane.LOG: 300.0}


class BankPool:
    """The connections to one bank by lane. The last one used is lent first: its caches are warm.

    A connection serves one request at a time, so that no request sees another's open transaction.
    """

    def __init__(self, open_bank: Callable[[], Bank], readers: int) -> None:
        self._open = open_bank
        self._limits = {PoolLane.READ: readers, PoolLane.WRITE: _WRITERS, PoolLane.LOG: 1}
        self._free: dict[PoolLane, LifoQueue[Bank]] = {lane: LifoQueue() for lane in PoolLane}
        self._opened = dict.fromkeys(PoolLane, 0)
        self._waiting = dict.fromkeys(PoolLane, 0)
        self._lock = Lock()

    @property
    def thread_count(self) -> int:
        """Return how many threads are needed so that no lane waits for a thread of another."""
        return sum(self._limits.values()) + len(PoolLane) * _MAX_WAITING

    @contextmanager
    def borrow(self, actor: Actor, lane: PoolLane) -> Iterator[Bank]:
        """Lend a bank that acts as an actor; wait for one when all connections of the lane are lent.

        The time spent waiting is taken off the time to wait for the write lock: one timeout covers both.
        """
        deadline = time.monotonic() + _TIMEOUT_S[lane]
        bank = self._acquire(lane)
        try:
            left_s = max(0.0, deadline - time.monotonic())
            yield bank.acting_as(actor, timeout_s=min(left_s, bank.config.store.busy_timeout_s))
        finally:
            if lane is not PoolLane.READ and any(bank.config.files):
                with suppress(ArchivistError):
                    bank.mirror.synchronise()
            self._free[lane].put(bank)

    def close(self) -> None:
        """Close every connection that is not lent: closing one in use would wait for its user."""
        with self._lock:
            for free in self._free.values():
                with suppress(Empty):
                    while True:
                        free.get_nowait().close()
            self._opened = dict.fromkeys(PoolLane, 0)

    def _acquire(self, lane: PoolLane) -> Bank:
        with suppress(Empty):
            return self._free[lane].get_nowait()
        with self._lock:
            if self._opened[lane] < self._limits[lane]:
                bank = self._open()
                self._opened[lane] += 1
                return bank
            if self._waiting[lane] >= _MAX_WAITING:
                raise _busy_refusal(lane)
            self._waiting[lane] += 1
        try:
            return self._free[lane].get(timeout=_TIMEOUT_S[lane])
        except Empty:
            raise _busy_refusal(lane) from None
        finally:
            with self._lock:
                self._waiting[lane] -= 1


def _busy_refusal(lane: PoolLane) -> Refusal:
    headers = {"Retry-After": "1"}
    return Refusal(503, "busy", f"too many requests wait to {lane}", hint="try again", headers=headers)


class BankReach(NamedTuple):
    """The banks that a request may use beside its own. Each bank's own tokens decide."""

    find_banks: Callable[[str], dict[str, Actor]]
    open_as: Callable[[str, Actor], Bank] | None
    secret: str | None

    def reachable(self) -> dict[str, Actor]:
        """Return the banks that the token opens, a person's own first, and as whom."""
        return self.find_banks(self.secret) if self.secret is not None else {}

    @contextmanager
    def open(self, names: str) -> Iterator[dict[str, Bank]]:
        """Open the banks `a,b`, or `all` that the token reaches; raise Refusal for any other.

        On connections of their own: who waited for those of two pools could wait forever.
        """
        reachable = self.reachable()
        asked = dict.fromkeys(part.strip() for part in names.split(",") if part.strip())
        if not asked:
            raise Refusal(422, "bad_input", f"{names!r} names no bank", hint="name one, or leave it out")
        wanted = list(reachable) if "all" in asked and reachable else list(asked)
        if missing := [name for name in wanted if name not in reachable]:
            hint = f"it has access to {', '.join(sorted(reachable)) or 'no bank by name'}"
            raise Refusal(403, "no_such_bank", f"the token has no access to a bank {missing[0]!r}", hint=hint)
        with ExitStack() as opened:
            yield {
                name: opened.enter_context(self.open_as(name, reachable[name]))
                for name in wanted
                if self.open_as is not None
            }


class RequestContext(NamedTuple):
    """Who sends a request: its token's id and name, its actor; and the banks that it may borrow.

    The owner is the user who started the server, by the link that was printed there.

    The middleware stores it in the request's scope under KEY.
    """

    token: str
    name: str
    actor: Actor
    banks: BankPool
    is_owner: bool = False
