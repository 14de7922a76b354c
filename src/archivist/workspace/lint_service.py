"""Lint and migrate the files of a root: read them, apply the policies, write the changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from typing import NamedTuple

from archivist.errors import InputError
from archivist.files.git import run_git
from archivist.files.open import read_if_any
from archivist.files.write import explain_os_errors, is_read_only, refuse_read_only, replace_if_unchanged
from archivist.workspace import learnings, lint
from archivist.workspace.files_service import Topology, read_data
from archivist.workspace.front_matter import line_end, words_of
from archivist.workspace.links_service import find_drift
from archivist.workspace.lint import FileChange, WorkspaceMigration
from archivist.workspace.topology import (
    ABSTRACT,
    ARCHIVE,
    LEARNINGS,
    RULES,
    FileKind,
    LintProblem,
    LintSeverity,
    WorkspaceFile,
    WorkspaceScope,
    decode,
)

_GIT_TIMEOUT_S = 10.0
_CHECKED = (FileKind.PLAN, FileKind.OVERVIEW, FileKind.ABSTRACT, FileKind.DECISIONS, FileKind.LESSONS)


class LintReport(NamedTuple):
    """The problems of a lint run, ordered by file and line, and the number of files checked."""

    problems: list[LintProblem]
    files: int

    @property
    def errors(self) -> int:
        """Return the number of errors."""
        return sum(problem.severity is LintSeverity.ERROR for problem in self.problems)


def lint_scope(topology: Topology, scope: WorkspaceScope) -> LintReport:
    """Check every file of a scope against its format."""
    found = topology.scan(scope, _CHECKED)
    problems = list(found.problems)
    domains = [known for known in topology.scopes() if known.domain and not known.repository]
    for place in found.places:
        data = read_data(place, problems)
        if data is not None:
            below = [known.domain for known in domains if known.workspace == place.scope.workspace]
            problems += lint.check_file(data, place, topology.rules, below)
    for drift in find_drift(topology.root, topology.rules.hot):
        problems.append(LintProblem(drift.path, 0, "old-copy", drift.reason, drift.remedy))
    ignored = set(words_of(topology.rules.ignore_rules))
    for name in sorted(ignored - set(RULES)):
        hint = "archivist workspace lint --rules lists them"
        raise InputError(f"workspace.ignore_rules: no rule {name!r}", hint=hint)
    problems = [problem for problem in problems if problem.rule not in ignored]
    problems.sort(key=lambda problem: (problem.file, problem.line, problem.rule))
    return LintReport(problems, len(found.places))


def propose_migration(topology: Topology, scope: WorkspaceScope) -> WorkspaceMigration:
    """Return the changes that migrating a scope would make; nothing is written."""
    found = topology.scan(scope, (FileKind.PLAN, FileKind.OVERVIEW, FileKind.ABSTRACT))
    migration = WorkspaceMigration([], list(found.problems))
    abstracts = {place.folder: place for place in found.places if place.kind is FileKind.ABSTRACT}
    texts: dict[str, str | None] = {}
    for place in found.places:
        data = read_data(place, migration.problems)
        decoded, broken = decode(data or b"", place.name)
        migration.problems.extend(broken)
        texts[place.name] = None if data is None or broken else decoded
    for place in found.places:
        text = texts[place.name]
        if text is None or place.kind is FileKind.ABSTRACT:
            continue
        if place.kind is FileKind.PLAN:
            migration.add(lint.migrate_plan(text, place, partial(creation_date, topology, place)))
            continue
        abstract = abstracts.pop(place.folder, None)
        abstract_text = texts[abstract.name] if abstract else ""
        change = lint.migrate_overview(text, place, abstract_text or "")
        migration.add(change)
        if abstract and abstract_text is not None and not isinstance(change, LintProblem):
            reasons = ("merged into the overview",)
            migration.add(FileChange(abstract.name, abstract_text, None, reasons, needs=place.name))
    for abstract in abstracts.values():
        abstract_text = texts[abstract.name]
        path = f"{abstract.name.rpartition('/')[0]}/{topology.rules.overview}"
        # An overview that exists could not be read: its abstract stays.
        if abstract_text is None or (topology.root / path).exists():
            continue
        change = lint.migrate_overview(abstract_text, abstract)
        if isinstance(change, LintProblem):
            migration.add(change)
            continue
        after = change.after if change else abstract_text
        migration.add(FileChange(path, None, after, ("made from ABSTRACT.md",)))
        migration.add(FileChange(abstract.name, abstract_text, None, ("became the overview",), needs=path))
    # Read-only files are left out, so that a dry run shows what writing would do. An overview and the
    # abstract that is merged into it stay together.
    closed = {change.path for change in migration.changes if is_read_only(topology.root / change.path)}
    problems = [LintProblem(path, 0, "not-written", "the file is read-only") for path in sorted(closed)]
    held = closed | {change.needs for change in migration.changes if change.path in closed}
    kept = [change for change in migration.changes if held.isdisjoint((change.path, change.needs))]
    return WorkspaceMigration(kept, [*migration.problems, *problems])


def propose_archive(topology: Topology, scope: WorkspaceScope) -> WorkspaceMigration:
    """Return the changes that move superseded entries to the archive: each archive before its file."""
    found = topology.scan(scope, LEARNINGS)
    migration = WorkspaceMigration([], list(found.problems))
    for place in found.places:
        text, broken = decode(read_data(place, migration.problems) or b"", place.name)
        migration.problems.extend(broken)
        kept, moved = ("", []) if broken else learnings.split_superseded(text, place.name)
        if not moved:
            continue
        path = f"{place.name.rpartition('/')[0]}/{ARCHIVE}/{place.stem}.md"
        data = read_if_any(topology.path_inside(path))
        archived = None if data is None else data.decode("utf-8")
        end = line_end(archived or text)
        after = archived or learnings.header(place.kind, place.scope).replace("\n", end)
        for entry in moved:
            written = end.join(entry.strip().splitlines())
            # An entry is there already when its file could not be written the last time.
            after += "" if written in after else f"{end}{written}{end}"
        counted = f"{len(moved)} superseded"
        if after != archived:
            migration.add(FileChange(path, archived, after, (f"{counted} added",)))
        migration.add(FileChange(place.name, text, kept, (f"{counted} archived",), needs=path))
    return migration


def apply_changes(
    topology: Topology, changes: Sequence[FileChange]
) -> tuple[list[FileChange], list[LintProblem]]:
    """Write changes; a file that changed since it was read is left alone and reported.

    One that loses text is changed only after the file that gets it is written.
    """
    done: list[FileChange] = []
    left: list[LintProblem] = []
    failed: set[str] = set()
    for change in changes:
        path = topology.path_inside(change.path)
        if change.needs in failed:
            reason = "kept, because its overview was not written"
            left += [LintProblem(change.path, 0, "not-written", reason)] if change.after is None else []
            continue
        try:
            with explain_os_errors(path):
                before = None if change.before is None else change.before.encode("utf-8")
                if change.after is not None:
                    is_written = replace_if_unchanged(path, before, change.after.encode("utf-8"))
                elif is_written := path.name == ABSTRACT and read_if_any(path) == before:
                    refuse_read_only(path)
                    path.unlink()
            reason, advice = "it changed meanwhile", "run migrate again"
        except InputError as error:
            is_written, reason, advice = False, error.message, error.hint
        if is_written:
            done.append(change)
        else:
            left.append(LintProblem(change.path, 0, "not-written", reason, advice))
            failed.add(change.path)
    return done, left


def creation_date(topology: Topology, place: WorkspaceFile) -> date:
    """Return when a file was created: the date of its first commit, else the file's own time."""
    words = ("log", "--follow", "--diff-filter=A", "--format=%as", "--", place.name)
    code, out = run_git(topology.root, *words, timeout_s=_GIT_TIMEOUT_S)
    days = out.decode("utf-8", "replace").split() if code == 0 else []
    # Without git, or without an answer, the file's own time is the best that is known.
    if days:
        with suppress(ValueError):
            return date.fromisoformat(days[-1])
    return datetime.fromtimestamp(place.mtime_ns / 1e9, UTC).date()
