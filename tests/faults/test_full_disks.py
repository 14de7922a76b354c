"""A disk without room keeps nobody from being told what the bank knows."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from archivist import Bank
from archivist.errors import BankFullError
from tests.commands import Command

RULE = "Never push on Fridays"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of two megabytes, where that is allowed."""
    folder, mount = tmp_path / "small", shutil.which("mount")
    folder.mkdir()
    call = [mount or "mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(call, capture_output=True, check=False).returncode:
        pytest.skip("a file system can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _fill(folder: Path) -> None:
    with (folder / "fill").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"x" * 1024)


@pytest.mark.req("N7")
def test_a_run_and_a_session_are_told_on_a_full_disk(archivist: Command, small_disk: Path) -> None:
    project = small_disk / "project"
    project.mkdir()
    assert archivist("init", cwd=project).code == 0
    assert archivist("lessons", "add", RULE, cwd=project).code == 0
    _fill(small_disk)
    ran = archivist("run", "start", "--run", "r-1", "--task", "t", cwd=project)
    assert (ran.code, RULE in ran.out, "not recorded" in ran.err) == (0, True, True)
    said = json.dumps({"cwd": str(project), "session_id": "s-1", "hook_event_name": "SessionStart"}).encode()
    assert RULE in archivist("hook", "claude-code", "session-start", stdin=said, cwd=project).out
    (small_disk / "fill").unlink()
    assert RULE in archivist("lessons", "list", cwd=project).out


@pytest.mark.req("N7")
def test_a_session_is_told_where_the_disk_fills_while_the_bank_is_open(project: Path) -> None:
    with Bank.open(project, create=True) as bank:
        bank.lessons.add(RULE)
        # SQLite's own limit ends a write as a full disk does.
        bank.store._db.execute("PRAGMA max_page_count = 1")  # type: ignore[attr-defined]
        with pytest.raises(BankFullError, match="the disk is full"):
            for number in range(500):
                bank.lessons.add(
                    f"Another rule about subject {number}, with words of its own: {number * 7919}"
                )
        told = bank.sessions.brief_session("s-2", "")
        assert RULE in told.text
