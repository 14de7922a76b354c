"""Repositories that share a bank are kept apart: what runs in a stranger's met is told in no other."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

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
