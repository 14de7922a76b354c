"""Tell and write the time: aware, UTC, in one text form that sorts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    """Write a time as ISO 8601 in UTC with microseconds always, so that the texts sort as the times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def to_short_text(moment: datetime) -> str:
    """Write a time as people and the documents do: no fraction when it is zero."""
    return to_text(moment).replace(".000000Z", "Z")


def from_text(text: str) -> datetime:
    """Read ISO 8601; a time without a zone is taken as UTC. Raise ValueError when it is not a time."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
