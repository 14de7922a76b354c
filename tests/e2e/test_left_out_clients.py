"""A client whose settings here cannot be changed stops no other, and is named with the way that is left."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e import client_homes
from tests.e2e.conftest import Setup
from tests.e2e.test_first_hour import Terminal
from tests.e2e.test_first_hour import on_terminal as on_terminal


def _commit_hooks(app: Path) -> None:
    (app / ".codex").mkdir()
    (app / ".codex" / "hooks.json").write_text("{}\n")
    client_homes.git(app, "add", ".")
    client_homes.git(app, "commit", "-qm", "Hooks")


def test_installing_all_installs_those_that_can_be(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    _commit_hooks(app)
    for name in (".claude", ".codex", ".gemini"):
        (fresh_home / name).mkdir()
    dry = run(app, "install", "all", "--local", "--dry-run")
    left_out = "codex is left out: '.codex/hooks.json' is committed"
    assert (dry.code, left_out in dry.err, "--user installs for you alone" in dry.err) == (7, True, True)
    assert "archivist hook claude-code" in dry.out
    assert "archivist hook gemini" in dry.out
    assert not (app / ".gemini").exists()
    done = run(app, "install", "all", "--local")
    assert (done.code, left_out in done.err) == (7, True)
    assert (app / ".gemini" / "settings.json").is_file()
    assert (app / ".claude" / "settings.local.json").is_file()
    assert (app / ".codex" / "hooks.json").read_text() == "{}\n"
    alone = run(app, "install", "codex", "--local")
    assert (alone.code, "is committed" in alone.err) == (4, True)


def test_the_way_that_is_left_can_be_chosen_when_setup_asks(
    on_terminal: Terminal, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    _commit_hooks(app)
    client_homes.codex(fresh_home, app)
    client_homes.claude_code(fresh_home, app)
    shown = on_terminal(app, "setup", answers=("u",))
    assert "u installs codex for all your projects, in your own settings." in shown
    assert (app / ".claude" / "settings.local.json").is_file()
    assert "archivist hook codex" in (fresh_home / ".codex" / "hooks.json").read_text()
    assert not (fresh_home / ".claude" / "settings.json").exists()
    assert run(app, "setup", "--undo", "--yes").code == 0
    shown = on_terminal(app, "setup", answers=("codex",))
    assert "archivist hook codex" in (fresh_home / ".codex" / "hooks.json").read_text()
    assert not (app / ".claude").exists()


def test_clients_with_sessions_that_are_not_connected_are_named(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(3):
        client_homes.codex(fresh_home, app, number)
    client_homes.gemini(fresh_home, app, 3)
    assert run(app, "setup").code == 0
    # Nothing is connected: that is said once.
    assert "not connected" not in run(app, "doctor").out
    assert run(app, "install", "gemini", "--local").code == 0
    done = run(app, "doctor", "--json")
    (codex,) = [check for check in json.loads(done.out)["checks"] if check["name"] == "codex"]
    assert done.code == 1
    assert codex["text"] == (
        "3 of its sessions known here, and not connected: archivist install codex --local"
    )
    assert run(app, "install", "codex", "--local").code == 0
    assert run(app, "doctor").code == 0


def test_in_main_an_old_version_is_said_not_to_reach_the_worktrees(
    on_terminal: Terminal, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    log = client_homes.claude_code(fresh_home, app)
    log.write_text(log.read_text().replace("2.1.325", "2.1.90"))
    alone = on_terminal(app, "setup", answers=("n",))
    assert "2.1.90" not in alone
    for name in ("side", "app/inner"):
        client_homes.git(app, "worktree", "add", "-q", str(tmp_path / name), "-b", Path(name).name)
    shown = on_terminal(app, "setup", answers=("u",))
    assert "claude-code 2.1.90 reads no hooks of the main worktree in the others" in " ".join(shown.split())
    assert "u installs claude-code for all your projects" in shown
    assert "archivist hook claude-code" in (fresh_home / ".claude" / "settings.json").read_text()
    assert not (app / ".claude" / "settings.local.json").exists()


def test_a_misspelt_hook_is_warned_of_while_a_settings_file_has_it(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app)
    assert run(app, "setup", "--yes").code == 0
    event = json.dumps({"session_id": "s", "cwd": str(app)})
    run(app, "hook", "claude-code", "sesion-start", stdin=event)
    # It was typed by hand: no client calls it.
    assert run(app, "doctor").code == 0
    settings = app / ".claude" / "settings.local.json"
    whole = settings.read_text()
    settings.write_text(whole.replace("hook claude-code session-start", "hook claude-code sesion-start"))
    assert "no event 'sesion-start'" in " ".join(run(app, "doctor").out.split())
    settings.write_text(whole)
    assert run(app, "doctor").code == 0
