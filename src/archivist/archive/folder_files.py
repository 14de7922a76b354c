"""List and read the files of watched folders; links out of a folder are not followed."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from archivist.archive.folders import MAX_FILE_BYTES, is_ignored_folder, is_wanted
from archivist.records import Folder

# An editor writes a file in one go; one that changes during three reads is a log.
_TRIES = 3


class Listing(NamedTuple):
    """The wanted files of a folder, as sources; `unread` are links that are not followed."""

    folder: str
    paths: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def is_whole(self, root: Path) -> bool:
        """Say whether the folder exists and all of it could be listed."""
        return (
            not any(problem.startswith(f"{self.folder}: ") for problem in self.problems)
            and (root / self.folder).is_dir()
        )


class FileText(NamedTuple):
    """A file's bytes and time, or the problem with it."""

    raw: bytes = b""
    time: datetime = datetime.min.replace(tzinfo=UTC)
    problem: str = ""


def list_folder(root: Path, folder: Folder) -> Listing:
    """Return the files of a folder that match its pattern; links out of it become problems."""
    top = root / folder.id
    if not top.is_dir():
        hint = "its texts are kept, archivist archive unwatch removes them"
        return Listing(folder.id, problems=(f"{folder.id}: the folder is gone; {hint}",))
    paths: list[str] = []
    unread: list[str] = []
    problems: list[str] = []

    def note_error(error: OSError) -> None:
        problems.append(f"{folder.id}: cannot be listed: {error.strerror}")

    for place, folders, files in os.walk(top, onerror=note_error):
        folders[:] = sorted(name for name in folders if not is_ignored_folder(name))
        # A link to a folder inside is skipped: its target is listed by itself.
        for path in (Path(place) / name for name in folders):
            if path.is_symlink() and (problem := _link_problem(path, top)):
                below = path.relative_to(top).as_posix()
                problems.append(f"{below if folder.id == '.' else f'{folder.id}/{below}'}: {problem}")
        for name in sorted(files):
            path = Path(place) / name
            below = path.relative_to(top).as_posix()
            if not is_wanted(below, folder.pattern):
                continue
            source = below if folder.id == "." else f"{folder.id}/{below}"
            problem = _link_problem(path, top) if path.is_symlink() else ""
            if problem:
                unread.append(source)
                problems.append(f"{source}: {problem}")
            else:
                paths.append(source)
    return Listing(folder.id, tuple(paths), tuple(unread), tuple(problems))


def read(root: Path, path: str) -> FileText | None:
    """Return a consistent version of a file, or its problem; None when it is gone."""
    for _ in range(_TRIES):
        try:
            found = _read_once(root / path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return FileText(problem=f"cannot be read: {error.strerror}")
        if found is not None:
            return found
    return FileText(problem="changes while it is read; refresh again")


def _read_once(path: Path) -> FileText | None:
    """Read a file through one descriptor; None when it changed meanwhile."""
    # Opening a pipe that nobody writes to would block.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as stream:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return FileText(problem="not a regular file")
        if before.st_size > MAX_FILE_BYTES:
            return FileText(problem=f"{before.st_size:,} bytes, at most {MAX_FILE_BYTES:,}")
        raw = stream.read(MAX_FILE_BYTES + 1)
        after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(
        raw
    ) != after.st_size:
        return None
    return FileText(raw, datetime.fromtimestamp(int(after.st_mtime), UTC))


def _link_problem(path: Path, top: Path) -> str:
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        return "a link to nothing"
    except (OSError, RuntimeError):
        return "a link in a loop"
    return "" if target.is_relative_to(top.resolve()) else "a link that leaves the folder is not followed"
