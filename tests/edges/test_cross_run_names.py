"""The commands of the cross-run document, under its names and without a memory."""

from __future__ import annotations

from pathlib import Path

import pytest

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
