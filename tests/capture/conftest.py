"""Read a log that a test writes in Python."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from archivist.capture.formats import Adapter, LogOrigin, SkippedRecord
from archivist.records import Episode, Event

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]


@pytest.fixture
def capture() -> Read:
    """Return the function that reads rows as JSON lines, or one value as a document."""

    def read(
        adapter: Adapter, *rows: Any, document: Any = None, origin: LogOrigin | None = None
    ) -> tuple[list[Event], list[Episode], list[SkippedRecord]]:
        data = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
        data = json.dumps(document) if document is not None else data
        found = list(adapter.read(io.BytesIO(data.encode()), origin or LogOrigin("log")))
        return (
            sorted(
                (each for each in found if isinstance(each, Event)), key=lambda event: (event.run, event.seq)
            ),
            [each for each in found if isinstance(each, Episode)],
            [each for each in found if isinstance(each, SkippedRecord)],
        )

    return read
