"""Find any record by what it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from archivist.access.rights import DENIAL, Layer, may_see, reads, writes
from archivist.errors import InputError, NotFoundError
from archivist.lessons.quarantine import is_hidden_from
from archivist.records import Actor, Artifact, Document, Fact, Lesson
from archivist.records.kinds import KINDS, kind_of, record_types
from archivist.records.plain import from_plain
from archivist.service import BankService, require_name
from archivist.store.filters import equals
from archivist.store.ledger import LedgerChange, undo_target

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Brief, Episode, Verdict
    from archivist.store.ledger import Verification
    from archivist.store.protocol import Reader


# The kinds whose records people name by their fields.
_LABELLED = {kind.name: kind for kind in KINDS if kind.label}
# More than any text has pieces.
_DIGITS = 12


def find(bank: Bank, name: str) -> tuple[str, Any]:
    """Return a record and its kind by its id, its short id (`m-001`, `p-001`) or a fact's `category/key`."""
    with bank.reading() as reader:
        record = find_by_name(
            reader, name, is_visible=lambda kind, found: is_visible_to(bank.actor, kind, found)
        )
    if record is None or is_hidden_from(record, bank.actor):
        raise NotFoundError("record", name)
    kind = kind_of(type(record))
    # What the key is checked by is for the door alone.
    return kind, replace(record, digest="") if kind == "token" else record


def is_visible_to(actor: Actor, kind: str, record: str) -> bool:
    """Say whether somebody may know of a record: not of another agent's working memory, nor of tokens.

    To refuse it would tell that it is there.
    """
    return may_see(actor, kind, record)


def _is_always_visible(_kind: str, _record: str) -> bool:
    return True


def find_by_name(
    reader: Reader, name: str, *, is_visible: Callable[[str, str], bool] = _is_always_visible
) -> Any:
    """Return the record that is called so and may be seen, by its kind and its id, or None."""
    require_name(name, "record")
    for kind in KINDS:
        number = kind.parse_short_id(name)
        if number is not None:
            found = reader.select(kind.record, equals("number", number), limit=1)
            if found:
                return found[0]
    for record in record_types():
        whole = reader.get(record, name) if is_visible(kind_of(record), name) else None
        if whole is not None:
            return whole
    source, _, position = name.rpartition("#")
    if source and position.isdecimal() and len(position) <= _DIGITS:
        pieces = reader.select(Document, equals("source", source), equals("position", int(position)), limit=1)
        if pieces:
            return pieces[0]
    category, _, key = name.partition("/")
    facts = reader.select(Fact, equals("category", category), equals("key", key)) if key else []
    return pick_fact(name, facts) if facts else None


def pick_fact(name: str, facts: Sequence[Fact]) -> Fact:
    """Return the fact that a name means: of several that of no project in particular; else it is refused."""
    first, *others = sorted(facts, key=lambda each: (each.project, each.id))
    if others and first.project:
        projects = ", ".join(f"{each.project} ({each.id})" for each in (first, *others))
        raise InputError(f"{name!r} is known of several projects: {projects}", hint="name the fact by its id")
    return first


def last_changed_ids(reader: Reader, name: str) -> list[str]:
    """Return the ids of what changed together when something called so changed last and was not undone.

    Of a text these are all the pieces that came and went. The ledger is read for it, which takes its time:
    only what has no other name is looked for here.
    """
    last: list[tuple[datetime, str]] = []
    for kind in _LABELLED:
        found = _undoable_changes(reader, kind, name)
        if kind == "fact" and found:
            one = pick_fact(name, [from_plain(Fact, plain) for _, plain in found.values()]).id
            found = {one: found[one]}
        last += [(time, each) for each, (time, _) in found.items()]
    newest = max((time for time, _ in last), default=None)
    # What one transaction did bears one time.
    return [each for time, each in last if time == newest]


def find_by_label(reader: Reader, name: str) -> Any:
    """Return an artifact or a piece of text that is called so, or None."""
    kept: list[Any] = [*reader.select(Artifact, equals("path", name), order=("-created", "-id"), limit=1)]
    kept += reader.select(Document, equals("source", name), order=("position",), limit=1)
    return kept[0] if kept else None


def _undoable_changes(reader: Reader, kind: str, name: str) -> dict[str, tuple[datetime, Mapping[str, Any]]]:
    """Return what is or was called so, with the time of what undoing takes back and its last words."""
    stories: dict[str, list[LedgerChange]] = {}
    words: dict[str, Mapping[str, Any]] = {}
    for change in reader.changes(kind=kind):
        stories.setdefault(change.entry.record, []).append(change)
        if change.after is not None and _LABELLED[kind].label_of(change.after) == name:
            words[change.entry.record] = change.after
    targets = {each: undo_target(stories[each]) for each in words}
    return {
        each: (target[0].entry.time, words[each])
        for each, target in targets.items()
        if target is not None and not target[0].is_erased
    }


class Ledger(BankService):
    """The history of every record."""

    @reads(Layer.BANK)
    def find(self, name: str) -> tuple[str, Any]:
        """Return any record and its kind by its id, its short id or a fact's `category/key`."""
        return find(self._bank, name)

    @reads(Layer.BANK)
    def denials(self, *, limit: int | None = None) -> list[LedgerChange]:
        """Return what was refused to whom, oldest first."""
        with self._bank.reading() as reader:
            return reader.changes(kind=DENIAL, limit=limit)

    @reads(Layer.BANK)
    def history(self, name: str) -> list[LedgerChange]:
        """Return every change of a record, oldest first."""
        from archivist.lessons import service as lessons

        return lessons.history(self._bank, name)

    @writes(Layer.BANK)
    def undo(self, name: str) -> Lesson | Episode | Brief | Verdict | None:
        """Take the last change of a record back; None when that was its making, so that it is gone."""
        from archivist.lessons import service as lessons

        return lessons.undo(self._bank, name)

    @reads(Layer.BANK)
    def verify(self) -> Verification:
        """Check the whole ledger, and every record against it."""
        with self._bank.reading() as reader:
            return reader.verify()
