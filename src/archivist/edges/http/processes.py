"""Tell one process from another, so that what a dead one left behind is nobody's."""

from __future__ import annotations

import os
import secrets
import sys
from functools import cache

_MARK_BYTES = 4


@cache
def process_signature() -> str:
    """Return what this process signs with on this machine: its number, and a word that no other has had."""
    return f"{os.getpid()}-{secrets.token_hex(_MARK_BYTES)}"


def has_process_ended(signature: str) -> bool:
    """Say whether the process that signed with a mark has surely ended; False when nobody can tell."""
    number, _, word = signature.partition("-")
    if not number.isdecimal() or not word or signature == process_signature():
        return False
    pid = int(number)
    # In a container the next process often has the number of the last.
    return pid == os.getpid() or not _is_running(pid)


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        # There, to ask in this way is to end it.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
