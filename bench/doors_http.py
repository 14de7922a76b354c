"""Measure the HTTP door: briefs at a steady rate on a large bank, then all there is, with writes among it.

The client is a process of its own and sends by the clock, not when the last answer came: a slow answer makes
the next ones late, and that counts. Beside ours, in the same run, stands the plainest server there is: the
standard library's, one bank behind a lock, no tokens, no checks. CPU is the server's own, by request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles
from threading import Lock
from urllib.parse import quote

from archivist import Bank
from archivist.records import Actor, ActorKind

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.scale import random_text as make_text

ADA = Actor(ActorKind.HUMAN, "ada")
P99_BAR_MS = 50.0
CONNECTIONS = 32
REPOS = 20
LISTENERS = 1_000
IDLE_S = 10.0
HZ = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """What was sent, how long each answer took from when it was due, and what it cost the server."""

    latencies_ms: list[float]
    statuses: Counter[int]
    cpu_ms: float

    @property
    def p50(self) -> float:
        """Return the middle latency."""
        return median(self.latencies_ms)

    @property
    def p99(self) -> float:
        """Return the latency that one in a hundred exceeds."""
        return quantiles(self.latencies_ms, n=100)[98]

    @property
    def errors(self) -> int:
        """Return how many answers were none."""
        return sum(count for status, count in self.statuses.items() if not 200 <= status < 300)


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=100_000)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of the heavy load; the steady one a third"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the steady load, for the spread")
    parser.add_argument("--folder", type=Path, help="keep the bank here and use it again")
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        return _serve_plainly(options.plain)
    if options.client:
        return _send_all(options.client[0], json.loads(options.client[1]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        _fill(folder, options.lessons)
        lines, is_ok = _measured(folder, options)
    text = "\n".join([f"$ {_command()}", *lines, "ok" if is_ok else "a bar is missed"]) + "\n"
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return 0 if is_ok else 1


def _command() -> str:
    return " ".join(["python bench/doors_http.py", *sys.argv[1:]])


def _measured(folder: Path, options: argparse.Namespace) -> tuple[list[str], bool]:
    seconds = options.seconds / 3
    lines = [
        f"{options.lessons:,} lessons; latency in ms from when a request was due; CPU of the server in ms",
        f"{'':<34}{'requests':>9}{'p50':>8}{'p99':>8}{'p99, rounds':>18}{'CPU each':>10}{'errors':>8}",
    ]
    steady: dict[str, list[Load]] = {"plain": [], "ours": []}
    with _plain(folder) as plain, _ours(folder) as ours:
        for _ in range(options.rounds):
            # By turns, so that a busy minute of the machine falls on both.
            steady["plain"].append(_loaded(plain, "brief", 50, seconds / options.rounds))
            steady["ours"].append(_loaded(ours, "brief", 50, seconds / options.rounds))
    for name, loads in steady.items():
        lines.append(_row(f"brief, 50 a second, {name}", loads))
    with _ours(folder) as ours:
        lines.append(_idle(ours))
    with _ours(folder) as ours:
        heavy = _loaded(ours, "mixed", 200, options.seconds)
    lines.append(_row("mixed, 200 a second, one in twenty writes", [heavy]))
    p99 = median(load.p99 for load in steady["ours"])
    errors = heavy.errors + sum(load.errors for load in steady["ours"])
    lines.append(f"bars: brief p99 {p99:.1f} of at most {P99_BAR_MS:.0f} ms, {errors} errors of none")
    return lines, p99 <= P99_BAR_MS and not errors


def _idle(server: Server) -> str:
    """Let a thousand listen to nothing; return what that costs."""
    _raise_file_limit()
    before_kb = server.resident_kb()
    request = _bytes("GET", "/api/events", None, server.token)
    lines = []
    for _ in range(LISTENERS):
        line = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        line.sendall(request)
        lines.append(line)
    heard = sum(line.recv(4096).startswith(b"HTTP/1.1 200") for line in lines)
    time.sleep(2)
    began, spent = time.monotonic(), server.cpu_ms()
    time.sleep(IDLE_S)
    share = (server.cpu_ms() - spent) / 1000 / (time.monotonic() - began)
    each_kb = (server.resident_kb() - before_kb) / LISTENERS
    for line in lines:
        line.close()
    return f"{heard} idle listeners: {share:.1%} of a core, {each_kb:.0f} kB each"


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _row(name: str, loads: Sequence[Load]) -> str:
    sent = sum(len(load.latencies_ms) for load in loads)
    p99s = [load.p99 for load in loads]
    spread = f"{min(p99s):.1f} to {max(p99s):.1f}" if len(loads) > 1 else "-"
    cpu = sum(load.cpu_ms for load in loads) / sent
    p50, p99 = median(load.p50 for load in loads), median(p99s)
    errors = sum(load.errors for load in loads)
    return f"{name:<34}{sent:>9}{p50:>8.1f}{p99:>8.1f}{spread:>18}{cpu:>10.2f}{errors:>8}"


# The bank


def _fill(folder: Path, lessons: int) -> None:
    """Make a bank of a project with some repositories, its lessons met by few runs or many."""
    text, chance = make_text(3), random.Random(7)
    with Bank.open(folder, actor=ADA, create=True) as bank:
        there = bank.doctor.status()["active_lessons"]
        while there < lessons:
            batch = min(5_000, lessons - there)
            with bank.transaction():
                for number in range(there, there + batch):
                    met = tuple(f"run-{chance.randrange(5_000)}" for _ in range(int(chance.paretovariate(1))))
                    bank.lessons.add(  # type: ignore[call-arg]
                        text.sentence(14),
                        repo=f"repo-{number % REPOS}",
                        importance=chance.random(),
                        runs=met[:50],
                    )
            there += batch
        for _ in bank.vectors.embed_waiting():
            pass


# The servers


class Server:
    """A server that runs: its process, and the headers that let a client in."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, token: str) -> None:
        self.process = process
        self.url = url
        self.token = token

    def resident_kb(self) -> int:
        """Return how much memory the process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024

    def cpu_ms(self) -> float:
        """Return what the process has spent."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / HZ


@contextmanager
def _ours(folder: Path) -> Iterator[Server]:
    with Bank.open(folder, actor=ADA, create=True) as bank:
        token = bank.tokens.create("orchestrator:bench").secret
    words = ["--bank", str(folder), "serve", "--port", "0"]
    with _running([str(Path(sys.executable).parent / "archivist"), *words, "--quiet"]) as (process, url):
        yield Server(process, url, token)


@contextmanager
def _plain(folder: Path) -> Iterator[Server]:
    with _running([sys.executable, __file__, "--plain", str(folder)]) as (process, url):
        yield Server(process, url, "none")


@contextmanager
def _running(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _serve_plainly(folder: Path) -> int:
    bank, lock = Bank.open(folder, actor=ADA, create=True), Lock()

    class Handler(BaseHTTPRequestHandler):
        """Answer every request with a brief."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            """Say the brief."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                told = bank.brief(task=body["task"], repo=body["repo"])
                lessons = bank.lessons.views([each.lesson for each in told.chosen])
            answer = json.dumps({"text": told.text, "lessons": lessons}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_words: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
    return 0


# The client


def _loaded(server: Server, kind: str, per_second: int, seconds: float) -> Load:
    """Let a client of its own send; warm the server with a few requests before it counts."""
    _sent(server, kind, 10, 2.0)
    before = server.cpu_ms()
    latencies, statuses = _sent(server, kind, per_second, seconds)
    return Load(latencies, statuses, server.cpu_ms() - before)


def _sent(server: Server, kind: str, per_second: int, seconds: float) -> tuple[list[float], Counter[int]]:
    asked = json.dumps({"kind": kind, "rate": per_second, "seconds": seconds, "token": server.token})
    done = subprocess.run(
        [sys.executable, __file__, "--client", server.url, asked], stdout=subprocess.PIPE, check=True
    )
    told = json.loads(done.stdout)
    return told["latencies"], Counter({int(status): count for status, count in told["statuses"].items()})


def _send_all(url: str, asked: dict[str, float | str]) -> int:
    host, _, port = url.partition("//")[2].partition(":")
    make = {"brief": _brief, "mixed": _mixed}[str(asked["kind"])]
    text = make_text(int(time.time()))
    count = int(float(asked["rate"]) * float(asked["seconds"]))
    requests = [
        _bytes(*make(number, lambda: text.sentence(8)), str(asked["token"])) for number in range(count)
    ]
    latencies, statuses = asyncio.run(_play(host, int(port), requests, float(asked["rate"])))
    print(json.dumps({"latencies": latencies, "statuses": statuses}))
    return 0


Made = tuple[str, str, dict[str, object] | None]


def _brief(number: int, words: Callable[[], str]) -> Made:
    return "POST", "/api/brief", {"task": words(), "repo": f"repo-{number % REPOS}"}


def _mixed(number: int, words: Callable[[], str]) -> Made:
    """Return what a busy house asks: briefs, searches, lists, and one write in twenty."""
    kinds: list[Callable[[], Made]] = [
        lambda: _brief(number, words),
        lambda: ("GET", f"/api/recall?limit=5&query={quote(words())}", None),
        lambda: ("GET", f"/api/lessons?limit=10&repo=repo-{number % REPOS}", None),
        lambda: ("GET", "/api/memory/knowledge?category=convention", None),
        lambda: ("GET", "/api/memory/episodes?agent_id=kit&action=failed", None),
        lambda: ("GET", "/api/stream", None),
        lambda: ("GET", "/api/core", None),
        lambda: ("GET", f"/api/lessons/m-{number % 1000 + 1:03d}", None),
        lambda: ("GET", "/api/memory/artifacts?type=test", None),
        lambda: _write(number),
    ]
    return kinds[number % len(kinds)]()


def _write(number: int) -> Made:
    if number % 20 < 10:
        return "POST", "/api/stream", {"action": f"did number {number}", "importance": 5}
    fact = {"category": "convention", "key": f"key-{number % 50}", "value": f"value {number}"}
    return "POST", "/api/memory/knowledge", dict(fact)


def _bytes(method: str, path: str, body: dict[str, object] | None, token: str) -> bytes:
    data = json.dumps(body).encode() if body is not None else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    kind = "Content-Type: application/json\r\n" if data else ""
    return f"{head}{kind}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def _play(
    host: str, port: int, requests: Sequence[bytes], rate: float
) -> tuple[list[float], dict[int, int]]:
    """Send each request when it is due, on whichever connection is free."""
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection(host, port))
    began = time.perf_counter() + 0.1

    async def send(number: int, request: bytes) -> None:
        due = began + number / rate
        await asyncio.sleep(due - time.perf_counter())
        line = await free.get()
        line[1].write(request)
        statuses[await _status(line[0])] += 1
        latencies.append((time.perf_counter() - due) * 1000)
        free.put_nowait(line)

    await asyncio.gather(*(send(number, request) for number, request in enumerate(requests)))
    return latencies, dict(statuses)


async def _status(answer: asyncio.StreamReader) -> int:
    head = await answer.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length"))
    await answer.readexactly(length)
    return int(lines[0].split()[1])


if __name__ == "__main__":
    sys.exit(main())
