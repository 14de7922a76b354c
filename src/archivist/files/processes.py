"""Name a process so that others can tell whether it is gone."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

from archivist.cold_start import blake2s

_DEAD_STATES = "ZXx"


def name_process() -> str:
    """Return a name of this process that no other process has, before or after: machine, number and start."""
    state = _read_state(os.getpid())
    return f"{_name_machine()}:{os.getpid()}:{state[1] if state else ''}"


def is_process_gone(name: str) -> bool:
    """Say whether a process, by its name or one that begins with it, has certainly ended.

    False for a process of another machine or container, about which nothing can be known here.
    """
    machine, number, start, *_ = (*name.split(":"), "", "")
    if machine != _name_machine() or not number.isdecimal() or sys.platform == "win32":
        return False
    if not start:
        # A number that no process has; one that is in use again cannot be told from the process itself.
        with suppress(PermissionError, OverflowError):
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                return True
        return False
    state = _read_state(int(number))
    return state is None or state[1] != start or state[0] in _DEAD_STATES


def _read_state(number: int) -> tuple[str, str] | None:
    """Return a process's state and the time when it started, in ticks since the machine did."""
    try:
        # The name of the program comes second, in parentheses, and may hold anything.
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None


def _name_machine() -> str:
    """Return a name for what numbers processes here: this start of this machine, or a container on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
        numbering = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot, numbering = platform.node(), ""
    return blake2s(f"{boot} {numbering}".encode(), digest_size=8).hexdigest()
