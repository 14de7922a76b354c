"""What an engine must write by hand, and what is composed of that for all engines, for services to use.

Orders and comparisons follow SQLite: in an ascending order a missing value comes before any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from archivist.errors import BankDamagedError
from archivist.records.kinds import BY_NAME, kind_of, record_type, record_types
from archivist.records.words import MAX_RUN_COUNT, ActorKind, Provenance, stated_provenance
from archivist.store.filters import Condition, above, at_most, not_equals, one_of
from archivist.store.results import PendingEmbedding, split_batches

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bus import Message, StoredMessage
    from archivist.records import Actor, Artifact, Document, Entry, Event, Fact, Tally, Task
    from archivist.store.erasure import ErasureQuery
    from archivist.store.ledger import LedgerChange, LedgerEntry, Verification
    from archivist.store.results import (
        Damage,
        IndexedDocument,
        IndexHit,
        QueuedRun,
        SearchFilter,
        Sizes,
        StoredResponse,
        TextQuery,
    )

R = TypeVar("R")
# The verbs by which the words of a file come in, whoever asks for it.
_FILE_VERBS = ("refresh", "import")
# Bound values in one statement; every engine accepts this many.
_BATCH = 500
# Above 64 new ledger entries it is quicker to build cached values again than to ask what has changed.
_CACHED = 64
_LAST_NUMBER = "last_number"


class EngineReader(Protocol):
    """One consistent view of the bank. Reading never writes."""

    # What was built from records, with the ledger entry up to which it is known to be valid.
    # None within a transaction: what it sees may be rolled back, and its ledger numbers given again.
    value_cache: dict[Hashable, tuple[int, Any]] | None

    # Records

    def get(self, record: type[R], record_id: str) -> R | None:
        """Return a record by its id, or None."""

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

    def count(self, record: type[Any] | str, *conditions: Condition) -> int:
        """Return the number of records for which all conditions hold."""

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        """Return what briefs and verdicts say of these lessons; lessons never briefed are left out.

        The engine keeps the sums with every write: counting all briefs and verdicts would take a brief longer
        than everything else that it does.
        """

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

    def last_entry(self) -> int:
        """Return the number of the ledger's last entry, or 0."""

    def setting(self, name: str) -> str:
        """Return a value that belongs to the bank itself (its id), or an empty text."""

    def file_runs(self, digest: str) -> list[str] | None:
        """Return the runs in a captured file of this content, or None when it was never captured."""

    def queued_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection, oldest first."""

    def messages(self, *, after: int) -> list[StoredMessage]:
        """Return the live messages that were stored after this one, oldest first."""

    def last_message(self) -> int:
        """Return the number of the last live message, or 0."""

    def stored_response(self, request: str) -> StoredResponse | None:
        """Return the response to an earlier request of this name, or None."""

    # The index

    def document_count(self) -> int:
        """Return about how many documents the index holds."""

    def count_documents_with(self, words: Sequence[str], *, at_most: int) -> list[int]:
        """Return how many documents contain each word, counting no further than `at_most`."""

    def known_speakers(self, names: Sequence[str]) -> set[str]:
        """Return which of the names belong to a speaker in the bank."""

    def search(self, words: TextQuery, *, search_filter: SearchFilter, limit: int) -> list[IndexHit]:
        """Return the best documents that contain any of the words and pass the filter."""

    def nearest(
        self, query: Sequence[float], embedder: str, *, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        """Return the documents whose vectors are nearest, with the cosine."""

    def filter_places(self, places: Sequence[int], search_filter: SearchFilter) -> list[int]:
        """Return the places whose documents pass the filter."""

    def cosines(self, query: Sequence[float], embedder: str, places: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of these documents that has a vector."""

    def sample_cosines(self, query: Sequence[float], embedder: str) -> list[float]:
        """Return the cosines of a sample of documents: how similar this query is to anything at all."""

    def indexed_documents(self, places: Sequence[int]) -> dict[int, IndexedDocument]:
        """Return what the index knows of these documents."""

    def documents_at(self, positions: Sequence[tuple[str, int]]) -> list[IndexedDocument]:
        """Return the documents at these positions of these threads."""

    def index_places(self, kind: str, ids: Sequence[str]) -> list[int]:
        """Return the places of these records in the index."""

    def embedder_in_use(self) -> str:
        """Return the embedder whose vectors are searched, or an empty text while there is none."""

    def embedder_dimensions(self, embedder: str) -> int:
        """Return the length of an embedder's stored vectors, or 0 where there are none."""

    def unembedded_documents(self, embedder: str, *, limit: int) -> list[tuple[int, int, str, str]]:
        """Return place, revision, kind and record of documents that have no vector of this embedder."""

    def pending_embedding_count(self, embedder: str) -> int:
        """Return how many documents have no vector of this embedder."""


class EngineWriter(EngineReader, Protocol):
    """A transaction in one actor's name at one time: all that it does is there afterwards, or nothing is."""

    actor: Actor
    now: datetime

    def put(self, record: Any, verb: str) -> bool:
        """Insert or replace a record and enter it in the ledger; False when it was the same already."""

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        """Add a run's events under one ledger entry and return how many were new or changed."""

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record and enter that in the ledger; False when there was none."""

    def remove_events(
        self, run: str, verb: str, *, only: Iterable[str] = (), excluded: Iterable[str] = ()
    ) -> int:
        """Remove a run's events, or only some, or all but some, under one ledger entry."""

    def append_entry(self, verb: str, kind: str, record: str, after: object) -> None:
        """Append an entry to the ledger, with what it leaves behind."""

    def set_setting(self, name: str, value: str) -> None:
        """Set a value that belongs to the bank itself."""

    def queue(self, run: str) -> None:
        """Queue a run for reflection; a run that is being reflected on is queued again."""

    def lease(self, holder: str, until: datetime, *, runs: Sequence[str] = (), limit: int = 1) -> list[str]:
        """Lease queued runs that nobody else holds, oldest first, until the given time."""

    def extend_lease(self, run: str, holder: str, until: datetime) -> bool:
        """Hold a lease until a later time. False when it was lost."""

    def end_lease(self, run: str, holder: str, error: str = "") -> bool:
        """End a lease: the run leaves the queue, or after an error waits again. False when it was lost."""

    def expire_leases(self, holders: Iterable[str]) -> None:
        """End the leases of holders that are gone at once, as if their time were over."""

    def release_lease(self, run: str, holder: str) -> None:
        """Give a lease back unused: the run stays queued, and the attempt is not counted."""

    def dequeue_run(self, run: str, until: datetime) -> None:
        """Take a run out of the queue unless it was queued after this time."""

    def mark_file_captured(self, digest: str, runs: Sequence[str]) -> None:
        """Record that a file of this content was captured, and which runs were in it."""

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        """Store packed vectors of documents that have not changed meanwhile; return how many."""

    def use_embedder(self, embedder: str) -> None:
        """Search with one embedder's vectors from now on, and delete those of all others."""

    def merge_index(self) -> bool:
        """Merge scattered pieces of the text index, a part of the work; say whether any was done."""

    def store_message(self, message: Message, *, max_messages: int) -> None:
        """Store a live message behind the ledger's last entry, and keep only the latest messages."""

    def store_response(self, request: str, response: StoredResponse) -> None:
        """Store the response to a request of this name."""

    def drop_responses_before(self, moment: datetime) -> None:
        """Delete the responses that are older."""


class EngineEraser(EngineWriter, Protocol):
    """A transaction that can also delete what a bank otherwise keeps forever."""

    def record_texts(self, record: type[Any]) -> Iterator[tuple[str, str]]:
        """Yield the id of each record with all of its texts."""

    def other_texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield table, key and texts of each row beside the records and the ledger."""

    def erase_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Delete a text from the rows beside the records; return the number of rows changed by table."""

    def erase_payloads(self, entries: Sequence[int]) -> int:
        """Delete payloads; their entries stay in the chain and show as erased, by an entry of their own."""

    def forget_run(self, run: str) -> None:
        """Take a run out of the queue and off the files that held it; those files are not read again."""

    def forget_tally(self, lesson: str) -> None:
        """Delete the counts of a lesson that is gone."""

    def drop_orphan_speakers(self) -> None:
        """Delete the speakers of whom no document is left."""

    def drop_vectors(self, places: Sequence[int]) -> None:
        """Delete the vectors of these documents; the documents that stay are embedded again."""

    def vector_count(self, places: Sequence[int]) -> int:
        """Count the vectors at these places, of any embedder."""

    def count_tombstones(self) -> int:
        """Count the marks of deleted documents whose words the text index still holds."""


class Reader(EngineReader, Protocol):
    """One consistent view of the bank. Reading never writes."""

    def records(self, kind: str, ids: Sequence[str]) -> dict[str, Any]:
        """Return records of one kind by their ids."""
        batches = split_batches(list(ids), _BATCH)
        found = (self.select(record_type(kind), one_of("id", batch)) for batch in batches)
        return {record.id: record for batch in found for record in batch}

    def values(self, kind: str, field: str, *conditions: Condition) -> list[str]:
        """Return the distinct texts of a field, in order, without the empty one, under these conditions."""
        found: list[str] = [""]
        # With an index on the field each step is one lookup, however many records share a value.
        while rows := self.select_fields(
            kind, (field,), above(field, found[-1]), *conditions, order=(field,), limit=1
        ):
            found.append(str(rows[0][0]))
        return found[1:]

    def json_setting(self, name: str) -> dict[str, Any]:
        """Return a value of the bank itself that is a JSON object; an empty one when it was never set."""
        try:
            value = json.loads(self.setting(name) or "{}")
        except ValueError as error:
            raise BankDamagedError("", f"settings {name!r}: {error}") from error
        if not isinstance(value, dict):
            raise BankDamagedError("", f"settings {name!r}: not an object")
        return value

    def int_setting(self, name: str) -> int:
        """Return a value of the bank itself that is a number; 0 when it was never set."""
        try:
            return int(self.setting(name) or 0)
        except ValueError as error:
            raise BankDamagedError("", f"settings {name!r}: {error}") from error

    def run_count(self) -> int:
        """Return how many runs have aged the bank.

        Numbers that a log gave its runs, as banks of before hold them, do not count.
        """
        is_counted = (at_most("number", MAX_RUN_COUNT), not_equals("provenance", Provenance.SUGGESTED))
        rows = self.select_fields("episode", ("number",), *is_counted, order=("-number",), limit=1)
        return max(0, int(rows[0][0])) if rows else 0

    def pending_embeddings(
        self, embedder: str, *, limit: int, all_or_nothing: bool = False
    ) -> list[PendingEmbedding]:
        """Return documents that have no vector of this embedder, with the texts to embed.

        With `all_or_nothing` none are returned when there are more than the limit.
        """
        from archivist.store.searchable import build_search_document

        documents = self.unembedded_documents(embedder, limit=limit + all_or_nothing)
        if len(documents) > limit:
            return []
        by_kind: dict[str, list[str]] = {}
        for _, _, kind, name in documents:
            by_kind.setdefault(kind, []).append(name)
        records = {kind: self.records(kind, names) for kind, names in by_kind.items()}
        pending = []
        for place, revision, kind, name in documents:
            if name in records[kind]:
                built = build_search_document(records[kind][name])
                pending.append(PendingEmbedding(place, revision, built.spoken if built else ""))
        return pending

    def changes(
        self, *, record_id: str | None = None, kind: str = "", after: int = 0, limit: int | None = None
    ) -> list[LedgerChange]:
        """Return ledger entries in order with the records as they left them."""
        from archivist.store.ledger import LedgerChange

        entries = self.ledger(record_id=record_id, kind=kind, after=after, limit=limit)
        return [
            LedgerChange(entry, None if payload is None else json.loads(payload), is_erased=payload is None)
            for entry, payload in entries
        ]

    def run_origin(self, run: str) -> LedgerEntry | None:
        """Return the entry that brought a run: the first since it was removed, else the removal itself."""
        from archivist.store.ledger import REMOVED

        origin: LedgerEntry | None = None
        for entry, _ in self.ledger(record_id=run, with_payloads=False):
            # The id of a run can be that of a record of another kind.
            if entry.kind not in ("episode", "event"):
                continue
            if origin is None or REMOVED in (entry.payload_hash, origin.payload_hash):
                origin = entry
        return origin

    def run_provenances(self, runs: Iterable[str]) -> dict[str, Provenance]:
        """Return where each of these runs comes from; unknown runs are left out."""
        from archivist.store.ledger import REMOVED, provenance_of_run

        found: dict[str, Provenance] = {}
        names = list(dict.fromkeys(runs))
        for batch in split_batches(names, _BATCH):
            rows = self.select_fields("episode", ("id", "provenance"), one_of("id", batch))
            found |= {str(run): Provenance(provenance) for run, provenance in rows}
        for run in names:
            # The events of a run are written before its record.
            origin = self.run_origin(run) if run not in found else None
            if origin is not None and origin.payload_hash != REMOVED:
                found[run] = provenance_of_run(origin)
        return found

    def is_by_agent(self, record_id: str) -> bool:
        """Say whether an agent wrote the first version of a record."""
        entries = self.ledger(record_id=record_id, limit=1, with_payloads=False)
        return any(entry.actor.kind is ActorKind.AGENT for entry, _ in entries)

    def text_entries(self, record_id: str, kind: str = "document") -> Iterator[LedgerEntry]:
        """Yield the entries about a text since it was last removed, latest first."""
        from archivist.store.ledger import REMOVED

        for entry, _ in self.ledger(record_id=record_id, kind=kind, newest_first=True, with_payloads=False):
            if entry.payload_hash == REMOVED:
                return
            yield entry

    def agents_behind(self, entry_ids: Iterable[str]) -> list[str]:
        """Return the agents that logged or changed entries of the stream."""
        found = (
            entry.actor
            for record_id in entry_ids
            for entry, _ in self.ledger(
                record_id=record_id, kind="entry", newest_first=True, with_payloads=False
            )
        )
        return sorted({str(actor) for actor in found if actor.kind is ActorKind.AGENT})

    def text_provenance(
        self, kind: str, record: Artifact | Document | Entry | Fact | Task
    ) -> Provenance | None:
        """Return that an agent or a file wrote a text; None for all others.

        Facts and the stream's entries say it themselves; of the others the ledger does.
        """
        stated = stated_provenance(record.extra) or getattr(record, "provenance", None)
        if stated or kind in ("entry", "fact"):
            return stated
        entries = [*self.text_entries(record.id, kind)]
        changes = [entry for entry in entries if entry.verb not in _FILE_VERBS]
        if any(entry.actor.kind is ActorKind.AGENT for entry in changes):
            return Provenance.SUGGESTED
        return Provenance.IMPORTED if len(changes) < len(entries) else None

    def is_own_run(self, run: str) -> bool:
        """Say whether a run was captured here: neither imported, nor reported by an agent itself."""
        return any(provenance.is_own for provenance in self.run_provenances((run,)).values())

    def entries(self, *, after: int, limit: int) -> list[LedgerEntry]:
        """Return ledger entries in order, without the records."""
        return [entry for entry, _ in self.ledger(after=after, limit=limit, with_payloads=False)]

    def verify(self) -> Verification:
        """Check every seal of the ledger, and that every record is as its last entry left it."""
        from archivist.store.ledger import verify_bank

        return verify_bank(self)

    def get_cached(self, name: Hashable, build: Callable[[], R], *, kinds: frozenset[str]) -> R:
        """Return the cached value of this name, built again only when records of these kinds have changed.

        Callers must not change the value.
        """
        cache, last = self.value_cache, self.last_entry()
        if cache is None:
            return build()
        since, value = cache.get(name, (-1, None))
        is_valid = 0 <= since <= last < since + _CACHED
        if is_valid and last > since:
            changed = {entry.kind for entry in self.entries(after=since, limit=_CACHED)}
            # An entry of no record, such as a receipt, may stand for changes of any kind.
            is_valid = not changed & kinds and changed <= BY_NAME.keys()
        if len(cache) >= _CACHED:
            cache.clear()
        result: R = value if is_valid else build()
        cache[name] = last, result
        return result


class Writer(Reader, EngineWriter, Protocol):
    """A transaction: all that it does is there afterwards, or nothing is."""

    def next_number(self) -> int:
        """Return the next number for a short id; never the same twice."""
        number = self.int_setting(_LAST_NUMBER) + 1
        self.set_setting(_LAST_NUMBER, str(number))
        return number

    def reserve_number(self, number: int) -> None:
        """Keep later numbers above this one, which came from outside."""
        if number > self.int_setting(_LAST_NUMBER):
            self.set_setting(_LAST_NUMBER, str(number))

    def record_denial(self, verb: str, layer: str) -> None:
        """Enter in the ledger that the actor was refused to do something to a layer.

        Repeated denials are capped, so that one caller cannot fill the ledger; the last one within a minute
        says that more may have come.
        """
        from archivist.access.rights import DENIAL, DENIALS_WITHIN_S, MAX_DENIALS

        since = self.now - timedelta(seconds=DENIALS_WITHIN_S)
        recent = 0
        for entry, _ in self.ledger(record_id=layer, kind=DENIAL, newest_first=True, with_payloads=False):
            if entry.time <= since or recent == MAX_DENIALS:
                break
            recent += entry.actor == self.actor and entry.verb == f"deny {verb}"
        if recent < MAX_DENIALS:
            denial: dict[str, object] = {"actor": str(self.actor), "verb": verb, "layer": layer}
            if recent == MAX_DENIALS - 1:
                denial["and_more"] = True
            self.append_entry(f"deny {verb}", DENIAL, layer, denial)


class Eraser(Writer, EngineEraser, Protocol):
    """A transaction that can also delete what a bank otherwise keeps forever."""

    def find_mentions(self, what: ErasureQuery) -> dict[str, list[str]]:
        """Return the ids of the records that contain a text, by kind."""
        return {
            kind_of(record): [record_id for record_id, text in self.record_texts(record) if what.is_in(text)]
            for record in record_types()
        }

    def texts_still_stored(self, texts: Iterable[str]) -> set[str]:
        """Return which of these texts some record still contains."""
        wanted = {text: text.lower() for text in texts}
        found: set[str] = set()
        for record in record_types():
            for _, stored in self.record_texts(record):
                lowered = stored.lower()
                found |= {text for text, low in wanted.items() if low in lowered}
        return found

    def count_other_mentions(self, what: ErasureQuery) -> dict[str, int]:
        """Count the rows outside of the records that contain a text, by table."""
        from collections import Counter

        found = Counter(
            table for table, _, texts in self.other_texts() if any(what.is_in(text) for text in texts)
        )
        for entry, _ in self.ledger(with_payloads=False):
            texts = (entry.actor.name, entry.actor.role, entry.verb, entry.record)
            found["ledger"] += any(what.is_in(text) for text in texts)
        found["ledger_payloads"] = len(self.payloads_mentioning(what))
        return dict(+found)

    def payloads_mentioning(self, what: ErasureQuery) -> list[int]:
        """Return the ledger entries whose payloads contain a text in a text field."""
        from archivist.store.erasure import payload_mentions

        return [
            entry.seq
            for entry, payload in self.ledger()
            if payload is not None and what.is_in(payload) and payload_mentions(entry.kind, payload, what)
        ]

    def payloads_of(self, kind: str, record: str) -> list[int]:
        """Return the ledger entries of one record that have a payload."""
        found = self.ledger(record_id=record, kind=kind)
        return [entry.seq for entry, payload in found if payload is not None]

    def record_receipt(self, name: str, content: Mapping[str, object]) -> None:
        """Enter in the ledger that and how something was erased."""
        from archivist.store.ledger import RECEIPT_KIND

        self.append_entry("erase", RECEIPT_KIND, name, content)

    def was_erased(self, name: str) -> bool:
        """Say whether a receipt names this record."""
        from archivist.store.ledger import RECEIPT_KIND

        receipts = (json.loads(payload or "{}") for _, payload in self.ledger(kind=RECEIPT_KIND))
        return any(name in receipt.get("asked", ()) for receipt in receipts)


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

    def sizes(self) -> Sizes:
        """Return how large the bank is, and how much text the records of each kind hold."""

    def run_sizes(self, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the number and size of each run's events, without the excluded ones."""

    def reindex(self) -> None:
        """Build everything derived again: indexes, the text index and the tallies."""

    def back_up(self, target: Path) -> None:
        """Copy the bank as it is now into a new file, while others read and write it."""

    def close(self) -> None:
        """Close the bank."""
