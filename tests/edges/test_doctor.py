"""The doctor where it is needed most: no bank, a broken or a closed one, hooks that cannot run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import gettempdir

import pytest
from click.testing import CliRunner

from archivist import Bank
from archivist import doctor as health
from archivist.edges.cli.banks import doctor
from archivist.edges.cli.session import Session
from archivist.edges.hooks import follow_up
from archivist.files import hook_log
from archivist.paths import bank_file, state_folder, unreadable_above
from archivist.records import Episode
from archivist.trust import find_bank_folder
from archivist.workspace import links_service
from tests.banks import lay_bank
from tests.commands import PROGRAM
from tests.conftest import Command, TickingClock
from tests.samples import MISSING_MODULE, agent_log
from tests.workspace.trees import make

CHAIN = ("failures", "clients", "command", "firing", "server")


def _lines(out: str) -> dict[str, str]:
    return {line[6:].split(maxsplit=1)[0]: line for line in out.splitlines()}


@pytest.mark.parametrize(
    ("left", "is_well", "told"),
    [(0, False, "0.0 MB left"), (63 << 20, False, "63.0 MB left: free some"), (64 << 20, True, "can be")],
)
def test_a_disk_that_is_almost_full_is_told_before_it_is(left: int, is_well: bool, told: str) -> None:
    found, text = health.check_disk_space(left)
    assert found is is_well
    assert told in text


def test_checks_name_files_from_the_project_or_the_home_on(
    bank: Bank, home: Path, clock: TickingClock
) -> None:
    folder = state_folder(bank.path)
    hook_log.log_failure(
        folder, f"codex stop: cannot use {str(bank.path.absolute())!r}, {home / 'x'}", clock()
    )
    text = next(each.text for each in bank.doctor.health() if each.name == "failures")
    assert "cannot use '.archivist/memory.db', ~/x" in text


@pytest.mark.req("W1", "W2")
def test_old_copies_of_hot_files_are_named_with_the_command(bank: Bank) -> None:
    make(bank.root, {"agent/rules/common/profile.md": "# Profile\n\n- short answers\n"})
    rules, _ = links_service.read_rules(bank.root, "agent/rules/common")
    links_service.link(bank.root, "agent/rules/common", rules, [links_service.Client.VSCODE])
    assert {check.name: check.is_well for check in bank.doctor.health()}["workspace"]
    make(bank.root, {"agent/rules/common/profile.md": "# Profile\n\n- long answers\n"})
    (found,) = (check for check in bank.doctor.health() if check.name == "workspace")
    assert not found.is_well
    assert found.text == (
        ".github/instructions/profile.instructions.md: older than the hot files: "
        "archivist workspace link vscode"
    )


def test_a_failure_is_a_warning_for_a_time(bank: Bank, home: Path) -> None:
    """One that is of no bank, as a call by hand, is told in every project, and so for a day."""
    now = datetime(2026, 3, 9, 12, 0, tzinfo=UTC)
    hook_log.log_failure(home / ".archivist", "codex stop: ValueError: no event on stdin", now)
    file = bank.path
    check = health.check_hook_failures(file, now + timedelta(hours=23))
    assert (check.is_well, check.text.endswith("this warning ends 2026-03-10 12:00 UTC")) == (False, True)
    assert health.check_hook_failures(file, now + timedelta(hours=25)).is_well
    hook_log.log_failure(state_folder(file), "gemini stop: oops", now - timedelta(days=2))
    check = health.check_hook_failures(file, now + timedelta(days=2))
    assert (check.is_well, "gemini stop: oops" in check.text) == (False, True)
    assert health.check_hook_failures(file, now + timedelta(days=8)).is_well


def test_a_log_that_could_not_be_read_is_no_warning_once_a_later_one_was(bank: Bank) -> None:
    now = bank.now()

    def check() -> health.Check:
        return next(each for each in bank.doctor.health() if each.name == "failures")

    folder = state_folder(bank.path)
    hook_log.log_failure(folder, "codex after session-end: another process held hooks.lock", now)
    bank.capture(Episode(id="s-1", started=now, finished=now + timedelta(minutes=5)), ())
    bank.runs.note_on_run("s-1", health.LOG, {"client": "gemini", "missing": ""})
    assert not check().is_well
    bank.runs.note_on_run("s-1", health.LOG, {"client": "codex", "missing": "no log was named"})
    assert not check().is_well
    bank.runs.note_on_run("s-1", health.LOG, {"client": "codex", "missing": ""})
    assert check().is_well
    # What a hook itself could not do is not shown to work by a log.
    hook_log.log_failure(folder, "codex prompt: gave up after 4 s", now)
    assert not check().is_well


def test_without_a_bank_the_chain_is_checked_all_the_same(
    archivist: Command, home: Path, clock: TickingClock
) -> None:
    (home / ".archivist").mkdir(parents=True, exist_ok=True)
    hook_log.log_failure(home / ".archivist", "codex stop: oops", clock())
    ran = archivist("doctor")
    assert (ran.code, tuple(_lines(ran.out))) == (5, ("bank", *CHAIN))
    assert _lines(ran.out)["bank"].endswith("archivist setup makes one")
    assert "codex stop: oops" in _lines(ran.out)["failures"]
    assert json.loads(archivist("doctor", "--json").out)["checks"][0]["name"] == "bank"


@pytest.mark.parametrize(
    ("file", "content", "code"), [("memory.db", b"no bank" * 99, 5), ("config.toml", b"[breif]\n", 4)]
)
def test_a_broken_bank_or_setting_is_one_line_of_many(
    archivist: Command, project: Path, file: str, content: bytes, code: int, clock: TickingClock
) -> None:
    lay_bank(project)
    (project / ".archivist" / file).write_bytes(content)
    hook_log.log_failure(state_folder(bank_file(project)), "codex stop: oops", clock())
    ran = archivist("doctor")
    assert (ran.code, tuple(_lines(ran.out))) == (code, ("bank", *CHAIN))
    assert "codex stop: oops" in _lines(ran.out)["failures"]
    assert "Traceback" not in ran.err


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Act as a user to whom rights apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def closed(project: Path) -> Iterator[Path]:
    """Return a project's folder whose bank this user may not look into."""
    lay_bank(project)
    for each in (project, *project.parents):
        if each == Path(gettempdir()):
            break
        each.chmod(0o755)
    (project / "below").mkdir()
    (project / ".archivist").chmod(0)
    yield project
    (project / ".archivist").chmod(0o700)


def test_a_bank_that_may_not_be_looked_into_is_told(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (closed, closed / "below"):
        monkeypatch.chdir(folder)
        with _as_nobody():
            assert find_bank_folder(folder, str) == (None, None)
            assert unreadable_above(folder) == closed / ".archivist"
            ran = CliRunner().invoke(doctor, [], obj=Session("", ""))
        assert "cannot be read: check the permissions" in _lines(ran.stdout)["bank"]
        assert not isinstance(ran.exception, PermissionError)


def test_hooks_that_are_switched_off_are_told(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("install", "claude-code", "--project")
    local = project / ".claude" / "settings.local.json"
    local.write_text('{"disableAllHooks": true}')
    told = _lines(archivist("doctor").out)["clients"]
    assert told.startswith("warn  clients      claude-code runs no hooks: remove disableAllHooks from ")
    assert told.endswith("settings.local.json")
    local.write_text('{"disableAllHooks": false}')
    (project / ".claude" / "settings.json").chmod(0o644)
    assert _lines(archivist("doctor").out)["clients"].startswith("ok")


def test_another_program_of_our_name_is_told(archivist: Command, project: Path, tmp_path: Path) -> None:
    archivist("init")
    archivist("install", "claude-code", "--project")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "archivist").write_text("#!/bin/sh\nexit 0\n")
    (folder / "archivist").chmod(0o755)
    ran = archivist("doctor", PATH=f"{folder}:{os.environ['PATH']}")
    assert "is not the archivist that runs now" in _lines(ran.out)["command"]
    assert project.is_dir()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (
            '"/nonexistent/bin/archivist hook',
            "claude-code calls /nonexistent/bin/archivist, which does not exist",
        ),
        (
            '"archivist --bank /nonexistent hook',
            "claude-code names the bank /nonexistent, which does not exist",
        ),
    ],
)
def test_what_the_settings_call_is_looked_for(
    archivist: Command, project: Path, named: str, told: str
) -> None:
    archivist("init")
    archivist("install", "claude-code", "--project")
    settings = project / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace('"archivist hook', named))
    ran = archivist("doctor")
    assert ran.code == 1
    assert told in _lines(ran.out)["command"]


def test_the_doctor_says_what_a_session_is_told_or_why_nothing(bank_cli: Command) -> None:
    def told() -> str:
        checks = json.loads(bank_cli("doctor", "--json").out)["checks"]
        return next(str(each["text"]) for each in checks if each["name"] == "brief")

    nothing = "a session that starts here is told nothing: no lessons yet: archivist setup learns"
    assert told().startswith(nothing)
    bank_cli("lessons", "add", "Prefer small commits")
    assert told() == "a session that starts here is told 1 lesson"
    bank_cli("lessons", "forget", "m-001")
    assert told().startswith(nothing)


def test_the_doctors_own_call_is_no_clients_failure(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("install", "claude-code", "--project")
    config = project / ".archivist" / "config.toml"
    config.write_text("[recall]\nlimit = \n")
    assert archivist("doctor").code != 0
    config.unlink()
    ran = archivist("doctor")
    assert (ran.code, "went wrong" in _lines(ran.out)["failures"]) == (0, False), ran.out


def _after(project: Path, moment: str, client: str, session: str, log: str = "") -> None:
    """Do what follows a moment of a session that was begun before."""
    with Bank.open(project) as bank:
        bank.sessions.brief_session(session, "shop", folder=project)
    follow_up.main((moment, client, session, log, str(project), str(project)))


def test_a_clients_log_that_never_comes_is_told(archivist: Command, project: Path, tmp_path: Path) -> None:
    archivist("init")
    for number in range(5):
        _after(project, "end", "claude-code", f"idle-{number}")
    for number in range(2):
        _after(project, "stop", "claude-code", f"s-{number}")
    assert _lines(archivist("doctor").out)["capture"].startswith("ok")
    _after(project, "stop", "claude-code", "s-2")
    ran = archivist("doctor")
    assert ran.code == 1
    told = _lines(ran.out)["capture"]
    assert told.startswith("warn")
    assert "nothing is learnt from claude-code: in its last 3 sessions the client names no log" in told
    log = agent_log(tmp_path / "s-3.jsonl", MISSING_MODULE, session="s-3", project="shop")
    _after(project, "end", "claude-code", "s-3", str(log))
    assert _lines(archivist("doctor").out)["capture"].startswith("ok")


def test_a_client_whose_log_nobody_can_read_is_told_and_no_fault(archivist: Command, project: Path) -> None:
    archivist("init")
    for number in range(3):
        _after(project, "end", "vscode", f"s-{number}")
    told = _lines(archivist("doctor").out)["capture"]
    assert told.startswith("ok")
    assert told.endswith("the client names no log: archivist capture FILE captures a log")


def test_the_server_is_really_started_and_each_client_is_described(archivist: Command) -> None:
    archivist("init")
    for client in ("claude-code", "cursor"):
        archivist("install", client, "--project")
    lines = _lines(archivist("doctor").out)
    assert "starts in " in lines["server"]
    told = "told at session start, prompt, failed call, subagent start; learnt from its log"
    assert lines["claude-code"].endswith(told)
    missing = "missing: prompt, failed call, subagent start"
    assert lines["cursor"].endswith(f"told at session start; learnt from what its hooks tell; {missing}")


def test_a_server_that_cannot_start_is_a_warning(archivist: Command, project: Path, tmp_path: Path) -> None:
    archivist("init")
    archivist("install", "claude-code", "--project")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [PROGRAM, "doctor"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"warn  server       it cannot start" in done.stdout) == (1, True)


def test_a_captured_run_without_times_is_a_captured_run(bank_cli: Command, tmp_path: Path) -> None:
    log = agent_log(tmp_path / "s-1.jsonl", [("make test", "4 passed", False)], session="s-1")
    assert bank_cli("capture", str(log)).code == 0
    assert "the last run, s-1, ended at an unknown time" in bank_cli("doctor").out


def test_a_session_that_only_began_is_not_the_last_run(bank_cli: Command, tmp_path: Path) -> None:
    log = agent_log(tmp_path / "s-1.jsonl", MISSING_MODULE, session="s-1")
    assert bank_cli("run", "start", "--run", "begun").code == 0
    assert "no run was captured yet" in _lines(bank_cli("doctor").out)["capture"]
    assert bank_cli("capture", str(log)).code == 0
    assert bank_cli("run", "start", "--run", "begun-too").code == 0
    assert "the last run, s-1, " in _lines(bank_cli("doctor").out)["capture"]


def test_a_hook_that_a_person_tries_without_an_event_is_no_failure(archivist: Command, home: Path) -> None:
    assert archivist("hook", "claude-code", "stop", stdin=b"").code == 0
    assert hook_log.read_log(home / ".archivist") == []
