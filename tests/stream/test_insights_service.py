"""Reflection over the stream: when it is due, what it writes, and that it happens once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from archivist import Bank
from archivist.config import Config, CoreRules, StoreRules, StreamRules
from archivist.errors import BankLockedError
from archivist.records import Actor, ActorKind, DocumentType, EntryType
from tests.banks import fresh_bank


def _fill(bank: Bank, cycles: range, **fields: object) -> None:
    for cycle in cycles:
        bank.stream.log("Blocked by #84, waiting for ops", cycle=cycle, role="qa", **fields)  # type: ignore[arg-type]


@pytest.mark.req("C7")
def test_importance_cycles_and_sprints_make_it_due(bank: Bank) -> None:
    stream = bank.stream
    assert stream.due_reason() == ""
    for number in range(10):
        stream.log(f"Work {number}", cycle=1, importance=10)
        assert stream.due_reason() == ""
    stream.log("One more", cycle=1, importance=1)
    assert stream.due_reason() == "importance of unreflected entries is 101, over 100"
    assert stream.reflect(if_due=True).reason
    assert stream.due_reason() == ""
    stream.log("Later", cycle=11, importance=1)
    assert stream.due_reason() == "10 cycles since the last reflection"
    stream.reflect()
    bank.core.update("status", {"sprint": "Sprint 2"})
    assert stream.due_reason() == ""
    stream.log("In the new sprint", cycle=12, importance=1)
    assert stream.due_reason() == "sprint boundary: none → Sprint 2"
    stream.reflect()
    stream.log("Goes on", cycle=12, importance=1)
    assert stream.due_reason() == ""


@pytest.mark.req("C7")
def test_what_recurs_goes_to_stream_archive_and_core(bank: Bank) -> None:
    bank.documents.insert("The runner pool of #84 is too small: CI is red", type="decision", source="adr-3")
    _fill(bank, range(1, 5), importance=7)
    done = bank.stream.reflect("by hand")
    assert (done.reason, done.skipped, done.gathered, done.cycles) == ("by hand", "", 4, (1, 4))
    assert 1 <= len(done.entries) <= 5
    for entry in done.entries:
        assert (entry.type, entry.role, entry.cycle) == (EntryType.REFLECTION, "archivist", 4)
        assert entry.importance in (9, 10)
        assert {"reflection", "deterministic"} <= set(entry.tags)
        assert "Entries: " in entry.content
        assert bank.ledger.history(entry.id)[0].entry.actor.kind is ActorKind.ARCHIVIST
    assert "In the archive: adr-3#0." in done.entries[0].content
    assert [each.text for each in done.documents] == [entry.content for entry in done.entries]
    assert bank.documents.search("recurring blocker", type="lesson")[0].kind == "document"
    assert {each.type for each in done.documents} == {DocumentType.LESSON}
    assert bank.core.view().status.blockers == ("#84 stood in the way in 4 cycles",)
    assert bank.proposals.list() == []
    assert bank.ledger.verify().is_whole


@pytest.mark.req("C7")
def test_a_rule_that_was_decided_on_is_proposed_once(bank: Bank) -> None:
    rule = "Before every release restart the runners of #84"
    for cycles in (range(1, 5), range(5, 9)):
        _fill(bank, cycles, importance=7)
        bank.stream.log(rule, cycle=cycles[-1], type="decision", importance=7)
        bank.stream.reflect()
    (proposal,) = bank.proposals.list()
    assert proposal.after == f"- {rule}"
    assert len(proposal.evidence) == 4


@pytest.mark.req("C7")
def test_what_a_reflection_put_into_the_status_leaves_it_when_it_is_over(bank: Bank) -> None:
    _fill(bank, range(1, 4), importance=7)
    bank.core.append("blockers", "the vendor is slow")
    assert bank.stream.reflect().told_core == ("status blockers: #84 stood in the way in 3 cycles",)
    bank.stream.log("#84 is not fixed yet", cycle=4, role="qa")
    assert bank.stream.reflect().told_core == ()
    bank.stream.log("Closed #84, the vendor is fine", cycle=5, role="qa", importance=2)
    done = bank.stream.reflect()
    (told,), (insight,) = done.told_core, done.entries
    assert insight.action == "Reflection: #84 stood in the way in 3 cycles, ended in cycle 5"
    assert insight.content.startswith("What ended it: “Closed #84, the vendor is fine” (cycle 5, qa).")
    assert told.endswith("#84 stood in the way in 3 cycles (over in cycle 5)")
    assert bank.core.view().status.blockers == ("the vendor is slow",)


@pytest.mark.req("C6", "C7")
def test_a_blocker_of_an_agent_stops_no_reflection(bank: Bank) -> None:
    agent = bank.acting_as(Actor(ActorKind.AGENT, "ada", "research"))
    agent.core.append("blockers", "the embedding budget")
    _fill(bank, range(1, 5), importance=7)
    assert bank.stream.reflect().told_core == ("status blockers: #84 stood in the way in 4 cycles",)
    blockers = bank.core.view().status.blockers
    assert [line.partition(" (")[0] for line in blockers] == [
        "the embedding budget",
        "#84 stood in the way in 4 cycles",
    ]


@pytest.mark.req("C7")
def test_the_accumulator_starts_again_and_core_is_told_once(bank: Bank) -> None:
    _fill(bank, range(1, 5), importance=7)
    bank.stream.reflect("by hand")
    again = bank.stream.reflect("by hand")
    assert again.skipped == "nothing was logged since the last reflection"
    _fill(bank, range(5, 9), importance=7)
    more = bank.stream.reflect("by hand")
    assert (more.gathered, more.told_core) == (4, ())
    assert len(bank.core.view().status.blockers) == 1


@pytest.mark.req("C7")
def test_what_was_archived_is_drawn_on(bank: Bank) -> None:
    proxy, kiln = (
        "Login fails behind the proxy, blocked by #84",
        "Kiln sensor drops readings above 900 degrees",
    )
    bank.stream.log(proxy, cycle=3, role="qa", importance=7, type="observation")
    bank.stream.log("Proxy timeout raised to 30 s for #84", cycle=4, role="ops", importance=6)
    bank.stream.log("Looked at #84 in passing", cycle=4, role="ops", importance=4)
    bank.stream.log(kiln, cycle=5, role="qa", importance=7, type="observation")
    for cycle in range(6, 130):
        bank.stream.log(f"Part {cycle} of the handbook written", cycle=cycle, role="docs", importance=3)
    assert bank.stream.reflect().entries == ()
    assert all(entry.is_archived for entry in bank.stream.by_cycle(3, 5))
    bank.stream.log(f"{kiln} again", cycle=130, role="qa", importance=7, type="observation")
    bank.stream.log(f"{proxy} again", cycle=130, role="qa", importance=7, type="observation")
    told = {entry.action: entry.content for entry in bank.stream.reflect().entries}
    blocker = told["Reflection: #84 stood in the way in 2 cycles, open since cycle 3"]
    assert "It began with" in blocker
    assert "“Proxy timeout raised to 30 s for #84” (cycle 4, ops)" in blocker
    assert "in passing" not in blocker
    (sensor,) = (content for action, content in told.items() if "Kiln sensor" in action)
    assert "Reported in cycles 5, 130." in sensor


def test_only_what_matters_is_gathered(bank: Bank) -> None:
    bank.stream.log("c", importance=9, type="reflection")
    assert bank.stream.reflect("by hand").skipped == "nothing was logged since the last reflection"
    bank.stream.log("b", importance=5)
    bank.stream.log("a", importance=4)
    assert bank.stream.reflect("by hand").gathered == 1


def test_only_what_is_important_enough_is_gathered_but_all_is_done_with(bank: Bank) -> None:
    _fill(bank, range(1, 5), importance=4)
    done = bank.stream.reflect("by hand")
    assert (done.gathered, done.entries, done.skipped) == (0, (), "")
    assert bank.stream.reflect("by hand").skipped


def test_it_is_skipped_when_not_due_or_when_there_is_nothing(bank: Bank) -> None:
    for if_due in (True, False):
        done = bank.stream.reflect(if_due=if_due)
        assert done.skipped == "nothing was logged since the last reflection"
    bank.stream.log("Something")
    assert bank.stream.reflect(if_due=True).skipped == "not due"
    assert bank.stream.reflect("").skipped == "not due"
    assert bank.stream.reflect().reason == "by hand"


def test_logging_reflects_when_asked(bank: Bank) -> None:
    _fill(bank, range(1, 10), importance=7)
    assert bank.stream.due_reason() == ""
    _fill(bank, range(10, 11), importance=7, reflect=True)
    assert bank.stream.due_reason() == ""
    assert bank.stream.recent(1)[0].type is EntryType.REFLECTION


def test_an_agent_may_have_the_archivist_reflect(bank: Bank) -> None:
    _fill(bank, range(1, 5), importance=7)
    agent = bank.acting_as(Actor(ActorKind.AGENT, "a", "qa"))
    assert agent.stream.reflect("by hand").entries[0].role == "archivist"


def test_lessons_about_the_issue_are_remembered(bank: Bank) -> None:
    bank.lessons.add("Restart the runner when #84 shows up")
    _fill(bank, range(1, 3), importance=7)
    done = bank.stream.reflect("by hand")
    assert any("m-001" in entry.content for entry in done.entries)


def test_what_core_refuses_is_only_noted(tmp_path: Path) -> None:
    config = Config(core=CoreRules(status_tokens=1, rules_tokens=1))
    with fresh_bank(tmp_path, config=config) as bank:
        _fill(bank, range(1, 5), importance=7)
        done = bank.stream.reflect("by hand")
        assert done.entries
        assert (done.told_core, len(done.problems)) == ((), 1)


def test_thresholds_are_settings(tmp_path: Path) -> None:
    rules = StreamRules(reflect_at_importance=5, reflect_at_cycles=1000, gather_importance=8)
    with fresh_bank(tmp_path, config=Config(stream=rules)) as bank:
        _fill(bank, range(1, 4), importance=7)
        assert bank.stream.due_reason().endswith("over 5")
        assert bank.stream.reflect(if_due=True).gathered == 0


_REFLECT = """
import sys
from archivist import Bank
bank = Bank.open(sys.argv[1])
for number in range(15):
    if sys.argv[2] == "log":
        bank.stream.log("Blocked by red CI", cycle=number + 3, role="qa", importance=9, issues=[84])
    done = bank.stream.reflect(if_due=bool(number % 2))
    print(len(done.entries), done.gathered)
"""


@pytest.mark.req("C7")
def test_every_entry_is_gathered_exactly_once(tmp_path: Path) -> None:
    with fresh_bank(tmp_path) as bank:
        _fill(bank, range(1, 3), importance=9)
    runs = [
        subprocess.Popen([sys.executable, "-c", _REFLECT, str(tmp_path), what], stdout=subprocess.PIPE)
        for what in ("log", "watch", "watch")
    ]
    told = [run.communicate()[0].decode().split() for run in runs]
    assert all(run.returncode == 0 for run in runs)
    with Bank.open(tmp_path) as bank:
        last = bank.stream.reflect("by hand")
        entries = bank.stream.by_cycle(0, 999)
        written = sum(int(number) for out in told for number in out[::2]) + len(last.entries)
        taken = sum(int(number) for out in told for number in out[1::2]) + last.gathered
        logged = [entry for entry in entries if entry.type is not EntryType.REFLECTION]
        assert (len(logged), taken) == (17, 17)
        assert len(entries) - len(logged) == written
        seqs = sorted(entry.seq for entry in entries)
        assert seqs == list(range(1, len(entries) + 1))
        assert bank.ledger.verify().is_whole


def test_what_is_not_due_asks_for_no_leave_to_write(tmp_path: Path) -> None:
    config = Config(store=StoreRules(busy_timeout_s=0.1))
    with fresh_bank(tmp_path, config=config) as bank, Bank.open(tmp_path) as other:
        assert bank.stream.reflect(if_due=True).skipped
        bank.stream.log("Something")
        with other.transaction() as writer:
            writer.set_setting("held", "x")
            assert bank.stream.reflect(if_due=True).skipped == "not due"
            with pytest.raises(BankLockedError):
                bank.stream.reflect()
