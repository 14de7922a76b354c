"""Find any record by what it is called."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from archivist.access import Layer, Verb
from archivist.errors import NotFoundError
from archivist.records import Document, Fact, Lesson, Proposal
from archivist.records.lesson import SHORT_ID
from archivist.records.tiers import PROPOSAL_ID
from archivist.stores.filters import equals
from archivist.stores.rows import kind_of, records

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.stores.protocol import Reader


# More than any text has pieces.
_DIGITS = 12


def find(bank: Bank, name: str) -> tuple[str, Any]:
    """Return a record and its kind by its id, its short id (`m-001`, `p-001`) or a fact's `category/key`."""
    with bank.reading() as reader:
        record = named(reader, name)
    if record is None:
        raise NotFoundError("record", name)
    kind = kind_of(type(record))
    if kind == "working":
        bank.require(Layer.WORKING, Verb.READ, owner=record.id)
    if kind == "token":
        bank.require(Layer.BANK, Verb.DECIDE)
        # What the key is checked by is for the door alone.
        record = replace(record, digest="")
    return kind, record


def named(reader: Reader, name: str) -> Any:
    """Return the record that is called so, or None."""
    for pattern, kind in ((SHORT_ID, Lesson), (PROPOSAL_ID, Proposal)):
        short = pattern.fullmatch(name.lower())
        found = reader.select(kind, equals("number", int(short[1])), limit=1) if short else []
        if found:
            return found[0]
    for record in records():
        whole = reader.get(record, name)
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
