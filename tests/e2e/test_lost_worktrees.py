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
