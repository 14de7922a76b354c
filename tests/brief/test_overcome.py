"""A warning is told as long as its failure lasts, and to those whom it can meet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from archivist import Bank
from archivist.brief.moments_service import AT_FAILURE
from archivist.brief.works import Habits, RunOutcome
from archivist.recall.query import Query
from archivist.records import Episode, Event, EventKind
from tests.conftest import START

OUTAGE = "ssh: connect to host git.example port 22: Connection timed out\nfatal: Could not read from remote"
WORKED = "To git.example:shop.git\n   1a2b3c4..5d6e7f8  main -> main"


def _run(bank: Bank, number: int, *calls: tuple[str, str, int], tool: str = "Bash", **fields: Any) -> None:
    when = START + timedelta(days=number)
    kind = EventKind.EDIT if tool != "Bash" else EventKind.TOOL_CALL
    events = [
        Event(
            run=f"run-{number}",
            seq=seq,
            kind=kind,
            tool=tool,
            text=text if tool == "Bash" else "",
            target=text,
            output=output,
            exit_code=code if tool == "Bash" else None,
            is_error=bool(code),
        )
        for seq, (text, output, code) in enumerate(calls)
    ]
    given: dict[str, Any] = {"project": "shop", "started": when, "finished": when, **fields}
    bank.capture(Episode(id=f"run-{number}", extra={"cwd": "/home/x/shop"}, **given), events)
    bank.reflect(f"run-{number}")


def _told(bank: Bank, provider: str = "") -> str:
    brief = bank.sessions.brief_session("", "shop", provider=provider)
    return "\n".join(each.lesson.summary for each in brief.chosen)


@pytest.mark.req("A17", "N1")
def test_a_warning_falls_silent_once_its_call_went_well_in_two_runs(bank: Bank) -> None:
    refused = ("release stage", "release: the vault is sealed for this account", 3)
    for number in range(6):
        _run(bank, number, refused)
    assert "release stage" in _told(bank)
    for number in (6, 7):
        assert "release stage" in _told(bank)
        _run(bank, number, ("release stage", "staged 4 files", 0))
    assert "release stage" not in _told(bank)
    (left,) = [each for each in bank.brief(repo="shop").left if "release stage" in each.lesson.lesson.summary]
    assert left.reason == "out of date: its call went well in 2 runs since it was last met"
    moments, out_of_date = bank.moments.list_told("shop")
    assert moments[left.lesson.lesson.id] == AT_FAILURE
    assert f"out of date: {out_of_date[left.lesson.lesson.id]}" == left.reason
    for form in ("known-issues", "yaml", "markdown"):
        assert "release stage" not in bank.brief(form=form).text
        assert left.reason in [each.reason for each in bank.brief(form=form).left]
    assert bank.sessions.brief_prompt("next", "shop", "stage it") is None
    # Nobody forgot it: it is told again when it comes again.
    _run(bank, 9, refused)
    assert "release stage" in _told(bank)
    assert bank.sessions.brief_prompt("next", "shop", "stage it") is not None


@pytest.mark.req("A17", "N1")
def test_an_outage_is_over_once_a_run_reached_the_server(bank: Bank) -> None:
    for number in range(6):
        _run(bank, number, ("git push origin main", OUTAGE, 128))
    assert "has not reached its server in any run" in _told(bank)
    _run(bank, 6, ("git add -A && git commit -m x && git push origin main", WORKED, 0))
    assert "git push" not in _told(bank)
    # When it comes again, no run is said to be unable to do it.
    _run(bank, 9, ("git push origin main", OUTAGE, 128))
    assert "does not reach its server at times" in _told(bank)
    assert "in any run" not in _told(bank)


@pytest.mark.req("A17", "N1")
def test_an_outage_of_one_evening_is_told_as_that_and_forbids_no_try(bank: Bank) -> None:
    for number in range(4):
        when = START + timedelta(hours=number)
        _run(bank, number, ("git push origin main", OUTAGE, 128), started=when, finished=when)
    told = _told(bank)
    assert "in 4 runs of one day" in told
    assert "try it once with a short time limit" in told
    assert "in any run" not in told


def test_runs_that_do_something_else_say_nothing_about_it(bank: Bank) -> None:
    for number in range(6):
        _run(bank, number, ("git push origin main", OUTAGE, 128))
    for number in range(6, 9):
        _run(bank, number, ("make build", "built", 0))
    assert "git push" in _told(bank)


def test_a_remedy_is_told_although_runs_do_well_that_follow_it(bank: Bank) -> None:
    refused = "npm error ERESOLVE could not resolve\nnpm error retry with --legacy-peer-deps"
    fixed = "npm install --legacy-peer-deps"
    for number in range(3):
        _run(bank, number, ("npm install", refused, 1), (fixed, "added 3 packages", 0))
    for number in range(3, 7):
        _run(bank, number, (fixed, "added 3 packages", 0))
    assert fixed in _told(bank)


def test_what_an_editing_tool_refuses_is_told_to_the_harness_that_has_it(bank: Bank) -> None:
    refusal = ("src/a.py", "<tool_use_error>String to replace not found in file.</tool_use_error>", 1)
    for number in range(6):
        _run(bank, number, refusal, refusal, refusal, tool="Edit", provider="claude-code")
    assert "Edit tool" in _told(bank, "claude-code")
    assert "Edit tool" not in _told(bank, "codex")


@pytest.mark.req("A17", "N1")
@pytest.mark.parametrize(
    ("tags", "met", "passed", "is_over"),
    [
        # A test that kept failing is mended once two runs of the tests did not meet it.
        (("mocha",), 3, 1, False),
        (("mocha",), 3, 2, True),
        # One that fails now and then passes now and then, the seldomer it fails the longer.
        (("mocha", "flaky"), 5, 2, False),
        (("mocha", "flaky"), 5, 4, False),
        (("mocha", "flaky"), 8, 5, True),
        (("mocha", "flaky"), 2, 5, False),
    ],
)
def test_a_failing_test_falls_silent_once_runs_of_the_tests_do_not_meet_it(
    tags: tuple[str, ...], met: int, passed: int, is_over: bool
) -> None:
    key, other = "shop|test_failure:mocha:test failed:adds", "shop|test_failure:mocha:test failed:drops"
    without = RunOutcome(frozenset([other]), frozenset(), frozenset(["mocha"]))
    with_it = without._replace(failures=frozenset([key]))
    elsewhere = RunOutcome(frozenset(), frozenset(["git"]), frozenset(["git"]))
    runs = [*[without] * passed, *[elsewhere] * 5, *[with_it] * met, *[without] * (8 - met)]
    why = Habits(outcomes=tuple(runs)).explain_overcome(key, tags)
    assert why == (f"{passed} runs of the tests since did not meet it" if is_over else "")


def test_a_test_that_fails_now_and_then_survives_green_and_silent_runs() -> None:
    """As the window of the latest runs moves on, its share changes, though no run tried it."""
    key, tags = "shop|test_failure:mocha:test timed out:probes", ("mocha", "flaky")
    green = RunOutcome(frozenset(), tags_ := frozenset(["mocha"]), tags_)
    red, silent = RunOutcome(frozenset([key]), frozenset(), tags_), RunOutcome(frozenset(), frozenset())
    past = [*[green] * 3, red, green, red, red, green, red, red, *[green] * 4]
    for quiet in range(12):
        assert Habits(outcomes=tuple([*[silent] * quiet, *past][:17])).explain_overcome(key, tags) == ""


def test_what_other_forms_of_a_command_found_is_not_counted_for_its_green_runs(bank: Bank) -> None:
    part, error = "pnpm test -- --grep cart", "src/a.ts(4,{}): error {}: no"
    for number in range(2):
        _run(bank, number, ("pnpm test", error.format(number, "TS2345"), 2))
    for number in range(2, 5):
        _run(bank, number, (part, error.format(number, "TS2339"), 2))
    green = ("pnpm test", "ERROR:cert.cc:807] Error parsing certificate\n3 passing", 0)
    for number in range(5, 9):
        _run(bank, number, green, (part, error.format(9, "TS2345"), 2))
    hit = bank.recall(Query(text="how are the tests run", repo="shop")).hits[0]
    assert hit.text == "test `pnpm test` (passed in 4 of 6 runs; found TS2345 in 2 of 6 runs)"
