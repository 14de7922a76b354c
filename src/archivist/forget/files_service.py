"""Take what was erased out of the files that a bank wrote: exports, its share of a folder, progress.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist.errors import InputError
from archivist.exchange.service import file_digest, record_written
from archivist.files.jsonl import LineProblem, read_lines, write_lines
from archivist.forget.receipt import (
    ErasureLocation,
    ErasureQuery,
    count_occurrences,
    redact_json,
    remaining_tags,
)
from archivist.paths import FOLDER, as_text, home_folder
from archivist.records import Lesson
from archivist.reflect.summary import with_lessons
from archivist.store.filters import one_of

if TYPE_CHECKING:
    from archivist.bank import Bank

_CHECK = "raw bytes"
_CHUNK = 1 << 22
_NOT_OURS = "not ours any more: look yourself"
_OTHERS = "another clone wrote it: erase there too, before the next share"
_IDS = ("id", "uid", "lesson_uid", "lesson")
_WORDS = ("summary", "description", "rule", "detail")
_SIGNED = ("signature", "reflection")
_NAMED = re.compile(r"\((m-\d+)\)$")


@dataclass(frozen=True, slots=True)
class _ErasedContent:
    """What went: a text and its traces in signatures, or records by their ids."""

    what: ErasureQuery
    traces: ErasureQuery | None
    gone: frozenset[str]


def clean_files(
    bank: Bank,
    digests: Mapping[str, str],
    terms: ErasureQuery,
    *,
    traces: ErasureQuery | None,
    erased_ids: frozenset[str],
) -> list[ErasureLocation]:
    """Rewrite the files that the bank noted as its own without the text and the records that went.

    A file that somebody changed since is left alone, and named when it holds the text. `traces` are the
    text's words as signatures hold them.
    """
    loss = _ErasedContent(terms, traces, erased_ids)
    files = {Path(path): digest for path, digest in digests.items() if Path(path).is_file()}
    places: list[ErasureLocation] = []
    for path, digest in files.items():
        try:
            places += _clean_file(bank, path, digest, loss)
        except (OSError, InputError) as error:
            places.append(ErasureLocation(as_text(path), 0, None, str(error)))
    beside = {file for path in files for file in path.parent.glob("*.jsonl")} - files.keys()
    for file in sorted(beside):
        places += _check_foreign_file(file, terms, _OTHERS)
    return [*places, *_rewrite_progress(bank, terms), *_check_bank_folder(bank, terms, files.keys())]


def _clean_file(bank: Bank, path: Path, digest: str, loss: _ErasedContent) -> Iterator[ErasureLocation]:
    what = loss.what
    if file_digest(path) != digest:
        yield from _check_foreign_file(path, what, _NOT_OURS)
        return
    changed = _rewrite(path, loss)
    left = count_in_file(path, what)
    if what.is_in(str(path)):
        yield ErasureLocation(as_text(path), changed, left + 1, _CHECK, "its path holds the text: move it")
        return
    if changed:
        record_written(bank, [path])
    yield ErasureLocation(as_text(path), changed, left, _CHECK if what.needles else "its lines read")


def count_in_file(path: Path, terms: ErasureQuery) -> int:
    """Count a text in the raw bytes of a file."""
    with path.open("rb") as stream:
        return count_occurrences(iter(lambda: stream.read(_CHUNK), b""), terms.needles)


def _rewrite(path: Path, loss: _ErasedContent) -> int:
    """Write a file again without what went; return how many of its lines changed."""
    if not path.stat().st_size:
        return 0
    lines = [line.value for line in read_lines(path) if not isinstance(line, LineProblem)]
    kept = [_strip_line(line, loss) for line in lines]
    changed = sum(before != after for before, after in zip(lines, kept, strict=True))
    if changed:
        write_lines(path, [line for line in kept if line is not None])
    return changed


def _strip_line(line: dict[str, Any], loss: _ErasedContent) -> dict[str, Any] | None:
    if loss.gone:
        is_gone = any(line.get(key) in loss.gone for key in _IDS if isinstance(line.get(key), str))
        return None if is_gone else line
    cleaned: dict[str, Any] = redact_json(line, loss.what)
    if cleaned != line and isinstance(cleaned.get("tags"), list):
        said = " ".join(str(cleaned.get(key, "")) for key in _WORDS)
        cleaned["tags"] = remaining_tags(map(str, cleaned["tags"]), said, loss.what)
    if loss.traces is not None:
        cleaned |= {key: redact_json(cleaned[key], loss.traces) for key in _SIGNED if key in cleaned}
    return cleaned


def _check_foreign_file(path: Path, what: ErasureQuery, note: str) -> Iterator[ErasureLocation]:
    """Name a file that is not ours to change, when it holds the text or cannot be read."""
    try:
        found = count_in_file(path, what)
    except OSError as error:
        yield ErasureLocation(as_text(path), 0, None, str(error))
        return
    if found:
        yield ErasureLocation(as_text(path), 0, found, _CHECK, note)


def _rewrite_progress(bank: Bank, what: ErasureQuery) -> Iterator[ErasureLocation]:
    """Write the section of lessons again from the lessons as they are now."""
    path = bank.path.absolute().parent.parent / "progress.md"
    if not path.is_file():
        return
    text = path.read_text("utf-8", "replace")
    rest = with_lessons(text, ())
    section = [line for line in text.splitlines() if line not in rest.splitlines()]
    names = [found[1] for line in section if (found := _NAMED.search(line))]
    with bank.reading() as reader:
        numbers = [int(name.removeprefix("m-")) for name in names]
        lessons: Mapping[str, Lesson] = {
            lesson.short_id: lesson for lesson in reader.select(Lesson, one_of("number", numbers))
        }
    after = with_lessons(text, [lessons[name] for name in names if name in lessons])
    was = count_in_file(path, what)
    if names and after != text:
        path.write_text(after, encoding="utf-8")
    left = count_in_file(path, what)
    note = "outside of our section: look yourself" if left else ""
    if was or left or (names and after != text):
        yield ErasureLocation(as_text(path), was - left, left, _CHECK, note)


def _check_bank_folder(bank: Bank, what: ErasureQuery, noted: Any) -> Iterator[ErasureLocation]:
    """Look at what else lies beside the bank, when the folder is the bank's own."""
    folder = bank.path.absolute().parent
    if folder.name != FOLDER and folder != home_folder():
        return
    for path in sorted(folder.rglob("*")):
        # A second handle on a database would, when closed, let go of the locks that the store holds.
        if path.is_file() and ".db" not in path.suffix and path.resolve() not in noted:
            yield from _check_foreign_file(path, what, "not written by the bank: look yourself")
