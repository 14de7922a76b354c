"""What is done so that a cold process starts fast."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast


class _LazyPattern:
    """Stands for a compiled pattern, and becomes one at the first use."""

    def __init__(self, text: str, flags: int) -> None:
        self._asked = (text, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(*self._asked)
        # Found at once from now on.
        for method in ("search", "match", "fullmatch", "findall", "finditer", "sub", "split", "pattern"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can be used as the compiled pattern of a text."""
    return cast("re.Pattern[str]", _LazyPattern(text, int(flags)))


if TYPE_CHECKING:
    from hashlib import blake2b, blake2s, sha256
else:
    try:
        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
        blake2b, blake2s = (getattr(import_module("_blake2"), name) for name in ("blake2b", "blake2s"))
    except ImportError:
        from hashlib import blake2b, blake2s, sha256

__all__ = ["blake2b", "blake2s", "lazy_pattern", "sha256"]
