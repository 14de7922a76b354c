"""Work on projects: which ones a bank knows, and which one a name or a folder means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.stores.filters import equals

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.stores.protocol import Reader


def known(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs."""
    return set(reader.values("episode", "project"))


def only(reader: Reader) -> str:
    """Return the project of the bank's runs when there is only one, else an empty text."""
    projects = known(reader)
    return projects.pop() if len(projects) == 1 else ""


def named(reader: Reader, name: str) -> str:
    """Return the project that a name means: itself, or the only one that differs by its owner's part."""
    return name if _is_known(reader, name) else _like(name, every(reader)) or name


def worked_on(reader: Reader, folder: Path, root: Path) -> str:
    """Return the project that a session in a folder works on, by the name that the bank has for it.

    A repository is known by its folder's name, else by that of its remote. A bank's own folder may have been
    renamed, copied or linked since: the only project there is is then meant.
    """
    from archivist.capture.folders import project_of_folder, project_of_remote
    from archivist.worktrees import remote_of, repository_of

    repository = repository_of(folder, root)
    name = project_of_folder(str(repository))
    if name and _is_known(reader, name):
        return name
    remote = project_of_remote(remote_of(repository))
    if remote and _is_known(reader, remote):
        return remote
    others = every(reader)
    found = [_like(each, others) for each in (name, remote) if each]
    is_own = repository_of(root, root) == repository
    former = next(iter(others)) if is_own and len(others) == 1 else ""
    if former and (repository / former.rpartition("/")[2]).is_dir():
        # The one project of a workspace is a folder in it.
        former = ""
    return next(filter(None, found), "") or former or name


def _is_known(reader: Reader, name: str) -> bool:
    fields = {"lesson": "repo", "episode": "project"}
    return any(
        reader.select_fields(kind, ("id",), equals(field, name), limit=1) for kind, field in fields.items()
    )


def every(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs and lessons."""
    return known(reader) | set(reader.values("lesson", "repo"))


def _like(name: str, names: set[str]) -> str:
    """Return the only project of the same last part when one of the two names no owner."""
    owner, _, last = name.lower().rpartition("/")
    like = [
        each for each in names if each.lower().rpartition("/")[2] == last and (not owner or "/" not in each)
    ]
    return like[0] if len(like) == 1 else ""
