"""How many tests a call ran, which of them failed, and of what, as runners print it."""

from __future__ import annotations

import pytest

from archivist.reading.runner_reports import ASSERTION, TIMEOUT, error_class, read_report, shown_class

PYTEST = """
=================================== FAILURES ===================================
__________________________________ test_retry __________________________________
>       assert 3 == 4
E       AssertionError: assert 3 == 4
=========================== short test summary info ============================
FAILED tests/test_net.py::test_retry - AssertionError: assert 3 == 4
ERROR tests/test_db.py::test_rows - ConnectionError: no server
============ 1 failed, 40 passed, 2 skipped, 1 error in 3.21s =============
"""
UNITTEST = """
======================================================================
FAIL: test_total (tests.test_cart.CartTest)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_cart.py", line 9, in test_total
    self.assertEqual(3, 4)
AssertionError: 3 != 4

----------------------------------------------------------------------
Ran 12 tests in 0.021s

FAILED (failures=1)
"""
JEST = """
FAIL src/cart.test.ts
  \u25cf cart \u203a adds an item

    expect(received).toBe(expected) // Object.is equality

  \u25cf cart \u203a waits for the stock

    thrown: "Exceeded timeout of 5000 ms for a test."

Test Suites: 1 failed, 6 passed, 7 total
Tests:       2 failed, 3 skipped, 45 passed, 50 total
"""
VITEST = """
 FAIL  src/cart.test.ts > cart > adds an item
AssertionError: expected 3 to be 4
 FAIL  src/cart.test.ts > cart > waits
Error: Test timed out in 5000ms.

 Test Files  1 failed | 6 passed (7)
      Tests  2 failed | 45 passed | 3 skipped (50)
"""
MOCHA = """
  45 passing (7s)
  1 pending
  2 failing

  1) Workspace
       opens the folder:

      Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure "done()" is called
      at listOnTimeout (node:internal/timers:581:17)

  2) Panel
       header
         uses full dates:
     AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 test failed.
"""
BUN = """
src/cart.test.ts:
(pass) cart > empty [0.10ms]
12 | expect(1).toBe(2)
error: expect(received).toBe(expected)
      at <anonymous> (src/cart.test.ts:12:3)
(fail) cart > adds an item [0.29ms]
(fail) cart > waits [5001.20ms]
  ^ this test timed out after 5000ms.

 1217 pass
 2 fail
Ran 1219 tests across 56 files. [1367.00ms]
"""
CARGO = """
running 3 tests
test cart::tests::adds ... FAILED
test cart::tests::empty ... ok

failures:

---- cart::tests::adds stdout ----

thread 'cart::tests::adds' (1541) panicked at src/cart.rs:9:9:
assertion `left == right` failed
  left: 3

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.68s

test result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
GO = """
=== RUN   TestCart
=== RUN   TestCart/adds
    cart_test.go:12: got 3, want 4
--- FAIL: TestCart (0.00s)
    --- FAIL: TestCart/adds (0.00s)
        cart_test.go:12: got 3, want 4
--- PASS: TestEmpty (0.00s)
FAIL
FAIL\texample.com/shop/cart\t0.004s
"""
MAVEN = """
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! - in shop.CartTest
[ERROR] shop.CartTest.addsItem -- Time elapsed: 0.01 s <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <3> but was: <4>
[ERROR] Tests run: 41, Failures: 1, Errors: 0, Skipped: 2
"""
GRADLE = """
> Task :test FAILED

CartTest > addsItem() FAILED
    org.junit.runners.model.TestTimedOutException: test timed out after 1000 milliseconds

41 tests completed, 1 failed
"""
TAP = """
ok 1 - opens
not ok 2 - closes
  ---
  error: 'the file is busy'
# tests 2
# pass 1
# fail 1
"""
RSPEC = """
Finished in 0.2 seconds
20 examples, 1 failure

rspec ./spec/cart_spec.rb:9 # Cart adds an item
"""


@pytest.mark.parametrize(
    ("output", "ran", "failed", "failing"),
    [
        (
            PYTEST,
            42,
            2,
            [
                ("tests/test_net.py::test_retry", ASSERTION),
                ("tests/test_db.py::test_rows", "ConnectionError"),
            ],
        ),
        (UNITTEST, 12, 1, [("test_total", ASSERTION)]),
        (
            JEST,
            47,
            2,
            [("cart \u203a adds an item", ASSERTION), ("cart \u203a waits for the stock", TIMEOUT)],
        ),
        (VITEST, 47, 2, [("cart > adds an item", ASSERTION), ("cart > waits", TIMEOUT)]),
        (
            MOCHA,
            47,
            2,
            [("Workspace opens the folder", TIMEOUT), ("Panel header uses full dates", ASSERTION)],
        ),
        (BUN, 1219, 2, [("cart > adds an item", ASSERTION), ("cart > waits", TIMEOUT)]),
        (CARGO, 33, 1, [("cart::tests::adds", ASSERTION)]),
        (GO, 3, 2, [("TestCart/adds", "got-want")]),
        (MAVEN, 39, 1, [("CartTest.addsItem", ASSERTION)]),
        (GRADLE, 41, 1, [("CartTest > addsItem", TIMEOUT)]),
        (TAP, 2, 1, [("closes", "busy")]),
        (RSPEC, 20, 1, [("Cart adds an item", "")]),
    ],
    ids=[
        "pytest",
        "unittest",
        "jest",
        "vitest",
        "mocha",
        "bun",
        "cargo",
        "go",
        "maven",
        "gradle",
        "tap",
        "rspec",
    ],
)
def test_a_report_counts_the_tests_and_names_those_that_failed_with_their_errors(
    output: str, ran: int, failed: int, failing: list[tuple[str, str]]
) -> None:
    report = read_report(output)
    assert [(test.name, error_class(test.error)) for test in report.failing] == failing
    assert (report.ran, report.failed) == (ran, failed)


@pytest.mark.parametrize(
    ("output", "ran"),
    [
        ("41 passed in 3.9s", 41),
        ("6 passed, 40 deselected in 0.4s", 6),
        ("Ran 12 tests in 0.021s\n\nOK", 12),
        ("Tests:       46 skipped, 1 passed, 47 total", 1),
        ("      Tests  5 passed | 45 skipped (50)", 5),
        ("  20 passing (3s)", 20),
        (" 28 pass\n 3 filtered out\n 0 fail\nRan 28 tests across 1 file. [40.00ms]", 28),
        (" 0 fail\nRan 1216 tests across 56 files. [904.00ms]", 1216),
        ("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 1478 filtered out", 2),
        ("--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nok  \texample.com/shop\t0.01s", 2),
        ("[INFO] Tests run: 41, Failures: 0, Errors: 0, Skipped: 2", 39),
        ("CartTest > adds() PASSED\n\nCartTest > drops() PASSED\n\nBUILD SUCCESSFUL in 3s", 2),
        ("\u2139 tests 45\n\u2139 pass 45\n\u2139 fail 0", 45),
        ("OK (45 tests, 100 assertions)", 45),
        ("Passed!  - Failed:     0, Passed:    45, Skipped:     0, Total:    45", 45),
        ("100% tests passed, 0 tests failed out of 45", 45),
        ("ok | 45 passed (3 steps) | 0 failed (1s)", 45),
        # What a test or another program logs is no summary.
        ("[10:02] [Limiter] Task 2 failed: 101 | });", 0),
        ("3 files changed, 2 tests added", 0),
        ("ok  \texample.com/shop\t0.01s", 0),
        ("the check passed 3 times", 0),
    ],
)
def test_what_passed_is_counted_as_far_as_the_runner_says_it(output: str, ran: int) -> None:
    assert read_report(output)[:2] == (ran, 0)


def test_a_class_of_errors_is_called_as_people_call_it() -> None:
    assert shown_class("AssertionError [ERR_ASSERTION]: 3 == 4") == "an AssertionError"
    assert shown_class("expect(received).toBe(expected)") == "a failed assertion"
    assert shown_class("TypeError: x is undefined") == "a TypeError"
    assert shown_class("Timeout of 2000ms exceeded") == "a timeout"
    assert shown_class("got 3, want 4") == ""
