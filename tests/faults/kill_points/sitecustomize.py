"""Kill this process at a chosen step: before or after the Nth call that can change a database or a file.

A test puts this folder on the path of a process that it starts, so the program itself needs no hook. Without
a number the steps are only counted. With `KILL_WRITE` it is killed at the Nth write of SQLite itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

_FILE_CALLS = frozenset(
    (
        "open",
        "write",
        "close",
        "fsync",
        "replace",
        "rename",
        "link",
        "unlink",
        "mkdir",
        "chmod",
        "flock",
        "dup",
    )
)
_DATABASE_CALLS = frozenset(("execute", "step", "finish", "close"))
_STREAM_CALLS = frozenset(("write", "writelines", "flush"))
_at = int(os.environ.get("KILL_AT", "0"))
_counted = os.environ.get("KILL_COUNT", "")
_steps = count(1)


def _is_step(called: Any) -> bool:
    name, owner = called.__name__, type(getattr(called, "__self__", None)).__module__
    if owner == "apsw":
        return name in _DATABASE_CALLS
    if owner == "_io":
        return name in _STREAM_CALLS
    return name in _FILE_CALLS and called.__module__ in ("posix", "fcntl")


def _watch(_frame: FrameType, event: str, called: Any) -> None:
    if event in ("c_call", "c_return") and _is_step(called):
        step = next(_steps)
        if step == _at:
            os.kill(os.getpid(), signal.SIGKILL)
        if _counted:
            # Written each time: a command may leave without running what is registered for its end.
            sys.setprofile(None)
            Path(_counted).write_text(str(step))
            sys.setprofile(_watch)


def _kill_at_write(number: int) -> None:
    import apsw

    writes = count(1)

    class KilledFile(apsw.VFSFile):
        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 the name that SQLite gives
            if next(writes) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            super().xWrite(data, offset)

    class KilledFiles(apsw.VFS):
        def xOpen(self, name: Any, flags: list[int]) -> KilledFile:  # noqa: N802
            return KilledFile(usual, name, flags)

    usual = apsw.vfs_names()[0]
    # SQLite asks it as long as the process lives.
    globals()["_files"] = KilledFiles("kill", usual, makedefault=True)


if os.environ.get("KILL_WRITE"):
    _kill_at_write(int(os.environ["KILL_WRITE"]))
if _at or _counted:
    threading.setprofile(_watch)
    sys.setprofile(_watch)
