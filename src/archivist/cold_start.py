"""What is done so that a cold process starts fast."""

from __future__ import annotations

import re
import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

_READING = ("search", "match", "fullmatch", "findall", "finditer")


class _LazyPattern:
    """Stands for a compiled pattern, and becomes one at the first use."""

    def __init__(self, text: str, flags: int, longest: int | None) -> None:
        self._asked = (text, flags)
        self._longest = longest

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(*self._asked)
        found: dict[str, Any] = {method: getattr(compiled, method) for method in _READING}
        if self._longest is None:
            found |= {"sub": compiled.sub, "split": compiled.split}
        else:
            found = {method: partial(call, endpos=self._longest) for method, call in found.items()}
        found["pattern"] = compiled.pattern
        if name not in found:
            raise AttributeError(name)
        # Found at once from now on.
        vars(self).update(found)
        return found[name]


def lazy_pattern(text: str, flags: int = 0, longest: int | None = None) -> re.Pattern[str]:
    """Return what can be used as the compiled pattern of a text.

    `longest` is for a pattern that takes more than linear time: it reads so many characters, as if the text
    ended there. `sub` and `split` return whole texts, so such a pattern has none.
    """
    return cast("re.Pattern[str]", _LazyPattern(text, int(flags), longest))


if TYPE_CHECKING:
    from hashlib import blake2b, blake2s, sha256
else:
    try:
        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
        blake2b, blake2s = (getattr(import_module("_blake2"), name) for name in ("blake2b", "blake2s"))
    except ImportError:
        from hashlib import blake2b, blake2s, sha256

__all__ = ["blake2b", "blake2s", "lazy_pattern", "sha256"]
