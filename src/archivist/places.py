"""Where banks lie: a project's in its own folder, the user's global one under their home."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = ".archivist"
FILE_NAME = "memory.db"
CONFIG_NAME = "config.toml"


def bank_file(path: Path) -> Path:
    """Return a bank's file: the path itself when it names a database, else the one inside that folder."""
    if path.suffix == ".db" or path.is_file():
        return path
    if path.name == FOLDER or path == home_folder():
        return path / FILE_NAME
    return path / FOLDER / FILE_NAME


def home_folder() -> Path:
    """Return the folder of the global bank: `ARCHIVIST_HOME`, else `~/.archivist`."""
    home = os.environ.get("ARCHIVIST_HOME")
    return Path(home).expanduser() if home else Path.home() / FOLDER


def find_project(start: Path) -> Path | None:
    """Return the nearest folder upwards that has a bank of its own; the global bank is nobody's project."""
    for folder in (start, *start.parents):
        file = folder / FOLDER / FILE_NAME
        if file.is_file() and file.parent != home_folder():
            return folder
    return None


def project_folder(bank: Path) -> Path:
    """Return the project's folder of a bank's file; of one that lies in none, the folder of the file."""
    folder = bank.absolute().parent
    return folder.parent if folder.name == FOLDER else folder
