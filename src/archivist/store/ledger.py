"""The ledger: every change in order, each entry sealed with the hash of the one before.

An entry holds the hash of its payload, not the payload: after a payload is erased the chain still verifies,
and the missing payload is visible.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from archivist.clock import to_text
from archivist.cold_start import sha256
from archivist.errors import BankDamagedError, RecordError
from archivist.records.actor import Actor
from archivist.records.kinds import types_by_kind
from archivist.records.plain import canonical_json, to_plain
from archivist.records.words import ActorKind, Provenance

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

GENESIS = "0" * 64
HASH_SPACE = 1 << 256
_PROBLEMS_SHOWN = 20
# Kinds of entries that are no record's: what an erasure searched and removed, the payloads that a transaction
# erased, and what a salvage could not save.
RECEIPT_KIND = "erasure"
PAYLOADS = "ledger payloads"
ERASED_KIND = "erased"
SALVAGE = "salvage"
_ERASING_VERBS = ("erase", "prune")
# Records that are checked at a time.
_PAGE = 1000


class LedgerEntry(NamedTuple):
    """One change: who did what to which record, and the seals."""

    seq: int
    time: datetime
    actor: Actor
    verb: str
    kind: str
    record: str
    payload_hash: str
    previous: str
    hash: str


class LedgerChange(NamedTuple):
    """An entry with the record as it was left: None when it was removed or its payload erased."""

    entry: LedgerEntry
    after: dict[str, object] | None
    is_erased: bool = False


class EventSum(NamedTuple):
    """How many events a run has, and the sum of their hashes: what the ledger says of a run's events."""

    run: str
    events: int
    digest: str


class Verification(NamedTuple):
    """The result of checking the ledger; `problems` is empty when it is intact, `remedy` mends them."""

    entries: int
    erased: int
    problems: tuple[str, ...]
    remedy: str = ""

    @property
    def is_whole(self) -> bool:
        """Say whether every seal and every record fits."""
        return not self.problems


def payload_hash(payload: str) -> str:
    """Return the hash that stands for a payload in its entry."""
    return sha256(payload.encode()).hexdigest()


# Stands for the payload of an entry that removed its record.
REMOVED = payload_hash("null")


def provenance_of_run(origin: LedgerEntry) -> Provenance:
    """Return where a run comes from by the entry that brought it: own runs count, others are only shown."""
    if origin.actor.kind is ActorKind.AGENT:
        return Provenance.SUGGESTED
    return Provenance.IMPORTED if origin.verb == "import" else Provenance.MINED


def seal_entry(
    previous: str, seq: int, time: datetime, actor: Actor, verb: str, kind: str, record: str, payload: str
) -> LedgerEntry:
    """Make the entry that follows the one with hash `previous`."""
    entry = LedgerEntry(seq, time, actor, verb, kind, record, payload_hash(payload), previous, "")
    return entry._replace(hash=entry_hash(entry))


def entry_hash(entry: LedgerEntry) -> str:
    """Return the hash of an entry's content and of the entry before it."""
    actor = entry.actor
    content = [
        entry.previous, entry.seq, to_text(entry.time), actor.kind.value, actor.name, actor.role,
        entry.verb, entry.kind, entry.record, entry.payload_hash,
    ]  # fmt: skip
    return sha256(canonical_json(content).encode()).hexdigest()


def row_hash(row: Sequence[Any]) -> int:
    """Return a row's hash as a number, so that the hashes of many rows can be summed in any order."""
    # Each text with its length, so that no two rows give the same input.
    parts = [f"{len(value)}:{value}" if isinstance(value, str) else repr(value) for value in row]
    return int.from_bytes(sha256("\x1e".join(parts).encode("utf-8", "surrogatepass")).digest())


def sum_events(reader: "Reader", run: str) -> EventSum:
    """Count a run's events and sum their hashes."""
    from archivist.records import Event
    from archivist.store.filters import equals
    from archivist.store.rows import mapping_for

    rows = reader.select_fields(Event, mapping_for(Event).columns, equals("run", run))
    return EventSum(run, len(rows), f"{sum(map(row_hash, rows)) % HASH_SPACE:064x}")


def verify_bank(reader: "Reader") -> Verification:
    """Check every seal of the ledger, and that every record is as its last entry left it."""
    problems: list[str] = []
    # The number and payload hash of each record's last entry.
    last: dict[tuple[str, str], tuple[int, str]] = {}
    previous, entries, erased = GENESIS, 0, 0
    lost = set(find_lost_payloads(reader))
    origins: dict[str, LedgerEntry] = {}
    is_salvaged = False
    for entry, payload in reader.ledger():
        entries += 1
        is_salvaged = is_salvaged or entry.kind == SALVAGE
        if entry.kind in ("episode", "event"):
            known = origins.get(entry.record)
            if known is None or REMOVED in (entry.payload_hash, known.payload_hash):
                origins[entry.record] = entry
        if entry.seq != entries:
            problems.append(f"entry {entries} is missing")
            entries = entry.seq
        if entry.previous != previous or entry.hash != entry_hash(entry):
            problems.append(f"entry {entry.seq} does not fit its seal")
        if entry.seq in lost:
            problems.append(f"the payload of entry {entry.seq} is missing, and no erasure of it is recorded")
        elif payload is None:
            erased += 1
        elif payload_hash(payload) != entry.payload_hash:
            problems.append(f"the payload of entry {entry.seq} was changed")
        previous = entry.hash
        last[entry.kind, entry.record] = entry.seq, entry.payload_hash
    problems += _find_mismatches(reader, last)
    problems += _find_claimed_runs(reader, origins, is_salvaged=is_salvaged)
    return Verification(entries, erased, tuple(problems[:_PROBLEMS_SHOWN]))


def _find_claimed_runs(
    reader: "Reader", origins: dict[str, LedgerEntry], *, is_salvaged: bool
) -> Iterator[str]:
    """Name the runs that count as another's or as own ones although the ledger says otherwise.

    A salvaged bank has the entries of the salvage alone: there another's run is only never an own one.
    """
    for run, written in reader.select_fields("episode", ("id", "provenance")):
        origin = origins.get(str(run))
        if origin is None or origin.payload_hash == REMOVED:
            continue
        meant = provenance_of_run(origin)
        if written != meant.value and (not is_salvaged or written == Provenance.MINED.value):
            yield f"episode {run} counts as {written}, and the ledger says {meant.value}"


def find_lost_payloads(reader: "Reader") -> list[int]:
    """Return the entries whose payload is missing although the chain records no erasure of it.

    Each transaction that erases payloads enters which. Those of a record that was erased or pruned also count
    as erased, and all before an account of a salvage, or before a receipt of a version that entered no list.
    """
    missing: dict[int, tuple[str, str]] = {}
    erased: set[int] = set()
    # By record, the last entry that erased or pruned it.
    gone: dict[tuple[str, str], int] = {}
    accounted = 0
    for entry, payload in reader.ledger():
        about = entry.kind, entry.record
        if payload is None and (entry.kind, entry.verb) != (SALVAGE, "lost"):
            missing[entry.seq] = about
        if entry.kind == ERASED_KIND and payload is not None:
            erased.update(json.loads(payload)["entries"])
        if entry.verb in _ERASING_VERBS:
            gone[about] = entry.seq
        if entry.kind == RECEIPT_KIND and not erased and payload is not None:
            places = json.loads(payload).get("places", ())
            if any(each["removed"] for each in places if each["place"] == PAYLOADS):
                accounted = entry.seq
        elif entry.kind == SALVAGE:
            accounted = entry.seq
    return [
        seq
        for seq, about in missing.items()
        if seq not in erased and seq > accounted and seq >= gone.get(about, 0)
    ]


def _find_mismatches(reader: "Reader", last: dict[tuple[str, str], tuple[int, str]]) -> Iterator[str]:
    """Name the records that are not as the ledger left them."""
    for kind, record_class in types_by_kind().items():
        seen = set()
        for record_id, record in _all_records(reader, record_class):
            seen.add(record_id)
            seq, digest = last.get((kind, record_id), (0, ""))
            if record is None or isinstance(record, BankDamagedError):
                yield record.where if record else f"{kind} {record_id} is not found by its id"
                continue
            is_same = digest == payload_hash(canonical_json(to_plain(record)))
            if not (is_same or _matches_entry(reader, record, seq)):
                yield f"{kind} {record.id} is not as entry {seq} left it"
        for (entry_kind, record_id), (seq, digest) in last.items():
            if entry_kind == kind and record_id not in seen and digest != REMOVED:
                yield f"{kind} {record_id} of entry {seq} is missing"
    for (entry_kind, run), (seq, digest) in last.items():
        if entry_kind == "event":
            try:
                is_same = payload_hash(canonical_json(sum_events(reader, run)._asdict())) == digest
            except UnicodeDecodeError:
                is_same = False
            if not is_same:
                yield f"the events of run {run} are not as entry {seq} left them"


def _all_records(reader: "Reader", record_class: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the id of every record with it, or with the error of reading it, without holding all of them."""
    from archivist.store.filters import Filter, above, one_of

    rest: tuple[Filter, ...] = ()
    while page := reader.select_fields(record_class, ("id",), *rest, order=("id",), limit=_PAGE):
        ids = [str(row[0]) for row in page]
        rest = (above("id", ids[-1]),)
        try:
            yield from ((record.id, record) for record in reader.select(record_class, one_of("id", ids)))
        except (BankDamagedError, UnicodeDecodeError):
            for record_id in ids:
                try:
                    yield record_id, reader.get(record_class, record_id)
                except BankDamagedError as error:
                    yield record_id, error


def _matches_entry(reader: "Reader", record: Any, seq: int) -> bool:
    """Say whether a record is what an entry says, apart from fields that records have gained since."""
    from archivist.records.plain import from_plain

    for entry, payload in reader.ledger(after=seq - 1, limit=1):
        if entry.seq == seq and payload is not None:
            try:
                return bool(from_plain(type(record), json.loads(payload)) == record)
            except (RecordError, ValueError):
                return False
    return False


def undo_target(
    changes: Sequence[LedgerChange],
    *,
    is_skipped: Callable[[LedgerChange, LedgerChange | None], bool] | None = None,
) -> tuple[LedgerChange, LedgerChange | None] | None:
    """Find what undoing takes back: the last change not yet undone, and the state before it.

    `changes` are one record's, oldest first. An undo names in its verb the entry that it took back
    (`undo 17`), so that undoing again goes one step further back. `is_skipped` says of a change, and of the
    one before it, that it is not taken back.
    """
    undone = {int(entry.verb.split()[1]) for entry, *_ in changes if entry.verb.startswith("undo ")}
    standing = [
        change
        for change in changes
        if not change.entry.verb.startswith("undo ") and change.entry.seq not in undone
    ]
    steps = list(zip(standing, [None, *standing], strict=False))
    return next((step for step in reversed(steps) if is_skipped is None or not is_skipped(*step)), None)
