"""How often the rules that read a stream's English are right: on known cases, and on unseen ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.stream.labelled import Labelled, known_cases, measure, unseen_cases

# What the rules reach, rounded down: a change that reads less must not pass unnoticed.
KNOWN = {
    "blockers": 1.0,
    "troubles": 1.0,
    "ends of blockers": 1.0,
    "same thing": 1.0,
    "parts of histories": 1.0,
}
UNSEEN = {
    "blockers": 0.7,
    "troubles": 0.65,
    "ends of blockers": 0.4,
    "same thing": 0.63,
    "parts of histories": 0.7,
}


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("load", "floors"), [(known_cases, KNOWN), (unseen_cases, UNSEEN)], ids=("known", "unseen")
)
def test_the_rules_are_as_good_as_they_were(load: Callable[[], Labelled], floors: dict[str, float]) -> None:
    # Only figures are shown: who has read the unseen cases can no longer be measured by them.
    reached = {row: round(tally.f1, 2) for row, tally in measure(load())[0].items()}
    assert {row: floor for row, floor in floors.items() if reached[row] < floor} == {}, reached


@pytest.mark.req("C7")
def test_nothing_untrue_is_told_of_an_unseen_history() -> None:
    parts = measure(unseen_cases())[0]["parts of histories"]
    assert parts.given == parts.right
