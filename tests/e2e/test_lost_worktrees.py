"""Sessions of worktrees beside the repository that were removed: named, and never taken unasked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import client_homes
from tests.e2e.conftest import Setup


def _set_up(run: Setup, app: Path, *words: str) -> tuple[dict[str, Any], str]:
    done = run(app, "setup", "--yes", "--json", *words)
    assert done.code == 0, done.err
    view: dict[str, Any] = json.loads(done.out)
    return view, done.err


@pytest.mark.parametrize("how", ["removed", "deleted", "pruned", "named"])
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_removed_worktree_beside_the_repository_is_named_and_taken_when_asked(
    run: Setup, fresh_home: Path, tmp_path: Path, client: str, how: str
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    tree = tmp_path / ("app-fix" if how == "named" else "wt-a")
    if how != "named":
        client_homes.git(app, "worktree", "add", "-q", str(tree))
    write = client_homes.claude_code if client == "claude-code" else client_homes.codex
    write(fresh_home, tree, 1)
    write(fresh_home, tree, 2)
    if how == "removed":
        client_homes.git(app, "worktree", "remove", str(tree))
    elif how in ("deleted", "pruned"):
        tree.rename(tmp_path / "elsewhere")
    if how == "pruned":
        client_homes.git(app, "worktree", "prune")
    view, err = _set_up(run, app)
    assert view["sessions"] == {}
    assert f"2 left out that began in {tree}, which is gone and may have been a worktree" in err
    assert f"archivist setup --moved-from {tree}" in err
    view, err = _set_up(run, app, "--moved-from", str(tree))
    assert view["sessions"] == {client: 2}
    assert "left out that began" not in err


def test_other_projects_beside_it_are_not_named(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app", "https://example.org/ada/app.git")
    other = client_homes.make_repository(tmp_path / "app-other")
    client_homes.claude_code(fresh_home, other, 1)
    client_homes.claude_code(fresh_home, tmp_path / "gone", 2)
    client_homes.claude_code(fresh_home, tmp_path / "deeper" / "app-fix", 3)
    client_homes.codex(fresh_home, tmp_path / "app-fix", 4, "https://example.org/eve/app.git")
    view, err = _set_up(run, app)
    assert view["sessions"] == {}
    assert "may have been a worktree" not in err


_WRITERS = ["claude_code", "codex", "opencode", "gemini", "copilot"]


@pytest.mark.parametrize("client", _WRITERS)
@pytest.mark.parametrize("place", [".claude/worktrees/fix", "trees/fix"])
def test_a_removed_worktree_inside_of_the_repository_is_taken_unasked(
    run: Setup, fresh_home: Path, tmp_path: Path, client: str, place: str
) -> None:
    """What git knew, and what lies where a client makes its worktrees, is the repository's."""
    app = client_homes.make_repository(tmp_path / "app")
    tree = app / place
    known = ("-b", "fix") if place == "trees/fix" else ("--detach",)
    client_homes.git(app, "worktree", "add", "-q", str(tree), *known)
    write = getattr(client_homes, client)
    for number in range(2):
        write(fresh_home, tree, number)
    client_homes.git(app, "worktree", "remove", "--force", str(tree))
    view, _ = _set_up(run, app)
    assert (list(view["sessions"].values()), view["left_out"], view["lost"]) == ([2], {}, {})
    assert view["projects"] == {"app": 2}


def test_folders_inside_that_nobody_knew_are_named_and_taken_by_one_folder(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app / "wt" / "one", 0)
    client_homes.opencode(fresh_home, app / "wt" / "two", 1)
    client_homes.gemini(fresh_home, app / "wt" / "two", 2)
    client_homes.claude_code(fresh_home, tmp_path / "else" / "wt" / "one", 3)
    told = run(app, "setup", "--dry-run").out
    assert "3 left out that began inside of it, maybe in another repository:" in told
    assert f"{app}/wt/one (1)" in told
    assert f"{app}/wt/two (2)" in told
    assert f"to take all of these: archivist setup --moved-from {app}/wt\n" in told
    for former in (app / "wt", app):
        done = run(app, "setup", "--dry-run", "--json", "--moved-from", str(former))
        view = json.loads(done.out)
        assert (sum(view["sessions"].values()), view["left_out"]) == (3, {})


def test_removed_worktrees_beside_it_are_counted_for_all_clients_and_taken_by_one_folder(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "work" / "app")
    for at, name in enumerate(("app-fix", "app-docs", "notes")):
        folder = app.parent / name
        for number, client in enumerate(_WRITERS):
            getattr(client_homes, client)(fresh_home, folder, 10 * at + number)
    told = run(app, "setup", "--dry-run").out
    for name in ("app-fix", "app-docs"):
        assert f"5 left out that began in {app.parent / name}, which is gone and may have been" in told
    assert f"to take all of these: archivist setup --moved-from {app.parent}\n" in told
    assert "notes" not in told
    view = json.loads(run(app, "setup", "--dry-run", "--json", "--moved-from", str(app.parent)).out)
    assert (sum(view["sessions"].values()), view["lost"], view["left_out"]) == (10, {}, {})
