"""A call that was refused, cancelled or killed is no remedy, whatever its program printed before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from archivist.records import Episode, Event, EventKind
from tests.conftest import Command

REFUSED = "checks: error: the following arguments are required: --seed"
RAN = "./checks --seed 9 --wipe"


@pytest.mark.req("N7")
@pytest.mark.parametrize("mark", ["interrupted", "killed", "rejected", "timed_out", "result_missing"])
def test_an_unfinished_call_is_no_remedy(bank: Bank, mark: str) -> None:
    for number in range(2):
        name = f"run-{number}"
        calls: list[dict[str, Any]] = [
            {"text": "./checks", "output": REFUSED, "exit_code": 2},
            {"text": RAN, "output": "12 passed", "extra": {mark: True}},
        ]
        events = [
            Event(run=name, seq=seq, kind=EventKind.TOOL_CALL, tool="bash", target=call["text"], **call)
            for seq, call in enumerate(calls)
        ]
        bank.capture(Episode(id=name, project="shop", provider="gemini", task=f"Task {number}"), events)
        bank.reflect(name)
    told = bank.brief(repo="shop").text
    assert "./checks" in told
    assert "--wipe" not in told


@pytest.mark.req("N7")
def test_a_number_beyond_all_bounds_in_a_kept_file_stops_nothing(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("lessons", "add", "Prices are whole cents")
    archivist("config", "set", "files.cross_run", "mem")
    archivist("lessons", "add", "Bundle small changes")
    kept = project / "mem/lessons.jsonl"
    line = json.loads(kept.read_text().splitlines()[0]) | {"id": "m-777", "importance": "@"}
    kept.write_text(kept.read_text() + json.dumps(line).replace('"@"', "1" + "0" * 400) + "\n")
    for words in (("lessons", "add", "Name the branch"), ("status",), ("doctor",), ("import", "mem")):
        assert "Traceback" not in archivist(*words).err, words
    assert "Name the branch" in archivist("lessons", "list").out


@pytest.mark.req("N7")
def test_two_facts_of_one_name_are_one_fact(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("knowledge", "set", "build", "tool", "make")
    archivist("export", "out")
    facts = project / "out/knowledge.jsonl"
    fact = json.loads(facts.read_text().splitlines()[0])
    ids = ("41C5MHE26PSBP1YG1TF5Y48KS8", "41C5MHE26PSBP1YG1TF5Y48KS9")
    facts.write_text("".join(json.dumps({**fact, "id": each, "key": "other"}) + "\n" for each in ids))
    ran = archivist("import", "out", "--approve")
    assert (ran.code, ran.out) == (0, "facts: 1 new, 0 merged, 1 the same\n")
    assert archivist("knowledge", "list").out.count("other") == 1


@pytest.mark.req("N7", "W1")
def test_a_rules_file_of_megabytes_holds_up_nothing(archivist: Command, project: Path) -> None:
    rules = project / "agent/rules/common"
    rules.mkdir(parents=True)
    (rules / "a.md").write_text("# a\n" * 1_000_000)
    assert "larger than 100 kB" in "".join((ran := archivist("workspace", "hot")).out + ran.err)


@pytest.mark.req("N7")
def test_a_bank_of_holes_is_not_copied_to_be_salvaged(archivist: Command, project: Path) -> None:
    place = project / ".archivist/memory.db"
    place.parent.mkdir(exist_ok=True)
    with place.open("wb") as file:
        file.truncate(6_000_000_000)
    ran = archivist("salvage")
    assert "most are holes" in ran.err
    assert [each.name for each in place.parent.iterdir() if each.stat().st_size > 1_000_000] == ["memory.db"]
