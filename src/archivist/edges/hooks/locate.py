"""Find the bank of a session, and log failures beside it."""

from __future__ import annotations

import os
from pathlib import Path

from archivist.errors import ArchivistError, BankError, NoBankError
from archivist.paths import FOLDER, bank_file, home_folder, is_file, is_trusted, projects_above


def find_bank(folder: str, bank: str = "") -> tuple[Path | None, BankError | None]:
    """Return the bank of a session: the named one, else the nearest above its folder.

    A bank that is not named must belong to this user; the nearest that does not is returned as an error.
    """
    named = bank or os.environ.get("ARCHIVIST_BANK", "")
    if named:
        if not is_file(bank_file(Path(named))):
            raise NoBankError(named)
        return Path(named), None
    foreign = None
    for start in (folder, os.environ.get("CLAUDE_PROJECT_DIR", ""), "."):
        # The real folder first, as the commands see it; then the folder as the client spells it.
        for path in (Path(os.path.realpath(start)), Path(start).absolute()) if start else ():
            for found in projects_above(path):
                if is_trusted(found):
                    return found, foreign
                foreign = foreign or BankError(
                    f"{str(found / FOLDER)!r} belongs to another user and is ignored"
                    " unless ARCHIVIST_BANK names it"
                )
    return None, foreign


def find_log_bank(folder: str, bank: str = "") -> Path | None:
    """Return the bank beside which a failure is logged: the session's, else that of the current folder."""
    for start in (folder, ""):
        try:
            return find_bank(start, bank)[0]
        except (OSError, RuntimeError, ValueError, ArchivistError):
            continue
    return None


def note_failure(what: str, error: Exception, place: Path | None) -> None:
    """Log a failure where the doctor looks: beside the bank, else in the user's home folder."""
    from archivist.clock import system_clock
    from archivist.files import hook_log

    reason = error_text(error)
    for is_home in (False, True):
        try:
            if is_home or place is None:
                folder = home_folder()
                folder.mkdir(mode=0o700, exist_ok=True)
            else:
                folder = bank_file(place).parent
            hook_log.log_failure(folder, f"{what}: {reason}", system_clock())
        except (OSError, RuntimeError, ValueError):
            # If neither folder can be written, the failure is lost.
            continue
        return


def error_text(error: Exception) -> str:
    """Return one line that says what went wrong."""
    return error.message if isinstance(error, ArchivistError) else f"{type(error).__name__}: {error}"
