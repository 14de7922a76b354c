"""Whether what runs were told helped, through the command line: an occasion, following, and no failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.samples import agent_log, run_lines, write_jsonl

REFUSED = "waxwing: error: the following arguments are required: --lock"
FAILS = ("waxwing build", f"Exit code 2\n{REFUSED}", True)
WORKS = ("waxwing build --lock ci", "built", False)
LOOKS = ("git log --oneline", "a1b2c3 first", False)
NULLS = "Missing null checks in API response handlers"


def _finish(archivist: Command, project: Path, session: str, *calls: tuple[str, str, bool]) -> str:
    log = agent_log(project / f"{session}.jsonl", calls, session=session, project="cart")
    ran = archivist("run", "finish", str(log), cwd=project)
    assert ran.code == 0, ran.err
    return ran.out


def _review(archivist: Command, project: Path, run: str, *findings: dict[str, Any], **fields: Any) -> str:
    path = write_jsonl(project / f"{run}.jsonl", run_lines(run, *findings, **fields))
    ran = archivist("run", "finish", str(path), cwd=project)
    assert ran.code == 0, ran.err
    return ran.out


def _verdicts(archivist: Command, project: Path, run: str) -> Any:
    return json.loads(archivist("audit", "check", run, "--json", cwd=project).out)["verdicts"]


@pytest.fixture
def taught(project: Path, archivist: Command) -> Path:
    """Make a bank that two runs taught how to call the build."""
    assert archivist("init").code == 0
    for session in ("s-1", "s-2"):
        _finish(archivist, project, session, FAILS, WORKS)
    return project


@pytest.mark.req("F9", "N2")
def test_each_run_is_judged_by_occasion_following_and_failure(taught: Path, archivist: Command) -> None:
    runs = {
        "follows": ([WORKS], "of 1 briefed 1 helped", "helpful"),
        "elsewhere": ([LOOKS], "of 1 briefed 1 not needed", "not_needed"),
        "stumbles": ([FAILS, WORKS], "of 1 briefed 1 did not help", "ineffective"),
    }
    for run, (calls, line, effect) in runs.items():
        told = archivist("run", "start", "--run", run, "--repo", "cart", "--task", "Build it", cwd=taught)
        assert "--lock" in told.out
        assert line in _finish(archivist, taught, run, *calls)
        (verdict,) = _verdicts(archivist, taught, run)
        assert verdict["effect"] == effect
    shown = archivist("audit", "report", cwd=taught)
    _answer, head, row, *_ = shown.out.splitlines()
    assert "Told  Helped  Did not help  Ignored  Not needed  Not known" in head
    assert row.split()[1:7] == ["3", "1", "1", "0", "1", "0"]
    # Two judged runs are no rate.
    assert "too few" in row
    assert "%" not in row
    line = json.loads(archivist("audit", "report", "--json", cwd=taught).out)["lessons"][0]
    assert (line["helpful"], line["ineffective"], line["not_needed"], line["share"]) == (1, 1, 1, None)
    lesson = archivist("lessons", "show", line["lesson"], cwd=taught).out
    assert [words[-1] for words in map(str.split, lesson.splitlines()) if words[:1] == ["helped"]] == ["1"]


@pytest.mark.req("N2")
def test_runs_without_an_occasion_are_left_out_of_the_hold_out(taught: Path, archivist: Command) -> None:
    for number in range(12):
        run = f"quiet-{number}"
        asked = ("run", "start", "--run", run, "--repo", "cart", "--task", "Build it")
        assert archivist(*asked, cwd=taught, ARCHIVIST_BRIEF__HOLDOUT="0.5").code == 0
        _finish(archivist, taught, run, LOOKS)
    total = json.loads(archivist("audit", "report", "--json", cwd=taught).out)["total"]
    assert total["not_needed"] == total["told"] > 0
    assert (total["lift"]["told"], total["lift"]["withheld"]) == (0, 0)
    assert total["lift"]["verdict"] == "too few runs"


@pytest.mark.req("F9")
def test_that_reviewers_find_nothing_does_not_prove_help(project: Path, archivist: Command) -> None:
    archivist("init")
    nulls = {"severity": "bug", "category": "robustness", "description": NULLS}
    for run in ("r1", "r2"):
        _review(archivist, project, run, nulls)
    for run, findings, fixed, line in (
        ("silent", (), (), "of 1 briefed 1 not known"),
        ("fixed", (), (NULLS,), "of 1 briefed 1 helped"),
        ("again", (nulls,), (), "of 1 briefed 1 did not help"),
    ):
        archivist("run", "start", "--run", run, "--domain", "general", cwd=project)
        assert line in _review(archivist, project, run, *findings, fixed=fixed)
    # The figure of the cross-run document stays, under its own name.
    found = [_verdicts(archivist, project, run)[0] for run in ("silent", "fixed", "again")]
    assert [each["effectiveness"] for each in found] == ["helpful", "helpful", "ineffective"]
    assert archivist("export", "out", cwd=project).code == 0
    lines = [json.loads(line) for line in (project / "out" / "audit.jsonl").read_text("utf-8").splitlines()]
    checks = {line["run_id"]: line for line in lines if line.get("type") == "effectiveness_check"}
    assert (checks["silent"]["effectiveness"], checks["silent"]["effect"]) == ("helpful", "unknown")
    shown = archivist("audit", "check", "silent", cwd=project)
    assert "not known" in shown.out
    assert "Not found again" in shown.err


@pytest.mark.req("F9")
def test_a_review_lesson_is_not_needed_where_its_file_was_not_touched(
    project: Path, archivist: Command
) -> None:
    archivist("init")
    nulls = {"severity": "bug", "description": NULLS, "file": "src/handlers.py"}
    for run in ("r1", "r2"):
        _review(archivist, project, run, nulls)
    for run, command, effect in (
        ("elsewhere", "sed -i s/a/b/ src/cart.py", "not_needed"),
        ("there", "sed -i s/a/b/ src/handlers.py", "unknown"),
    ):
        archivist("run", "start", "--run", run, "--domain", "general", cwd=project)
        agent_log(project / "calls.jsonl", [(command, "", False)], session=run, project="cart")
        assert archivist("capture", "calls.jsonl", cwd=project).code == 0
        _review(archivist, project, run)
        assert [each["effect"] for each in _verdicts(archivist, project, run)] == [effect]
