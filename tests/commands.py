"""Run the command line: within this process, which takes no start, or as a process of its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from types import ModuleType
from typing import IO

PROGRAM = str(Path(sys.executable).parent / "archivist")
_LONGEST_S = 120


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


def run_apart(words: Sequence[str], cwd: Path, stdin: bytes, environment: Mapping[str, str]) -> Ran:
    """Run the installed command as a process of its own."""
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=cwd,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=_LONGEST_S,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_here(words: Sequence[str], cwd: Path, stdin: bytes, environment: Mapping[str, str]) -> Ran:
    """Run what the installed command calls, in this process and as if it were the first thing in it."""
    # The folder, the variables and the streams are the whole process's.
    assert current_thread() is main_thread(), "commands that run at once need processes of their own"
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        with chdir(cwd), _variables(environment), _fresh(words), _streams(given, out, err):
            code = _ended(words)
        out.seek(0)
        err.seek(0)
        return Ran(code, out.read().decode(), err.read().decode())


def _ended(words: Sequence[str]) -> int:
    """Call the command line and return the code with which its process would end."""
    from archivist.edges.cli.main import main

    try:
        main(words)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return 1
        return ended.code or 0
    except Exception:  # noqa: BLE001 the interpreter, too, prints whatever nobody has caught
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _fresh(words: Sequence[str]) -> Iterator[None]:
    """Take away what an earlier command has left, and afterwards what this one has."""
    if shelves := sys.modules.get("archivist.workspace.markdown_service"):
        shelves._open_files.cache_clear()
    if writing := sys.modules.get("archivist.files.write"):
        writing._swept_folders.clear()
    arguments, program, thresholds = sys.argv, sys.modules["__main__"], gc.get_threshold()
    # By these two a command knows what it is called.
    sys.argv, sys.modules["__main__"] = [PROGRAM, *words], ModuleType("__main__")
    try:
        yield
    finally:
        sys.argv, sys.modules["__main__"] = arguments, program
        # A command expects to be the last thing that its process does.
        gc.unfreeze()
        gc.set_threshold(*thresholds)


@contextmanager
def _streams(*files: IO[bytes]) -> Iterator[None]:
    """Let files stand for the three streams, for us and for every process that is started meanwhile."""
    ours = sys.stdin, sys.stdout, sys.stderr
    for stream in ours[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    for number, file in enumerate(files):
        os.dup2(file.fileno(), number)
    try:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        yield
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.close()
        sys.stdin, sys.stdout, sys.stderr = ours
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
