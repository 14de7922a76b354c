"""Erase from files: those that a bank wrote, and what agents saved in a workspace's Markdown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist.errors import ArchivistError, InputError, StateError
from archivist.files.jsonl import LineProblem, read_lines, write_lines
from archivist.files.open import list_files, open_regular, read_bounded, real_path
from archivist.files.write import remove_stale_temporaries, replace_file, replace_if_unchanged
from archivist.forget.receipt import ErasureLocation, remaining_tags
from archivist.paths import FOLDER, as_text, home_folder, state_folder
from archivist.records import Lesson
from archivist.reflect.progress import progress_line, read_progress, render_progress
from archivist.store.erasure import ErasureQuery, count_occurrences, redact_json
from archivist.store.filters import one_of

if TYPE_CHECKING:
    from archivist.bank import Bank

_RAW_BYTES = "raw bytes"
# Files are searched in chunks, so that a large one does not fill the memory.
_CHUNK = 1 << 22
_CHANGED = "changed since the bank wrote it: check it yourself"
_REPLACED = "the bank as it was before a restore or salvage: remove it when you need it no more"
_LEFT = "yours: the workspace's files are searched, and only what agents saved in them is changed"
_FOREIGN = "another clone wrote it: erase there too, before the next share"
# The keys of exported lines that hold ids of records, words of lessons, and signatures.
_ID_KEYS = ("id", "uid", "lesson_uid", "lesson")
_WORD_KEYS = ("summary", "description", "rule", "detail")
_SIGNATURE_KEYS = ("signature", "reflection")
_SHORT_ID_AT_END = re.compile(r"\((m-\d+)\)$")


def clean_files(
    bank: Bank,
    digests: Mapping[str, str],
    query: ErasureQuery,
    *,
    traces: ErasureQuery | None,
    erased_ids: frozenset[str],
) -> list[ErasureLocation]:
    """Rewrite the files that the bank listed as its own without the erased text and records.

    A file that was changed since is left alone, and reported when it holds the text. One without a digest
    was being written when its process was killed, so it is the bank's. `traces` are the text's words as
    signatures hold them.
    """

    def strip_line(line: dict[str, Any]) -> dict[str, Any] | None:
        """Return a line without the erased content; None for the line of an erased record."""
        if erased_ids:
            values = [line.get(key) for key in _ID_KEYS]
            if "seq" in line:
                values += [line.get("run"), f"{line.get('run')}#{line['seq']}"]
            return None if any(isinstance(each, str) and each in erased_ids for each in values) else line
        cleaned: dict[str, Any] = redact_json(line, query)
        if cleaned != line and isinstance(cleaned.get("tags"), list):
            words = " ".join(str(cleaned.get(key, "")) for key in _WORD_KEYS)
            cleaned["tags"] = remaining_tags(map(str, cleaned["tags"]), words, query)
        if traces is not None:
            cleaned |= {key: redact_json(cleaned[key], traces) for key in _SIGNATURE_KEYS if key in cleaned}
        return cleaned

    files = {Path(path): digest for path, digest in digests.items() if Path(path).is_file()}
    places: list[ErasureLocation] = []
    for path, digest in files.items():
        try:
            places += _clean_file(bank, path, digest, query, strip_line)
        except (OSError, InputError) as error:
            places.append(ErasureLocation(as_text(path), 0, None, str(error)))
    beside = {file for path in files for file in path.parent.glob("*.jsonl")} - files.keys()
    for file in sorted(beside):
        places += _check_foreign_file(file, query, _FOREIGN)
    places += _rewrite_progress(bank, query)
    places += _remove_state(bank, query)
    folder = bank.path.absolute().parent
    # A killed restore or salvage leaves copies of the bank.
    remove_stale_temporaries(folder, is_again=True)
    if folder.name == FOLDER or folder == home_folder():
        for path in sorted(folder.rglob("*")):
            # Closing a second handle on a database file would release the locks that the store holds.
            if path.is_file() and ".db" not in path.suffix and real_path(path) not in files:
                is_replaced = path.name.startswith(f"{bank.path.name}.")
                note = _REPLACED if is_replaced else "the bank did not write it: check it yourself"
                places += _check_foreign_file(path, query, note)
    return places


def _clean_file(
    bank: Bank,
    path: Path,
    digest: str,
    query: ErasureQuery,
    strip_line: Callable[[dict[str, Any]], dict[str, Any] | None],
) -> Iterator[ErasureLocation]:
    remove_stale_temporaries(path.parent)
    with open_regular(path) as stream:
        is_ours = not digest or hashlib.file_digest(stream, "sha256").hexdigest() == digest
    if not is_ours:
        yield from _check_foreign_file(path, query, _CHANGED)
        return

    def read_values() -> Iterator[dict[str, Any]]:
        lines = read_lines(path) if path.stat().st_size else ()
        return (line.value for line in lines if not isinstance(line, LineProblem))

    # Read twice: the events of an export do not fit in memory.
    changed = sum(strip_line(value) != value for value in read_values())
    if changed:
        stripped = (strip_line(value) for value in read_values())
        kept = (line for line in stripped if line is not None)
        bank.exchange.write_listed_files([path], lambda _: write_lines(path, kept))
    left = count_in_file(path, query)
    if query.is_in(str(path)):
        note = "its path holds the text: move it"
        yield ErasureLocation(as_text(path), changed, left + 1, _RAW_BYTES, note)
        return
    yield ErasureLocation(as_text(path), changed, left, _RAW_BYTES if query.needles else "its lines read")


def count_in_file(path: Path, query: ErasureQuery) -> int:
    """Count how often a text occurs in the raw bytes of a file."""
    with open_regular(path) as stream:
        return count_occurrences(iter(lambda: stream.read(_CHUNK), b""), query.needles)


def _check_foreign_file(path: Path, query: ErasureQuery, note: str) -> Iterator[ErasureLocation]:
    """Report a file that the bank must not change, when it holds the text or cannot be read."""
    try:
        found = count_in_file(path, query)
    except (OSError, InputError) as error:
        yield ErasureLocation(as_text(path), 0, None, str(error))
        return
    if found:
        yield ErasureLocation(as_text(path), 0, found, _RAW_BYTES, note)


def _remove_state(bank: Bank, query: ErasureQuery) -> Iterator[ErasureLocation]:
    """Remove the log of hooks and the cache under the user's home when they hold the text."""
    for path in sorted(state_folder(bank.path).glob("*")):
        if path.is_file() and (found := count_in_file(path, query)):
            path.unlink()
            yield ErasureLocation(as_text(path), found, 0, _RAW_BYTES)


def _rewrite_progress(bank: Bank, query: ErasureQuery) -> Iterator[ErasureLocation]:
    """Write the section of lessons in progress.md again from the lessons as they are now."""
    path = bank.path.absolute().parent.parent / "progress.md"
    if not path.is_file():
        return
    text = read_bounded(path).decode("utf-8", "replace")
    rest, sessions = read_progress(text)
    named = [
        (each, [found[1] for line in each.lines if (found := _SHORT_ID_AT_END.search(line))])
        for each in sessions
    ]
    names = [name for _, found in named for name in found]
    with bank.reading() as reader:
        numbers = [int(name.removeprefix("m-")) for name in names]
        stored = reader.select(Lesson, one_of("number", numbers))
    lines = {lesson.short_id: progress_line(lesson) for lesson in stored}
    after = render_progress(
        rest,
        [each._replace(lines=tuple(lines[name] for name in found if name in lines)) for each, found in named],
    )
    found_before = count_in_file(path, query)
    is_changed = bool(names) and after != text
    if is_changed:
        replace_file(path, after.encode())
    left = count_in_file(path, query)
    if found_before or left or is_changed:
        note = "outside of the section of lessons: check it yourself" if left else ""
        yield ErasureLocation(as_text(path), found_before - left, left, _RAW_BYTES, note)


def clean_workspace(bank: Bank, query: ErasureQuery) -> Iterator[ErasureLocation]:
    """Redact the entries and skills that agents saved, and report every other file that holds the text."""
    # Every finished run imports this module, to prune.
    from archivist.workspace.skill_files import CLIENT_FOLDERS

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
        yield ErasureLocation(as_text(path), found - left, left, _RAW_BYTES, _LEFT if left else "")


def _redact_agents_words(text: str, path: Path, query: ErasureQuery) -> str:
    from archivist.workspace.learnings import lines_of, parse_entries
    from archivist.workspace.skill_files import FILE_NAME, saving_agent

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
