"""The project's own checks: those that runs often fail are told by name, whoever is at fault."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.run import RunReading

from .scripted import Call, edit, learnt, run, sh

TASKS = ("Add a page", "Rename a field", "Drop a column", "Write a guide")


def _runs(*tries: tuple[Call, ...]) -> list[RunReading]:
    return [run(*calls, name=f"run-{at}", task=TASKS[at]) for at, calls in enumerate(tries)]


def _checks(*readings: RunReading) -> list[Candidate]:
    return [each for each in learnt(*readings) if "checks" in each.tags]


def _failing_lint(at: int, *, fix: str = "") -> tuple[Call, ...]:
    found = f"src/page{at}.ts\n  {at}:2  error  Missing semicolon  semi\n\n1 problem (1 error, 0 warnings)\n"
    mended = sh(fix) if fix else edit(f"/srv/widget/src/page{at}.ts", "b", "c")
    return edit(f"/srv/widget/src/page{at}.ts", "a", "b"), sh("pnpm lint", found, 1), mended, sh("pnpm lint")


def test_a_check_that_several_runs_failed_is_told_once_with_what_mends_it() -> None:
    runs = _runs(*(_failing_lint(at, fix="pnpm lint:fix") for at in range(3)))
    found = learnt(*runs)
    assert [each.remedies for each in found] == [("pnpm lint:fix",)]
    assert "`pnpm lint`" in found[0].summary


def test_that_a_check_finds_faults_in_new_code_needs_no_saying() -> None:
    assert _checks(*_runs(*(_failing_lint(at) for at in range(3)))) == []


def test_a_commit_that_hooks_refuse_is_told_as_that() -> None:
    refused = (
        "$ eslint .\n/srv/widget/src/a.ts\n  4:2  error  'x' is never used  no-unused-vars\n\n"
        "husky - pre-commit script failed (code 1)\n"
    )
    runs = _runs(
        *((edit("/srv/widget/src/a.ts", "a", str(at)), sh("git commit -m x", refused, 1)) for at in range(3))
    )
    (found,) = _checks(*runs)
    assert "`git commit` runs checks here that often refuse it" in found.summary


def test_a_task_tried_again_and_again_shows_nothing_about_the_project() -> None:
    runs = [
        run(*_failing_lint(0, fix="pnpm lint:fix"), name=f"run-{at}", task="Add a page") for at in range(3)
    ]
    assert _checks(*runs) == []


def test_what_another_lesson_already_tells_is_not_told_again() -> None:
    broken = sh(
        "pytest tests/test_cli.py", "E   TypeError: Runner() got an unexpected keyword argument 'mix'\n", 1
    )
    readings = _runs((broken,), (broken,), (broken,))
    assert [each.tags for each in learnt(*readings) if "not-your-bug" in each.tags]
    assert _checks(*readings) == []
