"""Which tests failed last, over the calls of a run and over runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from archivist.reading.run import RunReading, read_run
from archivist.reading.suite_state import follow_tests
from archivist.records import Episode, Event, EventKind
from tests.reflect.miners.scripted import Call, edit, sh

NAME = "Cart waits for the stock"
RED = "  44 passing (7s)\n  1 failing\n\n  1) Cart\n       waits for the stock:\n\n     Error: 3 == 4\n"
GREEN = "  45 passing (7s)"
CHANGE = edit("/srv/shop/src/cart.ts", "3", "4")


def _read(*calls: Call) -> RunReading:
    events = [
        Event(**{"run": "r", "seq": seq, "kind": EventKind.TOOL_CALL, **call})
        for seq, call in enumerate(calls)
    ]
    return read_run(Episode(id="r", project="shop"), events, suspicion=lambda *_: "")


def _state(*runs: Sequence[Call]) -> tuple[tuple[str, ...], frozenset[str]]:
    digests = [_read(*calls).digest for calls in runs]
    return follow_tests((digest["tests"], digest["mended"]) for digest in digests)


@pytest.mark.parametrize(
    "later",
    [
        [sh("pnpm test", GREEN)],
        # A run of all tests that was larger, and one whose tests were chosen by this name.
        [sh("pnpm test:ci", "  60 passing (7s)")],
        [sh("pnpm test --grep 'Cart waits'", "  1 passing (7s)")],
    ],
)
def test_a_test_that_passed_since_fails_no_more(later: list[Call]) -> None:
    assert _state([sh("pnpm test", RED, 1)])[0] == (NAME,)
    for runs in ([[sh("pnpm test", RED, 1)], later], [[sh("pnpm test", RED, 1), CHANGE, *later]]):
        state = _state(*runs)
        assert state == ((), frozenset(["cart-waits-stock"]))


@pytest.mark.parametrize(
    "later",
    [
        # Other tests, fewer tests, another folder, a call that ran none, and one that names not all.
        [sh("pnpm test --grep 'Panel'", "  6 passing (7s)")],
        [sh("pnpm test:unit", "  20 passing (7s)")],
        [sh("cargo test", "test result: ok. 90 passed; 0 failed")],
        [sh("cd web && pnpm test", GREEN)],
        [sh("pnpm test", "src/a.ts(1,2): error TS2345: not assignable", 2)],
        [sh("pnpm test", "  43 passing (7s)\n  2 failing\n", 1)],
        [sh("pnpm test || true", "")],
    ],
)
def test_what_did_not_run_it_says_nothing_about_it(later: list[Call]) -> None:
    assert _state([sh("pnpm test", RED, 1)], later)[0] == (NAME,)


def test_what_was_changed_after_it_failed_may_have_mended_it() -> None:
    assert _state([sh("pnpm test", RED, 1), CHANGE])[0] == ()
    # Until it fails again.
    assert _state([sh("pnpm test", RED, 1), CHANGE], [sh("pnpm test", RED, 1)])[0] == (NAME,)


def test_a_test_that_failed_again_is_not_mended() -> None:
    state = _state([sh("pnpm test", RED, 1), CHANGE, sh("pnpm test", GREEN)], [sh("pnpm test", RED, 1)])
    assert state == ((NAME,), frozenset())


def test_failures_without_names_are_not_known() -> None:
    assert _state([sh("pnpm test", "  43 passing (7s)\n  2 failing\n", 1)]) == ((), frozenset())


@pytest.mark.parametrize(
    ("call", "output", "name"),
    [
        (
            "pytest",
            "FAILED tests/test_net.py::test_retry[a] - AssertionError\n1 failed, 3 passed in 1s",
            "test_retry",
        ),
        ("cargo test", "test net::retry ... FAILED\n\ntest result: FAILED. 3 passed; 1 failed", "net-retry"),
    ],
)
def test_a_mended_test_is_known_by_the_words_of_its_failures_key(call: str, output: str, name: str) -> None:
    reading = _read(
        sh(call, output, 1), CHANGE, sh(call, "4 passed in 1s\ntest result: ok. 4 passed; 0 failed")
    )
    assert reading.digest["mended"] == [name]
    (key,) = (key for key in reading.digest["failures"] if "test_failure:" in key)
    assert f"{key.rpartition(':')[2]}-".startswith(f"{name}-")
