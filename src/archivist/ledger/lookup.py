"""Find any record by its id, its short id or its label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archivist.access.rights import may_see
from archivist.capture.runs import resolve_run
from archivist.errors import InputError
from archivist.records import Actor, Document, Episode, Event, Fact, Lesson, Proposal
from archivist.records.kinds import kind_of, record_types
from archivist.records.lesson import SHORT_ID
from archivist.records.tiers import PROPOSAL_ID
from archivist.service import complete_id, require_name
from archivist.store.filters import equals

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

# No document has a trillion chunks; longer numbers do not fit into SQLite's integers.
_POSITION_DIGITS = 12


def find_by_name(reader: Reader, name: str, *, actor: Actor | None = None) -> Any:
    """Return the record of a name, or None; with an actor only what that actor may know of."""
    require_name(name, "record")
    for pattern, kind in ((SHORT_ID, Lesson), (PROPOSAL_ID, Proposal)):
        short = pattern.fullmatch(name.lower())
        numbered = reader.select(kind, equals("number", int(short[1])), limit=1) if short else []
        if numbered:
            return numbered[0]
    # Whoever reports a run chooses its id: it hides no other record.
    for record_type in sorted(record_types(), key=lambda each: each is Episode):
        is_visible = actor is None or may_see(actor, kind_of(record_type), name)
        record = reader.get(record_type, name) if is_visible else None
        if record is not None:
            return record
    source, _, position = name.rpartition("#")
    if source and position.isdecimal() and len(position) <= _POSITION_DIGITS:
        at_position = equals("source", source), equals("position", int(position))
        chunks = reader.select(Document, *at_position, limit=1)
        if chunks:
            return chunks[0]
    return find_fact(reader, name)


def find_by_beginning(reader: Reader, name: str) -> Any:
    """Return the lesson, the run or the event of a run whose id begins with a name, or None."""
    lesson = reader.get(Lesson, complete_id(reader, "lesson", name))
    if lesson is not None:
        return lesson
    run, mark, number = name.partition("#")
    whole = resolve_run(reader, run)
    return reader.get(Event, f"{whole}#{number}") if mark else reader.get(Episode, whole)


def find_fact(reader: Reader, name: str, *, own: str = "", only: str = "") -> Fact | None:
    """Return the fact of the name `category/key`, or None; of the project `only`, if one is given."""
    category, _, key = (" ".join(part.split()) for part in name.partition("/"))
    facts = reader.select(Fact, equals("category", category), equals("key", key)) if key else []
    facts = [fact for fact in facts if only in ("", fact.project)]
    return pick_fact(name, facts, own) if facts else None


def pick_fact(name: str, facts: Sequence[Fact], own: str = "") -> Fact:
    """Return the fact of a name: that of the own project or of none, or the only one."""
    first, *others = sorted(facts, key=lambda fact: (fact.project != own, fact.project, fact.id))
    if others and first.project not in ("", own):
        projects = ", ".join(f"{fact.project} ({fact.id})" for fact in (first, *others))
        raise InputError(
            f"{name!r} is a fact of several projects: {projects}",
            hint="name the project, or use the fact's id",
        )
    return first
