"""Time the cross-run loop: extraction against many lessons, and a brief from a cold process.

Each figure stands beside an alternative measured in the same run: comparing every finding with every
lesson, and a bare Python process that asks SQLite one question. CPU time, best and worst of the rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from pathlib import Path

from archivist import Bank
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Episode, Event, EventKind, Finding, Lesson, Severity

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXTRACT_BAR_S = 2.0
BRIEF_BAR_MS = 100.0


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=10_000)
    parser.add_argument("--findings", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    words = _vocabulary(5_000)
    with tempfile.TemporaryDirectory() as folder:
        # The bank is trusted where it is made.
        os.environ["ARCHIVIST_HOME"] = str(Path(folder) / "home")
        bank, lessons = _bank(Path(folder), words, options.lessons)
        findings = _findings(words, lessons, options.findings)
        extract_s = _extract(bank, findings, "bench")
        again_s = _extract(bank, findings, "again")
        pairs_s = _all_pairs(lessons, findings[: max(1, options.findings // 20)]) * 20
        bank.close()
        brief = _cold([_script(), "brief", "--domain", "code"], folder, options.rounds)
        bare = _cold([sys.executable, "-c", _BARE], folder, options.rounds)
    print(f"{options.lessons} lessons, {options.findings} findings, CPU time, {options.rounds} rounds")
    print(f"{'what':<48}{'best':>10}{'worst':>10}{'bar':>10}")
    print(f"{'extract, indexed':<48}{extract_s:>9.2f}s{'':>10}{EXTRACT_BAR_S:>9.1f}s")
    print(f"{'extract, all met again':<48}{again_s:>9.2f}s{'':>10}{EXTRACT_BAR_S:>9.1f}s")
    print(f"{'extract, every pair compared (5 % sampled)':<48}{pairs_s:>9.2f}s")
    print(f"{'brief, cold process':<48}{brief[0]:>8.0f}ms{brief[1]:>8.0f}ms{BRIEF_BAR_MS:>8.0f}ms")
    print(f"{'bare python, one SQLite query':<48}{bare[0]:>8.0f}ms{bare[1]:>8.0f}ms")
    return 0 if max(extract_s, again_s) <= EXTRACT_BAR_S and brief[0] <= BRIEF_BAR_MS else 1


_BARE = (
    "import sqlite3; db = sqlite3.connect('.archivist/memory.db');"
    "print(db.execute('SELECT count(*) FROM briefs').fetchone())"
)


def _script() -> str:
    return str(Path(sys.executable).parent / "archivist")


def _vocabulary(size: int) -> list[str]:
    source = random.Random(7)
    return [
        "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(4, 9))) for _ in range(size)
    ]


def _text(words: list[str], source: random.Random) -> str:
    # Few words make up most of any text: the most common one is in about every tenth, as in real findings.
    weights = _weights(len(words))
    return " ".join(source.choices(words, cum_weights=weights, k=source.randint(6, 14)))


@cache
def _weights(size: int) -> list[float]:
    return list(accumulate(1 / (rank + 20) for rank in range(size)))


def _bank(folder: Path, words: list[str], count: int) -> tuple[Bank, list[Lesson]]:
    source = random.Random(11)
    bank = Bank.open(folder, create=True)
    first = bank.lessons.add("seed", type="pattern")
    lessons = []
    with bank.transaction() as writer:
        for number in range(2, count + 1):
            runs = tuple(sorted(f"run-{source.randint(0, 500)}" for _ in range(source.randint(1, 6))))
            lesson = replace(
                first,
                id=f"{number:026d}",
                number=writer.next_number(),
                summary=_text(words, source),
                tags=(),
                runs=tuple(sorted(set(runs))),
                domain=source.choice(["code", "writing", "general"]),
            )
            lessons.append(lesson)
            writer.put(lessons[-1], "import")
    return bank, lessons


def _findings(words: list[str], lessons: list[Lesson], count: int) -> list[Finding]:
    source = random.Random(13)
    known = [each.summary for each in source.sample(lessons, count // 2)]
    fresh = [_text(words, source) for _ in range(count - len(known))]
    return [Finding(description=text, severity=Severity.WARNING) for text in (*known, *fresh)]


def _extract(bank: Bank, findings: list[Finding], run: str) -> float:
    event = Event(run=run, seq=1, kind=EventKind.VERDICT, findings=tuple(findings))
    bank.capture(Episode(id=run), [event])
    return _cpu(lambda: bank.reflections.extract(run))


def _all_pairs(lessons: list[Lesson], findings: list[Finding]) -> float:
    known = [keywords(lesson.summary) for lesson in lessons]
    rule = Overlap()

    def compare() -> None:
        for finding in findings:
            said = keywords(finding.description)
            for words in known:
                matches(said, words, frozenset(), rule)

    return _cpu(compare)


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _cold(command: list[str], folder: str, rounds: int) -> tuple[float, float]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    spent = []
    for _ in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return min(spent[1:]), max(spent[1:])


if __name__ == "__main__":
    sys.exit(main())
