"""Reflection as a program uses it: what a run teaches, once, with its evidence."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.bus import Message
from archivist.config import Config, ReflectRules
from archivist.reading import run as run_reading
from archivist.recall.query import Query
from archivist.records import ActorKind, Category, Episode, EpisodeStatus, Scope, Status
from archivist.reflect import miners, summary
from archivist.reflect.service import load_context
from archivist.reflect.summary import summarise_run
from archivist.reflect.trigger import ReflectionOutcome, ReflectionTrigger, Scenario
from tests.conftest import Command, TickingClock
from tests.samples import MISSING_MODULE, agent_log, write_jsonl


def _capture(
    bank: Bank, tmp_path: Path, session: str, calls: list[tuple[str, str, bool]] | None = None
) -> str:
    path = agent_log(
        tmp_path / f"{session}.jsonl", MISSING_MODULE if calls is None else calls, session=session
    )
    bank.runs.capture_file(path)
    return session


@pytest.mark.req("N1", "A8")
def test_a_run_teaches_what_failed_and_what_helped(bank: Bank, tmp_path: Path) -> None:
    done = bank.reflect(_capture(bank, tmp_path, "s-1"))
    (made,) = done.created
    assert "freezegun" in made.summary
    assert "`pip install freezegun`" in made.summary
    assert made.rule.startswith("IF ")
    assert " THEN " in made.rule
    assert (made.scope, made.repo, made.category) == (Scope.REPO, "billing", Category.INFRA)
    assert (made.status, made.frequency, made.actor.kind) == (Status.CANDIDATE, 1, ActorKind.ARCHIVIST)
    assert made.evidence.episodes == ("s-1",)
    assert done.account.outcome.startswith("Succeeded")
    told = "`freezegun` had to be installed: `pip install freezegun`"
    assert done.account.outcome == f"Succeeded. {told}. At the end `pytest` passed."
    assert bank.runs.episode("s-1").extra["reflection"]
    assert bank.ledger.verify().is_whole


def test_slips_and_time_outs_are_part_of_a_story(bank: Bank, tmp_path: Path) -> None:
    """What a run's own slips are is no lesson, and a failure all the same."""
    output = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nNameError: x'
    slip = ("python -c 'print(x)'", f"Exit code 1\n{output}", True)
    waited = ("make check", "Command timed out after 120 seconds", True)
    log = agent_log(tmp_path / "s-1.jsonl", [slip, slip, waited, ("make check", "ok", False)])
    story = bank.reflect(bank.runs.capture_file(log).episodes[0].id).account
    assert story.outcome == "Succeeded. At the end `make check` passed."
    assert story.failed == ("`python -c print(x)` failed: “NameError: x”", "`make check` timed out once")
    usage = bank.runs.episode("s-1").usage
    assert usage
    assert usage.efficiency == 0.25


@pytest.mark.req("N1")
def test_evidence_points_at_the_very_events(bank: Bank, tmp_path: Path) -> None:
    from archivist.records import Event

    (made,) = bank.reflect(_capture(bank, tmp_path, "s-1")).created
    with bank.reading() as reader:
        cited = [reader.get(Event, name) for name in made.evidence.events]
    assert cited
    assert any(event is not None and "No module named 'freezegun'" in event.output for event in cited)


def test_reflecting_again_changes_nothing(bank: Bank, tmp_path: Path) -> None:
    run = _capture(bank, tmp_path, "s-1")
    bank.reflect(run)
    lessons = bank.lessons.query(Query())
    entries = bank.ledger.verify().entries
    again = bank.reflect(run)
    assert (again.created, again.updated) == ((), ())
    assert bank.lessons.query(Query()) == lessons
    assert bank.ledger.verify().entries == entries


def test_a_run_that_is_read_again_does_not_know_the_runs_after_it(
    bank: Bank, tmp_path: Path, clock: TickingClock
) -> None:
    """Reflecting in one go, one run after the other, or once more comes to the same."""
    failing = (
        "Exit code 1\n  1) Probe\n       finds the branch:\n     Error: Timeout of 2000ms exceeded\n1 failing"
    )
    failed, mended = ("pnpm test", failing, True), ("pnpm test", "4 passing", False)
    edit = ("sed -i 's/quick/slow/' src/test/probe.test.ts", "", False)
    for session, calls in (("s-1", [failed, failed]), ("s-2", [failed, edit, mended])):
        bank.runs.capture_file(agent_log(tmp_path / f"{session}.jsonl", calls, session=session))
        with bank.transaction() as writer:
            writer.put(replace(bank.runs.episode(session), finished=clock.now), "capture")
        clock.now += timedelta(days=1)
    list(bank.reflections.reflect_waiting())
    lessons = bank.lessons.query(Query())
    for run in ("s-1", "s-2"):
        again = bank.reflect(run)
        assert (again.created, again.updated) == ((), ()), run
    assert bank.lessons.query(Query()) == lessons


@pytest.mark.req("A10")
def test_a_second_run_meets_the_lesson_again_and_makes_it_active(bank: Bank, tmp_path: Path) -> None:
    for session in ("s-1", "s-2"):
        bank.reflect(_capture(bank, tmp_path, session))
    (known,) = bank.lessons.query(Query())
    assert (known.frequency, known.status, known.runs) == (2, Status.ACTIVE, ("s-1", "s-2"))


@pytest.mark.parametrize("first", ["s-1", "s-1.a1"])
def test_a_session_and_its_subagents_are_one_run_to_a_lesson(bank: Bank, tmp_path: Path, first: str) -> None:
    log = agent_log(tmp_path / "s-1.jsonl", MISSING_MODULE, session="s-1")
    bank.runs.capture_file(log)
    for agent in ("a1", "a2"):
        lines = [
            json.loads(line) | {"isSidechain": True, "agentId": agent}
            for line in log.read_text().splitlines()
        ]
        led = tmp_path / f"agent-{agent}.jsonl"
        led.write_text("".join(json.dumps(line) + "\n" for line in lines))
        bank.runs.capture_file(led)
    for run in dict.fromkeys((first, "s-1", "s-1.a1", "s-1.a2")):
        bank.reflect(run)
    (known,) = bank.lessons.query(Query())
    assert (known.frequency, known.status, known.runs) == (1, Status.CANDIDATE, ("s-1",))
    assert first in known.evidence.episodes
    bank.reflect(_capture(bank, tmp_path, "s-2"))
    (known,) = bank.lessons.query(Query())
    assert (known.frequency, known.status, known.runs) == (2, Status.ACTIVE, ("s-1", "s-2"))
    assert known.evidence.episodes == (first, "s-2")


@pytest.mark.req("A10")
def test_a_remedy_found_later_supersedes_the_bare_lesson(bank: Bank, tmp_path: Path) -> None:
    bare = MISSING_MODULE[:2]
    for session in ("s-1", "s-2"):
        bank.reflect(_capture(bank, tmp_path, session, bare))
    bank.reflect(_capture(bank, tmp_path, "s-3"))
    live = bank.lessons.query(Query())
    assert len(live) == 1
    assert "`pip install freezegun`" in live[0].summary
    assert live[0].frequency == 3


def test_what_people_forgot_is_not_learnt_again(bank: Bank, tmp_path: Path) -> None:
    bank.reflect(_capture(bank, tmp_path, "s-1"))
    bank.forget("m-001")
    again = bank.reflect(_capture(bank, tmp_path, "s-2"))
    assert again.created == ()
    assert bank.lessons.query(Query()) == []


def test_what_people_worded_keeps_their_words(bank: Bank, tmp_path: Path) -> None:
    bank.reflect(_capture(bank, tmp_path, "s-1"))
    bank.lessons.edit("m-001", summary="Install freezegun before the tests")
    bank.reflect(_capture(bank, tmp_path, "s-2"))
    known = bank.lessons.get("m-001")
    assert (known.summary, known.frequency) == ("Install freezegun before the tests", 2)


def test_a_run_without_failures_teaches_nothing(bank: Bank, tmp_path: Path) -> None:
    done = bank.reflect(_capture(bank, tmp_path, "s-1", [("make test", "4 passed", False)]))
    assert (done.created, done.updated, done.failures) == ((), (), 0)


@pytest.mark.req("A2", "A6")
def test_what_a_healers_run_taught_says_so(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("run", "start", "--run", "s-1", "--kind", "healer_run")
    log = agent_log(project / "s-1.jsonl", MISSING_MODULE, session="s-1")
    done = json.loads(archivist("run", "finish", str(log), "--json").out)["runs"][0]
    assert done["scenario"] == "healer_invocation"
    (lesson,) = json.loads(archivist("lessons", "list", "--json").out)["lessons"]
    assert lesson["source"] == "healer"


@pytest.mark.req("A15")
def test_a_session_that_is_reflected_on_again_says_what_it_taught(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("run", "finish", str(agent_log(project / "s-1.jsonl", MISSING_MODULE, session="s-1")))
    again = archivist("reflect", "--run", "s-1")
    assert "nothing new: what this run taught is known already (m-001)" in again.err


@pytest.mark.req("A18", "W14")
def test_a_started_run_keeps_its_agent_and_its_provider_is_the_harness(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    archivist("run", "start", "--run", "s-1", "--agent", "coder")
    archivist("run", "finish", "--run", "s-1", "--status", "success")
    archivist("run", "start", "--run", "s-2", "--agent", "coder")
    log = agent_log(project / "s-2.jsonl", MISSING_MODULE, session="s-2")
    assert archivist("run", "finish", str(log)).code == 0
    archivist("run", "start", "--run", "s-3", "--agent", "coder", "--provider", "codex")
    found = json.loads(archivist("episodes", "list", "--json").out)["episodes"]
    assert {each["id"]: (each["agent"], each["provider"]) for each in found} == {
        "s-1": ("coder", ""),
        "s-2": ("coder", "claude-code"),
        "s-3": ("coder", "codex"),
    }


@pytest.mark.req("A7")
def test_the_context_holds_what_reflection_looks_at(bank: Bank, tmp_path: Path) -> None:
    bank.reflect(_capture(bank, tmp_path, "s-1"))
    progress = bank.path.parent.parent / "progress.md"
    progress.write_text("# Progress\n")
    bank.runs.start_run("s-2")
    written = bank.now().timestamp()
    os.utime(progress, (written, written))
    seen = load_context(bank, _capture(bank, tmp_path, "s-2"))
    assert (seen.episode.id, [each.id for each in seen.related]) == ("s-2", ["s-1"])
    assert [lesson.short_id for lesson in seen.lessons] == ["m-001"]
    assert (seen.progress, len(seen.events) > 3, seen.config) == ("# Progress\n", True, bank.config)
    assert seen.usage is not None


@pytest.mark.req("F6")
def test_each_run_that_is_reflected_on_ages_the_bank_once(bank: Bank, tmp_path: Path) -> None:
    """Whoever only captures and reflects must not be told for ever what runs have stopped meeting."""
    for number in range(2):
        bank.runs.capture_file(agent_log(tmp_path / f"{number}.jsonl", MISSING_MODULE, session=f"s-{number}"))
    list(bank.reflections.reflect_waiting())
    (known,) = bank.lessons.query(Query(limit=None))
    assert bank.lessons.views([known])[0]["runs_since_last_seen"] == 0
    for number in range(2, 23):
        bank.runs.capture_file(
            agent_log(tmp_path / f"{number}.jsonl", [("ls", "a", False)], session=f"s-{number}")
        )
    list(bank.reflections.reflect_waiting())
    assert bank.lessons.get(known.id).status is Status.ARCHIVED
    assert list(bank.reflections.reflect_waiting()) == []


@pytest.mark.req("A6", "A15")
def test_waiting_runs_are_reflected_on_once_oldest_first(bank: Bank, tmp_path: Path) -> None:
    for session in ("s-2", "s-1", "s-3"):
        _capture(bank, tmp_path, session)
    done = list(bank.reflections.reflect_waiting())
    assert [each.run for each in done] == ["s-2", "s-1", "s-3"]
    assert bank.reflections.waiting_runs() == []
    assert list(bank.reflections.reflect_waiting()) == []


def test_a_leased_run_is_left_alone_until_the_lease_ends(
    bank: Bank, tmp_path: Path, clock: TickingClock
) -> None:
    _capture(bank, tmp_path, "s-1")
    with bank.transaction() as writer:
        assert writer.lease("other", clock.now + timedelta(seconds=100)) == ["s-1"]
    assert list(bank.reflections.reflect_waiting()) == []
    clock.now += timedelta(seconds=200)
    assert [each.run for each in bank.reflections.reflect_waiting()] == ["s-1"]
    with bank.transaction() as writer:
        assert writer.end_lease("s-1", "other") is False


def test_a_run_whose_reflection_is_interrupted_waits_as_before(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _capture(bank, tmp_path, "s-1")

    def stopped(*_given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(summary, "summarise_run", stopped)
        for _ in range(4):
            with pytest.raises(KeyboardInterrupt):
                list(bank.reflections.reflect_waiting())
    assert [(each.attempts, each.holder) for each in bank.reflections.waiting_runs()] == [(0, "")]
    assert [each.run for each in bank.reflections.reflect_waiting()] == ["s-1"]
    assert bank.reflections.waiting_runs() == []


def test_what_comes_in_while_a_run_is_reflected_on_waits_on(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _capture(bank, tmp_path, "s-1")

    def slowly(*given: Any) -> Any:
        with bank.transaction() as writer:
            writer.queue("s-1")
        return summarise_run(*given)

    with monkeypatch.context() as patched:
        patched.setattr(summary, "summarise_run", slowly)
        bank.reflect("s-1")
    assert [each.run for each in bank.reflections.waiting_runs()] == ["s-1"]


def test_a_run_that_fails_to_be_reflected_on_waits_and_is_shown(bank: Bank) -> None:
    with bank.transaction() as writer:
        writer.queue("ghost")
    (failed,) = bank.reflections.reflect_waiting()
    assert isinstance(failed, ReflectionOutcome)
    assert failed.error == "no run 'ghost'"
    (waiting,) = bank.reflections.waiting_runs()
    assert (waiting.attempts, waiting.error, waiting.holder) == (1, "no run 'ghost'", "")
    for _ in range(2):
        assert len(list(bank.reflections.reflect_waiting())) == 1
    assert list(bank.reflections.reflect_waiting()) == []


@pytest.mark.req("A15")
def test_runs_of_the_last_days_can_be_reflected_on_again(bank: Bank, clock: TickingClock) -> None:
    now = clock.now
    bank.runs.record_episode(
        Episode(id="new", finished=now - timedelta(days=2), status=EpisodeStatus.SUCCESS)
    )
    bank.runs.record_episode(
        Episode(id="old", finished=now - timedelta(days=9), status=EpisodeStatus.SUCCESS)
    )
    assert bank.reflections.recent_runs(7) == ["new"]
    assert bank.reflections.recent_runs(30) == ["old", "new"]


@pytest.mark.req("A14")
def test_maybe_reflect_never_raises_and_says_what_happened(bank: Bank, tmp_path: Path) -> None:
    heard: list[Message] = []
    bank.bus.subscribe(heard.append)
    outcome = bank.reflections.maybe_reflect(ReflectionTrigger("nobody"))
    assert (outcome.status, outcome.error) == ("skipped", "no run 'nobody'")
    assert [message.type for message in heard] == ["reflection_failed"]
    done = bank.reflections.maybe_reflect(
        ReflectionTrigger(_capture(bank, tmp_path, "s-1"), Scenario.HEALER_INVOCATION)
    )
    assert (done.status, done.created, done.scenario) == ("reflected", 1, Scenario.HEALER_INVOCATION)
    assert done.summary.startswith("Succeeded")


@pytest.mark.req("A14")
def test_maybe_reflect_contains_any_error(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a miner broke")

    monkeypatch.setattr(miners, "mine_candidates", broken)
    outcome = bank.reflections.maybe_reflect(ReflectionTrigger(_capture(bank, tmp_path, "s-1")))
    assert (outcome.status, outcome.error) == ("skipped", "ZeroDivisionError('a miner broke')")


def test_a_waiting_run_that_nobody_asked_to_reflect_on_is_let_go(bank: Bank, tmp_path: Path) -> None:
    bank.config = Config(reflect=ReflectRules(on_session_success=False))
    _capture(bank, tmp_path, "s-1")
    (skipped,) = bank.reflections.reflect_waiting()
    assert isinstance(skipped, ReflectionOutcome)
    assert (skipped.status, skipped.error) == ("skipped", "")
    assert bank.reflections.waiting_runs() == []


@pytest.mark.req("A6")
def test_a_pattern_of_similar_failures_asks_for_reflection_by_itself(bank: Bank, tmp_path: Path) -> None:
    bank.config = Config(reflect=ReflectRules(on_session_success=False, on_session_failure=False))
    outcomes = [
        bank.reflections.maybe_reflect(ReflectionTrigger(_capture(bank, tmp_path, f"s-{number}")))
        for number in (1, 2, 3)
    ]
    assert [each.status for each in outcomes] == ["skipped", "skipped", "reflected"]
    assert (outcomes[-1].scenario, outcomes[-1].created) == (Scenario.PATTERN_DETECTED, 1)
    (made,) = bank.lessons.query(Query())
    assert (made.frequency, made.status) == (3, Status.ACTIVE)
    bank.config = Config(reflect=ReflectRules(enabled=False))
    assert (
        bank.reflections.maybe_reflect(ReflectionTrigger(_capture(bank, tmp_path, "s-4"))).status == "skipped"
    )


def test_a_run_that_breaks_a_miner_does_not_keep_the_others_waiting(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archivist.reading.run import read_run as real

    def broken(episode: Episode, events: Any, **options: Any) -> Any:
        if episode.id == "s-1":
            raise ZeroDivisionError("a miner broke")
        return real(episode, events, **options)

    monkeypatch.setattr(run_reading, "read_run", broken)
    for session in ("s-1", "s-2"):
        _capture(bank, tmp_path, session)
    first, second = bank.reflections.reflect_waiting()
    assert isinstance(first, ReflectionOutcome)
    assert "a miner broke" in first.error
    assert second.run == "s-2"
    assert [each.run for each in bank.reflections.waiting_runs()] == ["s-1"]


def test_reflection_that_is_turned_off_is_skipped(bank: Bank, tmp_path: Path) -> None:
    bank.config = Config(reflect=ReflectRules(on_session_success=False))
    outcome = bank.reflections.maybe_reflect(ReflectionTrigger(_capture(bank, tmp_path, "s-1")))
    assert (outcome.status, outcome.error, outcome.created) == ("skipped", "", 0)


@pytest.mark.req("A11")
def test_live_messages_tell_of_a_reflection(bank: Bank, tmp_path: Path) -> None:
    heard: list[Message] = []
    bank.bus.subscribe(heard.append)
    for session in ("s-1", "s-2", "s-3"):
        bank.reflect(_capture(bank, tmp_path, session))
    kinds = [message.type for message in heard]
    assert kinds[0] == "reflection_start"
    assert {"memories_added", "memory_highlight", "reflection_complete"} <= set(kinds)
    added = next(message for message in heard if message.type == "memories_added")
    assert (added.data["run"], added.data["count"]) == ("s-1", 1)
    assert {message.data["session"] for message in heard} == {"s-1", "s-2", "s-3"}
    highlights = [message.data["scenario"] for message in heard if message.type == "memory_highlight"]
    assert "pattern_detected" in highlights


@pytest.mark.req("A11")
def test_the_progress_file_gets_its_section_when_asked(bank: Bank, tmp_path: Path) -> None:
    file = bank.path.parent.parent / "progress.md"
    bank.reflect(_capture(bank, tmp_path, "s-1"))
    assert not file.exists()
    bank.config = bank.config._replace(reflect=ReflectRules(write_progress=True))
    for session in ("s-2", "s-3"):
        bank.reflect(_capture(bank, tmp_path, session))
    text = file.read_text()
    assert text.count("## Lessons learned") == 1
    sections = text.split("### ")[1:]
    assert [section.partition("\n")[0].partition(", ")[2] for section in sections] == ["run s-2", "run s-3"]
    assert all("freezegun" in section for section in sections)


@pytest.mark.req("A10")
@pytest.mark.parametrize(("limit", "expected"), [(5, 2), (1, 1)])
def test_at_most_so_many_lessons_are_made_of_a_run(
    bank: Bank, tmp_path: Path, limit: int, expected: int
) -> None:
    bank.config = Config(reflect=ReflectRules(max_memories_per_run=limit))
    variant = [
        ("cargo pilot task get d-004", "Exit code 2\nerror: unrecognized subcommand 'get'", True),
        ("cargo pilot task show d-004", "d-004 open", False),
    ]
    run = _capture(bank, tmp_path, "s-1", [*MISSING_MODULE, *variant])
    assert len(bank.reflect(run).created) == expected
    # Looking again makes no more of them.
    bank.reflect(run)
    assert len(bank.lessons.query(Query())) == expected


@pytest.mark.req("A10")
def test_a_known_lesson_is_met_again_below_the_least_importance(bank: Bank, tmp_path: Path) -> None:
    bank.reflect(_capture(bank, tmp_path, "s-1"))
    bank.config = Config(reflect=ReflectRules(min_importance_to_persist=1.0))
    done = bank.reflect(_capture(bank, tmp_path, "s-2"))
    assert done.created == ()
    assert [lesson.frequency for lesson in done.updated] == [2]


def test_a_brief_for_a_task_tells_what_its_project_met(bank: Bank, tmp_path: Path) -> None:
    bank.reflect(_capture(bank, tmp_path, "s-1"))
    other = agent_log(
        tmp_path / "o.jsonl", MISSING_MODULE, session="o-1", project="other", prompt="Sort the shelves"
    )
    bank.runs.capture_file(other)
    bank.reflect("o-1")
    told = bank.brief(task="Fix the invoice", repo="billing")
    assert [each.lesson.repo for each in told.chosen] == ["billing"]
    assert "freezegun" in told.text
    assert [each.lesson.repo for each in bank.brief(task="sort shelves again").chosen] == ["other"]
    assert bank.brief(task="nothing of the kind", repo="third").text == ""
    # One common word does not make it the same task.
    assert bank.brief(task="sort the mail").text == ""


def test_known_issues_of_several_repositories_are_not_mixed(bank: Bank, tmp_path: Path) -> None:
    bank.lessons.add("Prefer small commits")
    for session in ("s-1", "s-2"):
        bank.reflect(_capture(bank, tmp_path, session))
    assert len(bank.brief().chosen) == 2
    for session in ("o-1", "o-2"):
        bank.runs.capture_file(
            agent_log(tmp_path / f"{session}.jsonl", MISSING_MODULE, session=session, project="other")
        )
        bank.reflect(session)
    assert [each.lesson.summary for each in bank.brief().chosen] == ["Prefer small commits"]
    assert {each.lesson.repo for each in bank.brief(repo="other").chosen} == {"other", ""}


def test_a_lesson_cites_the_calls_of_the_runs_before_it_was_one(bank: Bank, tmp_path: Path) -> None:
    failing = [("npm run seed", "Exit code 1\nError: cannot find a free slot for the tenant table", True)]
    for name in ("s-1", "s-2"):
        log = agent_log(tmp_path / f"{name}.jsonl", failing, session=name)
        bank.runs.capture_file(log)
        bank.reflect(name)
    (known,) = bank.lessons.query(Query())
    assert {event.partition("#")[0] for event in known.evidence.events} == {"s-1", "s-2"}


def test_a_failure_that_has_several_names_is_counted_once(bank: Bank, tmp_path: Path) -> None:
    lint = ("pnpm lint", "Exit code 1\n4:2  error  Missing semicolon  semi\n\n1 problem (1 error)", True)
    mended = [lint, ("pnpm lint:fix", "fixed", False), ("pnpm lint", "no problems", False)]
    bank.runs.capture_file(agent_log(tmp_path / "s-1.jsonl", mended, session="s-1"))
    assert bank.reflect("s-1").failures == 1


@pytest.mark.req("A2")
def test_what_a_clients_own_tool_refuses_has_the_scope_of_the_tool(bank: Bank, tmp_path: Path) -> None:
    refused = (
        "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>"
    )
    for run in ("s-1", "s-2"):
        lines: list[dict[str, Any]] = [{"episode": {"id": run, "project": "shop", "provider": "claude-code"}}]
        lines += [
            {"run": run, "seq": at, "kind": "edit", "tool": "Edit", "target": f"src/{at}.py", "text": "{}",
             "output": refused, "is_error": True, "time": f"2026-05-01T10:0{at}:00Z"}
            for at in range(3)
        ]  # fmt: skip
        bank.runs.capture_file(write_jsonl(tmp_path / f"{run}.jsonl", lines))
        bank.reflect(run)
    (learnt,) = [each for each in bank.lessons.query(Query()) if "tool refuses" in each.summary]
    assert (learnt.scope, learnt.tool.lower()) == ("tool", "edit")
