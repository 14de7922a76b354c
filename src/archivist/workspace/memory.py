"""The workspace of one root: read it, save to it, check it, migrate it. Needs no bank; a desk guards it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError
from archivist.workspace import front_matter, learnings, overviews, plans
from archivist.workspace.learnings import Learnings
from archivist.workspace.overviews import OverviewAnswer
from archivist.workspace.plans import Plan
from archivist.workspace.problems import LintProblem
from archivist.workspace.reading import FileCache, decode, read_bytes
from archivist.workspace.topology import (
    DOCUMENTED,
    EVERYWHERE,
    LEARNINGS,
    LEVELS,
    FileKind,
    Topology,
    WorkspaceScope,
    suggest_scopes,
)

if TYPE_CHECKING:
    from archivist.workspace.migrate import FileChange, WorkspaceMigration
    from archivist.workspace.save import MemoryItem, OnConflict, SaveOutcome
    from archivist.workspace.upkeep import LintReport

_MAX_SHELVES = 8
_SHELVES: dict[tuple[Path, WorkspaceRules], FileCache] = {}


class PlanDetail(NamedTuple):
    """A plan in full (T2)."""

    plan: Plan
    content: str


class Workspace:
    """The markdown memory below one root."""

    def __init__(
        self, root: Path, rules: WorkspaceRules = DOCUMENTED, *, now: Callable[[], datetime] | None = None
    ) -> None:
        self.shelf = _open_file_cache(root, rules)
        self.topology = self.shelf.topology
        self.problems: list[LintProblem] = []
        self._now = now

    # Reading

    def retrieve_plans(
        self,
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        status: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> list[Plan]:
        """Return the plans of a scope and below it, as their front matter tells (T0)."""
        self._check_statuses(status)
        asked = WorkspaceScope.parse(scope)
        reading = self.shelf.read(asked, (FileKind.PLAN,))
        self.problems = reading.problems
        self._check_scope(asked, is_empty=not reading.plans)
        return plans.select(reading.plans, status=status, tags=tags)

    def retrieve_plan(self, name: str, scope: str | WorkspaceScope = EVERYWHERE) -> PlanDetail:
        """Return one plan in full (T2), by its id, its path or its name."""
        plan = plans.find_plan(self.retrieve_plans(scope), name)
        data = read_bytes(self.topology.path_inside(plan.path), plan.path)
        body = front_matter.read(decode(data, plan.path).text, plan.path).body
        return PlanDetail(plan, overviews.trim_body(body))

    def retrieve_overview(
        self, scope: str | WorkspaceScope = EVERYWHERE, *, is_full: bool = False
    ) -> list[OverviewAnswer]:
        """Return overviews: a workspace's or the asked repository's in full (T1), others in short (T0)."""
        asked = WorkspaceScope.parse(scope)
        reading = self.shelf.read(asked, (FileKind.OVERVIEW,))
        self.problems = reading.problems
        self._check_scope(asked, is_empty=not reading.overviews)
        ordered = sorted(reading.overviews, key=lambda each: each.folder.split("/"))
        return overviews.assign_tiers(ordered, asked, is_full=is_full)

    def retrieve_learnings(
        self,
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        tags: Sequence[str] = (),
        category: str = "",
        with_superseded: bool = False,
    ) -> Learnings:
        """Return the decisions and lessons of a scope, with one of these tags and of this category."""
        asked = WorkspaceScope.parse(scope)
        wider = WorkspaceScope(asked.workspace, asked.domain) if len(asked.parts) == LEVELS else asked
        reading = self.shelf.read(wider, LEARNINGS)
        self.problems = reading.problems
        self._check_scope(wider, is_empty=not reading.learnings)
        files = [file for file in reading.learnings if asked.contains(file.scope) or file.scope == wider]
        return learnings.select(files, asked, tags=tags, category=category, with_superseded=with_superseded)

    def _check_scope(self, asked: WorkspaceScope, *, is_empty: bool) -> None:
        """Raise NotFoundError for a workspace or domain that is not there, with those that are.

        A repository may be known by its name as a tag alone, and a root without any scope is only empty.
        """
        wanted = WorkspaceScope(*asked.parts[: LEVELS - 1])
        if not is_empty or not wanted.parts:
            return
        known = self.topology.scopes()
        if known and not any(wanted.contains(each) for each in known):
            raise NotFoundError("scope", str(wanted), hint=suggest_scopes(wanted, known))

    def _check_statuses(self, status: Iterable[str]) -> None:
        known = [each.value for each in plans.PlanStatus]
        for word in status:
            if word not in known:
                raise InputError(f"no status {word!r}", hint=f"one of {', '.join(known)}")

    # Upkeep

    def lint(self, scope: str | WorkspaceScope = EVERYWHERE) -> LintReport:
        """Check every file of a scope against its format."""
        from archivist.workspace import upkeep

        return upkeep.lint_scope(self.topology, WorkspaceScope.parse(scope))

    def propose_migration(self, scope: str | WorkspaceScope = EVERYWHERE) -> WorkspaceMigration:
        """Return what migrating a scope would change; nothing is written."""
        from archivist.workspace import upkeep

        return upkeep.propose_migration(self.topology, WorkspaceScope.parse(scope))

    def migrate(self, changes: Sequence[FileChange]) -> tuple[list[FileChange], list[LintProblem]]:
        """Write proposed changes; return those that were made, and what was left alone."""
        from archivist.workspace import upkeep

        return upkeep.apply_changes(self.topology, changes)

    # Saving

    def save_memory(
        self,
        items: Sequence[MemoryItem],
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        on_conflict: OnConflict | str = "refuse",
        create: bool = False,
    ) -> list[SaveOutcome]:
        """Save decisions, lessons and plans' statuses; say of each item what became of it, and why.

        One that cannot be saved is refused with its reason and does not hold up the others. `create` allows a
        workspace or domain that has no folder yet.
        """
        from archivist.clock import system_clock
        from archivist.workspace.save import OnConflict
        from archivist.workspace.saving import MemorySaver

        if on_conflict not in set(OnConflict):
            words = ", ".join(rule.value for rule in OnConflict)
            raise InputError(f"no rule {on_conflict!r} for conflicts", hint=f"one of {words}")
        today = (self._now or system_clock)().astimezone().date()
        return MemorySaver(self.shelf, today).save(
            items, WorkspaceScope.parse(scope), OnConflict(on_conflict), create=create
        )


def _open_file_cache(root: Path, rules: WorkspaceRules) -> FileCache:
    """Return what this process already read of a root; the oldest of several is forgotten."""
    key = (root.absolute(), rules)
    if key not in _SHELVES:
        shelf = FileCache(Topology(root, rules))
        while len(_SHELVES) >= _MAX_SHELVES:
            _SHELVES.pop(next(iter(_SHELVES)))
        _SHELVES[key] = shelf
    return _SHELVES[key]
