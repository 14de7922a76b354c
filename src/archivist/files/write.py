"""Write a file whole or not at all, only if it is unchanged, or under a lock on its folder.

Nothing is written through a link: a repository can hold links to anywhere, such as a shell's start file.
"""

from __future__ import annotations

import os
import stat
import sys
from _thread import get_ident
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from archivist.errors import FilesLockedError, InputError
from archivist.files.open import read_if_any, refuse_way_out, repository_above

_PRIVATE_MODE = 0o600
_DEFAULT_MODE = 0o666
# The arguments of renameat2(2) for "relative to the current folder" and "exchange the two names".
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_LOCK_TIMEOUT_S = 30.0
TEMPORARY_SUFFIX = ".archivist"
_FOLDER = "-folder"
_swept_folders: set[Path] = set()
# The lines in which this process is first, by thread and folder.
_own_places: set[tuple[int, Path]] = set()


def refuse_links(path: Path, *, below: Path | None = None) -> None:
    """Raise InputError where a path is a link, or leads through one that a repository or `below` holds.

    Links above them are the user's own.
    """
    # `resolve` would follow the links, and `abspath` would go past one before a `..`.
    path = path.absolute()
    root = below.absolute() if below is not None else None
    for each in (path, *path.parents):
        if not each.is_symlink():
            continue
        is_below = root is not None and root in each.parents
        if each == path or is_below or repository_above(each.parent) is not None:
            raise InputError(
                f"{str(each)!r} is a link, and nothing is written through a link",
                hint="put a real file or folder in its place",
            )
    refuse_way_out(path)


def make_folder(folder: Path, *, below: Path | None = None) -> None:
    """Make a folder and those above it, once the whole path is checked for links; see `refuse_links`."""
    # What is to lie in the folder is checked: the folder itself may be a link of the user's own.
    refuse_links(folder / TEMPORARY_SUFFIX, below=below)
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def write_temporary(
    target: Path,
    pieces: Iterable[bytes],
    *,
    mode_from: Path | None = None,
    is_private: bool = False,
    below: Path | None = None,
) -> Iterator[Path]:
    """Yield a synced temporary file beside the target that holds the pieces, to be moved or linked.

    If it is not moved, it is removed at the end. It has the permissions of `mode_from` if that exists, else
    those of a new file, or of its owner alone when it is private. A link is refused: see `refuse_links`.
    """
    refuse_links(target, below=below)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_temporaries(target.parent)
    mode = _PRIVATE_MODE if is_private else _DEFAULT_MODE
    temporary, descriptor = create_locked(target.parent, f".{target.name}.", mode, suffix=TEMPORARY_SUFFIX)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if mode_from is not None and mode_from.exists():
            temporary.chmod(mode_from.stat().st_mode & 0o7777)
        if sys.platform == "win32":
            # An open file cannot be moved there.
            os.close(descriptor)
            descriptor = -1
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        if descriptor >= 0:
            os.close(descriptor)


def create_locked(folder: Path, prefix: str, mode: int, *, suffix: str = "") -> tuple[Path, int]:
    """Create a new file that is locked while its process lives; return its path and descriptor."""
    while True:
        path = folder / f"{prefix}{os.urandom(4).hex()}{suffix}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with suppress(OSError):
            wait_for_lock(descriptor, _LOCK_TIMEOUT_S)
        # Another process can have taken it for a stale one before it was locked.
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Give a private folder that is removed with its locked file, by us or, as a stale one, by others."""
    remove_stale_temporaries(parent, is_again=True)
    held, descriptor = create_locked(parent, ".copy.", _PRIVATE_MODE, suffix=TEMPORARY_SUFFIX)
    folder = held.with_name(f"{held.name}{_FOLDER}")
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        _remove_folder_of(held)
        held.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_folder_of(held: Path) -> None:
    folder = held.with_name(f"{held.name}{_FOLDER}")
    if folder.is_dir():
        # A hook has none, and the module takes milliseconds to load.
        from shutil import rmtree

        # It follows no link.
        rmtree(folder, ignore_errors=True)


def remove_stale_temporaries(folder: Path, *, is_again: bool = False) -> None:
    """Remove the temporary files that killed processes left in a folder; it is looked at once a process."""
    if (folder in _swept_folders and not is_again) or sys.platform == "win32":
        return
    _swept_folders.add(folder)
    for path in folder.glob(f".*.{'[0-9a-f]' * 8}{TEMPORARY_SUFFIX}"):
        # Somebody else may have put a pipe there, which must not make us wait, or a link.
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
                if is_file and wait_for_lock(descriptor, 0):
                    _remove_folder_of(path)
                    path.unlink()
            finally:
                os.close(descriptor)


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode_from: Path | None = None,
    is_private: bool = False,
    below: Path | None = None,
) -> None:
    """Replace a file's bytes and keep its permissions, or take another's."""
    source = None if is_private else mode_from or path
    with write_temporary(path, (data,), mode_from=source, is_private=is_private, below=below) as temporary:
        temporary.replace(path)


def replace_if_unchanged(path: Path, before: bytes | None, after: bytes) -> bool:
    """Replace a file's bytes if they are still those from before; otherwise write nothing, return False.

    An edit in between is never overwritten: see `swap_if_unchanged`. Raise InputError for a read-only file.
    """
    refuse_read_only(path)
    with write_temporary(path, (after,), mode_from=path) as temporary:
        if read_if_any(path) != before:
            return False
        if before is not None:
            return swap_if_unchanged(temporary, path, before, after)
        try:
            # Unlike a rename, a hard link fails if the file was created meanwhile.
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:
            # A file system without hard links.
            if path.exists():
                return False
            temporary.replace(path)
        return True


def is_read_only(path: Path) -> bool:
    """Say whether a file's owner may not write it; the mode counts for a superuser as well."""
    try:
        return not path.stat().st_mode & stat.S_IWUSR
    except OSError:
        return False


def refuse_read_only(path: Path) -> None:
    """Raise InputError for a read-only file."""
    if is_read_only(path):
        raise InputError(
            f"{str(path)!r} is read-only and stays as it is",
            hint="make it writable first if it is to change: chmod u+w",
        )


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into an InputError that says why a file or folder cannot be used."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be used: {error.strerror or error}",
            hint="check that it is there and its permissions",
        ) from error


def exchange_files(one: Path, other: Path) -> bool:
    """Exchange the names of two files in one step; return False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)


def swap_if_unchanged(temporary: Path, path: Path, before: bytes, after: bytes) -> bool:
    """Move a temporary file to a path if that still holds the bytes from before; return False if not.

    Comparing and then replacing would overwrite an edit that another program makes in between. So the files
    are exchanged, the displaced bytes are compared, and exchanged back if they are not the expected ones.
    """
    if read_if_any(path) != before:
        return False
    if not exchange_files(temporary, path):
        temporary.replace(path)
        return True
    displaced = temporary.read_bytes()
    if displaced == before:
        return True
    exchange_files(temporary, path)
    if temporary.read_bytes() != after and displaced != after:
        # A third edit came between the two exchanges: it is kept beside the file.
        temporary.replace(path.with_name(f"{path.name}.displaced"))
    return False


def wait_for_lock(descriptor: int, timeout_s: float) -> bool:
    """Take the advisory lock of an open file or folder; return False if others hold it for too long.

    The caller closes the descriptor, also after False: else a lock that comes too late would stay.
    """
    try:
        import fcntl
    except ImportError:
        # Windows has no advisory locks; `replace_if_unchanged` still detects other writers.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if timeout_s <= 0:
            return False
    else:
        return True
    from threading import Event, Thread

    # The kernel serves those who wait in their order, but knows no time limit: so a thread waits. When it is
    # given up it still gets the lock one day, and lets it go by closing the last descriptor of it.
    waiting, is_locked = os.dup(descriptor), Event()

    def wait() -> None:
        try:
            fcntl.flock(waiting, fcntl.LOCK_EX)
            is_locked.set()
        finally:
            os.close(waiting)

    try:
        Thread(target=wait, daemon=True).start()
    except RuntimeError:
        # A process that is ending starts no threads.
        os.close(waiting)
        return False
    return is_locked.wait(timeout_s)


@contextmanager
def queue_at_folder(folder: Path, timeout_s: float) -> Iterator[None]:
    """Stand in the line of a folder's writers, for so long at most; then go on, in turn or not.

    The line only orders those who then take a real lock, so that nobody has to poll for it. It leaves no file
    behind and ends with the process. Where a folder cannot be locked, there is no line.
    """
    place = get_ident(), folder
    try:
        # Who writes two banks of one folder at once must not wait for themselves.
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        descriptor = None if place in _own_places else os.open(folder, flags)
    except (OSError, AttributeError):
        descriptor = None
    if descriptor is None:
        yield
        return
    try:
        with suppress(OSError):
            wait_for_lock(descriptor, timeout_s)
        _own_places.add(place)
        yield
    finally:
        _own_places.discard(place)
        os.close(descriptor)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold an advisory lock on a folder itself: it leaves no file behind and ends with the process."""
    if sys.platform == "win32":
        # A folder cannot be opened there.
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not wait_for_lock(descriptor, _LOCK_TIMEOUT_S):
            raise FilesLockedError(str(folder), _LOCK_TIMEOUT_S)
        yield
    finally:
        os.close(descriptor)
