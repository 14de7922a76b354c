"""Find any record by its name, show its history, undo its last change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from archivist.access.rights import DENIAL, Layer, Verb, is_hidden_from, may_see, reads, writes
from archivist.errors import BankDamagedError, NotFoundError, NothingToUndoError
from archivist.ledger.lookup import find_by_beginning, find_by_name, pick_fact
from archivist.lessons.quarantine import APPROVAL_HINT, may_release
from archivist.records import ActorKind, Artifact, Document, Fact, Lesson, Status
from archivist.records.kinds import BY_NAME, kind_of, types_by_kind
from archivist.records.plain import from_plain
from archivist.records.tier_words import CoreSection
from archivist.service import BankService
from archivist.store.filters import equals
from archivist.store.ledger import LedgerChange, LedgerEntry, Verification, undo_target
from archivist.store.results import Damage, choose_remedy

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

# Entries that are read at a time to find a record's last change.
_PAGE = 500
# The kinds of records that people name by their label.
_LABELLED = ("fact", "artifact", "document")
# The words of the records that no search finds.
_NAMED_OTHERWISE: dict[str, Callable[[Any], str]] = {
    "conflict": lambda record: f"{record.category}/{record.key}: {record.kept} or {record.lost}",
    "token": lambda record: str(record.actor),
}
# What undo leaves alone: an agent's private memory, and what an approver decided.
_PROTECTED_KINDS = ("working", "proposal", "token")
_PROTECTED_BLOCKS = (CoreSection.PLAYBOOK, CoreSection.RULES)
_ROLL_BACK = "undo takes no proposal back: archivist proposals roll-back {} does, if it was accepted"
_PROTECTED_HINT = (
    "archivist proposals roll-back ID reverts an accepted proposal; working memory belongs to its agent;"
    " a revoked token cannot be restored"
)


class Ledger(BankService):
    """The history of every record."""

    @reads(Layer.BANK)
    def find(self, name: str) -> tuple[str, Any]:
        """Return any record and its kind by its id, its short id or a fact's `category/key`."""
        with self._bank.reading() as reader:
            record = find_by_name(reader, name, actor=self._bank.actor)
        if record is None or is_hidden_from(record, self._bank.actor):
            raise NotFoundError("record", name)
        kind = kind_of(type(record))
        # The digest of a token is for the door that checks it.
        return kind, replace(record, digest="") if kind == "token" else record

    @reads(Layer.BANK)
    def denials(self, *, limit: int | None = None) -> list[LedgerChange]:
        """Return the refused calls with their actors, oldest first."""
        with self._bank.reading() as reader:
            return reader.changes(kind=DENIAL, limit=limit)

    @reads(Layer.BANK)
    def history(self, name: str) -> list[LedgerChange]:
        """Return every change of a record, oldest first."""
        actor = self._bank.actor
        with self._bank.reading() as reader:
            record = find_by_name(reader, name)
            changes = reader.changes(record_id=name if record is None else str(record.id))
            if not changes and (record := find_by_beginning(reader, name)) is not None:
                changes = reader.changes(record_id=record.id)
        visible = [change for change in changes if may_see(actor, change.entry.kind, change.entry.record)]
        if not visible or is_hidden_from(record, actor):
            raise NotFoundError("lesson", name)
        return visible

    @reads(Layer.BANK)
    def latest(self, *, before: int | None = None, limit: int) -> list[LedgerEntry]:
        """Return the newest entries, or the newest before one, without their records."""
        with self._bank.reading() as reader:
            last = reader.last_entry() if before is None else before - 1
            entries = reader.entries(after=max(0, last - limit), limit=min(limit, max(0, last)))
        actor = self._bank.actor
        return [entry for entry in reversed(entries) if may_see(actor, entry.kind, entry.record)]

    @reads(Layer.BANK)
    def changes_by(
        self, *, actor: str = "", kind: str = "", verb: str = "", since: datetime | None = None, limit: int
    ) -> list[LedgerEntry]:
        """Return the newest entries of an actor, a kind of record, a verb, from a time on; newest first.

        An actor is `agent:coder:qa`, or its beginning: `agent` means all agents.
        """
        found: list[LedgerEntry] = []
        for entry in self._newest_first():
            if len(found) == limit or (since is not None and entry.time < since):
                break
            is_by = not actor or f"{entry.actor}:".startswith(f"{actor}:")
            if is_by and kind in ("", entry.kind) and verb in ("", entry.verb):
                found.append(entry)
        return found

    def _newest_first(self) -> Iterator[LedgerEntry]:
        """Yield the entries that the actor may see, read page by page."""
        with self._bank.reading() as reader:
            before = reader.last_entry() + 1
        while before > 1:
            yield from self.latest(before=before, limit=_PAGE)
            before -= _PAGE

    @reads(Layer.BANK)
    def record_words(self, entries: Iterable[LedgerEntry]) -> dict[str, str]:
        """Return the words of the records of entries, without what is gone or hidden from the actor."""
        from archivist.recall.results import RENDERERS, text_of

        ids: dict[str, list[str]] = {}
        for entry in entries:
            ids.setdefault(entry.kind, []).append(entry.record)
        found: dict[str, str] = {}
        with self._bank.reading() as reader:
            for kind in (*_NAMED_OTHERWISE, *RENDERERS):
                known: Mapping[str, Any] = reader.records(kind, ids[kind]) if kind in ids else {}
                for name, record in known.items():
                    if not is_hidden_from(record, self._bank.actor):
                        words = _NAMED_OTHERWISE.get(kind)
                        found[name] = words(record) if words else text_of(kind, record)
        return found

    @reads(Layer.BANK)
    def last_record(self, kind: str, verbs: Collection[str]) -> str:
        """Return the id of the record of a kind that was last changed by one of these verbs; or nothing."""
        found = (entry for entry in self._newest_first() if entry.kind == kind and entry.verb in verbs)
        return next((entry.record for entry in found), "")

    @writes(Layer.BANK)
    def undo(self, name: str, *, entry: int | None = None) -> Any:
        """Undo the last change of a record; None when that change created it, so that it is gone.

        What runs taught a lesson is no change of anybody: only the number of its `entry` takes that back.

        A fact goes by `category/key`, an artifact by its path, and a document by its source with all chunks
        that changed together; also after they were removed.
        """
        with self._bank.transaction() as writer:
            record = find_by_name(writer, name)
            if record is None and not writer.changes(record_id=name, limit=1):
                record = find_by_beginning(writer, name)
            record_id = name if record is None else str(record.id)
            if record_id != name or writer.changes(record_id=record_id, limit=1):
                return self._undo_record(writer, name, record_id, entry)
            for changed_id in _last_changed_ids(writer, name) or [record_id]:
                self._undo_record(writer, name, changed_id)
            labelled: list[Any] = [find_by_name(writer, name)]
            labelled += writer.select(Artifact, equals("path", name), order=("-created", "-id"), limit=1)
            labelled += writer.select(Document, equals("source", name), order=("position",), limit=1)
            return next(filter(None, labelled), None)

    @reads(Layer.BANK)
    def verify(self) -> Verification:
        """Check the file, the whole ledger, and every record against it."""
        damage = self._bank.store.find_damage()
        try:
            with self._bank.reading() as reader:
                checked = reader.verify()
        except BankDamagedError as error:
            checked = Verification(0, 0, (error.where,))
        remedy = choose_remedy([*damage, *(Damage("ledger", problem) for problem in checked.problems)])
        return checked._replace(problems=(*map(str, damage), *checked.problems), remedy=remedy)

    def _undo_record(self, writer: Writer, name: str, record_id: str, entry: int | None = None) -> Any:
        types = types_by_kind()
        changes = [change for change in writer.changes(record_id=record_id) if change.entry.kind in types]
        free = [
            change
            for change in changes
            if change.entry.kind not in _PROTECTED_KINDS
            and not (
                change.entry.kind == "block" and change.entry.record.partition(":")[0] in _PROTECTED_BLOCKS
            )
        ]
        if changes and not free:
            is_proposal = changes[-1].entry.kind == "proposal"
            layer, hint = (Layer.PROPOSALS, _ROLL_BACK) if is_proposal else (Layer.BANK, _PROTECTED_HINT)
            self._bank.refuse(layer, Verb.WRITE, what=name, hint=hint.format(name))
        is_other = _is_learnt if entry is None else lambda change, _: change.entry.seq != entry
        target = undo_target(free, is_skipped=is_other)
        if target is None or (target[1] is not None and target[1].is_erased):
            raise NothingToUndoError(name, is_learnt=target is None and undo_target(free) is not None)
        undone, before = target
        record_type = types[undone.entry.kind]
        verb = f"undo {undone.entry.seq}"
        if before is None or before.after is None:
            writer.remove(record_type, record_id, verb)
            return None
        of_kind = (change for change in changes if change.entry.kind == undone.entry.kind)
        later = [change.after for change in of_kind if change.entry.seq > undone.entry.seq]
        record: Any = from_plain(record_type, _without_change(undone.after, before.after, later))
        present = writer.get(Lesson, record_id) if isinstance(record, Lesson) else None
        if present is not None and record.status.is_live and not may_release(self._bank.actor, present):
            self._bank.refuse(Layer.LESSONS, Verb.DECIDE, what=present.short_id, hint=APPROVAL_HINT)
        writer.put(record, verb)
        return record


def _is_learnt(change: LedgerChange, before: LedgerChange | None) -> bool:
    """Say whether runs taught a change of a lesson, and did not retire it."""
    if change.entry.kind != "lesson" or change.entry.actor.kind is not ActorKind.ARCHIVIST:
        return False
    statuses = [Status(str(each.after["status"])) for each in (before, change) if each and each.after]
    return not (statuses[-1:] and statuses[-1].is_retired and not statuses[0].is_retired)


def _without_change(
    after: Mapping[str, Any] | None, before: Mapping[str, Any], later: Sequence[Mapping[str, Any] | None]
) -> Mapping[str, Any]:
    """Return a record without one change of it; what later changes brought stays."""
    if not later or not later[-1] or after is None:
        return before
    latest = dict(later[-1])
    for field in {*before, *after}:
        if before.get(field) != after.get(field):
            latest.pop(field, None)
            latest |= {field: before[field]} if field in before else {}
    return latest


def _last_changed_ids(reader: Reader, name: str) -> list[str]:
    """Return the ids of the facts, artifacts or chunks of a label that changed together last.

    This reads the whole ledger of a kind, so it serves only names that are no record's id.
    """
    last: list[tuple[datetime, str]] = []
    for kind in _LABELLED:
        labelled = {
            change.entry.record: change.after
            for change in reader.changes(kind=kind)
            if change.after is not None and BY_NAME[kind].label_of(change.after) == name
        }
        times: dict[str, datetime] = {}
        for record_id in labelled:
            target = undo_target(reader.changes(record_id=record_id, kind=kind))
            if target is not None and not target[0].is_erased:
                times[record_id] = target[0].entry.time
        if kind == "fact" and times:
            fact = pick_fact(name, [from_plain(Fact, labelled[record_id]) for record_id in times])
            times = {fact.id: times[fact.id]}
        last += [(time, record_id) for record_id, time in times.items()]
    newest = max((time for time, _ in last), default=None)
    # All changes of one transaction have one time.
    return [record_id for time, record_id in last if time == newest]
