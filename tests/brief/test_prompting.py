"""What the words of a task bring up."""

from __future__ import annotations

import pytest

from archivist.brief.rank import project_of
from archivist.recall.keywords import keywords

TASKS = [
    ("lint", "Fix the parser of nested comments"),
    ("sun", "Fix the rounding of the angles at noon"),
    ("sun", "Add the angles of the moon"),
    ("shop", "Fix the parser of price lists"),
]


@pytest.mark.parametrize(
    ("task", "project"),
    [
        ("Fix the parser of nested comments", "lint"),
        ("The parser drops nested comments", "lint"),
        ("Fix the rounding of invoices", ""),
        ("Fix the parser", ""),
        ("Fix it", ""),
        ("", ""),
        # As much of one as of another.
        ("nested comments, price lists", ""),
    ],
)
def test_a_task_is_of_the_project_whose_tasks_say_the_same(task: str, project: str) -> None:
    assert project_of(keywords(task), TASKS) == project


def test_a_long_text_that_happens_to_hold_the_words_does_not_say_the_same() -> None:
    long = " ".join(f"word{number}" for number in range(200))
    assert project_of(keywords("word1 word2 word3"), [("one", long)]) == ""
