"""The learning curve: failures per run over groups of consecutive runs, with intervals."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

import pytest

from archivist import Bank
from archivist.audit.curve import count_failures, failed_steps, learning_curve
from archivist.charts import NARROW, draw_curve
from archivist.records import Episode
from archivist.records.words import NOTES
from tests.samples import WHEN


def test_a_failure_under_two_names_counts_once() -> None:
    one = {"command": "npm test", "line": "missing script"}
    notes = {
        "failures": {"shop|usage:npm": one, "shop|remedy:npm run": one, "shop|git": {"command": "git push"}}
    }
    assert count_failures(notes) == 2
    assert count_failures({"failures": {}}) == 0
    assert count_failures(None) is count_failures({}) is None


def test_fewer_runs_than_two_groups_make_no_curve() -> None:
    assert learning_curve([(WHEN, 3)] * 9) == ()


def test_the_interval_holds_the_mean_and_is_never_below_zero() -> None:
    runs = [(WHEN + timedelta(hours=at), count) for at, count in enumerate([4, 3, 5, 4, 4, 0, 1, 0, 0, 1])]
    first, last = learning_curve(runs)
    assert (first.runs, first.mean) == (5, 4.0)
    assert last.mean == pytest.approx(0.4)
    # Student's interval of 4, 3, 5, 4, 4: 4 ± 2.78 · 0.707 / √5.
    assert first.low == pytest.approx(3.12, abs=0.01)
    assert first.high == pytest.approx(4.88, abs=0.01)
    assert last.low == 0.0
    assert learning_curve([(WHEN, 2)] * 400)[-1].high == 2.0


def test_the_bank_counts_own_runs_of_all_projects_or_one(bank: Bank) -> None:
    with bank.transaction() as writer:
        for at in range(12):
            failures = {f"k{number}": {"command": f"c{number}"} for number in range(3 if at < 6 else 1)}
            when = WHEN + timedelta(hours=at)
            project = "shop" if at % 2 else "till"
            extra: dict[str, object] = {NOTES: {"failures": failures}}
            run = Episode(id=f"run-{at:02d}", project=project, started=when, finished=when, extra=extra)
            writer.put(run, "reflect")
    assert [round(point.mean, 1) for point in bank.audits.learning_curve()] == [3.0, 1.0]
    assert bank.audits.learning_curve("shop") == ()
    chart = draw_curve(bank.audits.learning_curve())
    assert "Mean of about 6 runs a point, 95 % interval; 12 runs." in chart


def _marker_places(chart: str) -> list[float]:
    """Return where on the axis the points of a curve stand."""
    line = re.search(r'<polyline points="([^"]+)"', chart)
    assert line
    return [float(pair.partition(",")[0]) for pair in line[1].split()]


def test_a_line_divides_a_period_from_what_it_is_compared_with() -> None:
    points = learning_curve([(WHEN + timedelta(days=at), 2) for at in range(24)])
    divided = draw_curve(points, since=WHEN + timedelta(days=12))
    assert ">this period<" in divided
    assert "stroke-dasharray" in divided
    assert "this period" not in draw_curve(points)
    assert "stroke-dasharray" not in draw_curve(points, began=WHEN - timedelta(days=1))


def test_points_stand_where_they_are_in_time_and_the_first_and_last_have_their_day() -> None:
    days = [*range(10), *range(100, 110)]
    points = learning_curve([(WHEN + timedelta(days=at), 2) for at in days])
    chart = draw_curve(points, began=WHEN + timedelta(days=50))
    first, second, third, fourth = _marker_places(chart)
    assert third - second > 5 * (second - first)
    assert second - first >= 16
    assert fourth <= 720
    for point in (points[0], points[-1]):
        assert chart.count(f">{point.since:%-d %b}<") == 1
    assert ">memory began<" in chart
    mark = re.search(r'<line x1="([\d.]+)"[^>]+stroke-dasharray', chart)
    assert mark
    assert second < float(mark[1]) < third
    # Runs of one moment still stand beside each other.
    alike = _marker_places(draw_curve(learning_curve([(WHEN, 1)] * 60)))
    assert all(later > earlier for earlier, later in pairwise(alike))


def test_the_caption_of_a_narrow_curve_is_broken_into_lines() -> None:
    points = learning_curve([(WHEN + timedelta(days=at), 2) for at in range(24)])
    texts = re.findall(r'<text [^>]*font-size="(\d+)"[^>]*>([^<]+)<', draw_curve(points, width=NARROW))
    assert max(len(text) for _, text in texts) <= 48
    assert min(int(size) for size, _ in texts) >= 11


def test_notes_name_the_steps_that_failed() -> None:
    notes = {"failures": {"a": {"n": 2, "events": ["r#3", "r#9", "r#12"]}, "b": {"events": None}, "c": 7}}
    assert failed_steps(notes, "r") == {3, 9}
    assert failed_steps(None, "r") == set()
