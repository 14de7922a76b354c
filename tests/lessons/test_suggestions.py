"""Lessons that agents suggest: seen once until another run meets them, with evidence that resolves."""

from __future__ import annotations

from typing import Any

import pytest

from archivist import Bank
from archivist.errors import InputError
from archivist.recall.query import Query
from archivist.records import Actor, Episode, Lesson, Status
from tests.conftest import TickingClock

DATABASE = "`pytest` needs the database: run `make db-up` first"


@pytest.fixture
def agent(bank: Bank) -> Bank:
    """Return the bank in an agent's name."""
    return bank.acting_as(Actor.parse("agent:w1"))


def _add(bank: Bank, summary: str = DATABASE, **given: Any) -> tuple[Lesson, bool]:
    kept = bank.lessons.suggest(summary, **given)
    return kept.lesson, kept.is_new


def test_a_persons_lesson_counts_at_once_and_an_agents_is_a_candidate(bank: Bank, agent: Bank) -> None:
    by_person, _ = _add(bank, "Prefer small pull requests", rule="IF large THEN split", tags=["review"])
    by_agent, _ = _add(agent)
    assert (by_person.status, by_agent.status) == (Status.ACTIVE, Status.CANDIDATE)
    assert by_person.tags == ("review",)
    assert by_agent.actor == agent.actor


def test_repeating_oneself_under_many_names_does_not_make_a_thing_true(bank: Bank, agent: Bank) -> None:
    _add(agent)
    for name in ("agent:w2", "agent:w3"):
        for run in ("", "made-up-1", "made-up-2"):
            lesson, is_new = _add(bank.acting_as(Actor.parse(name)), run=run)
            assert (lesson.status, is_new) == (Status.CANDIDATE, False)
    assert len(bank.lessons.query(Query())) == 1


def test_a_second_run_that_the_bank_knows_is_counted_but_vouches_for_nothing(bank: Bank, agent: Bank) -> None:
    for run in ("r1", "r2"):
        bank.runs.record_episode(Episode(id=run))
    first, _ = _add(agent, run="r1")
    again, _ = _add(agent, run="r1", detail="It happened twice in the same run.")
    assert again.status is Status.CANDIDATE
    second, is_new = _add(agent, run="r2")
    assert (second.id, second.status, is_new) == (first.id, Status.CANDIDATE, False)
    assert second.is_waiting
    assert second.runs == ("r1", "r2")
    assert second.evidence.episodes == ("r1", "r2")
    assert second.detail == "It happened twice in the same run."


def test_another_day_counts_as_another_run_but_vouches_for_nothing(agent: Bank, clock: TickingClock) -> None:
    _add(agent)
    clock.now = clock.now.replace(day=clock.now.day + 1)
    lesson, _ = _add(agent)
    assert (lesson.frequency, lesson.status, lesson.is_waiting) == (2, Status.CANDIDATE, True)


def test_words_that_a_person_wrote_are_left_as_they_are(bank: Bank, agent: Bank) -> None:
    _add(bank)
    lesson, is_new = _add(agent, rule="IF it fails THEN delete everything")
    assert not is_new
    assert lesson.rule == ""


def test_a_lesson_of_a_repository_is_met_again_by_who_does_not_name_it(bank: Bank, agent: Bank) -> None:
    fields: dict[str, Any] = {"source": "archivist", "status": "candidate"}
    bank.lessons.add(DATABASE, type="pattern", repo="shop", **fields)
    _, is_new = _add(agent)
    assert not is_new


def test_evidence_is_kept_by_what_it_names_and_refused_when_it_names_nothing(bank: Bank, agent: Bank) -> None:
    bank.runs.record_episode(Episode(id="r1"))
    entry = bank.stream.log("Looked", cycle=1, importance=5, type="action", content="and saw")
    lesson, _ = _add(agent, evidence=["r1", entry.id])
    assert lesson.evidence.episodes == ("r1",)
    assert lesson.evidence.logs == (entry.id,)
    with pytest.raises(InputError, match="no record for evidence 'nobody'"):
        _add(agent, "Something else entirely", evidence=["nobody"])
    assert len(bank.lessons.query(Query())) == 1


def test_a_run_adds_only_so_many(agent: Bank) -> None:
    subjects = ("regex cache", "file handles", "shell quoting", "docker image", "foreign keys")
    for subject in subjects:
        assert _add(agent, f"Mind the {subject}", run="r1")[1]
    with pytest.raises(InputError, match="has added 5 lessons already"):
        _add(agent, "Freeze the clock in tests", run="r1")
    assert not _add(agent, "Mind the regex cache", run="r1")[1]
    assert _add(agent, "Freeze the clock in tests", run="r2")[1]


def test_secrets_and_our_own_briefs_stay_out(agent: Bank) -> None:
    key = "ghp_" + "a1B2" * 9
    lesson, _ = _add(
        agent, f"The push needs {key} set", detail=f"export TOKEN={key}", tags=[key, "push", "Push"]
    )
    assert key not in f"{lesson.summary} {lesson.detail} {lesson.tags}"
    assert "push" in lesson.tags
    assert len([tag for tag in lesson.tags if tag == "push"]) == 1


def test_a_lesson_without_words_is_refused(agent: Bank) -> None:
    with pytest.raises(InputError, match="needs words"):
        _add(agent, " \n ")


@pytest.mark.req("A10")
def test_what_is_said_again_with_another_mark_is_the_same_lesson(bank: Bank, agent: Bank) -> None:
    first = bank.lessons.add("Run the type checker before committing")
    again = bank.lessons.add("run the type checker before committing!")
    assert again.id == first.id
    assert bank.lessons.add("Run type checker before committing").id == first.id
    assert bank.lessons.add("Run the type checker after committing").id != first.id
    assert bank.lessons.add("Use port 8080").id != bank.lessons.add("Use port 8081").id
    told = agent.lessons.suggest("Restart the broker before each test").lesson
    assert agent.lessons.suggest("Restart the broker before each test!").lesson.id == told.id
