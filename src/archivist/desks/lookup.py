"""Find any record by what it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from archivist.access import Layer, Verb, may
from archivist.errors import NotFoundError
from archivist.records import Actor, Document, Fact, Lesson, Proposal
from archivist.records.lesson import SHORT_ID
from archivist.records.tiers import PROPOSAL_ID
from archivist.stores.filters import equals
from archivist.stores.rows import kind_of, records

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.stores.protocol import Reader


# What people call the records that they remove.
_CALLED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "fact": lambda plain: f"{plain['category']}/{plain['key']}",
    "artifact": lambda plain: str(plain["path"]),
    "document": lambda plain: str(plain["source"]),
}
# More than any text has pieces.
_DIGITS = 12


def find(bank: Bank, name: str) -> tuple[str, Any]:
    """Return a record and its kind by its id, its short id (`m-001`, `p-001`) or a fact's `category/key`."""
    with bank.reading() as reader:
        record = named(reader, name, sees=lambda kind, found: is_there_for(bank.actor, kind, found))
    if record is None:
        raise NotFoundError("record", name)
    kind = kind_of(type(record))
    # What the key is checked by is for the door alone.
    return kind, replace(record, digest="") if kind == "token" else record


def is_there_for(actor: Actor, kind: str, record: str) -> bool:
    """Say whether somebody may know of a record: not of another agent's working memory, nor of tokens.

    To refuse it would tell that it is there.
    """
    if kind == "working":
        return may(actor, Layer.WORKING, Verb.READ, owner=record)
    return kind != "token" or may(actor, Layer.BANK, Verb.DECIDE)


def _sees_all(_kind: str, _record: str) -> bool:
    return True


def named(reader: Reader, name: str, *, sees: Callable[[str, str], bool] = _sees_all) -> Any:
    """Return the record that is called so and may be seen, by its kind and its id, or None."""
    for pattern, kind in ((SHORT_ID, Lesson), (PROPOSAL_ID, Proposal)):
        short = pattern.fullmatch(name.lower())
        found = reader.select(kind, equals("number", int(short[1])), limit=1) if short else []
        if found:
            return found[0]
    for record in records():
        whole = reader.get(record, name) if sees(kind_of(record), name) else None
        if whole is not None:
            return whole
    source, _, position = name.rpartition("#")
    if source and position.isdecimal() and len(position) <= _DIGITS:
        pieces = reader.select(Document, equals("source", source), equals("position", int(position)), limit=1)
        if pieces:
            return pieces[0]
    category, _, key = name.partition("/")
    facts = reader.select(Fact, equals("category", category), equals("key", key), limit=1) if key else []
    return facts[0] if facts else None


def gone(reader: Reader, name: str) -> list[str]:
    """Return the ids of what was called so until it was removed: of a text the pieces that went together.

    The ledger is read for it, which takes its time: only what has no other name is looked for here.
    """
    for kind, called in _CALLED.items():
        last: dict[str, tuple[int, bool]] = {}
        names: dict[str, str] = {}
        for change in reader.changes(kind=kind):
            last[change.entry.record] = (change.entry.seq, change.after is None and not change.is_erased)
            if change.after is not None:
                names[change.entry.record] = called(change.after)
        removed = [
            (seq, each) for each, (seq, is_gone) in last.items() if is_gone and names.get(each) == name
        ]
        removed.sort(reverse=True)
        # What was removed together stands together in the ledger.
        together = [each for place, (seq, each) in enumerate(removed) if seq == removed[0][0] - place]
        if together:
            return together
    return []
