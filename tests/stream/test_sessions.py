"""A session is a cycle: logged after it ends, reflected on when due, and what recurs in sessions is told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from archivist import Bank
from archivist.records import Actor, ActorKind, Entry, EntryType, Episode, EpisodeStatus
from archivist.records.words import NOTES
from archivist.stream.sessions import describe_session, session_patterns
from archivist.tools.functions import call
from tests.banks import fresh_bank
from tests.conftest import START, Command, TickingClock
from tests.samples import MISSING_MODULE, agent_log

LINT = "`bun run lint` fails (exit 1): first `bun run lint:fix` (worked in {} runs)"


def _session(number: int, **fields: Any) -> Entry:
    notes: dict[str, object] = {
        name: fields.pop(name) for name in ("worked", "failed", "decisions") if name in fields
    }
    episode = Episode(id=f"s{number}", project="shop", task=fields.pop("task", f"Task {number}"), **fields)
    action, content = describe_session(episode, notes)
    return Entry(
        id=f"e{number}",
        seq=number,
        cycle=number,
        time=START,
        action=action,
        content=content,
        tags=("session",),
    )


@pytest.mark.req("C6", "C7")
def test_what_recurs_in_sessions_is_told_with_what_helped() -> None:
    entries = [
        _session(
            number,
            worked=[LINT.format(number), "`make build` worked 3 times"],
            failed=[
                "`bun run lint` failed 1 of 2 times",
                "`rtk` failed 2 of 9 times",
                "`rtk go` fails: no such command",
            ],
            decisions=["changed `src/cart.ts`", "the user said: commit"],
        )
        for number in range(1, 5)
    ]
    remedy, trouble, files = session_patterns(entries)
    assert remedy.title == "`bun run lint` fails (exit 1): first `bun run lint:fix`"
    assert remedy.sentences[0] == "This helped; met in 4 of 4 cycles since cycle 1."
    # A command is told once, with the error that is known of it.
    assert (trouble.title, trouble.kind) == ("`rtk go` fails: no such command", "trouble")
    assert files.title == "read `src/cart.ts` first: work keeps returning to it"
    assert len(files.cluster) == 4


@pytest.mark.req("C7")
def test_sessions_without_trouble_have_none() -> None:
    calm = [_session(number, worked=["`make test` worked 2 times"]) for number in range(1, 9)]
    assert session_patterns(calm) == []
    once = [_session(1, failed=["`make` failed 1 of 1 times"]), *calm]
    assert session_patterns(once) == []


def test_a_session_is_named_by_what_was_asked() -> None:
    for task, action in {
        "Implement the following plan:\n\n# Plan: Batch the prompts\n\n## Context\n…": "Batch the prompts",
        "<recommended_plugins>\na list\n</recommended_plugins>\nMend the cart": "Mend the cart",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\n# A\n</INSTRUCTIONS>\nAdd a test": "Add a test",
        "/clear": "align the names",
        "": "align the names",
    }.items():
        episode = Episode(id="s", task=task, status=EpisodeStatus.SUCCESS)
        assert describe_session(episode, {"decisions": ["the user said: align the names"]})[0] == action
    assert describe_session(Episode(id="s", status=EpisodeStatus.FAILED), {}) == ("Session failed", "Failed.")


def _record(bank: Bank, run: str, *, minutes: int = 0, **fields: Any) -> None:
    begun = START + timedelta(minutes=minutes)
    done: dict[str, Any] = {
        "started": begun,
        "finished": begun + timedelta(minutes=5),
        "status": EpisodeStatus.SUCCESS,
    }
    bank.runs.record_episode(Episode(id=run, task=f"Task of {run}", **done, **fields))


@pytest.mark.req("C6")
def test_each_session_is_the_next_cycle_once(bank: Bank) -> None:
    for number in range(3):
        _record(bank, f"s{number}", minutes=10 * number)
        logged = bank.stream.log_session(f"s{number}", role="claude-code")
        assert logged is not None
        assert (logged.cycle, logged.run, logged.action) == (number + 1, f"s{number}", f"Task of s{number}")
    # One that lasted while another ended is a cycle too.
    _record(bank, "beside", minutes=11)
    assert bank.stream.log_session("beside") is not None
    assert bank.stream.log_session("s1") is None
    assert bank.stream.log_session("nobody") is None
    assert len(bank.stream.recent()) == 4


@pytest.mark.req("C6")
def test_a_session_whose_agents_log_for_themselves_is_not_logged_again(
    bank: Bank, clock: TickingClock
) -> None:
    _record(bank, "own")
    bank.stream.log("Shipped it", role="ops", time=START + timedelta(minutes=2))
    assert bank.stream.log_session("own") is None
    _record(bank, "named", minutes=60)
    bank.stream.log("Shipped it again", role="ops", run="named", time=clock.now + timedelta(days=1))
    assert bank.stream.log_session("named") is None


@pytest.mark.req("C6", "C7")
def test_ten_sessions_are_reflected_on_by_themselves(tmp_path: Path, clock: TickingClock) -> None:
    with fresh_bank(tmp_path / "p", clock=clock) as bank:
        for number in range(10):
            notes = {"worked": [LINT.format(number)], "failed": [], "decisions": []}
            _record(bank, f"s{number}", minutes=10 * number)
            with bank.transaction() as writer:
                episode = writer.get(Episode, f"s{number}")
                assert episode is not None
                writer.put(replace(episode, extra={NOTES: notes}), "note")
            bank.stream.log_session(f"s{number}")
        bank.stream.reflect(if_due=True)
        (insight,) = [each for each in bank.stream.recent() if each.type is EntryType.REFLECTION]
        assert "first `bun run lint:fix`" in insight.action
        # Each insight names its entries.
        evidence = insight.extra["evidence"]
        assert isinstance(evidence, list)
        assert len(evidence) == 10
        assert bank.stream.get(str(evidence[0])).run == "s0"


@pytest.mark.req("C6")
@pytest.mark.parametrize("is_cycle", [True, False])
def test_the_hook_logs_a_session_after_it_ends(
    bank_cli: Command, archivist_process: Command, project: Path, is_cycle: bool
) -> None:
    log = agent_log(project.parent / "s-1.jsonl", MISSING_MODULE, session="s-1")
    event = {"session_id": "s-1", "cwd": str(project), "transcript_path": str(log)}
    setting = {"ARCHIVIST_STREAM__SESSIONS_ARE_CYCLES": str(is_cycle).lower()}
    for name, moment in (("SessionStart", "session-start"), ("SessionEnd", "session-end")):
        said = json.dumps({**event, "hook_event_name": name}).encode()
        assert archivist_process("hook", "claude-code", moment, stdin=said, **setting).code == 0
    deadline = monotonic() + 60
    entries: list[Any] = []
    while monotonic() < deadline and not entries:
        entries = json.loads(bank_cli("stream", "list", "--json").out)["entries"]
        with Bank.open(project, create=False) as bank, bank.reading() as reader:
            episode = reader.get(Episode, "s-1")
            is_reflected = episode is not None and NOTES in episode.extra
        if is_reflected and not is_cycle:
            break
        sleep(0.2)
    if not is_cycle:
        assert entries == []
        return
    (entry,) = entries
    assert (entry["cycle"], entry["role"], entry["tags"][0]) == (1, "claude-code", "session")


@pytest.mark.req("C5", "C6")
def test_agents_begin_cycles_and_reflect_by_functions(bank: Bank) -> None:
    dev = bank.acting_as(Actor(ActorKind.AGENT, "coder", "dev"))
    assert call(dev, "cycle_start", {})["cycle"] == 1
    for number in range(3):
        fields = {
            "importance": 6,
            "type": "action",
            "tags": [],
            "content": "CI is down again: #7 is blocked by the proxy.",
        }
        call(dev, "memory_log", {"action": f"Tried to merge, round {number}", **fields})
        assert call(dev, "cycle_start", {})["cycle"] == number + 2
    assert call(dev, "reflect", {})["insights"] == []
    done = call(dev, "reflect", {"reason": "the sprint ends"})
    assert done["gathered"] == 3
    assert "#7 was blocked" in str(done["insights"])


@pytest.mark.req("C7")
def test_nothing_is_told_of_the_importers_tags_and_no_trouble_where_there_was_none(bank: Bank) -> None:
    calm = (
        "Released 1.2. Blockers: none. Failures: 0.",
        "Ran the suite: no errors, 0 failures, nothing is blocked.",
        "All green without a single timeout; errors: none",
        "Reviewed the error pages. Not blocked by anything.",
    )
    lines = "\n".join(f"- **C{number}** (ops): {calm[number % 4]}" for number in range(1, 13))
    (bank.root / "bank.md").write_text(f"# Bank\n\n## Recent cycles\n\n{lines}\n", "utf-8")
    bank.bank_pages.import_banks([bank.root / "bank.md"])
    assert len(bank.stream.recent(50)) == 12
    done = bank.stream.reflect()
    assert [entry.action for entry in done.entries] == []
