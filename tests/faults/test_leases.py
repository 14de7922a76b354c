"""A reflection whose process is gone is told, and taken over at once; one that lives is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.files.processes import is_process_gone, name_process
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

# Leases the run as a reflection does, and never comes back.
_HOLD = """
import sys
from archivist import Bank
from archivist.reflect import service
service.load_context = lambda *_: (print("holding", flush=True), sys.stdin.readline())
next(iter(Bank.open(sys.argv[1]).reflections.reflect_waiting()), None)
"""


@pytest.fixture
def waiting(project: Path, archivist: Command, tmp_path: Path) -> Path:
    """Make a bank in which one run waits for reflection."""
    assert archivist("init").code == 0
    assert archivist("capture", str(agent_log(tmp_path / "log.jsonl", MISSING_MODULE))).code == 0
    return project


@contextmanager
def _reflecting(project: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(project)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process
        process.kill()


def _doctor_says(archivist: Command) -> str:
    checks = json.loads(archivist("doctor", "--json").out)["checks"]
    return next(str(check["text"]) for check in checks if check["name"] == "reflection")


def test_a_killed_reflection_is_told_and_taken_over_at_once(waiting: Path, archivist: Command) -> None:
    with _reflecting(waiting) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert "run s-1 was being reflected on by a process that is gone" in _doctor_says(archivist)
    assert json.loads(archivist("status", "--json").out)["runs_abandoned"] == 1
    assert archivist("reflect").code == 0
    with Bank.open(waiting) as bank:
        assert bank.reflections.waiting_runs() == []
        assert bank.runs.episode("s-1").summary
    assert _doctor_says(archivist) == "no run waits"


def test_a_killed_process_that_nobody_has_waited_for_counts_as_gone(waiting: Path) -> None:
    with _reflecting(waiting) as process, Bank.open(waiting) as bank:
        (held,) = bank.reflections.waiting_runs()
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_process_gone(held.holder)


def test_a_living_reflection_is_left_alone(waiting: Path, archivist: Command) -> None:
    with _reflecting(waiting):
        assert "1 run is being reflected on" in _doctor_says(archivist)
        assert archivist("reflect").code == 0
        with Bank.open(waiting) as bank:
            (held,) = bank.reflections.waiting_runs()
            assert held.holder
            assert bank.reflections.abandoned_runs() == []


def test_a_number_that_another_process_has_again_is_no_proof_of_life() -> None:
    machine, number, start = name_process().split(":")
    assert not is_process_gone(f"{machine}:{number}:{start}:whatever")
    assert is_process_gone(f"{machine}:{number}:{int(start) - 1}:whatever")


def test_nothing_is_known_of_a_process_elsewhere_or_of_an_older_version() -> None:
    _, number, start = name_process().split(":")
    assert not is_process_gone(f"elsewhere:{number}:{int(start) - 1}:whatever")
    assert not is_process_gone("999999999-01ABCDEF")
    assert not is_process_gone("")


def test_a_lease_is_extended_by_its_holder_alone(bank: Bank) -> None:
    until = bank.now() + timedelta(hours=1)
    with bank.transaction() as writer:
        writer.queue("r1")
        assert writer.lease("me", until) == ["r1"]
        assert not writer.extend_lease("r1", "you", until + timedelta(hours=1))
        assert writer.extend_lease("r1", "me", until + timedelta(hours=2))
    (queued,) = bank.reflections.waiting_runs()
    assert (queued.holder, queued.leased_until) == ("me", until + timedelta(hours=2))
