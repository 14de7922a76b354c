"""A repository made to be slow: a very deep folder, a pipe where git reads a file, a hook that never ends."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from archivist.files.git import TOO_LONG, run_git
from tests.commands import PROGRAM, Command

LEVELS = 1000
MOMENTS = ("session-start", "prompt", "tool-failure", "stop")


def _event(folder: Path, **other: str) -> bytes:
    event = {
        "session_id": "s-1", "cwd": str(folder), "source": "startup", "prompt": "fix it", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "error": "Exit code 1\nboom", "transcript_path": "/x", **other,
    }  # fmt: skip
    return json.dumps(event).encode()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _make_repository(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def deep(project: Path) -> Iterator[Path]:
    """Make a repository with folders in each other, and remove them: Python's own way is recursive."""
    _make_repository(project)
    folder = project / "/".join("a" * LEVELS)
    subprocess.run(["mkdir", "-p", str(folder)], check=True)
    yield folder
    subprocess.run(["rm", "-rf", str(project / "a")], check=True)


@pytest.mark.req("N5", "N2")
@pytest.mark.parametrize("has_bank", [False, True])
def test_a_hook_in_a_very_deep_folder_is_as_quick_as_elsewhere(
    archivist_process: Command, project: Path, deep: Path, has_bank: bool
) -> None:
    # A clone can bring a link that leads there.
    (project / "src").symlink_to(deep)
    if has_bank:
        assert archivist_process("init").code == 0
        assert archivist_process("lessons", "add", "Prices are whole cents").code == 0
    for moment in MOMENTS:
        spent = []
        for folder in (project, deep if has_bank else project / "src"):
            before = _cpu_seconds()
            done = archivist_process("hook", "claude-code", moment, cwd=project, stdin=_event(folder))
            spent.append(_cpu_seconds() - before)
            assert done.code == 0
            if moment == "session-start":
                assert ("Prices are whole cents" in done.out) is has_bank
        assert spent[1] - spent[0] < 0.6, (moment, spent)


@pytest.mark.req("N5")
@pytest.mark.parametrize("name", ["index", "HEAD", "packed-refs", "config", "refs/heads/main"])
def test_a_pipe_that_git_would_read_holds_nothing_up(
    archivist: Command, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _make_repository(project)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    path = project / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    # Git would wait for ever, and each question to it take 10 s: it is not started.
    monkeypatch.setenv("PATH", f"{_make_git(tmp_path, f'touch {tmp_path}/asked')}:{os.environ['PATH']}")
    assert "git does not say" in archivist("init").err
    assert archivist("lessons", "add", "Prices are whole cents").code == 0
    done = archivist("hook", "claude-code", "session-start", stdin=_event(project))
    assert "Prices are whole cents" in done.out
    assert "archivist doctor" in done.out or name != "index"
    assert "git does not say" in archivist("doctor").out
    assert not (tmp_path / "asked").exists()


def _make_git(folder: Path, script: str) -> Path:
    """Make a folder with a program that stands for git."""
    place = folder / "programs"
    place.mkdir()
    (place / "git").write_text(f"#!/bin/sh\n{script}\n")
    (place / "git").chmod(0o755)
    return place


@pytest.mark.req("N5")
def test_a_git_that_does_not_answer_leaves_time_for_the_lessons(
    archivist_process: Command, project: Path, tmp_path: Path
) -> None:
    _make_repository(project)
    assert archivist_process("init").code == 0
    assert archivist_process("lessons", "add", "Prices are whole cents").code == 0
    (project / ".archivist" / ".gitignore").write_text("!*\n")
    begun = time.monotonic()
    path = f"{_make_git(tmp_path, 'exec sleep 60')}:{os.environ['PATH']}"
    done = archivist_process("hook", "claude-code", "session-start", stdin=_event(project), PATH=path)
    assert time.monotonic() - begun < 20
    assert "Prices are whole cents" in done.out
    assert "archivist doctor" in done.out


@pytest.mark.req("N5")
@pytest.mark.parametrize(("moment", "client"), [("session-start", "claude-code"), ("session-end", "codex")])
def test_a_hook_ends_by_itself_before_its_client_ends_it(
    project: Path, home: Path, moment: str, client: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ARCHIVIST_HOOK_DEADLINE_S"}
    begun = time.monotonic()
    # An event that never comes to its end holds up whoever reads it.
    with subprocess.Popen(
        [PROGRAM, "hook", client, moment], cwd=project, env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as hook:  # fmt: skip
        assert hook.stdin is not None
        hook.stdin.write(b'{"session_id": ')
        hook.stdin.flush()
        assert hook.wait(60) == 0
        assert hook.stderr is not None
        assert hook.stderr.read() == b""
    assert time.monotonic() - begun < 30
    log = (home / ".archivist" / "hooks.log").read_text()
    assert f"{client} {moment}: gave up after" in log


@pytest.mark.parametrize("text", ["@./a\n" * 100_000, "".join(f"@./f{at}.md\n" for at in range(40_000))])
def test_a_file_of_nothing_but_imports_is_measured_at_once(tmp_path: Path, text: str) -> None:
    folder = _make_repository(tmp_path / "clone")
    (folder / "a").write_text("x\n")
    (folder / "CLAUDE.md").write_text(text)
    before = _cpu_seconds()
    subprocess.run([PROGRAM, "workspace", "hot"], cwd=folder, check=False, capture_output=True)
    assert _cpu_seconds() - before < 4


@pytest.mark.req("N5")
def test_git_that_waits_for_a_pipe_is_waited_for_once(project: Path) -> None:
    _make_repository(project)
    os.mkfifo(project / "f")
    with (project / ".git" / "config").open("a") as config:
        config.write("[include]\n\tpath = ../f\n")
    assert run_git(project, "status", timeout_s=0.5)[0] == TOO_LONG
    begun = time.monotonic()
    (project / "src").mkdir()
    assert run_git(project / "src", "status", timeout_s=30)[0] == TOO_LONG
    assert time.monotonic() - begun < 5


@pytest.mark.req("N5")
def test_a_planted_bank_of_holes_is_not_copied(archivist: Command, project: Path) -> None:
    _make_repository(project)
    (project / ".archivist").mkdir()
    with (project / ".archivist" / "memory.db").open("wb") as file:
        file.write(b"SQLite format 3\0")
        file.truncate(40 * 1024**3)
    begun = _cpu_seconds()
    for words in (("trust", "--show"), ("setup", "--yes")):
        done = archivist(*words)
        assert done.code != 0
        assert "Traceback" not in done.err
        assert "holes" in done.err
    assert _cpu_seconds() - begun < 5
