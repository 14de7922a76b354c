"""Derive a project's name from a folder or a remote. A module of its own, because hooks import it cold."""

from __future__ import annotations

import re

_REMOTE = r"[:/]([\w.-]+)/([\w.-]+?)(?:\.git)?/?\Z"
# Where a call or a message keeps the folder that it was made in, when that is not where its run began.
FOLDER = "cwd"
# Where the run began; kept beside the folder until the event is filed.
BEGAN = "began"
# Folders that say where code lies, not whose it is.
_COMMON_FOLDERS = frozenset([
    "app", "code", "home", "mnt", "opt", "private", "project", "repo", "repository", "root", "src", "testbed",
    "tmp", "users", "usr", "var", "work", "workdir", "workspace",
])  # fmt: skip


def project_of_folder(folder: str) -> str:
    """Return the project's name that a working folder's path gives, or nothing."""
    names = [name for name in folder.replace("\\", "/").split("/") if name]
    if len(names) > 2 and names[0].lower() in ("home", "users"):
        names = names[2:]
    return next((name for name in reversed(names) if name.lower() not in _COMMON_FOLDERS), "")


def project_of_remote(url: str) -> str:
    """Return `owner/repo` of a git remote."""
    match = re.search(_REMOTE, url)
    return f"{match.group(1)}/{match.group(2)}" if match else ""
