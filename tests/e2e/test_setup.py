"""`archivist setup` as a new user runs it: a fresh home, a repository, sessions where clients keep them."""

from __future__ import annotations

import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from archivist.bank import Bank
from archivist.doctor import LOG
from archivist.files import hook_log
from archivist.paths import bank_file, state_folder
from archivist.records import Actor, ActorKind, Episode
from tests.e2e import client_homes
from tests.e2e.conftest import Setup

_REMEDY = "PYTHONPATH=src"
_MOVED = "archivist setup --moved-from"


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"/" for path in sorted(folder.rglob("*"))}


@pytest.mark.req("F12")
def test_one_command_leads_from_twenty_sessions_to_a_brief(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "work" / "my.app_x")
    for number in range(20):
        client_homes.claude_code(fresh_home, app, number)
    client_homes.claude_code(fresh_home, client_homes.make_repository(tmp_path / "work" / "my-app-x"), 99)
    status = client_homes.git(app, "status", "--porcelain")
    began = time.monotonic()
    done = run(app, "setup", "--yes")
    assert (done.code, time.monotonic() - began < 60) == (0, True), done.err
    assert "20 found: 20 of claude-code" in done.out
    assert _REMEDY in done.out.partition("The next session here is told:")[2]
    assert "archivist setup --undo" in done.out
    assert len(done.out.splitlines()) <= 30
    assert client_homes.git(app, "status", "--porcelain") == status
    event = json.dumps({"session_id": "s", "cwd": str(app), "source": "startup"})
    assert _REMEDY in run(app, "hook", "claude-code", "session-start", stdin=event).out
    hooks = json.loads((app / ".claude" / "settings.local.json").read_text())["hooks"]
    command = hooks["SessionStart"][0]["hooks"][0]["command"]
    assert (command, run(app, "doctor").code) == ("archivist hook claude-code session-start", 0)


def test_a_second_call_brings_in_what_is_new(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app-one")
    client_homes.claude_code(fresh_home, app, 0)
    assert "Captured  1 new; filed under project app-one\n" in run(app, "setup", "--yes").out
    client_homes.claude_code(fresh_home, app, 1)
    again = run(app, "setup", "--yes")
    assert "2 found" in again.out
    assert "Captured  1 new, 1 known already; filed under project app-one\n" in again.out
    assert "claude-code is installed already (local)" in again.out
    assert run(app, "setup", "--yes", "--json").out.count('"runs": []') == 1


@pytest.mark.parametrize(
    "client", ["codex", "gemini", "copilot", "opencode", "vscode", "cursor", "cursor_terminal"]
)
def test_the_logs_of_every_client_are_found_in_its_own_place(
    client: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app, other = (client_homes.make_repository(tmp_path / name) for name in ("kiln-app", "other"))
    write = getattr(client_homes, client)
    for number in range(3):
        write(fresh_home, app, number)
    write(fresh_home, other, 7)
    view = json.loads(run(app, "setup", "--json").out)
    assert (list(view["sessions"].values()), view["project"], len(view["runs"])) == ([3], "kiln-app", 3)
    assert _REMEDY in view["brief"]
    again = json.loads(run(app, "setup", "--json").out)
    assert (again["runs"], again["problems"]) == ([], [])


def test_the_third_worktree_is_told_what_the_first_learnt(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app", "https://example.org/acme/kiln.git")
    trees = [tmp_path / f"tree-{number}" for number in range(3)]
    for number, tree in enumerate(trees):
        client_homes.git(app, "worktree", "add", "-q", str(tree), "-b", f"branch-{number}")
    for number in range(3):
        client_homes.claude_code(fresh_home, trees[0], number)
    client_homes.codex(fresh_home, Path("/gone/clone"), 9, "git@example.org:acme/kiln.git")
    first = json.loads(run(trees[0], "setup", "--yes", "--json").out)
    assert first["sessions"] == {"claude-code": 3, "codex": 1}
    third = run(trees[2], "setup", "--yes")
    assert _REMEDY in third.out
    assert not (trees[2] / ".archivist").exists()
    event = json.dumps({"session_id": "s3", "cwd": str(trees[2]), "source": "startup"})
    assert _REMEDY in run(trees[2], "hook", "claude-code", "session-start", stdin=event).out


def test_sessions_without_a_failure_are_said_to_teach_nothing_yet(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app, calls=[("ls", "src", 0)])
    done = run(app, "setup")
    assert (done.code, "Learnt    no lesson yet: no failure recurred\n" in done.out) == (0, True)


@pytest.mark.parametrize("client", ["claude_code", "codex"])
def test_setup_in_a_linked_worktree_installs_where_its_client_looks(
    client: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    """Codex takes the hooks of the main worktree only, Claude Code its local settings for all worktrees."""
    app, tree = client_homes.make_repository(tmp_path / "app"), tmp_path / "tree"
    for name in (tree, tmp_path / "other"):
        client_homes.git(app, "worktree", "add", "-q", str(name), "-b", name.name)
    getattr(client_homes, client)(fresh_home, tree)
    before = _files(app / ".git" / "info") | _files(tree)
    done = run(tree, "setup", "--yes")
    file = ".claude/settings.local.json" if client == "claude_code" else ".codex/hooks.json"
    assert ((app / file).is_file(), (tree / file).exists()) == (True, False), done.out
    assert client_homes.git(app, "status", "--porcelain") == ""
    for folder in (tmp_path / "other", tree, app):
        assert f"{client.replace('_', '-')} is installed already" in run(folder, "setup").out
        doctor = run(folder, "doctor")
        assert (doctor.code, "told at session start" in doctor.out) == (0, True), doctor.out
    undone = run(tmp_path / "other", "setup", "--undo", "--yes")
    assert f"Uninstall {client.replace('_', '-')} in {app}" in undone.out
    assert not (app / file).exists()
    assert _files(app / ".git" / "info") | _files(tree) == before


def test_a_client_that_reads_one_worktree_alone_says_how_the_others_are_reached(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app, tree = client_homes.make_repository(tmp_path / "app"), tmp_path / "tree"
    client_homes.gemini(fresh_home, app)
    alone = run(app, "setup", "--yes")
    assert "each worktree" not in alone.out
    client_homes.git(app, "worktree", "add", "-q", str(tree), "-b", "tree")
    linked = run(tree, "setup", "--yes")
    assert (tree / ".gemini" / "settings.json").is_file()
    assert "in each worktree archivist setup, or once archivist setup --user" in linked.out
    told = run(tree, "setup", "--yes", "--user").out
    assert "for all projects first: archivist uninstall gemini --local" in told
    assert run(tree, "uninstall", "gemini", "--local").code == 0
    assert run(app, "uninstall", "gemini", "--local").code == 0
    assert run(tree, "setup", "--yes", "--user").code == 0
    assert (fresh_home / ".gemini" / "settings.json").is_file()
    assert "for all your projects" in run(tree, "setup", "--undo", "--yes").out
    assert not (fresh_home / ".gemini" / "settings.json").exists()


@pytest.mark.parametrize(
    "remote",
    [
        "https://dev.azure.com/acme/My%20Kiln/_git/kiln",
        "git@ssh.dev.azure.com:v3/acme/My%20Kiln/kiln",
        "https://example.org/A Potter/kiln.git",
    ],
)
def test_a_remote_of_an_odd_form_still_names_one_project(
    remote: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "kiln", remote)
    for number in range(2):
        client_homes.codex(fresh_home, Path(f"/gone/worktrees/{number}/kiln"), number, remote)
    done = json.loads(run(app, "setup", "--yes", "--json").out)
    assert (done["sessions"], done["project"]) == ({"codex": 2}, "kiln")
    assert _REMEDY in done["brief"]
    again = json.loads(run(app, "setup", "--json").out)
    assert (again["project"], again["brief"]) == ("kiln", done["brief"])


def test_without_sessions_it_says_what_will_happen(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    (fresh_home / ".claude").mkdir()
    done = run(app, "setup")
    assert done.code == 0
    assert "none of this repository found" in done.out
    assert "After the first session" in done.out
    assert "Nothing was installed: archivist setup --yes installs into claude-code." in done.out


def test_a_dry_run_changes_nothing_and_undo_leaves_no_trace(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    client_homes.codex(fresh_home, app, 3)
    (app / ".claude").mkdir()
    (app / ".claude" / "settings.local.json").write_text('{"model": "opus"}')
    (app / ".codex").mkdir()
    (app / ".git" / "info" / "exclude").write_text("no last newline")
    before = _files(app), _files(fresh_home)
    dry = run(app, "setup", "--dry-run")
    assert '+    "SessionStart": [' in dry.out
    assert (_files(app), _files(fresh_home)) == before
    assert run(app, "setup", "--yes").code == 0
    assert (_files(app), _files(fresh_home)) != before
    asked = run(app, "setup", "--undo")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    undone = run(app, "setup", "--undo", "--yes")
    assert (undone.code, undone.out.splitlines()[-1]) == (0, "Undone.")
    after = _files(app), _files(fresh_home)
    assert after[0] == before[0]
    assert after[1] == before[1]


def test_undo_leaves_what_another_project_uses_to_its_undo(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    apps = [client_homes.make_repository(tmp_path / name) for name in ("one", "two")]
    for number, app in enumerate(apps):
        client_homes.opencode(fresh_home, app, number)
    before = _files(fresh_home)
    for app in apps:
        assert run(app, "setup", "--yes").code == 0
    plugin = fresh_home / ".config" / "opencode" / "plugins" / "archivist.js"
    undone = run(apps[0], "setup", "--undo", "--yes")
    assert "Leave     opencode: it is for all your projects, and another was set up" in undone.out
    assert plugin.is_file()
    assert run(apps[1], "setup", "--undo", "--yes").code == 0
    assert not plugin.exists()
    # Reading a database touches what SQLite keeps beside it.
    assert _files(fresh_home).keys() == before.keys()


def test_undo_keeps_a_bank_that_was_there(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app, 0)
    run(app, "init")
    assert run(app, "setup", "--yes").code == 0
    assert run(app, "setup", "--undo", "--yes").code == 0
    assert (app / ".archivist" / "memory.db").is_file()
    assert not (app / ".claude").exists()
    nothing = run(app, "setup", "--undo", "--yes")
    assert (nothing.code, "setup was not run" in nothing.err) == (4, True)


@pytest.mark.parametrize("damage", ["pages", "no file", "no folder", "replaced", "settings"])
def test_undo_takes_the_settings_back_whatever_has_happened_to_the_bank(
    damage: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app, 0)
    before = _files(app)
    assert run(app, "setup", "--yes").code == 0
    bank = app / ".archivist" / "memory.db"
    match damage:
        case "pages":
            data = bank.read_bytes()
            bank.write_bytes(data[:4096] + b"X" * 16_384 + data[20_480:])
        case "no file":
            bank.unlink()
        case "no folder":
            shutil.rmtree(bank.parent)
        case "replaced":
            other = client_homes.make_repository(tmp_path / "other")
            assert run(other, "init").code == 0
            bank.write_bytes((other / ".archivist" / "memory.db").read_bytes())
        case _:
            (bank.parent / "config.toml").write_text("[brief")
    undone = run(app, "setup", "--undo", "--yes")
    assert (undone.code, undone.out.splitlines()[-1]) == (0, "Undone."), undone.err
    assert not (app / ".claude").exists()
    if damage == "replaced":
        assert f"Leave     {bank}: it is not the bank that setup made" in undone.out
        assert bank.is_file()
    elif damage != "settings":
        assert _files(app) == before


def test_the_doctor_names_what_is_damaged_in_a_bank_that_does_not_open(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app, 0)
    run(app, "setup", "--yes")
    bank = app / ".archivist" / "memory.db"
    data = bank.read_bytes()
    bank.write_bytes(data[:4096] + b"X" * 16_384 + data[20_480:])
    done = run(app, "doctor")
    assert done.code == 5
    assert "table lessons: " in done.out
    assert "archivist salvage" in done.out
    assert "doctor names all damage" not in done.out + done.err


def test_uninstalling_finds_what_setup_wrote_and_names_what_is_elsewhere(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app, 0)
    before = _files(app)
    run(app, "setup", "--yes")
    run(app, "install", "claude-code", "--user")
    done = run(app, "uninstall", "claude-code")
    assert (done.code, "settings.local.json" in done.out) == (0, True)
    assert "claude-code is also installed elsewhere: archivist uninstall claude-code --user" in done.err
    assert {name for name in _files(app) if ".archivist" not in name} == set(before)
    assert run(app, "uninstall", "claude-code", "--user").code == 0
    assert "claude-code is not installed here" in run(app, "uninstall", "claude-code").err


def test_committed_settings_stay_as_they_are(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    (app / ".mcp.json").write_text("{}\n")
    (app / ".codex").mkdir()
    (app / ".codex" / "hooks.json").write_text("{}\n")
    client_homes.git(app, "add", ".")
    client_homes.git(app, "commit", "-qm", "Settings")
    for folder in (".claude", ".codex"):
        (fresh_home / folder).mkdir()
    done = run(app, "setup", "--yes")
    assert "codex is left out: '.codex/hooks.json' is committed" in done.out
    assert ".mcp.json is committed and stays as it is" in done.out
    assert client_homes.git(app, "status", "--porcelain") == ""


def test_a_bank_that_came_with_the_repository_is_not_set_up(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    theirs = client_homes.make_repository(tmp_path / "theirs")
    client_homes.claude_code(fresh_home, theirs, 0)
    assert run(theirs, "setup").code == 0
    theirs.rename(tmp_path / "ours")
    refused = run(tmp_path / "ours", "setup", "--yes")
    assert (refused.code, "archivist trust" in refused.err) == (5, True)
    assert not (tmp_path / "ours" / ".claude").exists()


def test_what_hooks_told_of_a_session_its_log_does_not_tell_again(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    session = client_homes.vscode(fresh_home, app).stem
    assert run(app, "init").code == 0
    events: list[dict[str, object]] = [
        {"hook_event_name": "UserPromptSubmit", "prompt": "Test the kiln"},
        {"hook_event_name": "PostToolUse", "tool_name": "run_in_terminal", "tool_input": {"command": "make"}},
        {"hook_event_name": "Stop"},
    ]
    for event in events:
        said = json.dumps({"sessionId": session, "cwd": str(app), **event})
        assert run(app, "hook", "vscode", str(event["hook_event_name"]), stdin=said).code == 0
    deadline = time.monotonic() + 60
    while session not in run(app, "episodes", "list", "--json").out and time.monotonic() < deadline:
        time.sleep(0.1)
    assert json.loads(run(app, "setup", "--json").out)["runs"] == []


def test_setup_waits_for_a_hook_that_still_imports_the_session(
    run: Setup, fresh_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    session = client_homes.vscode(fresh_home, app).stem
    assert run(app, "init").code == 0
    monkeypatch.setenv("ARCHIVIST_HOME", str(fresh_home / ".archivist"))
    state = state_folder(bank_file(app))
    # The lock is given back before the pool waits for what runs in it.
    with ThreadPoolExecutor(1) as pool, hook_log.lock_sessions(state, 0.0) as is_locked:
        assert is_locked
        setup = pool.submit(run, app, "setup", "--json")
        with Bank.open(app, actor=Actor(ActorKind.ORCHESTRATOR, "vscode")) as bank:
            bank.capture(Episode(id=session, project="app"), ())
            time.sleep(2)
            assert not setup.done()
            bank.runs.note_on_run(session, LOG, {"client": "vscode", "missing": ""})
    assert json.loads(setup.result().out)["runs"] == []


@pytest.mark.parametrize("bare", ["mill/bare", "srv/mill.git", "mill/.bare"])
def test_worktrees_of_a_bare_clone_share_one_bank(
    bare: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    origin = client_homes.make_repository(tmp_path / "origin")
    place = tmp_path / bare
    client_homes.git(tmp_path, "clone", "-q", "--bare", str(origin), str(place))
    client_homes.git(place, "remote", "remove", "origin")
    trees = [tmp_path / "mill" / name for name in ("main-1", "feature", "fix")]
    for tree in trees:
        client_homes.git(place, "worktree", "add", "-q", str(tree), "-b", tree.name)
    for number in range(3):
        client_homes.claude_code(fresh_home, trees[0], number)
    assert "no git repository" not in run(trees[0], "setup", "--dry-run").out
    first = json.loads(run(trees[0], "setup", "--yes", "--json").out)
    assert (first["project"], first["sessions"]) == ("mill", {"claude-code": 3})
    assert run(trees[2], "capture", str(client_homes.claude_code(fresh_home, trees[2], 9))).code == 0
    client_homes.claude_code(fresh_home, trees[1], 7)
    for tree in trees[1:]:
        done = json.loads(run(tree, "setup", "--yes", "--json").out)
        assert (done["bank"], done["project"]) == (first["bank"], "mill")
        assert _REMEDY in done["brief"]
        event = json.dumps({"session_id": f"s-{tree.name}", "cwd": str(tree), "source": "startup"})
        assert _REMEDY in run(tree, "hook", "claude-code", "session-start", stdin=event).out
    assert json.loads(run(trees[2], "status", "--json").out)["runs"] >= 5
    runs = json.loads(run(trees[2], "episodes", "list", "--json").out)["episodes"]
    assert {each["project"] for each in runs} == {"mill"}
    assert [client_homes.git(tree, "status", "--porcelain") for tree in trees] == ["", "", ""]
    assert run(trees[2], "doctor").code == 0
    assert run(trees[0], "setup", "--undo", "--yes").code == 0
    assert not Path(first["bank"]).exists()


def test_sessions_of_a_folder_that_is_gone_are_named_and_taken_when_asked_for(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    former = tmp_path / "old" / "mill"
    former.mkdir(parents=True)
    for number in range(2):
        client_homes.claude_code(fresh_home, former, number)
        client_homes.codex(fresh_home, former, number)
    former.rmdir()
    app = client_homes.make_repository(tmp_path / "new" / "mill")
    done = run(app, "setup", "--dry-run").out
    assert "none of this repository found" in done
    told = "4 more began in a folder called mill that is gone; to take them: archivist setup --moved-from"
    assert f"{told} {former}" in done
    taken = json.loads(run(app, "setup", "--moved-from", str(former), "--json").out)
    assert (taken["sessions"], taken["project"], taken["gone"]) == (
        {"claude-code": 2, "codex": 2}, "mill", {},
    )  # fmt: skip
    assert _REMEDY in taken["brief"]


def test_sessions_of_many_folders_that_are_gone_are_taken_by_one_command(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    """Codex makes a worktree for each session, and the clone may have another remote by now."""
    trees = tmp_path / "codex" / "worktrees"
    for number in range(3):
        client_homes.codex(
            fresh_home, trees / f"a{number}" / "mill", number, "https://example.org/old/mill.git"
        )
    client_homes.codex(fresh_home, trees / "a3" / "other", 7, "https://example.org/old/other.git")
    client_homes.codex(fresh_home, tmp_path / "else" / "mill", 8, "https://example.org/old/mill.git")
    app = client_homes.make_repository(tmp_path / "mill", "https://example.org/new/mill.git")
    named = run(app, "setup", "--dry-run").out
    assert (
        f"4 more began in 4 folders called mill that are gone; to take all of these: {_MOVED} {tmp_path}\n"
        in named
    )
    one = run(app, "setup", "--moved-from", str(trees)).out
    assert "Sessions  3 found: 3 of codex\n          1 more began in a folder called mill" in one
    assert _REMEDY in one.partition("told:")[2]
    rest = json.loads(run(app, "setup", "--moved-from", str(tmp_path), "--json").out)
    assert (rest["sessions"], len(rest["runs"]), rest["gone"]) == ({"codex": 4}, 1, {})


def test_a_former_folder_without_sessions_is_named(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "mill")
    client_homes.claude_code(fresh_home, app)
    done = run(app, "setup", "--moved-from", str(tmp_path / "nowhere"))
    assert (done.code, f"no session began in {tmp_path / 'nowhere'}" in done.err) == (0, True)


@pytest.mark.parametrize("client", ["opencode", "copilot"])
def test_clients_that_were_told_on_request_only_are_connected_too(
    client: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    getattr(client_homes, client)(fresh_home, app)
    before = sorted(_files(fresh_home))
    done = run(app, "setup", "--yes").out
    assert f"Client    {client}: create " in done
    assert f"{client} " in run(app, "doctor").out
    assert client_homes.git(app, "status", "--porcelain") == ""
    assert run(app, "setup", "--undo", "--yes").code == 0
    assert sorted(_files(fresh_home)) == before
    assert "docs/guides/mcp.md" in run(app, "install", "emacs").err


def test_the_server_alone_is_added_for_the_user_without_a_second_hook(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    (fresh_home / ".codex").mkdir()
    done = run(app, "setup", "--yes")
    command = next(line for line in done.out.splitlines() if "add the MCP server for yourself" in line)
    assert command.endswith("archivist install codex --user --server")
    added = run(app, "install", "codex", "--user", "--server")
    assert (added.code, added.err) == (0, "")
    assert not (fresh_home / ".codex" / "hooks.json").exists()
    doctor = run(app, "doctor")
    assert (doctor.code, "codex (user, MCP server)" in doctor.out) == (0, True), doctor.out
    assert "add the MCP server for yourself" not in run(app, "setup", "--dry-run").out
    assert run(app, "uninstall", "codex", "--user").code == 0
    assert not (fresh_home / ".codex" / "config.toml").exists()


def test_what_is_not_installed_is_not_said_to_be_told(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    assert "Nothing is installed, so no session is told this yet. It would be told:" in run(app, "setup").out
    assert "The next session here is told:" in run(app, "setup", "--yes").out
    assert "The next session here is told:" in run(app, "setup").out


def test_the_home_is_refused_in_a_dry_run_too(run: Setup, fresh_home: Path) -> None:
    for words in (("setup",), ("setup", "--dry-run")):
        done = run(fresh_home, *words)
        assert (done.code, "would be the global one" in done.err) == (4, True)
    assert not (fresh_home / ".archivist").exists()


def test_a_folder_without_git_is_not_called_a_repository(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    (fresh_home / ".claude").mkdir()
    plain = tmp_path / "plain"
    plain.mkdir()
    for words in (("setup",), ("setup", "--dry-run"), ("setup", "--yes")):
        refused = run(plain, *words)
        assert (refused.code, "is in no git repository" in refused.err) == (4, True)
        assert "archivist setup --any-folder" in refused.err
    assert _files(plain) == {}
    done = run(plain, "setup", "--any-folder").out
    assert "none of this folder found" in done
    assert "git does not see it" not in done
    assert run(plain, "setup").code == 0


def test_a_moved_bank_says_how_to_go_on_with_it(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app, moved = client_homes.make_repository(tmp_path / "app"), tmp_path / "app-renamed"
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    run(app, "setup", "--yes")
    app.rename(moved)
    how = f"archivist trust, then archivist setup --moved-from {app}"
    dry = run(moved, "setup", "--dry-run")
    assert ("not trusted" in dry.out, how in dry.out) == (True, True)
    refused = run(moved, "setup", "--yes")
    assert (refused.code, how in refused.err) == (5, True)
    assert run(moved, "trust", "--yes").code == 0
    done = run(moved, "setup", "--yes", "--moved-from", str(app))
    assert (done.code, "2 found" in done.out, _REMEDY in done.out) == (0, True, True)


def test_a_log_that_cannot_be_read_is_the_reason_and_the_exit_code(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    log = client_homes.claude_code(fresh_home, app, 0)
    log.write_text(json.dumps({"cwd": str(app)}) + "\nno line of a log\n")
    done = run(app, "setup", "--yes")
    assert done.code == 7, done.out + done.err
    assert "1 log could not be read, see below" in done.out
    assert "no lesson yet: no log could be read" in done.out


def test_a_former_folder_without_sessions_is_named_in_a_dry_run(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app, 0)
    assert "no session began in /nope" in run(app, "setup", "--dry-run", "--moved-from", "/nope").out


@pytest.mark.parametrize("client", ["codex", "cursor", "vscode", "gemini"])
def test_a_client_that_setup_connected_is_installed_whole(
    client: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    (fresh_home / {"vscode": ".config/Code/User"}.get(client, f".{client}")).mkdir(parents=True)
    assert json.loads(run(app, "setup", "--yes", "--json").out)["installed"] == [client]
    done = run(app, "doctor")
    assert (done.code, "only in part" in done.out) == (0, False), done.out
    assert f"{client} is installed already (" in run(app, "setup", "--yes").out
    assert client_homes.git(app, "status", "--porcelain") == ""
    assert run(app, "setup", "--undo", "--yes").code == 0


@pytest.mark.req("N9")
def test_sessions_that_name_another_remote_are_counted_and_taken_by_one_command(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    own, parent, old = (f"https://example.com/{owner}/kiln.git" for owner in ("me", "acme", "former"))
    app = client_homes.make_repository(tmp_path / "app", own)
    client_homes.git(app, "remote", "add", "upstream", parent)
    trees = [app, tmp_path / "fix-1", tmp_path / "fix-2"]
    for tree in trees[1:]:
        client_homes.git(app, "worktree", "add", "-q", str(tree))
    numbers = iter(range(100))
    for tree, count in zip(trees, (4, 6, 4), strict=True):
        for _ in range(count):
            client_homes.codex(fresh_home, tree, next(numbers), old)
    for tree in trees:
        client_homes.codex(fresh_home, tree, next(numbers), parent)
    done = run(app, "setup", "--yes")
    assert (done.code, "Sessions  3 found: 3 of codex\n          14 left out" in done.out) == (0, True), (
        done.out
    )
    (command,) = re.findall(r"archivist (setup --moved-from \S+)", done.out + done.err)
    taken = run(trees[2], *command.split(), "--json")
    assert (json.loads(taken.out)["sessions"], json.loads(taken.out)["replaced"]) == ({"codex": 17}, {})
