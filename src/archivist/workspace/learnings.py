"""Learnings: the decisions and lessons of a scope, entry by entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from archivist.workspace import entries
from archivist.workspace.entries import LearningEntry
from archivist.workspace.plans import has_any_tag
from archivist.workspace.problems import LintProblem
from archivist.workspace.topology import LEVELS, FileKind, WorkspaceFile, WorkspaceScope

_SLUG = re.compile(r"[^a-z0-9]+")
_SLUG_CHARACTERS = 60


class LearningFile(NamedTuple):
    """One file of decisions or of lessons."""

    kind: FileKind
    scope: WorkspaceScope
    path: str
    entries: tuple[LearningEntry, ...]
    problems: tuple[LintProblem, ...] = ()


class Learning(NamedTuple):
    """An entry with the file that it stands in. Filters see the entry alone."""

    kind: FileKind
    entry: LearningEntry
    scope: WorkspaceScope
    path: str
    id: str

    @property
    def content(self) -> str:
        """Return title and text: in one line where the text is one, else as paragraphs."""
        entry = self.entry
        if not entry.text or not entry.title:
            return entry.title or entry.text
        if entry.text.startswith(entry.title):
            return entry.text
        return f"{entry.title}{' — ' if chr(10) not in entry.text else chr(10) * 2}{entry.text}"

    @property
    def place(self) -> str:
        """Return file and line."""
        return f"{self.path}:{self.entry.line}"


class Learnings(NamedTuple):
    """The decisions and lessons that answer a question, each in the order of the files."""

    decisions: list[Learning]
    lessons: list[Learning]


def from_text(text: str, place: WorkspaceFile) -> LearningFile:
    """Read a file of decisions or lessons."""
    found = tuple(entries.parse_entries(text, place.name))
    problems = tuple(problem for entry in found for problem in entry.problems)
    problems += tuple(entries.find_misplaced_headings(text, place.name))
    return LearningFile(place.kind, place.scope, place.name, found, problems)


def list_learnings(file: LearningFile) -> list[Learning]:
    """Return the entries of a file, each with an id that is its own."""
    used: dict[str, int] = {}
    learnt = []
    for entry in file.entries:
        slug = _SLUG.sub("-", entry.title.lower()).strip("-")[:_SLUG_CHARACTERS].rstrip("-")
        day = entry.date.isoformat() if entry.date else ""
        name = f"{file.kind.value}#{'-'.join(part for part in (day, slug) if part) or entry.line}"
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name}-{used[name]}"
        learnt.append(Learning(file.kind, entry, file.scope, file.path, unique))
    return learnt


def select(
    files: Iterable[LearningFile],
    asked: WorkspaceScope,
    *,
    tags: Sequence[str] = (),
    category: str = "",
    with_superseded: bool = False,
) -> Learnings:
    """Return the entries of a scope that carry one of these tags and are of this category.

    A repository has its own entries, and those of its domain that carry its name as a tag: learnings are
    kept by domain.
    """
    found = Learnings([], [])
    for file in files:
        named = (asked.repository,) if len(asked.parts) == LEVELS and not asked.contains(file.scope) else ()
        for learning in list_learnings(file):
            entry = learning.entry
            if entry.superseded_by and not with_superseded:
                continue
            if category and entry.category.casefold() != category.strip().casefold():
                continue
            if has_any_tag(entry.tags, tags) and has_any_tag(entry.tags, named):
                (found.decisions if file.kind is FileKind.DECISIONS else found.lessons).append(learning)
    return found
