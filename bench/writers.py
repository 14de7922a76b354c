"""Measure eight processes that write one bank at the same time, beside bare SQLite in the same run.

Each process commits its transactions one after another: a captured run with one event. Bare SQLite commits
the JSON of the same two records as two rows, with the same journal and the same `synchronous`, once in the
bank's own line of writers ("bare, in line": the bar) and once with its `busy_timeout` alone ("bare, polls").
The rounds take turns.

With eight writers that never rest, the mean wait is eight times a transaction, whatever the order.
A fair line gives everybody that wait. Polling serves whoever comes back first, some hundred times in a row,
while another waits for seconds: too few waits for a p99 to show, so look at the worst as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import apsw

from archivist import Bank
from archivist.files.write import queue_at_folder
from archivist.records import Episode, Event, EventKind
from archivist.records.plain import to_plain

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# How many times as long as bare SQLite's the slowest hundredth of the transactions may take.
BAR = 5.0
KINDS = ("bank", "bare, in line", "bare, polls")
_TIMEOUT_MS = 30_000


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--transactions", type=int, default=500, help="of each writer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        _write(options.kind, options.file, options.number, options.transactions)
        return 0
    found: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    errors = lost = 0
    for _ in range(options.rounds):
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / ".archivist" / "memory.db"
                latencies, failed = _run_round(kind, file, options.writers, options.transactions)
                found[kind].append(latencies)
                errors += failed
                lost += len(latencies) - _count_stored(file)
    is_held = _print_table(found, errors, lost)
    return 0 if is_held else 1


def _run_round(kind: str, file: Path, writers: int, transactions: int) -> tuple[list[float], int]:
    """Return the milliseconds of every acknowledged transaction, and how many failed."""
    _prepare(kind, file)
    words = [
        sys.executable,
        __file__,
        "--kind",
        kind,
        "--file",
        str(file),
        "--transactions",
        str(transactions),
    ]
    started = [
        subprocess.Popen(
            [*words, "--number", str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(writers)
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    latencies: list[float] = []
    failed = 0
    for process in started:
        out, _ = process.communicate()
        told: dict[str, Any] = (
            json.loads(out) if process.returncode == 0 else {"ms": [], "failed": transactions}
        )
        latencies += told["ms"]
        failed += told["failed"]
    return latencies, failed


def _write(kind: str, file: Path, number: int, transactions: int) -> None:
    """Commit one writer's transactions; print how long each took."""
    write = _bank_write(file) if kind == "bank" else _bare_write(file, is_in_line=kind == "bare, in line")
    records = [_records(number, at) for at in range(transactions)]
    print("ready", flush=True)
    sys.stdin.readline()
    latencies, failed = [], 0
    for episode, event in records:
        start = time.perf_counter()
        try:
            write(episode, event)
        except Exception as error:  # noqa: BLE001 each failure is counted
            print(repr(error), file=sys.stderr)
            failed += 1
        else:
            latencies.append((time.perf_counter() - start) * 1000)
    print(json.dumps({"ms": latencies, "failed": failed}))


def _records(number: int, at: int) -> tuple[Episode, Event]:
    run = f"run-{number}-{at}"
    text = f"pytest tests/test_module_{at % 40}.py --maxfail={number}"
    output = f"FAILED tests/test_module_{at % 40}.py::test_{at} - AssertionError: expected {number}, got {at}"
    event = Event(
        run=run, seq=1, kind=EventKind.TOOL_CALL, tool="Bash", text=text, output=output,
        time=NOW, exit_code=1, is_error=True,
    )  # fmt: skip
    return Episode(id=run, project="bench", task=f"fix test {at}", started=NOW, finished=NOW), event


def _prepare(kind: str, file: Path) -> None:
    if kind == "bank":
        Bank.open(file, create=True).close()
        return
    file.parent.mkdir(parents=True)
    db = _connect(file)
    db.execute("CREATE TABLE episodes (id TEXT PRIMARY KEY, value TEXT) STRICT")
    db.execute("CREATE TABLE events (id TEXT PRIMARY KEY, value TEXT) STRICT")
    db.close()


def _connect(file: Path) -> apsw.Connection:
    db = apsw.Connection(str(file))
    db.set_busy_timeout(_TIMEOUT_MS)
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
    return db


def _bank_write(file: Path) -> Callable[[Episode, Event], object]:
    bank = Bank.open(file, create=False)
    bank.capture(*_warm())
    return lambda episode, event: bank.capture(episode, [event])


def _warm() -> tuple[Episode, list[Event]]:
    """Return a run that is written before the clock starts, so that imports are not measured."""
    episode, event = _records(-1, 0)
    return episode, [event]


def _bare_write(file: Path, *, is_in_line: bool) -> Callable[[Episode, Event], object]:
    db = _connect(file)

    def write(episode: Episode, event: Event) -> None:
        with queue_at_folder(file.parent, _TIMEOUT_MS / 1000) if is_in_line else nullcontext():
            db.execute("BEGIN IMMEDIATE")
            for sql, record in (
                ("INSERT INTO episodes VALUES (?, ?)", episode),
                ("INSERT INTO events VALUES (?, ?)", event),
            ):
                db.execute(sql, (record.id, json.dumps(to_plain(record), ensure_ascii=False)))
            db.execute("COMMIT")

    return write


def _count_stored(file: Path) -> int:
    db = apsw.Connection(str(file))
    (count,) = next(iter(db.execute("SELECT count(*) FROM events WHERE id NOT LIKE 'run--1-%'")))
    db.close()
    return int(count)


def _print_table(found: dict[str, list[list[float]]], errors: int, lost: int) -> bool:
    print(f"{'':<16}{'commits':>9}{'p50 ms':>9}{'p95':>9}{'p99':>9}{'worst':>9}   p99, rounds")
    p99s = {}
    for kind, rounds in found.items():
        cuts = [quantiles(each, n=100) for each in rounds]
        p99s[kind] = [cut[98] for cut in cuts]
        told = [median(cut[at] for cut in cuts) for at in (49, 94, 98)]
        worst = max(max(each) for each in rounds)
        numbers = "".join(f"{value:>9.1f}" for value in (*told, worst))
        print(f"{kind:<16}{sum(map(len, rounds)):>9}{numbers}   {_spread(p99s[kind])}")
    found_ratios = {}
    for bare in KINDS[1:]:
        ratios = [ours / theirs for ours, theirs in zip(p99s["bank"], p99s[bare], strict=True)]
        found_ratios[bare] = median(ratios)
        print(f"p99 of the bank / p99 of {bare}: {median(ratios):.2f} ({_spread(ratios)})")
    print(f"bars: {BAR:.0f} times bare SQLite in line; {errors} errors and {lost} lost commits of none")
    return found_ratios["bare, in line"] <= BAR and not errors and not lost


def _spread(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


if __name__ == "__main__":
    sys.exit(main())
