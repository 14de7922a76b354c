"""Find a lesson by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.errors import NotFoundError
from archivist.records.lesson import SHORT_ID, Lesson
from archivist.store.filters import equals

if TYPE_CHECKING:
    from archivist.store.protocol import Reader


def find_lesson(reader: Reader, name: str) -> Lesson:
    """Return a lesson by its short id or its global one."""
    short = SHORT_ID.fullmatch(name.lower())
    found = reader.select(Lesson, equals("number", int(short[1])), limit=1) if short else []
    lesson = found[0] if found else reader.get(Lesson, name)
    if lesson is None:
        raise NotFoundError("lesson", name)
    return lesson
