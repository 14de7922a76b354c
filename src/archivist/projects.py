"""Work on projects: which ones a bank knows, and which one a name or a folder means.

A project's name belongs to the repository whose runs were last filed under it. Runs keep where they were
made, so that another repository of the same name is another project, and a moved one is found again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.store.filters import equals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from archivist.records import Episode
    from archivist.store.protocol import Reader

# Where a run keeps the repository that it was made in, beside the folder that its log names.
CHECKOUT = "checkout"
# So many of the latest runs are asked where they were made.
_LATEST = 20
# And so many of every project for a repository that has none of its names.
_FEW = 3
_MOST_NAMES = 3


def run_projects(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs."""
    return set(reader.values("episode", "project"))


def single_project(reader: Reader) -> str:
    """Return the project of the bank's runs when there is only one, else an empty text.

    Where no run names any it is that of the lessons.
    """
    projects = run_projects(reader) or set(reader.values("lesson", "repo"))
    return projects.pop() if len(projects) == 1 else ""


def resolve_name(reader: Reader, name: str) -> str:
    """Return the project that a name means: itself, or the only one that differs by its owner's part."""
    return name if _is_known(reader, name) else _match_last_part(name, all_projects(reader)) or name


def resolve_project(reader: Reader, repo: str, folder: Path | None, root: Path) -> tuple[str, str]:
    """Return the project that somebody means, and what says so; empty texts when nothing does.

    It is the one that is named, else that of the folder they work in: one that the bank knows, or a
    repository that it does not know yet. Outside of any the only one there is is meant.
    """
    if repo:
        return resolve_name(reader, repo), "as it was named"
    if folder is not None:
        from archivist.files.worktrees import is_repository, repository_of

        project = project_at(reader, folder, root)
        if _is_known(reader, project) or is_repository(repository_of(folder, root)):
            return project, "by the folder"
    project = single_project(reader)
    return project, "the only one there is" if project else ""


def project_at(reader: Reader, folder: Path, root: Path) -> str:
    """Return the project that a session in a folder works on, by the name that the bank has for it.

    A repository is known by its folder's name, by that of its remote, or by the folder above it too: by the
    first that is not another repository's. Where it was filed before it is found under any name. A bank's own
    folder may have been renamed, copied or linked since: the only project there is is then meant.
    """
    from archivist.capture.folders import project_of_remote
    from archivist.files.worktrees import remote_of, repository_of
    from archivist.paths import as_text

    repository = repository_of(folder, root)
    short, *longer = _candidate_names(as_text(repository)) or [""]
    remote = project_of_remote(remote_of(repository))
    names = [name for name in (short, remote, *longer) if name]
    owned: dict[str, bool | None] = {}
    for name in names:
        if _is_known(reader, name):
            owned[name] = _is_owned(reader, name, repository, root)
            if owned[name]:
                return name
    if before := _find_by_checkout(reader, repository, root):
        return before
    unclaimed = [name for name in (*longer, short, remote) if owned.get(name, False) is None]
    if unclaimed:
        return unclaimed[0]
    others = all_projects(reader) - owned.keys()
    for each in filter(None, (short, remote)):
        like = _match_last_part(each, others)
        if like and _is_owned(reader, like, repository, root) is not False:
            return like
    return _former_name(others, repository, root) or next(
        (name for name in names if name not in owned), short
    )


def project_of_run(reader: Reader, name: str, folder: Path, root: Path) -> str:
    """Return the project of a run by the name in its log, or by its folder when the name is another's."""
    from archivist.files.worktrees import repository_of

    is_another = name and _is_owned(reader, name, repository_of(folder, root), root) is False
    return project_at(reader, folder, root) if is_another else name


def foreign_project(reader: Reader, folder: Path, home: Path, root: Path) -> str:
    """Return the project of a folder that is in another repository than home; empty when it is in none."""
    from archivist.files.worktrees import is_repository, repository_of, to_main_worktree
    from archivist.paths import is_folder

    repository = repository_of(folder, root)
    is_inside = is_folder(folder) and to_main_worktree(folder).is_relative_to(repository)
    if not is_inside or not is_repository(repository) or repository == repository_of(home, root):
        return ""
    return project_at(reader, folder, root)


def checkout_info(folder: Path, root: Path) -> dict[str, object]:
    """Return what a run that is made in a folder keeps of its repository, to be known by it again."""
    from archivist.capture.folders import project_of_remote
    from archivist.files.worktrees import remote_of, repository_fingerprint, repository_of
    from archivist.paths import as_text

    repository = repository_of(folder, root)
    kept = {
        "folder": as_text(repository),
        "mark": repository_fingerprint(repository),
        "remote": project_of_remote(remote_of(repository)),
    }
    return {name: value for name, value in kept.items() if value}


def checkout_folder(run: Episode) -> str:
    """Return the repository that a run keeps as the one that it was made in; empty when it keeps none."""
    kept = run.extra.get(CHECKOUT)
    return str(kept.get("folder") or "") if isinstance(kept, dict) else ""


def _candidate_names(folder: str) -> list[str]:
    """Return what a repository may be called by its folder: that alone, then with those above it."""
    from archivist.capture.folders import project_of_folder

    parts = folder.removesuffix(".git").replace("\\", "/").split("/")
    names: list[str] = []
    while len(names) < _MOST_NAMES and (last := project_of_folder("/".join(parts))):
        names.append(f"{last}/{names[-1]}" if names else last)
        while parts.pop() != last:
            pass
    return names


def _former_name(names: set[str], repository: Path, root: Path) -> str:
    """Return the one project of a bank whose own folder is meant, by the name that it had."""
    from archivist.files.worktrees import repository_of

    if len(names) != 1 or repository_of(root, root) != repository:
        return ""
    (name,) = names
    # The one project of a workspace is a folder in it.
    return "" if (repository / name.rpartition("/")[2]).is_dir() else name


def _is_owned(reader: Reader, name: str, repository: Path, root: Path) -> bool | None:
    """Say whether a name is a repository's own, by the latest run under it that tells; None if none does."""
    rows = reader.select_fields(
        "episode", ("extra",), equals("project", name), order=("-finished",), limit=_LATEST
    )
    told = (_is_made_in(str(extra), repository, root) for (extra,) in rows)
    return next((each for each in told if each is not None), None)


def _find_by_checkout(reader: Reader, repository: Path, root: Path) -> str:
    """Return the project one of whose latest runs was made in a repository; empty when there is none.

    Every project is asked by its own latest runs, however long ago they were. A bank may know many: a run
    that keeps another repository's marks is not looked at closely.
    """
    from archivist.capture.folders import project_of_remote
    from archivist.files.worktrees import remote_of, repository_fingerprint
    from archivist.paths import as_text

    remote = remote_of(repository)
    marks = [as_text(repository), repository_fingerprint(repository), remote, project_of_remote(remote)]
    found: list[tuple[str, str]] = []
    for name in run_projects(reader):
        rows = reader.select_fields(
            "episode", ("finished", "extra"), equals("project", name), order=("-finished",), limit=_FEW
        )
        for ended, extra in rows:
            is_like = f'"{CHECKOUT}"' not in extra or any(each in extra for each in marks if each)
            if is_like and _is_made_in(str(extra), repository, root):
                found.append((str(ended or ""), name))
    return max(found, default=("", ""))[1]


def _is_made_in(extra: str, repository: Path, root: Path) -> bool | None:
    """Say whether a run was made in a repository, by what it keeps of where; None when that tells nothing.

    A repository that is gone may be the one that is asked about; only its remote can tell that it is not.
    """
    if '"cwd"' not in extra and f'"{CHECKOUT}"' not in extra:
        return None
    import json

    noted = json.loads(extra)
    kept = noted.get(CHECKOUT)
    return _is_same_repository(
        kept if isinstance(kept, dict) else {"folder": noted.get("cwd")}, repository, root
    )


def _is_same_repository(kept: Mapping[str, object], repository: Path, root: Path) -> bool | None:
    import os
    from pathlib import Path

    from archivist.capture.folders import project_of_remote
    from archivist.files.worktrees import remote_of, repository_fingerprint, repository_of
    from archivist.paths import is_folder

    folder = Path(str(kept.get("folder") or ""))
    if not folder.is_absolute():
        return None
    other = repository_of(folder, root) if is_folder(folder) else None
    top = Path(os.path.realpath(root))
    if kept.get("mark") and kept["mark"] == repository_fingerprint(repository):
        return True
    mine = project_of_remote(remote_of(repository))
    is_same_remote = kept["remote"] == mine if mine and kept.get("remote") else None
    if other == repository:
        # A bank goes with its own folder. In any other another repository may have taken the place of one.
        return repository == top or bool(is_same_remote) or not _is_remade(kept, repository)
    if other is None:
        return is_same_remote
    is_inside = Path(os.path.realpath(folder)).is_relative_to(top)
    if not is_inside and top in (repository, other):
        # A bank that was copied with its folder knows the original, which is no part of it.
        return None
    return _are_same_repository(repository, other)


def _is_remade(kept: Mapping[str, object], repository: Path) -> bool:
    """Say whether git made a repository at another time than the one that was kept; a copy keeps its time."""
    from archivist.files.worktrees import repository_fingerprint

    made = [
        mark.rpartition("-")[2] for mark in (str(kept.get("mark") or ""), repository_fingerprint(repository))
    ]
    return all(made) and made[0] != made[1]


def _are_same_repository(one: Path, other: Path) -> bool:
    """Say whether two checkouts are of one repository: cloned from the same place, or one from the other."""
    import os

    from archivist.capture.folders import project_of_remote
    from archivist.files.worktrees import remote_of, repository_fingerprint

    if repository_fingerprint(one) and repository_fingerprint(one) == repository_fingerprint(other):
        return True
    remotes = remote_of(one), remote_of(other)
    names = [project_of_remote(each) or each for each in remotes]
    if names[0] and names[0] == names[1]:
        return True
    places = {os.path.realpath(each.removeprefix("file://")) for each in remotes if each}
    return bool(places & {str(one), str(other)})


def _is_known(reader: Reader, name: str) -> bool:
    fields = {"lesson": "repo", "episode": "project"}
    return any(
        reader.select_fields(kind, ("id",), equals(field, name), limit=1) for kind, field in fields.items()
    )


def all_projects(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs and lessons."""
    return run_projects(reader) | set(reader.values("lesson", "repo"))


def _match_last_part(name: str, names: set[str]) -> str:
    """Return the only project of the same last part when one of the two names no owner."""
    owner, _, last = name.lower().rpartition("/")
    like = [
        each for each in names if each.lower().rpartition("/")[2] == last and (not owner or "/" not in each)
    ]
    return like[0] if len(like) == 1 else ""
