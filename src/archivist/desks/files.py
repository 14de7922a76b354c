"""Work on files: export, import, share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from archivist.errors import InputError
from archivist.jsonl import write_lines
from archivist.stores import files, share

if TYPE_CHECKING:
    from archivist.bank import Bank


def export(bank: Bank, folder: Path, shape: files.Shape) -> dict[str, int]:
    """Write the bank as JSON lines; return how many lines each file has."""
    with bank.reading() as reader:
        lines = files.export_lines(reader, shape)
    return {name: write_lines(folder / name, values) for name, values in lines.items()}


def take(bank: Bank, paths: Sequence[Path], *, is_strict: bool) -> files.Taken:
    """Take exported files in; with `is_strict` one bad line refuses them all."""
    parcel = files.read_files(paths)
    if is_strict and parcel.problems:
        raise InputError(
            f"{len(parcel.problems)} bad lines, nothing was taken; the first: {parcel.problems[0]}",
            hint="without --strict the good lines are taken",
        )
    with bank.transaction() as writer:
        return files.take(writer, parcel, promote_at_runs=bank.config.lessons.promote_at_runs)


def share_with(bank: Bank, folder: Path) -> share.Shared:
    """Take in what other clones wrote to a folder, and write what this bank knows."""
    promote_at_runs = bank.config.lessons.promote_at_runs
    with bank.transaction() as writer:
        replica = writer.setting("bank_id")
        if not replica:
            replica = bank.new_id(bank.now())
            writer.set_setting("bank_id", replica)
    pool = share.read_pool(folder, replica)
    with bank.transaction() as writer:
        changed = share.take(writer, pool, promote_at_runs=promote_at_runs)
    with bank.reading() as reader:
        ours = share.own_lines(reader, pool, promote_at_runs=promote_at_runs)
    written = share.write(folder, replica, ours)
    return share.Shared(changed=changed, written=written, problems=pool.problems)
