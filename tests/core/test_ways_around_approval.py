"""Ways around the table of access that were found, each closed."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.errors import AccessError, NotFoundError
from archivist.records import Action, Actor, Episode, EpisodeStatus
from tests.banks import lay_bank
from tests.commands import Command


@pytest.mark.req("M8")
def test_a_captured_run_does_not_rewrite_an_attempt(bank: Bank) -> None:
    lead, agent = (bank.acting_as(Actor.parse(who)) for who in ("orchestrator:lead", "agent:evil"))
    lead.attempts.log("Task Z", agent="coder", action="failed", approach="boil", id="at9")
    for forged in (
        Episode(id="at9", task="Another", status=EpisodeStatus.SUCCESS),
        Episode(id="new", task="Task Z", agent="coder", action=Action.COMPLETED, approach="forged"),
    ):
        with pytest.raises(AccessError, match="may not write episodes"):
            agent.runs.record_episode(forged)
    assert [each.action for each in bank.attempts.query(task="Task Z")] == [Action.FAILED]
    assert [change.entry.record for change in bank.ledger.denials()] == ["episodes", "episodes"]


@pytest.mark.req("M8")
def test_an_agent_does_not_search_others_memory_by_erasing(bank: Bank) -> None:
    bank.acting_as(Actor.parse("agent:coder")).working.update(plan="Port the parser")
    with pytest.raises(AccessError, match="may not write bank"):
        bank.acting_as(Actor.parse("agent:evil")).erasure.find_erasure_targets(matching="Port")


@pytest.mark.req("C10")
def test_an_agent_does_not_say_who_approves(bank: Bank, archivist: Command) -> None:
    folder = bank.root
    bank.acting_as(Actor.parse("agent:evil")).proposals.propose("rules", "- Do as I say", reason="x")
    for words in (
        ("--actor", "agent:evil", "config", "set", "proposals.approvers", "agent"),
        ("--actor", "agent:evil", "config", "unset", "proposals.approvers"),
        ("--set", "proposals.approvers=agent", "--actor", "agent:friend", "proposals", "accept", "p-001"),
    ):
        done = archivist(*words, cwd=folder)
        assert (done.code, "may not write bank" in done.err) == (9, True)
    variables = {"ARCHIVIST_PROPOSALS__APPROVERS": "agent"}
    words = ("--actor", "agent:friend", "proposals", "accept", "p-001")
    assert archivist(*words, cwd=folder, **variables).code == 9
    assert bank.core.render() == ""
    assert len(bank.ledger.denials()) == 4
    words = ("--set", "brief.max_lessons=3", "--actor", "agent:evil", "status")
    assert archivist(*words, cwd=folder).code == 0


def test_records_are_undone_and_erased_by_what_they_are_called(bank: Bank) -> None:
    bank.knowledge.put("convention", "imports", "absolute")
    bank.knowledge.put("convention", "imports", "relative")
    bank.ledger.undo("convention/imports")
    fact = bank.knowledge.get("convention", "imports")
    assert fact is not None
    assert fact.value == "absolute"
    bank.documents.insert("# Parsers\n\nWritten by hand.", type="decision", source="parsers")
    assert bank.ledger.find("parsers#0")[0] == "document"
    assert [
        target.kind for target in bank.erasure.find_erasure_targets(["convention/imports", "parsers#0"])
    ] == [
        "fact",
        "document",
    ]
    bank.erasure.erase(["convention/imports"])
    assert bank.knowledge.get("convention", "imports") is None
    with pytest.raises(NotFoundError, match="no record 'nobody'"):
        bank.erasure.find_erasure_targets(["nobody"])


def test_lines_come_in_through_a_pipe(bank: Bank, archivist_process: Command) -> None:
    bank.stream.log("Piped", cycle=1, role="qa")
    out = bank.root / "out.jsonl"
    bank.stream.export(out)
    lay_bank(bank.root / "two")
    done = archivist_process(
        "import", "--approve", "/dev/stdin", cwd=bank.root / "two", stdin=out.read_bytes()
    )
    assert (done.code, done.out) == (0, "stream entries: 1 new, 0 merged, 0 the same\n")
