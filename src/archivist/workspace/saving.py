"""Save to the files of a workspace: alone among our own processes, and never over a person's edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from archivist.errors import ArchivistError, BankError, InputError
from archivist.files.write import explain_os_errors, lock_folder, read_bytes, replace_if_unchanged
from archivist.workspace import entries, front_matter, learnings, plans, save, writing
from archivist.workspace.classify import MemoryKind
from archivist.workspace.learnings import Learning
from archivist.workspace.reading import FileCache, decode
from archivist.workspace.save import MemoryItem, Neighbour, OnConflict, SaveOutcome, SaveResult
from archivist.workspace.similarity import Statement
from archivist.workspace.topology import LEARNINGS, FileKind, WorkspaceScope

if TYPE_CHECKING:
    from archivist.recall.embedders.static import StaticEmbedder

_ATTEMPTS = 50
_PAUSE_S = 0.02


class MemorySaver:
    """One call of `save_memory`: what is there, and the day that new entries carry."""

    def __init__(self, shelf: FileCache, today: date) -> None:
        self._shelf = shelf
        self._topology = shelf.topology
        self._today = today

    def save(
        self, items: Sequence[MemoryItem], asked: WorkspaceScope, rule: OnConflict, *, create: bool
    ) -> list[SaveOutcome]:
        """Save items one by one; one that cannot be saved is refused and does not hold up the rest."""
        outcomes = []
        for item in items:
            try:
                outcomes.append(self._save(item, asked, rule, create=create))
            except BankError:
                # Somebody else writes there; what was saved is known when the rest is tried again.
                raise
            except ArchivistError as error:
                told = f"{error.message} ({error.hint})" if error.hint else error.message
                kind = save.likely_kind(item)
                outcomes.append(
                    SaveOutcome(SaveResult.REFUSED, save.likely_title(item), kind, str(asked), reason=told)
                )
        return outcomes

    def _save(
        self, given: MemoryItem, asked: WorkspaceScope, rule: OnConflict, *, create: bool
    ) -> SaveOutcome:
        here = self._known_scope(WorkspaceScope.parse(given.scope) if given.scope else asked, create=create)
        item = save.prepare_item(given)
        if item.kind is MemoryKind.PLAN_STATUS:
            return self._save_status(item, here)
        domains = [each.domain for each in self._topology.scopes() if each.workspace == here.workspace]
        home, item = save.choose_scope(here, item, sorted({domain for domain in domains if domain}))
        with self._exclusive_lock():
            for _ in range(_ATTEMPTS):
                outcome = self._save_entry(item, home, rule)
                if outcome is not None:
                    return outcome
                sleep(_PAUSE_S)
        raise InputError(f"{home}: the file kept changing while it was written", hint="try again")

    def _known_scope(self, scope: WorkspaceScope, *, create: bool) -> WorkspaceScope:
        """Return a scope whose workspace and domain are known, so that a slip of the pen makes no folder."""
        known = {WorkspaceScope(*each.parts[:2]) for each in self._topology.scopes()}
        workspaces = sorted({each.workspace for each in known})
        if not scope.parts:
            if len(workspaces) == 1:
                return WorkspaceScope(workspaces[0])
            told = ", ".join(workspaces) or "none is there yet"
            raise InputError("no workspace is named", hint=f"name one as the scope: {told}")
        home = WorkspaceScope(*scope.parts[:2])
        if not create and workspaces and home not in known:
            below = sorted(str(each) for each in known if each.workspace == home.workspace)
            hint = f"there is {', '.join(below or workspaces)}; --create makes a new one"
            raise InputError(f"no scope {str(home)!r} in this workspace", hint=hint)
        return scope

    def _known_tags(self, scope: WorkspaceScope) -> list[str]:
        files = self._shelf.read(WorkspaceScope(scope.workspace), LEARNINGS).learnings
        return sorted({tag for file in files for entry in file.entries for tag in entry.tags})

    def _save_entry(self, item: MemoryItem, home: WorkspaceScope, rule: OnConflict) -> SaveOutcome | None:
        """Compare an item with what is there and write it; None when the file changed meanwhile."""
        there = self._related_learnings(home)
        near = save.find_nearest(item, there, _cosines)
        outcome = save.decide_outcome(item, home, near, rule)
        if near is not None and outcome.result is SaveResult.MERGED:
            return self._merge(item, near, outcome)
        if outcome.result is not SaveResult.SAVED or item.kind is None:
            return outcome
        kind = save.file_kind(item.kind)
        path = self._topology.learning_file(kind, home)
        name = self._topology.name_of(path)
        before = self._read_bytes(path)
        text = self._decode_text(before, name) if before is not None else writing.header(kind, home)
        entry = save.entry_of(item, self._today, self._known_tags(home))
        new = writing.append_entry(text, entry, name)
        old = near.learning if near is not None and outcome.against else None
        is_superseding = old is not None and rule is OnConflict.SUPERSEDE
        by = f"[{entry.date}] {entry.title}"
        if old is not None and is_superseding and old.path == name:
            new = writing.mark_superseded(new, old.entry, by)
        if not self._write(path, before, new):
            return None
        if old is not None and is_superseding and old.path != name:
            self._mark_superseded(old, f"{by} ({name})")
        return outcome._replace(path=name, line=entries.parse_entries(new, name)[-1].line)

    def _related_learnings(self, home: WorkspaceScope) -> list[Learning]:
        """Return the entries that hold where a new one would: of its scope, above it and below it."""
        reading = self._shelf.read(WorkspaceScope(home.workspace), LEARNINGS)
        return [
            learning
            for file in reading.learnings
            if home.contains(file.scope) or file.scope.contains(home)
            for learning in learnings.list_learnings(file)
            if not learning.entry.superseded_by
        ]

    def _merge(self, item: MemoryItem, near: Neighbour, outcome: SaveOutcome) -> SaveOutcome | None:
        learning = near.learning
        path = self._topology.path_inside(learning.path)
        before = self._read_bytes(path)
        text = self._decode_text(before or b"", learning.path)
        if learning.entry not in entries.parse_entries(text, learning.path):
            return None
        new = save.merge_item(text, near, item, self._today)
        if new == text:
            return outcome._replace(result=SaveResult.KNOWN)
        return outcome if self._write(path, before, new) else None

    def _mark_superseded(self, learning: Learning, by: str) -> None:
        """Mark an entry of another file as superseded, wherever it stands by now."""
        path = self._topology.path_inside(learning.path)
        for _ in range(_ATTEMPTS):
            before = self._read_bytes(path)
            text = self._decode_text(before or b"", learning.path)
            found = [
                each for each in entries.parse_entries(text, learning.path) if each[:5] == learning.entry[:5]
            ]
            if not found or self._write(path, before, writing.mark_superseded(text, found[0], by)):
                return
            sleep(_PAUSE_S)

    def _save_status(self, item: MemoryItem, here: WorkspaceScope) -> SaveOutcome:
        plan = save.plan_of(self._shelf.read(here, (FileKind.PLAN,)).plans, item)
        status = save.new_status(item)
        outcome = SaveOutcome(
            SaveResult.SAVED, plan.name, MemoryKind.PLAN_STATUS, str(plan.scope), plan.path, 0
        )
        path = self._topology.path_inside(plan.path)
        with self._exclusive_lock():
            for _ in range(_ATTEMPTS):
                before = self._read_bytes(path)
                text = self._decode_text(before or b"", plan.path)
                read = front_matter.read(text, plan.path)
                if not read.has_any:
                    raise InputError(
                        f"{plan.path} has no front matter", hint="archivist workspace migrate adds it"
                    )
                if read.values.get("status") == status.value:
                    return outcome._replace(result=SaveResult.KNOWN, reason=f"it is {status.value} already")
                changes = {"status": status.value, "updated": item.date or self._today}
                was = plans.field_text(read.values.get("status")) or "nothing"
                if self._write(path, before, front_matter.edit_fields(text, changes, plan.path)):
                    return outcome._replace(reason=f"{was} → {status.value}")
                sleep(_PAUSE_S)
        raise InputError(f"{plan.path} kept changing while it was written", hint="try again")

    def _read_bytes(self, path: Path) -> bytes | None:
        with explain_os_errors(path):
            return read_bytes(path)

    def _decode_text(self, data: bytes, name: str) -> str:
        decoded = decode(data, name)
        if decoded.problems:
            raise InputError(str(decoded.problems[0]), hint="save it as UTF-8; nothing was written")
        return decoded.text

    def _write(self, path: Path, before: bytes | None, text: str) -> bool:
        self._topology.path_inside(path)
        with explain_os_errors(path):
            return replace_if_unchanged(path, before, text.encode("utf-8"))

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        """Keep other processes of ours from saving here meanwhile; a person's editor is met by comparing."""
        folder = self._topology.path_inside(self._topology.rules.learnings)
        with explain_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            yield


def _cosines(new: Statement, old: Sequence[Statement]) -> list[float]:
    """Return how near each old statement is to the new one in meaning, by the bundled table."""
    if not old:
        return []
    vectors = _embedder().embed_texts([new.whole, *(each.whole for each in old)])
    return [float(value) for value in vectors[1:] @ vectors[0]]


@cache
def _embedder() -> StaticEmbedder:
    from archivist.recall.embedders.static import StaticEmbedder

    return StaticEmbedder()
