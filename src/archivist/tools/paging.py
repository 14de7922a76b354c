"""Fit the answers of tools into a number of tokens, and say how to get the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, TypeAlias

from archivist.errors import AccessError, ArchivistError, InputError, NotFoundError
from archivist.records.plain import to_plain
from archivist.text import CHARACTERS_PER_TOKEN

# One answer stays in the agent's context for the whole run; 2,000 tokens hold about ten records.
LIMIT_TOKENS = 2_000
# A text that is cut to less says nothing.
_MIN_CHARACTERS = 200
# A command of ours, or an option of one: an agent that has only functions cannot follow such a hint.
_COMMAND = re.compile(r"\barchivist (?!may\b)[a-z]|(?<!\S)--[a-z]")
_LAST_HINT = re.compile(r" \(([^()]*)\)$")

Plain: TypeAlias = "str | int | float | bool | Sequence[Plain] | Mapping[str, Plain] | None"
Answer: TypeAlias = "dict[str, Plain]"


def page(
    name: str,
    found: Sequence[Any],
    view: Callable[[Any], Mapping[str, Any]] = dict,
    *,
    offset: int = 0,
    limit: int | None = None,
    limit_tokens: int = LIMIT_TOKENS,
    **beside: Plain,
) -> Answer:
    """Return the views of what was found from an offset on, as many as fit and are asked for.

    `next_offset` is where the next page begins; it is missing at the end. A caller with a limit asks the bank
    for one more, so that it is known whether there is a next page. An item that is too large for a whole page
    is clipped, and says how to read all of it.
    """
    room = limit_tokens * CHARACTERS_PER_TOKEN - len(_json(beside)) - _MIN_CHARACTERS
    items = found[offset:]
    shown: list[Plain] = []
    for record in items[:limit]:
        item = view(record)
        size = len(_json(item))
        if size > room and shown:
            break
        shown.append(item if size <= room else _clip_item(item, room))
        room -= size
        if room <= 0:
            break
    answer: Answer = {**beside, name: shown}
    if len(shown) < len(items):
        answer["next_offset"] = offset + len(shown)
    return answer


def _clip_item(item: Mapping[str, Plain], room: int) -> Answer:
    """Return an item whose longest fields are cut, so that it takes about that many characters."""
    clipped = dict(item)
    room = max(room, _MIN_CHARACTERS)
    while (excess := len(_json(clipped)) - room) > 0:
        name = max(clipped, key=lambda key: len(_json(clipped[key])))
        value = clipped[name]
        if not isinstance(value, str):
            clipped[name] = _json(value)[:_MIN_CHARACTERS] + "…"
        elif len(value) - 1 > _MIN_CHARACTERS:
            clipped[name] = value[: max(_MIN_CHARACTERS, len(value) - excess - 1)] + "…"
            clipped["clipped"] = "memory_get with this id, or document_path, reads the rest"
        else:
            break
    return clipped


def text_page(text: str, *, offset: int = 0, limit_tokens: int = LIMIT_TOKENS) -> Answer:
    """Return the part of a text that begins at an offset and fits, and where the next part begins."""
    end = offset + limit_tokens * CHARACTERS_PER_TOKEN
    rest: Answer = {"next_offset": end} if end < len(text) else {}
    return {"text": text[offset:end], **rest}


def _json(value: Plain) -> str:
    return json.dumps(value, ensure_ascii=False)


def hint_for_agents(error: ArchivistError, *, parameter_names: Sequence[str] = ()) -> str:
    """Return an error's hint up to where it names a command; if nothing is left, a hint for functions."""
    kept: list[str] = []
    for part in re.split(r"(?<=[;:]) ", error.hint):
        if _COMMAND.search(part):
            break
        kept.append(part)
    hint = " ".join(kept).rstrip(";:")
    if hint or not error.hint:
        return hint
    if isinstance(error, NotFoundError):
        return "recall finds what there is, with the ids of everything"
    return "somebody else may" if isinstance(error, AccessError) else f"it takes {', '.join(parameter_names)}"


def reason_for_agents(reason: str) -> str:
    """Return a reason without the hint in brackets at its end, when that names a command."""
    hint = _LAST_HINT.search(reason)
    return reason[: hint.start()] if hint and _COMMAND.search(hint[1]) else reason


def pick_fields(*names: str) -> Callable[[Any], Answer]:
    """Return the view that has these fields of a record, without those that are empty."""

    def view(record: Any) -> Answer:
        plain = to_plain(record)
        return {name: plain[name] for name in names if plain[name] not in ("", None, [])}

    return view


def day_range(days: tuple[str, str] | None) -> tuple[datetime, datetime] | None:
    """Return the first moment of the first day and the last moment of the last."""
    if days is None:
        return None
    try:
        first, last = (datetime.fromisoformat(day) for day in days)
    except ValueError as error:
        raise InputError(f"date_range: {error}", hint="two days, YYYY-MM-DD") from None
    first, last = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in (first, last))
    return first, last + timedelta(days=1, microseconds=-1) if last.time() == time() else last
