"""The report over verdicts, what it proposes, and its chart."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.audit.lift import LiftConclusion
from archivist.audit.report import RecommendedStep, Report, ReportRow, build_report, recommend_steps
from archivist.charts import HEIGHT, WIDTH, draw_report_chart
from archivist.records import Effect, Following, Verdict
from tests.samples import WHEN

NAMES = {"a": ("m-001", "Helps"), "b": ("m-002", "Does nothing"), "c": ("m-003", "Harms")}
# Per lesson the chance of failure when it is withheld and when it is told.
TRUTH = {"a": (0.6, 0.1), "b": (0.3, 0.3), "c": (0.1, 0.6)}


def _verdict(
    lesson: str,
    run: int,
    *,
    failed: bool | None,
    following: Following = Following.FOLLOWED,
    effect: Effect = Effect.UNKNOWN,
) -> Verdict:
    if failed is not None and following is not Following.WITHHELD:
        effect = Effect.INEFFECTIVE if failed else Effect.HELPFUL
    time = WHEN + timedelta(hours=9 * run)
    return Verdict(
        run=f"r{run:04}", lesson=lesson, time=time, effect=effect, following=following, failed=failed
    )


def _simulated(runs: int, seed: int = 3) -> list[Verdict]:
    die = random.Random(seed)  # noqa: S311 -- a simulation, not a secret
    found = []
    for run in range(runs):
        for lesson, (without, with_) in TRUTH.items():
            is_held = die.random() < 0.1
            failed = die.random() < (without if is_held else with_)
            following = Following.WITHHELD if is_held else Following.FOLLOWED
            found.append(_verdict(lesson, run, failed=failed, following=following))
    return found


@pytest.mark.req("N2")
def test_over_500_runs_the_report_finds_which_lesson_helps_and_which_harms() -> None:
    found = build_report(_simulated(500), NAMES, 0.1)
    assert [line.lesson for line in found.lessons] == ["m-003", "m-002", "m-001"]
    words = {line.lesson: line.lift.conclusion for line in found.lessons}
    assert words == {
        "m-001": LiftConclusion.HELPS,
        "m-002": LiftConclusion.NOT_SHOWN,
        "m-003": LiftConclusion.HARMS,
    }
    for line in found.lessons:
        without, with_ = TRUTH[{"m-001": "a", "m-002": "b", "m-003": "c"}[line.lesson]]
        low, high = line.lift.interval or (1, -1)
        assert low <= without - with_ <= high
        assert line.told + line.lift.arms.withheld == 500
        assert line.posterior.interval[0] < 1 - with_ < line.posterior.interval[1]
    steps = {each.lesson: each.step for each in recommend_steps(found)}
    assert (steps["m-003"], steps["m-001"]) == (RecommendedStep.RETIRE, RecommendedStep.KEEP)


@pytest.mark.req("N2")
def test_the_runs_needed_shrink_as_runs_come_in() -> None:
    few, more = (build_report(_simulated(runs), NAMES, 0.1).lessons[-1].lift for runs in (8, 500))
    assert few.runs_needed is None or few.runs_needed > 0
    assert more.runs_needed == 0


@pytest.mark.req("F9")
def test_the_report_counts_per_lesson_per_month_and_in_all() -> None:
    given_ = [
        _verdict("a", 1, failed=False),
        _verdict("a", 2, failed=True),
        _verdict("a", 90, failed=False, following=Following.UNKNOWN),
        _verdict("b", 90, failed=None, following=Following.NOT_APPLICABLE, effect=Effect.NOT_NEEDED),
        _verdict("b", 91, failed=True, following=Following.WITHHELD),
        _verdict("z", 91, failed=True, following=Following.IGNORED),
    ]
    found = build_report(given_, NAMES, 0.1)
    assert [line.lesson for line in found.lessons] == ["z", "m-001", "m-002"]
    last, first, unjudged = found.lessons
    assert (first.helpful, first.ineffective, first.told, first.followed) == (2, 1, 3, 2)
    # Three runs are too few for a share.
    assert first.share is None
    assert (unjudged.share, unjudged.told, unjudged.not_needed, unjudged.lift.arms.withheld) == (
        None,
        1,
        1,
        1,
    )
    assert (last.summary, last.not_followed, last.ineffective) == ("", 1, 1)
    assert [(line.lesson, line.helpful, line.ineffective) for line in found.months] == [
        ("2026-04", 1, 1),
        ("2026-05", 1, 1),
    ]
    assert (found.total.helpful, found.total.ineffective, found.total.told) == (2, 2, 5)


@given(st.randoms(use_true_random=False))
def test_the_order_of_verdicts_does_not_matter(die: random.Random) -> None:
    verdicts = _simulated(30)
    shuffled = list(verdicts)
    die.shuffle(shuffled)
    assert build_report(shuffled, NAMES, 0.1) == build_report(verdicts, NAMES, 0.1)


def test_few_months_are_shown_by_runs() -> None:
    names = [line.lesson for line in build_report(_simulated(50), NAMES).total.periods]
    assert names == ["1-20", "21-40", "41-50"]
    assert [line.lesson for line in build_report(_simulated(300), NAMES).total.periods][:2] == [
        "2026-04",
        "2026-05",
    ]


def _step(line: ReportRow) -> RecommendedStep:
    (found,) = recommend_steps(Report((line,), (), line))
    assert found.reason
    return found.step


@pytest.mark.req("N2")
def test_lessons_that_do_not_help_are_to_be_retired_or_reworded() -> None:
    def line(helpful: int, ineffective: int, **counts: Any) -> ReportRow:
        return ReportRow("m-001", "", helpful, ineffective, told=helpful + ineffective, **counts)

    assert _step(line(0, 8)) is RecommendedStep.RETIRE
    assert _step(line(0, 7)) is RecommendedStep.KEEP
    assert _step(line(4, 5, followed=6, failed_though=4)) is RecommendedStep.REWORD
    assert _step(line(4, 5, not_followed=6, followed=2, failed_heedless=4)) is RecommendedStep.REWORD
    assert _step(line(9, 1, followed=9)) is RecommendedStep.KEEP


def test_a_lesson_that_prevents_some_failures_is_not_retired_for_the_rest() -> None:
    told = [_verdict("a", run, failed=run % 10 < 7) for run in range(200)]
    withheld = [_verdict("a", run, failed=True, following=Following.WITHHELD) for run in range(200, 260)]
    found = build_report([*told, *withheld], NAMES)
    assert found.lessons[0].posterior.interval[1] < 0.5
    assert [each.step for each in recommend_steps(found)] == [RecommendedStep.REWORD]


# Chart

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.req("N2")
@pytest.mark.parametrize("runs", [0, 1, 50, 500])
def test_the_chart_is_an_accessible_image_within_its_frame(runs: int) -> None:
    chart = draw_report_chart(build_report(_simulated(runs), NAMES).total, "Did <it> & help?")
    root = ElementTree.fromstring(chart)  # noqa: S314 our own
    assert (root.get("width"), root.get("height"), root.get("role")) == (str(WIDTH), str(HEIGHT), "img")
    assert root.findtext(f"{_SVG}title") == "Did <it> & help?"
    described = root.findtext(f"{_SVG}desc") or ""
    assert ("fails withheld" in described) is (runs >= 50)
    for shape in (*root.iter(f"{_SVG}polyline"), *root.iter(f"{_SVG}polygon")):
        for pair in str(shape.get("points")).split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    assert len(list(root.iter(f"{_SVG}polyline"))) >= (3 if runs >= 50 else 0)


def test_where_nothing_is_known_no_line_is_drawn() -> None:
    verdicts = [_verdict("a", run, failed=False) for run in (*range(20), *range(40, 60))]
    gap = [_verdict("a", run, failed=None, following=Following.UNKNOWN) for run in range(20, 40)]
    image = draw_report_chart(build_report([*verdicts, *gap], NAMES).total)
    assert image.count("<polyline") == 4
