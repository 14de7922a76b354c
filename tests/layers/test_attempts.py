"""The episodic log in a bank: what was tried, by whom, and what that teaches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from archivist import Bank
from archivist.edges import views
from archivist.errors import AccessError, InputError, RecordError
from archivist.records import Action, Actor, ActorKind, Episode, EpisodeKind, EpisodeStatus

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _log(bank: Bank, task: str, action: str, approach: str, **more: Any) -> Episode:
    return bank.attempts.log(task, **{"agent": "coder", "action": action, "approach": approach, **more})


@pytest.mark.req("M4")
@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("attempted", EpisodeStatus.PARTIAL),
        ("retried", EpisodeStatus.PARTIAL),
        ("completed", EpisodeStatus.SUCCESS),
        ("failed", EpisodeStatus.FAILED),
    ],
)
def test_an_attempt_is_an_episode_with_all_that_was_said(
    bank: Bank, action: str, status: EpisodeStatus
) -> None:
    made = _log(
        bank, "T-1", action, "rewrite", outcome="slow", duration_ms=1500, tokens_in=10, tokens_out=3,
        provider="claude", run="run-1", time=WHEN,
    )  # fmt: skip
    assert (made.status, made.action, made.kind) == (status, Action(action), EpisodeKind.SUBAGENT_RUN)
    assert (made.finished, made.started) == (WHEN, WHEN - timedelta(milliseconds=1500))
    assert made.usage is not None
    assert (made.usage.input_tokens, made.usage.output_tokens, made.parent) == (10, 3, "run-1")
    assert bank.attempts.query() == [made] == bank.runs.episodes() == [bank.runs.episode(made.id)]


@pytest.mark.req("M4")
def test_logging_the_same_again_under_its_id_changes_nothing(bank: Bank) -> None:
    first = _log(bank, "T-1", "failed", "rewrite", id="x", outcome="slow")
    assert _log(bank, "T-1", "failed", "rewrite", id="x", outcome="slow") == first
    assert len(bank.ledger.history("x")) == 1
    timed = _log(bank, "T-1", "failed", "rewrite", id="y", time=WHEN)
    assert _log(bank, "T-1", "failed", "rewrite", id="y", time=WHEN) == timed
    assert len(bank.ledger.history("y")) == 1


def test_an_attempt_is_brought_up_to_date_under_its_id(bank: Bank) -> None:
    begun = _log(bank, "T-1", "attempted", "rewrite", id="x", provider="claude")
    ended = _log(bank, "T-1", "completed", "rewrite", id="x", outcome="done")
    assert (ended.started, ended.action, ended.provider) == (begun.started, Action.COMPLETED, "claude")
    assert bank.attempts.query() == [ended]
    with pytest.raises(InputError, match="already"):
        _log(bank, "T-2", "completed", "rewrite", id="x")
    bank.runs.record_episode(Episode(id="run-1", task="Do it"))
    with pytest.raises(InputError, match="captured run"):
        _log(bank, "T-1", "completed", "rewrite", id="run-1")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"task": " "}, "task: missing or empty"),
        ({"agent": ""}, "agent: missing or empty"),
        ({"approach": "\n"}, "approach: missing or empty"),
        ({"action": "tried"}, "'tried' is not one of"),
        ({"duration_ms": -1}, "duration_ms: -1 is below 0"),
        ({"duration_ms": 10**17}, "too long"),
        ({"duration_ms": 1 << 70}, "beyond 64 bits"),
        ({"duration_ms": 1.5}, "whole number"),
        ({"tokens_in": -3}, "tokens_in: -3 is below 0"),
        ({"tokens_out": True}, "whole number"),
        ({"agent": "a" * 10_000}, "agent: 10000 characters"),
        ({"approach": "a" * 20_001}, "approach: 20001 characters"),
        ({"id": "a" * 201}, "id: 201 characters"),
    ],
)
def test_a_bad_attempt_is_refused_and_nothing_is_logged(
    bank: Bank, fields: dict[str, Any], reason: str
) -> None:
    good = {"task": "T", "agent": "a", "action": "failed", "approach": "x"}
    with pytest.raises(RecordError) as caught:
        bank.attempts.log(**{**good, **fields})
    assert reason in caught.value.message
    assert bank.attempts.query() == []


def test_secrets_do_not_get_into_the_log(bank: Bank) -> None:
    made = _log(
        bank, "T-1", "failed", "login with password: hunter2!Ab", outcome="password=hunter2!Ab refused"
    )
    assert "hunter2" not in f"{made.approach} {made.outcome}"


@pytest.mark.req("M4")
def test_attempts_are_found_by_task_agent_and_action(bank: Bank) -> None:
    bank.runs.record_episode(Episode(id="run-1", task="T-1", agent="coder"))
    first = _log(bank, "T-1", "failed", "rewrite")
    second = _log(bank, "T-1", "completed", "patch", agent="ada", provider="claude")
    third = _log(bank, "T-2", "failed", "patch")
    query = bank.attempts.query
    assert query() == [third, second, first]
    assert query(task="T-1") == [second, first]
    assert query(agent="coder", action="failed") == [third, first]
    assert query(provider="claude") == [second]
    assert query(limit=1) == [third]
    assert query(task="none") == []
    with pytest.raises(RecordError):
        query(action="nonsense")
    assert {each.id for each in bank.runs.episodes(task="T-1")} == {"run-1", first.id, second.id}


@pytest.mark.req("M4")
def test_what_was_tried_for_a_task(bank: Bank) -> None:
    _log(bank, "T-1", "failed", "Rewrite  it", outcome="slow")
    _log(bank, "T-1", "failed", "rewrite it", outcome="slower", agent="ada")
    _log(bank, "T-1", "completed", "patch", outcome="done")
    _log(bank, "T-2", "completed", "rewrite it")
    best, worst = bank.attempts.list_approaches("T-1")
    assert (best.approach, best.verdict, best.last.outcome) == ("patch", "worked", "done")
    assert (worst.attempts, worst.verdict, worst.last.outcome) == (2, "failed every time (2)", "slower")
    assert worst.agents == ("coder", "ada")
    assert bank.attempts.list_approaches("none") == bank.attempts.list_approaches("") == []


@pytest.mark.req("M4")
def test_what_worked_for_similar_tasks_comes_first(bank: Bank) -> None:
    _log(bank, "Speed up the CSV parser", "failed", "rewrite it in C", outcome="segfault")
    _log(bank, "Speed up the CSV parser", "completed", "read in blocks", outcome="three times faster")
    _log(bank, "Translate the handbook", "completed", "ask a translator")
    for number in range(60):
        bank.runs.record_episode(Episode(id=f"run-{number}", task="Speed up the CSV parser"))
    found = bank.attempts.similar("make parsing of CSV files faster")
    assert [each.tried.approach for each in found] == ["read in blocks", "rewrite it in C"]
    assert all(each.score > 0 for each in found)
    assert len(bank.attempts.similar("make parsing of CSV files faster", limit=1)) == 1
    assert bank.attempts.similar("  ") == []


@pytest.mark.req("M4")
def test_a_tasks_own_attempt_hides_no_other(bank: Bank) -> None:
    for task, action, approach in (
        ("Speed up the CSV parser", "failed", "rewrite it in C"),
        ("Speed up the JSON parser", "completed", "read in blocks"),
        ("Make CSV export faster", "completed", "stream it"),
        ("Translate the handbook", "completed", "ask a translator"),
    ):
        _log(bank, task, action, approach)
    found = {each.tried.approach for each in bank.attempts.similar("Speed up the CSV parser")}
    assert found == {"read in blocks", "stream it", "rewrite it in C"}
    others = bank.attempts.similar("Speed up the CSV parser", limit=2, other_than="Speed up the CSV parser")
    assert {each.tried.approach for each in others} == {"read in blocks", "stream it"}


def test_a_similar_success_counts_its_failures_too(bank: Bank) -> None:
    for action in ("completed", "failed", "failed"):
        _log(bank, "Speed up the CSV parser", action, "read in blocks")
    (found,) = bank.attempts.similar("CSV parser speed")
    assert found.tried.verdict == "worked 1 of 3 times, last failed"


@pytest.mark.req("M10")
def test_analytics_of_a_span_of_time(bank: Bank) -> None:
    for day in range(6):
        action = "completed" if day % 3 else "failed"
        _log(bank, "T", action, "patch", time=WHEN + timedelta(days=day), provider="p", duration_ms=1000)
    found = bank.attempts.analytics(by="agent", step="day")
    assert [(row.name, row.completed, row.failed) for row in found.rows] == [("coder", 4, 2)]
    assert [each.name for each in found.rows[0].periods] == [f"2026-03-0{day + 1}" for day in range(6)]
    assert found.total.mean_duration_ms == 1000
    later = bank.attempts.analytics(by="provider", since=WHEN + timedelta(days=4))
    assert (later.total.attempts, later.rows[0].name) == (2, "p")
    naive = WHEN.replace(tzinfo=None)
    assert bank.attempts.analytics(by="task", until=naive).total.attempts == 1
    with pytest.raises(RecordError):
        bank.attempts.analytics(by="colour")
    with pytest.raises(RecordError):
        bank.attempts.analytics(step="year")


@pytest.mark.req("M8")
def test_an_agent_reads_the_log_and_does_not_write_it(bank: Bank) -> None:
    made = _log(bank, "T-1", "failed", "rewrite")
    agent = bank.acting_as(Actor(ActorKind.AGENT, "coder"))
    assert agent.attempts.query() == [made]
    with pytest.raises(AccessError, match="agent:coder may not write episodes"):
        _log(agent, "T-1", "completed", "rewrite")
    (denial,) = bank.ledger.denials()
    assert (denial.entry.actor.name, denial.after) == (
        "coder",
        {"actor": "agent:coder", "verb": "write", "layer": "episodes"},
    )
    assert bank.acting_as(Actor(ActorKind.ORCHESTRATOR)).attempts.log(
        "T-1", agent="coder", action=Action.COMPLETED, approach="rewrite"
    )
    assert bank.ledger.verify().is_whole


@pytest.mark.req("M4")
def test_what_is_like_no_task_finds_nothing(bank: Bank) -> None:
    for task in ("Build the parser", "Release the package", "Speed up the CSV import"):
        bank.attempts.log(task, agent="coder", action="completed", approach="by hand")
    assert bank.attempts.similar("bake a cake") == []
    assert next(each.tried.task for each in bank.attempts.similar("build a parser")) == "Build the parser"


@pytest.mark.req("M4")
def test_the_same_approach_to_tasks_of_one_name_is_one_row_with_a_count(bank: Bank) -> None:
    for name in ("a", "b", "c"):
        bank.tasks.add("Fetch the feed", id=name, approaches=("curl",))
        bank.tasks.start(name, agent="coder")
        bank.tasks.finish(name, "fetched")
    (found,) = bank.attempts.similar("fetch the feed")
    assert (found.title, found.tasks) == ("Fetch the feed", 3)


@pytest.mark.req("M4")
def test_a_duration_that_nobody_reported_is_unknown(bank: Bank) -> None:
    begun = bank.attempts.log("T", agent="coder", action="attempted", approach="a")
    ended = bank.attempts.log("T", agent="coder", action="completed", approach="a")
    timed = bank.attempts.log("T", agent="coder", action="completed", approach="a", duration_ms=0)
    assert [views.attempt_view(bank, each)["duration_ms"] for each in (begun, ended, timed)] == [
        None,
        None,
        0,
    ]
