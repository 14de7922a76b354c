"""Where a workspace's files lie: scopes as folders, and a walk that never leaves the root."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.errors import InputError
from archivist.workspace.problems import LintProblem

LEVELS = 3
DOCUMENTED = WorkspaceRules()
ABSTRACT = "ABSTRACT.md"
_NO_PLAN = "readme.md"
# What was archived is kept beside the learnings and counts no more.
ARCHIVE = "archive"
_SCOPE_HINT = "a scope is WORKSPACE, WORKSPACE/DOMAIN or WORKSPACE/DOMAIN/REPOSITORY"


class FileKind(StrEnum):
    """What a file of the workspace is, told by its name and place."""

    PLAN = "plan"
    OVERVIEW = "overview"
    ABSTRACT = "abstract"
    DECISIONS = "decisions"
    LESSONS = "lessons"
    DOCUMENT = "document"


LEARNINGS = (FileKind.DECISIONS, FileKind.LESSONS)
_BELOW_RESOURCES = frozenset((FileKind.PLAN, FileKind.OVERVIEW, FileKind.ABSTRACT, FileKind.DOCUMENT))


class WorkspaceScope(NamedTuple):
    """A workspace, one of its domains, or one repository of that; empty parts aggregate."""

    workspace: str = ""
    domain: str = ""
    repository: str = ""

    @classmethod
    def parse(cls, text: str | WorkspaceScope) -> WorkspaceScope:
        """Return the scope that `workspace[/domain[/repository]]` names; an empty text names all."""
        from archivist.capture.clean import clean_name

        if isinstance(text, WorkspaceScope):
            parts = list(text.parts)
        else:
            inner = text.strip().strip("/")
            parts = [part.strip() for part in inner.split("/")] if inner else []
        if len(parts) > LEVELS or (isinstance(text, str) and text.strip().startswith("/")):
            raise InputError(f"no scope: {str(text)!r}", hint=_SCOPE_HINT)
        for part in parts:
            if not part or part.startswith((".", "_")) or any(sign in part for sign in "/\\\0:"):
                raise InputError(f"no scope: {str(text)!r}", hint=_SCOPE_HINT)
            # A scope becomes the name of a folder.
            if clean_name(part) != part:
                raise InputError("a scope must not hold a secret", hint=_SCOPE_HINT)
        return cls(*parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names that are given, from the workspace down."""
        names = (self.workspace, self.domain, self.repository)
        return names[: next((place for place, name in enumerate(names) if not name), LEVELS)]

    def contains(self, other: WorkspaceScope) -> bool:
        """Say whether another scope is this one or lies below it."""
        return other.parts[: len(self.parts)] == self.parts

    def __str__(self) -> str:
        return "/".join(self.parts)


EVERYWHERE = WorkspaceScope()


class WorkspaceFile(NamedTuple):
    """One file: its path on the disk, its name relative to the root, whose it is, and when it last changed.

    `folder` is the whole way below the tree's top, of which the scope is the first three names.
    """

    file: str
    name: str
    kind: FileKind
    scope: WorkspaceScope
    folder: str
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def path(self) -> Path:
        """Return where the file lies."""
        return Path(self.file)

    @property
    def stem(self) -> str:
        """Return the file's name without its suffix."""
        return self.name.rpartition("/")[2].removesuffix(".md")


class ScanResult(NamedTuple):
    """The files of a scope, ordered by name, and what could not be looked at."""

    places: list[WorkspaceFile]
    problems: list[LintProblem]


class Topology:
    """The files of one root, by the configured names of its folders."""

    def __init__(self, root: Path, rules: WorkspaceRules = DOCUMENTED) -> None:
        self.root = root.absolute()
        self.rules = rules._replace(
            resources=_folder_name(rules.resources), learnings=_folder_name(rules.learnings)
        )
        self._real_root = os.path.realpath(self.root)
        self._apart = frozenset((self.rules.learnings, rules.hot, rules.transcripts))
        for folder in (rules.resources, rules.learnings):
            self.path_inside(folder)

    def path_inside(self, name: str | Path) -> Path:
        """Return a path below the root; raise InputError when it leaves the root, also through a link."""
        path = self.root / name
        real = os.path.realpath(path)
        if not _is_above(self._real_root, real):
            raise InputError(
                f"{str(name)!r} leaves the root {str(self.root)!r}", hint="name a path below the root"
            )
        return path

    def name_of(self, path: Path) -> str:
        """Return a path as it is told: relative to the root, with slashes."""
        return path.relative_to(self.root).as_posix()

    def folder(self, kind: FileKind, scope: WorkspaceScope) -> Path:
        """Return the folder of a scope in the tree that holds files of a kind."""
        top = self.rules.learnings if kind in LEARNINGS else self.rules.resources
        return self.path_inside(_join_path(top, *scope.parts))

    def learning_file(self, kind: FileKind, scope: WorkspaceScope) -> Path:
        """Return where decisions or lessons of a workspace or domain are kept, there or not."""
        return self.path_inside(self.folder(kind, scope) / f"{kind.value}.md")

    def scopes(self) -> list[WorkspaceScope]:
        """Return every scope that has a folder, in either tree, ordered by name."""
        found: set[WorkspaceScope] = set()
        for is_learning in (False, True):
            for step in self._walk(EVERYWHERE, [], is_learning=is_learning):
                if 1 <= len(step.parts) <= LEVELS and step.is_scope:
                    found.add(WorkspaceScope(*step.parts))
        return sorted(found)

    def plans(self, scope: WorkspaceScope = EVERYWHERE) -> list[WorkspaceFile]:
        """Return the plan files of a scope."""
        return self.scan(scope, (FileKind.PLAN,)).places

    def overviews(self, scope: WorkspaceScope = EVERYWHERE) -> list[WorkspaceFile]:
        """Return the overviews of a scope."""
        return self.scan(scope, (FileKind.OVERVIEW,)).places

    def learnings(self, scope: WorkspaceScope = EVERYWHERE) -> list[WorkspaceFile]:
        """Return the files of decisions and lessons of a scope."""
        return self.scan(scope, LEARNINGS).places

    def scan(
        self, scope: WorkspaceScope = EVERYWHERE, kinds: Collection[FileKind] = tuple(FileKind)
    ) -> ScanResult:
        """Return the files of a scope and of everything below it; every folder is visited once."""
        found = ScanResult([], [])
        links: set[str] = set()
        wanted = frozenset(kinds)
        if wanted & _BELOW_RESOURCES:
            steps = self._walk(scope, found.problems, is_learning=False)
            self._scan_tree(steps, wanted & _BELOW_RESOURCES, found, links)
        if wanted & frozenset(LEARNINGS):
            steps = self._walk(scope, found.problems, is_learning=True)
            self._scan_tree(steps, wanted & frozenset(LEARNINGS), found, links)
        return ScanResult(_deduplicate_links(sorted(found.places, key=_by_name), links), found.problems)

    def _scan_tree(
        self, steps: Iterator[_Step], wanted: frozenset[FileKind], found: ScanResult, links: set[str]
    ) -> None:
        for step in steps:
            if not step.parts:
                continue
            owner = WorkspaceScope(*step.parts[:LEVELS])
            folder = "/".join(step.parts)
            for entry in step.files:
                kind = self._file_kind(entry.name, step)
                if kind not in wanted:
                    continue
                name = _join_path(step.name, entry.name)
                try:
                    if entry.is_symlink():
                        self.path_inside(name)
                        links.add(entry.path)
                    seen = entry.stat()
                except InputError as error:
                    found.problems.append(LintProblem(name, 0, "leaves-root", error.message))
                except FileNotFoundError:
                    found.problems.append(
                        LintProblem(name, 0, "dangling-link", _describe_broken_link(entry.path))
                    )
                except OSError as error:
                    found.problems.append(LintProblem(name, 0, "unreadable", f"{error.strerror}"))
                else:
                    times = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
                    found.places.append(WorkspaceFile(entry.path, name, kind, owner, folder, *times))

    def _file_kind(self, file_name: str, step: _Step) -> FileKind | None:
        if step.is_learning:
            return _LEARNING_FILES.get(file_name) if step.is_scope else None
        if step.is_plans:
            return FileKind.PLAN if file_name.lower() != _NO_PLAN else FileKind.DOCUMENT
        if step.is_scope and file_name == self.rules.overview:
            return FileKind.OVERVIEW
        if step.is_scope and file_name == ABSTRACT:
            return FileKind.ABSTRACT
        return FileKind.DOCUMENT

    def _walk(
        self, scope: WorkspaceScope, problems: list[LintProblem], *, is_learning: bool
    ) -> Iterator[_Step]:
        """Yield the folders of a scope. Links are followed last, and only to what was not visited yet."""
        name = _join_path(self.rules.learnings if is_learning else self.rules.resources, *scope.parts)
        start = str(self.path_inside(name))
        waiting = [_Step(start, name, scope.parts, [], is_learning=is_learning)]
        links: list[_Step] = []
        visited: set[str] = set()
        while waiting or links:
            if waiting:
                step = waiting.pop()
                real = os.path.realpath(step.path) if step.path == start else step.real
            else:
                step = links.pop(0)
                real = os.path.realpath(step.path)
            if real in visited:
                continue
            visited.add(real)
            try:
                with os.scandir(step.path) as entries:
                    below = self._sort_entries(step._replace(real=real), list(entries), problems)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                problems.append(LintProblem(step.name, 0, "unreadable", f"{error.strerror}"))
                continue
            waiting += (each for each in below if not each.is_link)
            links += (each for each in below if each.is_link)
            yield step

    def _sort_entries(
        self, step: _Step, entries: list[os.DirEntry[str]], problems: list[LintProblem]
    ) -> list[_Step]:
        """Put the texts of a folder to its files, and return the folders below it."""
        folders = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if not _is_folder(entry):
                if entry.name.endswith(".md"):
                    step.files.append(entry)
                continue
            below = self._child_step(step, entry)
            if not step.is_learning and below.name in self._apart:
                # The root itself may hold the overviews; the learnings and the rules lie in it then.
                continue
            if below.is_link and _is_above(os.path.realpath(entry.path), step.real):
                # A loop, or a way around the scope that was asked for.
                continue
            try:
                if below.is_link:
                    self.path_inside(entry.path)
            except InputError:
                problems.append(LintProblem(below.name, 0, "leaves-root", "the link leads out of the root"))
            else:
                folders.append(below)
        return folders

    def _child_step(self, step: _Step, entry: os.DirEntry[str]) -> _Step:
        is_plans = step.is_plans or (step.is_scope and bool(step.parts) and entry.name == self.rules.plans)
        is_scope = step.is_scope and not is_plans and not entry.name.startswith("_")
        is_scope = is_scope and not (step.is_learning and entry.name == ARCHIVE)
        return _Step(
            entry.path,
            _join_path(step.name, entry.name),
            (*step.parts, entry.name) if is_scope else step.parts,
            [],
            f"{step.real}{os.sep}{entry.name}",
            is_scope=is_scope,
            is_plans=is_plans,
            is_link=entry.is_symlink(),
            is_learning=step.is_learning,
        )


class _Step(NamedTuple):
    """A folder on the walk: the scope's names that led to it, and the files in it."""

    path: str
    name: str
    parts: tuple[str, ...]
    files: list[os.DirEntry[str]]
    real: str = ""
    is_scope: bool = True
    is_plans: bool = False
    is_link: bool = False
    is_learning: bool = False


_LEARNING_FILES = {"decisions.md": FileKind.DECISIONS, "lessons.md": FileKind.LESSONS}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_above(folder: str, other: str) -> bool:
    return other == folder or other.startswith(folder.rstrip(os.sep) + os.sep)


def _join_path(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _folder_name(given: str) -> str:
    """Return a folder's name relative to the root; empty for the root itself."""
    name = posixpath.normpath(given.strip()) if given.strip() else "."
    return "" if name == "." else name


def _describe_broken_link(link: str) -> str:
    try:
        return f"the link leads to {str(Path(link).readlink())!r}, which is not there"
    except OSError:
        return "it is gone"


def _deduplicate_links(places: list[WorkspaceFile], links: Collection[str]) -> list[WorkspaceFile]:
    """Return each file once: a link is left out where the file that it leads to is there by itself."""
    if not links:
        return places
    seen = {os.path.realpath(place.file) for place in places if place.file not in links}
    kept = []
    for place in places:
        real = os.path.realpath(place.file) if place.file in links else ""
        if real not in seen:
            kept.append(place)
            seen |= {real} if real else set()
    return kept


def suggest_scopes(asked: WorkspaceScope, known: Collection[WorkspaceScope]) -> str:
    """Say which scopes there are in the place of one that is not: the nearest by name, else its siblings."""
    depth = 1
    while depth < len(asked.parts) and any(
        WorkspaceScope(*asked.parts[:depth]).contains(each) for each in known
    ):
        depth += 1
    above = WorkspaceScope(*asked.parts[: depth - 1])
    there = sorted(
        {each.parts[depth - 1] for each in known if len(each.parts) >= depth and above.contains(each)}
    )
    from difflib import get_close_matches

    near = get_close_matches(asked.parts[depth - 1], there, n=1) if asked.parts else []
    if near:
        return f"did you mean {'/'.join((*above.parts, near[0]))!r}?"
    named = ", ".join("/".join((*above.parts, name)) for name in there[:10])
    return f"there is {named}" if named else f"{str(above)!r} has nothing below it"


def _by_name(place: WorkspaceFile) -> str:
    return place.name


def find_root(start: Path, rules: WorkspaceRules = DOCUMENTED) -> Path | None:
    """Return the nearest folder upwards that has one of the two trees; None when there is none."""
    names = [name for name in (_folder_name(rules.resources), _folder_name(rules.learnings)) if name]
    for folder in (start, *start.parents):
        if any((folder / name).is_dir() for name in names):
            return folder
    return None
