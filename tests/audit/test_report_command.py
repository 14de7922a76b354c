"""The report as a person and a program see it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.audit.period import AuditPeriod
from archivist.records import Effect, Following, Verdict
from tests.conftest import Command
from tests.samples import WHEN, run_lines, write_jsonl


@pytest.fixture
def judged(project: Path, archivist: Command) -> Path:
    """Make a bank with one lesson that helps, told to forty runs and withheld from ten, and one untold."""
    assert archivist("init").code == 0
    assert archivist("lessons", "add", "Run `make check` before a commit").code == 0
    assert archivist("lessons", "add", "Nobody was told this").code == 0
    with Bank.open(project, create=False) as bank, bank.transaction() as writer:
        lesson = bank.lessons.get("m-001")
        for run in range(50):
            is_held, failed = run % 5 == 0, run % 5 == 0 or run % 20 == 1
            effect = Effect.UNKNOWN if is_held else Effect.INEFFECTIVE if failed else Effect.HELPFUL
            writer.put(
                Verdict(
                    run=f"r{run}",
                    lesson=lesson.id,
                    time=WHEN + timedelta(hours=run),
                    effect=effect,
                    following=Following.WITHHELD if is_held else Following.FOLLOWED,
                    failed=failed,
                ),
                "judge",
            )
    return project


@pytest.mark.req("F9", "N2")
def test_the_report_is_a_table_with_a_legend(judged: Path, archivist: Command) -> None:
    ran = archivist("audit", "report", cwd=judged)
    answer, head, first, *rest = ran.out.splitlines()
    assert ": yes, memory helped. " in answer
    assert head.split("  ")[0] == "ID"
    assert first.split()[:7] == ["m-001", "40", "37", "3", "0", "0", "0"]
    for cell in ("92% (80% to 97%)", "37/3 (12.3)", "8%/100%", "+92%", "helps", "keep", "Run `make check`"):
        assert cell in first
    assert [line.split()[0] for line in rest] == ["2026-04", "all"]
    assert ran.err.count("\n") == 1
    assert "Withheld: runs that needed the lesson and, chosen at random, were not given it" in ran.err


@pytest.mark.req("N2")
def test_the_report_is_also_json_an_image_and_of_one_lesson(judged: Path, archivist: Command) -> None:
    ran = archivist("audit", "report", "--json", "--svg", "all.svg", cwd=judged)
    told = json.loads(ran.out)
    (line,) = told["lessons"]
    assert (line["told"], line["helpful"], line["ineffective"], line["followed"]) == (40, 37, 3, 40)
    assert (line["lift"]["verdict"], line["lift"]["runs_needed"]) == ("helps", 0)
    documented = {"helpful": 37, "ineffective": 3, "ratio": pytest.approx(37 / 3)}
    assert line["effectiveness"] == told["total"]["effectiveness"] == documented
    assert line["lift"]["low"] < line["lift"]["difference"] < line["lift"]["high"]
    assert [each["lesson"] for each in line["periods"]] == ["1-20", "21-40", "41-50"]
    assert told["total"]["share"] == pytest.approx(37 / 40)
    assert told["proposals"][0]["step"] == "keep"
    assert (judged / "all.svg").read_text("utf-8").startswith("<svg ")
    one = json.loads(archivist("audit", "report", "--lesson", "m-001", "--json", cwd=judged).out)
    assert set(one) == {"lessons", "proposals"}
    untold = archivist("audit", "report", "--lesson", "m-002", cwd=judged)
    assert (untold.code, untold.out) == (0, "")
    assert archivist("audit", "report", "--lesson", "m-009", cwd=judged).code == 3


@pytest.mark.req("F9")
def test_findings_are_the_failures_of_a_bank_of_reviews(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    found = [{"description": f"Missing null checks in handler {at}", "severity": "BUG"} for at in range(3)]
    for number in range(2):
        lines = run_lines(f"r{number}", *found[number:])
        archivist("run", "finish", str(write_jsonl(project / f"r{number}.jsonl", lines)))
    with Bank.open(project, create=False) as bank:
        answer = bank.audits.audit_report(AuditPeriod(since=WHEN)).answer
    assert answer is not None
    assert answer.change.failures == 5


@pytest.mark.req("F9")
@pytest.mark.parametrize("period", [(), ("--days", "1")])
def test_runs_of_the_single_steps_are_in_every_report(
    archivist: Command, project: Path, period: tuple[str, ...]
) -> None:
    """The document's own commands, without run start and run finish."""
    assert archivist("init").code == 0
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    nulls = {"description": "Missing null checks in API handlers", "severity": "bug"}
    for number in range(8):
        run, is_again = f"r{number}", number % 2 == 0
        if number > 2:
            assert archivist("inject", "general", "", "--audit", run).code == 0
        lines = [{**line, "ts": now} for line in run_lines(run, *([nulls] if is_again else []))]
        log = write_jsonl(project / f"{run}.jsonl", lines)
        assert archivist("extract", str(log)).code == 0
        assert archivist("decay", "--run", run).code == 0
        assert archivist("audit-check", run).code == 0
    told = json.loads(archivist("audit", "report", *period, "--json").out)
    assert told["total"]["told"] == 5
    assert (told["total"]["effectiveness"]["helpful"], told["total"]["effectiveness"]["ineffective"]) == (
        3,
        2,
    )
