"""Proposals: who decides, when they expire, how they read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.core.proposals import (
    RULE,
    diff,
    expire_if_due,
    is_rule_candidate,
    matches_actor,
    may_decide,
    parse_approvers,
    rebase_proposal,
    rule_line,
    to_issue,
    with_line,
)
from archivist.errors import ConfigError
from archivist.records import (
    Actor,
    ActorKind,
    CoreSection,
    Lesson,
    LessonType,
    Proposal,
    ProposalStatus,
    Status,
)

NOW = datetime(2026, 2, 8, tzinfo=UTC)
PROPOSAL = Proposal(
    id="01",
    number=7,
    section=CoreSection.RULES,
    before="- test first\n- ask",
    after="- test first\n- ask once",
    reason="Asking twice wastes a cycle.",
    proposer=Actor(ActorKind.AGENT, "coder", "maker"),
    created=NOW,
    expires=NOW + timedelta(days=30),
)
LESSON = Lesson(
    id="L",
    number=3,
    created=NOW,
    updated=NOW,
    edited=NOW,
    summary="The checks fail without a seed.",
    rule="IF the checks are to be run THEN give --seed",
    type=LessonType.PATTERN,
    status=Status.ACTIVE,
    runs=("r1", "r2", "r3", "r4", "r5"),
)

actors = st.builds(
    Actor, st.sampled_from(ActorKind), st.sampled_from(["", "ada", "ceo"]), st.sampled_from(["", "lead"])
)


@pytest.mark.parametrize(
    ("pattern", "actor", "does_fit"),
    [
        ("human", "human:ada", True),
        ("human:ada", "human:ada:lead", True),
        ("human:ada", "human:bob", False),
        ("human:ada", "human", False),
        ("agent::lead", "agent:ceo:lead", True),
        ("agent::lead", "agent:ceo:maker", False),
        ("agent:ceo", "human:ceo", False),
    ],
)
def test_an_approver_fits_a_pattern_whose_parts_it_has(pattern: str, actor: str, does_fit: bool) -> None:
    assert matches_actor(Actor.parse(pattern), Actor.parse(actor)) is does_fit


@given(actors)
def test_everybody_fits_their_own_name_and_their_kind(actor: Actor) -> None:
    assert matches_actor(actor, actor)
    assert matches_actor(Actor(actor.kind), actor)


def test_approvers_are_read_from_a_list() -> None:
    assert parse_approvers("human, agent:ceo,,orchestrator::lead ") == (
        Actor(ActorKind.HUMAN),
        Actor(ActorKind.AGENT, "ceo"),
        Actor(ActorKind.ORCHESTRATOR, "", "lead"),
    )
    assert parse_approvers("") == ()
    with pytest.raises(ConfigError, match=r"proposals\.approvers: unknown actor kind 'boss'"):
        parse_approvers("human, boss")


@pytest.mark.req("C10")
@given(actors, actors, st.lists(actors, max_size=3))
def test_only_people_decide_on_their_own_proposals(
    actor: Actor, proposer: Actor, patterns: list[Actor]
) -> None:
    is_own = (actor.kind, actor.name) == (proposer.kind, proposer.name)
    if may_decide(actor, proposer, patterns):
        assert any(matches_actor(pattern, actor) for pattern in patterns)
        assert actor.kind is ActorKind.HUMAN or not is_own


def test_an_open_proposal_past_its_time_has_expired() -> None:
    assert expire_if_due(PROPOSAL, NOW) is PROPOSAL
    expired = expire_if_due(PROPOSAL, PROPOSAL.expires)
    assert (expired.status, expired.decided) == (ProposalStatus.EXPIRED, PROPOSAL.expires)
    accepted = replace(PROPOSAL, status=ProposalStatus.ACCEPTED)
    assert expire_if_due(accepted, PROPOSAL.expires + timedelta(days=1)) is accepted


def test_the_diff_says_what_changes() -> None:
    assert diff(PROPOSAL) == (
        "--- rules before\n+++ rules after p-007\n@@ -1,2 +1,2 @@\n - test first\n-- ask\n+- ask once\n"
    )
    assert "rules:ops before" in diff(replace(PROPOSAL, role="ops"))


def test_an_issue_has_title_reason_evidence_and_a_diff_in_a_fence_that_holds() -> None:
    text = to_issue(replace(PROPOSAL, after="````sh\nrm -r x\n````"), ["m-003: It fails"])
    title, blank, *body = text.splitlines()
    assert (title, blank) == ("Proposal p-007: change rules", "")
    assert "- m-003: It fails" in body
    assert body.count("`````diff") == 1
    assert body.count("`````") == 1
    assert "Evidence:" not in to_issue(PROPOSAL, [])


@pytest.mark.req("C10")
@pytest.mark.parametrize(
    ("status", "ending"),
    [
        (ProposalStatus.OPEN, "To decide: `archivist proposals accept p-007`"),
        (
            ProposalStatus.ACCEPTED,
            "Accepted on 2026-02-09 by human:ada. Fine. `archivist proposals roll-back p-007`",
        ),
        (ProposalStatus.REJECTED, "Rejected on 2026-02-09 by human:ada. Fine."),
        (ProposalStatus.EXPIRED, "Expired on 2026-02-09"),
        (ProposalStatus.ROLLED_BACK, "Rolled back on 2026-02-09"),
    ],
)
def test_an_issue_says_what_became_of_the_proposal(status: ProposalStatus, ending: str) -> None:
    by, comment = Actor(ActorKind.HUMAN, "ada"), "Fine."
    decided = replace(
        PROPOSAL, status=status, decided=NOW + timedelta(days=1), decided_by=by, comment=comment
    )
    text = to_issue(decided, [])
    assert text.splitlines()[-1].startswith(ending)
    assert ("open until" in text) is (status is ProposalStatus.OPEN)


@pytest.mark.req("C10")
def test_a_failure_met_often_enough_makes_a_rule() -> None:
    assert is_rule_candidate(LESSON, at_runs=5)
    assert not is_rule_candidate(LESSON, at_runs=6)
    for other in (
        replace(LESSON, type=LessonType.PREFERENCE),
        replace(LESSON, status=Status.ARCHIVED),
        replace(LESSON, rule=" "),
    ):
        assert not is_rule_candidate(other, at_runs=5)
    assert rule_line(LESSON) == "- IF the checks are to be run THEN give --seed (m-003)"
    assert rule_line(replace(LESSON, rule="", remedies=("give --seed",))) == (
        "- The checks fail without a seed: give --seed (m-003)"
    )


@given(
    st.text(), st.text(min_size=1).filter(lambda line: len(line.splitlines()) == 1 and line == line.strip())
)
def test_a_line_is_added_once(text: str, line: str) -> None:
    once = with_line(text, line)
    assert with_line(once, line) == once
    assert line in once.splitlines()


def test_a_rule_that_waits_is_an_addition_to_the_text_that_stands() -> None:
    waiting = replace(PROPOSAL, extra={RULE: "- one more"})
    again = rebase_proposal(waiting, "- other")
    assert (again.before, again.after) == ("- other", "- other\n- one more")
