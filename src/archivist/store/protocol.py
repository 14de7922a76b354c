"""A bank's storage, and the views and transactions that services use of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from archivist.store.sql_eraser import Eraser as Eraser
from archivist.store.sql_reader import Reader as Reader
from archivist.store.sql_writer import Writer as Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    from archivist.records import Actor
    from archivist.store.results import Damage, SearchFilter, TextQuery


class Store(Protocol):
    """A bank's storage. Opened once, used from one process, safe beside others."""

    @property
    def server(self) -> str:
        """Return the server that holds the bank, and the bank's name there; empty for a file."""

    @property
    def is_read_only(self) -> bool:
        """Say whether the bank can only be read here."""

    @property
    def is_same_bank(self) -> bool:
        """Say whether the bank at the place is still the one that was opened."""

    @property
    def is_reading(self) -> bool:
        """Say whether this store is within a view of its own."""

    @property
    def is_writing(self) -> bool:
        """Say whether this store is within a transaction of its own."""

    def version(self) -> int:
        """Return a number that changes whenever somebody else has changed the bank."""

    def best_banks(
        self,
        stores: Sequence[Store],
        words: TextQuery,
        search_filter: SearchFilter,
        vector: Sequence[float],
        limit: int,
    ) -> set[int] | None:
        """Return which of these stores have the best matches, by their places; None if each must be asked.

        So many have the best by words, and as many by meaning.
        """

    def explain(self, error: Exception) -> None:
        """Raise BankDamagedError if the bank's content is why the code failed in a way nobody foresaw.

        In a bank that is whole such an error is a bug, and stays what it is.
        """

    def check_engine(self) -> tuple[bool, str]:
        """Say whether the engine has all that it needs, and which one it is or what it lacks."""

    def find_damage(self) -> list[Damage]:
        """Check the file, its tables and indexes; the ledger and the records are checked by `verify`."""

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a view that does not change while it is read."""

    def writing(
        self, actor: Actor, now: datetime, *, lock_timeout_s: float | None = None
    ) -> AbstractContextManager[Writer]:
        """Open a transaction in the actor's name; it is rolled back when the block raises.

        A bank that another process is writing is waited for as configured, or for `lock_timeout_s`.
        """

    def erasing(self, actor: Actor, now: datetime) -> AbstractContextManager[Eraser]:
        """Open a transaction that can also delete for good."""

    def settle(self) -> None:
        """Write what a log beside the store holds into the store itself, as far as others let it."""

    def setting_at_rest(self, name: str) -> str:
        """Return a value of the bank itself as the store holds it, whatever a log beside it says."""

    def scrub(self) -> bool:
        """Leave no trace of what was deleted; False while another process prevents it."""

    def count_raw_bytes(self, needles: Sequence[bytes]) -> dict[str, int]:
        """Count needles in the raw bytes of each file of the store."""

    def reindex(self) -> None:
        """Build everything derived again: indexes, the text index and the tallies."""

    def back_up(self, target: Path) -> None:
        """Copy the bank as it is now into a new file, while others read and write it."""

    def close(self) -> None:
        """Close the bank."""
