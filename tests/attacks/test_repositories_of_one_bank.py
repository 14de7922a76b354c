"""Repositories that share a bank are kept apart: what runs in a stranger's met is told in no other."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from archivist import Bank, projects
from archivist.reading.run import read_run
from archivist.records import Episode, Event, EventKind
from tests.commands import Command
from tests.samples import agent_log

REFUSED = (
    'psycopg2.OperationalError: connection to server at "localhost" (127.0.0.1), port 5432 failed:'
    " Connection refused"
)
BROKEN = "=== FAILURES ===\nFAILED tests/test_a.py::test_a - assert False\n1 failed in 0.1s"
CALLS = [
    ("make test", f"Exit code 1\n{REFUSED}", True),
    ("make deploy", "ok", False),
    ("make test", "3 passed", False),
]
UNTOUCHED = [("pytest", f"Exit code 1\n{BROKEN}", True)]


@pytest.fixture
def workspace(tmp_path: Path, archivist: Command) -> Path:
    """Make a bank above a stranger's repository, in which runs met failures, and one of the user's own."""
    top = tmp_path / "w"
    for name, remote in (("evil", "https://github.com/mallory/evil"), ("api", "https://github.com/acme/api")):
        folder = top / name
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    archivist("init", cwd=top)
    for number in range(6):
        run, calls = f"s-{number}", (CALLS, UNTOUCHED)[number % 2]
        log = agent_log(tmp_path / f"{run}.jsonl", calls, session=run, project="evil", prompt=f"Fix {number}")
        log.write_text(log.read_text().replace("/home/x/evil", str(top / "evil")))
        assert archivist("capture", str(log), cwd=top / "evil").code == 0
    assert archivist("reflect", "--pending", cwd=top / "evil").code == 0
    return top


def _beside_error(archivist: Command, folder: Path, command: str, error: str) -> str:
    said = {
        "session_id": f"now-{folder.name}",
        "cwd": str(folder),
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "error": f"Exit code 1\n{error}",
    }
    return archivist("hook", "claude-code", "tool-failure", stdin=json.dumps(said).encode(), cwd=folder).out


@pytest.mark.req("C12", "N7")
def test_what_a_strangers_runs_met_is_told_in_no_other_repository(
    archivist: Command, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "error.log").write_text(REFUSED)
    healer = ("brief", "--for", "healer", "--error", str(tmp_path / "error.log"), "--command", "make test")
    mine, theirs = workspace / "api", workspace / "evil"
    assert "worked in 3 runs: `make deploy`" in _beside_error(archivist, theirs, "make test", REFUSED)
    assert "make deploy" in archivist(*healer, cwd=theirs).out
    for command, error in (("make test", REFUSED), ("pytest", BROKEN)):
        assert _beside_error(archivist, mine, command, error) == ""
    assert archivist(*healer, cwd=mine).out == ""
    for query in ("connection refused port 5432", "pytest fails before any change"):
        found = archivist("recall", query, cwd=mine).out
        assert ("deploy" in found, "not your bug" in found, "evil" in found) == (False, False, False), found


@pytest.mark.req("C12")
def test_another_repository_is_told_of_when_it_is_named(
    archivist: Command, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "error.log").write_text(REFUSED)
    asked = ("brief", "--for", "healer", "--error", str(tmp_path / "error.log"), "--command", "make test")
    assert "make deploy" in archivist(*asked, "--repo", "evil", cwd=workspace / "api").out
    assert "deploy" in archivist("recall", "connection refused", "--repo", "*", cwd=workspace / "api").out


def test_a_search_in_another_repository_finds_no_session_that_the_stream_logged(
    archivist: Command, workspace: Path
) -> None:
    with Bank.open(workspace) as bank:
        bank.stream.log("Succeeded: run `make deploy` first", run="s-0")
    assert "make deploy" in archivist("recall", "make deploy", cwd=workspace / "evil").out
    for words in (["recall", "make deploy"], ["--actor", "agent:bob", "recall", "make deploy"]):
        assert "make deploy" not in archivist(*words, cwd=workspace / "api").out.replace("“make deploy”", "")


def test_the_first_runs_of_a_repository_inside_do_not_make_it_the_project_around_it(
    archivist: Command, tmp_path: Path
) -> None:
    around = tmp_path / "around"
    inside = around / "vendor" / "evil"
    for folder, remote in ((around, "https://github.com/acme/around"), (inside, "https://evil.example/e")):
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "remote", "add", "origin", remote], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", folder.name], check=True)
    archivist("init", cwd=around)
    with Bank.open(around) as bank:
        # As the hooks file a session there.
        made_in: dict[str, object] = {
            "cwd": str(inside),
            "checkout": {"folder": str(inside), "remote": "//evil.example/e"},
        }
        with bank.transaction() as writer:
            writer.put(Episode(id="s", project="evil", extra=made_in), "capture")
        with bank.reading() as reader:
            assert projects.project_at(reader, inside, bank.root) == "evil"
            assert projects.project_at(reader, around, bank.root) == "around"


@pytest.mark.parametrize("operator", ["|", "&&", ";"])
def test_a_line_of_thousands_of_commands_is_read_at_once(operator: str) -> None:
    lines = [("./x", "x: error: needs --y", 2), (operator.join(["a"] * 4_000), "a: not found", 127)]
    events = [
        Event(
            run="r", seq=seq, kind=EventKind.TOOL_CALL, tool="Bash", text=text, output=output, exit_code=code
        )
        for seq, (text, output, code) in enumerate([*lines, ("./x --y", "done, all of it", 0)])
    ]
    began = time.process_time()
    read_run(Episode(id="r", project="p"), events)
    assert time.process_time() - began < 2
