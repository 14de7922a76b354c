"""The connections that a server holds: each request borrows one bank, in the name of its own actor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue
from threading import Lock

from archivist.bank import Bank
from archivist.edges.http.problems import Refusal
from archivist.messages import Listener
from archivist.records import Actor

_PATIENCE_S = 30.0


class Banks:
    """A few connections to one bank, the latest used first, because it is the warmest.

    One connection serves one request at a time: what is inside a transaction is nobody else's.
    """

    def __init__(self, opened: Callable[[], Bank], most: int) -> None:
        self._open = opened
        self._free: LifoQueue[Bank] = LifoQueue()
        self._all: list[Bank] = []
        self._most = most
        self._lock = Lock()
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Let a listener hear the live messages of every connection, also of later ones."""
        with self._lock:
            self._listeners.append(listener)
            for bank in self._all:
                bank.bus.subscribe(listener)

    @contextmanager
    def lent(self, actor: Actor) -> Iterator[Bank]:
        """Lend a bank that acts in somebody's name; wait for one when all are out."""
        bank = self._take()
        try:
            yield bank.acting_as(actor)
        finally:
            self._free.put(bank)

    def close(self) -> None:
        """Let go of every connection."""
        with self._lock:
            for bank in self._all:
                bank.close()
            self._all.clear()

    def _take(self) -> Bank:
        try:
            return self._free.get_nowait()
        except Empty:
            bank = self._more()
        if bank is not None:
            return bank
        try:
            return self._free.get(timeout=_PATIENCE_S)
        except Empty:
            raise Refusal(503, "busy", "every connection to the bank is busy", hint="try again") from None

    def _more(self) -> Bank | None:
        with self._lock:
            if len(self._all) >= self._most:
                return None
            bank = self._open()
            for listener in self._listeners:
                bank.bus.subscribe(listener)
            self._all.append(bank)
            return bank
