"""The time that a question names: read in the asker's zone, and answered from what was recorded then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from archivist import Bank
from archivist.clock import LocalZone
from archivist.recall.query import Query
from archivist.recall.times import asks_only_when, find_period
from archivist.records import Episode, EpisodeStatus, Event, EventKind
from tests.conftest import TickingClock

BERLIN = ZoneInfo("Europe/Berlin")
# A Wednesday.
NOW = datetime(2026, 11, 18, 15, 30, tzinfo=BERLIN)


def _read(question: str, now: datetime = NOW) -> tuple[str, str]:
    period = find_period(question, now)
    assert period is not None
    ends = (datetime.fromtimestamp(end, now.tzinfo) for end in (period.start, period.end))
    return tuple(f"{end:%Y-%m-%d %H:%M}" for end in ends)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what happened today", "2026-11-18 00:00", "2026-11-19 00:00"),
        ("what happened yesterday", "2026-11-17 00:00", "2026-11-18 00:00"),
        ("what broke the day before yesterday?", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("what did we do this morning", "2026-11-18 00:00", "2026-11-18 12:00"),
        ("the deploy this afternoon", "2026-11-18 12:00", "2026-11-18 18:00"),
        ("who was paged last night", "2026-11-17 18:00", "2026-11-18 06:00"),
        ("what failed yesterday evening", "2026-11-17 17:00", "2026-11-18 00:00"),
        ("what changed this week", "2026-11-16 00:00", "2026-11-23 00:00"),
        ("what changed last week", "2026-11-09 00:00", "2026-11-16 00:00"),
        ("what ran last weekend", "2026-11-14 00:00", "2026-11-16 00:00"),
        ("the releases of last month", "2026-10-01 00:00", "2026-11-01 00:00"),
        ("what did we ship last quarter", "2026-07-01 00:00", "2026-10-01 00:00"),
        ("what did we ship last year", "2025-01-01 00:00", "2026-01-01 00:00"),
        ("what did we decide on Monday", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("the outage last Friday afternoon", "2026-11-13 12:00", "2026-11-13 18:00"),
        # Said on a Wednesday, for today is called today.
        ("what did we decide on Wednesday", "2026-11-11 00:00", "2026-11-12 00:00"),
        ("what changed since Friday", "2026-11-13 00:00", "2026-11-19 15:30"),
        ("everything since yesterday", "2026-11-17 00:00", "2026-11-19 15:30"),
        ("what failed since the last release in March", "2026-03-01 00:00", "2026-04-01 00:00"),
        ("what changed since March", "2026-03-01 00:00", "2026-11-19 15:30"),
        ("what did we know before Friday", "1971-01-01 01:00", "2026-11-13 00:00"),
        ("what happened in March", "2026-03-01 00:00", "2026-04-01 00:00"),
        ("what happened in December", "2025-12-01 00:00", "2026-01-01 00:00"),
        ("what happened on 18 November", "2026-11-18 00:00", "2026-11-19 00:00"),
        ("what happened on 29 February", "2024-02-29 00:00", "2024-03-01 00:00"),
        ("what did we do the week before 16 November", "2026-11-08 00:00", "2026-11-17 00:00"),
        ("the plan for the Saturday after 2026-11-03", "2026-11-03 00:00", "2026-11-12 00:00"),
        ("what did we plan two days ago", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("what did we plan a couple of weeks ago", "2026-11-01 00:00", "2026-11-08 00:00"),
        ("what did we plan a month ago", "2026-10-01 00:00", "2026-11-01 00:00"),
        ("what did we plan a year ago", "2025-05-01 00:00", "2026-06-01 00:00"),
        ("what failed two hours ago", "2026-11-18 13:00", "2026-11-18 14:00"),
        ("what failed in the last 24 hours", "2026-11-17 15:30", "2026-11-19 15:30"),
        ("what failed over the past few days", "2026-11-15 15:30", "2026-11-19 15:30"),
        ("what failed in the last week", "2026-11-11 15:30", "2026-11-19 15:30"),
    ],
)
def test_a_time_is_read_from_the_moment_of_asking(question: str, start: str, end: str) -> None:
    assert _read(question) == (start, end)


@pytest.mark.parametrize(
    ("question", "now", "start", "end"),
    [
        ("yesterday", "2026-03-01T09:00", "2026-02-28 00:00", "2026-03-01 00:00"),
        ("yesterday", "2028-03-01T09:00", "2028-02-29 00:00", "2028-03-01 00:00"),
        ("yesterday", "2026-01-01T00:00", "2025-12-31 00:00", "2026-01-01 00:00"),
        ("last month", "2026-03-31T09:00", "2026-02-01 00:00", "2026-03-01 00:00"),
        ("a month ago", "2026-03-31T09:00", "2026-02-01 00:00", "2026-03-01 00:00"),
        ("in the last month", "2026-03-31T09:00", "2026-02-28 00:00", "2026-04-01 09:00"),
        ("last week", "2026-01-02T09:00", "2025-12-22 00:00", "2025-12-29 00:00"),
        ("last quarter", "2026-02-10T09:00", "2025-10-01 00:00", "2026-01-01 00:00"),
        # The clocks went forward on 29 March 2026 at two, and back on 25 October at three.
        ("yesterday", "2026-03-30T09:00", "2026-03-29 00:00", "2026-03-30 00:00"),
        ("yesterday", "2026-10-26T09:00", "2026-10-25 00:00", "2026-10-26 00:00"),
        ("this morning", "2026-03-29T09:00", "2026-03-29 00:00", "2026-03-29 12:00"),
        ("four hours ago", "2026-03-29T06:00", "2026-03-29 00:30", "2026-03-29 01:30"),
    ],
)
def test_month_ends_and_summer_time_move_no_day(question: str, now: str, start: str, end: str) -> None:
    assert _read(question, datetime.fromisoformat(now).replace(tzinfo=BERLIN)) == (start, end)


def test_a_day_on_which_the_clocks_change_has_its_own_length() -> None:
    for day, hours in ((30, 23), (31, 24)):
        period = find_period("yesterday", datetime(2026, 3, day, 9, tzinfo=BERLIN))
        assert period is not None
        assert period.end - period.start == hours * 3600


@pytest.mark.parametrize(
    "question",
    [
        "may I march into the cache?",
        "which job runs on Mondays",
        "what is due in two days",
        "the last two tests",
        "the 31st of February",
        "what happened on 2026-02-31",
    ],
)
def test_what_names_no_time_has_none(question: str) -> None:
    assert find_period(question, NOW) is None


@pytest.mark.parametrize(
    ("question", "inside"),
    [("who joined on March 5th", "2024-03-05T10:00"), ("what broke in July", "2025-07-30T23:30")],
)
def test_a_day_or_a_month_without_a_year_is_that_of_any_year(question: str, inside: str) -> None:
    period = find_period(question, NOW)
    assert period is not None
    moment = datetime.fromisoformat(inside).replace(tzinfo=BERLIN)
    assert period.has(int(moment.timestamp()))
    assert not period.has(int((moment + timedelta(days=2)).timestamp()))


@pytest.mark.parametrize(
    ("question", "is_only"),
    [
        ("what happened yesterday", True),
        ("What did we do last week?", True),
        ("since Friday", True),
        ("what have you been working on this morning", True),
        ("what did we decide about the cache yesterday", False),
        ("what happened to the importer yesterday", False),
    ],
)
def test_a_question_for_a_time_and_nothing_else_is_known(question: str, is_only: bool) -> None:
    assert asks_only_when(question) is is_only


@pytest.fixture
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_berlin")
def test_the_zone_of_the_machine_knows_summer_time() -> None:
    zone = LocalZone()
    for moment in (
        datetime(2026, 1, 5, 12, tzinfo=UTC),
        datetime(2026, 7, 5, 12, tzinfo=UTC),
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    ):
        here = moment.astimezone(zone)
        assert here.replace(tzinfo=None) == moment.astimezone(BERLIN).replace(tzinfo=None)
        assert here.timestamp() == moment.timestamp()


def _run(bank: Bank, name: str, task: str, at: datetime, *said: str) -> None:
    events = [
        Event(run=name, seq=seq, kind=EventKind.MESSAGE, role="user", text=text, time=at)
        for seq, text in enumerate(said)
    ]
    summary = f"Succeeded: {task}"
    run = Episode(id=name, task=task, summary=summary, status=EpisodeStatus.SUCCESS, started=at, finished=at)
    bank.capture(run, events)


@pytest.mark.usefixtures("_berlin")
def test_a_question_for_a_time_is_answered_from_what_was_recorded_then(
    bank: Bank, clock: TickingClock
) -> None:
    clock.now = NOW
    for back in range(40):
        at = NOW - timedelta(days=back)
        _run(bank, f"d{back}", f"work on part {back}", at, f"what happened to part {back} of yesterday?")
    # Half past midnight of the seventeenth is another day in UTC.
    _run(bank, "late", "the nightly import", datetime(2026, 11, 17, 0, 30, tzinfo=BERLIN))
    for _ in bank.vectors.embed_waiting():
        pass

    def runs(question: str, until: datetime | None = None) -> set[str]:
        hits = bank.recall(Query(text=question, limit=50, until=until)).hits
        return {hit.id.partition("#")[0] for hit in hits}

    assert runs("what happened yesterday") == {"d1", "late"}
    assert bank.recall("what happened yesterday").hits[0].kind == "episode"
    assert runs("what did we do today?") == {"d0"}
    assert runs("what did we do since Monday") == {"d0", "d1", "d2", "late"}
    assert runs("what did we do last week") == {f"d{back}" for back in range(3, 10)}
    assert runs("what happened yesterday", NOW - timedelta(days=3)) == {"d4"}
    # Nothing was recorded then, and nothing else is what was asked for.
    assert runs("what happened last year") == set()


def test_a_relative_time_puts_its_records_before_better_words(bank: Bank, clock: TickingClock) -> None:
    clock.now = NOW
    for back in range(2, 90):
        at = NOW - timedelta(days=back)
        _run(bank, f"d{back}", "", at, "the nightly import of the orders failed, as it did yesterday")
    for back, at in enumerate((NOW, NOW - timedelta(days=1))):
        _run(bank, f"d{back}", "", at, *(f"the page {name} is slow" for name in "abcdefgh"))
    _run(bank, "r", "", NOW - timedelta(days=1), "orders were not imported: the disk is full")
    hits = bank.recall(Query(text="why did the import of the orders fail yesterday", kinds=("event",))).hits
    assert hits[0].id == "r#0"
    assert hits[1].text.endswith("as it did yesterday")
    # A time without any record filters nothing out.
    assert bank.recall("why did the nightly import fail last year").hits
