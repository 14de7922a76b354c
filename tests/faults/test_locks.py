"""Locks that do not lock are named, and writers wait for each other in a line that survives its members."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archivist import Bank
from archivist.config import Config, StoreRules
from archivist.errors import BankError, BankLockedError
from archivist.files import locks
from archivist.files.write import queue_at_folder, remove_stale_temporaries, write_temporary
from archivist.recall.query import Query
from archivist.records import Episode, Event, EventKind
from tests.banks import fresh_bank
from tests.conftest import Command

_WRITE = """
import sys
from archivist import Bank
from archivist.records import Episode
bank = Bank.open(sys.argv[1], create=False)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    run = f"{sys.argv[2]}-{number}"
    bank.capture(Episode(id=run), ())
    print(run, flush=True)
"""
_HOLD = """
import fcntl, os, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(folder, fcntl.LOCK_EX)
print("holding", flush=True)
sys.stdin.readline()
"""


def _start(code: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


# Locks that do not lock


def test_the_locks_of_this_machine_lock(tmp_path: Path) -> None:
    assert locks.find_lock_problem(tmp_path) == ""
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_folder_that_cannot_be_written_is_not_judged(tmp_path: Path) -> None:
    assert locks.find_lock_problem(tmp_path / "missing") is None


def test_a_bank_where_locks_do_not_lock_is_refused_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "is_locked_twice", lambda _: True)
    with pytest.raises(BankError, match="grants the same lock twice") as refused:
        Bank.open(tmp_path / "project", create=True)
    assert "local disk" in refused.value.hint
    assert not (tmp_path / "project" / ".archivist" / "memory.db").exists()


def test_a_bank_where_nothing_can_be_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks, "is_locked_twice", refuse)
    with pytest.raises(BankError, match="No locks available"):
        fresh_bank(tmp_path / "project")


def test_a_file_system_is_tried_once_and_again_by_the_doctor(
    archivist: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archivist("init", "--global").code == 0
    assert archivist("init").code == 0
    monkeypatch.setattr(locks, "is_locked_twice", lambda _: True)
    assert archivist("status").code == 0, "locks were found to work here"
    checks = {check["name"]: check for check in json.loads(archivist("doctor", "--json").out)["checks"]}
    assert not checks["locks"]["ok"]
    assert "grants the same lock twice" in checks["locks"]["text"]


def test_a_network_file_system_is_named(archivist: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert archivist("init").code == 0
    monkeypatch.setattr(locks, "find_network_type", lambda _: "nfs4")
    assert "(nfs4)" in archivist("init").err
    assert "file system (nfs4): use it from one machine only" in archivist("doctor").out


def test_the_file_system_of_this_machine_is_found_among_its_mounts(tmp_path: Path) -> None:
    assert locks.find_network_type(tmp_path) in ("", "9p", "virtiofs")
    assert locks.find_network_type(tmp_path / "missing") == ""


# The line of writers


def test_writers_of_many_processes_all_get_their_turn(tmp_path: Path) -> None:
    bank = fresh_bank(tmp_path / "project")
    writers = [_start(_WRITE, str(bank.path), str(number), "25") for number in range(4)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    acknowledged = [run for writer in writers for run in writer.communicate()[0].split()]
    assert len(acknowledged) == 100
    assert {episode.id for episode in bank.runs.episodes()} == set(acknowledged)
    assert bank.ledger.verify().is_whole
    bank.close()


def test_a_killed_writer_leaves_the_line(tmp_path: Path) -> None:
    bank = fresh_bank(tmp_path / "project")
    with _start(_HOLD, str(bank.path.parent)) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        os.kill(holder.pid, signal.SIGKILL)
    began = time.monotonic()
    bank.capture(Episode(id="r1"), [Event(run="r1", seq=1, kind=EventKind.MESSAGE, text="hello")])
    assert time.monotonic() - began < 5
    bank.close()


def test_the_line_alone_stops_nobody(tmp_path: Path) -> None:
    config = Config(store=StoreRules(busy_timeout_s=0.3))
    bank = fresh_bank(tmp_path / "project", config=config)
    with _start(_HOLD, str(bank.path.parent)) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        bank.capture(Episode(id="r1"), ())
        holder.kill()
    assert bank.runs.episode("r1").id == "r1"
    bank.close()


def test_a_bank_that_is_written_for_too_long_is_given_up_in_time(tmp_path: Path) -> None:
    config = Config(store=StoreRules(busy_timeout_s=0.3))
    first = fresh_bank(tmp_path / "project", config=config)
    second = Bank.open(tmp_path / "project", config=config)
    with first.transaction():
        began = time.monotonic()
        with pytest.raises(BankLockedError), second.transaction():
            pass
        assert 0.25 < time.monotonic() - began < 3
    with second.transaction(timeout_s=0.1):
        pass
    first.close()
    second.close()


def test_one_who_writes_two_banks_of_a_folder_does_not_wait_for_itself(tmp_path: Path) -> None:
    began = time.monotonic()
    with Bank.open(tmp_path / "a.db", create=True) as one, Bank.open(tmp_path / "b.db", create=True) as other:
        with one.transaction(), other.transaction():
            pass
        with other.transaction(), one.transaction():
            pass
    assert time.monotonic() - began < 10


def test_temporary_files_of_the_dead_are_removed_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    stale, foreign, pipe = (
        tmp_path / name for name in (".a.0123abcd.archivist", ".a.md", ".b.0123abcd.archivist")
    )
    stale.touch()
    foreign.touch()
    os.mkfifo(pipe)
    with write_temporary(path, [b"new"]) as held:
        remove_stale_temporaries(tmp_path / ".")
        assert held.exists()
        assert not stale.exists()
        held.replace(path)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == [".a.md", "note.md"]


def test_a_link_is_no_line(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with queue_at_folder(tmp_path / "real", 1.0), queue_at_folder(tmp_path / "link", 0.0):
        pass


def test_a_process_keeps_its_locks_while_it_opens_the_bank_again(project: Path) -> None:
    """Whoever closes any handle of SQLite's files gives up the locks of its whole process."""
    add = "with Bank.open(sys.argv[1]) as bank: bank.lessons.add('Use tabs')"
    other = f"import sys; from archivist import Bank\n{add}"
    with fresh_bank(project) as bank:
        bank.lessons.add("Run the formatter")
        with Bank.open(project) as again:
            again.lessons.add("Ask before a release")
            # It would take itself for the last one, and remove the log.
            subprocess.run([sys.executable, "-c", other, str(project)], check=True, timeout=60)
            bank.lessons.add("Never push on a Friday")
            again.lessons.add("Sign each commit")
    with Bank.open(project) as bank:
        assert len(bank.lessons.query(Query())) == 5
