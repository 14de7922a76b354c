"""Tests that pass and fail with nothing changed."""

from __future__ import annotations

import pytest

from .scripted import edit, learnt, one, run, sh, user

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


@pytest.mark.parametrize(
    "output",
    [
        str(FAIL["output"]),
        "FAILED tests/test_ws.py::test_reconnect - TimeoutError\n1 failed, 30 passed in 9s\n",
        "E   httpx.ConnectError: [Errno 104] Connection reset by peer\n1 failed in 1s\n",
        "E   KeyError: 'token'\nFAILED tests/test_ws.py::test_auth - KeyError: 'token'\n1 failed in 1s\n",
    ],
)
def test_whatever_the_error_it_is_one_lesson_on_that_failure(output: str) -> None:
    fails, passes = sh("pytest -q", output, 1), sh("pytest -q", "31 passed in 9s")
    first = run(fails, passes, task="Add a")
    (met,) = first.met
    assert one(first).key == met.key
    for later in (run(fails, passes, name="b", task="Add b"), run(fails, name="c", task="Add c")):
        assert one(first, later).summary.endswith("run it again")


def test_a_step_between_is_a_cure_and_a_pause_is_none() -> None:
    assert _flaky(FAIL, sh("sleep 5"), PASS)
    assert _flaky(FAIL, sh("sleep 5 && pytest tests/test_net.py | tail -3", "1 passed in 1s"))
    assert _flaky(FAIL, {"tool": "start_database", "text": "{}"}, PASS) == []


def test_the_user_may_have_done_something_while_speaking() -> None:
    assert _flaky(FAIL, user("I have started the server, try again"), PASS) == []
    assert _flaky(user("Run the tests"), FAIL, PASS)


def test_what_was_missing_did_not_come_by_chance() -> None:
    missing = sh("pytest -q", "E   ModuleNotFoundError: No module named 'freezegun'\n1 error in 1s\n", 4)
    assert _flaky(missing, sh("pytest -q", "12 passed in 1s")) == []


RESET = sh("npm ci", "npm error code ECONNRESET\nnpm error network read ECONNRESET", 1)
INSTALLED = sh("npm ci", "added 300 packages in 9s")


def test_a_moment_that_passed_is_told_when_it_came_again_and_only_with_what_to_do() -> None:
    first = run(RESET, INSTALLED)
    assert learnt(first) == []
    lesson = one(first, run(RESET, INSTALLED, name="run-2"))
    assert lesson.summary == "`npm ci` fails now and then (“npm error code ECONNRESET”): run it again"
    assert lesson.rule.endswith("THEN run it again before anything else")
    assert learnt(first, run(RESET, name="run-2")) == []


def test_what_a_call_overcame_by_itself_is_not_said_to_keep_failing() -> None:
    fails = sh("make deploy", "error: upstream answered 502 (bad gateway), giving up", 2)
    first = run(fails, sh("make deploy", "deployed"), task="Add a")
    assert learnt(first, run(fails, name="run-2", task="Add b")) == []


def test_a_page_that_was_slow_or_refused_says_nothing_to_others() -> None:
    slow = "curl: (28) Operation timed out after 5000 milliseconds"
    url = "curl -sf https://api.example.org/health"
    runs = [
        run(
            sh(url, slow, 28),
            sh(url, "ok"),
            sh("curl -sf https://api.example.org/me", "curl: (22) The requested URL returned error: 401", 22),
            name=name,
        )
        for name in ("a", "b")
    ]
    assert learnt(*runs) == []
