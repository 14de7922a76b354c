"""Keep the copies of settings out of git: in its own list of each clone, which no commit carries."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from archivist.edges.install.changes import SUFFIX
from archivist.replacing import replace_file

_LINE = f"*{SUFFIX}"
_PATIENCE_S = 10


def exclude(copies: Iterable[Path]) -> None:
    """Name copies in the list of the repositories that they lie in; where there is none, nothing is done."""
    for folder in sorted({copy.parent for copy in copies}):
        path = _list_of(folder)
        if path is None:
            continue
        lines = _lines(path)
        if _LINE not in lines:
            _write(path, [*lines, _LINE])


def include_again(folder: Path) -> None:
    """Take our line out of the list of a folder's repository, once no copy is left."""
    path = _list_of(folder)
    if path is not None and _LINE in (lines := _lines(path)):
        _write(path, [line for line in lines if line != _LINE])


def _list_of(folder: Path) -> Path | None:
    """Ask git for its list; None outside of repositories, or without git."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        asked = ["git", "-C", str(folder), "rev-parse", "--git-path", "info/exclude"]
        found = subprocess.run(asked, capture_output=True, check=True, timeout=_PATIENCE_S)  # noqa: S603
        return folder / found.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
    return None


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text("utf-8", "surrogateescape").splitlines()
    return []


def _write(path: Path, lines: list[str]) -> None:
    # A list that cannot be written only means that git goes on to see the copies.
    with suppress(OSError):
        text = "".join(f"{line}\n" for line in lines)
        replace_file(path, text.encode("utf-8", "surrogateescape"), like=path)
