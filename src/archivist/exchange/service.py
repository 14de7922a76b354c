"""Work on files: export, import, share."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.capture.service import CaptureOverrides
from archivist.core.guard_service import guard_import
from archivist.errors import BankReadOnlyError, InputError
from archivist.exchange import files, share
from archivist.files.jsonl import write_lines
from archivist.paths import as_text
from archivist.records.plain import canonical_json
from archivist.service import BankService

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.exchange.files import FileImportResult, LessonFormat
    from archivist.exchange.share import ShareResult
    from archivist.store.protocol import Reader

# Where the bank notes which files it wrote.
_WRITTEN = "written_files"
_ADDRESS = "file://"


@contextmanager
def _explain_write_errors(folder: Path) -> Iterator[None]:
    """Say plainly when a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{str(folder)!r} cannot be written: {error.strerror}",
            hint="check the rights of the folder, or name another",
        ) from None


def export(bank: Bank, folder: Path, shape: files.LessonFormat) -> dict[str, int]:
    """Write the bank as JSON lines; return how many lines each file has."""
    with bank.reading() as reader:
        every = files.export_lines(reader, shape)
    # Of the layers and tiers only those that hold something, or held it at the last export.
    lines = {
        name: values
        for name, values in every.items()
        if values or name in files.ALWAYS or (folder / name).exists()
    }
    with _explain_write_errors(folder):
        written = {name: write_lines(folder / name, values) for name, values in lines.items()}
    record_written(bank, [folder / name for name in lines])
    return written


def import_files(bank: Bank, paths: Sequence[Path], *, is_strict: bool) -> files.FileImportResult:
    """Take exported files in; with `is_strict` one bad line refuses them all."""
    parcel = files.read_files(paths)
    if is_strict and parcel.problems:
        raise InputError(
            f"{len(parcel.problems)} bad lines, nothing was taken; the first: {parcel.problems[0]}",
            hint="without --strict the good lines are taken",
        )
    guard_import(bank, parcel.kept)
    with bank.transaction() as writer:
        runs = bank.runs.take(parcel.episodes, CaptureOverrides(is_filed=True), verb="import")
        taken = files.import_batch(writer, parcel, promote_at_runs=bank.config.lessons.promote_at_runs)
        stream = bank.stream.import_entries(parcel.stream)
    same = len(parcel.episodes) - len(runs.created) - len(runs.updated)
    counts = {
        "episodes": {"created": len(runs.created), "changed": len(runs.updated), "unchanged": same},
        "stream entries": {
            "created": stream.added,
            "changed": stream.changed,
            "unchanged": stream.unchanged,
        },
    }
    for kind, numbers in counts.items():
        for name, number in numbers.items():
            counted = getattr(taken, name)
            if number and isinstance(counted, Counter):
                counted[kind] += number
    return taken


def sync_share(bank: Bank, folder: Path) -> share.ShareResult:
    """Take in what other clones wrote to a folder, and write what this bank knows."""
    promote_at_runs = bank.config.lessons.promote_at_runs
    with bank.transaction() as writer:
        replica = writer.setting("bank_id")
        if not replica:
            replica = bank.new_id(bank.now())
            writer.set_setting("bank_id", replica)
    pool = share.read_shared(folder, replica)
    with bank.transaction() as writer:
        changed = share.merge_shared(writer, pool, promote_at_runs=promote_at_runs)
    with bank.reading() as reader:
        ours = share.own_lines(reader, pool, promote_at_runs=promote_at_runs)
    with _explain_write_errors(folder):
        written = share.write_own_files(folder, replica, ours)
    record_written(bank, [folder / name / f"{replica}.jsonl" for name in ours])
    return share.ShareResult(changed=changed, written=written, problems=pool.problems)


def record_written(bank: Bank, paths: Iterable[Path]) -> None:
    """Note which files hold memory that this bank wrote, and their digests: erasure reaches them.

    A bank that can only be read notes nothing; what it cannot erase here it need not know here.
    """
    digests = {_encode_path(path.resolve()): file_digest(path) for path in paths}
    try:
        with bank.transaction() as writer:
            noted = canonical_json({**_load_written(writer), **digests})
            if noted != writer.setting(_WRITTEN):
                writer.set_setting(_WRITTEN, noted)
    except BankReadOnlyError:
        return


def written_files(reader: Reader) -> dict[str, str]:
    """Return the files that this bank wrote, with the digest each was left with."""
    return {_decode_path(noted): digest for noted, digest in _load_written(reader).items()}


def _load_written(reader: Reader) -> dict[str, str]:
    noted: dict[str, str] = json.loads(reader.setting(_WRITTEN) or "{}")
    return noted


def _encode_path(path: Path) -> str:
    """Return a path as the bank keeps it: as it is, or as an address where its bytes are no text."""
    return str(path) if as_text(path) == str(path) else path.as_uri()


def _decode_path(noted: str) -> str:
    if not noted.startswith(_ADDRESS):
        return noted
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(noted.removeprefix(_ADDRESS)))


def file_digest(path: Path) -> str:
    """Return the digest of a file's bytes."""
    with path.open("rb") as stream:
        digest = sha256()
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


class Exchange(BankService):
    """What leaves and comes as files."""

    @reads(Layer.BANK)
    def export(self, folder: Path, *, shape: LessonFormat | None = None) -> dict[str, int]:
        """Write the bank as JSON lines in the documents' shapes; return how many lines each file has."""
        from archivist.exchange.files import LessonFormat

        return export(self._bank, folder, shape or LessonFormat.CROSS_RUN)

    @writes(Layer.BANK)
    def import_files(self, paths: Sequence[Path], *, is_strict: bool = False) -> FileImportResult:
        """Take exported files in: new records are added, known ones merged, bad lines left out."""
        return import_files(self._bank, paths, is_strict=is_strict)

    @writes(Layer.BANK)
    def share(self, folder: Path) -> ShareResult:
        """Bring the bank and a folder kept in git together: take what others wrote, write what is ours."""
        return sync_share(self._bank, folder)
