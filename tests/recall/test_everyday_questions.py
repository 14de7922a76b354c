"""Recall on banks of real sessions: what is never said, never found, and answered first."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from archivist import Bank
from archivist.recall.asking import find_purposes
from archivist.recall.query import Query
from archivist.recall.statements import is_remark
from archivist.records import Episode, EpisodeStatus, Event, EventKind
from archivist.records.words import NOTES
from tests.conftest import START, TickingClock

LATER = START + timedelta(days=3)
WORDS = (
    "cache", "queue", "worker", "proxy", "index", "token", "upload", "report", "branch", "schema", "broker",
    "dashboard", "importer",
)  # fmt: skip


def _talk(bank: Bank, run: str, *texts: str, role: str = "user", start: datetime = START) -> None:
    said = Event(run=run, seq=0, kind=EventKind.MESSAGE, role=role)
    events = [
        replace(said, seq=seq, text=text, time=start + timedelta(minutes=seq))
        for seq, text in enumerate(texts)
    ]
    bank.capture(Episode(id=run, started=start), events)


def _embed(bank: Bank) -> None:
    for _ in bank.vectors.embed_waiting():
        pass


def _names(bank: Bank, text: str, **only: Any) -> list[str]:
    return [hit.name for hit in bank.recall(Query(text=text, **only)).hits]


@pytest.mark.parametrize(
    ("earlier", "later", "role"),
    [
        ("incidents are discussed in the channel for fires", "incidents are discussed on the phone", "user"),
        ("Do not add the full names", "Do not add the full name of the agent as well", "user"),
        ("commit", "commit", "user"),
        ("The incidents moved to the phone", "The incidents moved to the channel", "system"),
    ],
)
def test_nothing_is_said_to_be_replaced_without_a_word_of_change(
    bank: Bank, earlier: str, later: str, role: str
) -> None:
    _talk(bank, "r1", earlier, role=role)
    _talk(bank, "r2", later, role=role, start=LATER)
    for question in ("incidents", "full names", "commit"):
        found = bank.recall(Query(text=question, kinds=("event",))).hits
        assert not any(hit.notes for hit in found)


def test_a_mined_lesson_is_replaced_only_by_what_supersedes_it(bank: Bank) -> None:
    for number, error in enumerate(("refuses text that occurs twice", "no longer refuses text, but a file")):
        bank.lessons.add(f"The Edit tool {error}")
        lesson = bank.lessons.get(f"m-{number + 1:03}")
        with bank.transaction() as writer:
            seen = START + timedelta(days=number)
            writer.put(replace(lesson, signature=f"edit|{number}", last_seen=seen), "edit")
    hits = bank.recall(Query(text="the edit tool refuses text")).hits
    assert len(hits) == 2
    assert not any(hit.notes for hit in hits)


def test_a_word_that_no_memory_has_finds_nothing_in_a_bank_of_some_size(bank: Bank) -> None:
    for run, word in enumerate(WORDS):
        _talk(bank, f"r{run}", *(f"the {word} of team {number} was restarted" for number in range(10)))
    _embed(bank)
    assert _names(bank, "kubernetes") == []
    assert _names(bank, "kubernetes ingress") == []
    assert _names(bank, "dashboard")
    assert _names(bank, "kubernetes dashboard")


def test_what_clients_inject_is_found_only_where_events_are_asked_for(bank: Bank) -> None:
    _talk(bank, "r1", "<local-command-stdout>Enabled plan mode</local-command-stdout>", role="system")
    _talk(bank, "r2", "plan mode hides the button")
    _embed(bank)
    assert _names(bank, "plan mode") == ["r2#0"]
    assert {*_names(bank, "plan mode", kinds=("event",))} == {"r1#0", "r2#0"}
    assert _names(bank, "plan mode", role="system") == ["r1#0"]
    assert _names(bank, "plan mode", run="r1") == ["r1#0"]


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("Succeeded: add a button.", "Succeeded: add a button."),
        ("added a button", "success: added a button"),
    ],
)
def test_a_run_says_once_how_it_ended(bank: Bank, summary: str, shown: str) -> None:
    bank.capture(Episode(id="r1", status=EpisodeStatus.SUCCESS, summary=summary), [])
    assert bank.recall(Query(text="button")).hits[0].text == shown


@pytest.mark.parametrize(
    ("question", "purposes"),
    [
        ("how do I run the tests", ("test",)),
        ("test command", ("test",)),
        ("what is the command to run the linter?", ("lint", "fix")),
        ("how to build the extension", ("build",)),
        ("how do I run a single test", ("one test", "test")),
        ("how do I run one test file", ("one test", "test")),
        ("how are the tests run", ("test",)),
        ("how do I start the dev server", ("run",)),
        ("how do I check types", ("types", "check")),
        ("why did the e2e tests fail", ()),
        ("test coverage", ()),
        ("docker build", ()),
        ("how do I write a test", ()),
        ("how to start a session", ()),
        ("how do I fix the login bug", ()),
        ("server", ()),
    ],
)
def test_a_question_for_a_command_is_told_from_others(question: str, purposes: tuple[str, ...]) -> None:
    assert find_purposes(question) == purposes


def test_a_question_for_a_command_is_answered_first_with_what_the_runs_use(bank: Bank) -> None:
    _talk(bank, "r0", "Now let me run the tests and the linter.", role="assistant")
    for number in range(3):
        works = [["test", "make test", "", 1, 0, 1], ["build", "make all", "", 1, 0, 1]]
        ended = START + timedelta(days=number)
        run = Episode(id=f"w{number}", project="shop", finished=ended, extra={NOTES: {"works": works}})
        with bank.transaction() as writer:
            writer.put(run, "capture")
    first, *others = bank.recall("how do I run the tests?").hits
    assert (first.kind, first.text) == ("command", "test `make test` (passed in 3 runs)")
    assert (first.name, first.repo, first.score) == ("w2", "shop", 1.0)
    assert [hit.name for hit in others] == ["r0#0"]
    assert bank.recall(Query(text="how do I run the tests?", limit=1)).hits == (first,)
    asked = Query(text="how do I run the tests?", kinds=("event",)), "why did the tests run", "lint the code"
    assert all(hit.kind != "command" for each in asked for hit in bank.recall(each).hits)
    with bank.transaction() as writer:
        for number in range(3, 23):
            writer.put(replace(run, id=f"w{number}", finished=ended + timedelta(hours=number)), "capture")
    (first, *_) = bank.recall("how do I run the tests?").hits
    assert first.text == "test `make test` (passed in 20 runs), of the latest 20 runs"


def test_the_end_of_what_an_answer_names_is_found_without_a_word_of_the_question(
    bank: Bank, clock: TickingClock
) -> None:
    bank.lessons.add("The library for background jobs is Sidekiq", repo="shop")
    for number in range(70):
        clock.now += timedelta(hours=1)
        bank.lessons.add(f"Library number {number} runs {WORDS[number % 13]} jobs well", repo="shop")
    bank.lessons.add("Sidekiq was ripped out in favour of GoodJob", repo="shop")
    bank.lessons.add("Sidekiq is gone", repo="blog")
    question = Query(text="Which library do we have for background jobs?", repo="shop", limit=5)
    hits = bank.recall(question).hits
    assert [hit.name for hit in hits[:2]] == ["m-072", "m-001"]
    assert hits[1].notes == ("replaced by m-072: it says “in favour”",)
    # Who asks for the past gets the past.
    past = bank.recall(question._replace(text="Which library did we have for background jobs?")).hits
    assert [hit.name for hit in past[:1]] == ["m-001"]
    away = bank.recall(question._replace(repo="", other_repos=frozenset({"shop", "blog"}))).hits
    assert away == ()


@pytest.mark.parametrize(
    ("text", "is_only"),
    [
        ("Now run the tests.", True),
        ("Now let me also run the full test suite:", True),
        ("All 28 tests pass. Now run lint:", True),
        ("All passing. Let me run the tests one more time to confirm.", True),
        ("I\u2019m rerunning the full suite to see the final state.", True),
        ("Perfect! I'll commit this.", True),
        ("Now the tests run in parallel.", False),
        ("The tests run with `make test`. Let me start them.", False),
        ("The suite is run twice. Now let me look at the second run.", False),
        ("I'll use the old runner because the new one needs a server.", False),
        ("All tests pass.", False),
        ("Testing needs a running database.", False),
    ],
)
def test_what_only_announces_the_next_step_is_told_from_what_states_something(
    text: str, is_only: bool
) -> None:
    assert is_remark(text) is is_only


def test_what_an_agent_announces_stands_below_what_was_stated(bank: Bank) -> None:
    remarks = ("Now run the tests.", "Let me run the tests:", "All good. I'll run the tests again.")
    _talk(bank, "r1", *remarks, role="assistant")
    stated = "the tests of the shop are run against a database in a container"
    for run, word in enumerate(WORDS):
        _talk(bank, f"w{run}", f"the {word} of the shop was restarted")
    _talk(bank, "r2", stated, role="assistant")
    _embed(bank)
    assert _names(bank, "how are the tests run")[0] == "r2#0"
    # Who asks what the agent did asks for its remarks.
    assert _names(bank, "did you run the tests")[0].startswith("r1#")


def test_why_something_fails_is_not_answered_with_the_failure_of_something_else(bank: Bank) -> None:
    for number, summary in enumerate(
        (
            "the Task tool refuses a call: \u201cunknown task: deploy\u201d",
            "`make lint` fails (\u201cdeploy.py: line too long\u201d): run `make format` first",
            "`make deploy` fails on a dirty tree: commit first (worked in 3 runs)",
        )
    ):
        bank.lessons.add(summary)
        lesson = bank.lessons.get(f"m-{number + 1:03}")
        with bank.transaction() as writer:
            writer.put(replace(lesson, signature=f"shop|{number}"), "edit")
    _embed(bank)
    assert _names(bank, "why does the deploy fail")[0] == "m-003"
    # Who asks for the error itself gets it.
    assert _names(bank, "unknown task: deploy")[0] == "m-001"
