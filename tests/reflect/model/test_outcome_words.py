"""What an account says of outcomes and counts is what its events show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from tests.reflect.model.runs import NO_LESSONS
from tests.reflect.model.test_claims import OPPOSITE, read
from tests.reflect.model.test_record import Turn, spoken_run

NOT_SHOWN = "names something that its events do not show"
UNDECIDED = "its events show nothing that was decided"
FAILING = "Exit code 1\nFAILED tests/test_api.py::test_total - AssertionError"
# 0 asks, 1 fails, 2 fails, 3 edits, 4 passes, 5 speaks, 6 commits, 7 lists.
TURNS: list[Turn] = [
    ("user", "Please mend the total of the shop"),
    ("pytest tests/test_api.py", FAILING, True),
    ("pytest tests/test_api.py -x", FAILING, True),
    ("sed -i 's/a/b/' src/shop.py", "", False),
    ("pytest tests/test_api.py", "9 passed", False),
    "The checks of the pull request are still red: run 10881 failed.",
    ("git commit -m 'Round the total'", "[main 1a2b3c4] Round the total\n 1 file changed", False),
    ("gh run list", "10990 main queued", False),
]


# 1 stops before the tests, 2 finds none, 3 counts both, 5 passes, 6 only builds.
FILTERED: list[Turn] = [
    ("user", "Please mend the total of the shop"),
    ("pnpm lint && pnpm test", "Exit code 1\n$ eslint src\nsrc/a.ts 3:1 error no-unused-vars", True),
    ("pnpm test --grep none", "0 passing (2ms)", False),
    ("pnpm test", "Exit code 1\n1328 passing\n1 failing\nAssertionError: 3 != 4", True),
    ("sed -i 's/a/b/' src/a.ts", "", False),
    ("pnpm test", "1329 passing (2s)", False),
    ("pnpm compile", "> tsc", False),
]
NO_FAILURE = "cites no failure that the run met"


@pytest.mark.parametrize(
    ("part", "text", "events", "reason"),
    [
        ("failed", "`pnpm test --grep none` matched nothing, so it did not run the 1329 tests", [2, 5], ""),
        ("failed", "`pnpm compile` builds only, so it did not run the 1329 tests", [5, 6], ""),
        ("failed", "`pnpm lint && pnpm test` stopped, so it did not run the 1329 tests", [1, 5], ""),
        ("failed", "`pnpm test --grep none` failed, so it did not run the 1329 tests", [2, 5], OPPOSITE),
        ("failed", "The build did not work", [6], NO_FAILURE),
        ("failed", "The code was built by `pnpm compile`", [6], NO_FAILURE),
        ("failed", "1328 tests passed and one failed", [3], ""),
        ("failed", "The linter passed and the tests failed", [1], OPPOSITE),
    ],
)
def test_what_a_line_concludes_of_what_was_not_done_needs_no_failure(
    bank: Bank, tmp_path: Path, part: str, text: str, events: list[int], reason: str
) -> None:
    assert judge(bank, tmp_path, FILTERED, part, text, events) == reason


@pytest.mark.parametrize(
    ("part", "text", "events", "reason"),
    [
        ("failed", "`pytest tests/test_api.py` failed on the total", [4, 5], OPPOSITE),
        ("failed", "`pytest tests/test_api.py` failed on the total", [1], ""),
        ("failed", "`pytest tests/test_api.py` failed twice", [1], OPPOSITE),
        ("failed", "The test failed three times", [1, 2], OPPOSITE),
        ("failed", "`pytest` failed twice", [1, 2], ""),
        ("failed", "The checks failed locally", [4, 5], OPPOSITE),
        ("worked", "The pull request went green", [5], OPPOSITE),
        ("worked", "All tests passed", [4, 2], ""),
        ("worked", "All tests passed", [4, 1], ""),
        ("outcome", "All tests passed", [1, 2], OPPOSITE),
        ("outcome", "Run 10881 was queued", [7], NOT_SHOWN),
        ("outcome", "Run 10990 was queued", [7], ""),
        ("decisions", "The agent changed `src/shop.py`", [3], ""),
        ("decisions", "The agent committed a rounded total", [6], ""),
        ("decisions", "The agent listed the runs with `gh run list`", [7], UNDECIDED),
    ],
)
def test_a_line_that_its_events_contradict_is_dropped_for_its_true_reason(
    bank: Bank, tmp_path: Path, part: str, text: str, events: list[int], reason: str
) -> None:
    assert judge(bank, tmp_path, TURNS, part, text, events) == reason


def judge(bank: Bank, folder: Path, turns: list[Turn], part: str, text: str, events: list[int]) -> str:
    """Return why a line of an account of a run is dropped."""
    run = spoken_run(bank, folder, *turns)
    outcome = {"text": "The total of the shop was mended", "events": [0, 4]}
    told: dict[str, Any] = {"outcome": [outcome]}
    told[part] = [*told.get(part, []), {"text": text, "events": events}]
    model = NO_LESSONS if reads_lessons(bank, run) else None
    report, _ = read(bank, run, *filter(None, (model, told, {"wishes": []})))
    lines = {claim.text: claim.reason for claim in report.claims if claim.question == "account"}
    return lines[text]


def reads_lessons(bank: Bank, run: str) -> bool:
    """Say whether a run is asked for lessons: another answer would be taken for its account."""
    from archivist.reflect.miners.material import gather_material
    from archivist.reflect.model.claimed_failure import all_cases, can_teach
    from archivist.reflect.service import history_of, load_context, read_context

    seen = load_context(bank, run)
    material = gather_material(read_context(seen), history_of(seen))
    return any(can_teach(case, material) for case in all_cases(material))
