"""Tests that pass and fail with nothing changed."""

from __future__ import annotations

import re

import pytest

from archivist.reading.run import RunReading

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
    told = "“test_retry” of `pytest` fails now and then (“AssertionError: assert 3 == 4”): run it again"
    assert _flaky(FAIL, sh("ls"), PASS) == [told]
    assert _flaky(PASS, FAIL) == [told]
    unnamed = sh("pytest tests/test_net.py", "E   AssertionError: assert 3 == 4\n1 failed in 1s\n", 1)
    assert "passes and fails with nothing changed" in _flaky(unnamed, PASS)[0]


NAME = "Cart waits for the stock"
# A test that fails as each runner says it: of time that ran out, and of a wrong result; and that passes.
RUNNERS = {
    "mocha": (
        "  44 passing (7s)\n  1 failing\n\n  1) Cart\n       waits for the stock:\n\n{}\n",
        "     Error: Timeout of 2000ms exceeded. For async tests, call done()",
        "     AssertionError [ERR_ASSERTION]: 3 == 4",
        "  45 passing (7s)",
    ),
    "jest": (
        "  \u25cf Cart \u203a waits for the stock\n\n{}\n\nTests:       1 failed, 44 passed, 45 total",
        '    thrown: "Exceeded timeout of 5000 ms for a test."',
        "    expect(received).toBe(expected)",
        "Tests:       45 passed, 45 total",
    ),
    "vitest": (
        " FAIL  src/cart.test.ts > Cart > waits for the stock\n{}\n      Tests  1 failed | 44 passed (45)",
        "Error: Test timed out in 5000ms.",
        "AssertionError: expected 3 to be 4",
        "      Tests  45 passed (45)",
    ),
    "bun": (
        "{}\n 44 pass\n 1 fail\nRan 45 tests across 9 files.",
        "(fail) Cart > waits for the stock [5001.20ms]\n  ^ this test timed out after 5000ms.",
        "error: expect(received).toBe(expected)\n(fail) Cart > waits for the stock [1.20ms]",
        " 45 pass\n 0 fail\nRan 45 tests across 9 files.",
    ),
    "cargo": (
        "---- cart::waits stdout ----\n\nthread 'cart::waits' panicked at src/cart.rs:9:9:\n{}\nfailures: 1",
        "operation timed out after 5s",
        "assertion `left == right` failed",
        "test result: ok. 45 passed; 0 failed; 0 ignored",
    ),
    "go": (
        "--- FAIL: TestCart (0.00s)\n{}\nFAIL\nFAIL\texample.com/shop\t0.1s",
        "    cart_test.go:12: timed out waiting for the stock",
        "    cart_test.go:12: assertion failed: got 3",
        "ok  \texample.com/shop\t0.1s",
    ),
    "gradle": (
        "CartTest > waits() FAILED\n{}\n45 tests completed, 1 failed",
        "    org.junit.runners.model.TestTimedOutException: test timed out after 1000 milliseconds",
        "    org.opentest4j.AssertionFailedError: expected: <3> but was: <4>",
        "BUILD SUCCESSFUL in 3s",
    ),
}
CALLS = {"cargo": "cargo test", "go": "go test ./...", "gradle": "./gradlew test"}


@pytest.mark.parametrize("runner", RUNNERS)
def test_only_the_error_that_passed_again_is_chance(runner: str) -> None:
    report, late, wrong, passes = RUNNERS[runner]
    call = CALLS.get(runner, "pnpm test")
    times_out, is_wrong = (sh(call, report.format(error), 1) for error in (late, wrong))
    chance = [run(times_out, sh(call, passes), name=f"run-{at}", task=f"Add {at}") for at in range(2)]
    change = edit("/srv/widget/src/cart.ts", "3", "4")
    real = [run(change, is_wrong, name=f"run-{at}", task=f"Add {at}") for at in (2, 3, 4)]
    (told,) = _tagged(*chance)
    assert " times out now and then (“" in told
    assert told.endswith(": run it again")
    # A wrong result was never run again with success.
    assert not _tagged(*chance, *real[:1])
    (told,) = _tagged(*chance, *real, chance[0])
    assert "times out now and then" in told
    assert re.search(r": run it again; an? (?:\w+Error|failed assertion) there is real$", told)


def _tagged(*runs: RunReading) -> list[str]:
    return [each.summary for each in learnt(*runs) if "flaky" in each.tags]


def test_the_call_that_is_named_is_not_the_one_filter_of_a_run() -> None:
    report, late, _, passes = RUNNERS["mocha"]
    chosen = "pnpm test -- --grep 'Panel'"
    (told,) = _flaky(sh(chosen, report.format(late), 1), sh(chosen, passes))
    assert (
        told == f"“{NAME}” of `pnpm test` times out now and then (“Timeout of 2000ms exceeded”): run it again"
    )


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
