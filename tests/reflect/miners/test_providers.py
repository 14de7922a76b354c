"""One provider failing where another does well."""

from __future__ import annotations

import pytest

from archivist.records import Category, Scope

from .scripted import learnt, run, sh

SLOW = sh("bun test", "", 124, duration_s=120.0)
GOOD = sh("bun test", "12 pass", 0, duration_s=60.0)


def _quirks(*readings: object) -> list[str]:
    found = learnt(*readings)  # type: ignore[arg-type]
    return [each.summary for each in found if each.category is Category.PROVIDER_QUIRK]


def test_the_provider_that_times_out_is_compared_with_the_one_that_does_not() -> None:
    slow = run(SLOW, SLOW, SLOW, provider="claude-code")
    good = run(GOOD, name="run-2", provider="minimal")
    expected = (
        "`bun test` timed out 3 times with claude-code, while minimal finished it: "
        "run it in parts or use minimal"
    )
    assert _quirks(slow, good) == [expected]
    assert _quirks(good, slow) == [expected]


def test_the_lesson_is_for_that_provider() -> None:
    found = learnt(run(GOOD, provider="minimal"), run(SLOW, SLOW, provider="claude-code", name="run-2"))
    quirk = next(each for each in found if each.category is Category.PROVIDER_QUIRK)
    assert (quirk.scope, quirk.provider, quirk.tool) == (Scope.PROVIDER, "claude-code", "bun test")
    assert set(quirk.events) == {"run-2#0", "run-2#1"}


def test_one_timeout_is_thin() -> None:
    assert _quirks(run(GOOD, provider="minimal"), run(SLOW, provider="claude-code", name="run-2")) == []


def test_nobody_doing_better_is_no_comparison() -> None:
    both = run(SLOW, SLOW, provider="minimal"), run(SLOW, SLOW, provider="claude-code", name="run-2")
    assert _quirks(*both) == []


def test_a_run_of_the_better_provider_is_no_further_sighting() -> None:
    slow = run(SLOW, SLOW, SLOW, provider="claude-code")
    good = [run(GOOD, name=f"good-{number}", provider="minimal") for number in range(3)]
    assert len(_quirks(slow, good[0])) == 1
    assert _quirks(slow, good[0], good[1]) == []
    again = run(SLOW, name="slow-2", provider="claude-code")
    assert len(_quirks(slow, *good, again)) == 1


def test_two_harnesses_of_one_model_are_compared() -> None:
    slow = run(SLOW, SLOW, model="opus", provider="opencode")
    good = run(GOOD, name="run-2", model="opus", provider="claude-code")
    expected = (
        "`bun test` timed out 2 times with opencode, while claude-code finished it: "
        "run it in parts or use claude-code"
    )
    assert _quirks(slow, good) == [expected]


@pytest.mark.req("A18")
def test_the_names_of_agents_are_no_providers() -> None:
    slow = run(SLOW, SLOW, agent="coder", provider="")
    good = run(GOOD, name="run-2", agent="tester", provider="")
    assert _quirks(slow, good) == []
    # Two agents in one harness are the same provider.
    one = run(SLOW, SLOW, agent="coder", provider="claude-code")
    other = run(GOOD, name="run-2", agent="tester", provider="claude-code")
    assert _quirks(one, other) == []


def test_two_models_in_one_harness_are_compared() -> None:
    slow = run(SLOW, SLOW, model="opus", provider="opencode")
    good = run(GOOD, name="run-2", model="gpt-5", provider="opencode")
    (quirk,) = (each for each in learnt(slow, good) if each.category is Category.PROVIDER_QUIRK)
    assert "timed out 2 times with opus, while gpt-5 finished it" in quirk.summary
    assert quirk.provider == "opencode"


def test_what_differs_in_both_is_laid_to_the_harness() -> None:
    slow = run(SLOW, SLOW, model="opus", provider="claude-code")
    good = run(GOOD, name="run-2", model="gpt-5", provider="codex")
    (quirk,) = _quirks(slow, good)
    assert "timed out 2 times with claude-code, while codex finished it" in quirk
