"""Keep the copies of settings out of git: in its own list of each clone, which no commit carries."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from archivist.edges.install.changes import SUFFIX
from archivist.files.write import replace_file

# By the first line ours is told from a line that people wrote themselves.
_OURS = f"# Copies of settings that archivist keeps until it is uninstalled\n*{SUFFIX}".encode()
_PATIENCE_S = 10


def exclude_from_git(copies: Iterable[Path]) -> None:
    """Name copies in the list of the repositories that they lie in; where there is none, nothing is done."""
    for folder in sorted({copy.parent for copy in copies}):
        path = _exclude_file(folder)
        if path is None:
            continue
        before = _read(path)
        if before is None:
            _write(path, _OURS + b"\n")
        elif f"*{SUFFIX}".encode() not in before.splitlines():
            # A list without an end to its last line gets none to ours, by which it is known when we go.
            _write(path, before + (_OURS + b"\n" if before.endswith(b"\n") else b"\n" + _OURS))


def remove_exclusion(folder: Path) -> None:
    """Take our lines out of the list of a folder's repository, once no copy is left in any worktree."""
    path = _exclude_file(folder)
    before = None if path is None else _read(path)
    if path is None or before is None or _OURS not in before or _has_copies(folder):
        return
    if before.endswith(b"\n" + _OURS):
        _write(path, before.removesuffix(b"\n" + _OURS))
    elif after := before.replace(_OURS + b"\n", b"", 1):
        _write(path, after)
    else:
        with suppress(OSError):
            path.unlink()
            path.parent.rmdir()


def _has_copies(folder: Path) -> bool:
    """Say whether any worktree of a folder's repository holds a copy; what cannot be asked may."""
    listed = _run_git(folder, "worktree", "list", "--porcelain") or b""
    trees = [line.removeprefix(b"worktree ") for line in listed.splitlines() if line.startswith(b"worktree ")]
    there = [tree for tree in (Path(os.fsdecode(each)) for each in trees) if tree.is_dir()]
    sought = ("ls-files", "--others", "--ignored", f"--exclude=*{SUFFIX}")
    return not there or any(_run_git(tree, *sought) != b"" for tree in there)


def _exclude_file(folder: Path) -> Path | None:
    """Ask git for its list; None outside of repositories, or without git."""
    found = _run_git(folder, "rev-parse", "--git-path", "info/exclude")
    return None if found is None else folder / os.fsdecode(found.removesuffix(b"\n"))


def _run_git(folder: Path, *words: str) -> bytes | None:
    """Return what git answers in a folder, or None when it does not."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        asked = ["git", "-C", str(folder), *words]
        return subprocess.run(asked, capture_output=True, check=True, timeout=_PATIENCE_S).stdout  # noqa: S603
    return None


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()
    return None


def _write(path: Path, data: bytes) -> None:
    # A list that cannot be written only means that git goes on to see the copies.
    with suppress(OSError):
        replace_file(path, data, mode_from=path)
