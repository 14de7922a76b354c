"""The live messages of a bank: one bus that doors subscribe to.

The names are the documents': `reflection_start`, `reflection_complete`, `memories_added`, `memory_highlight`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import NamedTuple

REFLECTION_START = "reflection_start"
REFLECTION_COMPLETE = "reflection_complete"
REFLECTION_FAILED = "reflection_failed"
PROPOSING_FAILED = "proposing_failed"
MEMORIES_ADDED = "memories_added"
MEMORY_HIGHLIGHT = "memory_highlight"
TASK_ENDED = "task_ended"
TASK_STEP = "task_step"


@dataclass(frozen=True, slots=True)
class Message:
    """Something that just happened, told to whoever listens."""

    type: str
    time: datetime
    data: dict[str, object] = field(default_factory=dict)


class StoredMessage(NamedTuple):
    """A message that a bank keeps for others: its number, and the ledger's last entry when it was told."""

    number: int
    seq: int
    message: Message


Listener = Callable[[Message], None]


class Bus:
    """Pass messages to listeners in the order they subscribed; one that fails does not stop the others."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._lock = Lock()
        self.failures: list[str] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the function returned takes it away again."""
        with self._lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def publish(self, message: Message) -> None:
        """Tell every listener."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                listener(message)
            except Exception as error:  # noqa: BLE001 a door that broke must not break what it watches
                self.failures.append(f"{message.type}: {error!r}")
