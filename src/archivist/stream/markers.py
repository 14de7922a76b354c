"""Where the stream stands: its latest cycle, the sprint, and what was reflected on and archived."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from archivist.records import Block, Entry
from archivist.records.plain import canonical_json
from archivist.records.tier_words import CoreSection
from archivist.stream.entries import Marker

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

_MARKER = "stream_reflected"


def marker_of(reader: Reader) -> Marker | None:
    """Return how far the stream was reflected on; None before its first entry."""
    noted = reader.setting(_MARKER)
    return Marker(**json.loads(noted)) if noted else None


def set_marker(writer: Writer, marker: Marker) -> None:
    """Note how far the stream was reflected on."""
    writer.set_setting(_MARKER, canonical_json(marker._asdict()))


def latest_cycle(reader: Reader) -> int | None:
    """Return the latest cycle of the stream; None when it is empty."""
    rows = reader.select_fields(Entry, ("cycle",), order=("-cycle",), limit=1)
    return int(rows[0][0]) if rows else None


def current_sprint(reader: Reader) -> str:
    """Return the sprint that the status in core memory names."""
    status = reader.get(Block, CoreSection.STATUS.value)
    return str(status.content.get("sprint") or "") if status else ""
