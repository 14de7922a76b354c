"""A stranger's repository inside the user's own stays a stranger's, also once its folder is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

OURS = "https://github.com/acme/shop"
THEIRS = "https://evil.example/x/sub"


@pytest.fixture
def shop(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(home))
    return make_repository(tmp_path / "shop", OURS)


def _sessions(archivist: Command, shop: Path) -> tuple[dict[str, int], dict[str, int]]:
    done = archivist("setup", "--dry-run", "--json", cwd=shop)
    assert done.code == 0, done
    view = json.loads(done.out)
    return view["sessions"], view["left_out"]


@pytest.mark.parametrize("state", ["gone", "empty", "plain"])
def test_a_folder_whose_log_names_another_remote_is_not_the_projects(
    archivist: Command, home: Path, shop: Path, state: str
) -> None:
    inside = shop / "vendor" / "x"
    client_homes.codex(home, inside, 0, THEIRS)
    client_homes.copilot(home, inside, 1, "x/sub")
    if state != "gone":
        inside.mkdir(parents=True)
    if state == "plain":
        (inside / "notes").write_text("x")
        git(shop, "add", "-A")
        git(shop, "commit", "-qm", "notes")
    assert _sessions(archivist, shop) == ({}, {str(inside): 2})
    client_homes.codex(home, inside, 2, OURS)
    assert _sessions(archivist, shop)[0] == {"codex": 1}


@pytest.mark.parametrize("state", ["deinit", "removed", "committed", "plain"])
def test_a_submodule_is_not_the_projects_whatever_is_left_of_it(
    archivist: Command, home: Path, shop: Path, tmp_path: Path, state: str
) -> None:
    source = make_repository(tmp_path / "source", THEIRS)
    git(shop, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "vendor/sub")
    inside = shop / "vendor" / "sub"
    git(inside, "remote", "set-url", "origin", THEIRS)
    git(shop, "commit", "-qm", "sub")
    for number, folder in enumerate((inside, inside / "src")):
        client_homes.claude_code(home, folder, number)
        client_homes.opencode(home, folder, number)
        client_homes.vscode(home, folder, number)
    client_homes.claude_code(home, shop, 2)
    assert _sessions(archivist, shop)[0] == {"claude-code": 1}
    if state == "deinit":
        git(shop, "submodule", "--quiet", "deinit", "-f", "vendor/sub")
    elif state == "plain":
        git(shop, "rm", "-q", "--cached", "vendor/sub")
        (inside / ".git").unlink()
    else:
        git(shop, "rm", "-qf", "vendor/sub")
        if state == "committed":
            git(shop, "commit", "-qm", "no sub")
    sessions, left_out = _sessions(archivist, shop)
    assert (sessions, sum(left_out.values())) == ({"claude-code": 1}, 6)
    told = archivist("setup", "--yes", cwd=shop)
    assert "6 left out that began inside of it, maybe in another repository" in told.out, told


def test_a_folder_that_is_gone_counts_when_git_knows_its_files(
    archivist: Command, home: Path, shop: Path
) -> None:
    known, unknown = shop / "docs" / "old", shop / "vendor" / "gone"
    known.mkdir(parents=True)
    (known / "a").write_text("a")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "docs")
    shutil.rmtree(shop / "docs")
    for number, folder in enumerate((known, known.parent, unknown)):
        client_homes.claude_code(home, folder, number)
        client_homes.vscode(home, folder, number)
    assert _sessions(archivist, shop) == ({"claude-code": 2, "vscode": 2}, {str(unknown): 2})
    # By name a person says that it was the project's.
    done = archivist("setup", "--dry-run", "--json", "--moved-from", str(unknown), cwd=shop)
    assert json.loads(done.out)["sessions"] == {"claude-code": 3, "vscode": 3}


@pytest.mark.parametrize(("host", "is_ours"), [("", True), ("localhost", True), ("evilhost", False)])
def test_a_folder_of_another_machine_is_not_this_one(
    archivist: Command, home: Path, shop: Path, host: str, is_ours: bool
) -> None:
    client_homes.vscode(home, shop, 0)
    for note in home.glob(".config/Code/User/workspaceStorage/*/workspace.json"):
        note.write_text(json.dumps({"folder": f"file://{host}{shop}"}))
    assert _sessions(archivist, shop)[0] == ({"vscode": 1} if is_ours else {})


@pytest.mark.req("C12")
@pytest.mark.parametrize("remote", [OURS, ""])
def test_a_new_bank_whose_only_runs_are_of_a_nested_repository_is_not_that_ones(
    archivist: Command, home: Path, tmp_path: Path, remote: str
) -> None:
    shop = make_repository(tmp_path / "shop", *filter(None, [remote]))
    archivist("init", cwd=shop)
    inside = make_repository(shop / "vendor" / "sub", THEIRS)
    # Older than the folder: nothing says which repository lay there then.
    logs = [client_homes.claude_code(home, inside, number) for number in range(2)]
    archivist("capture", *map(str, logs), cwd=shop)
    archivist("reflect", "--pending", cwd=shop)
    assert json.loads(archivist("lessons", "list", "--repo", "*", "--json", cwd=shop).out)["lessons"]
    assert archivist("brief", cwd=shop).out == ""
