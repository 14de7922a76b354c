"""What the words of a task bring up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archivist.brief.rank import everyday_words, match_prompt, project_of
from archivist.recall.keywords import keywords
from archivist.records import Status
from tests.samples import lesson

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


REFUSED_EDIT = lesson(
    summary="the Edit tool refuses text with the wrong number of tabs: `sed -n 1,9l <file>` shows the tabs",
    signature="shop|edit_not_applied:edit:old text not found",
    tool="edit",
)
OVERFLOW = lesson(summary="The invoice table overflows on the settings page", signature="")


def test_what_a_clients_own_tool_refuses_is_told_at_no_prompt() -> None:
    prompt = keywords("the edit button in the settings tab shows the wrong number of items, refuses text")
    assert match_prompt(prompt, [REFUSED_EDIT]) == []
    assert match_prompt(prompt, [replace(REFUSED_EDIT, signature="")]) == [
        replace(REFUSED_EDIT, signature="")
    ]


def test_words_of_every_task_here_match_no_prompt() -> None:
    prompt = keywords("Move the table of the settings page")
    assert match_prompt(prompt, [OVERFLOW]) == [OVERFLOW]
    tasks = [f"Change the settings page, part {number}" for number in range(9)]
    assert everyday_words(tasks) >= {"settings", "page"}
    assert match_prompt(prompt, [OVERFLOW], everyday_words(tasks)) == []
    known = keywords("The invoice table overflows")
    assert match_prompt(known, [OVERFLOW], everyday_words(tasks)) == [OVERFLOW]


def test_the_words_of_two_tasks_are_no_everyday_words() -> None:
    assert everyday_words(["Round invoices", "Round angles"]) == frozenset()


COMMIT = lesson(
    summary="`git commit` and `pnpm check` fail on files below `var/copies/`: ask before you delete them",
    signature="shop|leftover:var/copies",
    status=Status.ACTIVE,
)


@pytest.mark.parametrize(
    ("prompt", "is_told"),
    [
        ("commit", True),
        ("Commit and push, please", True),
        ("run the checks", False),
        ("Explain how we commit the drafts of invoices to the ledger's table", False),
        ("git", False),
    ],
)
def test_an_order_of_few_words_brings_up_what_is_known_of_its_call(prompt: str, is_told: bool) -> None:
    known = [replace(COMMIT, signature=""), replace(COMMIT, status=Status.CANDIDATE)]
    assert match_prompt(keywords(prompt), [COMMIT], frozenset(["commit"])) == [COMMIT] * is_told
    assert match_prompt(keywords(prompt), known, frozenset(["commit"])) == []


def test_an_order_in_the_plural_brings_up_its_call() -> None:
    tests = replace(COMMIT, summary="`cargo test --all <name>` fails (“no such task”): use `mise run test`")
    assert match_prompt(keywords("run the tests"), [tests]) == [tests]
    assert match_prompt(keywords("run cargo"), [tests]) == []
