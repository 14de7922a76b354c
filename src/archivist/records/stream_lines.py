"""The stream's entries as lines of `stream.jsonl`, in the spelling of the cognitive-memory document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archivist.clock import to_short_text
from archivist.errors import RecordError
from archivist.ids import derived_id
from archivist.records.plain import from_plain
from archivist.records.tiers import Entry, validate_entry

# The document's spelling → ours.
_NAMES = {
    "id": "id",
    "cycle": "cycle",
    "timestamp": "time",
    "role": "role",
    "action": "action",
    "importance": "importance",
    "type": "type",
    "tags": "tags",
    "issueRefs": "issues",
    "prRefs": "prs",
    "content": "content",
    "tokenEstimate": "tokens",
    "run": "run",
}
_SPELLED = {ours: theirs for theirs, ours in _NAMES.items()}


def to_stream_line(entry: Entry) -> dict[str, object]:
    """Write an entry as a line; what the document has no name for stands after its own fields."""
    line: dict[str, object] = {
        "id": entry.id,
        "cycle": entry.cycle,
        "timestamp": to_short_text(entry.time),
        "role": entry.role,
        "action": entry.action,
        "importance": entry.importance,
        "type": entry.type.value,
        "tags": list(entry.tags),
        "issueRefs": list(entry.issues),
        "prRefs": list(entry.prs),
        "content": entry.content,
        "tokenEstimate": entry.tokens,
    }
    if entry.run:
        line["run"] = entry.run
    return {**line, **{key: value for key, value in entry.extra.items() if key not in _NAMES}}


def from_stream_line(value: Mapping[str, Any]) -> Entry:
    """Read a line; one without an id gets the one that its cycle, time, role and action always have.

    Raises RecordError in the line's own spelling. The place in the stream is given by who takes it in.
    """
    known = {_NAMES[key]: item for key, item in value.items() if key in _NAMES and item is not None}
    extra = {key: item for key, item in value.items() if key not in _NAMES}
    known["id"] = known.get("id") or derived_id(
        "entry", *(str(known.get(name, "")) for name in ("cycle", "time", "role", "action"))
    )
    for name in ("cycle", "time", "action"):
        if name not in known:
            raise RecordError(f"{_SPELLED[name]}: missing")
    try:
        return validate_entry(from_plain(Entry, {**known, "seq": 0, "extra": extra}))
    except RecordError as error:
        name, mark, rest = error.message.partition(":")
        raise RecordError(f"{_SPELLED.get(name, name)}{mark}{rest}", hint=error.hint) from None
