"""Tell and write the time: aware, UTC, in one text form that sorts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

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


class LocalZone(tzinfo):
    """The zone of this machine, summer time included; `astimezone()` knows only the offset of one moment."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return moment.replace(tzinfo=None).astimezone().utcoffset() if moment is not None else None

    def dst(self, _moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return moment.replace(tzinfo=None).astimezone().tzname() if moment is not None else None

    def fromutc(self, moment: datetime) -> datetime:
        here = moment.replace(tzinfo=UTC).astimezone()
        # An hour that comes twice: the second one is known by its offset.
        first = here.replace(tzinfo=None, fold=0)
        is_second = first.astimezone().utcoffset() != here.utcoffset()
        return first.replace(tzinfo=self, fold=int(is_second))
