"""Measure recall as a bank grows: build time, disk, memory, and the CPU time of a question, warm and cold.

Every size is built and asked in a process of its own. Beside ours, in the same run, stand the two obvious
ways: FTS5 with every word of the question, and an exact scan of all vectors as floats. One BLAS thread.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import apsw
import click

from archivist import Bank
from archivist.config import Config, RecallRules
from archivist.recall.embedders.static import BUNDLED, HEADER, StaticEmbedder
from archivist.recall.query import Query
from archivist.records import Episode, Event, EventKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = 1000
TOOLS = 100
# CPU milliseconds to hold: warm hybrid p95, with a 1 % filter, and a cold process.
BARS = {(100_000, "hybrid"): 10.0, (1_000_000, "hybrid"): 40.0, (1_000_000, "hybrid, 1 %"): 5.0}
COLD_BAR = (100_000, 150.0)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Text:
    """Words by a Zipf law, with the little ones between them, as people write."""

    words: list[str]
    weights: list[float]
    chance: random.Random

    def sentence(self, length: int) -> str:
        """Return so many words."""
        return " ".join(self.chance.choices(self.words, cum_weights=self.weights, k=length))


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--cold", type=int, default=9, help="rounds of a cold process")
    parser.add_argument("--folder", type=Path, help="keep the banks here and use them again")
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument(
        "--banks", type=int, default=100, help="banks on both engines, with --engine postgres"
    )
    parser.add_argument("--rows", type=int, default=1_000, help="records of each of them")
    parser.add_argument("--large", type=int, default=40_000, help="records of one more bank")
    parser.add_argument(
        "--server", default="", help="a PostgreSQL database; banks that it has are used again"
    )
    parser.add_argument("--growth", default="", help="only a server, asked at these numbers of banks: 10,100")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.folder, options.queries, options.cold)))
        return 0
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        if options.growth:
            from bench.scale_postgres import measure_growth

            counts = [int(count) for count in options.growth.split(",")]
            lines = measure_growth(counts, options.rows, options.queries, options.server)
        elif options.engine == "postgres":
            from bench.scale_postgres import compare_engines

            lines = compare_engines(
                options.banks, options.rows, options.large, options.queries, options.server, folder
            )
        else:
            found = {size: _apart(size, folder, options.queries, options.cold) for size in sizes}
            lines = list(_table(found, options.queries))
    print("\n".join(lines))
    if options.write:
        options.write.write_text("\n".join([f"$ python {' '.join(sys.argv)}", *lines, ""]), encoding="utf-8")
    return 1 if any(line.endswith("MISSED") for line in lines) else 0


def _apart(size: int, folder: Path, queries: int, cold: int) -> dict[str, float]:
    command = [
        sys.executable, __file__, "--one", str(size), "--folder", str(folder),
        "--queries", str(queries), "--cold", str(cold),
    ]  # fmt: skip
    environment = {**os.environ, **ONE_THREAD}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(size: int, folder: Path, queries: int, rounds: int) -> dict[str, float]:
    """Build a bank of so many records, or open the one that is there, and ask it."""
    place = folder / f"bank-{size}"
    found: dict[str, float] = {}
    built = place / "built.json"
    if not built.is_file():
        built.write_text(json.dumps(_build(place, size)), encoding="utf-8")
    found |= json.loads(built.read_text("utf-8"))
    found["a million additions ms"] = measure_pace()
    found["disk MB"] = sum(file.stat().st_size for file in (place / ".archivist").iterdir()) / 1e6
    begin = time.process_time()
    bank = Bank.open(place, create=False)
    with bank.reading() as reader:
        reader.queued_runs()
    found["open ms"] = (time.process_time() - begin) * 1e3
    asked = random_questions(random_text(size), queries)
    words = Bank.open(place, create=False, config=Config(recall=RecallRules(embedder="none")))
    found |= _timed("lexical", lambda text: words.recall(Query(text=text)), asked)
    found |= _timed("hybrid", lambda text: bank.recall(Query(text=text)), asked)
    tools = [f"tool-{number:02d}" for number in range(TOOLS)]
    few = iter([tools[at % 5] for at in range(queries * 2 + 8)])
    found |= _timed("hybrid, 1 %", lambda text: bank.recall(Query(text=text, tool=next(few))), asked)
    found |= _vector(bank, asked)
    found["memory MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    found["vector recall@10"] = _exactness(bank, asked[:50])
    found |= _alternatives(place, asked, size)
    bank.close()
    words.close()
    found |= _cold(place, asked, rounds)
    return found


def measure_pace() -> float:
    """Time a loop that does nothing, to tell a slow minute of the machine from a slow program."""
    begin, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return (time.process_time() - begin) * 1e3


def _build(place: Path, size: int) -> dict[str, float]:
    text = random_text(size)
    begin = time.process_time()
    bank = Bank.open(place, create=True)
    with click.progressbar(length=size, label=f"{size} records", file=sys.stderr) as bar:
        for number in range(0, size, RUN):
            run = f"run-{number // RUN:06d}"
            when = NOW - timedelta(hours=(size - number) // RUN)
            bank.capture(
                Episode(id=run, started=when, finished=when), random_events(text, run, when, min(RUN, size))
            )
            bar.update(min(RUN, size))
    stored = time.process_time()
    done = 0
    with click.progressbar(length=bank.vectors.count_unembedded(), label="vectors", file=sys.stderr) as bar:
        for made in bank.vectors.embed_waiting():
            bar.update(made - done)
            done = made
    bank.close()
    return {"store s": stored - begin, "embed s": time.process_time() - stored}


def random_events(text: Text, run: str, when: datetime, count: int) -> Iterator[Event]:
    """Yield the events of a run."""
    for seq in range(1, count + 1):
        yield Event(
            run=run,
            seq=seq,
            kind=EventKind.MESSAGE,
            tool=f"tool-{text.chance.randrange(TOOLS):02d}",
            time=when,
            text=text.sentence(text.chance.randint(6, 30)),
        )


def random_text(seed: int) -> Text:
    """Return a source of text in the table's own words, the commonest first as the table has them."""
    little = [
        "the",
        "a",
        "of",
        "to",
        "and",
        "in",
        "is",
        "it",
        "that",
        "for",
        "on",
        "with",
        "as",
        "was",
        "at",
        "by",
        "this",
        "not",
        "from",
        "or",
        "we",
        "be",
        "are",
        "have",
    ]
    pieces = [word for word in _pieces() if word.isalpha() and word.isascii() and len(word) > 3]
    random.Random(7).shuffle(pieces)
    words = [*little, *pieces[:20_000]]
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    return Text(words, weights, random.Random(seed))


def _pieces() -> Iterator[str]:
    data = BUNDLED.read_bytes()
    _, _, rows, _, size = HEADER.unpack_from(data)
    ends = struct.unpack_from(f"<{rows}I", data, HEADER.size)
    vocabulary = data[HEADER.size + 8 * rows :][:size]
    for start, end in pairwise((0, *ends)):
        yield vocabulary[start:end].decode()


def random_questions(text: Text, count: int) -> list[str]:
    """Return questions in the words of a source."""
    chance = random.Random(11)
    source = replace(text, chance=chance)
    return [f"how do {source.sentence(chance.randint(4, 9))}?" for _ in range(count)]


def _timed(name: str, ask: Callable[[str], object], asked: Sequence[str]) -> dict[str, float]:
    for text in asked[:8]:
        ask(text)
    spent = []
    for text in asked:
        begin = time.process_time()
        ask(text)
        spent.append((time.process_time() - begin) * 1e3)
    cuts = quantiles(spent, n=20)
    return {f"{name} p50 ms": cuts[9], f"{name} p95 ms": cuts[18]}


def _vector(bank: Bank, asked: Sequence[str]) -> dict[str, float]:
    from archivist.store.results import SearchFilter

    embedder = StaticEmbedder()

    def ask(text: str) -> object:
        with bank.reading() as reader:
            query = embedder.embed_query(text)
            return reader.nearest(query, embedder.name, search_filter=SearchFilter(), limit=10)

    return _timed("vector", ask, asked)


def _exactness(bank: Bank, asked: Sequence[str]) -> float:
    """Return the share of the truly nearest ten that the scan finds."""
    import numpy as np

    from archivist.store.results import SearchFilter

    embedder = StaticEmbedder()
    rows = _halves(bank.path)
    hits = 0
    for text in asked:
        query = embedder.embed_query(text)
        exact = rows @ np.asarray(query, np.float32)
        tenth = np.sort(exact)[-10]
        with bank.reading() as reader:
            near = reader.nearest(query, embedder.name, search_filter=SearchFilter(), limit=10)
        hits += sum(hit.score >= tenth - 1e-3 for hit in near)
    return hits / (10 * len(asked))


def _halves(path: Path) -> NDArray[np.float32]:
    """Return every vector as floats."""
    import numpy as np

    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    parts: list[Any] = [row for (row,) in db.execute("SELECT row FROM vector_halves ORDER BY id")]
    return np.frombuffer(b"".join(parts), "<f2").reshape(len(parts), -1).astype(np.float32)


def _alternatives(place: Path, asked: Sequence[str], size: int) -> dict[str, float]:
    """Time the obvious: every word in FTS5, and every vector as floats."""
    import numpy as np

    path = place / ".archivist" / "memory.db"
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    few = asked[: max(10, min(len(asked), 20_000_000 // size))]

    def every_word(text: str) -> object:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(text.rstrip("?").split()))
        sql = "SELECT rowid FROM search WHERE search MATCH ? ORDER BY bm25(search, 1.0, 0.0) LIMIT 10"
        return db.execute(sql, (f"text : ({match})",)).fetchall()

    found = _timed("every word in FTS5", every_word, few)
    embedder = StaticEmbedder()
    rows = _halves(path)

    def every_vector(text: str) -> object:
        return np.argpartition(-(rows @ np.asarray(embedder.embed_query(text), np.float32)), 10)[:10]

    return found | _timed("every vector as floats", every_vector, few)


def _cold(place: Path, asked: Sequence[str], rounds: int) -> dict[str, float]:
    script = str(Path(sys.executable).with_name("archivist"))
    spent = []
    for text in asked[:rounds]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([script, "recall", text, "--json"], cwd=place, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return {"cold best ms": min(spent), "cold worst ms": max(spent)} if spent else {}


def _table(found: dict[int, dict[str, float]], queries: int) -> Iterator[str]:
    sizes = sorted(found)
    yield f"{queries} questions a size, CPU time, one BLAS thread, each size in a process of its own"
    yield f"{'':<32}" + "".join(f"{size:>12,}" for size in sizes) + f"{'growth':>10}{'bar':>24}"
    for name in dict.fromkeys(name for each in found.values() for name in each):
        row = [found[size].get(name) for size in sizes]
        cells = "".join(f"{'':>12}" if value is None else f"{value:>12,.3g}" for value in row)
        ends = [value for value in row if value]
        growth = f"{ends[-1] / ends[0]:>9.1f}x" if len(ends) > 1 else f"{'':>10}"
        yield f"{name:<32}{cells}{growth}{_bar(name, found)}".rstrip()


def _bar(name: str, found: dict[int, dict[str, float]]) -> str:
    bars = {size: bar for (size, what), bar in BARS.items() if name == f"{what} p95 ms" and size in found}
    if name == "cold best ms" and COLD_BAR[0] in found:
        bars = {COLD_BAR[0]: COLD_BAR[1]}
    if not bars:
        return ""
    is_missed = any(found[size][name] > bar for size, bar in bars.items())
    told = ", ".join(f"{bar:g} at {size:,}" for size, bar in bars.items())
    return f"{told:>26}{' MISSED' if is_missed else ''}"


if __name__ == "__main__":
    sys.exit(main())
