"""The ledger: every change in order, each entry sealed with the hash of the one before.

An entry holds the hash of its payload, not the payload: a payload that has been erased leaves the
chain whole, and its absence visible.
"""

from datetime import datetime
from typing import NamedTuple

from archivist.clock import to_text
from archivist.cold_start import sha256
from archivist.records.actor import Actor
from archivist.records.plain import canonical_json

GENESIS = "0" * 64


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


class Verification(NamedTuple):
    """What checking the ledger found; `problems` is empty when it is whole."""

    entries: int
    erased: int
    problems: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Say whether every seal and every record fits."""
        return not self.problems


def payload_hash(payload: str) -> str:
    """Return the hash that stands for a payload in its entry."""
    return sha256(payload.encode()).hexdigest()


def seal_entry(
    previous: str, seq: int, time: datetime, actor: Actor, verb: str, kind: str, record: str, payload: str
) -> LedgerEntry:
    """Make the entry that follows the one with hash `previous`."""
    digest = payload_hash(payload)
    return LedgerEntry(
        seq, time, actor, verb, kind, record, digest, previous,
        entry_hash(previous, seq, time, actor, verb, kind, record, digest),
    )  # fmt: skip


def entry_hash(
    previous: str, seq: int, time: datetime, actor: Actor, verb: str, kind: str, record: str, digest: str
) -> str:
    """Return the hash of an entry's own words and of the entry before it."""
    words = [
        previous,
        seq,
        to_text(time),
        actor.kind.value,
        actor.name,
        actor.role,
        verb,
        kind,
        record,
        digest,
    ]
    return sha256(canonical_json(words).encode()).hexdigest()


def is_sealed(entry: LedgerEntry, previous: str) -> bool:
    """Say whether an entry's hash is the one its words and its predecessor give."""
    return entry.previous == previous and entry.hash == entry_hash(
        previous, entry.seq, entry.time, entry.actor, entry.verb, entry.kind, entry.record, entry.payload_hash
    )


def undo_target(changes: list[LedgerChange]) -> tuple[LedgerChange, LedgerChange | None] | None:
    """Find what undoing takes back: the last change not yet undone, and the state before it.

    `changes` are one record's, oldest first. An undo names in its verb the entry that it took back
    (`undo 17`), so that undoing again goes one step further back.
    """
    undone: set[int] = set()
    for change in reversed(changes):
        if change.entry.verb.startswith("undo "):
            undone.add(int(change.entry.verb.removeprefix("undo ")))
    standing = [c for c in changes if not c.entry.verb.startswith("undo ") and c.entry.seq not in undone]
    if not standing:
        return None
    return standing[-1], (standing[-2] if len(standing) > 1 else None)
