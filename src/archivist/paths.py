"""Where banks lie, and what a path or an address alone says about a project.

A project's bank lies in its own folder, the global bank under the user's home. `projects.py` decides which
project a folder or a run belongs to.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from archivist.files.worktrees import walk_up

FOLDER = ".archivist"
FILE_NAME = "memory.db"
CONFIG_NAME = "config.toml"

_REMOTE = r"[:/]([\w.-]+)/([\w.-]+?)(?:\.git)?/?\Z"
_LONGEST_NAME = 100
# Folders that say where code lies, not which project it is.
_COMMON_FOLDERS = frozenset([
    "app", "bare", "code", "home", "mnt", "opt", "private", "project", "repo", "repository", "root", "src",
    "testbed", "tmp", "users", "usr", "var", "work", "workdir", "workspace",
])  # fmt: skip


def bank_file(path: Path) -> Path:
    """Return a bank's file: the path itself when it names a database, else the one inside that folder."""
    if path.suffix == ".db" or (is_file(path) and path.name != FOLDER):
        return path
    if path.name == FOLDER or path == home_folder():
        return path / FILE_NAME
    return path / FOLDER / FILE_NAME


def as_text(path: Path) -> str:
    """Return a path as text that can be stored; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def is_file(path: Path) -> bool:
    """Say whether a file exists; one in a folder that this user may not read does not."""
    # The method of Path raises PermissionError instead.
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Say whether a folder exists; one that this user may not reach does not."""
    return os.path.isdir(path)  # noqa: PTH112


def home_folder() -> Path:
    """Return the folder of the global bank: `ARCHIVIST_HOME`, else `~/.archivist`."""
    home = os.environ.get("ARCHIVIST_HOME")
    return Path(home).expanduser() if home else Path.home() / FOLDER


def state_folder(bank: Path) -> Path:
    """Return the folder under the user's home for what is not memory: logs and locks of hooks, a cache.

    A project's own folder may hold links to anywhere.
    """
    from archivist.cold_start import sha256

    real = os.path.realpath(bank)
    name = re.sub(r"[^\w.-]", "_", project_folder(Path(real)).name)[:40]
    return home_folder() / "state" / f"{name}-{sha256(os.fsencode(real)).hexdigest()[:16]}"


def has_bank(folder: Path) -> bool:
    """Say whether a folder has a bank; an empty file is none, and a repository can bring one."""
    file = folder / FOLDER / FILE_NAME
    return is_file(file) and file.stat().st_size > 0


def checkout_of(start: Path) -> Path:
    """Return the folder where a client that is opened here looks for its project settings.

    It is the nearest one upwards that is a repository or a worktree, or has a bank; else the folder itself.
    """
    for folder in (start, *start.parents):
        if os.path.lexists(folder / ".git") or has_bank(folder):
            return start if folder / FOLDER == home_folder() else folder
    return start


def unreadable_above(start: Path) -> Path | None:
    """Return the nearest `.archivist` upwards that this user may not read, or None."""
    for folder in walk_up(start):
        try:
            (folder / FOLDER / FILE_NAME).stat()
        except PermissionError:
            return folder / FOLDER
        except OSError:
            continue
    return None


def project_of_folder(folder: str) -> str:
    """Return the name of the project that a working folder belongs to, if the path tells it."""
    return safe_name(telling_folder(folder))


def safe_name(name: str) -> str:
    """Return a folder's name as it can be told: a repository may call its folders anything."""
    return re.sub(r"[^\w .+@~-]+", "-", name)[:_LONGEST_NAME]


def telling_folder(folder: str) -> str:
    """Return the last folder of a path whose name says what project it is."""
    names = [name for name in folder.replace("\\", "/").split("/") if name]
    if len(names) > 2 and names[0].lower() in ("home", "users"):
        names = names[2:]
    return next((name for name in reversed(names) if name.lower() not in _COMMON_FOLDERS), "")


def project_of_remote(url: str) -> str:
    """Return `owner/repo` of a git remote."""
    # Compiled at first use: most processes never need it.
    match = re.search(_REMOTE, url)
    return f"{match.group(1)}/{match.group(2)}" if match else ""


def remote_address(url: str) -> str:
    """Return a git remote as `//host/path`, however it is written; one on this machine as its path."""
    scheme, is_url, rest = url.partition("://")
    if scheme == "file" or url.startswith("/"):
        return (rest if is_url else url).rstrip("/")
    host, _, path = rest.partition("/") if is_url else url.partition(":")
    host = re.sub(r":(22|80|443|9418)?\Z", "", host.rpartition("@")[2].lower())
    path = path.strip("/").removesuffix(".git")
    return f"//{host}/{path}" if host and path and "/" not in host else ""


def project_folder(bank: Path) -> Path:
    """Return the project folder of a bank's file; the folder of the file when it is in no project."""
    folder = bank.absolute().parent
    return folder.parent if folder.name == FOLDER else folder


def editor_folders(
    editors: Sequence[str], home: Path, variables: Mapping[str, str], platform: str = ""
) -> list[Path]:
    """Return where VS Code and editors made from it keep a user's settings and sessions."""
    platform = platform or sys.platform
    if platform == "darwin":
        top = home / "Library/Application Support"
    elif platform == "win32":
        top = Path(variables.get("APPDATA") or home / "AppData/Roaming")
    else:
        top = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    return [top / editor / "User" for editor in editors]


def folder_of_uri(uri: str) -> str:
    """Return the local path that a `file:` URI names; empty for any other."""
    if not uri.startswith("file://"):
        return ""
    from urllib.parse import unquote

    path = unquote(uri.removeprefix("file://"))
    # A drive of Windows stands behind the slash.
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path
