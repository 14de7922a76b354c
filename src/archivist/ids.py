"""Make ids: global ones that sort by time, and ones derived from content so that they repeat."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

IdSource = Callable[[datetime], str]

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_BITS = 48
_RANDOM_BITS = 80


def _base32(number: int) -> str:
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def new_id(moment: datetime) -> str:
    """Return a ULID: 48 bits of milliseconds, then 80 random bits, in 26 sortable characters."""
    milliseconds = int(moment.timestamp() * 1000) & ((1 << _TIME_BITS) - 1)
    noise = int.from_bytes(os.urandom(_RANDOM_BITS // 8))
    return _base32(milliseconds << _RANDOM_BITS | noise)


def derived_id(*parts: str) -> str:
    """Return the id that these parts always have, so that reading the same thing twice is one thing."""
    from archivist.cold_start import sha256

    digest = sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return _base32(int.from_bytes(digest[:16]))
