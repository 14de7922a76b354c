"""Read the time that a question names: a date, a month, "yesterday", "since Friday", "two weeks ago"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.recall.lexical import SILENT

# A question says at its beginning what it is about; what follows may be a pasted log.
_QUESTION = 500
_EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# The hours of a day, from its midnight.
_PARTS = {"": (0, 24), "morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "several": 4,
    "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": _DAY, "week": 7 * _DAY}
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
# What is so many days before or after a date.
_STEP = lazy_pattern(rf"\b(?:day|night|week|weekend|month|{'|'.join(_DAYS)})s? $", re.IGNORECASE)
_STEP_DAYS = 8 * _DAY
# Words of a question about a time that say only that something happened.
_HAPPENING = frozenset((
    "happen", "happened", "happens", "happening", "done", "work", "worked", "working", "go",
    "going", "went", "change", "changed", "changes", "new", "news", "learn", "learned", "learnt",
    "discuss", "discussed", "talk", "talked", "say", "said", "decide", "decided", "decision",
    "decisions", "agree", "agreed", "progress", "update", "updates", "activity", "thing", "things",
    "everything", "anything", "something", "session", "sessions", "run", "runs", "summary",
    "summarize", "summarise", "recap", "overview", "list", "show", "tell", "give", "finish",
    "finished", "start", "started", "make", "made", "fail", "failed", "break", "broke", "wrong",
    "achieve", "achieved", "project", "earlier",
))  # fmt: skip


class Period(NamedTuple):
    """The time that a question names, from a moment up to another, in seconds since the epoch.

    A day or a month without a year is that of any year: then both are given, with their zone. Of a relative
    time the asker means when something was recorded; a date may also stand in what was recorded.
    """

    start: float
    end: float
    is_relative: bool = True
    month: int = 0
    day: int = 0
    zone: tzinfo | None = None

    def has(self, time: int) -> bool:
        """Say whether a time is in it."""
        if not self.month:
            return self.start <= time < self.end
        moment = datetime.fromtimestamp(time, self.zone)
        return moment.month == self.month and self.day in (0, moment.day)


class _Span(NamedTuple):
    """From when to when, by the clock on the wall."""

    start: datetime
    end: datetime


def find_period(text: str, now: datetime) -> Period | None:
    """Return the time that a question names, or None; a day begins at midnight in the zone of `now`."""
    for found, read in _find_times(text):
        try:
            start, end = read(found, now)
            bound = (found["bound"] or "").lower()
        except (ValueError, OverflowError):
            # There is no 31 February.
            return None
        # Before some time lies most of what a bank holds; a date may also stand in the text.
        is_relative = bound in ("since", "after") or not (bound or read in (_read_date, _read_month))
        if _STEP.search(text[: found.start()]) and bound in ("before", "after"):
            # "The Monday before July 24".
            start, end = start - _STEP_DAYS * (bound == "before"), end + _STEP_DAYS * (bound == "after")
            is_relative = False
        elif bound in ("since", "after"):
            start, end = (start if bound == "since" else end), now + _DAY
        elif bound:
            start, end = _EARLIEST, (start if bound == "before" else end)
        period = Period(start.timestamp(), end.timestamp(), is_relative)
        if read is not _read_month or bound or found["year"]:
            return period
        return period._replace(month=start.month, day=start.day if found["day"] else 0, zone=now.tzinfo)
    return None


def time_words(text: str) -> frozenset[str]:
    """Return the words of a question that name its time."""
    return frozenset(word for found, _ in _find_times(text) for word in _words(found[0]))


def asks_only_when(text: str) -> bool:
    """Say whether a question names a time and nothing else, as "what did we do yesterday" does."""
    return SILENT.union(_HAPPENING, time_words(text)).issuperset(_words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


@lru_cache(maxsize=16)
def _find_times(text: str) -> tuple[tuple[re.Match[str], _Read], ...]:
    return tuple((found, read) for pattern, read in _READERS if (found := pattern.search(text)))


def _read_date(found: re.Match[str], now: datetime) -> _Span:
    year, month, day = map(int, found["date"].split("-"))
    start = datetime(year, month, day, tzinfo=now.tzinfo)
    return _Span(start, start + _DAY)


def _read_month(found: re.Match[str], now: datetime) -> _Span:
    """Read a month or a day of one; without a year it is the latest that has begun."""
    month = _MONTHS.index(found["month"][:3].lower()) + 1
    day, year = int(found["day"] or 0), int(found["year"] or 0)
    if not year:
        year = now.year - ((month, day) > (now.month, now.day))
        # 29 February is in a leap year.
        year -= year % 4 if (month, day) == (2, 29) else 0
    start = datetime(year, month, day or 1, tzinfo=now.tzinfo)
    return _Span(start, start + _DAY if day else _add_months(start, 1))


def _read_day(found: re.Match[str], now: datetime) -> _Span:
    day = found["day"].lower()
    back = 2 if day.startswith("day") else int(day in ("yesterday", "last"))
    return _part_of(_midnight(now) - timedelta(days=back), "night" if day == "tonight" else found["part"])


def _read_weekday(found: re.Match[str], now: datetime) -> _Span:
    """Read a day of the week: the latest before today, for today is called so."""
    back = (now.weekday() - _DAYS.index(found["day"].lower()) - 1) % 7 + 1
    return _part_of(_midnight(now) - timedelta(days=back), found["part"])


def _read_calendar(found: re.Match[str], now: datetime) -> _Span:
    """Read this or the last week, weekend, month, quarter or year."""
    unit, is_last = found["unit"].lower(), found["which"].lower() != "this"
    today = _midnight(now)
    if unit in ("week", "weekend"):
        monday = today - timedelta(days=today.weekday() + 7 * is_last)
        return _Span(monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=7))
    months = _MONTHS_OF[unit]
    start = today.replace(month=(today.month - 1) // months * months + 1, day=1)
    start = _add_months(start, -months * is_last)
    return _Span(start, _add_months(start, months))


def _read_ago(found: re.Match[str], now: datetime) -> _Span:
    """Read "two weeks ago": that day or month, and half a unit around what is longer or shorter."""
    count, unit = _read_count(found), found["unit"].lower()
    if unit in _MONTHS_OF:
        start = _add_months(_midnight(now).replace(day=1), -count * _MONTHS_OF[unit])
        around = _MONTHS_OF[unit] // 2
        return _Span(_add_months(start, -around), _add_months(start, around + 1))
    if unit in ("day", "week"):
        day, around_days = _midnight(now) - count * _LENGTHS[unit], 3 * _DAY * (unit == "week")
        return _Span(day - around_days, day + around_days + _DAY)
    half = _LENGTHS[unit] / 2
    return _Span(_before(now, count * _LENGTHS[unit] + half), _before(now, count * _LENGTHS[unit] - half))


def _read_past(found: re.Match[str], now: datetime) -> _Span:
    """Read "the last two weeks", up to now."""
    count, unit = _read_count(found), found["unit"].lower()
    if unit in _MONTHS_OF:
        start = _add_months(_midnight(now).replace(day=1), -count * _MONTHS_OF[unit])
        start += timedelta(days=min(now.day, (_add_months(start, 1) - start).days) - 1)
    else:
        start = _before(now, count * _LENGTHS[unit])
    return _Span(start, now + _DAY)


def _read_count(found: re.Match[str]) -> int:
    count = (found["count"] or "one").lower()
    return _COUNTS.get(count) or int(count)


def _before(now: datetime, passed: timedelta) -> datetime:
    """Return the moment before which so much time has passed, whatever the clocks did meanwhile."""
    return datetime.fromtimestamp(now.timestamp() - passed.total_seconds(), now.tzinfo)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _part_of(midnight: datetime, part: str | None) -> _Span:
    first, last = _PARTS[(part or "").lower()]
    return _Span(midnight + timedelta(hours=first), midnight + timedelta(hours=last))


def _add_months(first: datetime, count: int) -> datetime:
    """Return the first of a month so many months later."""
    months = first.year * 12 + first.month - 1 + count
    return first.replace(year=months // 12, month=months % 12 + 1)


_Read = Callable[[re.Match[str], datetime], _Span]


def _time_pattern(text: str) -> re.Pattern[str]:
    bound = r"\b(?:(?P<bound>since|after|before|until|till) (?:the )?)?"
    return lazy_pattern(rf"{bound}(?:{text})\b", re.IGNORECASE, longest=_QUESTION)


_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_YEAR = r"(?:,? (?P<year>\d{4}))?"
_PART = r"(?: (?P<part>morning|afternoon|evening|night))?"
_COUNT = rf"(?:a )?(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})(?: of)?"
_UNIT = r"(?P<unit>minute|hour|day|week|month|year)s?"
# The first that is found is taken.
_READERS: tuple[tuple[re.Pattern[str], _Read], ...] = (
    (_time_pattern(r"(?P<date>\d{4}-\d{2}-\d{2})"), _read_date),
    (_time_pattern(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}{_YEAR}"), _read_month),
    (_time_pattern(rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}"), _read_month),
    (
        _time_pattern(rf"(?(bound)|(?:in|during|of|last|this|early|late|mid)[ -])(?P<day>){_MONTH}{_YEAR}"),
        _read_month,
    ),
    (
        _time_pattern(
            rf"(?P<day>day before yesterday|yesterday|today|tonight|this(?= (?:{'|'.join([*_PARTS][1:])}))"
            rf"|last(?= night)){_PART}"
        ),
        _read_day,
    ),
    (_time_pattern(rf"{_COUNT} {_UNIT} ago"), _read_ago),
    (
        _time_pattern(rf"(?:(?:last|past|previous) {_COUNT}|(?<=the )last|past) {_UNIT}"),
        _read_past,
    ),
    (
        _time_pattern(r"(?P<which>this|last|previous) (?P<unit>weekend|week|month|quarter|year)"),
        _read_calendar,
    ),
    (
        _time_pattern(rf"(?(bound)(?:last )?|(?:on|last|this) )(?P<day>{'|'.join(_DAYS)}){_PART}"),
        _read_weekday,
    ),
)
