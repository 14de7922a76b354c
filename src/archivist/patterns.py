"""Compile a pattern when it is first used: a cold process would compile dozens that it never tries."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
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


def late(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can be used as the compiled pattern of a text."""
    return cast("re.Pattern[str]", _Late(text, int(flags)))
