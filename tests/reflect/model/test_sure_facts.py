"""What is known of a run for sure stays in a model's account of it, and is said once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.records import Usage
from archivist.reflect.model.sure_facts import add_sure_facts
from archivist.reflect.service import load_context, read_context
from archivist.reflect.summary import RunSummary
from tests.reflect.model.runs import reflected_run
from tests.reflect.model.test_claims import read
from tests.reflect.model.test_record import Turn, spoken_run

COST = "it took 26.5 million tokens, 4 times the usual of this project"
REFUSED = "the user refused Bash of `rm -rf dist`"
PULL = "opened pull request “Round the totals”"
MENDED = "`make test` failed once, and passed after changes in `src/shop.py`"


@pytest.mark.req("A8")
@pytest.mark.parametrize(
    ("part", "own", "fact", "is_told"),
    [
        ("failed", "`make test` failed on the total", COST, False),
        ("failed", "It took 26.5 million tokens, 4 times as many as usual in this project", COST, True),
        ("failed", "`make test` failed on the total", REFUSED, False),
        ("failed", "The user did not allow `rm -rf dist`", REFUSED, True),
        ("worked", "A pull request was opened", PULL, False),
        ("worked", "The pull request “Round the totals” was opened", PULL, True),
        ("worked", "An edit of `src/shop.py` mended the total", MENDED, True),
        ("worked", "The linter was set up", MENDED, False),
        ("decisions", "To keep the newest", "the user said: round half to even", False),
        ("decisions", "The user: half is rounded to even", "the user said: round half to even", True),
    ],
)
def test_what_the_account_does_not_tell_is_added(
    bank: Bank, tmp_path: Path, part: str, own: str, fact: str, is_told: bool
) -> None:
    run = reflected_run(bank, tmp_path, [("git status", "On branch main", False)])
    reading = read_context(load_context(bank, run))
    lines: dict[str, Any] = {part: (fact,)}
    story = replace(RunSummary("Done.", (), (), ()), **lines)
    found = add_sure_facts({"outcome": "The shop was mended.", part: (own,)}, story, reading)
    assert found[part] == ((own,) if is_told else (own, fact))


def test_that_a_check_passed_does_not_tell_that_it_failed_before(bank: Bank, tmp_path: Path) -> None:
    run = reflected_run(bank, tmp_path, [("git status", "On branch main", False)])
    reading = read_context(load_context(bank, run))
    account = {"outcome": "Done.", "worked": ("`make test` passed",), "failed": ("The disk was full",)}
    found = add_sure_facts(account, RunSummary("Done.", (), ("`make test` timed out once",), ()), reading)
    assert found["failed"] == ("The disk was full", "`make test` timed out once")


@pytest.mark.req("A8")
@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("The shop is mended and the full suite passed at the end.", ""),
        ("In the end all of the 4 tests were green.", ""),
        ("The shop is mended, and `make test` passed.", ""),
        ("The shop is mended.", " At the end `make test` passed."),
    ],
)
def test_how_a_run_ended_is_said_once(bank: Bank, tmp_path: Path, said: str, outcome: str) -> None:
    turns: list[Turn] = [("user", "Mend the shop"), ("make test", "4 passed", False)]
    run = spoken_run(bank, tmp_path, *turns)
    told = {"outcome": [{"text": said, "events": [0, 1]}]}
    report, _ = read(bank, run, told, {"wishes": []})
    assert not report.drop_reasons
    assert bank.runs.episode(run).summary == f"{said}{outcome}"


@pytest.mark.req("A8")
def test_that_a_check_still_failed_is_said_whatever_the_account_says(bank: Bank, tmp_path: Path) -> None:
    calls = [("make lint", "0 errors", False), ("make test", "Exit code 2\nFAILED test_a.py", True)]
    run = reflected_run(bank, tmp_path, calls)
    told = {"outcome": [{"text": "The linter passed at the end.", "events": [0]}]}
    report, _ = read(bank, run, told)
    assert str(report.account["outcome"]).endswith("`make test` still failed.")


@pytest.mark.req("A8")
def test_a_costly_run_is_told_as_one_by_a_model_too(bank: Bank, tmp_path: Path) -> None:
    calls = [("make test", "Exit code 2\nFAILED test_a.py", True)]
    earlier = [reflected_run(bank, tmp_path, calls, session=f"s-{number}") for number in range(5)]
    run = reflected_run(bank, tmp_path, calls, session="s-9")
    with bank.transaction() as writer:
        for name, tokens in [*((name, 1_000_000) for name in earlier), (run, 4_000_000)]:
            writer.put(replace(bank.runs.episode(name), usage=Usage(input_tokens=tokens)), "capture")
    for name in (*earlier, run):
        bank.reflect(name)
    event = next(event.seq for event in load_context(bank, run).events if event.tool)
    line: dict[str, Any] = {"text": "`make test` failed", "events": [event]}
    lessons: list[Any] = [{"lessons": []}] if any(read_context(load_context(bank, run)).met) else []
    report, _ = read(bank, run, *lessons, {"outcome": [line], "failed": [line]})
    told: Any = report.account["failed"]
    assert told[0] == "`make test` failed"
    assert "it took 4.0 million tokens, 4 times the usual of this project" in told
