"""Erase from a workspace's Markdown: what agents saved there is redacted, the user's own files are named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import ArchivistError, StateError
from archivist.files.open import list_files, read_bounded
from archivist.files.write import replace_if_unchanged
from archivist.forget.files_service import count_in_file
from archivist.forget.receipt import ErasureLocation
from archivist.paths import as_text
from archivist.workspace.learnings import lines_of, parse_entries
from archivist.workspace.skill_files import CLIENT_FOLDERS, FILE_NAME, saving_agent

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.erasure import ErasureQuery

_LEFT = "yours: the workspace's files are searched, and only what agents saved in them is changed"
_CHECK = "raw bytes"


def clean_workspace(bank: Bank, query: ErasureQuery) -> Iterator[ErasureLocation]:
    """Redact the entries and skills that agents saved, and report every other file that holds the text."""
    rules = bank.config.workspace
    names = (rules.learnings, rules.resources, rules.hot, *CLIENT_FOLDERS)
    paths: dict[Path, None] = {}
    for folder in dict.fromkeys(bank.root / name for name in names if name):
        try:
            paths |= dict.fromkeys(list_files(folder, "**/*.md"))
        except ArchivistError as error:
            yield ErasureLocation(as_text(folder), 0, None, str(error))
    for path in paths:
        try:
            found = count_in_file(path, query)
            if not found:
                continue
            before = read_bounded(path)
            # Nothing is written through a link.
            text = "" if path.is_symlink() else before.decode("utf-8")
            after = _redact_agents_words(text, path, query).encode() if text else before
            if after != before and not replace_if_unchanged(path, before, after):
                raise StateError("it changed meanwhile: erase again")
            left = count_in_file(path, query)
        except (OSError, ValueError, ArchivistError) as error:
            yield ErasureLocation(as_text(path), 0, None, str(error))
            continue
        yield ErasureLocation(as_text(path), found - left, left, _CHECK, _LEFT if left else "")


def _redact_agents_words(text: str, path: Path, query: ErasureQuery) -> str:
    if path.name == FILE_NAME:
        return query.redact_text(text) if saving_agent(text) else text
    if "\r" in text:
        # An editor of another system wrote it too; its line ends would be lost.
        return text
    lines = lines_of(text)
    for entry in parse_entries(text, path.name):
        if entry.said_by:
            span = slice(entry.line - 1, entry.end_line)
            lines[span] = query.redact_text("\n".join(lines[span])).split("\n")
            # Redacting moves no line: the text has no line end unless the erased one has.
            if len(lines) != len(lines_of(text)):
                return text
    return text if lines == lines_of(text) else "\n".join(lines)
