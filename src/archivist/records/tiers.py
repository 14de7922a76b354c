"""The cognitive tiers: core blocks, the stream, archived text, proposals, and one agent's scratch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from archivist.errors import RecordError
from archivist.records.actor import ARCHIVIST, Actor
from archivist.records.tier_words import CoreSection, DocumentType, EntryType, ProposalStatus
from archivist.text import is_blank

PROPOSAL_ID = re.compile(r"p-(\d{3}|[1-9]\d{3,11})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of core memory. Its id is the section, or `section:role` where each role has its own.

    `content` holds the section's fields: `text` of a playbook, of rules and lessons, `items` of threads,
    the documented fields of status and role state.
    """

    section: CoreSection
    role: str = ""
    content: dict[str, object] = field(default_factory=dict)
    updated: datetime
    actor: Actor = ARCHIVIST

    @property
    def id(self) -> str:
        """Return the section, and the role where there is one."""
        return f"{self.section.value}:{self.role}" if self.role else self.section.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that an agent logged on purpose in a cycle. `seq` is its place in the stream.

    `importance` is from 1 to 10; `is_archived` once its cycle is no longer hot.
    """

    id: str
    seq: int
    cycle: int
    time: datetime
    role: str = ""
    action: str
    importance: int = 5
    type: EntryType = EntryType.ACTION
    tags: tuple[str, ...] = ()
    issues: tuple[int, ...] = ()
    prs: tuple[int, ...] = ()
    content: str = ""
    tokens: int = 0
    run: str = ""
    is_archived: bool = False
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A piece of archived text. The pieces of one source have positions from 0.

    `source` is a path, or a name for text without one; `digest` is that of the whole source; `folder` is the
    watched folder in which it was found. `importance` is from 1 to 10.
    """

    id: str
    source: str
    position: int = 0
    heading: str = ""
    text: str
    type: DocumentType = DocumentType.RESEARCH
    date: datetime | None = None
    roles: tuple[str, ...] = ()
    issues: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    importance: int = 5
    line: int = 0
    digest: str = ""
    folder: str = ""
    created: datetime
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder whose texts are archived, and archived again when they change. Its id is its path."""

    id: str
    type: DocumentType | None = None
    pattern: str = "**/*.md"
    added: datetime
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of a guarded block that needs approval; `before` is the text that it replaces."""

    id: str
    number: int = 0
    section: CoreSection
    role: str = ""
    before: str = ""
    after: str
    reason: str
    evidence: tuple[str, ...] = ()
    proposer: Actor = ARCHIVIST
    created: datetime
    expires: datetime
    status: ProposalStatus = ProposalStatus.OPEN
    decided: datetime | None = None
    decided_by: Actor | None = None
    comment: str = ""
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def short_id(self) -> str:
        """Return the id for people, `p-001`."""
        return f"p-{self.number:03d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """One agent's private scratch; its id is the agent's name."""

    id: str
    plan: str = ""
    constraints: tuple[str, ...] = ()
    context: dict[str, object] = field(default_factory=dict)
    scratchpad: tuple[str, ...] = ()
    updated: datetime
    expires: datetime
    extra: dict[str, object] = field(default_factory=dict)


def validate_entry(entry: Entry) -> Entry:
    """Return the entry, or raise RecordError when it is empty or a number is out of range."""
    if is_blank(entry.action):
        raise RecordError("action: missing or empty")
    if not 1 <= entry.importance <= 10:
        raise RecordError(f"importance: {entry.importance} is not between 1 and 10")
    if entry.cycle < 0:
        raise RecordError(f"cycle: {entry.cycle} is below 0")
    return entry


def validate_document(document: Document) -> Document:
    """Return the document, or raise RecordError when it is empty or its importance out of range."""
    if is_blank(document.text):
        raise RecordError("content: missing or empty")
    if not 1 <= document.importance <= 10:
        raise RecordError(f"importance: {document.importance} is not between 1 and 10")
    return document
