"""Lint and migrate the files of a root: read them, apply the policies, write what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from archivist.errors import InputError
from archivist.files.compare_and_write import is_read_only, refuse_read_only, replace_as_read, told_plainly
from archivist.workspace import lint, migrate
from archivist.workspace.migrate import Change, Migration
from archivist.workspace.problems import Problem, Severity
from archivist.workspace.reading import data_of, decode
from archivist.workspace.topology import ABSTRACT, Kind, Place, Scope, Topology

_GIT_S = 10.0
# Nothing that a repository's own settings could make git run, and no look at the working tree.
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_CHECKED = (Kind.PLAN, Kind.OVERVIEW, Kind.ABSTRACT, Kind.DECISIONS, Kind.LESSONS)


class Checked(NamedTuple):
    """What lint found, ordered by file and line, and in how many files it looked."""

    problems: list[Problem]
    files: int

    @property
    def errors(self) -> int:
        """Return how many findings are errors."""
        return sum(problem.severity is Severity.ERROR for problem in self.problems)


def check(topology: Topology, scope: Scope) -> Checked:
    """Check every file of a scope against its format."""
    found = topology.scan(scope, _CHECKED)
    problems = list(found.problems)
    domains: dict[str, list[str]] = {}
    for each in topology.scopes():
        if each.domain and not each.repository:
            domains.setdefault(each.workspace, []).append(each.domain)
    for place in found.places:
        data = data_of(place, problems)
        if data is not None:
            below = domains.get(place.scope.workspace, ())
            problems += lint.check(data, place, topology.rules, below)
    problems = lint.counted(problems, topology.rules)
    problems.sort(key=lambda each: (each.file, each.line, each.rule))
    return Checked(problems, len(found.places))


def proposed(topology: Topology, scope: Scope) -> Migration:
    """Return what migrating a scope would change; nothing is written."""
    found = topology.scan(scope, (Kind.PLAN, Kind.OVERVIEW, Kind.ABSTRACT))
    migration = Migration([], list(found.problems))
    abstracts = {each.folder: each for each in found.places if each.kind is Kind.ABSTRACT}
    texts = {place.name: _text(place, migration.problems) for place in found.places}
    for place in found.places:
        text = texts[place.name]
        if text is None or place.kind is Kind.ABSTRACT:
            continue
        if place.kind is Kind.PLAN:
            _take(migrate.migrated_plan(text, place, lambda place=place: born(topology, place)), migration)  # type: ignore[misc]
            continue
        abstract = abstracts.pop(place.folder, None)
        said = texts[abstract.name] if abstract else ""
        change = migrate.migrated_overview(text, place, said or "")
        _take(change, migration)
        if abstract and said is not None and not isinstance(change, Problem):
            migration.changes.append(Change(abstract.name, said, None, ("merged into the overview",)))
    for abstract in abstracts.values():
        said = texts[abstract.name]
        if said is None:
            continue
        path = f"{abstract.name.rpartition('/')[0]}/{topology.rules.overview}"
        if (topology.root / path).exists():
            # The overview itself could not be read, so its abstract stays.
            continue
        made = migrate.overview_from(said, abstract, path)
        _take(made, migration)
        if isinstance(made, Change):
            migration.changes.append(Change(abstract.name, said, None, ("became the overview",)))
    return _writable(topology, migration)


def _writable(topology: Topology, migration: Migration) -> Migration:
    """Leave out what is read-only, so that a dry run shows what writing would do.

    An overview and the abstract that it takes in stay together.
    """
    closed = {each.path for each in migration.changes if is_read_only(topology.root / each.path)}
    taken_in = {_folder(each) for each in migration.changes if each.after is None}
    held = taken_in & {_folder(each) for each in migration.changes if each.path in closed}
    problems = [Problem(path, 0, "not-written", "the file is read-only") for path in sorted(closed)]
    kept = [each for each in migration.changes if each.path not in closed and _folder(each) not in held]
    return Migration(kept, [*migration.problems, *problems])


def _folder(change: Change) -> str:
    return change.path.rpartition("/")[0]


def _take(change: Change | Problem | None, migration: Migration) -> None:
    if isinstance(change, Change):
        migration.changes.append(change)
    elif change is not None:
        migration.problems.append(change)


def _text(place: Place, problems: list[Problem]) -> str | None:
    data = data_of(place, problems)
    if data is None:
        return None
    decoded = decode(data, place.name)
    if decoded.problems:
        problems.extend(decoded.problems)
        return None
    return decoded.text


def apply(topology: Topology, changes: Sequence[Change]) -> tuple[list[Change], list[Problem]]:
    """Write changes; a file that changed since it was read is left alone and named.

    An ABSTRACT.md goes only when the overview that took its words is written.
    """
    done: list[Change] = []
    left: list[Problem] = []
    failed: set[str] = set()
    for change in changes:
        folder = change.path.rpartition("/")[0]
        path = topology.inside(change.path)
        if change.after is None and folder in failed:
            left.append(Problem(change.path, 0, "not-written", "kept, since its overview was not written"))
            continue
        try:
            with told_plainly(path):
                is_written = _put(path, change)
        except InputError as error:
            left.append(Problem(change.path, 0, "not-written", error.message, error.hint))
            failed.add(folder)
            continue
        if is_written:
            done.append(change)
        else:
            left.append(Problem(change.path, 0, "not-written", "it changed meanwhile", "run migrate again"))
            failed.add(folder)
    return done, left


def _put(path: Path, change: Change) -> bool:
    before = None if change.before is None else change.before.encode("utf-8")
    if change.after is not None:
        return replace_as_read(path, before, change.after.encode("utf-8"))
    if path.name != ABSTRACT or path.read_bytes() != before:
        return False
    refuse_read_only(path)
    path.unlink()
    return True


def born(topology: Topology, place: Place) -> date:
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
