"""Write the records of layers and tiers as JSON lines and read them back, in the documents' own names.

Files, names and the keys by which a line is recognised stand in the rows of `kinds.py`. Keys that we do not
know survive in `extra`. Lessons and runs have the shapes of two documents, in `shapes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from archivist.clock import to_short_text
from archivist.errors import RecordError
from archivist.ids import derived_id
from archivist.records.kinds import BY_NAME, KINDS, Kind, kind_for
from archivist.records.plain import field_names, from_plain, to_plain

if TYPE_CHECKING:
    from archivist.records.layers import Artifact, Conflict, Fact
    from archivist.records.tiers import Block, Document, Entry, Folder, Proposal

Kept: TypeAlias = "Fact | Conflict | Artifact | Block | Document | Folder | Proposal"

# The kinds whose later version wins when two are merged.
SHAPES = tuple(kind for kind in KINDS if kind.times)
# The place in the stream and the tier are given by the bank that an entry is in.
_LOCAL_TO_STREAM = ("seq", "is_archived")


def shape_of(value: Mapping[str, Any]) -> Kind | None:
    """Return the kind that a line is of, or None when it is of none of these."""
    return next((kind for kind in SHAPES if kind.signs <= value.keys()), None)


def to_line(record: Kept | Entry, *, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """Write a record under the document's names; what it has no name for is written under ours."""
    keys = kind_for(type(record)).keys
    plain = to_plain(record)
    extra = plain.pop("extra", {})
    line = {}
    for name, value in plain.items():
        if name not in left_out:
            field = getattr(record, name)
            line[keys.get(name, name)] = to_short_text(field) if isinstance(field, datetime) else value
    return {**line, **{key: value for key, value in extra.items() if key not in line}}


def from_line(kind: Kind, value: Mapping[str, Any]) -> Kept:
    """Read a line of a known kind; one without an id gets the id that its fields always have."""
    fields = _read_fields(kind, value)
    if kind.name == "fact":
        if "created" in fields:
            fields.setdefault("updated", fields["created"])
        same = [str(fields.get(name, "")) for name in ("project", "category", "key")]
        fields.setdefault("id", derived_id("fact", *same))
    elif kind.name != "block":
        # A block's id follows from its section.
        same = [str(fields[name]) for name in sorted(fields) if name != "extra"]
        fields.setdefault("id", derived_id(kind.file, *same))
    record: Kept = from_plain(kind.record, fields)
    _validate(record)
    return record


def later_record(one: Kept, other: Kept) -> Kept:
    """Return the later one of two versions of a record."""

    def last_change(record: Kept) -> datetime:
        times: list[datetime | None] = [getattr(record, name) for name in kind_for(type(one)).times]
        return max(time for time in times if time is not None)

    return other if last_change(other) > last_change(one) else one


def to_stream_line(entry: Entry) -> dict[str, object]:
    """Write an entry of the stream as a line, without what only this bank's stream knows."""
    return to_line(entry, left_out=_LOCAL_TO_STREAM if entry.run else (*_LOCAL_TO_STREAM, "run"))


def from_stream_line(value: Mapping[str, Any]) -> Entry:
    """Read a line of the stream; one without an id gets the id that cycle, time, role and action give it.

    Raises RecordError in the line's own spelling. The caller gives the entry its place in the stream.
    """
    from archivist.records.tiers import Entry, validate_entry

    kind = BY_NAME["entry"]
    fields = _read_fields(kind, value, unread=(*_LOCAL_TO_STREAM, *kind.keys))
    same = [str(fields.get(name, "")) for name in ("cycle", "time", "role", "action")]
    fields["id"] = fields.get("id") or derived_id("entry", *same)
    for name in ("cycle", "time", "action"):
        if name not in fields:
            raise RecordError(f"{kind.keys.get(name, name)}: missing")
    try:
        return validate_entry(from_plain(Entry, {**fields, "seq": 0}))
    except RecordError as error:
        name, colon, rest = error.message.partition(":")
        raise RecordError(f"{kind.keys.get(name, name)}{colon}{rest}", hint=error.hint) from None


def _read_fields(kind: Kind, value: Mapping[str, Any], *, unread: Sequence[str] = ()) -> dict[str, Any]:
    """Return a line's values by our field names; keys that are unknown or not to be read go to `extra`."""
    ours = {key: name for name, key in kind.keys.items()}
    record: Any = kind.record
    known = field_names(record)
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in value.items():
        name = ours.get(key, key)
        if key in unread or name not in known or name == "extra":
            extra[key] = item
        elif item is not None:
            fields[name] = item
    return {**fields, "extra": extra} if "extra" in known else fields


def _validate(record: Kept) -> None:
    """Raise RecordError when a field is out of range."""
    from archivist.records.layers import Artifact, Fact, validate_fact
    from archivist.records.tiers import Document, validate_document

    if isinstance(record, Fact):
        validate_fact(record)
    elif isinstance(record, Document):
        validate_document(record)
    elif isinstance(record, Artifact) and record.size_bytes < 0:
        raise RecordError(f"size_bytes: {record.size_bytes} is below 0")
