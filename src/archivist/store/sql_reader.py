"""Read a bank, the same in every SQL engine; `sql` makes the statements."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from archivist.clock import from_text
from archivist.errors import BankDamagedError, CursorError
from archivist.records.kinds import BY_NAME, record_type
from archivist.records.words import MAX_RUN_COUNT, ActorKind, Provenance, stated_provenance
from archivist.store.filters import Condition, above, at_most, not_equals, one_of
from archivist.store.results import PendingEmbedding, QueuedRun, StoredResponse, split_batches
from archivist.store.rows import is_valid_cursor, mapping_for
from archivist.store.sql import BATCH, COUNT, SqlDialect, SqlTable, bind_value, marks, select_sql

if TYPE_CHECKING:
    from archivist.bus import StoredMessage
    from archivist.records import Artifact, Document, Entry, Fact, Tally, Task
    from archivist.store.ledger import LedgerChange, LedgerEntry, Verification
    from archivist.store.results import IndexedDocument, IndexHit, SearchFilter, TextQuery

R = TypeVar("R")
# The verbs by which the words of a file come in, whoever asks for it.
_FILE_VERBS = ("refresh", "import")
# Above 64 new ledger entries it is quicker to build cached values again than to ask what has changed.
_CACHED = 64


class Reader(ABC):
    """One consistent view of the bank. Reading never writes."""

    _dialect: ClassVar[SqlDialect]
    # What was built from records, with the ledger entry up to which it is known to be valid.
    # None within a transaction: what it sees may be rolled back, and its ledger numbers given again.
    value_cache: dict[Hashable, tuple[int, Any]] | None

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run one statement, which carries the bank."""

    @abstractmethod
    def _table(self, record: type[Any] | str) -> SqlTable:
        """Return a record's table."""

    @abstractmethod
    def stored_vectors(self, embedder: str, places: Sequence[int]) -> dict[int, bytes]:
        """Return the half floats of the documents that have a vector of this embedder."""

    def _stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Run one statement whose rows are too many to hold at once."""
        return iter(self.execute(sql, values))

    def get(self, record: type[R], record_id: str) -> R | None:
        """Return a record by its id, or None."""
        how = mapping_for(record)
        sql = f"SELECT {how.column_list} FROM {how.table} WHERE bank = :bank AND id = ?"
        try:
            row = self.execute(sql, (bind_value(record_id),)).fetchone()
        except UnicodeDecodeError as error:
            raise BankDamagedError("", f"{how.table} {record_id!r}: {error}") from error
        return how.to_record(row) if row else None

    def select(
        self,
        record: type[R],
        *conditions: Any,
        order: Sequence[str] = (),
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        """Return the records for which all conditions hold; a `-` before an order field reverses it.

        `after` is a place in the order, the value of each of its fields: the records behind it are returned.
        Raise CursorError for values that no record's place can have.
        """
        if after is not None and not is_valid_cursor(record, order, after):
            raise CursorError
        how = mapping_for(record)
        sql, values = select_sql(self._table(record), how.columns, conditions, order, limit, after)
        return [how.to_record(row) for row in self.execute(sql, values)]

    def select_fields(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        *conditions: Any,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return only some fields, as the table holds them, for scans that need no whole records.

        The record may be named by its kind, so that a cold process need not make its class.
        """
        table = self._table(record)
        columns = [table.column(field) for field in fields]
        return list(self.execute(*select_sql(table, columns, conditions, order, limit)))

    def count(self, record: type[Any] | str, *conditions: Any) -> int:
        """Return the number of records for which all conditions hold."""
        sql, values = select_sql(self._table(record), COUNT, conditions)
        return int(self.query_value(sql, *values))

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        """Return what briefs and verdicts say of these lessons; lessons never briefed are left out.

        The engine keeps the sums with every write: counting all briefs and verdicts would take a brief longer
        than everything else that it does.
        """
        from archivist.records import Tally

        found: dict[str, Tally] = {}
        columns = ", ".join(Tally._fields)
        sql = f"SELECT lesson, {columns} FROM tallies WHERE bank = :bank AND lesson IN ({{}})"
        for lesson, used, last_used, *counts in self._query_each(sql, lesson_ids):
            found[lesson] = Tally(used, from_text(last_used) if last_used else None, *counts)
        return found

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
        from archivist.records import Actor, ActorKind
        from archivist.store.ledger import LedgerEntry

        # An empty id is the id of nothing, not of everything.
        asked = {"record": bind_value(record_id), "kind": kind or None}
        wanted = {column: value for column, value in asked.items() if value is not None}
        payload = "(SELECT payload FROM ledger_payloads p WHERE p.bank = :bank AND p.seq = ledger.seq)"
        sql = (
            "SELECT seq, time, actor_kind, actor_name, actor_role, verb, kind, record, payload_hash,"
            f" previous, hash, {payload if with_payloads else 'NULL'} FROM ledger"
            f" WHERE bank = :bank AND seq > ?{''.join(f' AND {column} = ?' for column in wanted)}"
            f" ORDER BY seq{' DESC' if newest_first else ''}{' LIMIT ?' if limit is not None else ''}"
        )
        values = (after, *wanted.values(), *(() if limit is None else (limit,)))
        is_long = limit is None and record_id is None
        seq = after
        try:
            rows = self._stream(sql, values) if is_long else self.execute(sql, values)
            for seq, time, actor_kind, name, role, verb, of, record, digest, previous, seal, text in rows:
                actor = Actor(ActorKind(actor_kind), name, role)
                yield (
                    LedgerEntry(seq, from_text(time), actor, verb, of, record, digest, previous, seal),
                    text,
                )
        except (ValueError, TypeError) as error:
            raise BankDamagedError("", f"ledger at or after entry {seq}: {error}") from error

    def last_entry(self) -> int:
        """Return the number of the ledger's last entry, or 0."""
        return int(self.query_value("SELECT coalesce(max(seq), 0) FROM ledger WHERE bank = :bank"))

    def messages(self, *, after: int) -> list[StoredMessage]:
        """Return the live messages that were stored after this one, oldest first."""
        from archivist.bus import Message, StoredMessage

        sql = "SELECT id, seq, type, time, data FROM messages WHERE bank = :bank AND id > ? ORDER BY id"
        return [
            StoredMessage(number, seq, Message(kind, from_text(time), json.loads(data)))
            for number, seq, kind, time, data in self.execute(sql, (after,))
        ]

    def stored_response(self, request: str) -> StoredResponse | None:
        """Return the response to an earlier request of this name, or None."""
        sql = "SELECT digest, status, body, time FROM answers WHERE bank = :bank AND id = ? AND status > 0"
        row = self.execute(sql, (request,)).fetchone()
        return StoredResponse(row[0], row[1], row[2], from_text(row[3])) if row else None

    def setting(self, name: str) -> str:
        """Return a value that belongs to the bank itself (its id), or an empty text."""
        return str(self.query_value("SELECT value FROM settings WHERE bank = :bank AND name = ?", name) or "")

    def file_runs(self, digest: str) -> list[str] | None:
        """Return the runs in a captured file of this content, or None when it was never captured."""
        sql = "SELECT runs FROM captured_files WHERE bank = :bank AND digest = ?"
        runs = self.query_value(sql, digest)
        return None if runs is None else list(json.loads(runs))

    def queued_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection, oldest first."""
        rows = self.execute(
            "SELECT run, holder, leased_until, attempts, error FROM pending WHERE bank = :bank"
            " ORDER BY queued, run"
        )
        return [
            QueuedRun(run, holder, from_text(until) if until else None, attempts, error)
            for run, holder, until, attempts, error in rows
        ]

    def known_speakers(self, names: Sequence[str]) -> set[str]:
        """Return which of the names belong to a speaker in the bank."""
        sql = "SELECT name FROM speakers WHERE bank = :bank AND name IN ({})"
        return {name for (name,) in self._query_each(sql, names)}

    def index_places(self, kind: str, ids: Sequence[str]) -> list[int]:
        """Return the places of these records in the index."""
        sql = "SELECT id FROM documents WHERE bank = :bank AND record IN ({}) AND kind = ?"
        return [place for (place,) in self._query_each(sql, ids, kind)]

    def embedder_in_use(self) -> str:
        """Return the embedder whose vectors are searched, or an empty text while there is none."""
        return str(self.query_value("SELECT name FROM embedders WHERE bank = :bank AND is_used = 1") or "")

    def embedder_dimensions(self, embedder: str) -> int:
        """Return the length of an embedder's stored vectors, or 0 where there are none."""
        known = self._embedder(embedder)
        return known[1] if known else 0

    def unembedded_documents(self, embedder: str, *, limit: int) -> list[tuple[int, int, str, str]]:
        """Return place, revision, kind and record of documents that have no vector of this embedder."""
        return self._query_unembedded("id, revision, kind, record", embedder, limit)

    def pending_embedding_count(self, embedder: str) -> int:
        """Return how many documents have no vector of this embedder."""
        return sum(count for (count,) in self._query_unembedded("count(*)", embedder, 2))

    def _query_unembedded(self, columns: str, embedder: str, limit: int) -> list[Any]:
        """Select from two ranges of the index, on both sides of the embedder's own number."""
        known = self._embedder(embedder)
        mine = known[0] if known else 0
        rows: list[Any] = self.execute(
            f"SELECT {columns} FROM documents WHERE bank = :bank AND embedder BETWEEN 0 AND ?"
            f" UNION ALL SELECT {columns} FROM documents WHERE bank = :bank AND embedder > ? LIMIT ?",
            (max(mine, 1) - 1, mine, limit),
        ).fetchall()
        return rows

    def _embedder(self, name: str) -> tuple[int, int] | None:
        # After the index was cleared the length of its vectors is 0: the next ones decide it anew.
        sql = "SELECT id, dimensions FROM embedders WHERE bank = :bank AND name = ? AND dimensions > 0"
        row = self.execute(sql, (name,)).fetchone()
        return (int(row[0]), int(row[1])) if row else None

    def query_value(self, sql: str, *values: Any) -> Any:
        """Return the first value of the first row, or None."""
        row = self.execute(sql, values).fetchone()
        return row[0] if row else None

    def _query_each(self, sql: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        """Yield the rows of a query whose `IN ({})` lists many keys, in batches; `values` come after it."""
        for batch in split_batches(keys, BATCH):
            yield from self.execute(sql.format(marks(batch)), (*batch, *values))

    def records(self, kind: str, ids: Sequence[str]) -> dict[str, Any]:
        """Return records of one kind by their ids."""
        batches = split_batches(list(ids), BATCH)
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
        for batch in split_batches(names, BATCH):
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

    # What each engine writes by hand

    @abstractmethod
    def file_sizes(self) -> tuple[int, int] | None:
        """Return the size of the bank's file and what is free in it; None where banks share files."""

    @abstractmethod
    def last_message(self) -> int:
        """Return the number of the last live message, or 0."""

    @abstractmethod
    def document_count(self) -> int:
        """Return about how many documents the index holds."""

    @abstractmethod
    def count_documents_with(self, words: Sequence[str], *, at_most: int) -> list[int]:
        """Return how many documents contain each word, counting no further than `at_most`."""

    @abstractmethod
    def search(self, words: TextQuery, *, search_filter: SearchFilter, limit: int) -> list[IndexHit]:
        """Return the best documents that contain any of the words and pass the filter."""

    @abstractmethod
    def nearest(
        self, query: Sequence[float], embedder: str, *, search_filter: SearchFilter, limit: int
    ) -> list[IndexHit]:
        """Return the documents whose vectors are nearest, with the cosine."""

    @abstractmethod
    def filter_places(self, places: Sequence[int], search_filter: SearchFilter) -> list[int]:
        """Return the places whose documents pass the filter."""

    @abstractmethod
    def cosines(self, query: Sequence[float], embedder: str, places: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of these documents that has a vector."""

    @abstractmethod
    def sample_cosines(self, query: Sequence[float], embedder: str) -> list[float]:
        """Return the cosines of a sample of documents: how similar this query is to anything at all."""

    @abstractmethod
    def indexed_documents(self, places: Sequence[int]) -> dict[int, IndexedDocument]:
        """Return what the index knows of these documents."""

    @abstractmethod
    def documents_at(self, positions: Sequence[tuple[str, int]]) -> list[IndexedDocument]:
        """Return the documents at these positions of these threads."""
