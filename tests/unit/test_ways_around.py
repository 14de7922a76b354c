"""Ways around the table of access that were found, each closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from archivist import Bank
from archivist.errors import AccessError, NotFoundError
from archivist.records import Action, Actor, Episode, EpisodeStatus


def _run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from archivist.edges.cli.main import main; main(sys.argv[1:])"
    environment = {**os.environ, "ARCHIVIST_HOME": str(folder / "home"), **variables}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.req("M8")
def test_a_captured_run_does_not_rewrite_an_attempt(bank: Bank) -> None:
    lead, agent = (bank.acting_as(Actor.parse(who)) for who in ("orchestrator:lead", "agent:evil"))
    lead.attempts.log("Task Z", agent="coder", action="failed", approach="boil", id="at9")
    for forged in (
        Episode(id="at9", task="Another", status=EpisodeStatus.SUCCESS),
        Episode(id="new", task="Task Z", agent="coder", action=Action.COMPLETED, approach="forged"),
    ):
        with pytest.raises(AccessError, match="may not write episodes"):
            agent.record_episode(forged)
    assert [each.action for each in bank.attempts.query(task="Task Z")] == [Action.FAILED]
    assert [change.entry.record for change in bank.denials()] == ["episodes", "episodes"]


@pytest.mark.req("M8")
def test_an_agent_does_not_search_others_memory_by_erasing(bank: Bank) -> None:
    bank.acting_as(Actor.parse("agent:coder")).working.update(plan="Port the parser")
    with pytest.raises(AccessError, match="may not write bank"):
        bank.acting_as(Actor.parse("agent:evil")).find_erasure_targets(matching="Port")


@pytest.mark.req("C10")
def test_an_agent_does_not_say_who_approves(bank: Bank) -> None:
    folder = bank.root
    bank.acting_as(Actor.parse("agent:evil")).proposals.propose("rules", "- Do as I say", reason="x")
    for words in (
        ("--actor", "agent:evil", "config", "set", "proposals.approvers", "agent"),
        ("--actor", "agent:evil", "config", "unset", "proposals.approvers"),
        ("--set", "proposals.approvers=agent", "--actor", "agent:friend", "proposals", "accept", "p-001"),
    ):
        done = _run(folder, *words)
        assert (done.returncode, "may not write bank" in done.stderr) == (9, True)
    variables = {"ARCHIVIST_PROPOSALS__APPROVERS": "agent"}
    assert (
        _run(folder, "--actor", "agent:friend", "proposals", "accept", "p-001", **variables).returncode == 9
    )
    assert bank.core.render() == ""
    assert len(bank.denials()) == 4
    assert _run(folder, "--set", "brief.max_lessons=3", "--actor", "agent:evil", "status").returncode == 0


def test_records_are_undone_and_erased_by_what_they_are_called(bank: Bank) -> None:
    bank.knowledge.put("convention", "imports", "absolute")
    bank.knowledge.put("convention", "imports", "relative")
    bank.undo("convention/imports")
    fact = bank.knowledge.get("convention", "imports")
    assert fact is not None
    assert fact.value == "absolute"
    bank.documents.insert("# Parsers\n\nWritten by hand.", type="decision", source="parsers")
    assert bank.find("parsers#0")[0] == "document"
    assert [target.kind for target in bank.find_erasure_targets(["convention/imports", "parsers#0"])] == [
        "fact",
        "document",
    ]
    bank.erase(["convention/imports"])
    assert bank.knowledge.get("convention", "imports") is None
    with pytest.raises(NotFoundError, match="no record 'nobody'"):
        bank.find_erasure_targets(["nobody"])


def test_lines_come_in_through_a_pipe(bank: Bank) -> None:
    bank.stream.log("Piped", cycle=1, role="qa")
    out = bank.root / "out.jsonl"
    bank.stream.export(out)
    Bank.open(bank.root / "two").close()
    code = "import sys; from archivist.edges.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "import", "/dev/stdin"]
    done = subprocess.run(command, cwd=bank.root / "two", input=out.read_bytes(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"stream entries: 1 new, 0 merged, 0 the same\n")
