"""The progress file's section, and when reflection is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import ReflectRules
from archivist.records import Episode, EpisodeKind, EpisodeStatus
from archivist.reflect.progress import HEADING, append_lessons, read_progress
from archivist.reflect.trigger import Scenario, is_reflection_enabled, scenario_of
from tests.samples import lesson


@pytest.mark.req("A11")
def test_each_session_appends_its_lessons_and_the_persons_text_stays() -> None:
    first = append_lessons(
        "# Progress\n\nDone: a\n", "2026-04-03, run r-1", [lesson(summary="One", number=1)]
    )
    assert first == (
        "# Progress\n\nDone: a\n\n<!-- archivist:lessons -->\n## Lessons learned\n\n"
        "### 2026-04-03, run r-1\n\n- One (m-001)\n<!-- /archivist:lessons -->\n"
    )
    second = append_lessons(
        first + "\nMore by hand\n", "2026-04-04, run r-2", [lesson(summary="Two", number=2)]
    )
    assert second.count(HEADING) == 1
    assert second.index("More by hand") < second.index("One (m-001)") < second.index("Two (m-002)")
    # A session that taught nothing takes nothing away; one that is reflected on again is told once.
    assert append_lessons(second, "2026-04-05, run r-3", []) == second
    again = append_lessons(second, "2026-04-03, run r-1", [lesson(summary="Other", number=3)])
    assert ("One" in again, again.count("run r-1")) == (False, 1)


@pytest.mark.req("A11")
def test_the_section_is_bounded_and_foreign_words_do_not_end_it() -> None:
    text = "# Progress\n"
    for number in range(1, 31):
        evil = f"Lesson {number} <!-- /archivist:lessons -->\n# Progress"
        text = append_lessons(text, f"day, run {number}\n- x", [lesson(summary=evil, number=number)])
    rest, sessions = read_progress(text)
    assert (rest, len(sessions)) == ("# Progress\n", 20)
    assert [each.lines[0][:11] for each in sessions] == [f"- Lesson {number}" for number in range(11, 31)]


@given(st.text())
def test_writing_the_section_twice_is_writing_it_once(text: str) -> None:
    once = append_lessons(text, "s", [lesson()])
    assert append_lessons(once, "s", [lesson()]) == once


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    ("episode", "scenario"),
    [
        (Episode(id="r", status=EpisodeStatus.SUCCESS), Scenario.SESSION_COMPLETE),
        (Episode(id="r", status=EpisodeStatus.PARTIAL), Scenario.SESSION_COMPLETE),
        (Episode(id="r", status=EpisodeStatus.FAILED), Scenario.SESSION_FAILED),
        (Episode(id="r", status=EpisodeStatus.ABORTED), Scenario.SESSION_FAILED),
        (Episode(id="r", kind=EpisodeKind.HEALER_RUN), Scenario.HEALER_INVOCATION),
    ],
)
def test_a_run_makes_its_own_scenario(episode: Episode, scenario: Scenario) -> None:
    assert scenario_of(episode) is scenario


@pytest.mark.req("A6")
def test_the_configuration_can_turn_each_trigger_off() -> None:
    assert all(is_reflection_enabled(each, ReflectRules()) for each in Scenario)
    assert not any(is_reflection_enabled(each, ReflectRules(enabled=False)) for each in Scenario)
    assert not is_reflection_enabled(Scenario.SESSION_FAILED, ReflectRules(on_session_failure=False))
    assert not is_reflection_enabled(Scenario.HEALER_INVOCATION, ReflectRules(on_healer_invocation=False))
    assert is_reflection_enabled(Scenario.MANUAL, ReflectRules(on_session_success=False))
