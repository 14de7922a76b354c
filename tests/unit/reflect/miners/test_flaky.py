"""Tests that pass and fail with nothing changed."""

from __future__ import annotations

from .scripted import edit, learnt, run, sh

FAIL = sh(
    "pytest tests/test_net.py",
    "E   AssertionError: assert 3 == 4\nFAILED tests/test_net.py::test_retry - Asserti...\n1 failed in 1s\n",
    1,
)
PASS = sh("pytest tests/test_net.py", "1 passed in 1s")


def _flaky(*calls: dict[str, object]) -> list[str]:
    return [each.summary for each in learnt(run(*calls)) if "flaky" in each.tags]


def test_both_outcomes_without_a_change_are_flaky() -> None:
    assert "passes and fails with nothing changed" in _flaky(FAIL, sh("ls"), PASS)[0]
    assert _flaky(PASS, FAIL)


def test_a_change_between_explains_it() -> None:
    assert _flaky(FAIL, edit("/srv/widget/src/net.py", "3", "4"), PASS) == []
    assert _flaky(FAIL, sh("pip install requests"), PASS) == []
    assert _flaky(FAIL, sh("docker compose up -d"), PASS) == []
