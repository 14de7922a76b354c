"""Keep the bank as files beside it, as a setting: written after each change, read back when they changed.

The files lie in the repository, so that `jq` and git see every change, and so anybody can change them: a
pull, a colleague, an agent, the user's own editor. What the bank did not write itself comes in as from any
foreign file: new lessons are candidates that wait, words changed in a known lesson become a candidate beside
it, new entries of the stream are marked as said by the file, and what a file claims of verdicts or counts is
left out. A file that somebody kept before the bank did is copied before it is overwritten for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads
from archivist.errors import BankReadOnlyError, InputError
from archivist.exchange import files
from archivist.files.jsonl import JsonLine, LineProblem, read_lines, write_lines
from archivist.files.open import open_regular, real_path
from archivist.files.write import replace_file
from archivist.records import ARCHIVIST, Status
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# The setting that says at which entry of the ledger the files were written.
_WRITTEN_AT = "files_written_at"


class MirrorResult(NamedTuple):
    """What was read back from which files, and how many lines were written.

    `originals` are the copies of files that were kept before the bank wrote them, `left` the edits by hand
    that were not taken.
    """

    changed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    problems: tuple[LineProblem, ...] = ()
    written: int = 0
    originals: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Mirror(BankService):
    """The bank as files beside it."""

    @reads(Layer.BANK)
    def synchronise(self) -> MirrorResult:
        """Take in what others changed in the files, and write what the bank has changed since."""
        folders = self._folders()
        if not folders:
            return MirrorResult()
        bank = self._bank.acting_as(ARCHIVIST)
        paths = [path for _, names in folders for path in names.values()]
        changed = bank.exchange.changed_files(paths)
        waiting: tuple[str, ...] = ()
        problems: tuple[LineProblem, ...] = ()
        originals: list[str] = []
        left: list[str] = []
        try:
            if changed:
                originals = self._keep_originals(bank, changed)
                left = self._edits_by_hand(bank, folders, changed)
                taken = bank.exchange.import_files(changed, keeps_both=True)
                entries = [path for path in changed if path.name == files.STREAM]
                if entries:
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
        return MirrorResult(tuple(map(str, changed)), waiting, problems, count, tuple(originals), tuple(left))

    def _keep_originals(self, bank: Bank, changed: Sequence[Path]) -> list[str]:
        """Copy the files that this bank never wrote: they hold counts of which nobody has vouched yet."""
        written = bank.exchange.written_files()
        kept = []
        for path in changed:
            copy = path.with_name(f"{path.name}{files.ORIGINAL}")
            if str(real_path(path)) in written or copy.exists() or not path.stat().st_size:
                continue
            with open_regular(path) as stream:
                data = stream.read()

            def write(_reader: Reader, copy: Path = copy, data: bytes = data) -> None:
                replace_file(copy, data, below=bank.root)

            bank.exchange.write_listed_files([copy], write)
            kept.append(str(copy))
        return kept

    def _edits_by_hand(
        self,
        bank: Bank,
        folders: Sequence[tuple[files.LessonFormat, Mapping[str, Path]]],
        changed: Sequence[Path],
    ) -> list[str]:
        """Return the counts that were changed and the lines that were deleted in files of this bank."""
        written = bank.exchange.written_files()
        found = []
        with bank.reading() as reader:
            if reader.setting(_WRITTEN_AT) != str(reader.last_entry()):
                return []
            for shape, paths in folders:
                lines = _lines_in(reader, shape)
                for name in (files.LESSONS, files.ARCHIVE):
                    if paths.get(name) in changed and str(real_path(paths[name])) in written:
                        found += files.untaken_edits(lines[name], _lines_of(paths[name]))
        return found

    def _folders(self) -> list[tuple[files.LessonFormat, dict[str, Path]]]:
        """Return the configured files by the shape of their lessons and the names of an export."""
        rules, root = self._bank.config.files, self._bank.root
        found: list[tuple[files.LessonFormat, dict[str, Path]]] = []
        if rules.cross_run:
            folder = root / rules.cross_run
            names = {
                files.LESSONS: folder / "lessons.jsonl",
                files.ARCHIVE: folder / "archive.jsonl",
                files.AUDIT: folder / "audit.jsonl",
            }
            found.append((files.LessonFormat.CROSS_RUN, names))
        reflective = (files.EPISODES, files.LESSONS, files.ARCHIVE)
        for value, written in ((rules.reflective, reflective), (rules.cognitive, (files.STREAM,))):
            if value:
                found.append((files.LessonFormat.REFLECTIVE, {name: root / value / name for name in written}))
        paths = [path for _, names in found for path in names.values()]
        if len(set(paths)) < len(paths):
            raise InputError("files.cross_run and files.reflective are one folder", hint="give each its own")
        return found

    def _write(
        self, bank: Bank, folders: Sequence[tuple[files.LessonFormat, Mapping[str, Path]]], head: str
    ) -> int:
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

        count = bank.exchange.write_listed_files(
            [path for _, paths in folders for path in paths.values()], write
        )
        with bank.transaction() as writer:
            writer.set_setting(_WRITTEN_AT, head)
        return count


def _lines_in(reader: Reader, shape: files.LessonFormat) -> dict[str, list[dict[str, object]]]:
    return files.export_lines(reader, shape, ARCHIVIST, without=(Status.QUARANTINED,))


def _lines_of(path: Path) -> list[Mapping[str, object]]:
    return [line.value for line in read_lines(path) if isinstance(line, JsonLine)]
