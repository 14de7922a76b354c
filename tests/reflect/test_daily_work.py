"""What runs of daily work show: slips of indentation, noise of passing tests, tests that fail by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from archivist import Bank
from archivist.reading.calls import read_tool_calls
from archivist.recall.query import Query
from archivist.records import Episode, Event, EventKind, Lesson, Usage
from tests.conftest import START

FILE = "/home/x/shop/src/cart.ts"
NOISE = "ERROR: Failed parsing extensions of the certificate"
CHANCE = "now and then"
PROBE = (
    "  1 failing\n  1) Workspace Probe\n       enables a repository:\n     Error: Timeout of 2000ms exceeded."
)


def _call(command: str, code: int, output: str) -> Event:
    return Event(run="", seq=0, kind=EventKind.TOOL_CALL, tool="Bash", text=command, target=command,
                 output=output, exit_code=code)  # fmt: skip


def _edit(old: str, *, is_refused: bool = False) -> Event:
    said = "String to replace not found in file." if is_refused else "The file has been updated."
    return Event(run="", seq=0, kind=EventKind.EDIT, tool="Edit", text="", target=FILE, output=said,
                 is_error=is_refused, extra={"old": old, "new": f"{old} "})  # fmt: skip


def _learn(bank: Bank, number: int, events: Sequence[Event], model: str = "") -> None:
    name, when = f"run-{number}", START + timedelta(hours=number)
    episode = Episode(id=name, project="shop", task=f"task {number}", provider="claude-code", model=model,
                      started=when, finished=when, extra={"cwd": "/home/x/shop"})  # fmt: skip
    placed = [replace(event, run=name, seq=seq) for seq, event in enumerate(events)]
    bank.capture(episode, placed)
    bank.reflect(name)


def _lessons(bank: Bank) -> list[Lesson]:
    return list(bank.lessons.query(Query(repo="shop", limit=50)))


def _brief(bank: Bank) -> str:
    return bank.brief(repo="shop", fence=False).text


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    ("given", "right", "told"),
    [
        ("\t\tsum(a);\n\t\treturn a;", "\t\t\tsum(a);\n\t\t\treturn a;", "wrong number of tabs"),
        ("  sum(a);\n  return a;", "    sum(a);\n    return a;", "wrong indentation"),
        ("sum(b);\nreturn b;", "sum(a);\nreturn a;", "old text not found"),
    ],
)
def test_why_edits_are_refused_is_found_in_the_file_as_the_run_saw_it(
    bank: Bank, given: str, right: str, told: str
) -> None:
    for number in range(3):
        _learn(bank, number, [_edit(given, is_refused=True), _edit(right)])
    assert told in _brief(bank)


@pytest.mark.req("N1")
def test_a_line_that_passing_tests_print_too_is_no_failure(bank: Bank) -> None:
    _learn(bank, 0, [_call("pnpm test", 0, f"{NOISE}\n12 passing")])
    for number in (1, 2, 3):
        _learn(bank, number, [_call("pnpm test", 1, f"{NOISE}\nAssertionError: {number} is not 0")])
    assert not [lesson.summary for lesson in _lessons(bank) if "parsing extensions" in lesson.summary]


@pytest.mark.req("N1")
def test_a_line_of_no_known_kind_does_not_acquit_the_next_run(bank: Bank) -> None:
    for number in range(4):
        _learn(bank, number, [_call("pnpm test", 1, f"{NOISE}\nnothing else")])
    assert not [lesson.summary for lesson in _lessons(bank) if "not your bug" in lesson.summary]


@pytest.mark.req("N1")
def test_a_test_that_fails_in_task_after_task_and_passed_untouched_fails_by_chance(bank: Bank) -> None:
    _learn(bank, 0, [_call("pnpm test", 1, PROBE), _call("pnpm test", 0, "12 passing")])
    for number in (1, 2):
        _learn(
            bank, number, [_call("pnpm test", 1, PROBE), _edit("a = 1;"), _call("pnpm test", 0, "12 passing")]
        )
    told = [lesson.summary for lesson in _lessons(bank) if CHANCE in lesson.summary]
    problem = f"“Workspace Probe enables a repository” of `pnpm test` times out {CHANCE}"
    assert told == [f"{problem} (“Timeout of 2000ms exceeded”): run it again"]


@pytest.mark.req("N1")
def test_a_way_to_run_one_test_that_runs_them_all_is_not_told(bank: Bank) -> None:
    for number in range(3):
        _learn(
            bank,
            number,
            [
                _call("pnpm test", 0, "50 passing (7s)"),
                _call('pnpm test -- --grep "Cart"', 0, "50 passing (7s)"),
                _call("pnpm lint", 0, "no findings"),
            ],
        )
    assert "--grep" not in _brief(bank)


@pytest.mark.req("N1")
def test_a_filter_that_chooses_nothing_stands_in_no_other_lesson(bank: Bank) -> None:
    refused = "Error: connect ECONNREFUSED 127.0.0.1:5432"
    chosen = [_call(f'pnpm test -- --grep "{name}"', 0, "50 passing (7s)") for name in ("Cart", "Stock")]
    told = ""
    for number in range(3):
        calls = [
            _call('pnpm test -- --grep "Cart"', 1, refused),
            _call("make db-up", 0, "database is up"),
            _call('pnpm test -- --grep "Cart"', 0, "50 passing (7s)"),
            _call("pnpm test", 0, "50 passing (7s)"),
        ]
        _learn(bank, number, [*calls, *(chosen if number == 2 else ())])
        told = _brief(bank)
        assert ("runs all tests" in told) == (number == 2)
    assert told.count("--grep") == 1
    assert "`pnpm test` fails" in told
    assert "run `make db-up` first" in told


@pytest.mark.req("N1")
def test_a_way_to_run_one_test_that_chooses_it_is_told(bank: Bank) -> None:
    for number in range(3):
        _learn(
            bank,
            number,
            [_call("pnpm test", 0, "50 passing (7s)"), _call('pnpm test --grep "Cart"', 0, "6 passing (1s)")],
        )
    assert "one test `pnpm test --grep <test>`" in _brief(bank)


@pytest.mark.req("N1")
def test_what_a_folder_of_leftovers_lacks_the_project_does_not_lack(bank: Bank) -> None:
    missing = "error: Cannot find module 'cheerio' from '/home/x/shop/tmp/clones/other/a.test.ts'"
    for number in range(3):
        _learn(bank, number, [_call("bun run test", 1, missing)])
    assert "cheerio" not in _brief(bank)
    assert "module not found" not in _brief(bank)


@pytest.mark.req("N1")
def test_a_folder_of_leftovers_that_the_checks_look_at_is_told(bank: Bank) -> None:
    missing = "error: Cannot find module 'cheerio' from '/home/x/shop/tmp/clones/a-{0}/a.test.ts'"
    for number, command in enumerate(("bun run test", 'git commit -m "Add a page"', "bun run test")):
        _learn(bank, number, [_call(command, 1, missing.format(number))])
    (told,) = (lesson.summary for lesson in _lessons(bank))
    assert told == (
        "`bun run test` and `git commit` fail on files below `tmp/clones/`: they were left there and are not"
        " your bug: ask before you delete them"
    )
    assert told in _brief(bank)


@pytest.mark.req("N1", "F6")
def test_ageing_does_not_change_in_how_many_runs_something_was_seen(bank: Bank) -> None:
    refused = [
        _call("shop sync --all", 2, "error: unrecognized arguments: --all"),
        _call("shop sync", 0, "done"),
    ]
    for number in range(4):
        _learn(bank, number, refused)
    (lesson,) = [each for each in _lessons(bank) if "--all" in each.summary]
    for number in range(4, 7):
        _learn(bank, number, [_call("ls", 0, "a")])
    for number in range(4, 7):
        bank.lessons.decay(f"run-{number}")
    assert "seen 4x" in _brief(bank)
    assert len(lesson.runs) == 4


@pytest.mark.req("A12")
def test_what_two_runs_did_about_an_error_is_told_at_the_error(bank: Bank) -> None:
    error = "cat: illegal option -- A\nusage: cat [-belnstuv] [file ...]"
    for number in range(3):
        failing = _call(f"sed -n '{number},9p' src/cart.ts | cat -A", 1, error)
        _learn(bank, number, [failing, _call(f"sed -n '{number},9p' src/cart.ts | cat -v", 0, "a^Ib")])
    told = bank.briefs.heal(error, command="cat -A src/list.ts", repo="shop").text
    assert "`cat -v`" in told


@pytest.mark.req("N1")
def test_a_failing_assertion_that_a_run_may_have_broken_is_not_acquitted(bank: Bank) -> None:
    failed = "  1 failing\n  1) Cart\n       keeps its items:\n     AssertionError: 1 == 2"
    for number in range(3):
        _learn(bank, number, [_edit("a = 1;"), _call("pnpm test", 1, failed)])
    assert not [lesson.summary for lesson in _lessons(bank) if "not your bug" in lesson.summary]


@pytest.mark.req("N1")
def test_every_file_of_a_patch_counts_as_changed() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/cart.ts\n@@\n*** Update File: docs/api.md\n@@\n*** End Patch"
    )
    edit = replace(_edit("a = 1;"), tool="apply_patch", text=patch, target="/home/x/shop/src/cart.ts")
    assert {change.file for call in read_tool_calls([edit]) for change in call.changes} == {
        "/home/x/shop/src/cart.ts",
        "docs/api.md",
    }


@pytest.mark.req("A18")
def test_an_outage_is_not_blamed_on_the_model_that_met_it(bank: Bank) -> None:
    down = "fatal: unable to access 'https://git.example/': Could not resolve host: git.example"
    for number in range(6):
        calls = [_call("git push", 128, down)] * 3 if number < 3 else [_call("git push", 0, "done")] * 3
        _learn(bank, number, calls, model="large" if number < 3 else "small")
    assert not [lesson.summary for lesson in _lessons(bank) if "with large" in lesson.summary]


@pytest.mark.req("A1")
def test_a_run_that_was_reflected_on_is_not_changed_by_its_own_log(bank: Bank) -> None:
    when = START
    episode = Episode(id="run-0", project="shop", started=when, finished=when, usage=Usage(efficiency=1.0))
    hidden = Event(run="run-0", seq=0, kind=EventKind.TOOL_CALL, tool="Bash", text="make | tail",
                   target="make", output="make: *** [all] Error 2", exit_code=0)  # fmt: skip
    bank.capture(episode, [hidden])
    bank.reflect("run-0")
    usage = bank.runs.episode("run-0").usage
    assert usage is not None
    assert usage.efficiency == 0.0
    bank.capture(episode, [hidden])
    assert bank.runs.episode("run-0").usage == usage


@pytest.mark.req("A12")
def test_what_helps_with_any_refused_word_is_told_beside_another_one(bank: Bank) -> None:
    for number in range(3):
        word = f"refs/tags/v{number}*"
        refused = _call(f"git ls-remote origin {word}", 1, f"zsh:1: no matches found: {word}")
        _learn(bank, number, [refused, _call(f"git ls-remote origin '{word}'", 0, "4be1c refs/tags/v")])
    for command in ("git ls-remote origin heads/*", ""):
        told = bank.briefs.heal("zsh:1: no matches found: heads/*", command=command, repo="shop").text
        assert "put such words in quotes" in told


@pytest.mark.req("A10")
def test_each_missing_program_counts_its_own_runs(bank: Bank) -> None:
    missing = {"fd": (0, 1), "python": (2, 3, 4), "jq": (5, 6)}
    for program, numbers in missing.items():
        for number in numbers:
            _learn(bank, number, [_call(f"{program} --version", 127, f"zsh:1: command not found: {program}")])
    counted = {lesson.summary: lesson.frequency for lesson in _lessons(bank)}
    assert counted == {f"`{name}` is not installed here": len(runs) for name, runs in missing.items()}
