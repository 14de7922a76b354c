"""Measure the rules that read a stream's English: what blocks, what goes wrong, what is over.

Each sentence is logged in three cycles, each end after three cycles of a blocker, each history as its team
logged it; what `insights` then says is compared with what a careful reader says (`tests/stream/labelled.py`).
With `--against REVISION` the rules of that git revision are measured beside ours on the same cases: those of
a8b95cb parsed clauses, and were written for the known cases. What "unseen" means is said in that file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

# The files of rules, of these and of earlier revisions.
RULES = (
    "blockers", "blocker_timeline", "subjects", "obstacles", "insights", "timelines", "threads", "decided",
    "insight_text", "complaints", "causes", "themes",
)  # fmt: skip


class Measured(TypedDict):
    """What one set of rules made of the cases."""

    rows: dict[str, str]
    misses: list[str]


def main() -> int:
    """Print precision, recall and F1 of the rules, and their size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REVISION", help="measure this revision's rules beside ours")
    parser.add_argument("--misses", action="store_true", help="name the known cases that are read wrongly")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    ours = measure_rules()
    if options.json:
        print(json.dumps(ours))
        return 0
    columns = {"ours": ours}
    if options.against:
        columns[options.against] = measure_revision(options.against)
    print(f"{'precision / recall / F1':<28}" + "".join(f"{name:>22}" for name in columns))
    for row in ours["rows"]:
        print(f"{row:<28}" + "".join(f"{column['rows'][row]:>22}" for column in columns.values()))
    for name, column in columns.items():
        for miss in column["misses"] if options.misses else ():
            print(f"{name}: {miss}")
    return 0


def measure_rules() -> Measured:
    """Return the figures of the rules that are installed, and the known cases that they read wrongly."""
    from tests.stream.labelled import known_cases, measure, unseen_cases

    import archivist.stream

    rows: dict[str, str] = {}
    known, misses = measure(known_cases())
    for name, tallies in (("known", known), ("unseen", measure(unseen_cases())[0])):
        rows |= {f"{row}, {name}": tally.describe() for row, tally in tallies.items()}
    folder = Path(archivist.stream.__file__).parent
    rules = [path for path in folder.glob("*.py") if path.stem in RULES]
    rows["lines of rules"] = str(sum(len(path.read_text(encoding="utf-8").splitlines()) for path in rules))
    return {"rows": rows, "misses": misses}


def measure_revision(revision: str) -> Measured:
    """Return what the rules of another git revision do with the same pairs."""
    with tempfile.TemporaryDirectory() as folder:
        archived = subprocess.run(
            ["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archived, check=True)
        printed = subprocess.run(
            [sys.executable, __file__, "--json"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{folder}/src"},
        ).stdout
    measured: Measured = json.loads(printed)
    return measured


if __name__ == "__main__":
    sys.exit(main())
