"""Find out whether file locks work where a bank lies.

Without them two writers damage the database, and SQLite cannot notice it. Some network and shared folders
grant every lock to everybody.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from archivist.files.write import TEMPORARY_SUFFIX, create_locked, remove_stale_temporaries

# Taken from SQLite: the database's own locks lie at this byte.
_LOCK_BYTE = 0x40000000
# File systems that several machines can mount at once; SQLite's write-ahead log needs its users on one.
_NETWORK_TYPES = frozenset((
    "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "drvfs", "fuse.davfs2", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse", "gfs2", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
    "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
))  # fmt: skip
_CHECKED_FILE = "file_systems"


def find_lock_problem(folder: Path) -> str | None:
    """Return why locks do not work in a folder, an empty text when they do, None when it cannot be tried."""
    try:
        remove_stale_temporaries(folder)
        path, descriptor = create_locked(folder, ".locks.", 0o600, suffix=TEMPORARY_SUFFIX)
    except OSError:
        return None
    try:
        return "its file system grants the same lock twice" if is_locked_twice(path) else ""
    except OSError as error:
        return f"its file system grants no locks: {error.strerror or error}"
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def find_network_type(folder: Path) -> str:
    """Return the type of a network or shared file system on which a folder lies; nothing for a local one."""
    try:
        device = folder.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    # number parent device root place options … - type source options
    types = [mount.partition(" - ")[2].split(" ")[0] for mount in mounts if mount.split(" ")[2] == number]
    return next((each for each in types if each in _NETWORK_TYPES), "")


def is_checked(folder: Path, home: Path) -> bool:
    """Say whether locks were found to work on a folder's file system before."""
    try:
        return _name_file_system(folder) in (home / _CHECKED_FILE).read_text("utf-8").split()
    except (OSError, ValueError):
        return False


def remember_checked(folder: Path, home: Path) -> None:
    """Remember that locks work on a folder's file system, so that it is tried once, not at every open.

    A user's own folder that is not there is not made for this: to try takes a tenth of a millisecond.
    """
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(home / _CHECKED_FILE, flags, 0o600)
        try:
            os.write(descriptor, f"{_name_file_system(folder)}\n".encode())
        finally:
            os.close(descriptor)


def _name_file_system(folder: Path) -> str:
    number = os.statvfs(folder).f_fsid if hasattr(os, "statvfs") else 0
    return f"{folder.stat().st_dev:x}-{number:x}"


def is_locked_twice(path: Path) -> bool:
    """Lock a file as SQLite does, and say whether somebody else gets the same lock at the same time."""
    if sys.platform == "win32":
        return False
    import fcntl

    first, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(first, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCK_BYTE)
        if not hasattr(fcntl, "F_OFD_SETLK"):
            return _is_locked_by_child(path)
        # A lock of this kind belongs to the descriptor, so that the process competes with itself.
        import struct

        wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCK_BYTE, 1, 0)
        try:
            fcntl.fcntl(second, fcntl.F_OFD_SETLK, wanted)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return _is_locked_by_child(path)
        return True
    finally:
        os.close(first)
        os.close(second)


def _is_locked_by_child(path: Path) -> bool:
    import subprocess

    code = (
        "import fcntl, sys\n"
        "try: fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))\n"
        "except (BlockingIOError, PermissionError): sys.exit(3)"
    )
    words = [sys.executable, "-I", "-c", code, str(path), str(_LOCK_BYTE)]
    done = subprocess.run(words, check=False, capture_output=True, timeout=30)  # noqa: S603 this program itself
    return done.returncode == 0
