"""Attempts counted: tries, rates with bounds, the course over time, and the picture of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.audit.analytics import (
    GroupBy,
    PeriodUnit,
    Rate,
    analyse_attempts,
    approach_results,
    merge_attempts,
    period_name,
)
from archivist.charts import draw_rate_chart
from archivist.records import Action, Episode, EpisodeStatus, Usage

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
_NUMBERS = count()


def _attempt(
    action: str,
    approach: str = "rewrite",
    *,
    task: str = "T-1",
    agent: str = "a",
    provider: str = "",
    at_h: float = 0,
    duration_ms: int | None = None,
    tokens: int = 0,
) -> Episode:
    number = next(_NUMBERS)
    end = START + timedelta(hours=at_h, microseconds=number)
    return Episode(
        id=f"e-{number:06d}",
        task=task,
        agent=agent,
        provider=provider,
        action=Action(action),
        approach=approach,
        status=EpisodeStatus.PARTIAL,
        started=end - timedelta(milliseconds=duration_ms) if duration_ms is not None else None,
        finished=end,
        usage=Usage(input_tokens=tokens, output_tokens=tokens // 2) if tokens else None,
    )


ATTEMPTS = st.lists(
    st.builds(
        _attempt,
        st.sampled_from([action.value for action in Action]),
        st.sampled_from(["rewrite", "Rewrite ", "patch"]),
        task=st.sampled_from(["T-1", "T-2"]),
        agent=st.sampled_from(["a", "b"]),
        provider=st.sampled_from(["", "p"]),
        at_h=st.integers(0, 2000),
        duration_ms=st.none() | st.integers(0, 10**7),
        tokens=st.integers(0, 1000),
    ),
    max_size=40,
)


@pytest.mark.req("M10")
def test_a_beginning_and_its_end_are_one_try() -> None:
    log = [
        _attempt("attempted"),
        _attempt("failed", duration_ms=500),
        _attempt("retried"),
        _attempt("completed", duration_ms=1500),
        _attempt("completed", "patch"),
        _attempt("attempted", agent="b"),
    ]
    found = merge_attempts(log)
    assert [each.ended for each in found] == [Action.FAILED, Action.COMPLETED, Action.COMPLETED, None]
    rate = analyse_attempts(log, GroupBy.APPROACH).rows[0]
    assert (rate.name, rate.attempts, rate.completed, rate.failed, rate.undecided_count) == (
        "rewrite",
        3,
        1,
        1,
        1,
    )
    assert (rate.share, rate.mean_duration_ms) == (0.5, 1000)


@pytest.mark.req("M10")
@given(ATTEMPTS, st.sampled_from(GroupBy), st.none() | st.sampled_from(PeriodUnit))
def test_every_count_adds_up_in_groups_and_over_time(
    log: list[Episode], by: GroupBy, step: PeriodUnit | None
) -> None:
    found = analyse_attempts(log, by, step)
    ended = [each for each in log if each.action in (Action.COMPLETED, Action.FAILED)]
    assert found.total.completed + found.total.failed == len(ended)
    assert found.total.attempts <= len(log)
    assert found.total.tokens_in == sum(each.usage.input_tokens for each in log if each.usage)
    for name in ("attempts", "completed", "failed", "undecided_count", "tokens_in", "tokens_out"):
        assert sum(getattr(row, name) for row in found.rows) == getattr(found.total, name)
        for row in (*found.rows, found.total) if step else ():
            assert sum(getattr(each, name) for each in row.periods) == getattr(row, name)
    for row in found.rows:
        low, high = row.interval
        assert 0 <= low < high <= 1
        if row.share is not None and 0 < row.share < 1:
            assert low < row.share < high


@given(ATTEMPTS)
def test_what_was_tried_is_told_once_each_and_what_worked_comes_first(log: list[Episode]) -> None:
    found = approach_results(log)
    names = [(each.task, each.approach.casefold().strip()) for each in found]
    assert len(set(names)) == len(names)
    worked = [each.completed - each.failed > 0 for each in found]
    assert worked == sorted(worked, reverse=True)


def test_what_became_of_an_approach_is_told_plainly() -> None:
    log = [
        _attempt("completed", "good"),
        _attempt("completed", "good"),
        _attempt("completed", "once"),
        _attempt("completed", "mixed"),
        _attempt("failed", "mixed"),
        _attempt("attempted", "open"),
        _attempt("failed", "bad"),
        _attempt("failed", "worst"),
        _attempt("failed", "worst"),
    ]
    assert {each.approach: each.verdict for each in approach_results(log)} == {
        "good": "worked every time (2)",
        "once": "worked",
        "mixed": "worked 1 of 2 times, last failed",
        "open": "begun, not known to have ended",
        "bad": "failed",
        "worst": "failed every time (2)",
    }
    best, *_, worst = approach_results(log)
    assert (best.approach, worst.approach) == ("good", "worst")


def test_periods_are_named_so_that_they_sort() -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    assert [period_name(moment, step) for step in PeriodUnit] == ["2027-01-01", "2026-W53", "2027-01"]


@pytest.mark.req("M10")
@given(ATTEMPTS, st.sampled_from(GroupBy), st.none() | st.sampled_from(PeriodUnit))
def test_the_picture_is_well_formed_and_says_in_words_what_it_shows(
    log: list[Episode], by: GroupBy, step: PeriodUnit | None
) -> None:
    found = analyse_attempts(log, by, step)
    picture = ElementTree.fromstring(draw_rate_chart(found))  # noqa: S314 our own text
    words = "".join(picture.itertext())
    assert ("Nothing has ended yet." in words) == (found.total.share is None)
    assert draw_rate_chart(found) == draw_rate_chart(found)


def test_names_in_the_picture_are_escaped_and_cut() -> None:
    log = [_attempt("completed", f"<b>&'{number}\x07" + "long " * 30) for number in range(20)]
    picture = draw_rate_chart(analyse_attempts(log, GroupBy.APPROACH, PeriodUnit.DAY))
    assert "<b>" not in picture
    assert "… and 5 more" in picture
    ElementTree.fromstring(picture)  # noqa: S314 our own text


@pytest.mark.req("M10")
@given(st.integers(0, 400), st.integers(0, 400))
def test_the_bounds_hold_the_share_that_was_seen(completed: int, failed: int) -> None:
    rate = Rate("x", completed + failed, completed, failed)
    low, high = rate.interval
    assert 0 <= low <= (0.5 if rate.share is None else rate.share) <= high <= 1
    assert low < high
    assert (low == 0) is (completed == 0)
    assert (high == 1) is (failed == 0)


def test_the_bounds_are_those_of_wilson() -> None:
    assert [round(bound, 3) for bound in Rate("x", 10, 3, 7).interval] == [0.108, 0.603]
    assert [round(bound, 3) for bound in Rate("x", 1, 0, 1).interval] == [0.0, 0.793]
