"""The first hour of a new user: damaged logs, a second clone, a narrow terminal, odd folders."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import PROGRAM
from tests.e2e import client_homes
from tests.e2e.conftest import Setup

Terminal = Callable[..., str]
_REMEDY = "PYTHONPATH=src"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.fixture
def on_terminal(fresh_home: Path) -> Terminal:
    """Run the program on a terminal of 80 columns, and type an answer to each of its questions."""

    def call(folder: Path, *words: str, answers: tuple[str, ...] = (), **more: str) -> str:
        main, inner = pty.openpty()
        program = Path(PROGRAM).parent
        environment = {
            "HOME": str(fresh_home), "PATH": f"{program}:/usr/bin:/bin", "COLUMNS": "80", "LINES": "24",
            "TERM": "dumb", **more,
        }  # fmt: skip
        process = subprocess.Popen(
            [PROGRAM, *words], cwd=folder, env=environment, stdin=inner, stdout=inner, stderr=inner
        )
        os.close(inner)
        shown, waiting, until = b"", list(answers), time.monotonic() + 60
        while time.monotonic() < until:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    shown += os.read(main, 65_536)
                except OSError:
                    break
            elif process.poll() is not None:
                break
            if waiting and shown.rstrip(b" ").endswith(b"]:"):
                os.write(main, waiting.pop(0).encode() + b"\n")
                shown += b"\n"
        process.wait(10)
        os.close(main)
        return shown.decode().replace("\r", "")

    return call


@pytest.mark.req("F12", "N9")
def test_a_cut_log_is_told_the_same_way_by_every_command(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    logs = [client_homes.claude_code(fresh_home, app, number) for number in range(3)]
    logs[2].write_bytes(logs[2].read_bytes()[:-40])
    done = run(app, "setup", "--yes")
    assert (done.code, "Captured  3 new; filed under project app" in done.out) == (7, True), done.out
    assert "1 log could be read in part only, see below" in done.out
    reason = re.search(
        rf"{re.escape(str(logs[2]))}: its \d events were read; left out: line \d: cut short", done.err
    )
    assert reason, done.err
    other = client_homes.make_repository(tmp_path / "other")
    run(other, "init")
    captured = run(other, "capture", str(logs[2]))
    assert (captured.code, reason[0] in captured.err) == (7, True), captured.err
    doctor = run(app, "doctor")
    assert (doctor.code, "the logs of 1 run were read in part" in doctor.out) == (0, True), doctor.out
    shown = json.loads(run(app, "episodes", "list", "--json").out)["episodes"]
    assert sorted(each["status"] for each in shown) == ["partial", "success", "success"]
    assert not any("no final report" in json.dumps(each) for each in shown)
    again = run(app, "setup", "--yes")
    assert (again.code, "Captured  3 known already;" in again.out) == (0, True)


@pytest.mark.req("F12", "N9")
def test_a_cut_copy_beside_a_good_chat_takes_nothing_from_it(
    run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    log = client_homes.gemini(fresh_home, app)
    good = json.loads(run(app, "setup", "--json").out)
    before = run(app, "episodes", "show", good["runs"][0], "--json").out
    first, *messages = map(json.loads, log.read_text().splitlines())
    document = json.dumps({**first, "messages": messages})
    log.with_name(f"{log.stem}-z.json").write_text(document[:-200])
    done = run(app, "setup", "--yes")
    assert done.code == 0
    assert "Captured  1 known already, 1 with less than is known of the run;" in done.out
    assert run(app, "episodes", "show", good["runs"][0], "--json").out == before
    taken = run(app, "capture", str(log.with_name(f"{log.stem}-z.json")))
    assert (taken.code, run(app, "episodes", "show", good["runs"][0], "--json").out) == (0, before)


@pytest.mark.parametrize("words", [("setup", "--dry-run"), ("setup", "--yes")])
@pytest.mark.parametrize("client", ["opencode", "cursor", "cursor_terminal"])
def test_a_clients_database_is_read_without_leaving_files(
    client: str, words: tuple[str, ...], run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    folder = getattr(client_homes, client)(fresh_home, app).parent
    before = _names(folder)
    assert "1 found" in run(app, *words).out
    assert _names(folder) == before


@pytest.mark.req("F12")
@pytest.mark.parametrize("is_local", [True, False])
def test_a_second_clone_learns_from_the_sessions_of_the_first(
    run: Setup, fresh_home: Path, tmp_path: Path, *, is_local: bool
) -> None:
    app = client_homes.make_repository(tmp_path / "mill", "https://example.org/acme/mill.git")
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    client_homes.gemini(fresh_home, app, 3)
    run(app, "setup", "--yes")
    clone = tmp_path / "clone2"
    client_homes.git(tmp_path, "clone", "-q", str(app), str(clone))
    if not is_local:
        client_homes.git(clone, "remote", "set-url", "origin", "git@example.org:acme/mill.git")
    hint = run(clone, "brief").err
    assert "there is no bank here: archivist setup makes one" in hint
    dry = run(clone, "setup", "--dry-run").out
    assert "3 found: 2 of claude-code, 1 of gemini-cli" in dry
    assert f"those of other clones count too: {app}" in dry
    assert "what you added, approved or forgot there is not known here: archivist share FOLDER" in dry
    done = json.loads(run(clone, "setup", "--yes", "--json").out)
    assert (done["project"], len(done["runs"]), _REMEDY in done["brief"]) == ("mill", 3, True)
    assert _REMEDY in run(clone, "brief").out


def test_a_clone_of_another_user_or_remote_is_no_source(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    """Only banks that this user made on this machine name clones, and each log is still judged by itself."""
    app = client_homes.make_repository(tmp_path / "mill", "https://example.org/acme/mill.git")
    client_homes.claude_code(fresh_home, app)
    other = client_homes.make_repository(tmp_path / "clone2", "https://example.org/acme/mill.git")
    assert "none of this repository found" in run(other, "setup", "--dry-run").out
    run(app, "setup", "--yes")
    stranger = client_homes.make_repository(tmp_path / "clone3", "https://example.org/evil/mill.git")
    assert "none of this repository found" in run(stranger, "setup", "--dry-run").out


@pytest.mark.req("F12")
def test_the_question_comes_on_the_same_screen_as_what_was_learnt(
    on_terminal: Terminal, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    client_homes.codex(fresh_home, app, 3)
    client_homes.opencode(fresh_home, app, 4)
    shown = on_terminal(app, "setup", answers=("what?", "d", "n"))
    before, _, after = shown.partition(
        "Install into claude-code, codex, opencode? [Y/n/d or names, d shows every line]"
    )
    assert len(before.splitlines()) <= 22, before
    assert [word in before for word in ("Memory", "Captured", "Learnt")] == [True, True, True]
    assert re.search(r"Client    claude-code: create \.claude/settings\.local\.json \(\+\d+ lines\)", before)
    lines = [line for line in before.splitlines() if "\x1b" not in line and str(app) not in line]
    assert max(map(len, lines)) <= 80
    assert "please answer y or n or d, or claude-code codex opencode" in after
    assert '+    "SessionStart": [' in after
    assert "Nothing was installed" in after
    assert not (app / ".claude").exists()
    assert '+    "SessionStart"' not in on_terminal(app, "setup", answers=("Codex",))
    assert (app / ".codex" / "hooks.json").is_file()
    assert not (app / ".claude").exists()
    on_terminal(app, "setup", answers=("y",))
    assert (app / ".claude" / "settings.local.json").is_file()


def test_a_brief_fits_the_terminal_and_is_whole_in_a_pipe(
    run: Setup, on_terminal: Terminal, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(3):
        client_homes.claude_code(fresh_home, app, number)
    run(app, "setup", "--yes")
    whole = run(app, "brief", "--no-fence").out
    shown = on_terminal(app, "brief", "--no-fence")
    assert max(map(len, whole.splitlines())) > 80
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.split() == whole.split()


@pytest.mark.req("F12")
def test_setup_says_how_many_lessons_are_told_and_when(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for number in range(2):
        client_homes.claude_code(fresh_home, app, number)
    done = run(app, "setup", "--yes")
    held = json.loads(run(app, "lessons", "list", "--json").out)["lessons"]
    told = json.loads(run(app, "brief", "--json").out)["lessons"]
    counts = f"{len(told)} told at session start, {len(held) - len(told)} when their failure recurs"
    assert f"Learnt    {len(held)} lessons held now: {counts}; archivist lessons list" in done.out
    explained = run(app, "brief", "--explain").err
    command = (
        "Commands here, `PYTHONPATH=src pytest <file>`: could run, and passed once at least, in 2 of the 2"
    )
    assert f"{command} runs that tried it, among the latest 20; found failures in 0; passed" in explained


def test_a_wish_is_not_told_when_a_failure_recurs(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.cursor(fresh_home, app)
    (fresh_home / ".cursor").mkdir(exist_ok=True)
    run(app, "setup", "--yes")
    for words in ("Use tabs in makefiles", "Answer in plain English"):
        run(app, "lessons", "add", words, "--domain", "shop")
    learnt = next(line for line in run(app, "setup", "--yes").out.splitlines() if "Learnt" in line)
    # Cursor passes nothing on beside a failure or a prompt.
    assert "when their failure recurs" not in learnt
    assert "when a prompt" not in learnt


def test_undo_says_what_it_does_not_do(
    run: Setup, on_terminal: Terminal, fresh_home: Path, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    client_homes.claude_code(fresh_home, app)
    run(app, "setup", "--yes")
    refused = run(app, "setup", "--undo", "--user")
    assert (refused.code, "leave --user and --moved-from out" in refused.err) == (2, True)
    assert "Nothing was changed." in on_terminal(app, "setup", "--undo", answers=("n",))
    assert (app / ".archivist" / "memory.db").is_file()
    assert run(app, "setup", "--undo", "--yes").code == 0
    again = run(app, "setup", "--undo", "--yes")
    assert (again.code, "nothing to undo" in again.err) == (4, True)


@pytest.mark.req("N9")
def test_a_long_lesson_is_shown_in_the_pager_on_a_terminal_alone(
    run: Setup, on_terminal: Terminal, tmp_path: Path
) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    run(app, "init")
    run(app, "lessons", "add", "Prefer small commits")
    run(app, "lessons", "add", "Prefer tabs", "--detail", "Since they are wide. " * 120)
    pager = {"PAGER": "sed s/^/paged:/"}
    for command in ("show", "open"):
        assert "paged:" not in on_terminal(app, "lessons", command, "m-001", **pager)
        assert "paged:m-002  Prefer tabs" in on_terminal(app, "lessons", command, "m-002", **pager)
        assert "paged:" not in run(app, "lessons", command, "m-002").out
    planted = app / "pager"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    assert "planted" not in on_terminal(app, "lessons", "show", "m-002", PAGER=str(planted))


@pytest.mark.req("N9")
def test_what_holds_for_several_clients_is_said_once(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    for folder in (".claude", ".codex"):
        (fresh_home / folder).mkdir(exist_ok=True)
    client_homes.claude_code(fresh_home, app, 0)
    client_homes.codex(fresh_home, app, 1)
    client_homes.cursor(fresh_home, app, 2)
    said = run(app, "setup", "--yes", "--client", "vscode")
    assert said.out.count("add the MCP server for yourself") == 1
    assert "archivist install codex --user --server" in said.out
    assert "VS Code asks once" not in said.out
    assert "not found on this machine: cursor; to connect: archivist setup --client cursor" in said.out


@pytest.mark.req("N9")
def test_history_is_the_ledger(run: Setup, tmp_path: Path) -> None:
    app = client_homes.make_repository(tmp_path / "app")
    assert "did you mean 'ledger'?" in run(app, "history").err
