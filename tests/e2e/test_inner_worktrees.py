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


def test_what_is_filed_apart_is_named_with_its_runs_and_joined_by_a_claim(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    """A clone inside of the repository that is younger than its sessions may have been another one."""
    remote = "https://example.org/acme/big.git"
    app = client_homes.make_repository(tmp_path / "big", remote)
    copy = client_homes.make_repository(app / "one", remote)
    asked = ["commit"] * 2
    for number in range(2):
        client_homes.claude_code(fresh_home, copy, number, said=asked)
    only = run(app, "setup", "--yes").out
    apart = only.partition("filed under project ")[2].splitlines()[0]
    assert apart.startswith("one@")
    assert f"archivist lessons claim {apart}, if it is the same" in run(app, "brief").err
    for number in range(2, 5):
        client_homes.claude_code(fresh_home, app, number, said=asked)
    done = run(app, "setup").out
    assert f"filed under projects big (3 runs), {apart} (2 runs)" in done
    assert f"if that is this repository: archivist lessons claim {apart}" in done

    def words(*more: str) -> list[str]:
        held = json.loads(run(app, "lessons", "list", "--json", *more).out)["lessons"]
        return [each["summary"] for each in held]

    assert len(words()) < len(words("--repo", apart)) + len(words()) == len(words("--repo", "*"))
    assert run(app, "lessons", "claim", apart).code == 0
    assert sorted(words()) == sorted(set(words())) == sorted(set(words("--repo", "*")))
    held = json.loads(run(app, "lessons", "list", "--json").out)["lessons"]
    assert 5 in [each["frequency"] for each in held]
    # What the next run meets is the same lesson too.
    before = len(words())
    client_homes.claude_code(fresh_home, app, 5)
    assert run(app, "setup").code == 0
    assert len(words()) == before
