"""Ways to run some of the tests that run them all."""

from __future__ import annotations

import pytest

from archivist.reading.run import RunReading, read_run
from archivist.records import Episode, Event

from .scripted import PROJECT, Call, learnt, sh

ALL = 45


def _read(*calls: Call, name: str = "run-1", after: tuple[RunReading, ...] = ()) -> RunReading:
    """Read a run as the service does: with what earlier runs noted."""
    events = [
        Event(**{"run": name, "seq": seq, "kind": "tool_call", **call}) for seq, call in enumerate(calls)
    ]
    earlier = [each.digest for each in after]
    return read_run(
        Episode(id=name, project=PROJECT, task=name), events, suspicion=lambda *_: "", earlier=earlier
    )


def _told(*runs: RunReading) -> list[str]:
    return [each.summary for each in learnt(*runs) if "filter" in each.tags]


def _passing(runner: str, tests: int) -> str:
    return {
        "pytest": f"{tests} passed in 3.21s",
        "jest": f"Tests:       {tests} passed, {tests} total",
        "vitest": f"      Tests  {tests} passed ({tests})",
        "mocha": f"  {tests} passing (7s)",
        "bun": f" {tests} pass\n 0 fail\nRan {tests} tests across 9 files. [40.00ms]",
        "cargo": f"test result: ok. {tests} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        "go": "\n".join(f"--- PASS: Test{number} (0.00s)" for number in range(tests)),
        "junit": f"[INFO] Tests run: {tests}, Failures: 0, Errors: 0, Skipped: 0",
        "gradle": f"{tests} tests completed, 0 failed",
    }[runner]


CASES = [
    ("mocha", "pnpm test", "pnpm test -- --grep '{}'", "pnpm test --grep '{}'", "<test>"),
    ("bun", "bun run test", "bun run test src/{}.test.ts", "bun test src/{}.test.ts", "<file>"),
    ("jest", "npm test", "npm test -t '{}'", "npm test -- -t '{}'", "<test>"),
    ("vitest", "yarn test", "yarn test -- -t '{}'", "yarn test -t '{}'", "<test>"),
    ("pytest", "make test", "make test tests/test_{}.py", "python -m pytest tests/test_{}.py", "<file>"),
    ("cargo", "just test", "just test {}_test", "cargo test {}_test", "<test>"),
    ("go", "make test", "make test -run 'Test{}'", "go test -v ./... -run 'Test{}'", "<test>"),
    ("junit", "make test", "make test -Dtest='{}Test'", "mvn test -Dtest='{}Test'", "<test>"),
    ("gradle", "make test", "make test --tests '{}'", "./gradlew test --tests '{}'", "<test>"),
]


@pytest.mark.parametrize(
    ("runner", "whole", "broken", "right", "mark"), CASES, ids=[each[0] for each in CASES]
)
def test_a_filter_that_chooses_nothing_is_told_with_the_form_that_chooses(
    runner: str, whole: str, broken: str, right: str, mark: str
) -> None:
    calls = [sh(whole, _passing(runner, ALL)), sh(broken.format("cart"), _passing(runner, ALL))]
    (told,) = _told(_read(*calls, sh(right.format("cart"), _passing(runner, 6))))
    form, better = told.split("`")[1::2]
    assert told == f"`{form}` runs all tests: use `{better}`"
    assert form.replace(mark, "").strip("' -=").startswith(whole)
    assert better.split()[0] == right.split()[0]
    # One call may name the whole suite, and nothing shows that it does not.
    assert _told(_read(*calls)) == []
    assert _told(_read(*calls, sh(broken.format("cart"), _passing(runner, ALL)))) == []
    # Two that name different tests cannot.
    (told,) = _told(_read(*calls, sh(broken.format("stock"), _passing(runner, ALL + 1))))
    assert told == f"`{form}` runs all tests, whatever it is given"


def _grep(name: str, tests: int, dashes: str = "-- ") -> Call:
    return sh(f"pnpm test {dashes}--grep '{name}'", _passing("mocha", tests))


def test_two_runs_show_it_together_and_a_third_what_to_do_instead() -> None:
    first = _read(sh("pnpm test", _passing("mocha", ALL)), _grep("Cart", ALL))
    second = _read(_grep("Stock", ALL + 2), name="run-2", after=(first,))
    assert _told(first, second) == ["`pnpm test -- --grep <test>` runs all tests, whatever it is given"]
    third = _read(_grep("Order", 6, dashes=""), name="run-3", after=(first, second))
    fourth = _read(_grep("Order", ALL), name="run-4", after=(first, second, third))
    (lesson,) = (each for each in learnt(first, second, third, fourth) if "filter" in each.tags)
    assert lesson.summary == "`pnpm test -- --grep <test>` runs all tests: use `pnpm test --grep <test>`"
    assert lesson.remedies == ("pnpm test --grep <test>",)


def test_its_evidence_is_of_both_calls() -> None:
    reading = _read(
        sh("bun run test", _passing("bun", 1300)),
        sh("bun run test a.test.ts", _passing("bun", 1300)),
        sh("bun test a.test.ts", _passing("bun", 28)),
    )
    (lesson,) = learnt(reading)
    assert {*lesson.events} == {act.event.id for act in reading.acts[1:]}


@pytest.mark.parametrize(
    "calls",
    [
        # Leaving some out runs nearly all.
        [
            sh("pytest -k 'not slow'", _passing("pytest", 44)),
            sh("pytest -k 'not net'", _passing("pytest", 43)),
        ],
        [sh("pytest --deselect tests/test_a.py", _passing("pytest", 44))] * 2,
        # One file holds the whole suite.
        [sh("pytest tests/test_all.py", _passing("pytest", ALL))] * 2,
        # The one names what the other names, and more.
        [
            sh("pytest -k 'cart'", _passing("pytest", 44)),
            sh("pytest -k 'cart or net'", _passing("pytest", 45)),
        ],
        # The filter works.
        [sh("pytest -k cart", "6 passed, 39 deselected in 1s"), sh("pytest -k net", "5 passed in 1s")],
        # It ran out of another suite, whose size nobody knows.
        [
            sh("tox -e e2e tests/a_test.py", _passing("pytest", ALL)),
            sh("tox -e e2e b_test.py", "45 passed in 1s"),
        ],
        # Two commands of one line are summed up together.
        [sh("pytest -k cart && pytest -k net", _passing("pytest", 44))] * 2,
    ],
)
def test_a_filter_that_may_well_choose_all_is_not_blamed(calls: list[Call]) -> None:
    assert _told(_read(sh("pytest", _passing("pytest", ALL)), *calls)) == []


def test_a_small_suite_is_soon_all_of_it() -> None:
    calls = [sh(f"pytest -k {name}", _passing("pytest", 4)) for name in ("cart", "net")]
    assert _told(_read(sh("pytest", _passing("pytest", 4)), *calls)) == []
