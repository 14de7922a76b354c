"""Which version of a client is used, and what older ones do not do with our hooks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from archivist.files.open import real_path
from archivist.files.worktrees import to_main_worktree, worktrees_of

_TIMEOUT_S = 5
_MOST_CHARACTERS = 1000
_NUMBER = re.compile(r"(?<![\d.])\d{1,6}(?:\.\d{1,6}){1,2}")
_PROGRAMS = {"claude-code": "claude", "copilot": "copilot", "opencode": "opencode"}


class Shortcoming(NamedTuple):
    """What a client does not do before a version; some of it with the hooks of the main worktree alone."""

    before: tuple[int, ...]
    text: str
    is_of_worktrees: bool = False


# By the clients' release notes, sources and issues, which docs/guides/agents.md names.
_SHORTCOMINGS = {
    "claude-code": (
        Shortcoming(
            (2, 1, 211),
            "reads no hooks of the main worktree in the others: claude update, or archivist install"
            " claude-code --user",
            is_of_worktrees=True,
        ),
    ),
    "copilot": (
        Shortcoming((1, 0, 11), "passes on nothing that hooks say: copilot update"),
        Shortcoming(
            (1, 0, 50), "passes nothing on beside prompts, maybe not beside failed calls: copilot update"
        ),
        Shortcoming((1, 0, 65), "passes nothing on beside prompts: copilot update"),
    ),
    "opencode": (
        Shortcoming((1, 2), "may not say which session asks, and none is told then: opencode upgrade"),
    ),
}


def version_of(client: str, logged: Mapping[str, str]) -> str:
    """Return a client's version among those that logs name, by the client's name in runs."""
    return logged.get(client) or logged.get(f"{client}-cli", "")


def find_shortcoming(
    client: str, root: Path, hooks: Iterable[Path], logged: str = "", *, is_for_all: bool = False
) -> Shortcoming | None:
    """Return what the version in use does not do here; None where nothing is known of it.

    `hooks` are the files that have them. The version is that of the program on the PATH, else the one that
    the latest log names. `is_for_all` asks for the other worktrees of the main one too.
    """
    here, main = real_path(root), to_main_worktree(root)
    linked = [tree for tree in worktrees_of(root) if tree != main] if here == main and is_for_all else [here]
    files = list(map(real_path, hooks))
    # A worktree may lie inside of the main one.
    is_in_main = any(
        main != tree and all(file.is_relative_to(main) and not file.is_relative_to(tree) for file in files)
        for tree in linked
    )
    known = [each for each in _SHORTCOMINGS.get(client, ()) if is_in_main or not each.is_of_worktrees]
    if not known:
        return None
    said = _ask_program(_PROGRAMS[client], root)
    found = _NUMBER.search(said) or _NUMBER.search(logged[:_MOST_CHARACTERS])
    if found is None:
        return None
    version = tuple(map(int, found[0].split(".")))
    lack = next((each for each in known if version < each.before), None)
    return lack._replace(text=f"{client} {found[0]} {lack.text}") if lack else None


def _ask_program(program: str, root: Path) -> str:
    """Return what a program on the PATH says of its version; one that lies in the project is not run."""
    own = [root.absolute(), *worktrees_of(root)]
    folders = [
        folder
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if Path(folder).is_absolute() and not _is_inside(Path(folder), own)
    ]
    path = shutil.which(program, path=os.pathsep.join(folders)) if folders else None
    if path is None or _is_inside(Path(path), own):
        return ""
    with suppress(OSError, RuntimeError, subprocess.SubprocessError):
        # In the home: in the project's folder a client may read what a repository brought.
        done = subprocess.run(  # noqa: S603 a program of the user's own PATH
            [path, "--version"],
            cwd=Path.home(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        return done.stdout[:_MOST_CHARACTERS].decode("utf-8", "replace")
    return ""


def _is_inside(path: Path, roots: list[Path]) -> bool:
    spelled = (path, real_path(path))
    return any(each.is_relative_to(root) for each in spelled for root in (*roots, *map(real_path, roots)))
