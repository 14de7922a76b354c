"""Decide which project a name, a folder or a run means; the one place that does.

A project's name belongs to the repository that a person gave it to, else to the one whose runs were last
filed under it, else to that of the bank's own folder. Runs keep where they were made, so that another
repository of the same name is another project, and a moved one is found again. A name of which nothing says
where it belongs is no folder's: the first to come could be a stranger's.
"""

import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist.files.open import real_path
from archivist.files.worktrees import (
    is_repository,
    lies_in,
    nearest_folder,
    real_folder,
    remote_of,
    repository_around,
    repository_fingerprint,
    repository_of,
    to_main_worktree,
)
from archivist.paths import (
    as_text,
    is_folder,
    project_folder,
    project_of_address,
    project_of_folder,
    project_parts,
    remote_address,
    safe_name,
)
from archivist.records.words import Provenance
from archivist.store.filters import above, at_most, contains_text, equals, not_equals, one_of

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.records import Episode, Lesson
    from archivist.store.filters import Filter
    from archivist.store.protocol import Reader, Writer
else:
    # A hook makes the class below, and compiling postponed annotations from text costs it time.
    datetime = Episode = Filter = Lesson = Reader = Writer = Any

# Where a bank notes the names that one repository has in it, for banks that named it by folder and by remote.
PROJECT_NAMES = "project_names"
# Where a bank notes the repositories that a person gave a name to, as runs keep them.
NAME_OWNERS = "name_owners"
# Where a run keeps the repository that it was made in, beside the folder that its log names.
CHECKOUT = "checkout"
_UNKNOWN_FOLDER = "unknown"
# Where a run keeps, beside the repository, the linked worktree that it was made in.
WORKTREE = "worktree"
# Where a run keeps the repositories that its calls entered: checkouts of its own, and others.
ENTERED, OWN, OTHERS = "entered", "own", "others"
# A path in a command is looked at so deep, and so many folders of a run.
_MOST_PARTS = 12
_MOST_FOLDERS = 4000
_MOST_LISTED = 500
# Where repositories keep those of others.
_VENDORS = (
    "vendor", "third_party", "third-party", "external", "deps", "lib", "libs", "modules", "submodules",
)  # fmt: skip
# Where a run keeps the address of the remote that its log names.
REMOTE = "remote"
# A name is judged by its latest runs: older ones may be of a repository that had the name before.
_LATEST_RUNS = 20
# A run in a folder that is gone is compared with so many of the projects that are called alike.
_MOST_COMPARED = 200
# A repository without a known name is compared with these runs of every project.
_RUNS_OF_EACH_PROJECT = 3
# `repo`, `owner/repo`, and one folder more; longer names are paths.
_MOST_NAMES = 3
# A task names a repository after one of these; an article would make it a common word.
_BEFORE_NAMES = frozenset(("in", "of", "for", "on", "repo", "repository", "project"))
# What an agent reports or suggests must not decide what the user's own folders are called.
_BELIEVED_RUN = not_equals("provenance", Provenance.SUGGESTED)
_BELIEVED_LESSON = equals("is_waiting", 0)


class Repository:
    """A repository: its folder, the fingerprint that moves with it, and the address of its remote."""

    # Not a named tuple: compiling its annotations costs every hook a millisecond.
    __slots__ = ("address", "folder", "mark")

    def __init__(self, folder: Path, mark: str, address: str) -> None:
        self.folder = folder
        self.mark = mark
        self.address = address

    @property
    def remote_name(self) -> str:
        """Return `owner/repo` of the remote, or an empty text."""
        return project_of_address(self.address)

    @property
    def names(self) -> list[str]:
        """Return what it may be called, the best first: by its remote, its folder, the folders above it."""
        own, *longer = _candidate_names(as_text(self.folder)) or [""]
        last = safe_name(self.remote_name.rpartition("/")[2])
        return [name for name in dict.fromkeys((last, own, self.remote_name, *longer)) if name]

    def is_same(self, other: "Repository") -> bool:
        """Say whether two are checkouts of one: by fingerprint, by remote, or one is a clone of the other."""
        both = (self, other)
        if (self.mark and self.mark == other.mark) or (self.address and self.address == other.address):
            return True
        origins = {os.path.realpath(each.address) for each in both if re.match(r"/[^/]", each.address)}
        return self.folder == other.folder or bool(origins & {str(each.folder) for each in both})


def find_clones(folder: Path, banks: Iterable[Path]) -> list[Path]:
    """Return the other checkouts of a folder's repository that have one of these banks."""
    top = Path(folder.anchor)
    own = describe_repository(folder, top)
    places = [place for bank in banks if is_folder(place := project_folder(bank))]
    known = [describe_repository(place, top) for place in places if is_repository(repository_of(place, top))]
    return sorted({other.folder for other in known if other.is_same(own) and other.folder != own.folder})


def name_of_clone(reader: Reader, folder: Path, root: Path, clone: Path) -> str:
    """Return the name of another clone for a repository that no remote names; empty if it has a name."""
    own = describe_repository(folder, root)
    is_named = own.remote_name or any(_is_known(reader, name) for name in own.names)
    return "" if is_named else describe_repository(clone, clone).names[0]


def run_projects(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs, without those that agents reported."""
    return set(reader.values("episode", "project", _BELIEVED_RUN))


def all_projects(reader: Reader) -> set[str]:
    """Return the projects of the bank's runs and lessons."""
    return run_projects(reader) | set(reader.values("lesson", "repo", _BELIEVED_LESSON))


def other_projects(reader: Reader, folder: Path | None, root: Path) -> frozenset[str]:
    """Return the projects that a caller in a folder does not mean; none outside of any repository."""
    own = project_at(reader, folder, root) if folder is not None else ""
    known = all_projects(reader) - {""} if own else set()
    is_apart = own in known or (folder is not None and is_repository(repository_of(folder, root)))
    return frozenset(known.difference(names_of(reader, own))) if is_apart else frozenset()


def without_others(
    reader: Reader, kind: str, field: str, folder: Path | None, root: Path
) -> tuple[Filter, ...]:
    """Return the condition on records that a caller in a folder is shown: none of another repository."""
    others = other_projects(reader, folder, root)
    known = ["", *reader.values(kind, field)] if others else []
    return (one_of(field, [name for name in known if name not in others]),) if others else ()


def resolve_name(reader: Reader, name: str, folder: Path | None = None, root: Path | None = None) -> str:
    """Return the project that a name means: itself, or the only one that differs by the owner's part.

    The repository of the caller's folder, the bank's own and the one of that name inside of it come first:
    another may have taken the name.
    """
    if root is not None and (repository := _named_repository(name, folder, root)) is not None:
        return _project_of_repository(reader, repository, root)
    return name if _is_known(reader, name) else _match_last_part(name, all_projects(reader)) or name


def resolve_project(
    reader: Reader, repo: str, folder: Path | None, root: Path, task: str = ""
) -> tuple[str, str]:
    """Return the project that a call means, and the reason; empty texts when there is none.

    It is the named one, else the project of the folder, if the bank knows it. Elsewhere it is the one that
    the task names, a new repository, or the only project there is. A server works in the bank's own folder.
    """
    if repo:
        return resolve_name(reader, repo, folder, root), "as it was named"
    folder = folder or root
    if (project := project_at(reader, folder, root)) and _is_known(reader, project):
        return project, "by the folder"
    if task and (meant := _name_in(task, all_projects(reader))):
        return meant, "as the task names it"
    if is_repository(repository_of(folder, root)):
        return project, "by the folder"
    projects = run_projects(reader) or all_projects(reader)
    return (projects.pop(), "the only one there is") if len(projects) == 1 else ("", "")


def project_at(reader: Reader, folder: Path, root: Path) -> str:
    """Return the project that a session in a folder works on, by the bank's name for it.

    A repository can be known by the name of its remote, of its folder, or by folders above it: the first
    that is its own. One that was filed before is found under any name. The bank's own folder may have been
    renamed, copied or linked since: then the only project is meant.
    """
    return _project_of_repository(reader, describe_repository(folder, root), root)


def _project_of_repository(reader: Reader, repository: Repository, root: Path) -> str:
    names = repository.names
    known: list[str] = []
    for name in names:
        if _is_known(reader, name):
            known.append(name)
            if _is_owned(reader, name, repository, root):
                return name
    for name in reader.json_setting(NAME_OWNERS):
        if name not in names and _is_owned(reader, name, repository, root):
            return name
    if filed := _find_by_checkout(reader, repository, root):
        return filed
    others = all_projects(reader) - set(names)
    if len(others) == 1 and repository_of(root, root) == repository.folder:
        (former,) = others
        runs = reader.select_fields(
            "episode",
            ("extra",),
            equals("project", former),
            order=("-finished",),
            limit=_RUNS_OF_EACH_PROJECT,
        )
        # A folder of that name inside means a workspace whose only project it is; runs of a repository that
        # is still there, such as a submodule, are not of this one, and of a folder that was made since its
        # run nothing says what it was.
        is_elsewhere = any(
            _is_made_in(str(extra), repository, root) is False or _is_of_unknown_folder(str(extra))
            for (extra,) in runs
        )
        if not is_elsewhere and not (repository.folder / former.rpartition("/")[2]).is_dir():
            return former
    for name in names:
        is_taken = name in known or _is_owned(reader, name, repository, root) is False
        if not is_taken and not _is_remote_of_run(reader, name):
            return name
    # A project without a name would be everybody's.
    is_unnamed = not names and repository.folder == real_path(root)
    return "" if is_unnamed else _distinct_name((names or ["repository"])[0], as_text(repository.folder))


def _is_remote_of_run(reader: Reader, name: str) -> bool:
    """Say whether a name is `owner/repo` of a remote that a run noted, which is then another repository's."""
    if "/" not in name:
        return False
    rows = reader.select_fields("episode", ("extra",), contains_text("extra", f'/{name}"'))
    return any(re.search(rf'"//[^"/]+/(?:[^"]+/)?{re.escape(name)}"', extra) for (extra,) in rows)


def _distinct_name(name: str, place: str) -> str:
    """Return a name for a repository whose names are all another's."""
    from archivist.cold_start import sha256

    return f"{name}@{sha256(place.encode()).hexdigest()[:8]}"


def is_distinct_name(name: str) -> bool:
    """Say whether a name was given because nothing told whose the runs are, or another has the plain one."""
    return re.search(r"@[0-9a-f]{8}$", name) is not None


def project_and_doubt(reader: Reader, folder: Path, root: Path) -> tuple[str, str]:
    """Return the project of a folder, and a name that it has of which nothing says whose it is, if any."""
    repository = describe_repository(folder, root)
    project = _project_of_repository(reader, repository, root)
    names = [name for name in repository.names if name not in names_of(reader, project)]
    asked = (name for name in names if _is_known(reader, name))
    return project, next((name for name in asked if _is_owned(reader, name, repository, root) is None), "")


def file_under(writer: Writer, name: str, folder: Path | None, root: Path) -> str:
    """Return the project that a person means by a name, and note whose name it is if nobody has it yet."""
    repository = _named_repository(name, folder, root)
    if repository is None:
        return name
    _note_first_owner(writer, name, repository, root)
    project = _project_of_repository(writer, repository, root)
    _note_first_owner(writer, project, repository, root)
    return project


def note_name(writer: Writer, name: str, folder: Path | None, root: Path) -> None:
    """Note whose a name is that a person files logs under, unless another repository has it.

    The logs may name an address that the repository's remote had before.
    """
    if (repository := _named_repository(name, folder, root)) is not None:
        _note_first_owner(writer, name, repository, root)


def other_owner(reader: Reader, name: str, folder: Path, root: Path) -> str:
    """Return the folder of another repository that is there and known to have a name; else an empty text."""
    owner = reader.json_setting(NAME_OWNERS).get(name) or {}
    ours, place = _repository_info(describe_repository(folder, root)), str(owner.get("folder", ""))
    telling = next((key for key in (REMOTE, "mark", "folder") if key in owner and key in ours), "")
    return place if telling and owner[telling] != ours[telling] and is_folder(Path(place)) else ""


def claim_name(writer: Writer, name: str, folder: Path, root: Path, *, is_taken: bool = False) -> None:
    """Note that a name is that of the folder's repository, and file its lessons there.

    Raise StateError if another is known to have it, unless it is to be taken. A failure's key begins with its
    project: of two lessons on one failure none would find the other.
    """
    from dataclasses import replace

    from archivist.errors import StateError
    from archivist.records import Lesson
    from archivist.records.plain import canonical_json

    if not is_taken and (other := other_owner(writer, name, folder, root)):
        raise StateError(f"{name!r} is the name of the repository in {other}", hint="--yes takes it")
    _note_owner(writer, name, describe_repository(folder, root))
    writer.set_setting(PROJECT_NAMES, canonical_json(find_names(writer, folder, root)))
    project = project_at(writer, folder, root)
    others = [other for other in names_of(writer, project) if other != project]
    for lesson in writer.select(Lesson, one_of("repo", others)) if others else ():
        key = lesson.signature.removeprefix(f"{lesson.repo}|")
        signature = lesson.signature if key == lesson.signature else f"{project}|{key}"
        writer.put(replace(lesson, repo=project, signature=signature), "claim")


def _note_first_owner(writer: Writer, name: str, repository: Repository, root: Path) -> None:
    is_given = name in writer.json_setting(NAME_OWNERS)
    if not is_given and _is_owned(writer, name, repository, root) is not False:
        _note_owner(writer, name, repository)


def _note_owner(writer: Writer, name: str, repository: Repository) -> None:
    from archivist.records.plain import canonical_json

    owners = {**writer.json_setting(NAME_OWNERS), name: _repository_info(repository)}
    writer.set_setting(NAME_OWNERS, canonical_json(owners))


def _named_repository(name: str, folder: Path | None, root: Path) -> Repository | None:
    """Return the repository that a person means by a name: that of the folder, or the bank's of that name."""
    for place in filter(None, (folder, root, root / name)):
        repository = describe_repository(place, root) if is_folder(place) else None
        if repository is not None and name in repository.names:
            return repository
    return None


def project_of_run(reader: Reader, name: str, folder: Path, root: Path, remote: str = "") -> str:
    """Return the project of a run by its folder, and by what its log calls it.

    Logs name a repository after the folder or the remote: such a name only says where the run was made. Any
    other counts, unless it is another repository's. A folder that is not here was the bank's own repository,
    in a container or a clone, if the remote has the same address; `owner/repo` counts if a log says no more.
    Where the bank's own repository has no remote, `owner/repo` and `repo` are one unless something tells.
    A folder that is gone from another repository was that one's, whatever the log says.
    """
    if not is_folder(folder):
        own = describe_repository(root, root)
        if (around := stranger_around(folder, root)) is not None:
            return project_at(reader, around, root)
        same = (remote, own.address) if remote else (name.lower(), own.remote_name.lower())
        if own.address and same[0] == same[1]:
            return project_at(reader, root, root)
        if not own.address and (filed := _known_alike(reader, name, folder, remote)):
            return filed
        if not remote:
            return name
        owned = _is_owned(reader, name, Repository(folder, "", remote), root)
        # A name of which nothing says where it belongs is not this one's either.
        is_taken = owned is False or (owned is None and _is_known(reader, name))
        return _distinct_name(name, remote) if is_taken else name
    repository = describe_repository(folder, root)
    is_inside = lies_in(folder, repository.folder)
    derived = (project_of_folder(as_text(folder)), repository.remote_name)
    is_derived = is_inside and (bool(remote) or name in derived)
    is_another = name and _is_owned(reader, name, repository, root) is False
    return project_at(reader, folder, root) if is_derived or is_another else name


def project_of_root(reader: Reader, named: str, root: Path) -> str:
    """Return the project that a file means by `projectRoot`: the path of a folder, or a project's name."""
    is_path = re.match(r"~?/|\.{1,2}(?:/|$)|[A-Za-z]:[\\/]", named)
    return project_of_run(reader, project_of_folder(named), root / named, root) if is_path else named


def _known_alike(reader: Reader, name: str, folder: Path, remote: str) -> str:
    """Return the project, called alike but for its owner, that a run in a folder that is gone can be of.

    Some clients note the remote, others the folder alone. Two remotes are two repositories. Without the same
    folder it must be the only one, and a remote joins none of which a folder is still there.
    """
    last, found = name.rpartition("/")[2].lower(), []
    alike = [other for other in run_projects(reader) if last and other.rpartition("/")[2].lower() == last]
    for project in alike:
        rows = _latest_runs(reader, project, _MOST_COMPARED)
        noted = [json.loads(extra) for (extra,) in rows]
        remotes = {run[REMOTE] for run in noted if run.get(REMOTE)}
        is_here = any(run.get("cwd") == as_text(folder) for run in noted)
        is_gone = not any(is_folder(Path(str(run.get("cwd") or ""))) for run in noted)
        is_likely = is_here or (len(alike) == 1 and (not remote or (is_gone and not remotes)))
        if is_likely and not (remote and remotes - {remote}):
            found.append((is_here, bool(remotes), project))
    return max(found, default=(False, False, ""))[2]


def names_of(reader: Reader, project: str) -> tuple[str, ...]:
    """Return all names under which a bank holds what was met in a project's repository, its own first."""
    others = reader.json_setting(PROJECT_NAMES).get(project) if project else None
    return (
        (project, *(name for name in others if name != project)) if isinstance(others, list) else (project,)
    )


class RunNumbers:
    """The numbers of the runs that aged a bank: a project's lessons age by its own, those of none by all."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[str, Sequence[int]] = {}

    def latest(self, project: str, limit: int | None = None) -> Sequence[int]:
        """Return the latest numbers of a project's runs, the highest last; without a project of all runs."""
        count = self._reader.run_count()
        if not project:
            return range(max(1, count - limit + 1) if limit else 1, count + 1)
        names = one_of("project", names_of(self._reader, project))
        is_counted = above("number", 0), at_most("number", count)
        rows = self._reader.select_fields(
            "episode", ("number",), names, *is_counted, order=("-number",), limit=limit
        )
        return [int(row[0]) for row in reversed(rows)]

    def due_from(self, project: str, unseen_runs: int) -> int:
        """Return the highest `unseen_from` of a lesson that so many runs of its project have not met."""
        numbers = self.latest(project, unseen_runs)
        # What an import says about runs elsewhere lies below the first run.
        return numbers[0] - 1 if len(numbers) == unseen_runs else len(numbers) - unseen_runs

    def unseen_from(self, project: str, unseen_runs: int) -> int:
        """Return the `unseen_from` of a lesson that exactly so many runs of its project have not met."""
        return self.due_from(project, unseen_runs) if unseen_runs else self._reader.run_count()

    def count_unseen(self, lesson: Lesson) -> int:
        """Return how many runs of its project have not met a lesson since it was last seen."""
        if lesson.repo not in self._known:
            self._known[lesson.repo] = self.latest(lesson.repo)
        numbers = self._known[lesson.repo]
        return len(numbers) - bisect_right(numbers, lesson.unseen_from) + max(0, -lesson.unseen_from)


def find_names(reader: Reader, folder: Path, root: Path) -> dict[str, Any]:
    """Return what to note as `PROJECT_NAMES`, brought up to date with the repository of a folder."""
    repository = describe_repository(folder, root)
    names = sorted(name for name in all_projects(reader) if _is_owned(reader, name, repository, root))
    groups = reader.json_setting(PROJECT_NAMES)
    kept = {name: group for name, group in groups.items() if not {name, *group} & set(names)}
    return {**kept, **dict.fromkeys(names if len(names) > 1 else (), names)}


def is_newer(folder: Path, moment: datetime | None) -> bool:
    """Say whether a repository inside of another came to be where a folder lies after a time.

    It may or may not be the one that was there. Nobody can set the times that are asked for here.
    """
    known = moment.timestamp() if moment else 0.0
    inner = repository_around(real_folder(folder))
    while inner is not None and (outer := repository_around(inner.parent)) is not None:
        # A linked worktree lies where the user had git put it, whatever was there before.
        is_linked = to_main_worktree(inner) == to_main_worktree(outer)
        if not is_linked and _made_at(inner / ".git") > known:
            return True
        inner = outer
    return False


def _made_at(path: Path) -> float:
    """Return when a file or a folder came to be where it is; 0 without one."""
    try:
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_ctime
        # A folder changes with each entry; its oldest entries came with it.
        with os.scandir(path) as entries:
            return min((entry.stat(follow_symlinks=False).st_ctime for entry in entries), default=0.0)
    except OSError:
        return 0.0


def stranger_around(folder: Path, root: Path) -> Path | None:
    """Return the repository that a folder, or the nearest one above it that exists, lies in.

    None where that is no repository, or the one of a root.
    """
    around = repository_around(nearest_folder(folder))
    is_own = around is None or repository_of(around, Path(around.anchor)) == repository_of(root, root)
    return None if is_own else around


def is_session_of(folder: Path, root: Path) -> bool:
    """Say whether a session that began in a folder can be one of the project of a bank's root.

    It can when it began inside of it, in another checkout of the same repository, or above it and in no
    repository. Of a folder that is gone nothing tells.
    """
    place, top = to_main_worktree(folder), real_path(root)
    if place.is_relative_to(top):
        return True
    if (own := repository_around(place)) is None:
        return top.is_relative_to(place) and is_folder(place)
    return describe_repository(own, Path(own.anchor)).is_same(describe_repository(root, root))


def is_start_of(folder: Path, run: Episode | None) -> bool:
    """Say whether a folder can be the one that a run started in, by what was noted then.

    Of one that is gone, and lay in no repository that is still there, nothing says that it was not.
    """
    tops = checkout_tops(run) if run is not None else []
    is_gone = not is_folder(folder) and repository_around(nearest_folder(folder)) is None
    return bool(tops) and (is_gone or any(real_folder(folder).is_relative_to(top) for top in tops))


def find_nested(paths: Iterable[str], began: Path) -> list[str]:
    """Return the folders of these paths, and those above them, that have a `.git` of their own.

    Paths may be relative to where the run began. Each folder is looked at once. So are the folders in the one
    where it began, and those in `vendor` and the like: a call may name them by their names alone.
    """
    named: set[str] = set()
    for path in paths:
        parts = path.split("/")[:_MOST_PARTS]
        named.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    named -= {"", "~", ".", ".."}
    inside = (f"{name}/{each}" for name in _VENDORS for each in _folders_in(began / name))
    # What calls name comes first: a folder of many others must not hide it.
    most = list(dict.fromkeys((*sorted(named), *_folders_in(began), *inside)))[:_MOST_FOLDERS]
    return [folder for folder in most if os.path.lexists(began / os.path.expanduser(folder) / ".git")]  # noqa: PTH111


def _folders_in(folder: Path) -> list[str]:
    """Return the names of the folders in one, as far as there are not too many; links are none."""
    try:
        with os.scandir(folder) as found:
            return [each.name for each in islice(found, _MOST_LISTED) if each.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return []


def note_entered(paths: Iterable[str], began: Path, home: Path, root: Path) -> dict[str, object]:
    """Return what a run keeps of the repositories that its calls entered: checkouts of its own, and others.

    Paths may be relative to where it began; `home` is a folder of its repository, should that one be gone.
    """
    anchor = Path(began.anchor)
    own = describe_repository(home, root)
    places = (nearest_folder(began / os.path.expanduser(path)) for path in paths)  # noqa: PTH111
    tops = {top for top in map(repository_around, places) if top is not None}
    same = {top for top in tops if describe_repository(top, anchor).is_same(own)}
    kept = {OWN: sorted(map(as_text, same)), OTHERS: sorted(map(as_text, tops - same))}
    return {ENTERED: kept} if tops - {own.folder} else {}


def foreign_project(reader: Reader, folder: Path, home: Path, root: Path) -> str:
    """Return the project of a folder in another repository than home; empty when it is in none."""
    repository = repository_of(folder, root)
    is_inside = is_folder(folder) and lies_in(folder, repository)
    if not is_inside or not is_repository(repository) or repository == repository_of(home, root):
        return ""
    return project_at(reader, folder, root)


def unknown_project(folder: Path) -> tuple[str, dict[str, object]]:
    """Return a project's name for a folder of which nothing says what it was, and what a run keeps of it."""
    place = as_text(folder)
    return _distinct_name(project_of_folder(place), place), {"folder": _UNKNOWN_FOLDER}


def _is_of_unknown_folder(extra: str) -> bool:
    """Say whether nothing told, when a run was filed, what the folder was in which it was made."""
    checkout = json.loads(extra).get(CHECKOUT) if _UNKNOWN_FOLDER in extra else None
    return isinstance(checkout, dict) and checkout.get("folder") == _UNKNOWN_FOLDER


def checkout_info(folder: Path, root: Path) -> dict[str, object]:
    """Return what a run keeps of the repository that it is made in, to be recognised later."""
    repository, place = describe_repository(folder, root), real_folder(folder)
    top = repository_around(place)
    is_linked = top is not None and not place.is_relative_to(repository.folder)
    return _repository_info(repository) | ({WORKTREE: as_text(top)} if top is not None and is_linked else {})


def _repository_info(repository: Repository) -> dict[str, object]:
    kept = {"folder": as_text(repository.folder), "mark": repository.mark, REMOTE: repository.address}
    return {name: value for name, value in kept.items() if value}


def checkout_folder(run: Episode) -> str:
    """Return the folder of the repository that a run was made in; empty when it keeps none."""
    return "".join(checkout_tops(run)[:1])


def checkout_tops(run: Episode) -> list[str]:
    """Return the folder of the repository that a run was made in, and its linked worktree, if it has one."""
    kept = run.extra.get(CHECKOUT)
    return (
        [str(kept[name]) for name in ("folder", WORKTREE) if kept.get(name)] if isinstance(kept, dict) else []
    )


def describe_repository(folder: Path, root: Path) -> Repository:
    """Return the repository of a folder, with its mark and address."""
    found = repository_of(folder, root)
    return Repository(found, repository_fingerprint(found), remote_address(remote_of(found)))


def _candidate_names(folder: str) -> list[str]:
    """Return what a repository may be called by its folder: that alone, then with those above it.

    The last is what it was called when folders such as `app` were passed over: banks may know it so.
    """
    parts = [safe_name(part) for part in project_parts(folder.removesuffix(".git"))]
    # Whoever works in worktrees alone keeps the bare repository beside them, in a folder called so.
    if len(parts) > 1 and parts[-1] in ("bare", ".bare"):
        parts.pop()
    lengths = range(1, min(len(parts), _MOST_NAMES) + 1)
    return [*("/".join(parts[-length:]) for length in lengths), project_of_folder(folder)]


def _latest_runs(reader: Reader, project: str, limit: int, fields: Sequence[str] = ("extra",)) -> list[Any]:
    filed = equals("project", project), _BELIEVED_RUN
    return reader.select_fields("episode", fields, *filed, order=("-finished",), limit=limit)


def _is_owned(reader: Reader, name: str, repository: Repository, root: Path) -> bool | None:
    """Say whether a name is a repository's; None if nothing tells whose it is.

    The person who gave it to one decides, else the latest run that can tell, else what the bank's own folder
    is called: no repository inside of it can take its names.
    """
    extras = [str(extra) for (extra,) in _latest_runs(reader, name, _LATEST_RUNS)]
    if owner := reader.json_setting(NAME_OWNERS).get(name):
        extras.insert(0, json.dumps({CHECKOUT: owner}))
    answers = (_is_made_in(extra, repository, root) for extra in extras)
    answer = next((answer for answer in answers if answer is not None), None)
    if answer is None:
        # A lesson of a file may name the folder of its project, and no run be known.
        is_filed = equals("repo", name), not_equals("project", ""), _BELIEVED_LESSON
        folders = reader.select_fields("lesson", ("project",), *is_filed, order=("id",), limit=_LATEST_RUNS)
        answers = (_is_made_in(json.dumps({"cwd": folder}), repository, root) for (folder,) in folders)
        answer = next((answer for answer in answers if answer is not None), None)
    if answer is None:
        own = repository if repository.folder == real_path(root) else describe_repository(root, root)
        answer = own.is_same(repository) if name in own.names else None
    return answer


def _find_by_checkout(reader: Reader, repository: Repository, root: Path) -> str:
    """Return the project with the latest run that was made in a repository; empty when there is none."""
    marks = (as_text(repository.folder), repository.mark, repository.address, repository.remote_name)
    found: list[tuple[str, str]] = []
    for name in run_projects(reader):
        rows = _latest_runs(reader, name, _RUNS_OF_EACH_PROJECT, ("finished", "extra"))
        for ended, extra in rows:
            # A bank may know hundreds of projects: a run with another repository's marks is not parsed.
            is_like = f'"{CHECKOUT}"' not in extra or any(mark in extra for mark in marks if mark)
            if is_like and _is_made_in(str(extra), repository, root):
                found.append((str(ended or ""), name))
    return max(found, default=("", ""))[1]


def _is_made_in(extra: str, repository: Repository, root: Path) -> bool | None:
    """Say whether a run was made in a repository, by what it keeps of where; None when that tells nothing.

    A repository that is gone may be the one in question; only its remote can tell that it is not.
    """
    if '"cwd"' not in extra and f'"{CHECKOUT}"' not in extra:
        return None
    noted = json.loads(extra)
    checkout = noted.get(CHECKOUT)
    kept: Mapping[str, object] = checkout if isinstance(checkout, dict) else noted
    folder = Path(str(kept.get("folder") or noted.get("cwd") or ""))
    if not folder.is_absolute():
        return None
    mark = str(kept.get("mark") or "")
    if mark and mark == repository.mark:
        return True
    is_same_remote = _is_same_remote(str(kept.get(REMOTE) or ""), repository)
    if not is_folder(folder):
        return is_same_remote
    other = describe_repository(folder, root)
    top = real_path(root)
    if other.folder == repository.folder:
        # A bank goes with its own folder. Any other folder may hold a new repository: git then made it at
        # another time, which is the second part of a mark, and which a copy keeps.
        times = [text.rpartition("-")[2] for text in (mark, repository.mark)]
        is_remade = times[0] != times[1] if all(times) else is_same_remote is False
        return repository.folder == top or bool(is_same_remote) or not is_remade
    is_inside = real_folder(folder).is_relative_to(top)
    if not is_inside and top in (repository.folder, other.folder):
        # A bank that was copied with its folder knows the original, which is no part of it.
        return None
    return repository.is_same(other)


def _is_same_remote(noted: str, repository: Repository) -> bool | None:
    """Say whether a run's remote is a repository's; None when one has none, or an old run lacks the host."""
    if not noted or not repository.address:
        return None
    if noted == repository.address:
        return True
    return None if noted == repository.remote_name else False


def _name_in(task: str, names: set[str]) -> str:
    """Return the only project that a task calls by its name: whole, quoted, or in the place of a name.

    Many projects are called by common words: "sort the shelves" does not mean the project of that name.
    """
    tokens = ["of", *re.findall(r"[\w.+/`-]+", task.lower())]
    words = {
        token.strip("`./-")
        for before, token in pairwise(tokens)
        if before in _BEFORE_NAMES or "/" in token or token.startswith("`")
    }
    found = [name for name in names if words & {name.lower(), name.lower().rpartition("/")[2]}]
    return found[0] if len(found) == 1 else ""


def _is_known(reader: Reader, name: str) -> bool:
    wanted = {
        "lesson": (equals("repo", name), _BELIEVED_LESSON),
        "episode": (equals("project", name), _BELIEVED_RUN),
    }
    return any(reader.select_fields(kind, ("id",), *given, limit=1) for kind, given in wanted.items())


def _match_last_part(name: str, names: set[str]) -> str:
    """Return the only project with the same last part, when one of the two names has no owner."""
    owner, _, last = name.lower().rpartition("/")
    alike = [
        other
        for other in names
        if other.lower().rpartition("/")[2] == last and (not owner or "/" not in other)
    ]
    return alike[0] if len(alike) == 1 else ""
