"""Time hooks from a cold process on a bank of many lessons, beside a bare Python that asks SQLite once.

    python bench/doors_hooks.py [--lessons 10000] [--rounds 15]

CPU milliseconds, best and median of the rounds, taken in turns so that all meet the same machine; the bars
are held against the best. Compiled bytecode is used, as on any machine that ran the command before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from archivist import Bank
from archivist.reading.failures import detect_failure, failure_key
from archivist.records import Actor, ActorKind, Episode, Lesson, Status
from archivist.records.words import NOTES

MATCH_BAR_MS = 80.0
SILENT_BAR_MS = 60.0
RUNS = 200
MISSING = "Exit code 1\nE   ModuleNotFoundError: No module named '{}'"
_BARE = """\
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("SELECT rowid FROM texts WHERE texts MATCH 'word17' ORDER BY rank LIMIT 5").fetchall())
"""
# What reflection notes of a middling run: 4,500 characters.
_NOTES = {
    "attempts": {f"make step-{number}": {"ok": 3, "failed": 1, "seconds": 2.5} for number in range(40)},
    "passed": [f"pytest tests/test_word{number}.py" for number in range(12)],
    "works": [
        *(["one test", f"pytest tests/unit{number} -k <test>", "", 1, 0] for number in range(10)),
        ["test", "make test", "", 2, 0],
        ["lint", "make lint", "", 2, 0],
        ["build", "pnpm build", "web", 1, 0],
    ],
    "tests": [
        *(["pytest -k <test>", "", [f"word{number}"], 6, 0, [], False] for number in range(9)),
        ["make test", "", [], 45, 1, [["a word waits", "assertion", "word-waits"]], False],
    ],
}
_PLAIN = "a bare Python, sqlite3, one FTS5 query"


class Case(NamedTuple):
    """One thing that is timed: its command, what it reads, whether it must say something, its bar."""

    name: str
    command: Sequence[str]
    event: dict[str, object]
    says: bool | None
    bar_ms: float


def main() -> int:
    """Print the table; return 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # The user's own home is left alone, and notes of many other banks are not timed.
        os.environ["ARCHIVIST_HOME"] = str(Path(folder) / "home")
        found = measure(Path(folder), options.lessons, options.rounds)
    heading = f"CPU ms on {options.lessons:,} lessons"
    print(f"{heading:<48}{'best':>8}{'median':>8}{'most':>8}{'bar':>8}{'of bare':>8}")
    bare = min(found[_PLAIN][0])
    missed = 0
    for name, (spent, bar) in found.items():
        best = min(spent)
        missed += bool(bar) and best > bar
        shown = f"{bar:>8.0f}" if bar else " " * 8
        print(f"{name:<48}{best:>8.0f}{median(spent):>8.0f}{max(spent):>8.0f}{shown}{best / bare:>8.1f}")
    return 1 if missed else 0


def measure(folder: Path, lessons: int, rounds: int) -> dict[str, tuple[list[float], float]]:
    """Return the CPU time of every round of every case, and its bar."""
    place = folder / "shop"
    _fill(place, lessons)
    plain = _fill_plain(folder / "plain.db", lessons)
    hook = [str(Path(sys.executable).parent / "archivist"), "hook", "claude-code"]
    said: dict[str, object] = {"cwd": str(place), "transcript_path": ""}
    failure = {"tool_name": "Bash", "tool_input": {"command": "make test"}}
    cases = [
        Case(_PLAIN, [sys.executable, "-c", _BARE, str(plain)], {}, None, 0),
        Case("session start, a new run recorded", [*hook, "session-start"], said, True, MATCH_BAR_MS),
        Case(
            "prompt that brings something up",
            [*hook, "prompt"],
            {**said, "prompt": "please look at word17 word18 word19 word20"},
            True,
            MATCH_BAR_MS,
        ),
        Case(
            "prompt that brings nothing up",
            [*hook, "prompt"],
            {**said, "prompt": "quite something else entirely"},
            False,
            SILENT_BAR_MS,
        ),
        Case(
            "error that earlier runs met",
            [*hook, "tool-failure"],
            {**said, **failure, "error": MISSING.format("word16")},
            True,
            MATCH_BAR_MS,
        ),
        Case(
            "error that nobody met",
            [*hook, "tool-failure"],
            {**said, **failure, "error": "Exit code 2\nzsh: segmentation violation at 0x7f, core kept"},
            False,
            SILENT_BAR_MS,
        ),
        Case(
            "end of a session, handed over",
            [*hook, "session-end"],
            {**said, "cwd": "/"},
            False,
            SILENT_BAR_MS,
        ),
    ]
    found: dict[str, tuple[list[float], float]] = {case.name: ([], case.bar_ms) for case in cases}
    for turn in range(rounds + 1):
        for case in cases:
            spent = _spent(case, turn)
            if turn:
                found[case.name][0].append(spent)
    return found


def _spent(case: Case, turn: int) -> float:
    # Clients name their sessions by such ids.
    event = {**case.event, "session_id": str(uuid5(NAMESPACE_URL, f"{case.name}-{turn}"))}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        case.command, input=json.dumps(event).encode(), capture_output=True, env=environment, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if case.says is not None:
        assert bool(done.stdout) is case.says, (case.name, done.stdout)
    return 1_000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _fill(place: Path, count: int) -> None:
    """Make a bank of one project with many lessons, met in some of its runs, some of them about failures."""
    with Bank.open(place, create=True) as bank:
        _write(bank, count)
        # As a bank is found after any session: with its vectors.
        list(bank.vectors.embed_waiting())


def _write(bank: Bank, count: int) -> None:
    draw = random.Random(8)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    words = [f"word{number}" for number in range(3_000)]
    met = detect_failure("Bash", "make test", None, True, MISSING.format("word1"))
    assert met is not None
    with bank.transaction() as writer:
        for number in range(RUNS):
            ended = start + timedelta(hours=number)
            run = Episode(
                id=f"run-{number}", project="shop", started=ended, finished=ended, extra={NOTES: _NOTES}
            )
            writer.put(run, "capture")
        for number in range(count):
            seen = draw.randrange(RUNS)
            name = words[number % len(words)]
            is_failure = number % 4 == 0
            summary = f"shop: `{name}` is not installed: `pip install {name}`"
            writer.put(
                Lesson(
                    id=f"lesson-{number:06d}",
                    number=number + 1,
                    created=start,
                    updated=start,
                    edited=start,
                    summary=summary if is_failure else " ".join(draw.choices(words, k=9)),
                    rule="" if is_failure else "IF it happens THEN do that",
                    repo="shop",
                    signature=f"shop|{failure_key(met)}" if is_failure else "",
                    remedies=(f"pip install {name}",) if is_failure else (),
                    importance=draw.random(),
                    runs=tuple(f"run-{draw.randrange(RUNS)}" for _ in range(draw.randrange(1, 6))),
                    last_seen=start + timedelta(hours=seen),
                    unseen_from=seen,
                    status=draw.choice((Status.ACTIVE, Status.ACTIVE, Status.CANDIDATE)),
                    actor=Actor(ActorKind.ARCHIVIST),
                ),
                "reflect",
            )
        writer.put(
            Lesson(
                id="lesson-known", number=count + 1, created=start, updated=start, edited=start,
                summary="word17 word18 word19 word20 go together", repo="shop", runs=("run-1", "run-2"),
                last_seen=start, status=Status.ACTIVE, actor=Actor(ActorKind.HUMAN),
            ),
            "add",
        )  # fmt: skip


def _fill_plain(path: Path, count: int) -> Path:
    draw = random.Random(8)
    with sqlite3.connect(path) as db:
        db.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
        rows = ((" ".join(f"word{draw.randrange(3_000)}" for _ in range(12)),) for _ in range(count))
        db.executemany("INSERT INTO texts VALUES (?)", rows)
    db.close()
    return path


if __name__ == "__main__":
    sys.exit(main())
