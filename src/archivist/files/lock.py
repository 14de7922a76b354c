"""Let one process of ours at a time change the files of a folder; a person's editor is not held up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from archivist.errors import FilesLockedError

_WAIT_S = 30.0
_PAUSE_S = 0.02


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder itself, which leaves no file behind and ends with the process."""
    try:
        import fcntl
    except ImportError:
        # Without advisory locks, comparing before replacing is what there is.
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        ends = monotonic() + _WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if monotonic() > ends:
                    raise FilesLockedError(str(folder), _WAIT_S) from None
                sleep(_PAUSE_S)
        yield
    finally:
        os.close(handle)
