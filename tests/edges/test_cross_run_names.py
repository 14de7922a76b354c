"""The commands of the cross-run document, under its names and without a memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist import Bank
from tests.conftest import Command
from tests.samples import run_lines, write_jsonl


@pytest.mark.req("F10")
@pytest.mark.parametrize("words", [["decay"], ["decay", "--run", "r1"], ["run", "finish", "--run", "r1"]])
def test_without_a_bank_the_end_of_a_run_is_noted_and_exits_0(
    archivist: Command, project: Path, words: list[str]
) -> None:
    ran = archivist(*words)
    assert (ran.code, ran.out) == (0, "")
    assert "there is no bank here" in ran.err
    assert list(project.iterdir()) == []


@pytest.mark.req("F7", "A6")
def test_the_documents_short_names_are_accepted(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    assert archivist("add", "User prefers single bundled PR").code == 0
    assert "single bundled PR" in archivist("list").out
    assert archivist("forget", "m-001").code == 0
    assert "single bundled PR" not in archivist("list").out
    lines = run_lines("r1", {"severity": "bug", "description": "Missing null checks in handlers"})
    archivist("capture", str(write_jsonl(project / "r1.jsonl", lines)))
    assert archivist("reflect", "--session", "r1").code == 0
    assert "  add " not in archivist("--help").out


NULLS = {"severity": "bug", "description": "Missing null checks in handlers"}


def _learn(archivist: Command, project: Path, *runs: str) -> None:
    for run in runs:
        lines = run_lines(run, NULLS)
        assert archivist("extract", str(write_jsonl(project / f"{run}.jsonl", lines))).code == 0


@pytest.mark.req("F8")
@pytest.mark.parametrize(
    "words",
    [("inject", "code", "", "--audit"), ("brief", "--domain", "code", "--run"), ("run", "start", "--run")],
)
def test_what_was_told_is_in_the_audit_file_when_the_command_returns(
    archivist: Command, project: Path, words: tuple[str, ...]
) -> None:
    assert archivist("init").code == 0
    assert archivist("config", "set", "files.cross_run", "memory").code == 0
    archivist("add", "User prefers single bundled PR")
    for number in (1, 2):
        assert archivist(*words, f"r{number}").code == 0
        lines = (project / "memory" / "audit.jsonl").read_text().splitlines()
        assert [json.loads(line)["run_id"] for line in lines] == ["r1", "r2"][:number]


@pytest.mark.req("F8")
def test_a_run_that_ended_is_told_that_its_brief_is_not_recorded(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    _learn(archivist, project, "r1", "r2")
    told = archivist("inject", "general", "", "--audit", "r1")
    assert (told.code, "Missing null checks" in told.out) == (0, True)
    assert "the run 'r1' is finished: this brief is not recorded" in told.err
    assert "not recorded" not in archivist("inject", "general", "", "--audit", "r3").err


@pytest.mark.req("F8", "F10")
@pytest.mark.parametrize(
    "words",
    [("inject", "code", "", "--audit"), ("brief", "--domain", "code", "--run"), ("run", "start", "--run")],
)
def test_a_busy_bank_tells_what_it_knows(
    archivist: Command, project: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archivist("init").code == 0
    archivist("add", "User prefers single bundled PR")
    monkeypatch.setenv("ARCHIVIST_STORE__BUSY_TIMEOUT_S", "0.2")
    with Bank.open(project, create=False) as bank, bank.transaction():
        told = archivist(*words, "r1")
    assert (told.code, "single bundled PR" in told.out) == (0, True)
    assert "told, but not recorded" in told.err


@pytest.mark.req("F3")
def test_a_run_that_was_told_a_domain_has_it(archivist: Command, project: Path) -> None:
    assert archivist("init").code == 0
    archivist("inject", "writing", "", "--audit", "r1")
    _learn(archivist, project, "r1")
    (lesson,) = json.loads(archivist("list", "--json").out)["lessons"]
    assert lesson["domain"] == "writing"
