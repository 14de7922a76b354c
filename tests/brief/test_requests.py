"""What the user often asks for: counted over the latest runs, each thing shown by what was said."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.reflect.miners.wishes import list_requests
from archivist.reflect.requests import Request
from tests.brief.test_works import _ask


@pytest.mark.req("N1")
def test_each_request_is_shown_by_the_sentence_that_asks_for_it(bank: Bank) -> None:
    tasks = ("Draw the chart", "Speed up the import", "Sort the table", "Mend the login")
    for hours, task in enumerate(tasks):
        wanted = ("Thanks, that is better.\nUpdate the changelog", "commit")
        _ask(bank, f"run-{hours}", f"{task} in the report. It is a long one", *wanted, hours=hours)
    (lesson,) = (each for each in bank.lessons.latest(9) if each.is_request)
    shown = {word: (event.id, event.text) for word, event in bank.lessons.cited_calls(lesson).items()}
    assert {words.lower(): said for words, said in shown.items()} == {
        "“update the changelog” said": ("run-3#1", "Update the changelog"),
        "“commit” said": ("run-3#2", "commit"),
    }


@pytest.mark.parametrize(("runs", "said"), [(39, "39 runs"), (40, "the last 40 runs")])
def test_a_request_says_of_which_latest_runs_it_is_counted(runs: int, said: str) -> None:
    asked = [("commit", tuple(f"r{number}" for number in range(29)))]
    latest: dict[str, list[Request]] = {f"r{number}": [] for number in range(runs)}
    assert list_requests(asked, latest) == f"The user often asks: “commit” (29 of {said})"
