"""Exchange two files in one step, so that whatever was displaced can still be looked at."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Protocol

_AT_CURRENT_FOLDER = -100
_EXCHANGE = 2


class _Rename(Protocol):
    def __call__(self, at: int, one: bytes, at_other: int, other: bytes, flags: int) -> int: ...


@cache
def _renameat2() -> _Rename | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None


def exchange_files(one: Path, other: Path) -> bool:
    """Give each of two files the other's name; False, and nothing is done, where the system cannot."""
    rename = _renameat2()
    if rename is None:
        return False
    at = _AT_CURRENT_FOLDER
    return rename(at, os.fsencode(one), at, os.fsencode(other), _EXCHANGE) == 0


def swap_if_unchanged(temporary: Path, path: Path, before: bytes, after: bytes) -> bool:
    """Put a temporary file in a path's place if that still holds what it held before; False if not.

    Comparing first and replacing then leaves a moment in which another program's edit would be overwritten.
    Exchanging leaves none: what was displaced is compared, and put back when it is not what was expected. The
    temporary file holds what is no longer needed afterwards.
    """
    if path.read_bytes() != before:
        return False
    if not exchange_files(temporary, path):
        temporary.replace(path)
        return True
    displaced = temporary.read_bytes()
    if displaced == before:
        return True
    # Somebody's edit was displaced: it goes back, and what we had put there comes out again.
    exchange_files(temporary, path)
    if temporary.read_bytes() != after and displaced != after:
        # A third edit came between the two exchanges. Neither of theirs may go: this one stays beside.
        temporary.replace(path.with_name(f"{path.name}.displaced"))
    return False
