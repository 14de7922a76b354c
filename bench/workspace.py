"""Time the workspace's questions over many files of which none changed: warm, and from a cold process.

Beside them, in the same run: parsing every file anew with ruamel.yaml and markdown-it-py, and with our own
quick reader. CPU time, best and worst of the rounds.
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
from io import StringIO
from pathlib import Path

from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from archivist.workspace.files_service import FileCache, Topology
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.topology import LEARNINGS, FileKind

WARM_BAR_MS = 50.0
COLD_BAR_MS = 300.0
KINDS = (FileKind.PLAN, FileKind.OVERVIEW, *LEARNINGS)
WORDS = [
    "workflow",
    "engine",
    "pnpm",
    "cache",
    "build",
    "deploy",
    "schema",
    "token",
    "index",
    "parser",
    "queue",
]


def main() -> int:
    """Print the table; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--command", default=str(Path(sys.executable).parent / "archivist"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        generate(root, options.files)
        rows = measure(root, options.rounds, options.command)
    print(f"{options.files} files, CPU time, {options.rounds} rounds")
    print(f"{'what':<58}{'best':>9}{'worst':>9}{'bar':>9}")
    for what, (best, worst), bar in rows:
        told = f"{bar:>7.0f}ms" if bar else ""
        print(f"{what:<58}{best:>7.1f}ms{worst:>7.1f}ms{told:>9}")
    return 0 if all(not bar or best <= bar for _, (best, _), bar in rows) else 1


Spread = tuple[float, float]


def measure(root: Path, rounds: int, command: str) -> list[tuple[str, Spread, float]]:
    """Return what was measured: its name, best and worst, and the bar that it must hold."""
    workspace = Workspace(root)
    shelf = FileCache(Topology(root))
    shelf.read(kinds=KINDS)
    plans = [command, "workspace", "plans", "--status", "done", "--tag", "cache"]
    return [
        ("plans, warm, by status and tag", _warm(lambda: _plans(workspace), rounds), WARM_BAR_MS),
        ("plans, overviews and learnings, warm", _warm(lambda: shelf.read(kinds=KINDS), rounds), WARM_BAR_MS),
        ("archivist workspace plans, cold process", _cold(plans, root, rounds), COLD_BAR_MS),
        ("archivist --version, cold process", _cold([command, "--version"], root, rounds), 0),
        (
            "every file parsed by our reader",
            _warm(lambda: FileCache(Topology(root)).read(kinds=KINDS), rounds),
            0,
        ),
        ("every file parsed by ruamel.yaml and markdown-it-py", _warm(lambda: _parse_all(root), 2), 0),
    ]


def _plans(workspace: Workspace) -> None:
    assert workspace.retrieve_plans(status=["done"], tags=["cache"])


def _parse_all(root: Path) -> int:
    count = 0
    for path in root.rglob("*.md"):
        text = path.read_text("utf-8")
        if text.startswith("---\n"):
            YAML(typ="safe", pure=True).load(StringIO(text[4 : text.index("\n---\n", 3)]))
        else:
            MarkdownIt("commonmark").parse(text)
        count += 1
    return count


def generate(root: Path, count: int) -> None:
    """Write a tree of so many files: mostly plans, some overviews, and learning files of thirty entries."""
    source = random.Random(7)
    made = 0
    number = 0
    while made < count:
        scope = f"w{number % 4}/d{number % 10}/r{number % 25}"
        if number < 100:
            made += _write(root / f"resources/workspaces/{scope}/OVERVIEW.md", _overview(scope, source))
            domain = root / "user/memory/workspaces" / scope.rpartition("/")[0]
            made += sum(
                _write(domain / f"{kind}.md", "".join(_entry(each, source) for each in range(30)))
                for kind in ("decisions", "lessons")
            )
        name = f"26{number % 12 + 1:02d}{number % 28 + 1:02d}-plan-{number}.md"
        made += _write(root / f"resources/workspaces/{scope}/_plans/{name}", _plan(number, source))
        number += 1
    # Whatever was written within the last two seconds is read again at every question.
    old = time.time() - 3600
    for path in root.rglob("*.md"):
        os.utime(path, (old, old))
    time.sleep(2.1)


def _write(path: Path, text: str) -> int:
    if path.exists():
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return 1


def _said(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def _plan(number: int, source: random.Random) -> str:
    status = source.choice(["new", "in_progress", "done"])
    head = (
        f'name: "Plan {number}"\ndescription: "{_said(source, 12)}"\nstatus: {status}\n'
        f"created: 2026-02-08\nupdated: 2026-02-09\ntags: [{', '.join(source.sample(WORDS, 3))}]\n"
    )
    body = "\n\n".join(_said(source, 60) for _ in range(10))
    return f"---\n{head}---\n\n# Plan {number}\n\n{body}\n"


def _overview(scope: str, source: random.Random) -> str:
    head = f'---\nname: "{scope}"\ndescription: "{_said(source, 20)}"\ntags: [a, b]\n---\n'
    return f"{head}\n# {scope}\n\n{_said(source, 300)}\n"


def _entry(number: int, source: random.Random) -> str:
    return (
        f"### [2026-01-{number % 28 + 1:02d}] {_said(source, 6)}\n\n**Category:** debugging\n"
        f"**Tags:** {', '.join(source.sample(WORDS, 2))}\n\n{_said(source, 40)}\n\n---\n\n"
    )


def _warm(call: Callable[[], object], rounds: int) -> Spread:
    spent = []
    for _ in range(rounds + 1):
        start = time.process_time()
        call()
        spent.append((time.process_time() - start) * 1000)
    return min(spent[1:]), max(spent[1:])


def _cold(command: list[str], root: Path, rounds: int) -> Spread:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["ARCHIVIST_HOME"] = str(root / "home")
    spent = []
    for _ in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return min(spent[1:]), max(spent[1:])


if __name__ == "__main__":
    sys.exit(main())
