"""Write a file whole or not at all, and only when it is still what was read before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archivist.errors import InputError
from archivist.files.swap import swap_if_unchanged
from archivist.files.write import write_temporary


def read_bytes(path: Path) -> bytes | None:
    """Return a file's bytes, or None when there is no file."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def replace_if_unchanged(path: Path, before: bytes | None, after: bytes) -> bool:
    """Put new bytes in a file's place; False, and nothing is written, when it is not as before any more.

    A link is written through. An edit that comes between is not overwritten: `exchange` says how. Raise
    InputError for a file that its owner has made read-only.
    """
    path = path.resolve()
    refuse_read_only(path)
    with write_temporary(path, (after,), mode_from=path) as fresh:
        if read_bytes(path) != before:
            return False
        if before is None:
            # A hard link fails where a file has come up meanwhile; replacing would overwrite it.
            return _create_file(fresh, path)
        return swap_if_unchanged(fresh, path, before, after)


def is_read_only(path: Path) -> bool:
    """Say whether a file's own owner may not write it: whoever set it so meant it, also for a superuser."""
    try:
        return not path.stat().st_mode & stat.S_IWUSR
    except OSError:
        return False


def refuse_read_only(path: Path) -> None:
    """Raise InputError for a file that is read-only."""
    if is_read_only(path):
        raise InputError(
            f"{str(path)!r} is read-only and stays as it is",
            hint="make it writable first if it is to change: chmod u+w",
        )


def _create_file(fresh: Path, path: Path) -> bool:
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    except OSError:
        # A file system without hard links.
        if path.exists():
            return False
        fresh.replace(path)
    return True


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Say in one line why a file or folder cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be used: {error.strerror or error}",
            hint="check that it is there and its permissions",
        ) from error
