"""Work on the log of hooks: a hook never fails its client, so what went wrong is kept here for the doctor."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from archivist.clock import from_text, to_text

FILE_NAME = "hooks.log"
LOCK_NAME = "hooks.lock"
MOST_BYTES = 64 * 1024
_LINE_CHARACTERS = 500


def log_failure(folder: Path, text: str, now: datetime) -> None:
    """Add one line to the log in a bank's folder; of a log that has grown large the newer half is kept."""
    path = folder / FILE_NAME
    line = f"{to_text(now)} {' '.join(text.split())[:_LINE_CHARACTERS]}\n"
    is_new = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode("utf-8", "replace"))
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size > MOST_BYTES:
        _truncate_log(path)
    if is_new:
        _ignore_in_git(folder)


def read_log(folder: Path) -> list[str]:
    """Return the lines of the log, the oldest first; none when nothing ever went wrong."""
    try:
        return (folder / FILE_NAME).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def last_failure(folder: Path) -> tuple[datetime | None, str]:
    """Return when something last went wrong and what; an empty text for never."""
    for line in reversed(read_log(folder)):
        time, _, text = line.partition(" ")
        try:
            return from_text(time), text
        except ValueError:
            continue
    return None, ""


def _truncate_log(path: Path) -> None:
    kept = path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
    fresh = path.with_name(f"{FILE_NAME}.{os.getpid()}")
    fresh.write_bytes(kept)
    fresh.chmod(0o600)
    fresh.replace(path)


def _ignore_in_git(folder: Path) -> None:
    """Let git overlook the log where it overlooks the bank."""
    ignore = folder / ".gitignore"
    text = ignore.read_text("utf-8") if ignore.is_file() else ""
    if text and "hooks.*" not in text.splitlines():
        ignore.write_text(f"{text.rstrip()}\nhooks.*\n", encoding="utf-8")
