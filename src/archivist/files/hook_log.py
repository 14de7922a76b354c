"""The logs of hooks: failures, for the doctor, and events of clients whose own log says too little."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from archivist.clock import from_text, to_text

FILE_NAME = "hooks.log"
LOCK_NAME = "hooks.lock"
MOST_BYTES = 64 * 1024
_LINE_CHARACTERS = 500
# More is a mistake. Whoever goes on with a session after this time begins a new log.
_HUGE_BYTES = 64 * 1024**2
_KEPT_S = 30 * 86_400
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def lock_sessions(folder: Path, timeout_s: float, name: str = LOCK_NAME) -> Iterator[bool]:
    """Let one process at a time import the sessions of a bank; yield False if another holds the lock."""
    from archivist.files.write import wait_for_lock

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / name).open("a") as lock:
        yield wait_for_lock(lock.fileno(), timeout_s)


def log_failure(folder: Path, text: str, now: datetime) -> None:
    """Append a line to the log in a folder of the user's; of a large log only the newer half is kept."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / FILE_NAME
    line = f"{to_text(now)} {' '.join(text.split())[:_LINE_CHARACTERS]}"
    if _append_line(path, line) > MOST_BYTES:
        # Hooks run at the same time, so each writes a file of its own and moves it over the log.
        newer_half = path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
        temporary = path.with_name(f"{FILE_NAME}.{os.getpid()}")
        temporary.write_bytes(newer_half)
        temporary.chmod(0o600)
        temporary.replace(path)


def _append_line(path: Path, line: str) -> int:
    """Append a line to a file that only the user can read, unless that is very large; return its size."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
    try:
        if os.fstat(descriptor).st_size < _HUGE_BYTES:
            # One call, so that lines of the same moment do not mix.
            os.write(descriptor, f"{line}\n".encode("utf-8", "replace"))
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def read_log(folder: Path) -> list[str]:
    """Return the lines of the log, the oldest first; none when there is no log."""
    try:
        return (folder / FILE_NAME).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def last_failure(
    folder: Path, is_past: Callable[[datetime, str], bool] = lambda *_: False
) -> tuple[datetime | None, str]:
    """Return the time and text of the last failure that is not past; None and an empty text for none."""
    for line in reversed(read_log(folder)):
        time, _, text = line.partition(" ")
        try:
            when = from_text(time)
        except ValueError:
            continue
        if not is_past(when, text):
            return when, text
    return None, ""


def session_log(folder: Path, session: str) -> Path:
    """Return the file that keeps a session's events."""
    name = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in session)
    return folder / f"session-{name}.jsonl"


def keep_event(folder: Path, session: str, line: str) -> None:
    """Append an event to the session's log, which only the user can read."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _append_line(session_log(folder, session), line)


def remove_old_sessions(folder: Path, now: float) -> None:
    """Remove the events of sessions that have long ended: the bank has them."""
    for path in folder.glob("session-*.jsonl"):
        if now - path.stat().st_mtime > _KEPT_S:
            path.unlink(missing_ok=True)
