"""Read a SQLite bank."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from archivist.clock import from_text
from archivist.errors import CursorError
from archivist.records.plain import canonical_json, to_plain
from archivist.store.filters import Condition
from archivist.store.results import EventSum, QueuedRun, StoredResponse, split_batches
from archivist.store.rows import is_valid_cursor, mapping_for, table_of, types_by_kind
from archivist.store.sqlite.schema import BEGINNING
from archivist.store.sqlite.search import SqliteSearch
from archivist.store.sqlite.sql import after_clause, bind_value, order_by, where_clause

if TYPE_CHECKING:
    from archivist.bus import StoredMessage
    from archivist.records import Lesson, Tally
    from archivist.store.ledger import LedgerChange, LedgerEntry, Verification

R = TypeVar("R")

# Few bound values fit into one statement; well below SQLite's own limit.
_BATCH = 500
_PROBLEMS_SHOWN = 20
_ENTRY = (
    "l.seq, l.time, l.actor_kind, l.actor_name, l.actor_role, l.verb, l.kind, l.record,"
    " l.payload_hash, l.previous, l.hash"
)


HASH_SPACE = 1 << 256


class SqliteReader(SqliteSearch):
    """A view of the bank within a transaction that somebody else opened."""

    def get(self, record: type[R], record_id: str) -> R | None:
        """Return a record by its id, or None."""
        how = mapping_for(record)
        row = self._db.execute(
            f"SELECT {', '.join(how.columns)} FROM {how.table} WHERE id = ?",
            (bind_value(record_id),),
        ).fetchone()
        return how.to_record(row) if row else None

    def select(
        self,
        record: type[R],
        *conditions: Condition,
        order: Sequence[str] = (),
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        """Return the records for which all conditions hold; `after` a place in the order, those behind it."""
        if after is not None and not is_valid_cursor(record, order, after):
            raise CursorError
        how = mapping_for(record)
        rows = self._rows(record, how.columns, conditions, order, limit, after)
        return [how.to_record(row) for row in rows]

    def select_fields(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        *conditions: Condition,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return only some fields, as the table holds them."""
        return list(self._rows(record, fields, conditions, order, limit))

    def lessons_with_summary(self, summary: str) -> list[Lesson]:
        """Return the lessons whose summary is these very words."""
        from archivist.records import Lesson

        how = mapping_for(Lesson)
        rows = self._db.execute(
            f"SELECT {', '.join(how.columns)} FROM lessons"
            f" WHERE substr(summary, 1, {BEGINNING}) = ? AND summary = ? ORDER BY number",
            (summary[:BEGINNING], summary),
        )
        return [how.to_record(row) for row in rows]

    def count(self, record: type[Any] | str, *conditions: Condition) -> int:
        """Return how many records there are for which all conditions hold."""
        table, columns = self._table_and_columns(record)
        clause, values = where_clause(table, columns, conditions)
        return int(self._query_value(f"SELECT count(*) FROM {table}{clause}", values))

    def total(self, kind: str, field: str, *conditions: Condition) -> float:
        """Return the sum of a field over the records for which all conditions hold."""
        table, columns = self._table_and_columns(kind)
        if field not in columns:
            raise LookupError(f"{table} has no field {field!r}")
        clause, values = where_clause(table, columns, conditions)
        return float(self._query_value(f"SELECT total({field}) FROM {table}{clause}", values))

    def values(self, kind: str, field: str) -> list[str]:
        """Return the different texts that a field holds, in order, but for the empty one."""
        table, columns = self._table_and_columns(kind)
        if field not in columns:
            raise LookupError(f"{table} has no field {field!r}")
        found: list[str] = []
        # With an index on the field each step is one look into it, however many records hold the same.
        sql = f"SELECT min({field}) FROM {table} WHERE {field} > ?"
        while (value := self._query_value(sql, (found[-1] if found else "",))) is not None:
            found.append(str(value))
        return found

    def tallies(self, lesson_ids: Sequence[str]) -> dict[str, Tally]:
        """Return what briefs and verdicts say of these lessons."""
        from archivist.records import Tally

        found: dict[str, Tally] = {}
        for batch in split_batches(lesson_ids, _BATCH):
            marks = ", ".join("?" * len(batch))
            rows: Iterable[Any] = self._db.execute(
                "SELECT lesson, used, last_used, helpful, ineffective, ignored, told, told_failed, withheld,"
                f" withheld_failed FROM tallies WHERE lesson IN ({marks})",
                tuple(batch),
            )
            for lesson, used, last_used, helpful, ineffective, ignored, *arms in rows:
                told, told_failed, withheld, withheld_failed = arms
                found[lesson] = Tally(
                    used=used,
                    last_used=from_text(last_used) if last_used else None,
                    helpful=helpful,
                    ineffective=ineffective,
                    ignored=ignored,
                    told=told,
                    told_failed=told_failed,
                    withheld=withheld,
                    withheld_failed=withheld_failed,
                )
        return found

    def changes(
        self, *, record_id: str | None = None, kind: str = "", after: int = 0, limit: int | None = None
    ) -> list[LedgerChange]:
        """Return ledger entries in order, of one record, of one kind or of all."""
        from archivist.store.ledger import LedgerChange

        # An empty id is the id of nothing, not of everything.
        asked = {"l.record": record_id, "l.kind": kind or None}
        clause = "".join(f" AND {column} = ?" for column, value in asked.items() if value is not None)
        values = [value for value in asked.values() if value is not None]
        return [
            LedgerChange(entry, None if payload is None else json.loads(payload), is_erased=payload is None)
            for entry, payload in self._entries(clause, [after, *values, -1 if limit is None else limit])
        ]

    def entries(self, *, after: int, limit: int) -> list[LedgerEntry]:
        """Return ledger entries in order, without what they say of the records."""
        return [entry for entry, _ in self._entries("", [after, limit], "NULL")]

    def last_entry(self) -> int:
        """Return the number of the ledger's last entry, or 0."""
        return int(self._query_value("SELECT coalesce(max(seq), 0) FROM ledger", ()))

    def get_cached(self, name: Hashable, build: Callable[[], R], *, kinds: frozenset[str]) -> R:
        """Return what was made by this name, made again only when records of these kinds have changed."""
        if self._db.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            # What a transaction sees may be taken back, and its place in the ledger given again.
            return build()
        self._cache.drop_stale(self._db, self.last_entry())
        if name not in self._cache.kept:
            self._cache.kept[name] = kinds, build()
        value: R = self._cache.kept[name][1]
        return value

    def messages(self, *, after: int) -> list[StoredMessage]:
        """Return the live messages that were kept after this one, oldest first."""
        from archivist.bus import Message, StoredMessage

        rows: Any = self._db.execute(
            "SELECT id, seq, type, time, data FROM messages WHERE id > ? ORDER BY id", (after,)
        )
        return [
            StoredMessage(number, seq, Message(kind, from_text(time), json.loads(data)))
            for number, seq, kind, time, data in rows
        ]

    def last_message(self) -> int:
        """Return the number of the last live message, or 0."""
        return int(
            self._query_value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages'", ())
        )

    def stored_response(self, request: str) -> StoredResponse | None:
        """Return what a request by this name was answered, or None."""
        row: Any = self._db.execute(
            "SELECT digest, status, body, time FROM answers WHERE id = ? AND status > 0", (request,)
        ).fetchone()
        return StoredResponse(row[0], row[1], row[2], from_text(row[3])) if row else None

    def verify(self) -> Verification:
        """Check every seal of the ledger, and that every record is as its last entry left it."""
        from archivist.store.ledger import GENESIS, Verification, is_sealed, payload_hash

        problems: list[str] = []
        last: dict[tuple[str, str], tuple[int, str, bool]] = {}
        previous, entries, erased = GENESIS, 0, 0
        for entry, payload in self._entries("", [0, -1]):
            entries += 1
            if entry.seq != entries:
                problems.append(f"entry {entries} is missing")
                entries = entry.seq
            if not is_sealed(entry, previous):
                problems.append(f"entry {entry.seq} does not fit its seal")
            if payload is None:
                erased += 1
            elif payload_hash(payload) != entry.payload_hash:
                problems.append(f"the payload of entry {entry.seq} was changed")
            previous = entry.hash
            last[entry.kind, entry.record] = (entry.seq, entry.payload_hash, payload is None)
        problems += self._find_mismatches(last)
        return Verification(entries, erased, tuple(problems[:_PROBLEMS_SHOWN]))

    def setting(self, name: str) -> str:
        """Return a value that belongs to the bank itself, or an empty text."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def run_count(self) -> int:
        """Return how many runs have aged the bank."""
        return int(self._query_value("SELECT coalesce(max(number), 0) FROM episodes", ()))

    def event_sum(self, run: str) -> EventSum:
        """Return the count and the sum of hashes of a run's events: what its ledger entry vouches for."""
        row = self._db.execute("SELECT run, events, digest FROM event_sums WHERE run = ?", (run,)).fetchone()
        return EventSum(*row) if row else EventSum(run, 0, "0" * 64)

    def count_events(self, run: str) -> EventSum:
        """Count a run's events and sum their hashes anew."""
        from archivist.records import Event

        how = mapping_for(Event)
        total, count = 0, 0
        rows = self._db.execute(f"SELECT {', '.join(how.columns)} FROM events WHERE run = ?", (run,))
        for row in rows:
            total, count = (total + row_hash(row)) % HASH_SPACE, count + 1
        return EventSum(run, count, f"{total:064x}")

    def file_runs(self, digest: str) -> list[str] | None:
        """Return the runs that a file of this content held, or None when it was never captured."""
        row = self._db.execute("SELECT runs FROM captured_files WHERE digest = ?", (digest,)).fetchone()
        return list(json.loads(row[0])) if row else None

    def queued_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection, oldest first."""
        rows = self._db.execute(
            "SELECT run, holder, leased_until, attempts, error FROM pending ORDER BY queued, run"
        )
        return [
            QueuedRun(run, holder, from_text(until) if until else None, attempts, error)
            for run, holder, until, attempts, error in rows
        ]

    def _find_mismatches(self, last: dict[tuple[str, str], tuple[int, str, bool]]) -> Iterator[str]:
        """Name the records that are not as the ledger left them."""
        from archivist.store.ledger import payload_hash

        for kind, record in types_by_kind().items():
            how = mapping_for(record)
            seen = set()
            for row in self._db.execute(f"SELECT {', '.join(how.columns)} FROM {how.table}"):
                each: Any = how.to_record(row)
                seen.add(each.id)
                seq, digest, is_erased = last.get((kind, each.id), (0, "", False))
                if is_erased or payload_hash(canonical_json(to_plain(each))) == digest:
                    continue
                # An entry of an older version lacks the fields that records have gained since.
                if not self._matches_entry(each, seq):
                    yield f"{kind} {each.id} is not as entry {seq} left it"
            gone = payload_hash(canonical_json(None))
            for (entry_kind, record_id), (seq, digest, is_erased) in last.items():
                if entry_kind == kind and record_id not in seen and not is_erased and digest != gone:
                    yield f"{kind} {record_id} of entry {seq} is missing"
        for (entry_kind, run), (seq, digest, is_erased) in last.items():
            if (
                entry_kind == "event"
                and not is_erased
                and payload_hash(canonical_json(self.count_events(run)._asdict())) != digest
            ):
                yield f"the events of run {run} are not as entry {seq} left them"

    def _matches_entry(self, record: Any, seq: int) -> bool:
        from archivist.errors import RecordError
        from archivist.records.plain import from_plain

        payload = self._query_value("SELECT payload FROM ledger_payloads WHERE seq = ?", (seq,))
        try:
            return payload is not None and from_plain(type(record), json.loads(payload)) == record
        except RecordError:
            return False

    def _entries(
        self, clause: str, values: list[Any], payload_column: str = "p.payload"
    ) -> Iterator[tuple[LedgerEntry, str | None]]:
        from archivist.records import Actor, ActorKind
        from archivist.store.ledger import LedgerEntry

        rows = self._db.execute(
            f"SELECT {_ENTRY}, {payload_column} FROM ledger l LEFT JOIN ledger_payloads p USING (seq)"
            f" WHERE l.seq > ?{clause} ORDER BY l.seq LIMIT ?",
            values,
        )
        for seq, time, kind, name, role, verb, record_kind, record, digest, previous, sealed, payload in rows:
            actor = Actor(ActorKind(kind), name, role)
            yield (
                LedgerEntry(seq, from_text(time), actor, verb, record_kind, record, digest, previous, sealed),
                payload,
            )

    def _rows(
        self,
        record: type[Any] | str,
        fields: Sequence[str],
        conditions: Sequence[Condition],
        order: Sequence[str],
        limit: int | None,
        after: Sequence[object] | None = None,
    ) -> apsw.Cursor:
        table, columns = self._table_and_columns(record)
        clause, values = where_clause(table, columns, conditions)
        if after is not None:
            past, more = after_clause(table, columns, order, after)
            clause, values = f"{clause}{' AND ' if clause else ' WHERE '}{past}", [*values, *more]
        sql = f"SELECT {', '.join(fields)} FROM {table}{clause}{order_by(table, columns, order)}"
        if limit is not None:
            sql, values = f"{sql} LIMIT ?", [*values, limit]
        return self._db.execute(sql, values)

    def _table_and_columns(self, record: type[Any] | str) -> tuple[str, Sequence[str]]:
        """Return a record's table and columns; of a kind given by its word the table itself is asked."""
        if not isinstance(record, str):
            how = mapping_for(record)
            return how.table, how.columns
        table = table_of(record)
        return table, [str(row[1]) for row in self._db.execute(f"PRAGMA table_info({table})")]

    def _query_value(self, sql: str, values: Sequence[Any]) -> Any:
        row = self._db.execute(sql, tuple(values)).fetchone()
        return row[0] if row else None


def row_hash(row: Sequence[Any]) -> int:
    """Return a row's hash as a number, so that the hashes of many rows can be summed in any order."""
    from archivist.cold_start import sha256

    # Each value with its length, so that no two rows spell the same.
    spelled = "\x1e".join(
        [f"{len(value)}:{value}" if isinstance(value, str) else repr(value) for value in row]
    )
    return int.from_bytes(sha256(spelled.encode("utf-8", "surrogatepass")).digest())
