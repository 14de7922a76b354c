"""Time the MCP server over stdio: the handshake of a cold process, and each tool on a bank of many lessons.

Beside ours, in the same run: a bare server of the same SDK with one trivial tool, so that what the SDK costs
is seen apart from what the memory costs. Lines are written and read by hand: no client's time is counted.
Wall time is what a client waits, CPU time what the server spends; the rounds of both take turns. On a busy
machine waiting measures the others: the bars are held by the best handshake, and by the CPU time of a call.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from archivist import Bank
from archivist.records import Actor, ActorKind

HANDSHAKE_BAR_S = 1.0
CALL_BAR_MS = 20.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_WARM_CALLS = 3
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}
_BARE = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="echo", description="Say it again.", input_schema={"type": "object"})


async def listed(ctx, params):
    return types.ListToolsResult(tools=[TOOL])


async def called(ctx, params):
    text = types.TextContent(type="text", text="{}")
    return types.CallToolResult(content=[text], structured_content={})


async def main():
    server = Server("bare", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
"""


class Took(NamedTuple):
    """How long one thing took: for who waits, and for the processor."""

    wall_s: float
    cpu_s: float


class Served:
    """A server process, spoken to in lines."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        # Bytecode is kept between processes, as it is for users.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "ARCHIVIST_HOME": str(folder / "home")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._number += 1
        self.tell(method, params, id=self._number)
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["id"] == self._number, answer
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def tell(self, method: str, params: dict[str, Any], **beside: Any) -> None:
        """Send a message."""
        line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **beside})
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def cpu_s(self) -> float:
        """Return what the process has spent so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_S

    def close(self) -> None:
        """Hang up, which ends it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=100, help="calls of each tool")
    parser.add_argument("--rounds", type=int, default=9, help="cold handshakes")
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, options.lessons)
        (folder / "bare.py").write_text(_BARE)
        ours = [str(Path(sys.executable).parent / "archivist"), "mcp", "--tools", "all"]
        bare = [sys.executable, "bare.py"]
        lines = [
            f"{options.lessons:,} lessons, {options.rounds} handshakes, {options.calls} calls of each tool"
        ]
        lines += _handshakes(ours, bare, folder, options.rounds)
        lines += _calls(ours, bare, folder, options.calls, options.lessons)
    print("\n".join(lines))
    if options.write:
        options.write.write_text("\n".join([f"$ python {' '.join(sys.argv)}", *lines, ""]), encoding="utf-8")
    return 1 if any(line.endswith("MISSED") for line in lines) else 0


def sentence(chance: random.Random) -> str:
    """Return some words in a row of a real text: Python's own reference, which every Python carries."""
    begin = chance.randrange(len(_words()) - 20)
    return " ".join(_words()[begin : begin + chance.randint(6, 14)])


@cache
def _words() -> list[str]:
    from pydoc_data.topics import topics

    return [word for text in topics.values() for word in text.split() if word[0].isalnum()]


def fill(folder: Path, count: int) -> None:
    """Make a bank of so many lessons, with their vectors."""
    chance = random.Random(7)
    with Bank.open(folder, actor=Actor(ActorKind.HUMAN, "bench"), create=True) as bank:
        with bank.transaction():
            for number in range(count):
                rule = f"IF {sentence(chance)} THEN {sentence(chance)}"
                # The same words again would be the same lesson.
                words = f"{sentence(chance)} {number}"
                bank.lessons.add(words, type="pattern", rule=rule, importance=chance.random())
        for _ in bank.vectors.embed_waiting():
            pass


def _handshakes(ours: list[str], bare: list[str], folder: Path, rounds: int) -> Iterator[str]:
    with _open(ours, folder), _open(bare, folder):
        """Once without counting, so that bytecode is compiled for both."""
    both = [(_handshake(ours, folder), _handshake(bare, folder)) for _ in range(rounds)]
    yield f"{'handshake, cold process':<26}{'best':>9}{'p50':>9}{'worst':>9}{'CPU p50':>9}{'bar':>9}"
    for name, took in (
        ("archivist mcp", [a for a, _ in both]),
        ("bare server, one tool", [b for _, b in both]),
    ):
        walls = sorted(each.wall_s * 1e3 for each in took)
        cpu = statistics.median(each.cpu_s * 1e3 for each in took)
        bar = _bar(walls[0], HANDSHAKE_BAR_S * 1e3) if name.startswith("archivist") else ""
        middle = statistics.median(walls)
        yield f"{name:<26}{walls[0]:>7.0f}ms{middle:>7.0f}ms{walls[-1]:>7.0f}ms{cpu:>7.0f}ms{bar}"


def _handshake(command: list[str], folder: Path) -> Took:
    begin = time.perf_counter()
    with _open(command, folder) as served:
        return Took(time.perf_counter() - begin, served.cpu_s())


def _calls(ours: list[str], bare: list[str], folder: Path, calls: int, lessons: int) -> Iterator[str]:
    yield f"{'tool call':<26}{'best':>9}{'p50':>9}{'p95':>9}{'CPU mean':>9}{'bar':>9}"
    with _open(bare, folder) as other:
        yield _row("bare server, echo", other, "echo", [{}] * calls, is_ours=False)
    with _open(ours, folder) as served:
        for tool, arguments in _asked(calls, lessons).items():
            yield _row(tool, served, tool, arguments)


def _asked(calls: int, lessons: int) -> dict[str, list[dict[str, Any]]]:
    chance = random.Random(11)
    texts = [sentence(chance) for _ in range(calls)]
    logged = {"action": "Reviewed", "importance": 5, "type": "action", "tags": ["bench"]}
    return {
        "brief": [{"task": text} for text in texts],
        "recall": [{"query": text} for text in texts],
        "lesson_query": [{"text": text} for text in texts],
        "memory_get": [{"id": f"m-{chance.randint(1, lessons):03d}"} for _ in texts],
        "lesson_add": [{"summary": text} for text in texts],
        "what_worked": [{"task": text} for text in texts],
        "knowledge_query": [{"text": text} for text in texts],
        "memory_log": [{**logged, "content": text} for text in texts],
    }


def _row(label: str, served: Served, tool: str, asked: list[dict[str, Any]], *, is_ours: bool = True) -> str:
    for arguments in asked[:_WARM_CALLS]:
        served.ask("tools/call", {"name": tool, "arguments": arguments})
    before, walls = served.cpu_s(), []
    for arguments in asked:
        begin = time.perf_counter()
        answer = served.ask("tools/call", {"name": tool, "arguments": arguments})
        walls.append((time.perf_counter() - begin) * 1e3)
        assert not answer.get("isError"), answer
    cpu = (served.cpu_s() - before) / len(asked) * 1e3
    middle, p95 = statistics.median(walls), statistics.quantiles(walls, n=20)[-1]
    bar = _bar(cpu, CALL_BAR_MS) if is_ours else ""
    return f"{label:<26}{min(walls):>7.1f}ms{middle:>7.1f}ms{p95:>7.1f}ms{cpu:>7.1f}ms{bar}"


def _bar(value: float, bar: float) -> str:
    return f"{bar:>7.0f}ms" + ("  MISSED" if value > bar else "")


@contextmanager
def _open(command: Sequence[str], folder: Path) -> Iterator[Served]:
    """Start a server and shake hands."""
    served = Served(command, folder)
    try:
        served.ask("initialize", _INITIALIZE)
        served.tell("notifications/initialized", {})
        yield served
    finally:
        served.close()


if __name__ == "__main__":
    raise SystemExit(main())
