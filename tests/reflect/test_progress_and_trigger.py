"""The progress file's section, and when reflection is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import ReflectRules
from archivist.records import Episode, EpisodeKind, EpisodeStatus
from archivist.reflect.summary import HEADING, with_lessons
from archivist.reflect.trigger import Scenario, is_reflection_enabled, scenario_of
from tests.samples import lesson


@pytest.mark.req("A11")
def test_the_section_is_replaced_and_not_repeated() -> None:
    first = with_lessons("# Progress\n\nDone: a\n", [lesson(summary="One", number=1)])
    assert first == (
        "# Progress\n\nDone: a\n\n<!-- archivist:lessons -->\n## Lessons learned\n\n- One (m-001)\n"
        "<!-- /archivist:lessons -->\n"
    )
    second = with_lessons(first + "\nMore by hand\n", [lesson(summary="Two", number=2)])
    assert second.count(HEADING) == 1
    assert ("One" in second, "Two" in second, "More by hand" in second) == (False, True, True)
    assert with_lessons(second, []).count(HEADING) == 0


@given(st.text())
def test_writing_the_section_twice_is_writing_it_once(text: str) -> None:
    once = with_lessons(text, [lesson()])
    assert with_lessons(once, [lesson()]) == once


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
