"""Find and read a workspace's files on disk: scan the two trees, parse each file only when it changed.

A scan never leaves the root. A file counts as unchanged when its size and both its times are the same, and
were already old when it was read: a second edit within the clock's resolution may leave all three the same,
so a fresh file is read again and compared by the hash of its bytes.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError
from archivist.files.open import FRESH_NS, is_inside, open_regular, real_path, refuse_way_out
from archivist.text import ODD_NAME, escape_name, is_odd_name
from archivist.workspace.documents import Overview, Plan, read_overview, read_plan
from archivist.workspace.learnings import LearningFile, read_learning_file
from archivist.workspace.topology import (
    ABSTRACT,
    ARCHIVE,
    DOCUMENTED,
    EVERYWHERE,
    LEARNINGS,
    LEVELS,
    FileKind,
    LintProblem,
    ScanResult,
    SourceFile,
    WorkspaceFile,
    WorkspaceScope,
    decode,
    suggest_scopes,
)

MAX_BYTES = 16 * 1024**2
_MAX_SUGGESTIONS = 10
_NOT_A_PLAN = "readme.md"
_BELOW_RESOURCES = frozenset((FileKind.PLAN, FileKind.OVERVIEW, FileKind.ABSTRACT, FileKind.DOCUMENT))
_LEARNING_FILES = {f"{kind.value}.md": kind for kind in LEARNINGS}


class Topology:
    """The files of one root, with the configured names of its folders."""

    def __init__(self, root: Path, rules: WorkspaceRules = DOCUMENTED) -> None:
        self.root = root.absolute()
        self.rules = rules._replace(
            resources=_folder_name(rules.resources), learnings=_folder_name(rules.learnings)
        )
        self._real_root = os.path.realpath(self.root)
        self._separate = frozenset((self.rules.learnings, rules.hot, rules.transcripts))
        for folder in (rules.resources, rules.learnings):
            self.path_inside(folder)

    def path_inside(self, name: str | Path) -> Path:
        """Return a path below the root; raise InputError when it leaves the root, also through a link."""
        path = self.root / name
        if not is_inside(os.path.realpath(path), self._real_root):
            hint = "name a path below the root"
            raise InputError(f"{str(name)!r} leaves the root {str(self.root)!r}", hint=hint)
        refuse_way_out(path)
        return path

    def name_of(self, path: Path) -> str:
        """Return a path relative to the root, with slashes."""
        return path.relative_to(self.root).as_posix()

    def folder(self, kind: FileKind, scope: WorkspaceScope) -> Path:
        """Return the folder of a scope in the tree that holds files of a kind."""
        top = self.rules.learnings if kind in LEARNINGS else self.rules.resources
        return self.path_inside(_join_path(top, *scope.parts))

    def learning_file(self, kind: FileKind, scope: WorkspaceScope) -> Path:
        """Return the path of a scope's decisions or lessons; the file may not exist."""
        return self.path_inside(self.folder(kind, scope) / f"{kind.value}.md")

    def scopes(self) -> list[WorkspaceScope]:
        """Return every scope that has a folder in either tree, ordered by name."""
        trees = (self._walk(EVERYWHERE, [], is_learning=is_learning) for is_learning in (False, True))
        steps = (step for tree in trees for step in tree if step.is_scope)
        return sorted({WorkspaceScope(*step.parts) for step in steps if 1 <= len(step.parts) <= LEVELS})

    def scan(
        self, scope: WorkspaceScope = EVERYWHERE, kinds: Collection[FileKind] = tuple(FileKind)
    ) -> ScanResult:
        """Return the files of a scope and of everything below it; every folder is visited once."""
        result = ScanResult([], [])
        links: set[str] = set()
        for is_learning, in_tree in ((False, _BELOW_RESOURCES), (True, frozenset(LEARNINGS))):
            wanted = in_tree.intersection(kinds)
            if wanted:
                for step in self._walk(scope, result.problems, is_learning=is_learning):
                    self._scan_folder(step, wanted, result, links)
        places = result.places
        if links:
            # Each file counts once: a link is left out when its target is found by itself.
            ordered = sorted(places, key=lambda place: (place.file in links, place.name))
            places = list({os.path.realpath(place.file): place for place in reversed(ordered)}.values())
        return ScanResult(sorted(places, key=lambda place: place.name), result.problems)

    def _scan_folder(
        self, step: _Step, wanted: frozenset[FileKind], result: ScanResult, links: set[str]
    ) -> None:
        if not step.parts:
            return
        scope, folder = WorkspaceScope(*step.parts[:LEVELS]), "/".join(step.parts)
        for entry in step.files:
            kind = self._file_kind(entry.name, step)
            if kind not in wanted:
                continue
            name = _join_path(step.name, entry.name)
            try:
                if entry.is_symlink():
                    self.path_inside(name)
                    links.add(entry.path)
                stat = entry.stat()
            except InputError as error:
                result.problems.append(LintProblem(name, 0, "leaves-root", error.message))
            except FileNotFoundError:
                text = "the file is gone"
                with suppress(OSError):
                    link = str(Path(entry.path).readlink())
                    text = f"the link points to {link!r}, which does not exist"
                result.problems.append(LintProblem(name, 0, "dangling-link", text))
            except OSError as error:
                result.problems.append(LintProblem(name, 0, "unreadable", f"{error.strerror}"))
            else:
                times = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
                result.places.append(WorkspaceFile(entry.path, name, kind, scope, folder, *times))

    def _file_kind(self, file_name: str, step: _Step) -> FileKind | None:
        if step.is_learning:
            return _LEARNING_FILES.get(file_name) if step.is_scope else None
        if step.is_plans:
            return FileKind.PLAN if file_name.lower() != _NOT_A_PLAN else FileKind.DOCUMENT
        if step.is_scope and file_name == self.rules.overview:
            return FileKind.OVERVIEW
        return FileKind.ABSTRACT if step.is_scope and file_name == ABSTRACT else FileKind.DOCUMENT

    def _walk(
        self, scope: WorkspaceScope, problems: list[LintProblem], *, is_learning: bool
    ) -> Iterator[_Step]:
        """Yield the folders of a scope. Links are followed last, and only to folders not visited yet."""
        name = _join_path(self.rules.learnings if is_learning else self.rules.resources, *scope.parts)
        start = str(self.path_inside(name))
        waiting = [_Step(start, name, scope.parts, [], os.path.realpath(start), is_learning=is_learning)]
        visited: set[str] = set()
        while waiting:
            step = waiting.pop()
            if step.real in visited:
                continue
            visited.add(step.real)
            try:
                with os.scandir(step.path) as entries:
                    visible = [entry for entry in entries if not entry.name.startswith(".")]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                problems.append(LintProblem(step.name, 0, "unreadable", f"{error.strerror}"))
                continue
            for entry in visible:
                if is_odd_name(entry.name):
                    name = escape_name(_join_path(step.name, entry.name))
                    problems.append(LintProblem(name, 0, "unreadable", ODD_NAME, "rename it"))
                elif not _is_folder(entry):
                    if entry.name.endswith(".md"):
                        step.files.append(entry)
                elif child := self._step_into(entry, step, problems):
                    waiting.insert(0 if entry.is_symlink() else len(waiting), child)
            yield step

    def _step_into(self, entry: os.DirEntry[str], step: _Step, problems: list[LintProblem]) -> _Step | None:
        """Return the step into a folder below a step; None when it is not part of the tree."""
        name, real = _join_path(step.name, entry.name), f"{step.real}{os.sep}{entry.name}"
        # When the root itself holds the overviews, the learnings and the rules are folders in it.
        if not step.is_learning and name in self._separate:
            return None
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            # A link upwards is a loop, or leads out of the scope that was asked for.
            if is_inside(step.real, real):
                return None
            try:
                self.path_inside(name)
            except InputError as error:
                problems.append(LintProblem(name, 0, "leaves-root", error.message))
                return None
        is_plans = step.is_plans or (step.is_scope and bool(step.parts) and entry.name == self.rules.plans)
        is_archive = step.is_learning and entry.name == ARCHIVE
        is_scope = step.is_scope and not (is_plans or is_archive or entry.name.startswith("_"))
        parts = (*step.parts, entry.name) if is_scope else step.parts
        return _Step(entry.path, name, parts, [], real, is_scope, is_plans, step.is_learning)


class _Step(NamedTuple):
    """A folder of the walk: the names of the scope that led to it, its markdown files, its real path."""

    path: str
    name: str
    parts: tuple[str, ...]
    files: list[os.DirEntry[str]]
    real: str
    is_scope: bool = True
    is_plans: bool = False
    is_learning: bool = False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _join_path(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _folder_name(given: str) -> str:
    """Return a folder's name relative to the root; empty for the root itself."""
    name = posixpath.normpath(given.strip()) if given.strip() else "."
    return "" if name == "." else name


def find_root(start: Path, rules: WorkspaceRules = DOCUMENTED) -> Path | None:
    """Return the nearest folder upwards that has one of the two trees, or None."""
    names = [name for name in (_folder_name(rules.resources), _folder_name(rules.learnings)) if name]
    for folder in (start, *start.parents):
        if any((folder / name).is_dir() for name in names):
            return folder
    return None


Parsed = Plan | Overview | LearningFile
_PARSERS: dict[FileKind, Callable[[str, WorkspaceFile], Parsed]] = {
    FileKind.PLAN: read_plan,
    FileKind.OVERVIEW: read_overview,
    FileKind.DECISIONS: read_learning_file,
    FileKind.LESSONS: read_learning_file,
}


class WorkspaceContents(NamedTuple):
    """The parsed files of a scope, and every problem met while reading."""

    plans: list[Plan]
    overviews: list[Overview]
    learnings: list[LearningFile]
    problems: list[LintProblem]


class FileCache:
    """The parsed files of one root."""

    def __init__(self, topology: Topology, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.topology = topology
        self.parsed_count = 0
        self._clock_ns = clock_ns
        # By name: the file when it was parsed, the time, the hash of its bytes, and the result.
        self._cached: dict[str, tuple[WorkspaceFile, int, int, Parsed]] = {}

    def read(
        self, scope: WorkspaceScope = EVERYWHERE, kinds: Collection[FileKind] = (FileKind.PLAN,)
    ) -> WorkspaceContents:
        """Read the files of a scope; one that cannot be read is a problem, and the rest is returned."""
        found = self.topology.scan(scope, kinds)
        contents = WorkspaceContents([], [], [], found.problems)
        for place in found.places:
            parsed = self._parse_if_changed(place, contents.problems)
            if isinstance(parsed, Plan):
                contents.plans.append(parsed)
            elif isinstance(parsed, Overview):
                contents.overviews.append(parsed)
            elif parsed is not None:
                contents.learnings.append(parsed)
            if parsed is not None and parsed.problems:
                contents.problems.extend(parsed.problems)
        return contents

    def _parse_if_changed(self, place: WorkspaceFile, problems: list[LintProblem]) -> Parsed | None:
        before, read_ns, known, parsed = self._cached.get(place.name, (None, 0, 0, None))
        if before == place and max(place.mtime_ns, place.ctime_ns) + FRESH_NS < read_ns:
            return parsed
        now = self._clock_ns()
        data = read_data(place, problems)
        if data is None:
            self._cached.pop(place.name, None)
            return None
        digest = hash(data)
        if parsed is None or digest != known:
            text, problems_found = decode(data, place.name)
            parsed = _PARSERS[place.kind](text, place)
            if problems_found:
                parsed = parsed._replace(problems=problems_found + parsed.problems)
            self.parsed_count += 1
        self._cached[place.name] = (place, now, digest, parsed)
        return parsed


def read_data(place: WorkspaceFile, problems: list[LintProblem]) -> bytes | None:
    """Return a file's bytes; None, with a problem added, when that fails."""
    if place.size > MAX_BYTES:
        problems.append(LintProblem(place.name, 0, "too-large", f"it is larger than {MAX_BYTES >> 20} MiB"))
        return None
    try:
        return read_bytes(place.file, place.name)
    except InputError as error:
        problems.append(LintProblem(place.name, 0, "unreadable", error.message))
        return None


def read_bytes(file: str | Path, name: str) -> bytes:
    """Return a file's bytes; raise InputError when it cannot be read or is too large."""
    try:
        # The scan has looked at the links, and there are thousands of files.
        with open_regular(Path(file), follows_links=True) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {name!r}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{name!r} is larger than {MAX_BYTES >> 20} MiB")
    return data


class Corpus(NamedTuple):
    """The documents of some roots, and the problems met while reading them."""

    sources: list[SourceFile]
    problems: list[str]


def open_roots(root: Path, rules: WorkspaceRules) -> list[Topology]:
    """Return the topologies of a root and of the roots that the configuration adds; each once."""
    added = [root / name.strip() for name in rules.roots.split(",") if name.strip()]
    for path in added:
        if not path.is_dir():
            hint = "workspace.roots names folders, separated by commas"
            raise InputError(f"no root {str(path)!r}", hint=hint)
    paths = {real_path(path): path for path in (root, *added)}
    return [Topology(path, rules) for path in paths.values()]


def find_scope(roots: Sequence[Topology], text: str) -> WorkspaceScope:
    """Return the scope of a text; raise NotFoundError, with the known scopes, when it does not exist."""
    scope = WorkspaceScope.parse(text)
    known = sorted({each for topology in roots for each in topology.scopes()})
    if scope.parts and scope not in known:
        raise NotFoundError("scope", str(scope), hint=suggest_scopes(scope, known))
    return scope


def require_scope(topology: Topology, scope: WorkspaceScope) -> None:
    """Raise InputError for a scope without a folder, so that a typo creates none; an empty root takes any."""
    known = topology.scopes()
    if known and scope not in known:
        near = [str(each) for each in known if each.workspace == scope.workspace]
        names = ", ".join(near[:_MAX_SUGGESTIONS] or dict.fromkeys(each.workspace for each in known))
        hint = f"there is {names}; --create makes a new one"
        raise InputError(f"no scope {str(scope)!r} in this workspace", hint=hint)


def read_corpus(
    roots: Sequence[Topology],
    scope: WorkspaceScope = EVERYWHERE,
    kinds: Collection[FileKind] = tuple(FileKind),
) -> Corpus:
    """Read the documents of all roots; the names of a second root start with its folder."""
    corpus = Corpus([], [])
    for at, topology in enumerate(roots):
        prefix = f"{topology.root.name}/" if at else ""
        found = topology.scan(scope, kinds)
        corpus.problems.extend(f"{prefix}{problem}" for problem in found.problems)
        for place in found.places:
            try:
                text, _ = decode(read_bytes(place.file, place.name), place.name)
            except InputError as error:
                corpus.problems.append(f"{prefix}{error.message}")
            else:
                corpus.sources.append(SourceFile(f"{prefix}{place.name}", place.kind, place.scope, text))
    return corpus
