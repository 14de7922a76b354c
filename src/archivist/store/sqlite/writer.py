"""Change a SQLite bank: record, text index, tallies and ledger in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import apsw

from archivist.access.rights import DENIAL, DENIALS_WITHIN_S, MAX_DENIALS
from archivist.clock import to_text
from archivist.records.actor import Actor
from archivist.records.plain import canonical, to_plain
from archivist.store.ledger import GENESIS, seal
from archivist.store.results import Answered, EventSum
from archivist.store.rows import Mapping, kind_of, mapping, records
from archivist.store.sqlite.index import clear, gather, index, put_vectors, unindex, use_embedder
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

    def in_name_of(self, actor: Actor, now: datetime) -> SqliteWriter:
        """Return this transaction as one that works in it sees it: what it does is done in its own name."""
        return self if actor == self._actor else SqliteWriter(self._db, self._cache, actor, now)

    def put(self, record: Any, verb: str) -> bool:
        """Insert or replace a record and enter it in the ledger; False when it was the same already."""
        before = self.get(type(record), record.id)
        if before == record:
            return False
        how = mapping(type(record))
        _upsert(self._db, how, how.to_row(record))
        index(self._db, kind_of(type(record)), record)
        _count(self._db, kind_of(type(record)), before, record)
        self._enter(verb, kind_of(type(record)), record.id, to_plain(record))
        return True

    def put_events(self, run: str, events: Iterable[Event], verb: str) -> int:
        """Add a run's events under one ledger entry and return how many were new or changed."""
        from archivist.records import Event

        how = mapping(Event)
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
            index(self._db, "event", event)
            total, count, changed = (total + row_hash(row)) % HASH_SPACE, count + 1, changed + 1
        if changed:
            after = EventSum(run, count, f"{total % HASH_SPACE:064x}")
            self._db.execute("INSERT OR REPLACE INTO event_sums VALUES (?, ?, ?)", after)
            self._enter(verb, "event", run, after._asdict())
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

    def settle(self, run: str, holder: str, error: str = "") -> bool:
        """End a lease: the run leaves the queue, or after an error waits again. False when it was lost."""
        if error:
            sql = "UPDATE pending SET holder = '', leased_until = '', error = ? WHERE run = ? AND holder = ?"
            self._db.execute(sql, (error, run, holder))
        else:
            self._db.execute("DELETE FROM pending WHERE run = ? AND holder = ?", (run, holder))
        return self._db.changes() > 0

    def give_back(self, run: str, holder: str) -> None:
        """End a lease as if it had never been: the run waits on, and nothing was tried."""
        self._db.execute(
            "UPDATE pending SET holder = '', leased_until = '', attempts = attempts - 1"
            " WHERE run = ? AND holder = ?",
            (run, holder),
        )

    def forget_waiting(self, run: str, until: datetime) -> None:
        """Take a run out of the queue that was reflected on; one that was queued after a time waits on."""
        self._db.execute("DELETE FROM pending WHERE run = ? AND queued <= ?", (run, to_text(until)))

    def remember_file(self, digest: str, runs: Sequence[str]) -> None:
        """Note that a file of this content was captured, and which runs it held."""
        self._db.execute(
            "INSERT OR REPLACE INTO captured_files VALUES (?, ?)", (digest, canonical(list(runs)))
        )

    def remove(self, record: type[Any], record_id: str, verb: str) -> bool:
        """Remove a record and enter that in the ledger; False when there was none."""
        before: Any = self.get(record, record_id)
        if before is None:
            return False
        self._db.execute(f"DELETE FROM {mapping(record).table} WHERE id = ?", (record_id,))
        unindex(self._db, kind_of(record), record_id)
        _count(self._db, kind_of(record), before, None)
        self._enter(verb, kind_of(record), record_id, None)
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

    def keep_answer(self, request: str, answer: Answered) -> None:
        """Keep what a request by this name was answered."""
        self._db.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
            (request, answer.digest, answer.status, answer.body, to_text(answer.time)),
        )

    def keep_message(self, message: Message, *, most: int) -> None:
        """Keep a live message behind the ledger's last entry, and of all the latest so many."""
        self._db.execute(
            "INSERT INTO messages (seq, time, type, data) SELECT coalesce(max(seq), 0), ?, ?, ? FROM ledger",
            (to_text(message.time), message.type, canonical(to_plain(message.data))),
        )
        self._db.execute("DELETE FROM messages WHERE id <= last_insert_rowid() - ?", (most,))

    def drop_answers_before(self, moment: datetime) -> None:
        """Let go of the answers that are older."""
        self._db.execute("DELETE FROM answers WHERE time < ?", (to_text(moment),))

    def enter_denial(self, verb: str, layer: str) -> None:
        """Enter in the ledger that the actor was refused to do something to a layer.

        Of one refusal so many are noted within a minute; the last of them says that more may have come.
        """
        noted = self._denied_lately(f"deny {verb}", layer)
        if noted >= MAX_DENIALS:
            return
        told: dict[str, object] = {"actor": str(self._actor), "verb": verb, "layer": layer}
        if noted == MAX_DENIALS - 1:
            told["and_more"] = True
        self._enter(f"deny {verb}", DENIAL, layer, told)

    def _denied_lately(self, verb: str, layer: str) -> int:
        """Return how often this actor was refused this within the last minute, up to what is noted of it."""
        actor = self._actor
        rows = self._db.execute(
            "SELECT time FROM ledger WHERE record = ? AND kind = ? AND verb = ? AND actor_kind = ?"
            " AND actor_name = ? AND actor_role = ? ORDER BY seq DESC LIMIT ?",
            (layer, DENIAL, verb, actor.kind.value, actor.name, actor.role, MAX_DENIALS),
        )
        since = to_text(self._now - timedelta(seconds=DENIALS_WITHIN_S))
        return sum(str(time) > since for (time,) in rows)

    def gather_index(self) -> bool:
        """Bring scattered pieces of the text index together, a part of the work; say whether any was done."""
        return gather(self._db)

    def _enter(self, verb: str, kind: str, record: str, after: object) -> None:
        row = self._db.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
        seq, previous = (int(row[0]) + 1, str(row[1])) if row else (1, GENESIS)
        payload = canonical(after)
        entry = seal(previous, seq, self._now, self._actor, verb, kind, record, payload)
        self._db.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                seq, to_text(entry.time), entry.actor.kind.value, entry.actor.name, entry.actor.role,
                verb, kind, record, entry.payload_hash, previous, entry.hash,
            ),
        )  # fmt: skip
        self._db.execute("INSERT INTO ledger_payloads VALUES (?, ?)", (seq, payload))


def refill(db: apsw.Connection) -> None:
    """Build the text index and the tallies again from the records."""
    clear(db)
    db.execute("DELETE FROM tallies; DELETE FROM event_sums")
    reader = SqliteReader(db, VectorCache())
    for (run,) in db.execute("SELECT DISTINCT run FROM events").fetchall():
        db.execute("INSERT INTO event_sums VALUES (?, ?, ?)", reader.count_events(str(run)))
    for record in records():
        how: Mapping[Any] = mapping(record)
        for row in db.execute(f"SELECT {', '.join(how.columns)} FROM {how.table}"):
            each = how.to_record(row)
            index(db, kind_of(record), each)
            _count(db, kind_of(record), None, each)


def _upsert(db: apsw.Connection, how: Mapping[Any], row: tuple[Any, ...]) -> None:
    changes = ", ".join(f"{name} = excluded.{name}" for name in how.columns if name != "id")
    db.execute(
        f"INSERT INTO {how.table} ({', '.join(how.columns)}) VALUES ({', '.join('?' * len(row))})"
        f" ON CONFLICT (id) DO UPDATE SET {changes}",
        row,
    )


def _count(db: apsw.Connection, kind: str, before: Any, after: Any) -> None:
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
    for column in _counted(verdict):
        db.execute(
            f"INSERT INTO tallies (lesson, {column}) VALUES (?, ?) ON CONFLICT (lesson) DO UPDATE"
            f" SET {column} = {column} + excluded.{column}",
            (verdict.lesson, step),
        )


def _counted(verdict: Verdict) -> list[str]:
    """Return the columns in which a verdict counts."""
    from archivist.records import Following

    columns: list[str] = [verdict.effect.value] if verdict.effect.value in _COUNTED else []
    if verdict.failed is not None:
        arm = "withheld" if verdict.following is Following.WITHHELD else "told"
        columns += [arm, f"{arm}_failed"] if verdict.failed else [arm]
    return columns
