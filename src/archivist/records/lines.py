"""Write the records of layers and tiers as JSON lines and read them back, in the documents' own names.

The stream has a module of its own, `stream_lines.py`.

A kind is a row of one table: the file it is written to, the keys that the document has other names for, and
the keys by which a line is known for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from archivist.clock import to_short_text
from archivist.errors import RecordError
from archivist.ids import derived_id
from archivist.records.layers import Artifact, Conflict, Fact, validate_fact
from archivist.records.plain import from_plain, to_plain, types_of
from archivist.records.tiers import Block, Document, Folder, Proposal, validate_document

Kept = Fact | Conflict | Artifact | Block | Document | Folder | Proposal


class Shape(NamedTuple):
    """How one kind of record is written as lines."""

    record: type[Any]
    file: str
    names: Mapping[str, str]
    signs: frozenset[str]
    times: tuple[str, ...]


_AT = {"created": "created_at", "updated": "updated_at"}

SHAPES = (
    Shape(Fact, "knowledge.jsonl", _AT, frozenset(("category", "key", "value")), ("updated",)),
    Shape(
        Artifact,
        "artifacts.jsonl",
        {"task": "task_id", "agent": "agent_id", "created": "created_at"},
        frozenset(("task_id", "agent_id", "path", "checksum")),
        ("created",),
    ),
    Shape(Conflict, "conflicts.jsonl", {}, frozenset(("fact", "kept", "lost")), ("decided", "time")),
    Shape(Block, "core.jsonl", {}, frozenset(("section", "content")), ("updated",)),
    Shape(Document, "archive.jsonl", {}, frozenset(("source", "position", "text")), ("created",)),
    Shape(Folder, "folders.jsonl", {}, frozenset(("id", "pattern", "added")), ("added",)),
    Shape(Proposal, "proposals.jsonl", {}, frozenset(("section", "after", "reason")), ("decided", "created")),
)


def shape_of(value: Mapping[str, Any]) -> Shape | None:
    """Return the kind that a line is of, or None when it is of none of these."""
    return next((shape for shape in SHAPES if shape.signs <= value.keys()), None)


def to_line(record: Kept) -> dict[str, Any]:
    """Write a record under the document's names; what it has no name for is written under ours."""
    shape = next(shape for shape in SHAPES if isinstance(record, shape.record))
    plain = to_plain(record)
    for name, value in plain.items():
        if isinstance(value, str) and isinstance(moment := getattr(record, name), datetime):
            plain[name] = to_short_text(moment)
    extra = plain.pop("extra", {})
    line = {shape.names.get(name, name): value for name, value in plain.items()}
    return {**line, **{key: value for key, value in extra.items() if key not in line}}


def from_line(shape: Shape, value: Mapping[str, Any]) -> Kept:
    """Read a line of a known kind; keys that we do not know survive in `extra`."""
    ours = {key: name for name, key in shape.names.items()}
    kind: Any = shape.record
    known = types_of(kind)
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in value.items():
        name = ours.get(key, key)
        if name not in known or name == "extra":
            extra[key] = item
        elif item is not None:
            fields[name] = item
    if "id" in known:
        fields.setdefault("id", _derive_record_id(shape, fields))
    if shape.record is Fact and "created" in fields:
        fields.setdefault("updated", fields["created"])
    record: Kept = from_plain(shape.record, {**fields, **({"extra": extra} if "extra" in known else {})})
    return _validate_record(record)


def later_record(one: Kept, other: Kept) -> Kept:
    """Return which of two versions of a record is the later one."""
    shape = next(shape for shape in SHAPES if isinstance(one, shape.record))

    def moment(record: Kept) -> datetime:
        return max(each for name in shape.times if isinstance(each := getattr(record, name), datetime))

    return other if moment(other) > moment(one) else one


def _derive_record_id(shape: Shape, fields: Mapping[str, Any]) -> str:
    if shape.record is Fact:
        return derived_id("fact", str(fields.get("project", "")), str(fields["category"]), str(fields["key"]))
    return derived_id(shape.file, *(str(fields[name]) for name in sorted(fields)))


def _validate_record(record: Kept) -> Kept:
    if isinstance(record, Fact):
        return validate_fact(record)
    if isinstance(record, Document):
        return validate_document(record)
    if isinstance(record, Artifact) and record.size_bytes < 0:
        raise RecordError(f"size_bytes: {record.size_bytes} is below 0")
    return record
