"""A question that is an error finds the call that printed it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Episode, Event, EventKind, Evidence
from archivist.records.words import NOTES
from tests.conftest import START

OUTPUT = (
    "$ tsc --noEmit\n"
    + "src/app/checked.ts is fine\n" * 400
    + "src/panel.ts(41,1): error TS1128: Declaration"
    " or statement expected.\n ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command failed with exit code 2: tsc\n"
)
QUESTIONS = [
    "TS1128", "ts1128", "`TS1128`", "ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL", "Declaration or statement expected",
    '"Declaration or statement expected."',
]  # fmt: skip


@pytest.fixture
def shop(bank: Bank) -> Bank:
    """Return a bank with a failing call, one that passed, and talk about other things."""
    said = Event(run="r1", seq=0, kind=EventKind.MESSAGE, role="user", text="Mend the panel of the extension")
    call = Event(run="r1", seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text="pnpm check", output=OUTPUT)
    failed = Event(
        run="r1",
        seq=2,
        kind=EventKind.TOOL_CALL,
        tool="Bash",
        text="pnpm -r check",
        output=OUTPUT,
        is_error=True,
    )
    bank.capture(Episode(id="r1", project="shop"), [said, call, failed])
    for number in range(30):
        text = f"We expect that the statement of table {number} has a declaration"
        talk = Event(run=f"t{number}", seq=0, kind=EventKind.MESSAGE, role="user", text=text)
        bank.capture(Episode(id=f"t{number}", project="shop"), [talk])
    for _ in bank.vectors.embed_waiting():
        pass
    return bank


@pytest.mark.parametrize("question", [each for each in QUESTIONS if " " not in each])
def test_an_error_code_finds_the_call_that_failed_with_it(shop: Bank, question: str) -> None:
    first = shop.recall(question).hits[0]
    assert (first.kind, first.name) == ("event", "r1#2")
    assert first.notes[0].startswith("the call failed with: ")
    assert question.strip("`").lower() in first.notes[0].lower()


def test_an_error_text_that_nothing_else_answers_finds_the_call(bank: Bank) -> None:
    failed = Event(
        run="r1",
        seq=1,
        kind=EventKind.TOOL_CALL,
        tool="Bash",
        text="pnpm check",
        output=OUTPUT,
        is_error=True,
    )
    bank.capture(Episode(id="r1"), [failed])
    for question in QUESTIONS:
        assert [hit.name for hit in bank.recall(question).hits] == ["r1#1"]
    assert bank.recall("Declaration of independence").hits == ()
    assert bank.recall("statement or declaration expected").hits == ()
    assert bank.recall(Query(text="TS1128", kinds=("lesson",))).hits == ()


def test_what_other_repositories_met_is_left_out(shop: Bank) -> None:
    assert shop.recall(Query(text="TS1128", repo="shop")).hits[0].name == "r1#2"
    failed = Event(
        run="o1", seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text="tsc", output="TS2307", is_error=True
    )
    shop.capture(Episode(id="o1", project="other"), [failed])
    assert shop.recall("TS2307").hits[0].name == "o1#1"
    assert "o1#1" not in [hit.name for hit in shop.recall(Query(text="TS2307", repo="shop")).hits]


def test_what_people_said_of_an_error_comes_alone(shop: Bank) -> None:
    said = Event(
        run="r9", seq=0, kind=EventKind.MESSAGE, role="user", text="TS1128 means a bracket is missing"
    )
    shop.capture(Episode(id="r9", project="shop"), [said])
    found = shop.recall("TS1128").hits
    assert found[0].name == "r9#0"
    assert "r1#2" not in [hit.name for hit in found]


def test_a_command_without_the_word_of_the_question_is_not_its_first_answer(bank: Bank) -> None:
    said = Event(
        run="r0", seq=0, kind=EventKind.MESSAGE, role="user", text="Start the database, then e2e tests"
    )
    bank.capture(Episode(id="r0"), [said])
    works: list[list[object]] = [["test", "mise run test:unit", "", 1, 0, 1]]

    def run(number: int) -> None:
        ended = START + timedelta(days=number)
        episode = Episode(id=f"w{number}", project="shop", finished=ended, extra={NOTES: {"works": works}})
        with bank.transaction() as writer:
            writer.put(episode, "capture")

    for number in range(3):
        run(number)
    first, last = bank.recall("how do I run an e2e test").hits
    assert (first.name, last.text) == ("r0#0", "test `mise run test:unit` (passed in 3 runs)")
    assert last.score < first.score
    works[0][1] = "mise run test:e2e"
    for number in range(3, 12):
        run(number)
    first = bank.recall("how do I run an e2e test").hits[0]
    assert first.text.startswith("test `mise run test:e2e` (passed in ")
    assert first.score == 1.0


@pytest.mark.parametrize(
    "question",
    [
        "ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command failed with exit code 2: tsc",
        "the check fails with TS1128 in the panel",
        "src/panel.ts(97,4): error TS1128: Declaration or statement expected.",
        "error: Declaration or statement expected\n ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL",
    ],
)
def test_a_question_that_holds_an_error_finds_the_calls_and_the_lessons_that_cite_them(
    shop: Bank, question: str
) -> None:
    lesson = shop.lessons.add("Close the bracket of the panel first")
    other = shop.lessons.add("The statement of a table needs a declaration that we expect")
    with shop.transaction() as writer:
        writer.put(replace(lesson, evidence=Evidence(events=("r1#2",))), "reflect")
    hits = shop.recall(question).hits
    assert [hit.name for hit in hits[:2]] == ["r1#2", lesson.short_id]
    assert [hit.name for hit in hits].count(lesson.short_id) == 1
    of_lessons = shop.recall(Query(text=question, kinds=("lesson",))).hits
    assert of_lessons[0].name == lesson.short_id
    assert other.short_id not in [hit.name for hit in hits[:2]]


def test_a_question_without_an_error_is_answered_as_before(shop: Bank) -> None:
    asked = "do we expect a declaration of table 3"
    assert "r1#2" not in [hit.name for hit in shop.recall(asked).hits]


def test_a_healer_without_a_remedy_hears_which_runs_met_the_error(shop: Bank) -> None:
    met = shop.briefs.heal("src/other.ts(1,1): error TS1128: Declaration or statement expected.")
    assert met.why_no_lesson == "no remedy known for this error; earlier runs met it: r1#2"
    assert shop.briefs.heal("error TS9999: unheard of").why_no_lesson == "no remedy known for this error"
