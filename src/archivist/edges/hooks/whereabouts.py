"""Where the bank of a session lies, and where what went wrong with it is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from archivist.errors import ArchivistError, BankError, NoBankError
from archivist.paths import FOLDER, bank_file, home_folder, is_file, is_trusted, projects_above


def find_bank(folder: str, bank: str = "") -> tuple[Path | None, BankError | None]:
    """Return where the bank of a session lies: as named, else the nearest one above where it works.

    What is only come across must be this user's own; the nearest that is not is told beside.
    """
    named = bank or os.environ.get("ARCHIVIST_BANK", "")
    if named:
        if not is_file(bank_file(Path(named))):
            raise NoBankError(named)
        return Path(named), None
    foreign = None
    for found in _candidate_projects(folder):
        if is_trusted(found):
            return found, foreign
        foreign = foreign or BankError(
            f"{str(found / FOLDER)!r} belongs to another user and is not asked unless ARCHIVIST_BANK names it"
        )
    return None, foreign


def _candidate_projects(folder: str) -> Iterator[Path]:
    for start in (folder, os.environ.get("CLAUDE_PROJECT_DIR", ""), "."):
        if start:
            # As the commands see it, to whom the system tells the real folder; then as the client spells it.
            yield from projects_above(Path(os.path.realpath(start)))
            yield from projects_above(Path(start).absolute())


def note_failure(what: str, error: Exception, place: Path | None) -> None:
    """Note what went wrong where the doctor looks: beside the bank, else in the user's own folder."""
    from archivist.clock import system_clock
    from archivist.files import hook_log

    reason = error_text(error)
    for is_home in (False, True):
        try:
            if is_home or place is None:
                home = home_folder()
                home.mkdir(mode=0o700, exist_ok=True)
            else:
                home = bank_file(place).parent
            hook_log.log_failure(home, f"{what}: {reason}", system_clock())
        except (OSError, RuntimeError, ValueError):
            # Not even there: then nothing is kept.
            continue
        return


def error_text(error: Exception) -> str:
    """Say in one line what went wrong."""
    return error.message if isinstance(error, ArchivistError) else f"{type(error).__name__}: {error}"


def find_log_bank(folder: str, bank: str = "") -> Path | None:
    """Return the bank beside which a failure is noted, else that of the folder where the client is."""
    for start in (folder, ""):
        try:
            return find_bank(start, bank)[0]
        except (OSError, RuntimeError, ValueError, ArchivistError):
            continue
    return None
