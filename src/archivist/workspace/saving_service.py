"""Save to the files of a workspace: one process at a time, and never over a person's edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, TypeVar

from archivist.errors import ArchivistError, BankError, InputError, StateError
from archivist.files.open import read_if_any
from archivist.files.write import explain_os_errors, lock_folder, make_folder, replace_if_unchanged
from archivist.reading.similarity import Statement
from archivist.workspace import front_matter, learnings, save
from archivist.workspace.documents import field_text
from archivist.workspace.files_service import FileCache, require_scope
from archivist.workspace.learnings import Learning, LearningEntry
from archivist.workspace.save import MemoryItem, MemoryKind, OnConflict, SaveOutcome, SaveResult
from archivist.workspace.topology import LEARNINGS, FileKind, WorkspaceScope, decode

if TYPE_CHECKING:
    from archivist.recall.embedders.static import StaticEmbedder

# An editor that saves while we write makes an attempt fail; a second of retries outlasts any editor.
_ATTEMPTS = 50
_PAUSE_S = 0.02

T = TypeVar("T")


class MemorySaver:
    """One call of `save_memory`: the files of a root, the date of new entries, and the agent that saves them.

    What agents save is marked with their name, and changes no entry of a person, who is without a name here.
    """

    def __init__(self, files: FileCache, today: date, said_by: str = "") -> None:
        self._files = files
        self._topology = files.topology
        self._today = today
        self._said_by = said_by

    def save(
        self, items: Sequence[MemoryItem], asked: WorkspaceScope, rule: OnConflict, *, create: bool
    ) -> list[SaveOutcome]:
        """Save items one by one; one that cannot be saved is refused and does not stop the others."""
        outcomes = []
        for item in items:
            try:
                outcomes.append(self._save(item, asked, rule, create=create))
            except BankError:
                # Another process holds the lock; a retry finds the items that were saved already.
                raise
            except ArchivistError as error:
                reason = f"{error.message} ({error.hint})" if error.hint else error.message
                kind, title = save.likely_kind(item), save.likely_title(item)
                outcomes.append(SaveOutcome(SaveResult.REFUSED, title, kind, str(asked), reason=reason))
        return outcomes

    def _save(
        self, given: MemoryItem, asked: WorkspaceScope, rule: OnConflict, *, create: bool
    ) -> SaveOutcome:
        here = self._known_scope(WorkspaceScope.parse(given.scope) if given.scope else asked, create=create)
        if self._said_by:
            given = replace(given, text=learnings.escape_entries(given.text))
        item = save.prepare_item(given)
        if item.kind is MemoryKind.PLAN_STATUS:
            return self._save_status(item, here)
        if self._said_by:
            from archivist.lessons.agent_words import agent_suspicion

            # The files have no quarantine, and every agent is told what they say.
            if why := agent_suspicion(item.title, item.text, item.category, *item.tags):
                raise InputError(f"{why}: only a person may save that", hint="ask your user to save it")
        domains = {scope.domain for scope in self._topology.scopes() if scope.workspace == here.workspace}
        home, item = save.choose_scope(here, item, sorted(domains - {""}))
        return self._lock(lambda: self._save_entry(item, home, rule, given), str(home))

    def _known_scope(self, scope: WorkspaceScope, *, create: bool) -> WorkspaceScope:
        """Return a scope whose workspace and domain exist, so that a typo creates no folder."""
        if not scope.parts:
            workspaces = sorted({each.workspace for each in self._topology.scopes()})
            if len(workspaces) == 1:
                return WorkspaceScope(workspaces[0])
            names = ", ".join(workspaces) or "none exists yet"
            raise InputError("no workspace is named", hint=f"name one as the scope: {names}")
        if not create:
            require_scope(self._topology, WorkspaceScope(*scope.parts[:2]))
        return scope

    def _save_entry(
        self, item: MemoryItem, home: WorkspaceScope, rule: OnConflict, given: MemoryItem
    ) -> SaveOutcome | None:
        """Compare an item with the existing entries and write it; None when a file changed meanwhile."""
        files = self._files.read(WorkspaceScope(home.workspace), LEARNINGS).learnings
        # An entry holds where the new one would when its scope is the same, above or below.
        related = (file for file in files if home.contains(file.scope) or file.scope.contains(home))
        entries = (learning for file in related for learning in learnings.list_learnings(file))
        existing = [learning for learning in entries if not learning.entry.superseded_by]
        near = save.find_nearest(item, existing, _cosines, self._said_by)
        if near is not None:
            item = save.follow_kind(item, given, near)
        outcome = save.decide_outcome(item, home, near, rule, self._said_by)
        if near is not None and outcome.result is SaveResult.MERGED:
            learning, compared = near
            path = self._topology.path_inside(learning.path)
            before, text = _read_text(path, learning.path)
            if learning.entry not in learnings.parse_entries(text, learning.path):
                return None
            new = text
            if learning.entry.said_by == self._said_by:
                new = save.merge_item(text, learning.entry, compared.likeness, item, self._today)
            if new == text:
                return outcome._replace(result=SaveResult.KNOWN)
            return outcome if self._write(path, before, new) else None
        if outcome.result is not SaveResult.SAVED:
            return outcome
        kind = FileKind.DECISIONS if item.kind is MemoryKind.DECISION else FileKind.LESSONS
        path = self._topology.learning_file(kind, home)
        name = self._topology.name_of(path)
        before, text = _read_text(path, name)
        known_tags = sorted({tag for file in files for entry in file.entries for tag in entry.tags})
        tags = item.tags or save.tags_of(f"{item.title}\n{item.text}", known_tags)
        beside = ""
        if near and self._said_by and not near[0].entry.said_by:
            # How an entry refers to one of a person, perhaps in another file.
            person, place = near[0].entry, "" if near[0].path == name else f" ({near[0].path})"
            beside = f"{f'[{person.date}] ' if person.date else ''}{person.title}{place}"
        entry = LearningEntry(item.title, item.date or self._today, item.category, tags, item.text, 0, 0)
        entry = entry._replace(said_by=self._said_by, beside=beside)
        text = text if before is not None else learnings.header(kind, home)
        new = learnings.append_entry(text, entry, name)
        old = near[0] if near is not None and save.supersedes(near, rule, self._said_by) else None
        by = f"[{entry.date}] {entry.title}"
        if old is not None and old.path == name:
            new = learnings.set_mark(new, old.entry, "Superseded by", by)
        if not self._write(path, before, new):
            return None
        if old is not None and old.path != name:
            _retry(lambda: self._mark_superseded(old, f"{by} ({name})"), old.path)
        return outcome._replace(path=name, line=learnings.parse_entries(new, name)[-1].line)

    def _mark_superseded(self, learning: Learning, by: str) -> bool | None:
        """Mark an entry of another file as superseded, wherever it is by now; None when the file changed."""
        path = self._topology.path_inside(learning.path)
        before, text = _read_text(path, learning.path)
        entries = learnings.parse_entries(text, learning.path)
        found = next((entry for entry in entries if learnings.is_same_entry(entry, learning.entry)), None)
        if found is None:
            return True
        return self._write(path, before, learnings.set_mark(text, found, "Superseded by", by)) or None

    def _save_status(self, item: MemoryItem, here: WorkspaceScope) -> SaveOutcome:
        plan = save.plan_of(self._files.read(here, (FileKind.PLAN,)).plans, item)
        status = save.new_status(item).value
        outcome = SaveOutcome(SaveResult.SAVED, plan.name, MemoryKind.PLAN_STATUS, str(plan.scope), plan.path)
        path = self._topology.path_inside(plan.path)

        def write_status() -> SaveOutcome | None:
            before, text = _read_text(path, plan.path)
            read = front_matter.read(text, plan.path)
            if not read.has_any:
                hint = "archivist workspace migrate adds it"
                raise InputError(f"{plan.path} has no front matter", hint=hint)
            was = field_text(read.values.get("status")) or "nothing"
            if was == status:
                return outcome._replace(result=SaveResult.KNOWN, reason=f"it is {status} already")
            changes = {"status": status, "updated": item.date or self._today}
            is_written = self._write(path, before, front_matter.edit_fields(text, changes, plan.path))
            return outcome._replace(reason=f"{was} → {status}") if is_written else None

        return self._lock(write_status, plan.path)

    def _lock(self, attempt: Callable[[], T | None], name: str) -> T:
        """Lock out other processes of ours; an editor is detected by comparing the file before writing."""
        folder = self._topology.path_inside(self._topology.rules.learnings)
        with explain_os_errors(folder):
            make_folder(folder, below=self._topology.root)
        with lock_folder(folder):
            return _retry(attempt, name)

    def _write(self, path: Path, before: bytes | None, text: str) -> bool:
        self._topology.path_inside(path)
        with explain_os_errors(path):
            return replace_if_unchanged(path, before, text.encode("utf-8"))


def _retry(attempt: Callable[[], T | None], name: str) -> T:
    """Repeat an attempt while the file changes between reading and writing."""
    for _ in range(_ATTEMPTS):
        result = attempt()
        if result is not None:
            return result
        sleep(_PAUSE_S)
    raise StateError(f"{name}: the file kept changing while it was written", hint="try again")


def _read_text(path: Path, name: str) -> tuple[bytes | None, str]:
    """Return the bytes of a file, None when there is none, and its text."""
    data = read_if_any(path)
    text, problems = decode(data or b"", name)
    if problems:
        raise InputError(str(problems[0]), hint="save it as UTF-8; nothing was written")
    return data, text


def _cosines(new: Statement, old: Sequence[Statement]) -> list[float]:
    """Return the cosine of each old statement and the new one, by the bundled table."""
    if not old:
        return []
    vectors = _embedder().embed_texts([new.whole, *(statement.whole for statement in old)])
    return [float(value) for value in vectors[1:] @ vectors[0]]


@cache
def _embedder() -> StaticEmbedder:
    from archivist.recall.embedders.static import StaticEmbedder

    return StaticEmbedder()
