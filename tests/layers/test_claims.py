"""The rule by which one of two words stands, without a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import InputError
from archivist.layers.claims import (
    fact_id,
    resolve_claim,
    reverse_conflict,
    source_of,
    update_conflicts,
    uphold_conflict,
)
from archivist.records import Actor, ActorKind, Conflict, ConflictStatus, Fact

START = datetime(2026, 4, 3, tzinfo=UTC)


def _fact(value: str, source: str = "a", confidence: float = 1.0, *, at: int = 0, origin: str = "") -> Fact:
    moment = START + timedelta(seconds=at)
    return Fact(
        id=fact_id("", "decision", "orm"),
        category="decision",
        key="orm",
        value=value,
        source=source,
        confidence=confidence,
        created=moment,
        updated=moment,
        origin=origin,
    )


FACTS = st.builds(
    _fact,
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([0.0, 0.3, 0.3000001, 0.9, 1.0]),
)


@pytest.mark.req("M3")
def test_higher_confidence_wins_whoever_comes_first() -> None:
    strong, weak = _fact("x", "a", 0.9), _fact("y", "b", 0.4, at=1)
    kept = resolve_claim(strong, weak, respects_rulings=True)
    assert (kept.fact, kept.is_changed) == (strong, False)
    assert kept.conflict is not None
    assert (kept.conflict.kept, kept.conflict.lost) == ("x", "y")
    assert kept.conflict.reason == "a is surer (0.9) than b (0.4)"
    other = resolve_claim(weak, replace(strong, updated=START + timedelta(seconds=2)), respects_rulings=True)
    assert other.fact.value == "x"
    assert other.fact.created == weak.created
    assert other.conflict is not None
    assert (other.conflict.lost, other.conflict.lost_source) == ("y", "b")


@pytest.mark.req("M3")
def test_of_equally_sure_words_the_newer_wins() -> None:
    kept = resolve_claim(_fact("x", "a", 0.5), _fact("y", "b", 0.5, at=1), respects_rulings=True)
    assert (kept.fact.value, kept.is_changed) == ("y", True)
    assert kept.conflict is not None
    assert kept.conflict.reason == "b and a are equally sure (0.5): newer wins"


def test_a_source_changes_its_own_word_without_a_conflict() -> None:
    kept = resolve_claim(_fact("x", "a", 0.9), _fact("y", "a", 0.1, at=1), respects_rulings=True)
    assert (kept.fact.value, kept.fact.confidence, kept.conflict) == ("y", 0.1, None)


def test_the_same_source_from_another_file_is_another_voice() -> None:
    kept = resolve_claim(
        _fact("x", "a", origin="one.md"), _fact("y", "a", origin="two.md"), respects_rulings=True
    )
    assert kept.conflict is not None


@given(FACTS, FACTS)
def test_one_of_the_two_stands_and_the_other_is_never_lost(first: Fact, second: Fact) -> None:
    kept = resolve_claim(first, second, respects_rulings=True)
    assert kept.fact.value in (first.value, second.value)
    if first.value == second.value:
        assert kept.conflict is None
        assert kept.fact.confidence == max(first.confidence, second.confidence)
    elif first.source == second.source:
        assert (kept.fact.value, kept.conflict) == (second.value, None)
    else:
        assert kept.conflict is not None
        assert {kept.conflict.kept, kept.conflict.lost} == {first.value, second.value}
        assert kept.conflict.kept == kept.fact.value
        assert kept.conflict.kept_confidence >= kept.conflict.lost_confidence


@given(FACTS, FACTS)
def test_saying_a_losing_claim_again_finds_the_same_conflict(first: Fact, second: Fact) -> None:
    once = resolve_claim(first, second, respects_rulings=True)
    if once.conflict is None or once.is_changed:
        return
    again = resolve_claim(
        once.fact, replace(second, updated=START + timedelta(days=1)), [once.conflict], respects_rulings=True
    )
    assert again.conflict == once.conflict


@given(st.lists(FACTS, max_size=12))
def test_open_conflicts_always_say_what_stands(said: list[Fact]) -> None:
    standing: Fact | None = None
    disputes: dict[str, Conflict] = {}
    for at, each in enumerate(said):
        now = START + timedelta(seconds=at)
        claim = replace(each, created=now, updated=now)
        kept = resolve_claim(standing, claim, list(disputes.values()), respects_rulings=True)
        if standing is not None and kept.fact.value != standing.value:
            disputes |= {each.id: each for each in update_conflicts(list(disputes.values()), kept.fact, now)}
        if kept.conflict is not None:
            disputes[kept.conflict.id] = kept.conflict
        standing = kept.fact
        for conflict in disputes.values():
            if conflict.status is ConflictStatus.OPEN:
                assert conflict.kept == standing.value
                assert conflict.lost != standing.value


def test_what_was_decided_against_does_not_come_back_by_being_said_again() -> None:
    first, second = _fact("x", "a", 0.5), _fact("y", "b", 0.5, at=1)
    won = resolve_claim(first, second, respects_rulings=True)
    assert won.conflict is not None
    done, fact = reverse_conflict(won.conflict, won.fact, by="orchestrator", now=START)
    assert (fact.value, fact.source, done.status) == ("x", "a", ConflictStatus.REVERSED)
    bound = resolve_claim(fact, replace(second, confidence=0.9), [done], respects_rulings=True)
    assert bound == (fact, False, done)
    free = resolve_claim(fact, replace(second, confidence=0.9), [done], respects_rulings=False)
    assert free.fact.value == "y"


def test_a_decision_that_came_late_says_what_stood() -> None:
    conflict = resolve_claim(_fact("x", "a", 0.9), _fact("y", "b", 0.4), respects_rulings=True).conflict
    assert conflict is not None
    late = uphold_conflict(conflict, _fact("z"), by="human", now=START)
    assert late.reason.endswith("upheld when 'z' stood")
    assert uphold_conflict(conflict, None, by="human", now=START).reason.endswith("nothing stands since")
    with pytest.raises(InputError, match="is the current value"):
        uphold_conflict(conflict, _fact("y"), by="human", now=START)
    assert reverse_conflict(conflict, _fact("z"), by="human", now=START)[0].reason.endswith("when 'z' stood")
    assert reverse_conflict(conflict, None, by="human", now=START)[1].value == "y"


def test_deciding_twice_is_refused() -> None:
    conflict = resolve_claim(_fact("x", "a", 0.9), _fact("y", "b", 0.4), respects_rulings=True).conflict
    assert conflict is not None
    done = uphold_conflict(conflict, _fact("x"), by="human:ada", now=START)
    for decide in (uphold_conflict, reverse_conflict):
        with pytest.raises(InputError, match="is upheld already, by human:ada on 2026-04-03"):
            decide(done, _fact("x"), by="human", now=START)


@pytest.mark.parametrize(
    ("actor", "source"),
    [
        (Actor(ActorKind.HUMAN, "ada"), "user"),
        (Actor(ActorKind.ORCHESTRATOR, "main"), "orchestrator"),
        (Actor(ActorKind.AGENT, "coder"), "coder"),
        (Actor(ActorKind.AGENT), "agent"),
        (Actor(ActorKind.ARCHIVIST), "archivist"),
    ],
)
def test_who_says_it(actor: Actor, source: str) -> None:
    assert source_of(actor) == source


@pytest.mark.req("M3")
@given(st.lists(FACTS, max_size=14))
def test_a_source_has_one_open_conflict_at_most_and_none_about_its_standing_word(said: list[Fact]) -> None:
    standing: Fact | None = None
    disputes: dict[str, Conflict] = {}
    for at, each in enumerate(said):
        now = START + timedelta(seconds=at)
        claim = replace(each, created=now, updated=now)
        kept = resolve_claim(standing, claim, list(disputes.values()), respects_rulings=True)
        still = kept.conflict.id if kept.conflict else ""
        changed = update_conflicts(list(disputes.values()), kept.fact, now, claim, still)
        disputes |= {each.id: each for each in changed}
        if kept.conflict is not None:
            disputes[kept.conflict.id] = kept.conflict
        standing = kept.fact
        losers = [each.lost_source for each in disputes.values() if each.status is ConflictStatus.OPEN]
        assert len(losers) == len(set(losers))
        assert all(each.kept == standing.value for each in disputes.values() if each.status == "open")


def test_a_conflict_that_was_decided_stays_as_it_was_when_its_claim_was_another() -> None:
    first, second = _fact("x", "a", 0.9), _fact("y", "b", 0.4, at=1)
    once = resolve_claim(first, second, respects_rulings=True).conflict
    assert once is not None
    later = resolve_claim(first, _fact("z", "b", 0.4, at=2), [once], respects_rulings=True).conflict
    assert later is not None
    assert (later.id, later.lost) == (once.id, "z")
    done = uphold_conflict(later, first, by="human", now=START)
    again = resolve_claim(first, second, [done], respects_rulings=True).conflict
    assert again is not None
    assert (again.id != done.id, again.lost, again.status) == (True, "y", ConflictStatus.OPEN)
