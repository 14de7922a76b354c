"""Which clients `archivist setup` connects, where it writes, and what it says of their versions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import PROGRAM
from tests.e2e import client_homes
from tests.e2e.conftest import Setup


def test_a_client_without_a_session_here_is_offered_and_connected_when_it_is_named(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app)
    assert json.loads(run(app, "setup", "--yes", "--json").out)["installed"] == ["claude-code"]
    for folder in (".gemini", ".codex"):
        (fresh_home / folder).mkdir()
    again = run(app, "setup", "--yes").out
    offer = (
        "without a session here: codex, gemini; to connect: archivist setup --client codex --client gemini"
    )
    assert offer in again
    assert not (app / ".gemini").exists()
    named = json.loads(run(app, "setup", "--yes", "--client", "codex", "--json").out)
    assert named["installed"] == ["codex"]
    assert "without a session here: gemini;" in run(app, "setup", "--dry-run").out


def test_a_connected_repository_without_sessions_gets_no_other_client(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    (fresh_home / ".codex").mkdir()
    assert json.loads(run(app, "setup", "--yes", "--json").out)["installed"] == ["codex"]
    (fresh_home / ".gemini").mkdir()
    assert json.loads(run(app, "setup", "--yes", "--json").out)["installed"] == []
    assert "the first session that ends here is learnt from" in run(app, "brief").err
    assert "archivist setup learns" not in run(app, "brief").err


def test_in_a_linked_worktree_the_file_of_the_main_one_is_named(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app, tree = client_homes.make_repository(tmp_path / "app"), tmp_path / "tree"
    client_homes.git(app, "worktree", "add", "-q", str(tree), "-b", "tree")
    client_homes.claude_code(fresh_home, tree)
    file = app / ".claude" / "settings.local.json"
    assert f"Client    claude-code: create {file} (+" in run(tree, "setup", "--yes").out
    assert file.is_file()


def test_a_settings_file_that_git_sees_is_warned_of(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.gemini(fresh_home, app)
    (app / ".gemini").mkdir()
    (app / ".gemini" / "settings.json").write_text('{"theme": "x"}')
    line = f"gemini: {app}/.gemini/settings.json was there, and git sees it with our hooks: do not commit it"
    assert line in run(app, "setup", "--yes").out
    assert ".gemini/" in client_homes.git(app, "status", "--porcelain")


def test_in_a_worktree_without_hooks_of_its_own_the_doctor_says_so(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app, tree = client_homes.make_repository(tmp_path / "app"), tmp_path / "tree"
    client_homes.copilot(fresh_home, app)
    run(app, "setup", "--yes")
    assert run(app, "doctor").code == 0
    client_homes.git(app, "worktree", "add", "-q", str(tree), "-b", "tree")
    done = run(tree, "doctor")
    remedy = "told at no event in this worktree: archivist install copilot --local"
    assert (done.code, remedy in done.out) == (1, True), done.out
    assert run(tree, "install", "copilot", "--local").code == 0
    assert run(tree, "doctor").code == 0


def test_undo_says_what_goes_with_the_bank(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    run(app, "setup", "--yes")
    run(app, "lessons", "add", "Answer in plain English")
    shown = run(app, "setup", "--undo", "--dry-run").out
    assert "lessons (1 of which you wrote) and 2 runs" in shown


def test_undo_names_the_clients_that_were_installed_by_hand(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.gemini(fresh_home, app, 1)
    run(app, "setup", "--yes")
    assert "setup did not install it" not in run(app, "setup", "--undo", "--dry-run").out
    run(app, "uninstall", "gemini")
    run(app, "install", "gemini")
    undone = run(app, "setup", "--undo", "--yes")
    said = "Leave     gemini: setup did not install it; archivist uninstall gemini --project removes it"
    assert " ".join(said.split()) in " ".join(undone.out.split())
    assert undone.out.splitlines()[-1] == "Undone."
    run(app, "uninstall", "gemini", "--project")
    assert "archivist" not in "".join(path.read_text() for path in app.glob(".gemini/*"))


def test_undo_says_how_a_bank_of_init_is_deleted(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app)
    run(app, "init")
    run(app, "setup", "--yes")
    assert (
        f"it was there before setup; rm -r {app}/.archivist deletes it"
        in run(app, "setup", "--undo", "--yes").out
    )
    assert (app / ".archivist" / "memory.db").is_file()


def _make_program(folder: Path, name: str, said: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho called >> {folder}/called\necho '{said}'\n")
    (folder / name).chmod(0o755)
    return folder


def _run_with(folders: list[Path], home: Path, app: Path, *words: str) -> str:
    """Run the program with folders of clients on the path; return all that it said."""
    path = os.pathsep.join(map(str, [*folders, Path(sys.executable).parent, "/usr/bin", "/bin"]))
    moved = ("ARCHIVIST", "CLAUDE", "CODEX", "GEMINI", "COPILOT", "XDG", "OPENCODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(moved)}
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=app,
        env={**kept, "HOME": str(home), "PATH": path},
        capture_output=True,
        check=False,
        timeout=120,
    )
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize(
    ("client", "program", "old", "new", "told"),
    [
        ("opencode", "opencode", "1.1.10", "1.2.0", "opencode 1.1.10 may not say which session asks"),
        (
            "copilot",
            "copilot",
            "GitHub Copilot CLI 1.0.8.",
            "1.0.102",
            "1.0.8 passes on nothing that hooks say",
        ),
        ("copilot", "copilot", "1.0.59", "2.0.0-beta", "1.0.59 passes nothing on beside prompts"),
    ],
)
def test_an_old_version_of_a_client_is_warned_of(
    client: str, program: str, old: str, new: str, told: str, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    bad, good = (_make_program(tmp_path / name, program, said) for name, said in (("old", old), ("new", new)))
    assert told not in _run_with([good], fresh_home, app, "install", client)
    assert told in _run_with([bad], fresh_home, app, "install", client)
    assert told in " ".join(_run_with([bad], fresh_home, app, "doctor").split())
    assert told not in " ".join(_run_with([good], fresh_home, app, "doctor").split())


def test_no_program_of_the_project_is_asked_for_its_version(fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    inside = _make_program(app / "node_modules" / ".bin", "opencode", "1.1.10")
    folders = [inside, Path("node_modules/.bin")]
    assert "1.1.10" not in _run_with(folders, fresh_home, app, "install", "opencode")
    assert "1.1.10" not in _run_with(folders, fresh_home, app, "doctor")
    assert not (inside / "called").exists()


def test_an_old_claude_code_in_a_linked_worktree_is_warned_of(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    """By the program on the path, else by what the latest log says."""
    app, tree = client_homes.make_repository(tmp_path / "app"), tmp_path / "tree"
    client_homes.git(app, "worktree", "add", "-q", str(tree), "-b", "tree")
    log = client_homes.claude_code(fresh_home, tree)
    log.write_text(log.read_text().replace("2.1.325", "2.1.90"))
    told = "claude-code 2.1.90 reads no hooks of the main worktree in the others: claude update"
    assert told in run(tree, "setup", "--yes").out
    assert told in " ".join(run(tree, "doctor").out.split())
    assert told not in " ".join(run(app, "doctor").out.split())
    newer = _make_program(tmp_path / "bin", "claude", "2.1.300 (Claude Code)")
    assert told not in " ".join(_run_with([newer], fresh_home, tree, "doctor").split())


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "cursor", "vscode", "copilot"])
def test_where_the_program_is_not_on_the_path_the_hooks_name_its_own(
    client: str, fresh_home: Path, tmp_path: Path
) -> None:
    """A client that a desktop started has another path than a terminal."""
    app = client_homes.make_repository(tmp_path / "app")
    bare = {"HOME": str(fresh_home), "PATH": "/usr/bin:/bin"}

    def call(*words: str, stdin: str = "") -> str:
        done = subprocess.run(
            words, cwd=app, env=bare, input=stdin.encode(), capture_output=True, check=False, timeout=120
        )
        return done.stdout.decode() + done.stderr.decode()

    for number in range(3):
        client_homes.codex(fresh_home, app, number)
    call(PROGRAM, "setup", "--yes", "--client", client)
    files = [path for path in app.rglob("*.json") if ".git" not in path.relative_to(app).parts]
    written = "\n".join(path.read_text() for path in files)
    ((command, *_),) = {
        tuple(found) for found in [re.findall(rf'"command": "([^"]+ hook {client} session-start)"', written)]
    }
    assert command == f"{PROGRAM} hook {client} session-start"
    event = json.dumps({"session_id": "s", "cwd": str(app), "source": "startup"})
    assert "PYTHONPATH=src" in call("/bin/sh", "-c", command, stdin=event)
    assert "is installed already" in call(PROGRAM, "setup", "--yes")
    # By its name or by its path it is the same program.
    told = _run_with([], fresh_home, app, "setup", "--yes") + _run_with([], fresh_home, app, "doctor")
    assert f"{client} is installed already" in told
    assert "in part" not in told
    shared = call(PROGRAM, "install", client, "--project")
    assert "archivist is not on PATH, so that no client can call it: add" in shared


def test_opencodes_plugin_names_the_program_where_it_is_not_on_the_path(
    fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.opencode(fresh_home, app)
    bare = {"HOME": str(fresh_home), "PATH": "/usr/bin:/bin"}
    subprocess.run([PROGRAM, "setup", "--yes"], cwd=app, env=bare, capture_output=True, check=True)
    plugin = fresh_home / ".config" / "opencode" / "plugins" / "archivist.js"
    assert f'spawn("{PROGRAM}", ["hook", "opencode", event], {{' in plugin.read_text()
    assert "opencode is installed already" in _run_with([], fresh_home, app, "setup", "--yes")
