"""Keep what a tool answers within a number of tokens, and say how to get the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from archivist.tokens import CHARACTERS_PER_TOKEN

# What one call of a tool may put into a context, unless the caller says otherwise.
LIMIT_TOKENS = 2_000
# The least of a text that is worth showing.
_LEAST_SHOWN = 200

Plain: TypeAlias = "str | int | float | bool | Sequence[Plain] | Mapping[str, Plain] | None"


def page(
    name: str,
    items: Sequence[Mapping[str, Plain]],
    *,
    offset: int = 0,
    limit_tokens: int = LIMIT_TOKENS,
    **beside: Plain,
) -> dict[str, Plain]:
    """Return as many items as fit; `next_offset` is where to go on, and is missing at the end.

    An item that is too large for a whole page is clipped, and says how to read all of it.
    """
    room = limit_tokens * CHARACTERS_PER_TOKEN - len(_json(beside)) - _LEAST_SHOWN
    shown: list[Plain] = []
    for item in items:
        size = len(_json(item))
        if size > room and shown:
            break
        shown.append(item if size <= room else clipped(item, room))
        room -= size
        if room <= 0:
            break
    answer: dict[str, Plain] = {**beside, name: shown}
    if len(shown) < len(items):
        answer["next_offset"] = offset + len(shown)
    return answer


def clipped(item: Mapping[str, Plain], room: int) -> dict[str, Plain]:
    """Return an item whose longest texts are cut so that it takes about so many characters."""
    cut = dict(item)
    while len(_json(cut)) > max(room, _LEAST_SHOWN):
        name = max(cut, key=lambda key: len(_json(cut[key])))
        text = cut[name]
        if not isinstance(text, str) or len(text) <= _LEAST_SHOWN:
            if isinstance(text, str):
                break
            cut[name] = _json(text)[:_LEAST_SHOWN] + "…"
            continue
        over = len(_json(cut)) - room
        cut[name] = text[: max(_LEAST_SHOWN, len(text) - over)] + "…"
        cut["clipped"] = "memory_get with this id, or document_path, reads the rest"
        if len(text) - len(str(cut[name])) <= 0:
            break
    return cut


def text_page(text: str, *, offset: int = 0, limit_tokens: int = LIMIT_TOKENS) -> dict[str, Plain]:
    """Return the part of a text that begins at an offset and fits, and where to go on."""
    room = limit_tokens * CHARACTERS_PER_TOKEN
    part = text[offset : offset + room]
    answer: dict[str, Plain] = {"text": part}
    if offset + len(part) < len(text):
        answer["next_offset"] = offset + len(part)
    return answer


def _json(value: Plain) -> str:
    return json.dumps(value, ensure_ascii=False)
