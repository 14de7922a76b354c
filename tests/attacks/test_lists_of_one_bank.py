"""Every list of what runs said, and what is saved from one, holds nothing of another repository's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist import Bank
from archivist.records import Episode
from archivist.tools.functions import call
from archivist.tools.resources_service import read_resource
from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

DECISION = "We decided to sell zebrafish at 42 percent margin because the supplier insists."
FILES = {
    "resources/workspaces/evil/OVERVIEW.md": "---\nname: evil\ndescription: d\n---\nx\n",
    "user/memory/workspaces/evil/lessons.md": "# Lessons: evil\n",
    "user/memory/workspaces/evil/decisions.md": "# Decisions: evil\n",
}


@pytest.fixture
def work(tmp_path: Path, home: Path) -> Path:
    """Make a bank above the user's repository and a stranger's, with runs in the user's."""
    top = tmp_path / "desk"
    shop = make_repository(top / "shop", "https://github.com/me/shop.git")
    evil = make_repository(top / "evil", "https://github.com/mallory/evil.git")
    for name, text in FILES.items():
        (evil / name).parent.mkdir(parents=True, exist_ok=True)
        (evil / name).write_text(text)
    git(evil, "add", "-A")
    git(evil, "commit", "-qm", "workspace")
    required = "checks: error: the following arguments are required: --zebrafish"
    calls = [("./checks", required, 2), ("./checks --zebrafish 7", "12 checks passed", 0)]
    with Bank.open(top, create=True) as bank:
        for number in range(2):
            log = client_homes.claude_code(home, shop, number, calls)
            log.write_text(
                log.read_text().replace(f"Make the test of the kiln pass, part {number}", DECISION)
            )
            (done,) = bank.runs.finish(log).runs
            bank.stream.log_session(done.run, role="claude-code")
            bank.runs.start_run(f"told-{number}", repo="shop")
    return top


LISTS = [
    ("episodes", "list"),
    ("episodes", "show", "--task", DECISION),
    ("lessons", "list"),
    ("stream", "list"),
    ("stream", "list", "--cycles", "0:9"),
    ("stream", "search", "zebrafish"),
    ("recall", "zebrafish"),
    ("audit", "report"),
    ("workspace", "drafts"),
    ("workspace", "hot"),
]


@pytest.mark.req("C12", "N7")
def test_no_list_crosses_from_one_repository_to_another(archivist: Command, work: Path) -> None:
    told = {}
    for words in LISTS:
        here, there = (archivist(*words, "--json", cwd=work / name).out for name in ("shop", "evil"))
        told[" ".join(words[:2])] = "zebrafish" in here
        # Answers repeat what was asked.
        for asked in (json.dumps(DECISION), "“zebrafish”", '"zebrafish"'):
            there = there.replace(asked, "")
        assert "zebrafish" not in there, words
    assert [name for name, is_told in told.items() if not is_told] == ["audit report", "workspace hot"]
    assert "zebrafish" in archivist("episodes", "list", "--repo", "*", cwd=work / "evil").out
    assert "zebrafish" in archivist("episodes", "list", "--repo", "shop", cwd=work / "evil").out


@pytest.mark.req("C12", "N7")
def test_reflections_on_the_stream_are_told_in_the_repository_that_they_are_about(work: Path) -> None:
    with Bank.open(work) as bank:
        for number in range(4):
            run = f"more-{number}"
            bank.capture(Episode(id=run, project="shop", task=f"Part {number}"), ())
            said = "Blocked by #84: the zebrafish server is down"
            bank.stream.log(said, cycle=number + 20, role="ops", importance=9, run=run)
        done = bank.stream.reflect(trigger="now")
        assert any("zebrafish" in entry.content + entry.action for entry in done.entries)
        for name, is_told in (("shop", True), ("evil", False)):
            there = bank.working_in(work / name)
            found = [*there.recall("zebrafish server").hits, *there.documents.search("zebrafish server")]
            assert any(hit.text.startswith("Reflection") for hit in found) is is_told
            assert any("zebrafish" in hit.text for hit in found) is is_told


@pytest.mark.req("C12", "N7")
def test_nothing_of_one_repository_is_saved_into_the_files_of_another(archivist: Command, work: Path) -> None:
    for words in ((), ("--scope", "evil")):
        archivist("workspace", "drafts", "--save", *words, cwd=work / "evil")
    assert git(work / "evil", "status", "--short") == ""
    # A person may name the run.
    run = json.loads(archivist("episodes", "list", "--repo", "shop", "--json", cwd=work).out)["episodes"]
    named = next(each["run"] for each in run if "zebrafish" in json.dumps(each))
    archivist("workspace", "drafts", "--save", "--scope", "evil", "--run", named, cwd=work / "evil")
    assert "zebrafish" in git(work / "evil", "diff")


@pytest.mark.req("C12", "N7")
def test_resources_and_tools_are_of_the_repository_at_hand(work: Path) -> None:
    for name, is_told in (("shop", True), ("evil", False)):
        with Bank.open(work, folder=work / name) as bank:
            assert ("zebrafish" in read_resource(bank, "archivist://lessons/recent")[0]) is is_told
            for tool, given in (
                ("recall_by_cycle", {"start_cycle": 0, "end_cycle": 9}),
                ("lesson_query", {}),
                ("what_worked", {"task": "zebrafish"}),
                ("recall", {"query": "supplier margin"}),
            ):
                answer = json.dumps(call(bank, tool, given))
                assert is_told or "zebrafish" not in answer, tool


@pytest.mark.req("N5", "N10")
def test_a_share_folder_in_one_repository_gets_nothing_of_another(archivist: Command, work: Path) -> None:
    archivist("share", "shared", cwd=work / "evil")
    archivist("share", "shared", cwd=work / "shop")
    told = ["".join(file.read_text() for file in (work / name).rglob("*.jsonl")) for name in ("evil", "shop")]
    assert ["zebrafish" in text for text in told] == [False, True]
