"""What `lessons show` quotes proves the lesson: its message, and of a flaky test both calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archivist.lessons.support import choose_calls
from archivist.records import Event, EventKind
from tests.commands import Command
from tests.samples import lesson as sample

NOISE = [f"src/module{number}.ts | 100.00 | 98.00 | lines {number}-{number + 3}" for number in range(40)]
NAMED = "(fail) panel > opens the drawer [12.00ms]"
FAILING = "\n".join(["bun test v1.1", *NOISE[:20], NAMED, *NOISE[20:], " 41 pass", " 1 fail"])
PASSING = "\n".join(["bun test v1.1", *NOISE, " 42 pass", " 0 fail"])


def _finish(bank_cli: Command, project: Path, run: str, *calls: dict[str, Any]) -> None:
    lines = [{"episode": {"id": run, "project": "shop", "task": f"Mend the {run}."}}]
    rows = [
        {"run": run, "seq": seq, "kind": "tool_call", "tool": "bash", **call}
        for seq, call in enumerate(calls)
    ]
    text = "".join(json.dumps(line) + "\n" for line in (*lines, *rows))
    (project / f"{run}.jsonl").write_text(text, "utf-8")
    assert bank_cli("run", "finish", f"{run}.jsonl", "--repo", "shop", "--status", "success").code == 0


def test_a_flaky_test_is_shown_with_its_name_and_with_both_calls(bank_cli: Command, project: Path) -> None:
    for run in ("kiln", "loom"):
        _finish(
            bank_cli,
            project,
            run,
            {"text": "bun test", "output": FAILING, "exit_code": 1, "is_error": True},
            {"text": "bun test", "output": PASSING, "exit_code": 0},
        )
    shown = bank_cli("lessons", "show", "m-001").out
    assert "passes and fails with nothing changed" in shown
    failed, _, worked = shown.partition("\nWorked in ")
    assert f"    {NAMED}" in failed.partition("\nFailed in ")[2]
    assert "    … " not in failed
    assert "$ bun test" in worked
    assert " 0 fail" in worked
    # The end of the output says what came of the call, too.
    assert "     1 fail" in failed


def test_the_quoted_lines_hold_the_lessons_message(bank_cli: Command, project: Path) -> None:
    error = "error: the seed must be given: --seed N"
    output = "\n".join(["checks 1.0", *NOISE[:15], error, *NOISE[15:]])
    for run in ("kiln", "loom"):
        _finish(
            bank_cli,
            project,
            run,
            {"text": "./checks", "output": output, "exit_code": 2, "is_error": True},
            {"text": "./checks --seed 7", "output": "12 checks passed", "exit_code": 0},
        )
    shown = bank_cli("lessons", "show", "m-001").out
    assert error in shown.partition("\nFailed in ")[2].partition("\nWorked in ")[0]


def test_a_call_whose_output_says_that_it_failed_is_no_proof() -> None:
    lesson = sample(summary="`bun test` fails now and then: run it again")
    said = '41 pass\n$ bun test\nerror: script "test" exited with code 1'
    piped: dict[str, Any] = {"text": "bun test | tail -3", "target": "bun test | tail -3", "exit_code": 0}
    given: dict[str, Any] = {"kind": EventKind.TOOL_CALL, "tool": "bash"}
    failed = Event(run="r", seq=1, text="bun test", exit_code=1, output=FAILING, **given)
    ended = Event(run="r", seq=2, output=said, **piped, **given)
    passed = Event(run="r", seq=3, output="42 pass", **piped, **given)
    assert list(choose_calls(lesson, [failed, ended])) == ["Failed"]
    assert choose_calls(lesson, [failed, ended, passed])["Worked"] is passed


def _suite(call: str, tests: int, *, fails: bool = False) -> dict[str, Any]:
    output = f"> shop@1.0.0 pretest\n\n  {tests} passing (3s)\n" + "  1 failing\n" * fails
    return {"text": call, "output": output, "exit_code": int(fails), "is_error": fails}


def test_a_filter_that_chooses_nothing_is_shown_by_the_counts_of_both_forms(
    bank_cli: Command, project: Path
) -> None:
    """The call of the advised form is another run's; the two forms have the same words."""
    _finish(bank_cli, project, "kiln", _suite("pnpm test", 45), _suite("pnpm test --grep 'Order'", 3))
    broken = [_suite(f"pnpm test -- --grep '{name}'", 45, fails=name == "Cart") for name in ("Cart", "Stock")]
    for run in ("loom", "mill"):
        _finish(bank_cli, project, run, *broken)
    shown = bank_cli("lessons", "show", "m-001").out
    assert shown.startswith(
        "m-001  `pnpm test -- --grep <test>` runs all tests: use `pnpm test --grep <test>`\n"
        "  IF `pnpm test -- --grep <test>` is to be run THEN use `pnpm test --grep <test>`\n\nRan all "
    )
    whole, _, part = shown.partition("\nRan 3 tests in kiln#1\n")
    assert "\nRan all 46 tests in " in whole or "\nRan all 45 tests in " in whole
    assert "$ pnpm test -- --grep" in whole
    assert part.startswith("  $ pnpm test --grep 'Order'\n")
