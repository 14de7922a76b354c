"""Put a brief between marks by which it is known when it comes back; apart from that, for cold processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

FENCE_MARK: Final = "archivist:brief"
FENCE_CLOSE: Final = "<!-- /archivist:brief -->"


def fence(text: str, brief_id: str, lesson_ids: Sequence[str]) -> str:
    """Put a brief between marks that name it and its lessons; what steers a terminal is left out."""
    if not text.replace("\n", "").isprintable():
        from archivist.text import make_legible

        text = make_legible(text)
    # A mark inside the text would end the fence early and leave the rest to be learnt from.
    body = text.replace(FENCE_MARK, "archivist-brief").strip("\n")
    return f"<!-- {FENCE_MARK} {' '.join((brief_id, *lesson_ids))} -->\n{body}\n{FENCE_CLOSE}\n"
