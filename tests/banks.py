"""Fresh banks for tests: copies of one that was made, since to make the tables takes ten times as long."""

from __future__ import annotations

import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from archivist import Bank, trust
from archivist.files.write import lock_folder, replace_file
from archivist.paths import bank_file, home_folder


def fresh_bank(path: str | Path, **how: Any) -> Bank:
    """Open a bank that holds nothing yet, for a caller who works in no folder unless one is named."""
    return Bank.open(lay_bank(path), create=False, **how)


def lay_bank(path: str | Path, content: bytes = b"") -> Path:
    """Put a bank that holds nothing yet, or what another held, where there is none; return its file."""
    file = bank_file(Path(path))
    file.parent.parent.mkdir(parents=True, exist_ok=True)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as copy:
        copy.write(content or _template())
    note_as_made_here(file)
    return file


def note_as_made_here(file: Path) -> None:
    """Note a bank that was put in its place as one that this user made there."""
    with apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY) as db:
        mark = db.execute("SELECT value FROM settings WHERE name = ?", (trust.MARK,)).get
    home = home_folder()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    noted = home / trust.FILE_NAME
    # Servers of the same test may be reading it.
    with lock_folder(home):
        notes = json.loads(noted.read_text()) if noted.exists() else {}
        notes[os.path.realpath(file)] = {"mark": mark, "number": file.stat().st_ino}
        replace_file(noted, json.dumps(notes).encode())


def bytes_of(closed: Bank) -> bytes:
    """Return what a bank's file holds; whoever closes a bank last takes its log away, so that it is all."""
    assert not closed.path.with_name(f"{closed.path.name}-wal").exists()
    return closed.path.read_bytes()


@cache
def _template() -> bytes:
    """Return the file of a new bank; nothing in it but its mark tells it from another new one."""
    with tempfile.TemporaryDirectory() as folder:
        bank = Bank.open(folder, create=True)
        bank.close()
        return bytes_of(bank)
