"""What an engine must write by hand. Everything else is composed of it, in `protocol.py`.

Orders and comparisons follow SQLite: in an ascending order a missing value comes before any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from archivist.bus import Message, StoredMessage
    from archivist.records import Actor, Event, Tally
    from archivist.store.erasure import ErasureQuery
    from archivist.store.filters import Condition
    from archivist.store.ledger import LedgerEntry
    from archivist.store.results import (
        IndexedDocument,
        IndexHit,
        QueuedRun,
        SearchFilter,
        StoredResponse,
        TextQuery,
        UnembeddedDocument,
        ValueCache,
    )

R = TypeVar("R")


class EngineReader(Protocol):
    """One consistent view of the bank. Reading never writes."""

    # None within a transaction: what it sees may be rolled back, and its ledger numbers given again.
    value_cache: ValueCache | None

    # Records

    def get(self, record: type[R], record_id: str) -> R | None:
        """Return a record by its id, or None."""
        ...

    def select(
        self,
        record: type[R],
        *conditions: Condition,
        order: Sequence[str] = (),
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        """Return the records for which all conditions hold; a `-` before an order field reverses it.

        `after` is a place in the order, the value of each of its fields: the records behind it are returned.
        Raise CursorError for values that no record's place can have.
        """
        ...

    def select_fields(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        *conditions: Condition,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return only some fields, as the table holds them, for scans that need no whole records.

        The record may be named by its kind, so that a cold process need not make its class.
        """
        ...

    def count(self, record: type[Any] | str, *conditions: Condition) -> int:
        """Return the number of records for which all conditions hold."""
        ...

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        """Return what briefs and verdicts say of these lessons; lessons never briefed are left out.

        The engine keeps the sums with every write: counting all briefs and verdicts would take a brief longer
        than everything else that it does.
        """
        ...

    # The ledger and what belongs to the bank itself

    def ledger(
        self,
        *,
        record_id: str | None = None,
        kind: str = "",
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
        with_payloads: bool = True,
    ) -> Iterator[tuple[LedgerEntry, str | None]]:
        """Yield ledger entries in order with their payloads; None for a payload that was erased."""
        ...

    def last_entry(self) -> int:
        """Return the number of the ledger's last entry, or 0."""
        ...

    def setting(self, name: str) -> str:
        """Return a value that belongs to the bank itself (its id), or an empty text."""
        ...

    def file_runs(self, digest: str) -> list[str] | None:
        """Return the runs in a captured file of this content, or None when it was never captured."""
        ...

    def queued_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection, oldest first."""
        ...

    def messages(self, *, after: int) -> list[StoredMessage]:
        """Return the live messages that were stored after this one, oldest first."""
        ...

    def last_message(self) -> int:
        """Return the number of the last live message, or 0."""
        ...

    def stored_response(self, request: str) -> StoredResponse | None:
        """Return the response to an earlier request of this name, or None."""
        ...

    # The index

    def document_count(self) -> int:
        """Return about how many documents the index holds."""
        ...

    def count_documents_with(self, word: str, *, at_most: int) -> int:
        """Return how many documents contain a word, counting no further than `at_most`."""
        ...

    def known_speakers(self, names: Sequence[str]) -> set[str]:
        """Return which of the names belong to a speaker in the bank."""
        ...

    def search(self, words: TextQuery, *, search_filter: SearchFilter, limit: int) -> list[IndexHit]:
        """Return the best documents that contain any of the words and pass the filter."""
        ...

    def nearest(
        self, query: Sequence[float], embedder: str, *, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        """Return the documents whose vectors are nearest, with the cosine."""
        ...

    def filter_places(self, places: Sequence[int], search_filter: SearchFilter) -> list[int]:
        """Return the places whose documents pass the filter."""
        ...

    def cosines(self, query: Sequence[float], embedder: str, places: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of these documents that has a vector."""
        ...

    def sample_cosines(self, query: Sequence[float], embedder: str) -> list[float]:
        """Return the cosines of a sample of documents: how similar this query is to anything at all."""
        ...

    def indexed_documents(self, places: Sequence[int]) -> dict[int, IndexedDocument]:
        """Return what the index knows of these documents."""
        ...

    def neighbours(self, thread: str, first: int, last: int) -> list[IndexedDocument]:
        """Return the documents of a thread between two positions, in order."""
        ...

    def documents_at(self, positions: Sequence[tuple[str, int]]) -> list[IndexedDocument]:
        """Return the documents at these positions of these threads."""
        ...

    def index_places(self, kind: str, ids: Sequence[str]) -> list[int]:
        """Return the places of these records in the index."""
        ...

    def embedder_in_use(self) -> str:
        """Return the embedder whose vectors are searched, or an empty text while there is none."""
        ...

    def unembedded_documents(self, embedder: str, *, limit: int) -> list[UnembeddedDocument]:
        """Return documents that have no vector of this embedder."""
        ...

    def pending_embedding_count(self, embedder: str) -> int:
        """Return how many documents have no vector of this embedder."""
        ...


class EngineWriter(EngineReader, Protocol):
    """A transaction in one actor's name at one time: all that it does is there afterwards, or nothing is."""

    actor: Actor
    now: datetime

    def put(self, record: Any, verb: str) -> bool:
        """Insert or replace a record and enter it in the ledger; False when it was the same already."""
        ...

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        """Add a run's events under one ledger entry and return how many were new or changed."""
        ...

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record and enter that in the ledger; False when there was none."""
        ...

    def append_entry(self, verb: str, kind: str, record: str, after: object) -> None:
        """Append an entry to the ledger, with what it leaves behind."""
        ...

    def set_setting(self, name: str, value: str) -> None:
        """Set a value that belongs to the bank itself."""
        ...

    def queue(self, run: str) -> None:
        """Queue a run for reflection; a run that is being reflected on is queued again."""
        ...

    def lease(self, holder: str, until: datetime, *, runs: Sequence[str] = (), limit: int = 1) -> list[str]:
        """Lease queued runs that nobody else holds, oldest first, until the given time."""
        ...

    def end_lease(self, run: str, holder: str, error: str = "") -> bool:
        """End a lease: the run leaves the queue, or after an error waits again. False when it was lost."""
        ...

    def release_lease(self, run: str, holder: str) -> None:
        """Give a lease back unused: the run stays queued, and the attempt is not counted."""
        ...

    def dequeue_run(self, run: str, until: datetime) -> None:
        """Take a run out of the queue unless it was queued after this time."""
        ...

    def mark_file_captured(self, digest: str, runs: Sequence[str]) -> None:
        """Record that a file of this content was captured, and which runs were in it."""
        ...

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        """Store packed vectors of documents that have not changed meanwhile; return how many."""
        ...

    def use_embedder(self, embedder: str) -> None:
        """Search with one embedder's vectors from now on, and delete those of all others."""
        ...

    def merge_index(self) -> bool:
        """Merge scattered pieces of the text index, a part of the work; say whether any was done."""
        ...

    def store_message(self, message: Message, *, max_messages: int) -> None:
        """Store a live message behind the ledger's last entry, and keep only the latest messages."""
        ...

    def store_response(self, request: str, response: StoredResponse) -> None:
        """Store the response to a request of this name."""
        ...

    def drop_responses_before(self, moment: datetime) -> None:
        """Delete the responses that are older."""
        ...


class EngineEraser(EngineWriter, Protocol):
    """A transaction that can also delete what a bank otherwise keeps forever."""

    def record_texts(self, record: type[Any]) -> Iterator[tuple[str, str]]:
        """Yield the id of each record with all of its texts."""
        ...

    def other_texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield table, key and texts of each row beside the records and the ledger."""
        ...

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Delete a text from the rows beside the records; return the number of rows changed by table."""
        ...

    def erase_payloads(self, entries: Sequence[int]) -> int:
        """Delete payloads; their entries stay in the chain and show as erased."""
        ...

    def remove_events(
        self, run: str, verb: str, *, only: Iterable[str] = (), excluded: Iterable[str] = ()
    ) -> int:
        """Remove a run's events, or only some, or all but some, under one ledger entry."""
        ...

    def forget_run(self, run: str) -> None:
        """Take a run out of the queue and off the files that held it; those files are not read again."""
        ...

    def forget_tally(self, lesson: str) -> None:
        """Delete the counts of a lesson that is gone."""
        ...

    def drop_orphan_speakers(self) -> None:
        """Delete the speakers of whom no document is left."""
        ...

    def drop_vectors(self, places: Sequence[int]) -> None:
        """Delete the vectors of these documents; the documents that stay are embedded again."""
        ...

    def vector_count(self, places: Sequence[int]) -> int:
        """Count the vectors at these places, of any embedder."""
        ...

    def count_tombstones(self) -> int:
        """Count the marks of deleted documents whose words the text index still holds."""
        ...
