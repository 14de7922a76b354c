"""The log of hooks: a hook never fails its client, so its failures are kept here for the doctor."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from archivist.clock import from_text, to_text

FILE_NAME = "hooks.log"
LOCK_NAME = "hooks.lock"
MOST_BYTES = 64 * 1024
_LINE_CHARACTERS = 500
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def log_failure(folder: Path, text: str, now: datetime) -> None:
    """Append a line to the log in a folder of the user's; of a large log only the newer half is kept."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / FILE_NAME
    line = f"{to_text(now)} {' '.join(text.split())[:_LINE_CHARACTERS]}\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
    try:
        os.write(descriptor, line.encode("utf-8", "replace"))
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size > MOST_BYTES:
        # Hooks run at the same time, so each writes a file of its own and moves it over the log.
        newer_half = path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
        temporary = path.with_name(f"{FILE_NAME}.{os.getpid()}")
        temporary.write_bytes(newer_half)
        temporary.chmod(0o600)
        temporary.replace(path)


def read_log(folder: Path) -> list[str]:
    """Return the lines of the log, the oldest first; none when there is no log."""
    try:
        return (folder / FILE_NAME).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def last_failure(folder: Path) -> tuple[datetime | None, str]:
    """Return the time and text of the last failure; None and an empty text for none."""
    for line in reversed(read_log(folder)):
        time, _, text = line.partition(" ")
        try:
            return from_text(time), text
        except ValueError:
            continue
    return None, ""
