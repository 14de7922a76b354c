"""Fresh banks for tests: copies of one that was made, since to make the tables takes ten times as long."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from archivist import Bank
from archivist.paths import bank_file


def fresh_bank(path: str | Path, **how: Any) -> Bank:
    """Open a bank that holds nothing yet, as `Bank.open` does where there is none."""
    lay_bank(path)
    return Bank.open(path, create=False, **how)


def lay_bank(path: str | Path, content: bytes = b"") -> Path:
    """Put a bank that holds nothing yet, or what another held, where there is none; return its file."""
    file = bank_file(Path(path))
    file.parent.parent.mkdir(parents=True, exist_ok=True)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as copy:
        copy.write(content or _template())
    return file


def bytes_of(closed: Bank) -> bytes:
    """Return what a bank's file holds; whoever closes a bank last takes its log away, so that it is all."""
    assert not closed.path.with_name(f"{closed.path.name}-wal").exists()
    return closed.path.read_bytes()


@cache
def _template() -> bytes:
    """Return the file of a new bank; nothing in it, no name and no time, tells it from another new one."""
    with tempfile.TemporaryDirectory() as folder:
        bank = Bank.open(folder)
        bank.close()
        return bytes_of(bank)
