"""What services use of a store: the methods of an engine, and what is composed of them for all engines."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from archivist.records.kinds import BY_NAME, kind_of, record_type, record_types
from archivist.store.engine import EngineEraser, EngineReader, EngineWriter
from archivist.store.filters import Condition, above, equals, one_of
from archivist.store.results import PendingEmbedding, split_batches

if TYPE_CHECKING:
    from archivist.records import Actor, Lesson
    from archivist.store.erasure import ErasureQuery
    from archivist.store.ledger import LedgerChange, LedgerEntry, Verification
    from archivist.store.results import Sizes

R = TypeVar("R")

# Bound values in one statement; every engine accepts this many.
_BATCH = 500
# Above 64 new ledger entries it is quicker to build cached values again than to ask what has changed.
_CACHED = 64
_LAST_NUMBER = "last_number"
RECEIPT_KIND = "erasure"


class Reader(EngineReader, Protocol):
    """One consistent view of the bank. Reading never writes."""

    def records(self, kind: str, ids: Sequence[str]) -> dict[str, Any]:
        """Return records of one kind by their ids."""
        batches = split_batches(list(ids), _BATCH)
        found = (self.select(record_type(kind), one_of("id", batch)) for batch in batches)
        return {record.id: record for batch in found for record in batch}

    def lessons_with_summary(self, summary: str) -> list[Lesson]:
        """Return the lessons with exactly this summary."""
        return self.select(record_type("lesson"), equals("summary", summary), order=("number",))

    def total(self, kind: str, field: str, *conditions: Condition) -> float:
        """Return the sum of a field over the records for which all conditions hold."""
        return float(sum(value for (value,) in self.select_fields(kind, (field,), *conditions)))

    def values(self, kind: str, field: str) -> list[str]:
        """Return the distinct texts of a field, in order, without the empty one."""
        found: list[str] = [""]
        # With an index on the field each step is one lookup, however many records share a value.
        while rows := self.select_fields(kind, (field,), above(field, found[-1]), order=(field,), limit=1):
            found.append(str(rows[0][0]))
        return found[1:]

    def run_count(self) -> int:
        """Return how many runs have aged the bank."""
        rows = self.select_fields("episode", ("number",), order=("-number",), limit=1)
        return int(rows[0][0] or 0) if rows else 0

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
        pending = []
        for kind in {document.kind for document in documents}:
            records = self.records(kind, [document.record for document in documents if document.kind == kind])
            for document in documents:
                if document.kind == kind and document.record in records:
                    built = build_search_document(records[document.record])
                    text = built.spoken if built else ""
                    pending.append(PendingEmbedding(document.place, document.revision, text))
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
        since, cache.entry = cache.entry, last
        if not since <= last < since + _CACHED or len(cache.values) >= _CACHED:
            cache.values.clear()
        elif last > since and cache.values:
            changed = {entry.kind for entry in self.entries(after=since, limit=_CACHED)}
            # An entry of no record, such as a receipt, may stand for changes of any kind.
            is_any = not changed <= BY_NAME.keys()
            for stale in [key for key, (of, _) in cache.values.items() if is_any or of & changed]:
                del cache.values[stale]
        if name not in cache.values:
            cache.values[name] = kinds, build()
        value: R = cache.values[name][1]
        return value


class Writer(Reader, EngineWriter, Protocol):
    """A transaction: all that it does is there afterwards, or nothing is."""

    def next_number(self) -> int:
        """Return the next number for a short id; never the same twice."""
        number = int(self.setting(_LAST_NUMBER) or 0) + 1
        self.set_setting(_LAST_NUMBER, str(number))
        return number

    def reserve_number(self, number: int) -> None:
        """Keep later numbers above this one, which came from outside."""
        if number > int(self.setting(_LAST_NUMBER) or 0):
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
        self.append_entry("erase", RECEIPT_KIND, name, content)

    def was_erased(self, name: str) -> bool:
        """Say whether a receipt names this record."""
        receipts = (json.loads(payload or "{}") for _, payload in self.ledger(kind=RECEIPT_KIND))
        return any(name in receipt.get("asked", ()) for receipt in receipts)


class Store(Protocol):
    """A bank's storage. Opened once, used from one process, safe beside others."""

    @property
    def is_same_bank(self) -> bool:
        """Say whether the bank at the place is still the one that was opened."""
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
        """Return a number that changes whenever somebody else has changed the bank."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a view that does not change while it is read."""
        ...

    def writing(
        self, actor: Actor, now: datetime, *, lock_timeout_s: float | None = None
    ) -> AbstractContextManager[Writer]:
        """Open a transaction in the actor's name; it is rolled back when the block raises.

        A bank that another process is writing is waited for as configured, or for `lock_timeout_s`.
        """
        ...

    def erasing(self, actor: Actor, now: datetime) -> AbstractContextManager[Eraser]:
        """Open a transaction that can also delete for good."""
        ...

    def scrub(self) -> bool:
        """Leave no trace of what was deleted; False while another process prevents it."""
        ...

    def count_raw_bytes(self, needles: Sequence[bytes]) -> dict[str, int]:
        """Count needles in the raw bytes of each file of the store."""
        ...

    def sizes(self) -> Sizes:
        """Return how large the bank is, and how much text the records of each kind hold."""
        ...

    def run_sizes(self, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the number and size of each run's events, without the excluded ones."""
        ...

    def reindex(self) -> None:
        """Build everything derived again: the text index and the tallies."""
        ...

    def close(self) -> None:
        """Close the bank."""
        ...
