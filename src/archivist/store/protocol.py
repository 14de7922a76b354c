"""What a store can do, whatever the engine."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from archivist.store.filters import Condition
from archivist.store.results import (
    IndexedDocument,
    IndexHit,
    PendingEmbedding,
    QueuedRun,
    SearchFilter,
    StoredResponse,
    TextQuery,
)

if TYPE_CHECKING:
    from archivist.bus import Message, StoredMessage
    from archivist.forget.receipt import ErasureQuery
    from archivist.forget.retention import Sizes
    from archivist.records import Actor, Event, Lesson, Tally
    from archivist.store.ledger import LedgerChange, LedgerEntry, Verification

R = TypeVar("R")


class Reader(Protocol):
    """One consistent view of the bank. Reading never writes."""

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
        """Return the records for which all conditions hold; a `-` before an order field turns it round.

        `after` is a place in the order, the value of each of its fields: what stands behind it is returned.
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
        """Return only some fields, raw: for scans that need not build whole records.

        The record may be named by its kind, so that a cold process need not make its class.
        """
        ...

    def lessons_with_summary(self, summary: str) -> list[Lesson]:
        """Return the lessons whose summary is these very words."""
        ...

    def count(self, record: type[Any] | str, *conditions: Condition) -> int:
        """Return how many records there are for which all conditions hold."""
        ...

    def total(self, kind: str, field: str, *conditions: Condition) -> float:
        """Return the sum of a field over the records for which all conditions hold."""
        ...

    def values(self, kind: str, field: str) -> list[str]:
        """Return the different texts that a field holds, in order, but for the empty one."""
        ...

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        """Return what briefs and verdicts say of these lessons; lessons never briefed are left out."""
        ...

    def document_count(self) -> int:
        """Return about how many documents the index holds."""
        ...

    def count_documents_with(self, word: str, *, at_most: int) -> int:
        """Return how many documents hold a word, counting no further than asked."""
        ...

    def known_speakers(self, names: Sequence[str]) -> set[str]:
        """Return which of the names are those of somebody who speaks in the bank."""
        ...

    def search(self, words: TextQuery, *, search_filter: SearchFilter, limit: int) -> list[IndexHit]:
        """Return the best documents that hold any of the words, of those that may be found."""
        ...

    def nearest(
        self, query: Sequence[float], embedder: str, *, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        """Return the documents whose vectors are nearest, with the cosine."""
        ...

    def filter_places(self, places: Sequence[int], search_filter: SearchFilter) -> list[int]:
        """Return those of the places that may be found."""
        ...

    def cosines(self, query: Sequence[float], embedder: str, places: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of these documents that has a vector."""
        ...

    def sample_cosines(self, query: Sequence[float], embedder: str) -> list[float]:
        """Return the cosines of a sample of documents: how alike this query is to anything at all."""
        ...

    def indexed_documents(self, places: Sequence[int]) -> dict[int, IndexedDocument]:
        """Return what the index knows of these documents."""
        ...

    def neighbours(self, thread: str, first: int, last: int) -> list[IndexedDocument]:
        """Return the documents of a thread between two positions, in order."""
        ...

    def documents_at(self, positions: Sequence[tuple[str, int]]) -> list[IndexedDocument]:
        """Return the documents that stand at these positions of these threads."""
        ...

    def place_of(self, kind: str, record: str) -> int | None:
        """Return a record's place in the index."""
        ...

    def records(self, kind: str, ids: Sequence[str]) -> dict[str, Any]:
        """Return records of one kind by their ids."""
        ...

    def embedder_in_use(self) -> str:
        """Return the embedder whose vectors are searched, or an empty text while there is none."""
        ...

    def pending_embeddings(
        self, embedder: str, *, limit: int, all_or_nothing: bool = False
    ) -> list[PendingEmbedding]:
        """Return documents that have no vector of this embedder, with what is to be embedded."""
        ...

    def pending_embedding_count(self, embedder: str) -> int:
        """Return how many documents have no vector of this embedder."""
        ...

    def changes(
        self, *, record_id: str | None = None, kind: str = "", after: int = 0, limit: int | None = None
    ) -> list[LedgerChange]:
        """Return ledger entries in order, of one record, of one kind or of all."""
        ...

    def entries(self, *, after: int, limit: int) -> list[LedgerEntry]:
        """Return ledger entries in order, without what they say of the records."""
        ...

    def last_entry(self) -> int:
        """Return the number of the ledger's last entry, or 0."""
        ...

    def get_cached(self, name: Hashable, build: Callable[[], R], *, kinds: frozenset[str]) -> R:
        """Return what was made by this name, made again only when records of these kinds have changed.

        Nobody may change what is returned.
        """
        ...

    def verify(self) -> Verification:
        """Check every seal of the ledger, and that every record is as its last entry left it."""
        ...

    def setting(self, name: str) -> str:
        """Return a value that belongs to the bank itself (its id), or an empty text."""
        ...

    def run_count(self) -> int:
        """Return how many runs have aged the bank."""
        ...

    def file_runs(self, digest: str) -> list[str] | None:
        """Return the runs that a file of this content held, or None when it was never captured."""
        ...

    def queued_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection, oldest first."""
        ...

    def messages(self, *, after: int) -> list[StoredMessage]:
        """Return the live messages that were kept after this one, oldest first."""
        ...

    def last_message(self) -> int:
        """Return the number of the last live message, or 0."""
        ...

    def stored_response(self, request: str) -> StoredResponse | None:
        """Return what a request by this name was answered, or None."""
        ...


class Writer(Reader, Protocol):
    """A transaction: all that it does is there afterwards, or nothing is."""

    def put(self, record: Any, verb: str) -> bool:
        """Insert or replace a record and enter it in the ledger; False when it was the same already."""
        ...

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        """Add a run's events under one ledger entry and return how many were new or changed."""
        ...

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record and enter that in the ledger; False when there was none."""
        ...

    def next_number(self) -> int:
        """Return the next number for a short id; never the same twice."""
        ...

    def reserve_number(self, number: int) -> None:
        """Keep later numbers above this one, which came from outside."""
        ...

    def queue(self, run: str) -> None:
        """Let a run wait for reflection."""
        ...

    def lease(self, holder: str, until: datetime, *, runs: Sequence[str] = (), limit: int = 1) -> list[str]:
        """Take waiting runs, oldest first, that nobody else holds; they are ours until the given time."""
        ...

    def end_lease(self, run: str, holder: str, error: str = "") -> bool:
        """End a lease: the run leaves the queue, or after an error waits again. False when it was lost."""
        ...

    def release_lease(self, run: str, holder: str) -> None:
        """End a lease as if it had never been: the run waits on, and nothing was tried."""
        ...

    def dequeue_run(self, run: str, until: datetime) -> None:
        """Take a run out of the queue that was reflected on; one that was queued after a time waits on."""
        ...

    def mark_file_captured(self, digest: str, runs: Sequence[str]) -> None:
        """Note that a file of this content was captured, and which runs it held."""
        ...

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        """Store packed vectors of documents that have not changed meanwhile; return how many."""
        ...

    def use_embedder(self, embedder: str) -> None:
        """Search with one embedder's vectors from now on, and drop all others'."""
        ...

    def record_denial(self, verb: str, layer: str) -> None:
        """Enter in the ledger that the actor was refused to do something to a layer."""
        ...

    def merge_index(self) -> bool:
        """Bring scattered pieces of the text index together, a part of the work; say whether any was done."""
        ...

    def store_message(self, message: Message, *, max_messages: int) -> None:
        """Keep a live message behind the ledger's last entry, and of all the latest so many."""
        ...

    def store_response(self, request: str, response: StoredResponse) -> None:
        """Keep what a request by this name was answered."""
        ...

    def drop_responses_before(self, moment: datetime) -> None:
        """Let go of the answers that are older."""
        ...

    def set_setting(self, name: str, value: str) -> None:
        """Set a value that belongs to the bank itself."""
        ...


class Eraser(Writer, Protocol):
    """A transaction that can also take away what a bank otherwise keeps forever."""

    def find_mentions(self, what: ErasureQuery) -> dict[str, list[str]]:
        """Return the ids of the records that hold a text, by kind."""
        ...

    def texts_still_stored(self, texts: Iterable[str]) -> set[str]:
        """Return which of these texts some record still holds."""
        ...

    def count_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Count the rows that hold a text outside of the records, by table."""
        ...

    def payloads_mentioning(self, what: ErasureQuery) -> list[int]:
        """Return the ledger entries whose payloads hold a text."""
        ...

    def payloads_of(self, kind: str, record: str) -> list[int]:
        """Return the ledger entries that have a payload, of one record."""
        ...

    def erase_payloads(self, entries: Sequence[int]) -> int:
        """Take payloads away; their entries stay in the chain and show as erased."""
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
        """Drop what was counted for a lesson that is gone."""
        ...

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Take a text out of what is kept beside the records; return the rows changed by table."""
        ...

    def drop_orphan_speakers(self) -> None:
        """Forget the speakers of whom no document is left."""
        ...

    def index_places(self, kind: str, ids: Sequence[str]) -> list[int]:
        """Return the places in the index of these records."""
        ...

    def drop_vectors(self, places: Sequence[int]) -> None:
        """Take the vectors of these documents away; those that stay are embedded anew."""
        ...

    def vector_count(self, places: Sequence[int]) -> int:
        """Count the vectors of these places, of whatever embedder."""
        ...

    def count_tombstones(self) -> int:
        """Count the marks of deleted documents whose words the text index still holds."""
        ...

    def record_receipt(self, name: str, content: Mapping[str, object]) -> None:
        """Enter in the ledger that and how something was erased."""
        ...

    def was_erased(self, name: str) -> bool:
        """Say whether a receipt names this record."""
        ...


class Store(Protocol):
    """A bank's place. Opened once, used from one process, safe beside others."""

    @property
    def is_same_bank(self) -> bool:
        """Say whether what was opened is still what its place holds."""
        ...

    @property
    def is_reading(self) -> bool:
        """Say whether this store is within a view of its own."""
        ...

    @property
    def is_writing(self) -> bool:
        """Say whether this store is within a transaction of its own."""
        ...

    def version(self) -> int:
        """Return a number that is another one whenever somebody else has changed the bank since."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a view that does not change while it is read."""
        ...

    def writing(
        self, actor: Actor, now: datetime, *, lock_timeout_s: float | None = None
    ) -> AbstractContextManager[Writer]:
        """Open a transaction in the actor's name; it is undone when the block raises.

        A bank that another writes is waited for as configured, or so long.
        """
        ...

    def erasing(self, actor: Actor, now: datetime) -> AbstractContextManager[Eraser]:
        """Open a transaction that can also take away for good."""
        ...

    def scrub(self) -> bool:
        """Leave no trace of what was deleted; False while another process stands in the way."""
        ...

    def count_raw_bytes(self, needles: Sequence[bytes]) -> dict[str, int]:
        """Count needles in the raw bytes of each file of the store."""
        ...

    def sizes(self) -> Sizes:
        """Return how large the bank is, and how much the records of each kind say."""
        ...

    def run_sizes(self, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the number and size of each run's events, besides those named."""
        ...

    def reindex(self) -> None:
        """Build everything derived again: the text index and the tallies."""
        ...

    def close(self) -> None:
        """Let go of the bank."""
        ...
