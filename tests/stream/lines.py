"""Streams for tests, one entry a line: `cycle|role|type|importance|action|content`."""

from __future__ import annotations

from archivist.records import Entry, EntryType
from archivist.stream.entries import find_references
from tests.samples import WHEN


def read_lines(lines: str) -> list[Entry]:
    """Return the entries of some lines; the types are cut to their first letter, content may be left out."""
    types = {kind.value[0]: kind for kind in (EntryType.ACTION, EntryType.OBSERVATION, EntryType.DECISION)}
    found = []
    for seq, line in enumerate(lines.strip().splitlines(), 1):
        cycle, role, kind, importance, action, *content = line.strip().split("|")
        named = find_references(action, *content)
        found.append(
            Entry(
                id=f"e{seq}", seq=seq, cycle=int(cycle), time=WHEN, role=role, action=action,
                content="".join(content), importance=int(importance), type=types[kind],
                issues=named.issues, prs=named.prs,
            )
        )  # fmt: skip
    return found
