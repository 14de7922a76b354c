"""An agent that does the reflecting itself: it keeps, supersedes and merges lessons by functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.errors import InputError
from archivist.recall.query import Query
from archivist.records import Actor, ActorKind, Provenance, Status
from archivist.tools.functions import call
from tests.samples import MISSING_MODULE, agent_log
from tests.samples import lesson as made

AGENT = Actor(ActorKind.AGENT, "ada", "archivist")


@pytest.fixture
def agent(bank: Bank) -> Bank:
    """Return the bank in an agent's name."""
    return bank.acting_as(AGENT)


@pytest.mark.req("A19")
def test_an_agent_gives_category_scope_provider_and_evidence(bank: Bank, agent: Bank) -> None:
    agent.runs.start_run("r-1", task="Shard the tests")
    given = {
        "summary": "Large `bun test` runs time out here",
        "rule": "IF the suite is large THEN shard it",
        "category": "provider_quirk",
        "scope": "provider",
        "provider": "claude-code",
        "tool": "bash",
        "tags": ["timeout"],
        "importance": 0.7,
        "evidence": ["r-1"],
    }
    other = {"summary": "", "rule": "IF x THEN y"}
    answer: Any = call(agent, "create_lessons", {"lessons": [given, other], "run": "r-1"})
    kept, refused = answer["lessons"]
    lesson = bank.lessons.get(kept["id"])
    assert (lesson.category, lesson.scope, lesson.provider) == ("provider_quirk", "provider", "claude-code")
    assert (lesson.evidence.episodes, lesson.status, lesson.is_waiting) == (("r-1",), Status.CANDIDATE, True)
    assert refused["result"].startswith("refused: ")


@pytest.mark.req("A19")
def test_what_an_agent_says_better_takes_the_place_of_others_when_a_person_approves(
    bank: Bank, agent: Bank
) -> None:
    with bank.transaction() as writer:
        writer.put(made("mined", number=99, summary="Run the linter", status=Status.ACTIVE), "add")
    first: Any = call(agent, "lesson_add", {"summary": "Lint with ruff before each commit"})
    second: Any = call(
        agent,
        "lesson_add",
        {"summary": "Format, then lint: `ruff format && ruff check`", "supersedes": ["m-099", first["id"]]},
    )
    # Its own suggestion is replaced at once, another's only by a person.
    assert bank.lessons.get(first["id"]).status is Status.SUPERSEDED
    assert bank.lessons.get("m-099").status is Status.ACTIVE
    assert bank.lessons.views([bank.lessons.get(second["id"])])[0]["supersedes"] == ["m-099"]
    approved = bank.lessons.approve(second["id"])
    replaced = bank.lessons.get("m-099")
    assert (replaced.status, replaced.superseded_by) == (Status.SUPERSEDED, approved.id)
    assert bank.lessons.views([approved])[0]["supersedes"] == []


@pytest.mark.req("A19")
def test_two_lessons_become_one_that_counts_the_runs_of_both(bank: Bank) -> None:
    with bank.transaction() as writer:
        for number, runs in enumerate((("a", "b"), ("b", "c")), 1):
            writer.put(made(f"l{number}", number=number, summary=f"Say it {number}", runs=runs), "add")
    answer: Any = call(bank, "merge", {"ids": ["m-001", "m-002"], "summary": "Say it once"})
    merged, gone = bank.lessons.get("m-001"), bank.lessons.get("m-002")
    assert answer["id"] == "m-001"
    assert (merged.summary, merged.runs, merged.frequency) == ("Say it once", ("a", "b", "c"), 3)
    assert (gone.status, gone.superseded_by) == (Status.SUPERSEDED, merged.id)
    with pytest.raises(InputError, match="two different lessons"):
        bank.lessons.merge(["m-001", "m-001"])


@pytest.mark.req("A19")
def test_an_agent_merges_lessons_of_others_only_as_a_suggestion(bank: Bank, agent: Bank) -> None:
    bank.lessons.add("Seed the random numbers in tests")
    bank.lessons.add("Tests need a fixed seed")
    answer: Any = call(agent, "merge", {"ids": ["m-001", "m-002"], "summary": "Set `SEED=1` for every test"})
    assert {bank.lessons.get(name).status for name in ("m-001", "m-002")} == {Status.ACTIVE}
    assert bank.lessons.get(answer["id"]).is_waiting
    with pytest.raises(InputError, match="only a person may"):
        agent.lessons.merge(["m-001", "m-002"])
    # What a person said stays until a person replaces it.
    approved = bank.lessons.approve(answer["id"])
    assert {bank.lessons.get(name).status for name in ("m-001", "m-002")} == {Status.ACTIVE}
    assert bank.lessons.views([approved])[0]["kept_beside"] == ["m-001", "m-002"]


def test_a_files_claim_to_supersede_counts_for_nothing(bank: Bank) -> None:
    bank.lessons.add("Never push to main")
    target = bank.lessons.get("m-001").id
    with bank.transaction() as writer:
        theirs = made("theirs", number=2, provenance=Provenance.IMPORTED, extra={"supersedes": [target]})
        writer.put(theirs, "import")
    bank.lessons.approve("m-002")
    assert bank.lessons.get("m-001").status is Status.ACTIVE


@pytest.mark.req("A2")
def test_lessons_of_healers_say_so(bank: Bank) -> None:
    healer = bank.acting_as(Actor(ActorKind.AGENT, "hal", "healer"))
    kept: Any = call(healer, "lesson_add", {"summary": "Restart the broker when the queue is stuck"})
    assert bank.lessons.get(kept["id"]).source == "healer"
    by_orchestrator = bank.acting_as(Actor(ActorKind.ORCHESTRATOR, "o", "healer"))
    assert by_orchestrator.lessons.add("Clear the cache first").source == "healer"
    assert bank.lessons.add("Mine").source == "manual"


def _captured_run(bank: Bank, folder: Path) -> None:
    bank.runs.capture_file(agent_log(folder / "s-1.jsonl", MISSING_MODULE))
    bank.reflect("s-1")


@pytest.mark.req("A19")
def test_a_lesson_of_a_captured_run_is_of_its_repository(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    _captured_run(bank, tmp_path)
    words = "The tests load `freezegun` while `tests/conftest.py` is read"
    for evidence in (["s-1#1"], ["s-1"]):
        kept: Any = call(agent, "lesson_add", {"summary": f"{words}: {evidence[0]}", "evidence": evidence})
        assert bank.lessons.get(kept["id"]).repo == bank.runs.episode("s-1").project != ""


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("The tests fail 7 times", "no cited event shows '7'"),
        ("`pip install freezegun` fails here", "the cited call of 'pip install freezegun' worked"),
        ("`git status` fails because the disk was full", "no cited event shows the cause"),
    ],
)
def test_a_false_claim_about_cited_calls_is_refused(
    bank: Bank, agent: Bank, tmp_path: Path, claim: str, reason: str
) -> None:
    _captured_run(bank, tmp_path)
    evidence = ["s-1#0", "s-1#1", "s-1#2"]
    with pytest.raises(InputError, match=reason):
        call(agent, "lesson_add", {"summary": claim, "run": "s-1", "evidence": evidence})


def test_a_merged_suggestion_keeps_the_events_of_both(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    _captured_run(bank, tmp_path)
    mined = next(iter(bank.lessons.query(Query())))
    told: Any = call(
        agent, "lesson_add", {"summary": "`tests/conftest.py` loads `freezegun`", "evidence": ["s-1#1"]}
    )
    merged: Any = call(agent, "merge", {"ids": [mined.short_id, told["id"]]})
    assert set(mined.evidence.events) | {"s-1#1"} <= set(bank.lessons.get(merged["id"]).evidence.events)


@pytest.mark.req("A19")
def test_a_run_is_searched_and_read_as_plain_lines(bank: Bank, agent: Bank, tmp_path: Path) -> None:
    _captured_run(bank, tmp_path)
    bank.runs.capture_file(agent_log(tmp_path / "s-2.jsonl", MISSING_MODULE, session="s-2"))
    found: Any = call(agent, "recall", {"query": "pytest freezegun", "kinds": ["event"], "run": "s-1"})
    assert {hit["id"].partition("#")[0] for hit in found["hits"]} == {"s-1"}
    read: Any = call(agent, "memory_get", {"id": "s-1"})
    assert "\nproject: " in read["text"]
    assert '\\"' not in json.dumps(read["text"])
