"""Time the doors, each in a process of its own: hooks, MCP over stdio, HTTP, and the integrations."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
DOORS = {
    "hooks": "doors_hooks.py",
    "mcp": "doors_mcp.py",
    "http": "doors_http.py",
    "integrations": "integrations.py",
}


def main() -> int:
    """Run the measurements that are asked for, all by default; exit 1 when one of them missed its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="*", metavar="DOOR", help=f"any of {', '.join(DOORS)}")
    parser.add_argument("--write", type=Path, help="write what is printed to this file too")
    options = parser.parse_args()
    unknown = [door for door in options.doors if door not in DOORS]
    if unknown:
        parser.error(f"no door {unknown[0]!r}")
    is_missed, told = False, []
    for door in options.doors or DOORS:
        command = [sys.executable, str(HERE / DOORS[door])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        is_missed |= done.returncode != 0
        told.append(f"$ python bench/{DOORS[door]}\n{done.stdout}")
        print(told[-1], flush=True)
    if options.write:
        options.write.write_text("\n".join(told), encoding="utf-8")
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
