"""Banks that a pull brings into folders of a project: they must not hide the user's own bank above."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from archivist import Bank
from tests.conftest import Command

MINE = "Check the ledger before a release"


@pytest.fixture
def folder(project: Path, archivist: Command) -> Path:
    """Return a folder inside a repository with the user's own bank."""
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    archivist("init")
    archivist("lessons", "add", MINE)
    (project / "src" / ".archivist").mkdir(parents=True)
    return project / "src"


def plant(folder: Path, kind: str, tmp_path: Path) -> None:
    """Put a bank into a folder that the user never accepted."""
    file = folder / ".archivist" / "memory.db"
    if kind == "empty":
        file.touch()
    elif kind == "junk":
        file.write_bytes(b"x" * 4096)
    elif kind == "link":
        file.symlink_to(folder.parent / ".archivist" / "memory.db")
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ARCHIVIST_HOME", str(tmp_path / "their-home"))
            with Bank.open(tmp_path / "theirs", create=True) as bank:
                bank.lessons.add("Planted wisdom")
        file.write_bytes((tmp_path / "theirs" / ".archivist" / "memory.db").read_bytes())


def told(archivist: Command, folder: Path) -> str:
    """Return what a session in a folder is told when it starts."""
    said = json.dumps({"cwd": str(folder), "session_id": "n-1"}).encode()
    return archivist("hook", "claude-code", "session-start", stdin=said, cwd=folder).out


@pytest.mark.req("N7")
@pytest.mark.parametrize("kind", ["empty", "junk", "link", "bank"])
def test_a_bank_that_was_never_accepted_hides_none(
    archivist: Command, folder: Path, tmp_path: Path, kind: str
) -> None:
    assert MINE in told(archivist, folder)
    plant(folder, kind, tmp_path)
    answer = told(archivist, folder)
    assert (MINE in answer, "Planted" in answer) == (True, False)
    ran = archivist("lessons", "list", cwd=folder)
    assert (ran.code, MINE in ran.out) == (0, True)
    file = folder / ".archivist" / "memory.db"
    assert (f"passed over {file}, which is not yours" in ran.err) is (kind != "empty")
    assert archivist("lessons", "add", "Another", cwd=folder).code == 0
    assert "Another" in archivist("lessons", "list", cwd=folder.parent).out


@pytest.mark.req("N7")
def test_the_nearest_bank_counts_once_it_is_accepted(
    archivist: Command, folder: Path, tmp_path: Path
) -> None:
    plant(folder, "bank", tmp_path)
    assert archivist("trust", "--yes", cwd=folder).code == 0
    assert MINE not in told(archivist, folder)


@pytest.mark.req("N7")
def test_a_bank_in_another_repository_hides_none_either(
    archivist: Command, folder: Path, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    assert MINE in told(archivist, folder)
    plant(folder, "bank", tmp_path)
    answer = told(archivist, folder)
    assert (MINE in answer, "Planted" in answer) == (True, False)


@pytest.mark.req("N7")
@pytest.mark.parametrize("kind", ["junk", "link", "bank"])
def test_a_bank_that_was_never_accepted_hides_not_the_global_one(
    archivist: Command, project: Path, tmp_path: Path, kind: str
) -> None:
    archivist("init", "--global")
    archivist("lessons", "add", "--global", MINE)
    clone = project / "clone"
    (clone / ".archivist").mkdir(parents=True)
    assert MINE in told(archivist, clone)
    plant(clone, kind, tmp_path)
    answer = told(archivist, clone)
    assert (MINE in answer, "Planted" in answer, "archivist doctor" in answer) == (True, False, False)


KILLED = """
import os, sys
from pathlib import Path
from archivist.store.sqlite.store import SqliteStore
store = SqliteStore.open(Path(sys.argv[1]), create=True)
if sys.argv[2:]:
    store.close()
os._exit(9)
"""


@pytest.mark.parametrize("words", [(), ("closed",)])
def test_init_finishes_a_bank_that_a_killed_init_left(
    archivist: Command, project: Path, words: tuple[str, ...]
) -> None:
    file = project / ".archivist" / "memory.db"
    file.parent.mkdir()
    subprocess.run([sys.executable, "-c", KILLED, str(file), *words], check=False)
    assert archivist("lessons", "add", MINE).code == 5
    assert archivist("init").code == 0
    archivist("lessons", "add", MINE)
    assert MINE in told(archivist, project)


@pytest.mark.req("N7")
@pytest.mark.parametrize("command", [("init",), ("setup", "--yes")])
def test_a_log_that_a_repository_brings_without_a_bank_is_named(
    archivist: Command, project: Path, command: tuple[str, ...]
) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    log = project / ".archivist" / "memory.db-wal"
    log.parent.mkdir()
    log.write_bytes(b"7" * 4152)
    refused = archivist(*command)
    assert refused.code == 5
    assert "memory.db-wal' lies here without its bank" in refused.err
    assert "hint: remove it" in refused.err
    log.unlink()
    assert archivist(*command).code == 0


@pytest.mark.req("N7")
def test_init_finishes_no_bank_that_holds_something_or_was_noted(
    archivist: Command, project: Path, tmp_path: Path
) -> None:
    (project / ".archivist").mkdir()
    plant(project, "bank", tmp_path)
    assert archivist("init").code == 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARCHIVIST_HOME", str(tmp_path / "their-home"))
        Bank.open(tmp_path / "fresh", create=True).close()
    file = project / ".archivist" / "memory.db"
    file.write_bytes((tmp_path / "fresh" / ".archivist" / "memory.db").read_bytes())
    assert archivist("init").code == 5
