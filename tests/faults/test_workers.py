"""Workers share a queue of runs: killed ones lose nothing, and each run is reflected on once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from archivist import Bank
from tests.commands import PROGRAM
from tests.conftest import Command
from tests.postgres import shared_database
from tests.samples import MISSING_MODULE, agent_log

_LONGEST_S = 120
# Leases the run as a reflection does, and never comes back.
_HOLD = "import sys; from archivist.reflect import service; from archivist.edges.cli.main import main;"
_HOLD += "service.load_context = lambda *_: (print('holding', flush=True), sys.stdin.readline());"
_HOLD += "main(sys.argv[1:])"


def _queue_runs(project: Path, folder: Path, count: int) -> None:
    with Bank.open(project) as bank:
        for number in range(count):
            log = agent_log(folder / f"{number}.jsonl", MISSING_MODULE, session=f"run-{number:03d}")
            bank.runs.capture_file(log)


def _start_worker(project: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "--bank", str(project), "worker", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )


def _reflection_counts(project: Path) -> Counter[str]:
    """Count the results of each run in the ledger, which nobody can rewrite."""
    with Bank.open(project) as bank, bank.reading() as reader:
        entries = (entry for entry, _ in reader.ledger(kind="episode", with_payloads=False))
        return Counter(entry.record for entry in entries if entry.verb == "reflect")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_four_workers_of_which_two_are_killed_reflect_once_on_each_of_200_runs(
    engine: str, project: Path, tmp_path: Path, archivist: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "postgres":
        monkeypatch.setenv("ARCHIVIST_STORE", shared_database())
    assert archivist("init").code == 0
    assert (project / ".archivist/memory.db").exists() == (engine == "sqlite")
    _queue_runs(project, tmp_path, 200)
    workers = [_start_worker(project, "--once") for _ in range(4)]
    for worker in workers[:2]:
        # Killed in the middle: after its first result it has leased the next run, or soon will.
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline())["state"] == "reflected"
        worker.kill()
    for worker in workers:
        worker.communicate(timeout=_LONGEST_S)
    # Whoever ended first cannot take over what a worker that lived longer lost.
    last, _ = _start_worker(project, "--once").communicate(timeout=_LONGEST_S)
    counts = _reflection_counts(project)
    assert counts == Counter({f"run-{number:03d}": 1 for number in range(200)}), last
    with Bank.open(project) as bank, bank.reading() as reader:
        assert reader.queued_runs() == []
        # Every run aged the bank, once.
        assert reader.run_count() == 200
        assert reader.verify().is_whole


def test_a_stopped_worker_gives_its_lease_back(project: Path, tmp_path: Path, archivist: Command) -> None:
    assert archivist("init").code == 0
    _queue_runs(project, tmp_path, 1)
    words = ["-c", _HOLD, "--bank", str(project), "worker"]
    with subprocess.Popen(
        [str(Path(PROGRAM).with_name("python")), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        assert worker.stderr is not None
        assert worker.stdout.readline() == "holding\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(_LONGEST_S) == 0
        assert "stopped" in worker.stderr.read()
    with Bank.open(project) as bank:
        (waiting,) = bank.reflections.waiting_runs()
        assert (waiting.holder, waiting.attempts) == ("", 0)


def test_a_lease_is_renewed_while_its_worker_works(project: Path, tmp_path: Path, archivist: Command) -> None:
    assert archivist("init").code == 0
    _queue_runs(project, tmp_path, 1)
    words = ["-c", _HOLD, "--bank", str(project), "--set", "reflect.lease_s=0.6", "worker"]
    with subprocess.Popen(
        [str(Path(PROGRAM).with_name("python")), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "holding\n"
        with Bank.open(project) as bank:
            (first,) = bank.reflections.waiting_runs()
            assert first.leased_until is not None
            deadline = time.monotonic() + _LONGEST_S
            while bank.reflections.waiting_runs()[0].leased_until == first.leased_until:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            (later,) = bank.reflections.waiting_runs()
            assert later.holder == first.holder
        worker.kill()


def test_a_worker_takes_what_comes_later_and_all_banks(
    project: Path, tmp_path: Path, archivist: Command
) -> None:
    other = tmp_path / "other"
    for folder in (project, other):
        folder.mkdir(exist_ok=True)
        assert archivist("init", cwd=folder).code == 0
    with _start_worker(project, "--bank", "work,other") as worker:
        assert worker.stdout is not None
        for folder in (other, project):
            _queue_runs(folder, tmp_path, 1)
            line = json.loads(worker.stdout.readline())
            assert (line["bank"], line["run"], line["state"]) == (folder.name, "run-000", "reflected")
        worker.terminate()
        worker.communicate(timeout=_LONGEST_S)
        assert worker.returncode == 0


def test_a_bank_that_nobody_knows_is_named(bank_cli: Command) -> None:
    done = bank_cli("worker", "--once", "--bank", "nowhere")
    assert done.code == 5
    assert "'nowhere'" in done.err
