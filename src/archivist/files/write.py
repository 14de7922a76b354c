"""Put a file in its place whole or not at all, so that nobody ever reads half of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600
_ORDINARY = 0o666


@contextmanager
def write_temporary(
    target: Path, pieces: Iterable[bytes], *, mode_from: Path | None = None, is_private: bool = False
) -> Iterator[Path]:
    """Yield a file beside the target that holds the pieces, safe on the disk, to be moved or linked.

    What is not moved away is removed. It has the rights of `like` where there is such a file, else those of
    any new file, or its owner's alone when it is private.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE if is_private else _ORDINARY)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if mode_from is not None and mode_from.exists():
            fresh.chmod(mode_from.stat().st_mode & 0o7777)
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes, *, mode_from: Path | None = None) -> None:
    """Put new bytes in a file's place, with its rights (or those of another); a link is written through."""
    target = path.resolve()
    with write_temporary(target, (data,), mode_from=mode_from or target) as fresh:
        fresh.replace(target)
