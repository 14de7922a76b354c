"""Open a file that somebody else may have made: the one way, light enough for hooks.

A repository can hold links to anywhere, to devices without an end and in loops; an archive can hold pipes.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from archivist.errors import InputError

# The resolution of a file's times is 2 s on FAT, the coarsest file system in use.
FRESH_NS = 2_000_000_000
BUFFER_BYTES = 256 * 1024
# No text that is read whole is this long.
MAX_TEXT_BYTES = 64 * 1024**2
# A repository's settings are far below this; what lies behind is not needed.
_SMALL_BYTES = 64 * 1024
# What the user's own shell gives as a pipe.
_OWN_PIPES = ("/dev/stdin", "/dev/fd/")
# File systems that compress store a bank in a fourth of its size, never in so small a part.
_MOST_SPARSE = 16
# So many links Linux follows.
_MOST_LINKS = 40
LINK_OUT = "is a link that leaves its repository, and is not followed"


class UnreadableError(InputError):
    """A file is not read; the reason goes after its name."""

    def __init__(self, path: str | Path, reason: str, hint: str, message: str = "") -> None:
        super().__init__(message or f"{str(path)!r} {reason}", hint=hint)
        self.reason = reason


class MissingFileError(UnreadableError):
    """There is no such file."""

    def __init__(self, path: str | Path) -> None:
        hint = "check its name and the folder"
        super().__init__(path, "does not exist", hint, f"no such file: {str(path)!r}")


def refuse_to_fill_disk(files: Iterable[Path], folder: Path) -> None:
    """Raise UnreadableError for a file that is mostly holes, or too large to be copied into a folder.

    An archive of some kilobytes can hold a file of terabytes that are not there.
    """
    from shutil import disk_usage

    room = disk_usage(folder).free // 2
    for file in files:
        found = file.stat()
        size = f"{found.st_size / 1e9:,.1f} GB"
        # What is stored is counted in blocks of 512 bytes; Windows does not tell.
        stored = getattr(found, "st_blocks", found.st_size) * 512
        if found.st_size > MAX_TEXT_BYTES and found.st_size > _MOST_SPARSE * stored:
            raise UnreadableError(file, f"is {size} of which most are holes", "no bank is such a file")
        if found.st_size > room:
            hint = "if it is yours, set TMPDIR to a larger disk"
            raise UnreadableError(file, f"is too large to be copied: {size}", hint)
        room -= found.st_size


def real_path(path: str | Path) -> Path:
    """Return a path without links. Of a loop the rest stays as it is, where `Path.resolve` raises."""
    return Path(os.path.realpath(path))


def repository_above(folder: str | Path) -> str | None:
    """Return the nearest folder upwards that is a repository or has a bank; None where the user's own is.

    A repository that holds the user's home is the user's own, whatever links it holds.
    """
    own = os.environ.get("ARCHIVIST_HOME") or os.path.expanduser("~/.archivist")  # noqa: PTH111
    path = str(folder)
    while True:
        bank = os.path.join(path, ".archivist")  # noqa: PTH118
        if os.path.lexists(os.path.join(path, ".git")) or (os.path.lexists(bank) and bank != own):  # noqa: PTH118
            home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
            return None if is_inside(home, path) else path
        path, below = os.path.dirname(path), path  # noqa: PTH120
        if path in ("", below):
            return None


def is_inside(path: str, folder: str) -> bool:
    """Say whether a path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def refuse_way_out(path: str | Path) -> None:
    """Raise InputError where a link on the way leads out of the repository that holds it, or in a loop.

    Every part of the path counts, and every link that a link leads to. Other links are the user's own.
    """
    whole = Path(path).absolute()
    anchor, *parts = whole.parts
    real, waiting, links = anchor, parts[::-1], 0
    while waiting:
        part = waiting.pop()
        if part == os.pardir:
            real = os.path.dirname(real)  # noqa: PTH120
            continue
        here = os.path.join(real, part)  # noqa: PTH118
        try:
            target = Path(os.readlink(here))  # noqa: PTH115
        except OSError:
            real = here
            continue
        except ValueError as error:
            raise UnreadableError(path, f"names no file: {error}", "check its name") from None
        links += 1
        if links > _MOST_LINKS:
            raise UnreadableError(path, "cannot be read: a loop of links", "put a real file in its place")
        holder = repository_above(real)
        if holder is not None and not is_inside(os.path.realpath(here), holder):
            raise UnreadableError(path, LINK_OUT, "name the file that it leads to")
        real = target.anchor or real
        waiting += reversed(target.parts[1:] if target.anchor else target.parts)


def open_regular(path: Path, *, follows_links: bool = False) -> io.BufferedReader:
    """Open a regular file, or the pipe of the user's shell; raise InputError for any other.

    Links that lead out of a repository are followed only where git follows them too, in its own folder.
    """
    if not follows_links:
        refuse_way_out(path)
    try:
        # Already opening some devices does something.
        mode = path.stat().st_mode
        source = None
        if stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and str(path).startswith(_OWN_PIPES)):
            source = open(path, "rb", buffering=BUFFER_BYTES, opener=open_at_once)  # noqa: SIM115
            mode = os.fstat(source.fileno()).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or error
        raise UnreadableError(path, f"cannot be read: {reason}", "check its rights") from error
    if source is not None and stat.S_IFMT(mode) in (stat.S_IFREG, stat.S_IFIFO):
        os.set_blocking(source.fileno(), True)
        return cast("io.BufferedReader", source)
    if stat.S_ISDIR(mode):
        raise UnreadableError(path, "is a folder", "name the files in it")
    raise UnreadableError(path, "is no regular file", "write what it holds to a file first")


def list_files(folder: Path, *patterns: str) -> list[Path]:
    """Return what matches below a folder, sorted; links to folders inside it are not followed."""
    refuse_way_out(folder)
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def read_bounded(name: str | Path, max_bytes: int = MAX_TEXT_BYTES, *, hint: str = "") -> bytes:
    """Return the bytes of a regular file, of stdin for `-`; raise InputError when there are more."""
    source = sys.stdin.buffer if name == "-" else open_regular(Path(name))
    try:
        data = source.read(max_bytes + 1)
    except OSError as error:
        raise UnreadableError(name, f"cannot be read: {error.strerror}", "check its rights") from error
    finally:
        if name != "-":
            source.close()
    if len(data) > max_bytes:
        most = f"{max_bytes >> 20} MiB" if max_bytes >> 20 else f"{max_bytes >> 10} KiB"
        raise UnreadableError(name, f"is larger than {most}", hint)
    return data


def read_if_any(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes | None:
    """Return the bytes of a regular file, or None when there is no file."""
    try:
        return read_bounded(path, max_bytes)
    except MissingFileError:
        return None


def read_small_text(path: Path) -> str:
    """Return the beginning of a file of git's own or a client's under home; nothing if it is unreadable."""
    try:
        with open_regular(path, follows_links=True) as stream:
            # No path and no address has a NUL, and the file system refuses it.
            return stream.read(_SMALL_BYTES).decode("utf-8", "replace").replace("\0", "\ufffd")
    except (OSError, InputError):
        return ""


def open_at_once(path: str, flags: int) -> int:
    """Open a file, as the `opener` of `open`; a pipe that nobody writes to is then empty, not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def digest_file(path: Path, salt: bytes) -> str:
    """Return the hash of some bytes and a file."""
    from hashlib import sha256

    digest = sha256(salt)
    # A pipe is empty when it is read a second time.
    if path.is_fifo():
        raise InputError(f"{str(path)!r} is no regular file", hint="write the log to a file first")
    with open_regular(path) as stream:
        try:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from error
    return digest.hexdigest()
