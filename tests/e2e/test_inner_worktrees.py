"""Sessions of a worktree that lies inside of its repository are the repository's, however new it is."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.e2e import client_homes
from tests.e2e.conftest import Setup

_REMEDY = "PYTHONPATH=src"
_REMOTES = ["", "https://example.org/acme/kiln.git"]


def _count_runs(run: Setup, folder: Path) -> int:
    held = json.loads(run(folder, "status", "--json").out)
    return int(held["runs"]) - int(held["runs_waiting"])


def _projects(run: Setup, folder: Path) -> set[str]:
    return {each["project"] for each in json.loads(run(folder, "episodes", "list", "--json").out)["episodes"]}


@pytest.mark.parametrize("place", [".claude/worktrees/foo", ".worktrees/bar", "wt/one"])
@pytest.mark.parametrize("remote", _REMOTES)
def test_a_worktree_that_is_younger_than_its_sessions_is_its_repository(
    place: str, remote: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "big", remote)
    tree = app / place
    client_homes.git(app, "worktree", "add", "-q", str(tree), "-b", "tree")
    for number, folder in enumerate((tree, tree / "src", app)):
        client_homes.claude_code(fresh_home, folder, number)
    client_homes.opencode(fresh_home, tree, 3)
    found = json.loads(run(app, "setup", "--yes", "--json").out)
    assert sum(found["sessions"].values()) == 4
    # A log that is captured by itself, and a session of which only hooks tell.
    name = found["project"]
    log = client_homes.codex(fresh_home, tree, 4, remote)
    assert run(tree, "capture", str(log)).code == 0
    live = client_homes.claude_code(fresh_home, tree, 5)
    event = {"session_id": live.stem, "cwd": str(tree), "transcript_path": str(live)}
    started = run(tree, "hook", "claude-code", "session-start", stdin=json.dumps(event)).out
    assert _REMEDY in started
    run(tree, "hook", "claude-code", "session-end", stdin=json.dumps(event))
    # The hook lets a process of its own learn from the session.
    deadline = time.monotonic() + 60
    while _count_runs(run, app) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert _projects(run, app) == _projects(run, tree) == {name}
    for words in (("brief",), ("recall", "kiln"), ("lessons", "list")):
        told = [run(folder, *words).out for folder in (app, tree, tree / "src")]
        assert _REMEDY in told[0]
        assert told[0] == told[1] == told[2]
