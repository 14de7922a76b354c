"""Tell which repository a folder belongs to by git's own files; no process is started, for cold processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# A repository's configuration is far below this; what lies behind is not needed to tell its name.
_MOST_BYTES = 64 * 1024


def in_main_worktree(folder: Path) -> Path:
    """Return the real folder, and of one in a linked worktree the same folder in the main worktree."""
    real = Path(os.path.realpath(folder))
    for each in (real, *real.parents):
        if os.path.lexists(each / ".git"):
            return _main(each) / real.relative_to(each)
    return real


def ways_up(start: Path) -> Iterator[Path]:
    """Yield a folder and those above it; a linked worktree is followed by the repository's main one."""
    for each in (start, *start.parents):
        yield each
        if os.path.lexists(each / ".git") and (main := _main(each)) != each:
            same = main / start.relative_to(each)
            yield from (same, *same.parents)


def repository_of(folder: Path, root: Path) -> Path:
    """Return the repository that a session in a folder works on: the nearest one, at most the bank's root.

    Links are followed, and a linked worktree is its repository's main one.
    """
    start, top = in_main_worktree(folder), Path(os.path.realpath(root))
    for each in (start, *start.parents):
        if each == top:
            break
        if os.path.lexists(each / ".git"):
            return each
    return top


def remote_of(repository: Path) -> str:
    """Return the address that a repository was cloned from: that of `origin`, else of its first remote."""
    addresses: dict[str, str] = {}
    remote = ""
    for line in _text(_shared(_own(repository)) / "config").splitlines():
        words = line.strip()
        if words.startswith("["):
            remote = words[9:-2] if words.startswith('[remote "') else ""
        elif remote and words.partition("=")[0].strip() == "url":
            addresses.setdefault(remote, words.partition("=")[2].strip())
    return addresses.get("origin") or next(iter(addresses.values()), "")


def _main(worktree: Path) -> Path:
    """Return the main worktree of a linked one; any other is itself.

    A file can point anywhere: it is believed when the repository knows the worktree too.
    """
    if (worktree / ".git").is_dir():
        return worktree
    own = _own(worktree)
    shared = _shared(own)
    known = _text(own / "gitdir").strip()
    is_linked = shared != own and shared.name.startswith(".") and known
    if is_linked and os.path.realpath(own / known) == os.path.realpath(worktree / ".git"):
        return Path(os.path.realpath(shared.parent))
    return worktree


def _own(worktree: Path) -> Path:
    """Return the folder that git keeps for one worktree."""
    mark = worktree / ".git"
    said = "" if mark.is_dir() else _text(mark)
    return worktree / said.removeprefix("gitdir:").strip() if said.startswith("gitdir:") else mark


def _shared(own: Path) -> Path:
    """Return the folder that git keeps for all worktrees of a repository."""
    said = _text(own / "commondir").strip()
    return Path(os.path.normpath(own / said)) if said else own


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
