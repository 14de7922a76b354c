"""Lint and migrate the files of a root: read them, apply the policies, write what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from archivist.errors import InputError
from archivist.files.write import (
    explain_os_errors,
    is_read_only,
    refuse_read_only,
    replace_if_unchanged,
)
from archivist.workspace import lint, migrate
from archivist.workspace.migrate import FileChange, WorkspaceMigration
from archivist.workspace.problems import LintProblem, LintSeverity
from archivist.workspace.reading import decode, read_data
from archivist.workspace.topology import ABSTRACT, FileKind, Topology, WorkspaceFile, WorkspaceScope

_GIT_S = 10.0
# Nothing that a repository's own settings could make git run, and no look at the working tree.
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_CHECKED = (FileKind.PLAN, FileKind.OVERVIEW, FileKind.ABSTRACT, FileKind.DECISIONS, FileKind.LESSONS)


class LintReport(NamedTuple):
    """What lint found, ordered by file and line, and in how many files it looked."""

    problems: list[LintProblem]
    files: int

    @property
    def errors(self) -> int:
        """Return how many findings are errors."""
        return sum(problem.severity is LintSeverity.ERROR for problem in self.problems)


def lint_scope(topology: Topology, scope: WorkspaceScope) -> LintReport:
    """Check every file of a scope against its format."""
    found = topology.scan(scope, _CHECKED)
    problems = list(found.problems)
    domains: dict[str, list[str]] = {}
    for each in topology.scopes():
        if each.domain and not each.repository:
            domains.setdefault(each.workspace, []).append(each.domain)
    for place in found.places:
        data = read_data(place, problems)
        if data is not None:
            below = domains.get(place.scope.workspace, ())
            problems += lint.check_file(data, place, topology.rules, below)
    problems = lint.filter_problems(problems, topology.rules)
    problems.sort(key=lambda each: (each.file, each.line, each.rule))
    return LintReport(problems, len(found.places))


def propose_migration(topology: Topology, scope: WorkspaceScope) -> WorkspaceMigration:
    """Return what migrating a scope would change; nothing is written."""
    found = topology.scan(scope, (FileKind.PLAN, FileKind.OVERVIEW, FileKind.ABSTRACT))
    migration = WorkspaceMigration([], list(found.problems))
    abstracts = {each.folder: each for each in found.places if each.kind is FileKind.ABSTRACT}
    texts = {place.name: _text(place, migration.problems) for place in found.places}
    for place in found.places:
        text = texts[place.name]
        if text is None or place.kind is FileKind.ABSTRACT:
            continue
        if place.kind is FileKind.PLAN:
            created_at = partial(creation_date, topology, place)
            _add_change(migrate.migrate_plan(text, place, created_at), migration)
            continue
        abstract = abstracts.pop(place.folder, None)
        said = texts[abstract.name] if abstract else ""
        change = migrate.migrate_overview(text, place, said or "")
        _add_change(change, migration)
        if abstract and said is not None and not isinstance(change, LintProblem):
            migration.changes.append(FileChange(abstract.name, said, None, ("merged into the overview",)))
    for abstract in abstracts.values():
        said = texts[abstract.name]
        if said is None:
            continue
        path = f"{abstract.name.rpartition('/')[0]}/{topology.rules.overview}"
        if (topology.root / path).exists():
            # The overview itself could not be read, so its abstract stays.
            continue
        made = migrate.overview_from(said, abstract, path)
        _add_change(made, migration)
        if isinstance(made, FileChange):
            migration.changes.append(FileChange(abstract.name, said, None, ("became the overview",)))
    return _drop_read_only(topology, migration)


def _drop_read_only(topology: Topology, migration: WorkspaceMigration) -> WorkspaceMigration:
    """Leave out what is read-only, so that a dry run shows what writing would do.

    An overview and the abstract that it takes in stay together.
    """
    closed = {each.path for each in migration.changes if is_read_only(topology.root / each.path)}
    taken_in = {_folder(each) for each in migration.changes if each.after is None}
    held = taken_in & {_folder(each) for each in migration.changes if each.path in closed}
    problems = [LintProblem(path, 0, "not-written", "the file is read-only") for path in sorted(closed)]
    kept = [each for each in migration.changes if each.path not in closed and _folder(each) not in held]
    return WorkspaceMigration(kept, [*migration.problems, *problems])


def _folder(change: FileChange) -> str:
    return change.path.rpartition("/")[0]


def _add_change(change: FileChange | LintProblem | None, migration: WorkspaceMigration) -> None:
    if isinstance(change, FileChange):
        migration.changes.append(change)
    elif change is not None:
        migration.problems.append(change)


def _text(place: WorkspaceFile, problems: list[LintProblem]) -> str | None:
    data = read_data(place, problems)
    if data is None:
        return None
    decoded = decode(data, place.name)
    if decoded.problems:
        problems.extend(decoded.problems)
        return None
    return decoded.text


def apply_changes(
    topology: Topology, changes: Sequence[FileChange]
) -> tuple[list[FileChange], list[LintProblem]]:
    """Write changes; a file that changed since it was read is left alone and named.

    An ABSTRACT.md goes only when the overview that took its words is written.
    """
    done: list[FileChange] = []
    left: list[LintProblem] = []
    failed: set[str] = set()
    for change in changes:
        folder = change.path.rpartition("/")[0]
        path = topology.path_inside(change.path)
        if change.after is None and folder in failed:
            left.append(
                LintProblem(change.path, 0, "not-written", "kept, since its overview was not written")
            )
            continue
        try:
            with explain_os_errors(path):
                is_written = _write_change(path, change)
        except InputError as error:
            left.append(LintProblem(change.path, 0, "not-written", error.message, error.hint))
            failed.add(folder)
            continue
        if is_written:
            done.append(change)
        else:
            left.append(
                LintProblem(change.path, 0, "not-written", "it changed meanwhile", "run migrate again")
            )
            failed.add(folder)
    return done, left


def _write_change(path: Path, change: FileChange) -> bool:
    before = None if change.before is None else change.before.encode("utf-8")
    if change.after is not None:
        return replace_if_unchanged(path, before, change.after.encode("utf-8"))
    if path.name != ABSTRACT or path.read_bytes() != before:
        return False
    refuse_read_only(path)
    path.unlink()
    return True


def creation_date(topology: Topology, place: WorkspaceFile) -> date:
    """Return when a file came to be: as git knows it, else the file's own time."""
    return (
        _first_commit(topology.root, place.name) or datetime.fromtimestamp(place.mtime_ns / 1e9, UTC).date()
    )


def _first_commit(root: Path, name: str) -> date | None:
    import subprocess

    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    words = ["log", "--follow", "--diff-filter=A", "--format=%as", "--", name]
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), *_QUIET, *words],  # noqa: S607
            env={**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
        )
        days = done.stdout.decode("utf-8", "replace").split()
        return date.fromisoformat(days[-1]) if done.returncode == 0 and days else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
