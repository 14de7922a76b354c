"""Keep the bank as files beside it, as a setting: written after each change, read back when they changed.

The files lie in the repository, so that `jq` and git see every change, and so anybody can change them: a
pull, a colleague, an agent, the user's own editor. What the bank did not write itself comes in as from any
foreign file: new lessons are candidates that wait, words changed in a known lesson become a candidate beside
it, new entries of the stream are marked as said by the file, and what a file claims of verdicts or counts is
left out. A file that somebody kept before the bank did is copied before it is overwritten for the first time,
and so is one in which known records were edited by hand: whoever vouches for the copy has the edits taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archivist.access.rights import Layer, reads
from archivist.errors import BankReadOnlyError, InputError
from archivist.exchange import files
from archivist.files.jsonl import JsonLine, LineProblem, read_lines, write_lines
from archivist.files.open import open_regular, real_path
from archivist.files.write import explain_os_errors, replace_file
from archivist.records import ARCHIVIST, Status
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

_Folders: TypeAlias = Sequence[tuple[files.LessonFormat, Mapping[str, Path]]]
# The setting that says at which entry of the ledger the files were written.
_WRITTEN_AT = "files_written_at"


class MirrorResult(NamedTuple):
    """What was read back from which files, and how many lines were written.

    `originals` are the copies of files that were kept before the bank wrote them, `left` the edits by hand
    that were not taken, and `edited` the copies that have them.
    """

    changed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    problems: tuple[LineProblem, ...] = ()
    written: int = 0
    originals: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()


class Mirror(BankService):
    """The bank as files beside it."""

    @reads(Layer.BANK)
    def synchronise(self) -> MirrorResult:
        """Take in what others changed in the files, and write what the bank has changed since."""
        folders = self._folders()
        if not folders:
            return MirrorResult()
        _refuse_folders(path for _, names in folders for path in names.values())
        with explain_os_errors(self._bank.root):
            return self._synchronise(folders)

    def _synchronise(self, folders: _Folders) -> MirrorResult:
        bank = self._bank.acting_as(ARCHIVIST)
        paths = [path for _, names in folders for path in names.values()]
        changed = bank.exchange.changed_files(paths)
        waiting: tuple[str, ...] = ()
        problems: tuple[LineProblem, ...] = ()
        originals: list[str] = []
        left: list[str] = []
        edited: list[str] = []
        try:
            if changed:
                written = bank.exchange.written_files()
                known = {path for path in changed if str(real_path(path)) in written}
                first = [path for path in changed if path not in known and not _is_copied(path)]
                originals = self._copy(bank, first, files.ORIGINAL)
                left, words = self._edits_by_hand(bank, folders, known)
                edited = self._copy(bank, words, files.EDITED)
                taken = bank.exchange.import_files(changed, keeps_both=True)
                if entries := [path for path in changed if path.name == files.STREAM]:
                    bank.stream.import_lines(entries)
                waiting, problems = taken.waiting, taken.problems
            with bank.reading() as reader:
                head = str(reader.last_entry())
                is_current = reader.setting(_WRITTEN_AT) == head and not changed
            if is_current and all(path.exists() for path in paths):
                return MirrorResult()
            count = self._write(bank, folders, head)
        except BankReadOnlyError:
            return MirrorResult()
        told = tuple(originals), tuple(left), tuple(edited)
        return MirrorResult(tuple(map(str, changed)), waiting, problems, count, *told)

    def _copy(self, bank: Bank, paths: Sequence[Path], suffix: str) -> list[str]:
        """Copy files that are about to be overwritten, for a person who vouches for what they say."""
        kept = []
        for path in paths:
            copy = path.with_name(f"{path.name}{suffix}")
            with open_regular(path) as stream:
                data = stream.read()

            def write(_reader: Reader, copy: Path = copy, data: bytes = data) -> None:
                replace_file(copy, data, is_private=True, below=bank.root)

            bank.exchange.write_listed_files([copy], write)
            kept.append(str(copy))
        return kept

    def _edits_by_hand(
        self,
        bank: Bank,
        folders: _Folders,
        changed: Set[Path],
    ) -> tuple[list[str], list[Path]]:
        """Return what was changed by hand in files of this bank, and the files that say other words."""
        found: list[str] = []
        with_words = []
        with bank.reading() as reader:
            if reader.setting(_WRITTEN_AT) != str(reader.last_entry()):
                return [], []
            for shape, paths in folders:
                lines = _lines_in(reader, shape)
                for name in (files.LESSONS, files.ARCHIVE, files.STREAM):
                    if paths.get(name) in changed:
                        present = (
                            each.value for each in read_lines(paths[name]) if isinstance(each, JsonLine)
                        )
                        edits, has_words = files.untaken_edits(lines[name], present)
                        found += edits
                        with_words += [paths[name]] if has_words else []
        return found, with_words

    def _folders(self) -> list[tuple[files.LessonFormat, dict[str, Path]]]:
        """Return the configured files by the shape of their lessons and the names of an export."""
        rules, root = self._bank.config.files, self._bank.root
        found: list[tuple[files.LessonFormat, dict[str, Path]]] = []
        if rules.cross_run:
            named = {files.LESSONS: files.LESSONS, files.ARCHIVE: "archive.jsonl", files.AUDIT: files.AUDIT}
            names = {name: root / rules.cross_run / file for name, file in named.items()}
            found.append((files.LessonFormat.CROSS_RUN, names))
        reflective = (files.EPISODES, files.LESSONS, files.ARCHIVE)
        for value, written in ((rules.reflective, reflective), (rules.cognitive, (files.STREAM,))):
            if value:
                found.append((files.LessonFormat.REFLECTIVE, {name: root / value / name for name in written}))
        paths = [path for _, names in found for path in names.values()]
        if len(set(paths)) < len(paths):
            raise InputError("files.cross_run and files.reflective are one folder", hint="give each its own")
        return found

    def _write(self, bank: Bank, folders: _Folders, head: str) -> int:
        with bank.reading() as reader:
            # Outside of the transaction: of 10,000 lessons it takes seconds in which others would wait.
            prepared_at = str(reader.last_entry())
            prepared = [_lines_in(reader, shape) for shape, _ in folders]

        def write(reader: Reader) -> int:
            count = 0
            is_same = str(reader.last_entry()) == prepared_at
            for (shape, paths), known in zip(folders, prepared, strict=True):
                lines = known if is_same else _lines_in(reader, shape)
                for name, path in paths.items():
                    count += write_lines(path, lines[name], below=bank.root)
            return count

        places = [path for _, paths in folders for path in paths.values()]
        count = bank.exchange.write_listed_files(places, write)
        with bank.transaction() as writer:
            writer.set_setting(_WRITTEN_AT, head)
        return count


def _refuse_folders(paths: Iterable[Path]) -> None:
    """Raise InputError where a folder is in the place of a file or of its copies: it cannot be replaced."""
    for path in paths:
        for suffix in ("", files.ORIGINAL, files.EDITED):
            place = path.with_name(f"{path.name}{suffix}")
            if place.is_dir():
                raise InputError(f"{str(place)!r} is a folder: move it away", hint="a file goes there")


def _is_copied(path: Path) -> bool:
    return path.with_name(f"{path.name}{files.ORIGINAL}").exists() or not path.stat().st_size


def _lines_in(reader: Reader, shape: files.LessonFormat) -> dict[str, list[dict[str, object]]]:
    return files.export_lines(reader, shape, ARCHIVIST, without=(Status.QUARANTINED,))
