"""Proposals through the bank: made, decided, expired, rolled back, and made by failures themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from archivist import Bank
from archivist.bus import Message
from archivist.config import Config, CoreRules, ProposalRules, StoreRules
from archivist.errors import AccessError, ConfigError, DecidedError, InputError, NotFoundError
from archivist.records import (
    ARCHIVIST,
    Actor,
    ActorKind,
    Effect,
    Following,
    Lesson,
    Proposal,
    ProposalStatus,
    Status,
    Verdict,
)
from tests.banks import fresh_bank
from tests.conftest import TickingClock
from tests.samples import finding, reviewed, write_jsonl
from tests.samples import lesson as sample

CODER = Actor(ActorKind.AGENT, "coder", "maker")
NULLS = "Missing null checks in API response handlers"


@pytest.fixture
def coder(bank: Bank) -> Bank:
    """Return the bank in the name of an agent."""
    return bank.acting_as(CODER)


def _propose(bank: Bank, text: str = "- Test first", section: str = "rules", role: str = "") -> Proposal:
    return bank.proposals.propose(section, text, reason="reviews failed", role=role)


def _rules(bank: Bank) -> str:
    return bank.core.view().rules


def _teach(
    bank: Bank, runs: int, text: str = NULLS, rule: str = "IF a response is read THEN check it"
) -> Lesson:
    for number in range(runs):
        bank.runs.finish_run(*reviewed(f"{text[:4]}-{number}", finding(text)))
    with bank.transaction() as writer:
        found = next(each for each in writer.select(Lesson) if each.summary == text)
        lesson = replace(found, rule=rule)
        writer.put(lesson, "edit")
    return lesson


# Proposing and deciding


@pytest.mark.req("C10")
def test_a_proposal_changes_a_block_once_somebody_accepted_it(bank: Bank, coder: Bank) -> None:
    lesson = bank.lessons.add("Tests come first")
    made = coder.proposals.propose(
        "rules", "- Test first\n", reason="three reviews failed", evidence=["m-001", lesson.id]
    )
    assert (made.short_id, made.status, made.proposer) == ("p-001", ProposalStatus.OPEN, CODER)
    assert (made.before, made.after, made.evidence) == ("", "- Test first", (lesson.id,))
    assert made.expires - made.created == timedelta(days=30)
    assert _rules(bank) == ""
    accepted = bank.proposals.accept("P-001", comment="yes")
    assert (accepted.status, accepted.comment) == (ProposalStatus.ACCEPTED, "yes")
    assert str(accepted.decided_by) == "human:ada"
    assert _rules(bank) == "- Test first"
    assert bank.proposals.get(made.id) == accepted == bank.proposals.list()[0]
    assert list(bank.proposals.evidence("p-001")) == ["m-001: Tests come first"]
    assert "+- Test first" in bank.proposals.diff("p-001")
    assert bank.proposals.to_issue("p-001").startswith(
        "Proposal p-001: change rules\n\nthree reviews failed\n"
    )
    assert [each.entry.verb for each in bank.ledger.history("p-001")] == ["propose", "accept"]
    assert [each.entry.verb for each in bank.ledger.history("rules")] == ["accept p-001"]
    assert bank.ledger.verify().is_whole


@pytest.mark.req("C10")
def test_a_rejected_proposal_changes_nothing(bank: Bank, coder: Bank) -> None:
    _propose(coder)
    assert bank.proposals.reject("p-001", comment="too broad").status is ProposalStatus.REJECTED
    assert _rules(bank) == ""
    assert bank.proposals.list(ProposalStatus.OPEN) == []
    assert _propose(coder).short_id == "p-002"


@pytest.mark.req("C10")
def test_a_role_has_a_playbook_of_its_own_beside_the_shared_one(bank: Bank, coder: Bank) -> None:
    _propose(coder, "Ship.", "playbook")
    _propose(coder, "Make.", "playbook", "maker")
    for name in ("p-001", "p-002"):
        bank.proposals.accept(name)
    assert (bank.core.view("maker").playbook, bank.core.view("ops").playbook) == ("Ship.\n\nMake.", "Ship.")


@pytest.mark.parametrize(
    ("actor", "decide"),
    [
        (actor, decide)
        for actor in ("agent:coder:maker", "agent:other", "orchestrator:main", "archivist")
        for decide in ("accept", "reject")
    ],
)
@pytest.mark.req("C10", "M8")
def test_only_approvers_decide_and_the_refusal_is_in_the_ledger(
    bank: Bank, coder: Bank, actor: str, decide: str
) -> None:
    _propose(coder)
    desk = bank.acting_as(Actor.parse(actor)).proposals
    with pytest.raises(AccessError) as refused:
        getattr(desk, decide)("p-001")
    assert refused.value.message == f"{actor} may not decide proposals of 'p-001'"
    assert "proposals.approvers: human" in refused.value.hint
    (denial,) = bank.ledger.denials()
    assert (str(denial.entry.actor), denial.entry.verb) == (actor, "deny decide")
    assert bank.proposals.get("p-001").status is ProposalStatus.OPEN


@pytest.mark.req("C10")
def test_named_approvers_decide_but_never_on_their_own(bank: Bank) -> None:
    bank.config = Config(proposals=ProposalRules(approvers="human:ada, agent:ceo"))
    ceo, other = bank.acting_as(Actor(ActorKind.AGENT, "ceo")), bank.acting_as(CODER)
    _propose(ceo)
    for role in ("", "lead"):
        with pytest.raises(AccessError):
            bank.acting_as(Actor(ActorKind.AGENT, "ceo", role)).proposals.accept("p-001")
    _propose(other, "- Ask once")
    ceo.proposals.accept("p-002")
    with pytest.raises(AccessError):
        bank.acting_as(Actor(ActorKind.HUMAN, "bob")).proposals.roll_back("p-002")
    assert _rules(bank) == "- Ask once"


def test_approvers_that_cannot_be_read_say_so(bank: Bank, coder: Bank) -> None:
    _propose(coder)
    bank.config = Config(proposals=ProposalRules(approvers="boss"))
    with pytest.raises(ConfigError, match="unknown actor kind 'boss'"):
        bank.proposals.accept("p-001")


@pytest.mark.req("C10")
def test_a_person_who_approves_changes_rules_in_one_step_recorded_as_both(bank: Bank, coder: Bank) -> None:
    adopted = bank.proposals.adopt("rules", "- Test first", reason="our first rule")
    assert (adopted.status, adopted.proposer, adopted.decided_by) == (
        ProposalStatus.ACCEPTED, bank.actor, bank.actor,
    )  # fmt: skip
    assert _rules(bank) == "- Test first"
    assert [each.entry.verb for each in bank.ledger.history("p-001")] == ["propose", "accept"]
    bank.config = Config(proposals=ProposalRules(approvers="agent:coder, human:ada"))
    for other in (coder, bank.acting_as(Actor(ActorKind.HUMAN, "bob"))):
        other.config = bank.config
        with pytest.raises(AccessError):
            other.proposals.adopt("rules", "mine", reason="x")
    assert [each.short_id for each in bank.proposals.list()] == ["p-001"]


# Going back, going stale, expiring


@pytest.mark.req("C10")
def test_what_was_accepted_can_be_rolled_back_while_nothing_changed_since(bank: Bank) -> None:
    bank.proposals.adopt("rules", "- One", reason="x")
    bank.proposals.adopt("rules", "- One\n- Two", reason="x")
    with pytest.raises(InputError, match="rules was changed since p-001 was accepted"):
        bank.proposals.roll_back("p-001")
    rolled = bank.proposals.roll_back("p-002", comment="too much")
    assert (rolled.status, rolled.comment) == (ProposalStatus.ROLLED_BACK, "too much")
    assert rolled.extra["accepted_by"] == "human:ada"
    assert _rules(bank) == "- One"
    bank.proposals.roll_back("p-001")
    assert _rules(bank) == ""
    with pytest.raises(InputError, match="p-001 was rolled back"):
        bank.proposals.roll_back("p-001")


@pytest.mark.parametrize(
    ("settle", "again", "reason"),
    [
        ("accept", "accept", "p-001 was accepted on 2026-04-03 by human:ada: there is nothing to accept"),
        ("accept", "reject", "p-001 was accepted"),
        ("reject", "accept", "p-001 was rejected"),
        ("reject", "roll_back", "p-001 was rejected"),
        ("", "roll_back", "p-001 is open"),
    ],
)
def test_a_proposal_is_decided_once(bank: Bank, coder: Bank, settle: str, again: str, reason: str) -> None:
    _propose(coder)
    if settle:
        getattr(bank.proposals, settle)("p-001")
    with pytest.raises(InputError) as refused:
        getattr(bank.proposals, again)("p-001")
    assert refused.value.message.startswith(reason)
    assert refused.value.hint


def test_a_proposal_against_a_text_that_is_gone_is_not_accepted(bank: Bank, coder: Bank) -> None:
    _propose(coder, "- One")
    _propose(coder, "- Two")
    bank.proposals.accept("p-002")
    with pytest.raises(InputError, match="rules was changed since p-001 was proposed"):
        bank.proposals.accept("p-001")
    assert _propose(coder, "- One").short_id == "p-003"


def test_an_equal_open_proposal_is_returned_not_doubled(bank: Bank, coder: Bank) -> None:
    first = _propose(coder)
    assert _propose(bank) == first
    assert _propose(coder, role="maker").short_id == "p-002"


@pytest.mark.req("C10")
def test_an_open_proposal_expires_and_the_next_write_says_so(
    bank: Bank, coder: Bank, clock: TickingClock
) -> None:
    _propose(coder)
    clock.now += timedelta(days=31)
    assert bank.proposals.get("p-001").status is ProposalStatus.EXPIRED
    assert [each.entry.verb for each in bank.ledger.history("p-001")] == ["propose"]
    with pytest.raises(InputError, match="p-001 expired on 2026-05-03"):
        bank.proposals.accept("p-001")
    assert _propose(coder).short_id == "p-002"
    assert [(str(e.entry.actor), e.entry.verb) for e in bank.ledger.history("p-001")][1:] == [
        ("archivist", "expire")
    ]
    assert _rules(bank) == ""


# Bad input


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda desk: desk.propose("status", "x", reason="y"), "status needs no proposal"),
        (lambda desk: desk.propose("nothing", "x", reason="y"), "no section 'nothing'"),
        (lambda desk: desk.propose("rules", "x", reason=" \n"), "needs a reason"),
        (lambda desk: desk.propose("rules", "x", reason="y" * 5_000), "5,000 characters"),
        (lambda desk: desk.propose("rules", "", reason="y"), "says that already"),
        (lambda desk: desk.propose("rules", 7, reason="y"), "expected a text"),
        (lambda desk: desk.propose("rules", "x", reason="y", role="a:b"), "is no role"),
        (lambda desk: desk.propose("rules", "x", reason="y", evidence=["m-404"]), "no lesson 'm-404'"),
        (lambda desk: desk.propose("rules", "x", reason="y", evidence=["zzz"]), "evidence 'zzz' is no"),
        (lambda desk: desk.propose("rules", "x", reason="y", evidence=["z"] * 101), "101 pieces"),
        (lambda desk: desk.propose("rules", "x" * 20_000, reason="y"), "rules: 5,003 tokens, at most 4,500"),
        (lambda desk: desk.accept("p-404"), "no proposal 'p-404'"),
        (lambda desk: desk.diff(""), "no proposal ''"),
    ],
)
def test_bad_input_is_refused_in_words(bank: Bank, attempt: Callable[..., object], reason: str) -> None:
    with pytest.raises((InputError, NotFoundError)) as refused:
        attempt(bank.proposals)
    assert reason in refused.value.message
    assert bank.proposals.list() == []


def test_the_budget_is_looked_at_again_when_a_proposal_is_accepted(bank: Bank, coder: Bank) -> None:
    _propose(coder, "x" * 400)
    bank.config = Config(core=CoreRules(rules_tokens=50))
    with pytest.raises(InputError, match="53 too many"):
        bank.proposals.accept("p-001")


def test_secrets_stay_out_of_proposals(bank: Bank) -> None:
    token = "ghp_" + "a1B2" * 9
    made = bank.proposals.propose("rules", f"Use {token}", reason=f"because {token}")
    assert token not in made.after + made.reason


# Ways around


@pytest.mark.req("C10")
@pytest.mark.parametrize("name", ["rules", "p-001"])
def test_undo_is_no_way_around_approval(bank: Bank, name: str) -> None:
    bank.proposals.adopt("rules", "- One", reason="x")
    for actor in (bank.actor, Actor(ActorKind.ORCHESTRATOR), ARCHIVIST):
        with pytest.raises(AccessError) as refused:
            bank.acting_as(actor).ledger.undo(name)
        assert "roll-back" in refused.value.hint
    assert _rules(bank) == "- One"
    assert len(bank.ledger.denials()) == 3


@pytest.mark.req("C10")
def test_erasing_is_no_way_around_approval_but_an_approver_may(bank: Bank) -> None:
    bank.proposals.adopt("rules", "- Call 555-0100", reason="x")
    orchestrator = bank.acting_as(Actor(ActorKind.ORCHESTRATOR))
    for names, text in ((["rules"], ""), ([bank.proposals.get("p-001").id], ""), ([], "555-0100")):
        with pytest.raises(AccessError):
            orchestrator.erasure.erase(names, matching=text)
    assert _rules(bank) == "- Call 555-0100"
    bank.erasure.erase(matching="555-0100")
    assert _rules(bank) == "- Call [erased]"
    assert bank.ledger.verify().is_whole


@pytest.mark.req("C10")
def test_importing_is_no_way_around_approval_but_a_person_who_approves_may(
    bank: Bank, tmp_path: Path, clock: TickingClock
) -> None:
    bank.proposals.adopt("rules", "- One", reason="x")
    bank.core.update("status", "Two")
    bank.exchange.export(tmp_path / "out")
    files = [tmp_path / "out" / name for name in ("core.jsonl", "proposals.jsonl")]
    with fresh_bank(tmp_path / "other", actor=bank.actor, clock=clock) as other:
        orchestrator = other.acting_as(Actor(ActorKind.ORCHESTRATOR))
        for file in files:
            with pytest.raises(AccessError, match="orchestrator may not decide proposals of"):
                orchestrator.exchange.import_files([file])
        assert (other.core.render(), other.proposals.list()) == ("", [])
        done = other.exchange.import_files(files)
        assert (other.core.render(), done.left) == ("", {"blocks": 2, "proposals": 1})
        other.exchange.import_files(files, is_approved=True)
        assert other.core.render() == bank.core.render()
        assert orchestrator.exchange.import_files(files).created == {}
        assert other.proposals.propose("rules", "- Two", reason="x").short_id == "p-002"
        assert other.ledger.verify().is_whole


def test_a_block_that_nobody_could_read_is_not_imported(bank: Bank, tmp_path: Path) -> None:
    line = {"section": "status", "content": {"sprnt": 1}, "updated": "2026-01-01T00:00:00Z"}
    write_jsonl(tmp_path / "core.jsonl", [line])
    with pytest.raises(InputError, match="status: sprnt: unknown field"):
        bank.exchange.import_files([tmp_path / "core.jsonl"])
    assert bank.core.render() == ""


# Rules from failures


@pytest.mark.req("C10")
def test_a_failure_that_enough_runs_met_proposes_a_rule_by_itself(bank: Bank) -> None:
    lesson = _teach(bank, 4)
    assert bank.proposals.list() == []
    bank.runs.finish_run(*reviewed("fifth", finding(NULLS)))
    (made,) = bank.proposals.list()
    assert made.after == "- IF a response is read THEN check it (m-001)"
    assert (made.proposer, made.evidence) == (ARCHIVIST, (lesson.id,))
    assert made.reason == f"m-001 was met in 5 runs: {NULLS}"
    bank.runs.finish_run(*reviewed("sixth", finding(NULLS)))
    assert len(bank.proposals.list()) == 1
    bank.proposals.reject("p-001")
    bank.runs.finish_run(*reviewed("seventh", finding(NULLS)))
    assert bank.proposals.propose_rules() == []


def test_a_lesson_without_a_remedy_proposes_nothing(bank: Bank) -> None:
    _teach(bank, 6, rule="")
    assert bank.proposals.propose_rules() == []


@pytest.mark.req("C10")
def test_the_proposal_of_a_retired_lesson_is_withdrawn_with_the_reason(bank: Bank) -> None:
    lesson = _teach(bank, 5)
    other = _teach(bank, 5, "Forgotten database migration in release script", "IF three THEN four")
    bank.proposals.propose_rules()
    assert bank.doctor.status()["open_proposals"] == 2
    bank.forget(lesson.id)
    bank.lessons.archive(other.id, bank.lessons.add("Migrations are part of a release").id)
    first, second = bank.proposals.list()
    assert (first.status, first.comment) == (ProposalStatus.WITHDRAWN, "m-001 was archived")
    assert (second.status, second.comment) == (ProposalStatus.WITHDRAWN, "m-002 was superseded by m-003")
    assert bank.doctor.status()["open_proposals"] == 0
    with pytest.raises(DecidedError, match="p-001 was withdrawn"):
        bank.proposals.accept("p-001")
    # The next run writes it down, in the archivist's name.
    bank.runs.finish_run(*reviewed("later", finding("Something else is wrong here")))
    last = bank.ledger.history(first.id)[-1].entry
    assert (last.verb, last.actor) == ("withdraw", ARCHIVIST)
    # A lesson that is used again is proposed again.
    bank.ledger.undo(lesson.id)
    assert [each.evidence for each in bank.proposals.propose_rules()] == [(lesson.id,)]


def _judge(bank: Bank, lesson: Lesson, *, helpful: int = 0, vain: int = 0) -> None:
    """Write verdicts of runs that followed a lesson: it helped in some, others failed all the same."""
    effects = [Effect.HELPFUL] * helpful + [Effect.INEFFECTIVE] * vain
    with bank.transaction() as writer:
        for number, effect in enumerate(effects):
            writer.put(
                Verdict(
                    run=f"judged-{number}",
                    lesson=lesson.id,
                    effect=effect,
                    following=Following.FOLLOWED,
                    failed=effect is Effect.INEFFECTIVE,
                    time=bank.now(),
                ),
                "judge",
            )


@pytest.mark.req("C10")
def test_a_proposal_has_the_current_words_of_its_lesson(bank: Bank) -> None:
    lesson = _teach(bank, 5)
    bank.proposals.propose_rules()
    bank.lessons.edit(lesson.id, rule="IF a response is read THEN parse it")
    bank.runs.finish_run(*reviewed("another", finding(NULLS)))
    shown = bank.proposals.get("p-001")
    assert shown.after == "- IF a response is read THEN parse it (m-001)"
    assert shown.reason == f"m-001 was met in 6 runs: {NULLS}"
    last = bank.ledger.history("p-001")[-1].entry
    assert (last.verb, last.actor) == ("refresh", ARCHIVIST)
    bank.proposals.accept("p-001")
    assert _rules(bank) == "- IF a response is read THEN parse it (m-001)"
    assert bank.ledger.verify().is_whole


@pytest.mark.req("C10")
@pytest.mark.parametrize("is_accepted", [False, True])
def test_a_lesson_that_was_edited_to_say_less_stops_nothing(bank: Bank, is_accepted: bool) -> None:
    lesson = _teach(bank, 5)
    bank.proposals.propose_rules()
    if is_accepted:
        bank.proposals.accept("p-001")
    bank.lessons.edit(lesson.id, summary="Responses are parsed in one place since spring", rule="")
    (known,) = bank.proposals.list()
    if is_accepted:
        assert known.status is ProposalStatus.ACCEPTED
    else:
        assert known.status is ProposalStatus.WITHDRAWN
        assert known.comment == "m-001 no longer says what to do"
    bank.runs.finish_run(*reviewed("another", finding(NULLS)))


def test_that_a_test_fails_is_proposed_as_no_rule(bank: Bank) -> None:
    lesson = _teach(bank, 6)
    with bank.transaction() as writer:
        writer.put(replace(lesson, signature="shop|test_failure:mocha:test failed:adds"), "edit")
    assert bank.proposals.propose_rules() == []


@pytest.mark.req("C10")
def test_a_proposal_whose_lesson_does_not_help_is_withdrawn_and_not_made_again(bank: Bank) -> None:
    lesson = _teach(bank, 5)
    bank.proposals.propose_rules()
    _judge(bank, lesson, helpful=3, vain=3)
    shown = bank.proposals.get("p-001")
    assert shown.status is ProposalStatus.WITHDRAWN
    assert shown.comment == (
        "m-001 does not help as it stands: 3 of 6 runs that followed it still failed: correct the remedy"
    )
    with pytest.raises(DecidedError, match="p-001 was withdrawn"):
        bank.proposals.accept("p-001")
    assert bank.proposals.propose_rules() == []


@pytest.mark.req("C10")
def test_a_rule_that_no_longer_says_what_its_lesson_says_is_named(bank: Bank) -> None:
    lesson = _teach(bank, 5)
    bank.proposals.propose_rules()
    bank.proposals.accept("p-001")
    assert bank.proposals.outdated_rules() == []
    bank.lessons.edit(lesson.id, rule="IF a response is read THEN parse it")
    ((rule, reason),) = bank.proposals.outdated_rules()
    assert rule.short_id == "p-001"
    assert reason == "m-001 says now: IF a response is read THEN parse it (m-001)"
    _judge(bank, lesson, vain=3)
    assert "does not help as it stands" in bank.proposals.outdated_rules()[0][1]
    bank.forget(lesson.id)
    assert bank.proposals.outdated_rules()[0][1] == "m-001 was archived"
    # A rule that was taken out again is nobody's business.
    bank.proposals.roll_back("p-001")
    assert bank.proposals.outdated_rules() == []


@pytest.mark.req("C10")
def test_a_proposal_of_a_person_warns_of_lessons_that_changed_or_do_not_help(bank: Bank) -> None:
    lesson = _teach(bank, 2)
    bank.proposals.propose("rules", "- Check responses", reason="x", evidence=[lesson.short_id])
    assert bank.proposals.doubts("p-001") == []
    bank.lessons.edit(lesson.id, rule="IF a response is read THEN parse it")
    _judge(bank, lesson, vain=3)
    assert bank.proposals.doubts("p-001") == [
        "m-001, which it cites, was changed since",
        "m-001: 3 of 3 runs that followed it still failed: correct the remedy",
    ]
    assert bank.proposals.get("p-001").status is ProposalStatus.OPEN
    bank.forget(lesson.id)
    assert bank.proposals.doubts("p-001")[0] == "m-001, which it cites, was archived"


@pytest.mark.req("C10")
def test_rules_that_wait_stay_acceptable_when_the_rules_change(bank: Bank) -> None:
    _teach(bank, 5, rule="IF one THEN two")
    _teach(bank, 5, "Forgotten database migration in release script", "IF three THEN four")
    bank.proposals.propose_rules()
    assert len(bank.proposals.list(ProposalStatus.OPEN)) == 2
    bank.proposals.adopt("rules", "- Test first", reason="x")
    bank.proposals.accept("p-001")
    bank.proposals.accept("p-002")
    assert _rules(bank).splitlines()[0] == "- Test first"
    assert sorted(_rules(bank).splitlines()[1:]) == [
        "- IF one THEN two (m-001)",
        "- IF three THEN four (m-002)",
    ]
    assert bank.ledger.verify().is_whole


def test_a_rule_that_has_no_room_is_not_proposed_and_no_run_fails(bank: Bank) -> None:
    _teach(bank, 4)
    bank.config = Config(core=CoreRules(rules_tokens=1))
    bank.runs.finish_run(*reviewed("fifth", finding(NULLS)))
    assert bank.proposals.list() == []


def test_a_bank_that_cannot_take_the_rules_says_so_and_no_run_fails(tmp_path: Path) -> None:
    with fresh_bank(tmp_path, config=Config(store=StoreRules(busy_timeout_s=0.1))) as bank:
        _teach(bank, 5)
        heard: list[Message] = []
        bank.bus.subscribe(heard.append)
        other = apsw.Connection(str(bank.path))
        other.execute("BEGIN IMMEDIATE")
        bank.proposals.propose_rules_quietly()
        other.close()
    assert [message.type for message in heard] == ["proposing_failed"]
    assert "0.1 s" in str(heard[0].data["error"])


def test_no_more_rules_are_proposed_than_people_read(bank: Bank) -> None:
    first = _teach(bank, 5)
    with bank.transaction() as writer:
        for number in range(2, 20):
            writer.put(replace(first, id=f"L{number}", number=number, rule=f"IF {number} THEN stop"), "add")
    assert len(bank.proposals.propose_rules()) == 10
    assert bank.proposals.propose_rules() == []
    bank.proposals.accept("p-001")
    assert len(bank.proposals.propose_rules()) == 1


@pytest.mark.req("C10")
def test_a_rule_is_proposed_only_while_what_it_names_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    script = folder / "tools" / "sync.sh"
    script.parent.mkdir(parents=True)
    script.write_text("exit 0\n")
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@host.example"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "sync"]):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    runs = tuple(f"r-{number}" for number in range(6))
    rule = "IF tests fail THEN run `tools/sync.sh` first"
    learnt = sample("a", summary="Tests need `tools/sync.sh`", rule=rule, runs=runs, status=Status.ACTIVE)
    with fresh_bank(folder) as bank:
        with bank.transaction() as writer:
            writer.put(learnt, "reflect")
        assert [each.short_id for each in bank.proposals.propose_rules()] == ["p-001"]
        subprocess.run([*git, "rm", "-q", "tools/sync.sh"], cwd=folder, check=True, capture_output=True)
        assert bank.proposals.propose_rules() == []
        withdrawn = bank.proposals.get("p-001")
        assert withdrawn.status is ProposalStatus.WITHDRAWN
        assert withdrawn.comment.startswith("m-001 is out of date: ")


@pytest.mark.req("C10")
def test_a_proposal_of_a_lesson_that_is_a_candidate_again_is_withdrawn(bank: Bank) -> None:
    lesson = _teach(bank, 5)
    bank.proposals.propose_rules()
    with bank.transaction() as writer:
        writer.put(replace(bank.lessons.get(lesson.id), status=Status.CANDIDATE), "decay")
    assert bank.proposals.get("p-001").comment == "m-001 is candidate again"
