"""Change a bank: record, index, tallies and ledger in one transaction, the same in every SQL engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.clock import to_text
from archivist.cold_start import blake2s
from archivist.records.kinds import kind_of, record_types
from archivist.records.plain import canonical_json, to_plain
from archivist.store.ledger import (
    GENESIS,
    HASH_SPACE,
    EventSum,
    provenance_of_run,
    row_hash,
    seal_entry,
    sum_events,
)
from archivist.store.results import StoredResponse, split_batches
from archivist.store.rows import mapping_for
from archivist.store.searchable import SPEAKER_SORTS, SearchDocument, build_search_document
from archivist.store.sql import BATCH, marks, upsert_sql
from archivist.store.sql_reader import Reader

# A cold process that records a brief need not make the classes of events and verdicts.
if TYPE_CHECKING:
    from archivist.bus import Message
    from archivist.records import Actor, Event
    from archivist.store.ledger import LedgerEntry

_LAST_NUMBER = "last_number"
# A run whose reflection failed this often stays in the queue until somebody reflects on it by name.
MAX_ATTEMPTS = 3
_ABORTED = "every reflection on it was aborted"
_COUNTED_EFFECTS = ("helpful", "ineffective", "ignored")
# What `documents.embedder` holds where there is no vector.
_NOT_EMBEDDED = -1
_PENDING = 0
# Events that are written before the next are indexed: a server works on them meanwhile.
_WRITTEN_TOGETHER = 256


class IndexRow(NamedTuple):
    """A document to write into the index; its place is None while it has none."""

    place: int | None
    kind: str
    record: str
    revision: int
    built: SearchDocument
    # The embedder that made the vector of the present text, or that one is pending, or not needed.
    embedder: int
    keeps_vector: bool

    @property
    def columns(self) -> tuple[Any, ...]:
        """Return what the table holds of the document, without its place."""
        built = self.built
        return (
            self.kind, self.record, self.revision, int(built.time.timestamp()) if built.time else None,
            built.cycle, built.importance, built.speaker, built.thread, built.position, built.superseded_by,
            int(built.is_hidden), self.embedder,
        )  # fmt: skip


class Writer(Reader):
    """A transaction in one actor's name at one time: all that it does is there afterwards, or nothing is."""

    # How a queued run is locked while it is leased, where writers of one bank can meet.
    _lease_lock = ""

    actor: Actor
    now: datetime

    @abstractmethod
    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""

    @abstractmethod
    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        """Store packed vectors of documents that have not changed meanwhile; return how many."""

    @abstractmethod
    def use_embedder(self, embedder: str) -> None:
        """Search with one embedder's vectors from now on, and delete those of all others."""

    @abstractmethod
    def merge_index(self) -> bool:
        """Merge scattered pieces of the text index, a part of the work; say whether any was done."""

    @abstractmethod
    def store_message(self, message: Message, *, max_messages: int) -> None:
        """Store a live message behind the ledger's last entry, and keep only the latest messages."""

    @abstractmethod
    def _write_documents(self, rows: Sequence[IndexRow]) -> None:
        """Write documents into the index; those whose text was embedded before lose their vectors."""

    @abstractmethod
    def _remove_documents(self, places: Sequence[int]) -> None:
        """Remove documents from the index, with their vectors."""

    @abstractmethod
    def clear_index(self) -> None:
        """Empty the index, with its vectors."""

    @abstractmethod
    def reserve_message(self, number: int) -> None:
        """Keep the numbers of later live messages above this one."""

    def write_record(self, record: Any) -> None:
        """Write a record's row alone."""
        record_class: Any = type(record)
        self.execute(upsert_sql(record_class), mapping_for(record_class).to_row(record))

    def put(self, record: Any, verb: str) -> bool:
        """Insert or replace a record and enter it in the ledger; False when it was the same already."""
        record_class: Any = type(record)
        before = self.get(record_class, record.id)
        if before == record:
            return False
        kind = kind_of(record_class)
        self.write_record(record)
        self.index_records(kind, [record], are_new=before is None)
        self._update_tallies(kind, before, record)
        self.append_entry(verb, kind, record.id, to_plain(record))
        if kind == "episode" and before is None:
            self.set_run_provenance(record.id)
        return True

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        """Add a run's events under one ledger entry and return how many were new or changed."""
        from archivist.records import Event

        how = mapping_for(Event)
        known = self.event_sum(run)
        # Of those that have one id, the last counts.
        given = {event.id: event for event in events}
        stored: dict[str, tuple[Any, ...]] = {}
        # A run without events needs no look for what each one replaces.
        if known.events:
            sql = f"SELECT {how.column_list} FROM events WHERE bank = :bank AND id IN ({{}})"
            stored = {row[0]: tuple(row) for row in self._query_each(sql, list(given))}
        rows = {name: how.to_row(event) for name, event in given.items()}
        changed = [name for name, row in rows.items() if stored.get(name) != row]
        for batch in split_batches(changed, _WRITTEN_TOGETHER):
            self.execute_many(upsert_sql(Event), [rows[name] for name in batch])
            self.index_records("event", [given[name] for name in batch], are_new=not stored)
        if changed:
            replaced = [stored[name] for name in changed if name in stored]
            total = int(known.digest, 16) - sum(map(row_hash, replaced))
            total += sum(row_hash(rows[name]) for name in changed)
            count = known.events - len(replaced) + len(changed)
            self._write_event_sum(verb, EventSum(run, count, f"{total % HASH_SPACE:064x}"))
        return len(changed)

    def event_sum(self, run: str) -> EventSum:
        """Return the stored count and sum of hashes of a run's events."""
        sql = "SELECT run, events, digest FROM event_sums WHERE bank = :bank AND run = ?"
        row = self.execute(sql, (run,)).fetchone()
        return EventSum(*row) if row else EventSum(run, 0, "0" * 64)

    def _write_event_sum(self, verb: str, after: EventSum) -> None:
        """Store what a run's events are now, and enter it in the ledger."""
        self.execute("DELETE FROM event_sums WHERE bank = :bank AND run = ?", (after.run,))
        if after.events:
            self.execute(_INSERT_SUM, after)
        self.append_entry(verb, "event", after.run, after._asdict())

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record and enter that in the ledger; False when there was none."""
        before: Any = self.get(record, record_id)
        if before is None:
            return False
        kind = kind_of(record)
        sql = f"DELETE FROM {mapping_for(record).table} WHERE bank = :bank AND id = ?"
        self.execute(sql, (record_id,))
        self._remove_documents(self.index_places(kind, [record_id]))
        self._update_tallies(kind, before, None)
        self.append_entry(verb, kind, record_id, None)
        return True

    def remove_events(
        self, run: str, verb: str, *, only: Iterable[str] = (), excluded: Iterable[str] = ()
    ) -> int:
        """Remove a run's events, or only some, or all but some, under one ledger entry."""
        from archivist.records import Event

        known = self.event_sum(run)
        chosen, spared = set(only), set(excluded)
        sql = f"SELECT {mapping_for(Event).column_list} FROM events WHERE bank = :bank AND run = ?"
        rows = [
            row
            for row in self.execute(sql, (run,)).fetchall()
            if row[0] not in spared and (not chosen or row[0] in chosen)
        ]
        if rows:
            ids = [str(row[0]) for row in rows]
            self.execute_many("DELETE FROM events WHERE bank = :bank AND id = ?", [(name,) for name in ids])
            self._remove_documents(self.index_places("event", ids))
            total = (int(known.digest, 16) - sum(map(row_hash, rows))) % HASH_SPACE
            self._write_event_sum(verb, EventSum(run, known.events - len(rows), f"{total:064x}"))
        return len(rows)

    def append_entry(self, verb: str, kind: str, record: str, after: object) -> None:
        """Append an entry to the ledger, with what it leaves behind."""
        seq, previous = self._ledger_head()
        payload = canonical_json(after)
        entry = seal_entry(previous, seq + 1, self.now, self.actor, verb, kind, record, payload)
        self.write_entry(entry, payload)

    def _ledger_head(self) -> tuple[int, str]:
        """Return the number and the hash of the last entry."""
        sql = "SELECT seq, hash FROM ledger WHERE bank = :bank ORDER BY seq DESC LIMIT 1"
        row = self.execute(sql).fetchone()
        return (int(row[0]), str(row[1])) if row else (0, GENESIS)

    def write_entry(self, entry: LedgerEntry, payload: str | None = None) -> None:
        """Write the row of a sealed entry, and its payload."""
        row = (
            entry.seq, to_text(entry.time), entry.actor.kind.value, entry.actor.name, entry.actor.role,
            entry.verb, entry.kind, entry.record, entry.payload_hash, entry.previous, entry.hash,
        )  # fmt: skip
        self.execute(_INSERT_ENTRY, row)
        if payload is not None:
            sql = "INSERT INTO ledger_payloads (bank, seq, payload) VALUES (:bank, ?, ?)"
            self.execute(sql, (entry.seq, payload))

    def set_setting(self, name: str, value: str) -> None:
        """Set a value that belongs to the bank itself."""
        self.execute(
            "INSERT INTO settings (bank, name, value) VALUES (:bank, ?, ?)"
            " ON CONFLICT (bank, name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def queue(self, run: str) -> None:
        """Queue a run for reflection; a run that is being reflected on is queued again."""
        self.execute(
            "INSERT INTO pending (bank, run, queued) VALUES (:bank, ?, ?)"
            " ON CONFLICT (bank, run) DO UPDATE SET queued = excluded.queued,"
            " holder = '', leased_until = '', attempts = 0, error = ''",
            (run, to_text(self.now)),
        )

    def lease(self, holder: str, until: datetime, *, runs: Sequence[str] = (), limit: int = 1) -> list[str]:
        """Lease queued runs that nobody else holds, oldest first, until the given time."""
        now = to_text(self.now)
        self.execute(
            "UPDATE pending SET holder = '', error = ?"
            " WHERE bank = :bank AND holder <> '' AND leased_until < ? AND attempts >= ?",
            (_ABORTED, now, MAX_ATTEMPTS),
        )
        chosen = f" AND run IN ({marks(runs)})" if runs else ""
        # Chosen first: within the change, PostgreSQL may choose again for each row and lease more than asked.
        rows = self.execute(
            f"SELECT run FROM pending WHERE bank = :bank AND leased_until < ? AND attempts < ?{chosen}"
            f" ORDER BY queued, run LIMIT ?{self._lease_lock}",
            (now, MAX_ATTEMPTS, *runs, limit),
        ).fetchall()
        leased = [run for (run,) in rows]
        self.execute_many(
            "UPDATE pending SET holder = ?, leased_until = ?, attempts = attempts + 1"
            " WHERE bank = :bank AND run = ?",
            [(holder, to_text(until), run) for run in leased],
        )
        return leased

    def extend_lease(self, run: str, holder: str, until: datetime) -> bool:
        """Hold a lease until a later time. False when it was lost."""
        sql = (
            "UPDATE pending SET leased_until = ? WHERE bank = :bank AND run = ? AND holder = ? RETURNING run"
        )
        return bool(self.execute(sql, (to_text(until), run, holder)).fetchall())

    def end_lease(self, run: str, holder: str, error: str = "") -> bool:
        """End a lease: the run leaves the queue, or after an error waits again. False when it was lost."""
        change, values = "DELETE FROM pending", [run, holder]
        if error:
            change, values = "UPDATE pending SET holder = '', leased_until = '', error = ?", [error, *values]
        sql = f"{change} WHERE bank = :bank AND run = ? AND holder = ? RETURNING run"
        return bool(self.execute(sql, values).fetchall())

    def expire_leases(self, holders: Iterable[str]) -> None:
        """End the leases of holders that are gone at once, as if their time were over."""
        sql = "UPDATE pending SET leased_until = '' WHERE bank = :bank AND holder = ?"
        self.execute_many(sql, [(holder,) for holder in holders])

    def release_lease(self, run: str, holder: str) -> None:
        """Give a lease back unused: the run stays queued, and the attempt is not counted."""
        self.execute(
            "UPDATE pending SET holder = '', leased_until = '', attempts = attempts - 1"
            " WHERE bank = :bank AND run = ? AND holder = ?",
            (run, holder),
        )

    def dequeue_run(self, run: str, until: datetime) -> None:
        """Take a run out of the queue unless it was queued after this time."""
        sql = "DELETE FROM pending WHERE bank = :bank AND run = ? AND queued <= ?"
        self.execute(sql, (run, to_text(until)))

    def mark_file_captured(self, digest: str, runs: Sequence[str]) -> None:
        """Record that a file of this content was captured, and which runs were in it."""
        self.execute(
            "INSERT INTO captured_files (bank, digest, runs) VALUES (:bank, ?, ?)"
            " ON CONFLICT (bank, digest) DO UPDATE SET runs = excluded.runs",
            (digest, canonical_json(list(runs))),
        )

    def store_response(self, request: str, response: StoredResponse) -> None:
        """Store the response to a request of this name."""
        self.execute(
            "INSERT INTO answers (bank, id, digest, status, body, time) VALUES (:bank, ?, ?, ?, ?, ?)"
            " ON CONFLICT (bank, id) DO UPDATE SET digest = excluded.digest, status = excluded.status,"
            " body = excluded.body, time = excluded.time",
            (request, response.digest, response.status, response.body, to_text(response.time)),
        )

    def drop_responses_before(self, moment: datetime) -> None:
        """Delete the responses that are older."""
        self.execute("DELETE FROM answers WHERE bank = :bank AND time < ?", (to_text(moment),))

    def set_run_provenance(self, run: str) -> None:
        """Write beside a run's record where the ledger says that it comes from.

        A ledger that lost entries must not make another's run an own one.
        """
        if origin := self.run_origin(run):
            sql = "UPDATE episodes SET provenance = ? WHERE bank = :bank AND id = ? AND provenance = 'mined'"
            self.execute(sql, (provenance_of_run(origin).value, run))

    def rebuild_derived(self) -> None:
        """Build the text index and the tallies again from the records."""
        self.clear_index()
        for table in ("speakers", "tallies", "event_sums"):
            self.execute(f"DELETE FROM {table} WHERE bank = :bank")
        for (run,) in self.execute("SELECT DISTINCT run FROM events WHERE bank = :bank").fetchall():
            self.execute(_INSERT_SUM, sum_events(self, str(run)))
        for (run,) in self.execute("SELECT id FROM episodes WHERE bank = :bank").fetchall():
            self.set_run_provenance(str(run))
        for record_class in record_types():
            how: Any = mapping_for(record_class)
            kind, batch = kind_of(record_class), []
            for row in self._stream(f"SELECT {how.column_list} FROM {how.table} WHERE bank = :bank"):
                batch.append(how.to_record(row))
                self._update_tallies(kind, None, batch[-1])
                if len(batch) == BATCH:
                    self.index_records(kind, batch)
                    batch.clear()
            self.index_records(kind, batch)

    def _update_tallies(self, kind: str, before: Any, after: Any) -> None:
        """Update the tallies when a brief or a verdict changes."""
        for record, step in ((before, -1), (after, 1)):
            if record is not None and kind == "brief":
                for lesson in record.lessons:
                    self.execute(
                        "INSERT INTO tallies (bank, lesson, used, last_used) VALUES (:bank, ?, ?, ?)"
                        " ON CONFLICT (bank, lesson) DO UPDATE SET used = tallies.used + excluded.used,"
                        " last_used = CASE WHEN tallies.last_used > excluded.last_used"
                        " THEN tallies.last_used ELSE excluded.last_used END",
                        (lesson, step, to_text(record.time)),
                    )
            elif record is not None and kind == "verdict":
                columns = [record.effect.value] if record.effect.value in _COUNTED_EFFECTS else []
                # A run without an occasion could not fail, told or not.
                if record.failed is not None and record.effect.value != "not_needed":
                    arm = "withheld" if record.following.value == "withheld" else "told"
                    columns += [arm, f"{arm}_failed"] if record.failed else [arm]
                for column in columns:
                    self.execute(
                        f"INSERT INTO tallies (bank, lesson, {column}) VALUES (:bank, ?, ?)"
                        f" ON CONFLICT (bank, lesson) DO UPDATE SET {column} = tallies.{column}"
                        f" + excluded.{column}",
                        (record.lesson, step),
                    )

    def index_records(self, kind: str, records: Sequence[Any], *, are_new: bool = False) -> None:
        """Bring the documents of records in the index up to date; those of new records are not looked for."""
        documents = {record.id: build_search_document(record) for record in records}
        if not any(documents.values()) and kind != "event":
            return
        sql = "SELECT record, id, revision, embedder FROM documents WHERE bank = :bank AND record IN ({})"
        found = self._query_each(f"{sql} AND kind = ?", [] if are_new else list(documents), kind)
        stored = {name: (place, revision, embedder) for name, place, revision, embedder in found}
        rows, gone = [], []
        for name, built in documents.items():
            place, revision, embedder = stored.get(name, (None, None, _PENDING))
            if built is None:
                gone += [place] if place is not None else []
                continue
            # A place can be taken by another document while a vector is made: the text has its own number.
            digest = blake2s(built.spoken.encode(), digest_size=7).digest()
            new_revision = int.from_bytes(digest, "big")
            # A vector stays while the embedded text has not changed.
            keeps = embedder > _PENDING and revision == new_revision and not built.is_hidden
            if not keeps:
                is_embeddable = bool(built.spoken.strip()) and not built.is_hidden
                embedder = _PENDING if is_embeddable else _NOT_EMBEDDED
            rows.append(IndexRow(place, kind, name, new_revision, built, embedder, keeps))
        self._remove_documents(gone)
        self._write_documents(rows)
        speakers = {row.built.speaker for row in rows} - SPEAKER_SORTS.keys()
        sql = "INSERT INTO speakers (bank, name) VALUES (:bank, ?) ON CONFLICT DO NOTHING"
        self.execute_many(sql, [(name,) for name in sorted(speakers)])

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


_INSERT_SUM = "INSERT INTO event_sums (bank, run, events, digest) VALUES (:bank, ?, ?, ?)"
_INSERT_ENTRY = (
    "INSERT INTO ledger (bank, seq, time, actor_kind, actor_name, actor_role, verb, kind, record,"
    " payload_hash, previous, hash) VALUES (:bank, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
