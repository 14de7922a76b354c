"""Read the SQLite databases in which clients keep their sessions; nothing is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from urllib.parse import quote

from archivist.errors import InputError

_BUSY_TIMEOUT_S = 5.0
# SQLite looks through about a gigabyte a second; an editor's database can have several.
_MOST_CHECKED_BYTES = 1024**3


def _beside(database: Path, *endings: str) -> list[Path]:
    return [database.with_name(database.name + ending) for ending in endings]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def find_damage(database: Path, client: str, hint: str = "") -> str:
    """Say what of a client's database cannot be read; empty where all of it can, or where it is too large."""
    try:
        if _size(database) > _MOST_CHECKED_BYTES:
            return ""
        with read_database(database, client, hint) as rows:
            ((first, *_),) = rows.execute("PRAGMA quick_check(1)").fetchall()
    except InputError as error:
        return error.message
    # SQLite puts what it found on a line of its own, below the name of the database.
    told = " ".join(str(first).split())
    return "" if told == "ok" else f"{str(database)!r} is damaged: {told}"


@contextmanager
def read_database(database: Path, client: str, hint: str = "") -> Iterator[sqlite3.Connection]:
    """Open a client's database for reading; raise InputError when it is none, or not in the known form."""
    try:
        with ExitStack() as stack:
            place, is_still = database, not any(map(_size, _beside(database, "-wal", "-journal")))
            if not is_still and not _size(*_beside(database, "-shm")):
                # Nobody has it open, and SQLite would leave files beside it to read what its log holds.
                place = Path(stack.enter_context(TemporaryDirectory())) / database.name
                for file in (database, *_beside(database, "-wal", "-journal")):
                    if file.is_file():
                        copyfile(file, place.with_name(file.name))
            address = f"file:{quote(str(place))}?mode=ro{'&immutable=1' if is_still else ''}"
            connection = sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S)
            yield stack.enter_context(closing(connection))
    except OSError as error:
        raise InputError(f"{str(database)!r} cannot be read: {error.strerror}", hint=hint) from None
    except (sqlite3.Error, ValueError, TypeError) as error:
        reason = f"{str(database)!r} cannot be read as {client}'s database: {error}"
        raise InputError(reason, hint=hint) from None
