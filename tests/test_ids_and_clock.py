"""Ids and times sort as they should."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from archivist.clock import from_text, system_clock, to_short_text, to_text
from archivist.ids import derived_id, new_id

moments = st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 1), max_value=datetime(9000, 1, 1))  # noqa: DTZ001


@given(moments, moments)
def test_texts_sort_as_the_times_do(first: datetime, second: datetime) -> None:
    assert (to_text(first) < to_text(second)) == (first < second)
    assert from_text(to_text(first)) == from_text(to_short_text(first)) == first


def test_a_zone_is_turned_into_utc_and_a_missing_one_means_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert to_short_text(datetime(2026, 1, 1, 2, tzinfo=east)) == "2026-01-01T00:00:00Z"
    assert from_text("2026-01-01T00:00:00") == datetime(2026, 1, 1, tzinfo=UTC)


def test_new_ids_sort_by_time_and_do_not_repeat() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ids = [new_id(start + timedelta(milliseconds=step)) for step in range(200)]
    assert ids == sorted(ids)
    assert len({new_id(start) for _ in range(500)}) == 500
    assert {len(each) for each in ids} == {26}


def test_derived_ids_repeat_and_tell_their_parts_apart() -> None:
    assert derived_id("a", "b") == derived_id("a", "b")
    assert derived_id("a", "b") != derived_id("ab", "")


def test_the_system_clock_is_aware() -> None:
    assert system_clock().tzinfo is UTC
