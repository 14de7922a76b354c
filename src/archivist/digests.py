"""Hashes for what a cold process does: `hashlib` loads OpenSSL, several milliseconds that an agent waits.

These are the functions that Python itself falls back on; where a build has none, those of `hashlib` serve.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, blake2s, sha256
else:
    try:
        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
        blake2b, blake2s = (getattr(import_module("_blake2"), name) for name in ("blake2b", "blake2s"))
    except ImportError:
        from hashlib import blake2b, blake2s, sha256

__all__ = ["blake2b", "blake2s", "sha256"]
