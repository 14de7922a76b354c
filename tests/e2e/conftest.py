"""A fresh home, and the program as a new user runs it there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import PROGRAM, Ran

Setup = Callable[..., Ran]


@pytest.fixture
def fresh_home(tmp_path: Path) -> Path:
    """A home with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def run(fresh_home: Path) -> Setup:
    """Run the installed program as a process in a home of its own."""
    moved = ("ARCHIVIST", "CLAUDE", "CODEX", "GEMINI", "COPILOT", "XDG", "OPENCODE")

    def call(folder: Path, *words: str, stdin: str = "") -> Ran:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(moved)}
        # Without programs of clients on the path, only their folders in the home count.
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=folder,
            env={**kept, "HOME": str(fresh_home), "PATH": path},
            input=stdin.encode(),
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call
