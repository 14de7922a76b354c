"""A repository that wants the user's bank: whatever it brings, `git add` must not take the bank unsaid."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from archivist import Bank
from tests.conftest import Command


@pytest.fixture
def repository(project: Path) -> Path:
    """Return the project as a repository of git."""
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / ".archivist").mkdir()
    return project


def staged(repository: Path) -> list[str]:
    """Return what the user's next `git add -A` takes of our folder, besides what the repository brought."""
    git = ["git", "-C", str(repository)]
    subprocess.run([*git, "add", "-A"], check=True)
    out = subprocess.run([*git, "ls-files"], check=True, capture_output=True, text=True).stdout
    return [name for name in out.splitlines() if "memory.db" in name]


def other_lines(folder: Path) -> None:
    (folder / ".gitignore").write_text("*.log\n")


def lines_that_include(folder: Path) -> None:
    (folder / ".gitignore").write_text("memory.db\n!memory.db*\n")


def lines_for_the_log_only(folder: Path) -> None:
    (folder / ".gitignore").write_text("*\n!memory.db-wal\n")


def link(folder: Path) -> None:
    (folder.parent / "patterns").write_text("!*\n")
    (folder / ".gitignore").symlink_to(folder.parent / "patterns")


def folder_of_that_name(folder: Path) -> None:
    (folder / ".gitignore").mkdir()
    (folder / ".gitignore" / "x").write_text("")


def nothing(_folder: Path) -> None:
    return


@pytest.mark.req("N7")
@pytest.mark.parametrize(
    "bring", [nothing, other_lines, lines_that_include, lines_for_the_log_only, link, folder_of_that_name]
)
def test_a_new_bank_stays_out_of_git(
    archivist: Command, repository: Path, bring: Callable[[Path], None]
) -> None:
    bring(repository / ".archivist")
    ran = archivist("init")
    assert (ran.code, "git" in ran.err) == (0, False)
    (repository / ".archivist" / "memory.db-wal").touch()
    assert staged(repository) == []
    assert "ok    trust " in archivist("doctor").out


@pytest.mark.req("N7")
def test_a_pull_that_replaces_our_file_does_not_publish_the_bank(
    archivist: Command, repository: Path
) -> None:
    archivist("init")
    lines_that_include(repository / ".archivist")
    assert staged(repository) == []


@pytest.mark.req("N7")
def test_a_pair_of_files_that_a_later_pull_brings_is_said(archivist: Command, repository: Path) -> None:
    archivist("init")
    (repository / ".gitignore").write_text("!.archivist/\n")
    said = json.dumps({"cwd": str(repository), "session_id": "n-1"}).encode()
    assert archivist("hook", "claude-code", "session-start", stdin=said).out == ""
    assert (staged(repository), archivist("status").err) == ([], "")
    lines_that_include(repository / ".archivist")
    for command in ("status", "reflect", "lessons list"):
        ran = archivist(*command.split())
        assert "git does not ignore the bank, and git add would publish it" in ran.err, command
    answer = archivist("hook", "claude-code", "session-start", stdin=said).out
    assert "run `archivist doctor`" in answer
    assert staged(repository) == [".archivist/memory.db"]


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", ["memory.db.replaced-20260102T030405Z", "memory.db.salvaged-1", "x.jsonl"])
def test_a_copy_that_git_would_take_is_said(archivist: Command, repository: Path, name: str) -> None:
    archivist("init")
    (repository / ".archivist" / name).write_text("")
    (repository / ".archivist" / "config.toml").write_text("")
    (repository / ".gitignore").write_text("!.archivist/\n")
    (repository / ".archivist" / ".gitignore").write_text(f"*\n!config.toml\n!{name}\n")
    for command in ("status", "doctor"):
        ran = archivist(command)
        assert "git add would publish it" in ran.err + ran.out, command


def look_like_a_repository(folder: Path) -> None:
    """Write what git takes for a bare repository, in which it answers nothing."""
    for name in ("refs", "objects"):
        (folder / name).mkdir(parents=True)
        (folder / name / "k").touch()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.req("N7")
def test_a_folder_that_looks_like_a_repository_keeps_git_from_no_answer(
    archivist: Command, repository: Path
) -> None:
    app = repository / "app"
    app.mkdir()
    archivist("init", cwd=app)
    look_like_a_repository(app)
    (app / ".gitignore").write_text("!.archivist\n!.archivist/**\n")
    (app / ".archivist" / ".gitignore").write_text("!*\n")
    assert "git add would publish it" in archivist("status", cwd=app).err
    said = json.dumps({"cwd": str(app), "session_id": "n-1"}).encode()
    assert "archivist doctor" in archivist("hook", "claude-code", "session-start", stdin=said, cwd=app).out
    assert "git add would publish it" in archivist("doctor", cwd=app).out
    assert staged(repository) == ["app/.archivist/memory.db"]


@pytest.mark.req("N7")
def test_that_git_does_not_answer_is_said(archivist: Command, repository: Path) -> None:
    assert "git" not in archivist("init").err
    (repository / ".git" / "config").write_text("[core\n")
    told = "git does not say whether it would publish the bank"
    assert f"warn  trust        {told}" in archivist("doctor").out
    lines_that_include(repository / ".archivist")
    assert told in archivist("status").err


@pytest.mark.req("N7")
def test_what_cannot_be_ignored_is_said(archivist: Command, repository: Path) -> None:
    (repository / ".gitignore").write_text("!.archivist/\n")
    lines_that_include(repository / ".archivist")
    told = "git does not ignore the bank, and git add would publish it: "
    assert told in archivist("init").err
    assert f"warn  trust        {told}" in archivist("doctor").out
    assert staged(repository) == [".archivist/memory.db"]
    told = "the bank is committed to git, so whoever can push can change it: git rm --cached"
    assert told in archivist("init").err
    assert f"warn  trust        {told}" in archivist("doctor").out


@pytest.mark.req("N7")
@pytest.mark.parametrize("words", [["init"], ["status"], ["setup", "--yes"]])
def test_a_tracked_name_that_steers_the_terminal_is_shown_as_codes(
    archivist: Command, repository: Path, words: list[str]
) -> None:
    named = repository / ".archivist" / "a\x1b[2J\nb"
    named.mkdir()
    (named / "x").touch()
    subprocess.run(["git", "-C", str(repository), "add", "-f", ".archivist"], check=True)
    archivist("init")
    ran = archivist(*words)
    shown = ran.out + ran.err
    assert (r"/a\x1b[2J\nb/x" in shown, "\x1b[2J" in shown) == (True, False), shown


@pytest.mark.req("N7")
@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize(
    "name",
    [
        "memory.db",
        "memory.db-wal",
        "memory.db-shm",
        "memory.db-journal",
        "x.jsonl",
        "deep/x",
        "Memory.DB-wal",
    ],
)
def test_a_tracked_file_beside_the_bank_is_said_at_session_start(
    archivist: Command, repository: Path, name: str, version: int
) -> None:
    archivist("init")
    git = ["git", "-C", str(repository)]
    subprocess.run([*git, "config", "index.version", str(version)], check=True)
    # A neighbour, from which the fourth version of the index takes the beginning of the next name.
    (repository / ".archive").write_text("")
    (repository / ".archivist" / "config.toml").write_text("")
    subprocess.run([*git, "add", "-f", ".archive", ".archivist/config.toml"], check=True)
    said = json.dumps({"cwd": str(repository), "session_id": "n-1"}).encode()
    assert "archivist doctor" not in archivist("hook", "claude-code", "session-start", stdin=said).out
    # As after a pull: git tracks the name, whatever lies there now.
    blob = subprocess.run(
        [*git, "hash-object", "-w", "/dev/null"], check=True, capture_output=True, text=True
    )
    entry = f"100644,{blob.stdout.strip()},.archivist/{name}"
    subprocess.run([*git, "update-index", "--add", "--cacheinfo", entry], check=True)
    assert "run `archivist doctor`" in archivist("hook", "claude-code", "session-start", stdin=said).out
    for command in ("status", "doctor", "init"):
        ran = archivist(command)
        assert "the bank is committed to git" in ran.out + ran.err, command
        assert f".archivist/{name}" in ran.out + ran.err, command


@pytest.mark.req("N7")
def test_a_bank_of_another_name_that_git_tracks_is_said(archivist: Command, repository: Path) -> None:
    (repository / ".gitignore").write_text("notes.db*\n")
    archivist("--bank", "notes.db", "init")
    subprocess.run(["git", "-C", str(repository), "add", "-f", "notes.db"], check=True)
    said = json.dumps({"cwd": str(repository), "session_id": "n-1"}).encode()
    words = ("--bank", "notes.db", "hook", "claude-code", "session-start")
    assert "run `archivist doctor`" in archivist(*words, stdin=said).out


@pytest.mark.req("N7")
def test_an_outer_repository_that_tracks_the_bank_is_said(
    archivist: Command, repository: Path, tmp_path: Path
) -> None:
    archivist("init")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    blob = subprocess.run(
        [*git, "hash-object", "-w", "/dev/null"], check=True, capture_output=True, text=True
    )
    entry = f"100644,{blob.stdout.strip()},{repository.name}/.archivist/memory.db-wal"
    subprocess.run([*git, "update-index", "--add", "--cacheinfo", entry], check=True)
    said = json.dumps({"cwd": str(repository), "session_id": "n-1"}).encode()
    assert "run `archivist doctor`" in archivist("hook", "claude-code", "session-start", stdin=said).out


@pytest.mark.req("N7")
def test_a_bank_outside_of_our_folder_is_named_and_nothing_else_is_ignored(
    archivist: Command, repository: Path
) -> None:
    ran = archivist("--bank", "notes.db", "init")
    assert "git does not ignore the bank" in ran.err
    assert not (repository / ".gitignore").exists()


def test_a_bank_that_a_program_makes_is_kept_out_of_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    Bank.open(tmp_path, create=True).close()
    taken = subprocess.run(["git", "-C", str(tmp_path), "add", "-A", "-n"], check=True, capture_output=True)
    assert taken.stdout == b""
