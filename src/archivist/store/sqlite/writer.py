"""Change a SQLite bank: record, text index, tallies and ledger in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import apsw

from archivist.access.rights import DENIAL, DENIALS_WITHIN_S, MAX_DENIALS
from archivist.clock import to_text
from archivist.records.actor import Actor
from archivist.records.plain import canonical_json, to_plain
from archivist.store.ledger import GENESIS, seal_entry
from archivist.store.results import EventSum, StoredResponse
from archivist.store.rows import TableMapping, kind_of, mapping_for, record_types
from archivist.store.sqlite.index import (
    clear_index,
    index_record,
    merge_segments,
    put_vectors,
    unindex_record,
    use_embedder,
)
from archivist.store.sqlite.reader import HASH_SPACE, SqliteReader, row_hash
from archivist.store.sqlite.search import VectorCache

# A cold process that writes down what it told need not make the classes of events and verdicts.
if TYPE_CHECKING:
    from archivist.bus import Message
    from archivist.records import Brief, Event, Verdict

# A run whose reflection failed this often waits for somebody to look at it.
MAX_ATTEMPTS = 3
_BROKEN_OFF = "every reflection on it broke off midway"
_COUNTED = ("helpful", "ineffective", "ignored")


class SqliteWriter(SqliteReader):
    """A transaction in one actor's name at one time."""

    def __init__(self, db: apsw.Connection, cache: VectorCache, actor: Actor, now: datetime) -> None:
        super().__init__(db, cache)
        self._actor = actor
        self._now = now

    def as_actor(self, actor: Actor, now: datetime) -> SqliteWriter:
        """Return this transaction as one that works in it sees it: what it does is done in its own name."""
        return self if actor == self._actor else SqliteWriter(self._db, self._cache, actor, now)

    def put(self, record: Any, verb: str) -> bool:
        """Insert or replace a record and enter it in the ledger; False when it was the same already."""
        before = self.get(type(record), record.id)
        if before == record:
            return False
        how = mapping_for(type(record))
        _upsert(self._db, how, how.to_row(record))
        index_record(self._db, kind_of(type(record)), record)
        _update_tallies(self._db, kind_of(type(record)), before, record)
        self._append_ledger_entry(verb, kind_of(type(record)), record.id, to_plain(record))
        return True

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        """Add a run's events under one ledger entry and return how many were new or changed."""
        from archivist.records import Event

        how = mapping_for(Event)
        find = f"SELECT {', '.join(how.columns)} FROM events WHERE id = ?"
        known = self.event_sum(run)
        count, total, changed = known.events, int(known.digest, 16), 0
        for event in events:
            row = how.to_row(event)
            before = self._db.execute(find, (event.id,)).fetchone() if known.events else None
            if before is not None:
                if tuple(before) == row:
                    continue
                total -= row_hash(before)
                count -= 1
            _upsert(self._db, how, row)
            index_record(self._db, "event", event)
            total, count, changed = (total + row_hash(row)) % HASH_SPACE, count + 1, changed + 1
        if changed:
            after = EventSum(run, count, f"{total % HASH_SPACE:064x}")
            self._db.execute("INSERT OR REPLACE INTO event_sums VALUES (?, ?, ?)", after)
            self._append_ledger_entry(verb, "event", run, after._asdict())
        return changed

    def queue(self, run: str) -> None:
        """Let a run wait for reflection; one that is being reflected on waits again."""
        self._db.execute(
            "INSERT OR REPLACE INTO pending (run, queued) VALUES (?, ?)", (run, to_text(self._now))
        )

    def lease(self, holder: str, until: datetime, *, runs: Sequence[str] = (), limit: int = 1) -> list[str]:
        """Take waiting runs, oldest first, that nobody else holds; they are ours until the given time."""
        now = to_text(self._now)
        self._db.execute(
            "UPDATE pending SET holder = '', error = ?"
            " WHERE holder <> '' AND leased_until < ? AND attempts >= ?",
            (_BROKEN_OFF, now, MAX_ATTEMPTS),
        )
        chosen = f" AND run IN ({', '.join('?' * len(runs))})" if runs else ""
        rows = self._db.execute(
            f"SELECT run FROM pending WHERE leased_until < ? AND attempts < ?{chosen}"
            " ORDER BY queued, run LIMIT ?",
            (now, MAX_ATTEMPTS, *runs, limit),
        ).fetchall()
        for (run,) in rows:
            self._db.execute(
                "UPDATE pending SET holder = ?, leased_until = ?, attempts = attempts + 1 WHERE run = ?",
                (holder, to_text(until), run),
            )
        return [str(run) for (run,) in rows]

    def end_lease(self, run: str, holder: str, error: str = "") -> bool:
        """End a lease: the run leaves the queue, or after an error waits again. False when it was lost."""
        if error:
            sql = "UPDATE pending SET holder = '', leased_until = '', error = ? WHERE run = ? AND holder = ?"
            self._db.execute(sql, (error, run, holder))
        else:
            self._db.execute("DELETE FROM pending WHERE run = ? AND holder = ?", (run, holder))
        return self._db.changes() > 0

    def release_lease(self, run: str, holder: str) -> None:
        """End a lease as if it had never been: the run waits on, and nothing was tried."""
        self._db.execute(
            "UPDATE pending SET holder = '', leased_until = '', attempts = attempts - 1"
            " WHERE run = ? AND holder = ?",
            (run, holder),
        )

    def dequeue_run(self, run: str, until: datetime) -> None:
        """Take a run out of the queue that was reflected on; one that was queued after a time waits on."""
        self._db.execute("DELETE FROM pending WHERE run = ? AND queued <= ?", (run, to_text(until)))

    def mark_file_captured(self, digest: str, runs: Sequence[str]) -> None:
        """Note that a file of this content was captured, and which runs it held."""
        self._db.execute(
            "INSERT OR REPLACE INTO captured_files VALUES (?, ?)", (digest, canonical_json(list(runs)))
        )

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record and enter that in the ledger; False when there was none."""
        before: Any = self.get(record, record_id)
        if before is None:
            return False
        self._db.execute(f"DELETE FROM {mapping_for(record).table} WHERE id = ?", (record_id,))
        unindex_record(self._db, kind_of(record), record_id)
        _update_tallies(self._db, kind_of(record), before, None)
        self._append_ledger_entry(verb, kind_of(record), record_id, None)
        return True

    def next_number(self) -> int:
        """Return the next number for a short id; never the same twice."""
        number = int(self.setting("last_number") or 0) + 1
        self.set_setting("last_number", str(number))
        return number

    def reserve_number(self, number: int) -> None:
        """Keep later numbers above this one, which came from outside."""
        if number > int(self.setting("last_number") or 0):
            self.set_setting("last_number", str(number))

    def set_setting(self, name: str, value: str) -> None:
        """Set a value that belongs to the bank itself."""
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def put_vectors(
        self, embedder: str, dimensions: int, rows: Iterable[tuple[int, int, tuple[bytes, bytes, bytes]]]
    ) -> int:
        """Store packed vectors of documents that have not changed meanwhile; return how many."""
        return put_vectors(self._db, embedder, dimensions, rows)

    def use_embedder(self, embedder: str) -> None:
        """Search with one embedder's vectors from now on, and drop all others'."""
        use_embedder(self._db, embedder)

    def store_response(self, request: str, response: StoredResponse) -> None:
        """Keep what a request by this name was answered."""
        self._db.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
            (request, response.digest, response.status, response.body, to_text(response.time)),
        )

    def store_message(self, message: Message, *, max_messages: int) -> None:
        """Keep a live message behind the ledger's last entry, and of all the latest so many."""
        self._db.execute(
            "INSERT INTO messages (seq, time, type, data) SELECT coalesce(max(seq), 0), ?, ?, ? FROM ledger",
            (to_text(message.time), message.type, canonical_json(to_plain(message.data))),
        )
        self._db.execute("DELETE FROM messages WHERE id <= last_insert_rowid() - ?", (max_messages,))

    def drop_responses_before(self, moment: datetime) -> None:
        """Let go of the answers that are older."""
        self._db.execute("DELETE FROM answers WHERE time < ?", (to_text(moment),))

    def record_denial(self, verb: str, layer: str) -> None:
        """Enter in the ledger that the actor was refused to do something to a layer.

        Of one refusal so many are noted within a minute; the last of them says that more may have come.
        """
        noted = self._recent_denials(f"deny {verb}", layer)
        if noted >= MAX_DENIALS:
            return
        told: dict[str, object] = {"actor": str(self._actor), "verb": verb, "layer": layer}
        if noted == MAX_DENIALS - 1:
            told["and_more"] = True
        self._append_ledger_entry(f"deny {verb}", DENIAL, layer, told)

    def _recent_denials(self, verb: str, layer: str) -> int:
        """Return how often this actor was refused this within the last minute, up to what is noted of it."""
        actor = self._actor
        rows = self._db.execute(
            "SELECT time FROM ledger WHERE record = ? AND kind = ? AND verb = ? AND actor_kind = ?"
            " AND actor_name = ? AND actor_role = ? ORDER BY seq DESC LIMIT ?",
            (layer, DENIAL, verb, actor.kind.value, actor.name, actor.role, MAX_DENIALS),
        )
        since = to_text(self._now - timedelta(seconds=DENIALS_WITHIN_S))
        return sum(str(time) > since for (time,) in rows)

    def merge_index(self) -> bool:
        """Bring scattered pieces of the text index together, a part of the work; say whether any was done."""
        return merge_segments(self._db)

    def _append_ledger_entry(self, verb: str, kind: str, record: str, after: object) -> None:
        row = self._db.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
        seq, previous = (int(row[0]) + 1, str(row[1])) if row else (1, GENESIS)
        payload = canonical_json(after)
        entry = seal_entry(previous, seq, self._now, self._actor, verb, kind, record, payload)
        self._db.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                seq, to_text(entry.time), entry.actor.kind.value, entry.actor.name, entry.actor.role,
                verb, kind, record, entry.payload_hash, previous, entry.hash,
            ),
        )  # fmt: skip
        self._db.execute("INSERT INTO ledger_payloads VALUES (?, ?)", (seq, payload))


def rebuild_derived(db: apsw.Connection) -> None:
    """Build the text index and the tallies again from the records."""
    clear_index(db)
    db.execute("DELETE FROM tallies; DELETE FROM event_sums")
    reader = SqliteReader(db, VectorCache())
    for (run,) in db.execute("SELECT DISTINCT run FROM events").fetchall():
        db.execute("INSERT INTO event_sums VALUES (?, ?, ?)", reader.count_events(str(run)))
    for record in record_types():
        how: TableMapping[Any] = mapping_for(record)
        for row in db.execute(f"SELECT {', '.join(how.columns)} FROM {how.table}"):
            each = how.to_record(row)
            index_record(db, kind_of(record), each)
            _update_tallies(db, kind_of(record), None, each)


def _upsert(db: apsw.Connection, how: TableMapping[Any], row: tuple[Any, ...]) -> None:
    changes = ", ".join(f"{name} = excluded.{name}" for name in how.columns if name != "id")
    db.execute(
        f"INSERT INTO {how.table} ({', '.join(how.columns)}) VALUES ({', '.join('?' * len(row))})"
        f" ON CONFLICT (id) DO UPDATE SET {changes}",
        row,
    )


def _update_tallies(db: apsw.Connection, kind: str, before: Any, after: Any) -> None:
    """Keep the tallies in step with briefs and verdicts."""
    for record, step in ((before, -1), (after, 1)):
        if record is not None and kind == "brief":
            _count_brief(db, record, step)
        elif record is not None and kind == "verdict":
            _count_verdict(db, record, step)


def _count_brief(db: apsw.Connection, brief: Brief, step: int) -> None:
    for lesson in brief.lessons:
        db.execute(
            "INSERT INTO tallies (lesson, used, last_used) VALUES (?, ?, ?)"
            " ON CONFLICT (lesson) DO UPDATE SET used = used + excluded.used,"
            " last_used = max(coalesce(last_used, ''), excluded.last_used)",
            (lesson, step, to_text(brief.time)),
        )


def _count_verdict(db: apsw.Connection, verdict: Verdict, step: int) -> None:
    for column in _tally_columns(verdict):
        db.execute(
            f"INSERT INTO tallies (lesson, {column}) VALUES (?, ?) ON CONFLICT (lesson) DO UPDATE"
            f" SET {column} = {column} + excluded.{column}",
            (verdict.lesson, step),
        )


def _tally_columns(verdict: Verdict) -> list[str]:
    """Return the columns in which a verdict counts."""
    from archivist.records import Following

    columns: list[str] = [verdict.effect.value] if verdict.effect.value in _COUNTED else []
    if verdict.failed is not None:
        arm = "withheld" if verdict.following is Following.WITHHELD else "told"
        columns += [arm, f"{arm}_failed"] if verdict.failed else [arm]
    return columns
