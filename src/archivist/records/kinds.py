"""The kinds of records, one row each: everything that differs by kind follows from its row.

The tables of the store, the ledger's words, lookups by name, the lines of exported files and the labels of
counts are all derived from these rows. A new kind is a record class, a migration and one row here. What needs
a function of another room (the indexed text in `store.searchable`, the shown text in `recall.results`) is a
dict there, which a test compares with the rows.

The rows name the record classes as text: making a class takes a cold process longer than reading one record.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """One kind of record."""

    # The word for it in the ledger, in the index and in queries.
    name: str
    # The name of its class in `archivist.records`.
    class_name: str
    table: str
    # The guarded layer that it belongs to, by the names of `access.rights.Layer`.
    layer: str
    plural: str
    # The letter of its short id (`m` in `m-001`); empty where records are not numbered.
    short_id: str = ""
    # How people name one that has no name of its own, filled from its fields.
    label: str = ""
    is_searchable: bool = False
    # Events are entered in the ledger run by run, not one by one.
    has_ledger_entries: bool = True
    # The file of an export, and our fields that its document spells differently.
    file: str = ""
    keys: Mapping[str, str] = {}
    # The keys by which a line is recognised, and the times that decide which of two versions is later.
    signs: frozenset[str] = frozenset()
    times: tuple[str, ...] = ()

    @property
    def record(self) -> type[Any]:
        """Return the record class; its family is imported at the first call."""
        return record_type(self.name)

    def label_of(self, fields: Mapping[str, Any]) -> str:
        """Return the name that people use for a record with these fields."""
        return self.label.format_map(fields)

    def parse_short_id(self, name: str) -> int | None:
        """Return the number in a short id of this kind, in either case; None for any other name."""
        letter, _, digits = name.partition("-")
        if not self.short_id or letter.lower() != self.short_id or len(digits) > 12:
            return None
        return int(digits) if digits.isascii() and digits.isdecimal() else None


KINDS = (
    Kind(
        "lesson", "Lesson", "lessons", "lessons", "lessons",
        short_id="m", is_searchable=True, file="lessons.jsonl",
    ),
    Kind("episode", "Episode", "episodes", "runs", "runs", is_searchable=True, file="episodes.jsonl"),
    Kind("event", "Event", "events", "runs", "events", is_searchable=True, has_ledger_entries=False),
    Kind("brief", "Brief", "briefs", "lessons", "briefs", file="audit.jsonl"),
    Kind("verdict", "Verdict", "verdicts", "lessons", "verdicts", file="audit.jsonl"),
    Kind(
        "fact", "Fact", "facts", "knowledge", "facts",
        label="{category}/{key}", is_searchable=True, file="knowledge.jsonl",
        keys={"created": "created_at", "updated": "updated_at"},
        signs=frozenset(("category", "key", "value")), times=("updated",),
    ),
    Kind(
        "conflict", "Conflict", "conflicts", "knowledge", "conflicts",
        file="conflicts.jsonl", signs=frozenset(("fact", "kept", "lost")), times=("decided", "time"),
    ),
    Kind(
        "artifact", "Artifact", "artifacts", "artifacts", "artifacts",
        label="{path}", is_searchable=True, file="artifacts.jsonl",
        keys={"task": "task_id", "agent": "agent_id", "created": "created_at"},
        signs=frozenset(("task_id", "agent_id", "path", "checksum")), times=("created",),
    ),
    Kind(
        "task", "Task", "tasks", "tasks", "tasks",
        label="{title}", is_searchable=True, file="tasks.jsonl",
        keys={"created": "created_at", "updated": "updated_at"},
        signs=frozenset(("title", "needs", "state")), times=("updated",),
    ),
    Kind(
        "block", "Block", "blocks", "core", "blocks",
        file="core.jsonl", signs=frozenset(("section", "content")), times=("updated",),
    ),
    Kind(
        # Two versions of an entry are never compared: the stream gives every entry its own place.
        "entry", "Entry", "entries", "stream", "stream entries",
        is_searchable=True, file="stream.jsonl",
        keys={"time": "timestamp", "issues": "issueRefs", "prs": "prRefs", "tokens": "tokenEstimate"},
        signs=frozenset(("cycle", "action", "timestamp")),
    ),
    Kind(
        # The table `documents` is the index of all kinds.
        "document", "Document", "archive", "archive", "documents",
        label="{source}", is_searchable=True, file="archive.jsonl",
        signs=frozenset(("source", "position", "text")), times=("created",),
    ),
    Kind(
        "folder", "Folder", "folders", "archive", "folders",
        file="folders.jsonl", signs=frozenset(("id", "pattern", "added")), times=("added",),
    ),
    Kind(
        "proposal", "Proposal", "proposals", "proposals", "proposals",
        short_id="p", file="proposals.jsonl",
        signs=frozenset(("section", "after", "reason")), times=("decided", "created"),
    ),
    Kind("working", "Working", "working", "working", "working memories"),
    Kind("token", "Token", "tokens", "bank", "tokens"),
)  # fmt: skip

BY_NAME = {kind.name: kind for kind in KINDS}
_BY_CLASS = {kind.class_name: kind for kind in KINDS}
SEARCHABLE = tuple(kind.name for kind in KINDS if kind.is_searchable)
# Those that hold texts of people, agents and files.
TEXT_KINDS = ("artifact", "document", "entry", "fact", "task")


def kind_for(record: type) -> Kind:
    """Return the row of a record class."""
    return _BY_CLASS[record.__name__]


def kind_of(record: type) -> str:
    """Return the name of a record class's kind: `lesson`, `episode`, …"""
    return _BY_CLASS[record.__name__].name


@cache
def record_type(kind: str) -> type[Any]:
    """Return the record class of a kind."""
    from archivist import records

    found: type[Any] = getattr(records, BY_NAME[kind].class_name)
    return found


def record_types() -> tuple[type[Any], ...]:
    """Return the class of every kind."""
    return tuple(kind.record for kind in KINDS)


def types_by_kind() -> dict[str, type[Any]]:
    """Return the classes of the kinds whose records have ledger entries of their own."""
    return {kind.name: kind.record for kind in KINDS if kind.has_ledger_entries}
