"""Where banks lie: a project's in its own folder, the user's global one under their home."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from archivist.files.worktrees import walk_up

FOLDER = ".archivist"
FILE_NAME = "memory.db"
CONFIG_NAME = "config.toml"


def bank_file(path: Path) -> Path:
    """Return a bank's file: the path itself when it names a database, else the one inside that folder."""
    if path.suffix == ".db" or is_file(path):
        return path
    if path.name == FOLDER or path == home_folder():
        return path / FILE_NAME
    return path / FOLDER / FILE_NAME


def as_text(path: Path) -> str:
    """Return a path as text that can be kept and shown: bytes of a name that are no text are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def is_file(path: Path) -> bool:
    """Say whether a file is there that this user may know of; what may not be looked into holds none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Say whether a folder is there that this user may know of."""
    try:
        return path.is_dir()
    except OSError:
        return False


def home_folder() -> Path:
    """Return the folder of the global bank: `ARCHIVIST_HOME`, else `~/.archivist`."""
    home = os.environ.get("ARCHIVIST_HOME")
    return Path(home).expanduser() if home else Path.home() / FOLDER


def find_project(start: Path) -> Path | None:
    """Return the nearest folder upwards that has a bank of its own; the global bank is nobody's project.

    A linked worktree of a repository has the bank of the main one.
    """
    return next(projects_above(start), None)


def projects_above(start: Path) -> Iterator[Path]:
    """Yield the folders upwards that have a bank of their own, the nearest first.

    What may not be looked into is passed over: it may be somebody else's, far above.
    """
    for folder in walk_up(start):
        if is_file(folder / FOLDER / FILE_NAME) and folder / FOLDER != home_folder():
            yield folder


def checkout_of(start: Path) -> Path:
    """Return the folder where a client that is opened here looks for a project's settings.

    It is the nearest one upwards that is a repository, or a worktree of one, or has a bank; else the folder.
    """
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git") or is_file(folder / FOLDER / FILE_NAME):
            return start if folder / FOLDER == home_folder() else folder
    return start


def unreadable_above(start: Path) -> Path | None:
    """Return the nearest `.archivist` upwards that this user may not look into; None when there is none."""
    for folder in walk_up(start):
        try:
            (folder / FOLDER / FILE_NAME).stat()
        except PermissionError:
            return folder / FOLDER
        except OSError:
            continue
    return None


def is_trusted(project: Path) -> bool:
    """Say whether a bank that was only come across may speak: its owner is this user, or root.

    It is the rule of git: whoever can write above a folder must not thereby speak to those who work in it.
    Behind `sudo` the user is who called it.
    """
    if not hasattr(os, "geteuid"):
        return True
    trusted = {0, os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        trusted.add(int(os.environ["SUDO_UID"]))
    held = project / FOLDER
    return all(each.stat().st_uid in trusted for each in (held, held / FILE_NAME))


def project_folder(bank: Path) -> Path:
    """Return the project's folder of a bank's file; of one that lies in none, the folder of the file."""
    folder = bank.absolute().parent
    return folder.parent if folder.name == FOLDER else folder
