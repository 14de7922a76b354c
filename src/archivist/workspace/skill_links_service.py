"""Link the skills of a workspace into the folders where agent tools look for skills, and remove the links.

A skill is a folder, so it is linked as one: what lies beside its SKILL.md comes with it. What a person put
there is not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from archivist.errors import InputError
from archivist.files.open import real_path
from archivist.files.write import refuse_links
from archivist.workspace.links_service import (
    Client,
    LinkResult,
    LinkStatus,
    is_link_of_ours,
    make_client_folder,
    note_link,
    remove_client_folder,
)
from archivist.workspace.skills_service import FOLDER, Skill

SKILL_FOLDERS = {
    Client.CLAUDE_CODE: ".claude/skills",
    Client.CURSOR: ".cursor/skills",
    Client.CODEX: ".codex/skills",
    Client.GEMINI: ".gemini/skills",
    Client.VSCODE: ".github/skills",
}


def link_skills(
    root: Path, skills: Sequence[Skill], clients: Iterable[Client], *, is_dry_run: bool = False
) -> list[LinkResult]:
    """Bring the clients' skill folders in line with the skills; a second call changes nothing."""
    results: list[LinkResult] = []
    for client in clients:
        place = SKILL_FOLDERS[client]
        wanted: dict[str, str] = {}
        for skill in skills:
            path, source = f"{place}/{skill.name}", skill.path.rpartition("/")[0]
            if path in wanted:
                reason = f"{wanted[path]} is there too"
                results.append(LinkResult(client, path, LinkStatus.LEFT, reason))
            else:
                wanted[path] = source
        stale = [path for path in _own_links(root, place) if path not in wanted]
        results += [_remove(root, client, path, is_dry_run=is_dry_run) for path in stale]
        results += [
            _place(root, client, path, source, is_dry_run=is_dry_run) for path, source in wanted.items()
        ]
    return results


def unlink_skills(root: Path, clients: Iterable[Client], *, is_dry_run: bool = False) -> list[LinkResult]:
    """Remove the links to skills, and the folders that were made for them."""
    results: list[LinkResult] = []
    for client in clients:
        place = SKILL_FOLDERS[client]
        results += [_remove(root, client, path, is_dry_run=is_dry_run) for path in _own_links(root, place)]
        if not is_dry_run and not _own_links(root, place):
            remove_client_folder(root, Path(place))
    return results


def _own_links(root: Path, place: str) -> list[str]:
    """Return the links that we made in a client's folder, also those to a skill that is gone."""
    try:
        names = sorted(path.name for path in (root / place).iterdir() if path.is_symlink())
    except OSError:
        return []
    return [f"{place}/{name}" for name in names if _is_own(root, f"{place}/{name}")]


def _is_own(root: Path, name: str) -> bool:
    path = root / name
    if not path.is_symlink() or not is_link_of_ours(root, name):
        return False
    target = Path(os.path.normpath(real_path(path.parent) / path.readlink()))
    return target.parent.name == FOLDER and target.is_relative_to(real_path(root))


def _place(root: Path, client: Client, name: str, source: str, *, is_dry_run: bool) -> LinkResult:
    path, skill = root / name, real_path(root / source)
    is_link = _is_own(root, name)
    if path.is_symlink() and real_path(path) == skill:
        return LinkResult(client, name, LinkStatus.UNCHANGED, "link")
    if not is_link and os.path.lexists(path):
        return LinkResult(client, name, LinkStatus.LEFT, "there is a skill of yours")
    if not real_path(path.parent).is_relative_to(real_path(root)):
        return LinkResult(client, name, LinkStatus.LEFT, "a link that leaves the workspace")
    if not is_dry_run:
        try:
            if is_link:
                path.unlink()
            refuse_links(path)
            make_client_folder(root, Path(name).parent)
            note_link(root, name, is_made=True)
            path.symlink_to(os.path.relpath(skill, real_path(path.parent)), target_is_directory=True)
        except (OSError, NotImplementedError) as error:
            return LinkResult(client, name, LinkStatus.LEFT, getattr(error, "strerror", "") or str(error))
        except InputError as error:
            return LinkResult(client, name, LinkStatus.LEFT, error.message)
    return LinkResult(client, name, LinkStatus.REFRESHED if is_link else LinkStatus.MADE, "link")


def _remove(root: Path, client: Client, name: str, *, is_dry_run: bool) -> LinkResult:
    try:
        if not is_dry_run:
            (root / name).unlink()
            note_link(root, name, is_made=False)
    except OSError as error:
        return LinkResult(client, name, LinkStatus.LEFT, error.strerror or str(error))
    return LinkResult(client, name, LinkStatus.REMOVED, "link")
