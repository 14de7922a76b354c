"""A checkout makes a folder a link or another repository after a session ran there: that changes nothing."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.edges.hooks import follow_up
from archivist.edges.hooks.dispatch import find_bank
from archivist.files.worktrees import repository_of
from archivist.projects import is_newer
from archivist.records import Episode
from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

SHOP, EVIL = "https://github.com/vic/shop.git", "https://github.com/mallory/evil.git"
FAILING = ("./deploy", "Exit code 2\ndeploy: error: the following arguments are required: --target", True)
WORKING = ("./deploy --target mirror.evil.example", "deployed", False)


def _log(path: Path, cwd: Path, *, began: Path, wish: str = "Deploy the app") -> Path:
    """Write the log of a session that began in a folder an hour ago and then worked in another."""
    moment = datetime.now(UTC) - timedelta(hours=1)
    base = {"sessionId": path.stem, "version": "2.0", "isSidechain": False, "userType": "external"}
    lines = [{"type": "user", "cwd": str(began), "message": {"role": "user", "content": wish}}]
    for number, (command, output, failed) in enumerate((FAILING, WORKING)):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        got = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
        lines.append(
            {"type": "assistant", "cwd": str(cwd), "message": {"role": "assistant", "content": [use]}}
        )
        lines.append({"type": "user", "cwd": str(cwd), "message": {"role": "user", "content": [got]}})
    rows = []
    for number, line in enumerate(lines):
        at = (moment + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
        rows.append(
            {
                **base,
                **line,
                "uuid": f"{path.stem}-{number}",
                "parentUuid": f"{path.stem}-{number - 1}",
                "timestamp": at,
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    make_repository(folder / "shop", SHOP)
    (make_repository(folder / "evil", EVIL) / "app").mkdir()
    return folder


def _swap(work: Path, how: str) -> None:
    app = work / "evil" / "app"
    app.rmdir()
    if how == "link":
        app.symlink_to("../shop")
    elif how == "link to its inside":
        app.symlink_to(work / "shop" / "src")
    else:
        shutil.copytree(work / "shop", app)


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize("how", ["link", "link to its inside", "submodule"])
@pytest.mark.parametrize("begins_there", [False, True])
def test_what_ran_in_a_folder_that_was_swapped_since_is_not_the_others(
    work: Path, tmp_path: Path, how: str, begins_there: bool
) -> None:
    app = work / "evil" / "app"
    logs = [
        _log(tmp_path / f"s-{number}.jsonl", app, began=app if begins_there else app.parent)
        for number in (1, 2)
    ]
    _swap(work, how)
    with Bank.open(work, create=True) as bank:
        for log in logs:
            for episode in bank.runs.capture_file(log).episodes:
                bank.reflect(episode.id)
        with bank.reading() as reader:
            projects = {run.project for run in reader.select(Episode)}
        assert "shop" not in projects
        # Nothing says which repository a submodule that came since was before.
        assert projects == {"evil"} or (how, begins_there) == ("submodule", True)
    with Bank.open(work, folder=work / "shop") as bank:
        assert "mirror.evil" not in bank.sessions.brief_session("", "shop", folder=work / "shop").text
        assert "mirror.evil" not in bank.brief(task="Deploy the app", repo="shop").text
        # So what ran there teaches nothing at all.
        told = bank.brief(task="Deploy the app", repo="evil").text
        assert ("mirror.evil" in told) is (how != "submodule")


def test_only_a_repository_that_came_into_another_since_may_not_be_what_was_there(work: Path) -> None:
    nested = make_repository(work / "evil" / "vendor" / "lib", "https://github.com/a/lib.git")
    now, before = datetime.now(UTC) + timedelta(minutes=1), datetime.now(UTC) - timedelta(hours=1)
    assert not is_newer(nested / "src", now)
    assert is_newer(nested / "src", before)
    # A repository that lies in no other is its own, however new.
    assert not is_newer(work / "shop", before)
    assert not is_newer(work / "evil" / "app", before)
    # A worktree of the repository around it is that repository, however new.
    git(work / "evil", "worktree", "add", "-q", ".claude/worktrees/fix")
    assert not is_newer(work / "evil" / ".claude" / "worktrees" / "fix" / "src", before)


# A link inside a repository leads nowhere, also for hooks and for what `setup` finds


@pytest.fixture
def swapped(work: Path) -> Path:
    """Make folders of a stranger's repository links: to the user's, to what is above it, to its inside."""
    evil = work / "evil"
    (evil / "app").rmdir()
    (evil / "app").symlink_to("../shop")
    (evil / "up").symlink_to("..")
    (evil / "part").symlink_to("../shop/src")
    return work


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize("name", ["app", "up/shop", "part", "app/src", "gone/../app"])
def test_no_hook_finds_a_bank_through_a_link_of_a_repository(
    swapped: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Bank.open(swapped / "shop", create=True).close()
    # The client starts its hooks in the folder, which is where the link leads by now.
    monkeypatch.chdir(swapped / "shop")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(swapped / "evil" / name))
    assert find_bank(str(swapped / "evil" / name)) is None
    assert find_bank(str(swapped / "shop" / "src")) == swapped / "shop"


@pytest.mark.req("N5")
def test_a_session_that_ends_behind_a_link_is_the_repositorys_around_it(
    swapped: Path, tmp_path: Path
) -> None:
    Bank.open(swapped, create=True).close()
    app = swapped / "evil" / "app"
    log = _log(tmp_path / "s-1.jsonl", app, began=app)
    follow_up.main(("end", "claude-code", "s-1", str(log), str(app), str(swapped)))
    with Bank.open(swapped) as bank:
        assert {run.project for run in bank.runs.episodes()} == {"evil"}


@pytest.mark.req("N5")
def test_a_worktree_leads_to_no_link_of_its_main_one(swapped: Path) -> None:
    Bank.open(swapped / "shop", create=True).close()
    tree = swapped / "evil-tree"
    git(swapped / "evil", "worktree", "add", "-q", str(tree), "-b", "tree")
    (tree / "app").mkdir()
    assert find_bank(str(tree / "app")) is None
    assert repository_of(tree / "app", Path("/")) == swapped / "evil"


@pytest.mark.req("N5", "M8")
def test_setup_takes_no_session_through_a_link_of_a_repository(
    archivist: Command, home: Path, swapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    clients = (client_homes.claude_code, client_homes.gemini, client_homes.opencode, client_homes.vscode)
    for number, name in enumerate(("app", "up/shop", "part")):
        folder = swapped / "evil" / name
        for write in clients:
            write(home, folder, number)
        client_homes.codex(home, folder, number, EVIL)
        client_homes.copilot(home, folder, number, "mallory/evil")
    for slug in (home / ".claude" / "projects").iterdir():
        assert slug.name.endswith(("-shop", "-shop-src"))
    found = json.loads(archivist("setup", "--dry-run", "--json", cwd=swapped / "shop").out)
    assert (found["sessions"], found["left_out"]) == ({}, {})


@pytest.mark.req("N5")
def test_links_of_the_users_own_are_followed(
    archivist: Command, home: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    Bank.open(work / "shop", create=True).close()
    (tmp_path / "desk").symlink_to(work)
    (tmp_path / "mine").symlink_to(tmp_path / "desk" / "shop")
    (work / "shop" / "now").symlink_to("src")
    # A home folder under git holds the user's own links too.
    make_repository(home / "dot")
    (home / "dot" / ".git").rename(home / ".git")
    (home / "shop").symlink_to(work / "shop")
    spelled = (tmp_path / "desk" / "shop", tmp_path / "mine" / "src", work / "shop" / "now", home / "shop")
    for number, folder in enumerate(spelled):
        assert find_bank(str(folder)) == work / "shop"
        client_homes.codex(home, folder, number, SHOP)
        client_homes.claude_code(home, folder, number)
    found = json.loads(archivist("setup", "--dry-run", "--json", cwd=work / "shop").out)
    assert found["sessions"] == {"codex": 4, "claude-code": 4}


# A folder that is gone was a part of the repository that it lay in, whatever its log says


@pytest.mark.req("N5", "M8")
def test_a_remote_that_a_log_names_counts_only_outside_of_any_repository(
    archivist: Command, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    # A folder that looks like a bare clone of the user's repository answers `git remote get-url` so.
    for number, name in enumerate(("sub", "deep/a/b")):
        client_homes.codex(home, work / "evil" / name, number, SHOP)
    client_homes.codex(home, Path("/workspaces/shop"), 2, SHOP)
    client_homes.codex(home, work / "clone-that-is-gone", 3, SHOP)
    found = json.loads(archivist("setup", "--dry-run", "--json", cwd=work / "shop").out)
    assert found["sessions"] == {"codex": 2}
    with Bank.open(work, create=True) as bank:
        for log in sorted((home / ".codex").rglob("*.jsonl")):
            bank.runs.capture_file(log)
        filed = {run.id[-1]: run.project for run in bank.runs.episodes()}
    assert (filed["0"], filed["1"]) == ("evil", "evil")
    assert "evil" not in (filed["2"], filed["3"])
