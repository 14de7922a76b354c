"""The example orchestrator: real workers in parallel share one bank, and planning again learns from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from archivist import Bank
from archivist.paths import bank_file
from archivist.records import Action, Actor, TaskState
from tests.banks import note_as_made_here

EXAMPLE = Path(__file__).parents[2] / "examples" / "orchestrator.py"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("orchestrated")
    environment = {**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("scratch"))}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # The example has a home of its own, which is gone with it.
    note_as_made_here(bank_file(folder))
    return folder, done.stdout


@pytest.mark.req("M13")
@pytest.mark.req("C6")
def test_planning_again_uses_attempts_knowledge_and_artifacts(project: tuple[Path, str]) -> None:
    _, out = project
    first, _, second = out.partition("sold: 14\n")
    assert "load north given to loader by strict JSON (first choice)" in first
    assert "load north failed, retry: json.decoder.JSONDecodeError" in first
    assert "load north given to loader by JSON without trailing commas" in first
    # The second plan leaves out what is as it was, and begins with what worked.
    assert "load north is as it was" in second
    assert "load east given to loader by JSON without trailing commas (known to work)" in second
    assert "failed" not in second
    assert second.endswith("sold: 21\n")


@pytest.mark.req("W14")
@pytest.mark.req("M13")
def test_the_bank_knows_who_did_what_and_how_it_went(project: tuple[Path, str]) -> None:
    folder, _ = project
    with Bank.open(folder, create=False) as bank:
        north = [each.action for each in reversed(bank.attempts.query(task="load north"))]
        assert north == [Action.ATTEMPTED, Action.FAILED, Action.RETRIED, Action.COMPLETED]
        assert {each.agent for each in bank.attempts.query(action="failed")} == {"loader"}
        facts = bank.knowledge.query(category="convention")
        fact = next((each for each in facts if each.key.startswith("report/")), None)
        assert fact is not None
        assert "use `JSON without trailing commas`. `strict JSON` failed: " in fact.value
        assert {task.state for task in bank.tasks.query()} == {TaskState.DONE}
        assert bank.tasks.get("load north").parent == "report"
        (loader,) = bank.tasks.activity("loader")
        assert (loader.tasks, loader.done, loader.failed) == ((), 3, 2)
        assert len(bank.artifacts.versions("report.txt")) == 2
        assert {each.state for each in bank.artifacts.verify() if each.artifact.task != "report"} == {"same"}
        status = bank.core.view().status
        assert status.in_progress == ()
        assert any("report.txt" in each for each in status.recently_shipped)
        assert {each.role for each in bank.stream.recent()} == {"maker"}
        assert bank.ledger.verify().is_whole
        assert bank.ledger.denials() == []
        assert bank.acting_as(Actor.parse("agent:loader")).working.get() is None
