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
    run = spoken_run(bank, tmp_path, *TURNS)
    outcome = {"text": "The total of the shop was mended", "events": [0, 4]}
    told: dict[str, Any] = {"outcome": [outcome]}
    told[part] = [*told.get(part, []), {"text": text, "events": events}]
    model = NO_LESSONS if reads_lessons(bank, run) else None
    report, _ = read(bank, run, *filter(None, (model, told, {"wishes": []})))
    lines = {claim.text: claim.reason for claim in report.claims if claim.question == "account"}
    assert lines[text] == reason


def reads_lessons(bank: Bank, run: str) -> bool:
    """Say whether a run is asked for lessons: another answer would be taken for its account."""
    from archivist.reflect.miners.material import gather_material
    from archivist.reflect.model.claimed_failure import all_cases, can_teach
    from archivist.reflect.service import history_of, load_context, read_context

    seen = load_context(bank, run)
    material = gather_material(read_context(seen), history_of(seen))
    return any(can_teach(case, material) for case in all_cases(material))
