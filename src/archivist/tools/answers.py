"""Show records as a tool answers them, within a number of tokens, and say how to get the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from archivist.errors import AccessError, ArchivistError, InputError, NotFoundError
from archivist.records.plain import to_plain
from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from archivist.recall.service import Hit
    from archivist.records import Entry

# What one call of a tool may put into a context, unless the caller says otherwise.
LIMIT_TOKENS = 2_000
# The least of a text that is worth showing.
_LEAST_SHOWN = 200
# A command, or an option of one: of no use to whoever has functions only.
_COMMAND = re.compile(r"\barchivist (?!may\b)[a-z]|(?<!\S)--[a-z]")
_LAST_HINT = re.compile(r" \(([^()]*)\)$")

Plain: TypeAlias = "str | int | float | bool | Sequence[Plain] | Mapping[str, Plain] | None"


def page(
    name: str,
    items: Sequence[Mapping[str, Plain]],
    *,
    offset: int = 0,
    limit: int | None = None,
    limit_tokens: int = LIMIT_TOKENS,
    **beside: Plain,
) -> dict[str, Plain]:
    """Return as many items as fit and are asked for; `next_offset` is where to go on, missing at the end.

    Who asks for a number of items gives one more, when there is one. An item that is too large for a whole
    page is clipped, and says how to read all of it.
    """
    room = limit_tokens * CHARACTERS_PER_TOKEN - len(_json(beside)) - _LEAST_SHOWN
    shown: list[Plain] = []
    for item in items[:limit]:
        size = len(_json(item))
        if size > room and shown:
            break
        shown.append(item if size <= room else clip_item(item, room))
        room -= size
        if room <= 0:
            break
    answer: dict[str, Plain] = {**beside, name: shown}
    if len(shown) < len(items):
        answer["next_offset"] = offset + len(shown)
    return answer


def clip_item(item: Mapping[str, Plain], room: int) -> dict[str, Plain]:
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


def hint_for_agents(error: ArchivistError, *, parameter_names: Sequence[str] = ()) -> str:
    """Return an error's hint up to where it names a command; when that is all of it, one for functions."""
    kept: list[str] = []
    for part in re.split(r"(?<=[;:]) ", error.hint):
        if _COMMAND.search(part):
            break
        kept.append(part)
    said = " ".join(kept).rstrip(";:")
    if said or not error.hint:
        return said
    if isinstance(error, NotFoundError):
        return "recall finds what there is, with the ids of everything"
    return "somebody else may" if isinstance(error, AccessError) else f"it takes {', '.join(parameter_names)}"


def reason_for_agents(reason: str) -> str:
    """Return a reason without the hint in brackets at its end, when that names a command."""
    hint = _LAST_HINT.search(reason)
    return reason[: hint.start()] if hint and _COMMAND.search(hint[1]) else reason


def entry_view(entry: Entry) -> dict[str, Plain]:
    """Return an entry as a line of the stream says it."""
    from archivist.records.lines import to_stream_line

    line: dict[str, Any] = to_stream_line(entry)
    return line


def hit_view(hit: Hit) -> dict[str, Plain]:
    """Return what was found, with its score."""
    when = hit.time.isoformat(timespec="seconds") if hit.time else None
    return {
        "kind": hit.kind,
        "id": hit.id,
        "name": hit.name,
        "text": hit.text,
        "time": when,
        "score": round(hit.score, 3),
        **({"notes": list(hit.notes)} if hit.notes else {}),
    }


def pick_fields(record: Any, names: Sequence[str]) -> dict[str, Plain]:
    """Return some fields of a record, without those that are empty."""
    plain = to_plain(record)
    return {name: plain[name] for name in names if plain[name] not in ("", None, [])}


def day_range(given: tuple[str, str] | None) -> tuple[datetime, datetime] | None:
    """Return the first moment of the first day and the last of the last."""
    if given is None:
        return None
    try:
        first, last = (datetime.fromisoformat(day) for day in given)
    except ValueError as error:
        raise InputError(f"date_range: {error}", hint="two days, YYYY-MM-DD") from None
    first, last = (each if each.tzinfo else each.replace(tzinfo=UTC) for each in (first, last))
    return first, last + timedelta(days=1, microseconds=-1) if last.time() == time() else last
