"""Measure many banks in one PostgreSQL database beside as many SQLite files: loading, recall, exactness.

Every bank holds as many records, so each is a small part of the whole. One more, larger bank is above the
number of vectors that are compared one by one, and is searched through the HNSW index. One process, one
thread; wall time, and beside it the CPU time of client and server, which a busy machine changes less.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

import psycopg
from bench.scale import NOW, RUN, Text, measure_pace, random_events, random_questions, random_text
from psycopg.conninfo import conninfo_to_dict

from archivist import Bank
from archivist.config import Config, RecallRules
from archivist.recall.embedders.static import StaticEmbedder
from archivist.recall.query import Query
from archivist.records import Episode
from archivist.store.postgres.maintenance import set_up_server
from archivist.store.results import SearchFilter, scope_token

# Wall milliseconds and rows to hold, from the plan: p50 in a small bank by words and by both, rows a second,
# and the share of the exact ten.
BARS = {
    "lexical p50 ms": ("<=", 15.0),
    "hybrid p50 ms": ("<=", 25.0),
    "load rows/s": (">=", 10_000.0),
    "recall@10": (">=", 0.97),
}
ServerCpu = Callable[[], float]
_FILTERS = {
    "none": SearchFilter(),
    "a tool, 1 %": SearchFilter(groups=((scope_token("tool", "tool-01"),),)),
    "ten tools, 10 %": SearchFilter(
        groups=(tuple(scope_token("tool", f"tool-{number:02d}") for number in range(10)),)
    ),
    "since, half": SearchFilter(since=NOW - timedelta(hours=20)),
    "a tool since, 0.5 %": SearchFilter(
        groups=((scope_token("tool", "tool-01"),),), since=NOW - timedelta(hours=20)
    ),
}


def compare_engines(banks: int, rows: int, large: int, queries: int, server: str, folder: Path) -> list[str]:
    """Build the banks on both engines, ask them, and return the table."""
    with _server_url(server) as (url, server_cpu):
        places: dict[str, Callable[[str], str | Path]] = {
            "sqlite": lambda name: folder / name,
            "postgres": lambda name: f"{url}#{name}",
        }
        found = {
            engine: _measure(
                place, banks, rows, large, queries, url if engine == "postgres" else "", server_cpu
            )
            for engine, place in places.items()
        }
        with psycopg.connect(url) as connection:
            size = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            version = connection.execute("SHOW server_version").fetchone()
        found["postgres"]["disk MB"] = (size or (0,))[0] / 1e6
        found["sqlite"]["disk MB"] = sum(file.stat().st_size for file in folder.rglob("memory.db*")) / 1e6
    head = (
        f"{banks:,} banks of {rows:,} records and one of {large:,}, {queries} questions, wall time unless"
        f" CPU is said, one thread; PostgreSQL {(version or ('',))[0]} on the same machine, durable,"
        " default settings"
    )
    lines = [head, f"{'':<36}{'sqlite':>12}{'postgres':>12}{'bar':>12}"]
    for name in found["postgres"]:
        cells = "".join(f"{found[engine].get(name, float('nan')):>12,.4g}" for engine in places)
        lines.append(f"{name:<36}{cells.replace('nan', '  -')}{_bar(name, found['postgres'][name])}".rstrip())
    return lines


def measure_growth(counts: Sequence[int], rows: int, queries: int, server: str) -> list[str]:
    """Fill a server with more and more banks; return what loading and asking cost at each count."""
    text, found = random_text(rows), {}
    with _server_url(server) as (url, server_cpu):
        for before, count in pairwise((0, *counts)):
            spent: dict[str, float] = defaultdict(float)
            for number in range(before, count):
                for step, seconds in _build(f"{url}#bank-{number:04d}", text, rows, server_cpu).items():
                    spent[step] += seconds
            built = spent.pop("rows", 0.0)
            column = {"a million additions ms": measure_pace()}
            column |= {f"{step} us/row": seconds / built * 1e6 for step, seconds in spent.items()}
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ANALYZE")
                size = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            column["disk GB"] = (size or (0,))[0] / 1e9
            # Old and new banks alike.
            asked = [f"bank-{number:04d}" for number in range(0, count, max(1, count // 20))]
            place = partial("{}#{}".format, url)
            column |= _ask(place, asked, random_questions(text, queries), "", server_cpu)
            print(f"{count:,} banks:", column, file=sys.stderr, flush=True)
            found[count] = column
    head = (
        f"banks of {rows:,} records with vectors on one PostgreSQL, durable, default settings, {queries}"
        " questions, one thread; loading is of the banks since the column before"
    )
    lines = [head, f"{'banks':<28}" + "".join(f"{count:>10,}" for count in counts)]
    for name in dict.fromkeys(name for column in found.values() for name in column):
        cells = "".join(f"{column.get(name, float('nan')):>10.4g}" for column in found.values())
        lines.append(f"{name:<28}{cells.replace('nan', '  -')}")
    return lines


def _measure(
    place: Callable[[str], str | Path],
    banks: int,
    rows: int,
    large: int,
    queries: int,
    url: str,
    server_cpu: ServerCpu,
) -> dict[str, float]:
    names = [f"bank-{number:04d}" for number in range(banks)]
    text = random_text(rows)
    found = {"a million additions ms": measure_pace()}
    spent: dict[str, float] = defaultdict(float)
    first = max(1, banks // 10)
    for number, name in enumerate(names):
        for step, seconds in _build(place(name), text, rows, server_cpu).items():
            spent[step] += seconds
        if number + 1 == first and spent:
            asked = random_questions(text, queries // 2)
            found |= _ask(place, names[:first], asked, f", {first} banks there", server_cpu)
    if built := spent["rows"]:
        found["load rows/s"] = built / spent["load"]
        found["load with vectors rows/s"] = built / (spent["load"] + spent["embed"])
        for step in ("load", "embed"):
            for side in ("client", "server"):
                found[f"{step}, {side} CPU us/row"] = spent[f"{step} {side}"] / built * 1e6
    found |= _ask(place, names, random_questions(text, queries), "", server_cpu)
    found |= _ask_all(place, names, random_questions(text, 5))
    begin = time.perf_counter()
    _build(place("large"), text, large, server_cpu)
    found["large bank, load s"] = time.perf_counter() - begin
    if url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
        begin = time.perf_counter()
        indexes = set_up_server(url)[1]
        found["large bank, HNSW s"] = time.perf_counter() - begin
        found["large bank, HNSW indexes"] = len(indexes)
    found |= _ask(place, ["large"], random_questions(text, queries // 2), ", large bank", server_cpu)
    with closing(Bank.open(place("large"), create=False)) as bank:
        found |= _exactness(bank, random_questions(text, 30))
    return found


def _build(place: str | Path, text: Text, rows: int, server_cpu: ServerCpu) -> dict[str, float]:
    """Fill a bank that is not; return the seconds of each step, and the CPU seconds of both sides."""

    def moment() -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), server_cpu()

    with closing(Bank.open(place, create=True)) as bank:
        with bank.reading() as reader:
            if reader.document_count() >= rows:
                return {}
        runs = []
        for number in range(0, rows, RUN):
            run, when = f"run-{number // RUN:06d}", NOW - timedelta(hours=(rows - number) // RUN)
            events = list(random_events(text, run, when, min(RUN, rows)))
            runs.append((Episode(id=run, started=when, finished=when), events))
        moments = [moment()]
        for episode, events in runs:
            bank.capture(episode, events)
        moments.append(moment())
        for _ in bank.vectors.embed_waiting():
            pass
        moments.append(moment())
    spent = {"rows": float(rows)}
    for step, before, after in zip(("load", "embed"), moments, moments[1:], strict=False):
        for side, first, last in zip(("", " client", " server"), before, after, strict=True):
            spent[step + side] = last - first
    return spent


def _ask(
    place: Callable[[str], str | Path],
    names: Sequence[str],
    asked: Sequence[str],
    where: str,
    server_cpu: ServerCpu,
) -> dict[str, float]:
    """Ask the banks in turn, each open already, as a server that many share has them."""
    found = {}
    for how, config in (("lexical", Config(recall=RecallRules(embedder="none"))), ("hybrid", Config())):
        opened = [Bank.open(place(name), create=False, config=config) for name in names[:20]]
        for bank in opened:
            bank.recall(Query(text=asked[0]))
        spent = []
        cpu = time.process_time() + server_cpu()
        for number, question in enumerate(asked):
            bank = opened[number % len(opened)]
            begin = time.perf_counter()
            bank.recall(Query(text=question))
            spent.append((time.perf_counter() - begin) * 1e3)
        cpu = time.process_time() + server_cpu() - cpu
        for bank in opened:
            bank.close()
        found[f"{how} p50 ms{where}"] = median(spent)
        found[f"{how} p95 ms{where}"] = quantiles(spent, n=20)[18]
        found[f"{how} mean CPU ms{where}"] = cpu / len(asked) * 1e3
    return found


def _ask_all(
    place: Callable[[str], str | Path], names: Sequence[str], asked: Sequence[str]
) -> dict[str, float]:
    """Ask all banks at once: one after another on files, those that one statement chooses on PostgreSQL."""
    with ExitStack() as opened:
        banks = {name: opened.enter_context(closing(Bank.open(place(name), create=False))) for name in names}
        spent = []
        for question in asked:
            begin = time.perf_counter()
            banks[names[0]].recall_across(banks, Query(text=question))
            spent.append((time.perf_counter() - begin) * 1e3)
    return {f"all {len(names)} banks, p50 ms": median(spent)}


def _exactness(bank: Bank, asked: Sequence[str]) -> dict[str, float]:
    """Return for each filter the share of the truly nearest ten that a search finds, and its p50."""
    embedder, found = StaticEmbedder(), {}
    with bank.reading() as reader:
        every = range(1, reader.document_count() + 1)
        for name, search_filter in _FILTERS.items():
            allowed, hits, of, spent = reader.filter_places(every, search_filter), 0, 0, []
            for question in asked:
                query = embedder.embed_query(question)
                exact = sorted(reader.cosines(query, embedder.name, allowed).values(), reverse=True)[:10]
                begin = time.perf_counter()
                near = reader.nearest(query, embedder.name, search_filter=search_filter, limit=10)
                spent.append((time.perf_counter() - begin) * 1e3)
                hits += sum(hit.score >= exact[-1] - 1e-3 for hit in near)
                of += len(exact)
            found[f"recall@10, {name}"] = hits / of
            found[f"nearest p50 ms, {name}"] = median(spent)
    return found


def _bar(name: str, value: float) -> str:
    bar = BARS.get(name) or (BARS["recall@10"] if name.startswith("recall@10") else None)
    if bar is None:
        return ""
    is_met = value <= bar[1] if bar[0] == "<=" else value >= bar[1]
    return f"{bar[0] + ' ' + format(bar[1], 'g'):>12}{'' if is_met else ' MISSED'}"


@contextmanager
def _server_url(given: str) -> Iterator[tuple[str, ServerCpu]]:
    """Give the URL of a database, and the CPU clock of its server: an empty one on a server of its own."""
    from tests.postgres import Server, new_database

    server = None if given else Server(is_durable=True)
    url = new_database(server.url) if server else given
    # What a server elsewhere has spent cannot be read.
    running = Path(str(conninfo_to_dict(url).get("host"))) / "postmaster.pid"
    first = int(running.read_text().split()[0]) if running.is_file() else 0
    try:
        yield url, partial(_cpu_of_family, first) if first else lambda: 0.0
    finally:
        if server:
            server.delete()


def _cpu_of_family(parent: int) -> float:
    """Return the CPU seconds of a process's children, also of those that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:13])) if int(fields[1]) == parent else 0
        ticks += sum(map(int, fields[13:15])) if int(stat.parent.name) == parent else 0
    return ticks / os.sysconf("SC_CLK_TCK")
