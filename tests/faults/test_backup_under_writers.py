"""Backups and restores while other processes write: one whole state, and nothing acknowledged is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archivist import Bank
from archivist.records import Lesson
from tests.commands import Command

WRITERS = 4
_WRITE = """
import sys
from archivist import Bank
with Bank.open(sys.argv[1], create=False) as bank:
    number = 0
    while True:
        number += 1
        lesson = bank.lessons.add(f"Writer {sys.argv[2]} met case {number} of {number * 7919}")
        print(lesson.id, flush=True)
"""


@contextmanager
def _writers(project: Path) -> Iterator[list[Path]]:
    """Let processes write until the block ends; each notes the ids of what was acknowledged in a file."""
    notes = [project / f"acknowledged{number}" for number in range(WRITERS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = []
    try:
        for number, note in enumerate(notes):
            with note.open("w") as out:
                words = [sys.executable, "-c", _WRITE, str(project), str(number)]
                processes.append(subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, env=environment))
        yield notes
        failed = [process.stderr.read() for process in processes if process.poll() and process.stderr]
        assert failed == []
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _acknowledged(notes: list[Path]) -> set[str]:
    return {line for note in notes for line in note.read_text().splitlines() if len(line) == 26}


def _wait_until_each_wrote(notes: list[Path], count: int) -> None:
    deadline = time.monotonic() + 60
    while any(len(_acknowledged([note])) < count for note in notes):
        assert time.monotonic() < deadline, "the writers do not write"
        time.sleep(0.02)


def _lesson_ids(path: Path) -> set[str]:
    with Bank.open(path, create=False) as bank, bank.reading() as reader:
        return {row[0] for row in reader.select_fields(Lesson, ("id",))}


def test_a_backup_under_four_writers_holds_all_that_was_acknowledged_before(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    with _writers(project) as notes:
        _wait_until_each_wrote(notes, 3)
        before = _acknowledged(notes)
        ran = archivist("backup", "copy.db")
        _wait_until_each_wrote(notes, max(len(_acknowledged([note])) for note in notes) + 1)
    assert ran.code == 0, ran.err
    assert before <= _lesson_ids(project / "copy.db")
    assert archivist("--bank", "copy.db", "verify").code == 0


@pytest.mark.soak
def test_a_restore_under_four_writers_loses_no_acknowledged_write(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("backup", "copy.db")
    with _writers(project) as notes:
        _wait_until_each_wrote(notes, 3)
        ran = archivist("restore", "copy.db")
        _wait_until_each_wrote(notes, max(len(_acknowledged([note])) for note in notes) + 2)
    assert ran.code == 0, ran.err
    assert archivist("verify").code == 0
    kept = next((project / ".archivist").glob("memory.db.replaced-*[0-9]"))
    # What was written before lies in the kept file, what was written after it in the bank.
    assert _acknowledged(notes) <= _lesson_ids(kept) | _lesson_ids(project)
    assert archivist("--bank", str(kept), "verify").code == 0
