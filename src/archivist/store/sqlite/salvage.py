"""Fill a new bank with everything that can be read of a damaged one.

Rows come from the pages themselves. The ledger then decides: a record that it proves wrong or that is missing
is restored from the payload of its last entry, and a broken chain is sealed again from the break on.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from archivist.clock import from_text
from archivist.errors import BankDamagedError, RecordError
from archivist.records.actor import ARCHIVIST, Actor
from archivist.records.kinds import KINDS, types_by_kind
from archivist.records.plain import canonical_json, from_plain, to_plain
from archivist.records.words import ActorKind
from archivist.store.ledger import (
    GENESIS,
    REMOVED,
    SALVAGE,
    LedgerEntry,
    entry_hash,
    find_lost_payloads,
    payload_hash,
    sum_events,
)
from archivist.store.rows import DECODING_ERRORS, mapping_for
from archivist.store.sqlite.check import DERIVED_TABLES, check_other_row, reference_schema
from archivist.store.sqlite.pages import PageReader, StoredRow, Value
from archivist.store.sqlite.search import VectorCache
from archivist.store.sqlite.writer import SqliteWriter, rebuild_derived

# More missing entries in a row than any bank has: the number of the next one is damaged.
_MAX_GAP = 1_000_000
_BATCH = 1000
# Not kept where the ledger does not prove them, nor restored from it: a revoked token could come back.
_PROVEN_ONLY = ("token",)


class SalvageAccount(NamedTuple):
    """What a salvaged bank holds, where it comes from, and what is lost."""

    # By the plural of their kind: what the new bank holds, and how many of those came from the ledger.
    records: dict[str, int]
    restored: dict[str, int]
    lost: tuple[str, ...]
    # Records that do not fit the ledger and were kept as they were read.
    unproven: int
    entries: int
    lost_entries: int
    # The entry from which on the chain was broken, and is sealed again.
    resealed_from: int | None
    lost_payloads: int
    damaged_pages: tuple[int, ...]

    @property
    def is_complete(self) -> bool:
        """Say whether the new bank holds all that the old one held, as the ledger proves."""
        return not (
            self.lost or self.unproven or self.lost_entries or self.lost_payloads or self.resealed_from
        )


class _Column(NamedTuple):
    name: str
    types: tuple[type, ...]
    is_rowid: bool
    has_default: bool
    default: Value


class _Table(NamedTuple):
    name: str
    columns: tuple[_Column, ...]

    def fit(self, row: StoredRow) -> tuple[Value, ...] | None:
        """Return a stored row's values for all columns; None when it is no row of this table."""
        if len(row.values) > len(self.columns):
            return None
        fitted: list[Value] = []
        for place, column in enumerate(self.columns):
            # A row that was written before the column was added ends earlier.
            if place >= len(row.values):
                if not column.has_default:
                    return None
                fitted.append(column.default)
                continue
            value = row.values[place]
            if column.is_rowid and value is None:
                value = row.rowid
            if type(value) not in column.types:
                return None
            # SQLite stores a real number without a fraction as an integer.
            fitted.append(float(value) if column.types[0] is float and isinstance(value, int) else value)
        return tuple(fitted)


class Salvage:
    """Fill an empty bank with what can be read of the pages of a damaged one."""

    def __init__(self, db: apsw.Connection, pages: PageReader, now: datetime, *, is_current: bool) -> None:
        self._db = db
        self._is_current = is_current
        self._pages = pages
        self._roots = pages.schema_roots()
        self._writer = SqliteWriter(db, VectorCache(), ARCHIVIST, now)
        self._tables = _read_tables(db)
        # Tables of which not every row could be read, and entries of the ledger that do not fit their seal.
        self._incomplete: set[str] = set()
        self._unsealed: list[tuple[Value, ...]] = []
        self._last: dict[tuple[str, str], LedgerEntry] = {}
        self._restored: Counter[str] = Counter()
        self._lost: list[str] = []
        self._unproven = self._lost_entries = self._lost_payloads = 0
        self._resealed_from: int | None = None

    def run(self) -> SalvageAccount:
        """Fill the bank, and say with what."""
        triggers = [sql for kind, _, sql in reference_schema().values() if kind == "trigger"]
        # The ledger of a new bank refuses changes; this one is not finished.
        self._db.execute("DROP TRIGGER ledger_keeps; DROP TRIGGER ledger_stays")
        for table in self._tables.values():
            self._copy_table(table)
        self._load_orphans("ledger")
        self._take_unsealed_entries()
        self._load_orphans("ledger_payloads")
        self._seal_ledger()
        self._load_orphans("events")
        for kind, record_class in types_by_kind().items():
            self._repair_records(kind, record_class)
        self._enter_event_sums()
        # Of the tables beside the records; what records lost, the ledger tells.
        known = {*_RECORDS, "ledger", "ledger_payloads"}
        self._lost += [f"some or all rows of {name}" for name in sorted(self._incomplete - known)]
        self._writer.reserve_number(self._writer.query_value("SELECT max(number) FROM lessons") or 0)
        for trigger in triggers:
            self._db.execute(trigger)
        rebuild_derived(self._db)
        account = SalvageAccount(
            {kind.plural: count for kind in KINDS if (count := self._writer.count(kind.name))},
            dict(self._restored),
            tuple(self._lost),
            self._unproven,
            self._writer.last_entry(),
            self._lost_entries,
            self._resealed_from,
            self._lost_payloads,
            tuple(sorted(self._pages.damaged)),
        )
        if not account.is_complete:
            self._writer.append_entry(SALVAGE, SALVAGE, "", to_plain(account._asdict()))
        return account

    # Rows

    def _copy_table(self, table: _Table) -> None:
        """Copy the rows of one table that can be read."""
        before = len(self._pages.damaged)
        if table.name not in self._roots:
            # A bank of an earlier version has not all tables yet.
            if self._is_current:
                self._incomplete.add(table.name)
            return
        for number, rows in self._pages.tree_pages(self._roots[table.name]):
            fitted = [values for row in rows if (values := table.fit(row)) is not None]
            if rows and not fitted:
                # A page of another table: it is looked at again with those that no tree leads to.
                self._pages.seen.discard(number)
            for values in fitted:
                self._insert(table, values)
            if len(fitted) < len(rows):
                self._pages.damaged.add(number)
        if len(self._pages.damaged) > before:
            self._incomplete.add(table.name)

    def _insert(self, table: _Table, values: tuple[Value, ...]) -> None:
        """Insert a row that makes sense, unless another has its place."""
        named = {column.name: value for column, value in zip(table.columns, values, strict=True)}
        try:
            if table.name == "ledger" and not _is_sealed(values):
                self._unsealed.append(values)
                return
            if table.name in _RECORDS:
                how: Any = mapping_for(_RECORDS[table.name].record)
                record_id = how.to_record([named[name] for name in how.columns]).id
                # Some ids are made of other fields. The ledger has the right ones, but not of events.
                if named["id"] != record_id and _RECORDS[table.name].has_ledger_entries:
                    raise ValueError("the id of another record")
                named["id"] = record_id
            else:
                check_other_row(table.name, named)
            marks = ", ".join("?" * len(named))
            self._db.execute(
                f"INSERT OR IGNORE INTO {table.name} ({', '.join(named)}) VALUES ({marks})",
                tuple(named.values()),
            )
        except (BankDamagedError, apsw.Error, *DECODING_ERRORS):
            self._incomplete.add(table.name)

    def _load_orphans(self, name: str) -> None:
        """Load rows of pages that no tree leads to; the ledger must prove them, since a page may be old."""
        table = self._tables[name]
        for number in self._pages.orphan_pages():
            for row in self._pages.page_rows(number):
                values = table.fit(row)
                if values is not None and self._is_proven_row(table, values):
                    self._insert(table, values)

    def _is_proven_row(self, table: _Table, values: tuple[Any, ...]) -> bool:
        if table.name == "ledger":
            return _is_sealed(values)
        query = self._writer.query_value
        if table.name == "ledger_payloads":
            known = query("SELECT payload_hash FROM ledger WHERE seq = ?", values[0])
            return bool(known == payload_hash(values[1]))
        run = values[[column.name for column in table.columns].index("run")]
        entry = self._last.get(("event", run))
        there = query("SELECT count(*) FROM events WHERE run = ?", run)
        return entry is not None and there < self._events_entered(entry)

    def _events_entered(self, entry: LedgerEntry) -> int:
        """Return how many events a run had by the ledger; 0 when that is lost."""
        try:
            ((_, payload),) = self._writer.ledger(after=entry.seq - 1, limit=1)
            return int(json.loads(payload or "")["events"])
        except DECODING_ERRORS:
            return 0

    # The ledger

    def _take_unsealed_entries(self) -> None:
        """Keep entries that were changed, where their number can be right: after that of a whole one."""
        highest = self._writer.last_entry() + len(self._unsealed)
        for values in self._unsealed:
            try:
                entry = _read_entry(values)
            except DECODING_ERRORS:
                continue
            there = self._writer.query_value("SELECT 1 FROM ledger WHERE seq = ?", entry.seq)
            if there is None and 0 < entry.seq <= highest:
                self._writer.write_entry(entry)

    def _seal_ledger(self) -> None:
        """Seal the chain again from the first lost or changed entry on; note each record's last."""
        previous, seq, time = GENESIS, 0, self._writer.now
        while batch := list(self._writer.ledger(after=seq, limit=_BATCH)):
            for entry, payload in batch:
                if entry.seq - seq > _MAX_GAP:
                    self._db.execute("DELETE FROM ledger WHERE seq >= ?", (entry.seq,))
                    return
                for missing in range(seq + 1, entry.seq):
                    self._db.execute("DELETE FROM ledger_payloads WHERE seq = ?", (missing,))
                    gap = LedgerEntry(missing, time, ARCHIVIST, "lost", SALVAGE, "", REMOVED, previous, "")
                    previous = self._write_entry(gap)
                    self._lost_entries += 1
                seq, time = entry.seq, entry.time
                is_sealed = entry.hash == entry_hash(entry)
                if payload is not None and payload_hash(payload) != entry.payload_hash:
                    if is_sealed:
                        self._db.execute("DELETE FROM ledger_payloads WHERE seq = ?", (seq,))
                    else:
                        entry = entry._replace(payload_hash=payload_hash(payload))  # noqa: PLW2901
                if is_sealed and entry.previous == previous:
                    previous = entry.hash
                else:
                    previous = self._write_entry(entry._replace(previous=previous))
                self._last[entry.kind, entry.record] = entry
        self._db.execute("DELETE FROM ledger_payloads WHERE seq NOT IN (SELECT seq FROM ledger)")
        self._lost_payloads = len(find_lost_payloads(self._writer))

    def _write_entry(self, entry: LedgerEntry) -> str:
        """Write an entry with a new seal, and return that."""
        self._resealed_from = self._resealed_from or entry.seq
        seal = entry_hash(entry)
        self._db.execute("DELETE FROM ledger WHERE seq = ?", (entry.seq,))
        self._writer.write_entry(entry._replace(hash=seal))
        return seal

    # Records

    def _repair_records(self, kind: str, record_class: type[Any]) -> None:
        """Make every record what the ledger says, or enter in the ledger what it is."""
        there: set[str] = set()
        how: Any = mapping_for(record_class)
        for row in self._db.execute(f"SELECT {how.column_list} FROM {how.table}").fetchall():
            record = how.to_record(row)
            there.add(record.id)
            entry = self._last.get((kind, record.id))
            digest = payload_hash(canonical_json(to_plain(record)))
            if entry is None or digest != entry.payload_hash:
                self._repair_record(kind, record, entry, digest)
        for (entry_kind, name), entry in list(self._last.items()):
            if entry_kind == kind and name not in there and entry.payload_hash != REMOVED:
                self._restore(kind, record_class, entry)

    def _repair_record(self, kind: str, record: Any, entry: LedgerEntry | None, digest: str) -> None:
        """Restore a record that its last entry proves wrong; keep it where the ledger itself lost entries."""
        entered = self._writer.ledger(after=entry.seq - 1, limit=1) if entry is not None else ()
        # Records gain fields, so that an old payload has another hash than its record.
        if any(_decode(type(record), payload) == record for _, payload in entered):
            return
        if kind in _PROVEN_ONLY:
            self._delete(record)
            self._give_up(kind, record.id, ": create a new one")
            return
        is_ledger_whole = self._resealed_from is None and "ledger" not in self._incomplete
        changes = self._writer.ledger(record_id=record.id, kind=kind, with_payloads=False)
        # Otherwise only what is the state that an earlier entry left is wrong.
        if entry is not None and (is_ledger_whole or any(each.payload_hash == digest for each, _ in changes)):
            if entry.payload_hash == REMOVED:
                self._delete(record)
                return
            if self._restore(kind, type(record), entry, is_row_there=True):
                return
        self._unproven += 1
        self._writer.append_entry(SALVAGE, kind, record.id, to_plain(record))

    def _delete(self, record: Any) -> None:
        self._db.execute(f"DELETE FROM {mapping_for(type(record)).table} WHERE id = ?", (record.id,))

    def _restore(
        self, kind: str, record_class: Any, last: LedgerEntry, *, is_row_there: bool = False
    ) -> bool:
        """Restore a record from the last payload that can be read; note it as lost when there is none."""
        if kind in _PROVEN_ONLY:
            self._give_up(kind, last.record, ": create a new one")
            return False
        changes = self._writer.ledger(record_id=last.record, kind=kind, newest_first=True)
        payloads = [(entry.seq, payload) for entry, payload in changes if payload is not None]
        for seq, payload in payloads:
            record = _decode(record_class, payload)
            # An entry whose own row is damaged may name another record.
            if record is None or record.id != last.record:
                continue
            try:
                self._writer.write_record(record)
            except apsw.Error:
                continue
            if seq != last.seq:
                self._writer.append_entry(SALVAGE, kind, record.id, to_plain(record))
            self._restored[kind] += 1
            return True
        # Without any payload it was erased on purpose, as far as anybody can tell.
        if payloads and not is_row_there:
            self._give_up(kind, last.record)
        return False

    def _give_up(self, kind: str, name: str, advice: str = "") -> None:
        """Note a record as lost, also in the ledger."""
        self._lost.append(f"{kind} {name}{advice}")
        self._writer.append_entry(SALVAGE, kind, name, None)

    def _enter_event_sums(self) -> None:
        """Enter in the ledger how many events each run has now."""
        for (kind, run), entry in list(self._last.items()):
            if kind != "event":
                continue
            actual = sum_events(self._writer, run)
            if payload_hash(canonical_json(actual._asdict())) != entry.payload_hash:
                entered = self._events_entered(entry)
                if entered > actual.events:
                    self._lost.append(f"{entered - actual.events} of {entered} events of run {run}")
                else:
                    self._unproven += 1
                self._writer.append_entry(SALVAGE, "event", run, actual._asdict())


_RECORDS = {kind.table: kind for kind in KINDS}


def _read_tables(db: apsw.Connection) -> dict[str, _Table]:
    """Return the tables whose rows are taken over: not those that are derived from others."""
    types: dict[str, tuple[type, ...]] = {
        "TEXT": (str,), "INTEGER": (int,), "REAL": (float, int), "BLOB": (bytes,),
    }  # fmt: skip
    found = {}
    listed: list[Any] = db.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    ).fetchall()
    for name, has_no_rowid in listed:
        if name in DERIVED_TABLES or name == "migrations" or name.startswith("sqlite_"):
            continue
        columns = []
        info: list[Any] = db.execute(f"PRAGMA table_xinfo({name})").fetchall()
        for _, column, kind, is_required, default, key, hidden in info:
            if hidden:
                continue
            is_nullable = not is_required and not key
            row: Any = db.execute(f"SELECT {default or 'NULL'}").fetchone()
            columns.append(
                _Column(
                    column,
                    (*types[kind], type(None)) if is_nullable else types[kind],
                    bool(key) and kind == "INTEGER" and not has_no_rowid,
                    default is not None or is_nullable,
                    row[0],
                )
            )
        found[name] = _Table(name, tuple(columns))
    return found


def _read_entry(values: tuple[Any, ...]) -> LedgerEntry:
    """Return the entry of a row of the ledger."""
    seq, time, kind, name, role, *rest = values
    return LedgerEntry(seq, from_text(time), Actor(ActorKind(kind), name, role), *rest)


def _is_sealed(values: tuple[Any, ...]) -> bool:
    """Say whether a row of the ledger is what its own hash says."""
    try:
        entry = _read_entry(values)
    except DECODING_ERRORS:
        return False
    return entry.hash == entry_hash(entry)


def _decode(record_class: type[Any], payload: str | None) -> Any:
    """Return the record of a payload; None when it holds none."""
    try:
        return from_plain(record_class, json.loads(payload)) if payload is not None else None
    except (RecordError, *DECODING_ERRORS):
        return None
