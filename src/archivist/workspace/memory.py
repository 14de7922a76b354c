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
from archivist.workspace.problems import Problem
from archivist.workspace.reading import Shelf, decode, read_bytes
from archivist.workspace.topology import (
    DOCUMENTED,
    EVERYWHERE,
    LEARNINGS,
    LEVELS,
    Kind,
    Scope,
    Topology,
    near_scopes,
)

if TYPE_CHECKING:
    from archivist.workspace.migrate import Change, Migration
    from archivist.workspace.save import MemoryItem, OnConflict, Outcome
    from archivist.workspace.upkeep import Checked

_MAX_SHELVES = 8
_SHELVES: dict[tuple[Path, WorkspaceRules], Shelf] = {}


class PlanDetail(NamedTuple):
    """A plan in full (T2)."""

    plan: Plan
    content: str


class Workspace:
    """The markdown memory below one root."""

    def __init__(
        self, root: Path, rules: WorkspaceRules = DOCUMENTED, *, now: Callable[[], datetime] | None = None
    ) -> None:
        self.shelf = _shelf(root, rules)
        self.topology = self.shelf.topology
        self.problems: list[Problem] = []
        self._now = now

    # Reading

    def retrieve_plans(
        self, scope: str | Scope = EVERYWHERE, *, status: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> list[Plan]:
        """Return the plans of a scope and below it, as their front matter tells (T0)."""
        self._check_statuses(status)
        asked = Scope.parse(scope)
        reading = self.shelf.read(asked, (Kind.PLAN,))
        self.problems = reading.problems
        self._check_scope(asked, is_empty=not reading.plans)
        return plans.select(reading.plans, status=status, tags=tags)

    def retrieve_plan(self, name: str, scope: str | Scope = EVERYWHERE) -> PlanDetail:
        """Return one plan in full (T2), by its id, its path or its name."""
        plan = plans.named(self.retrieve_plans(scope), name)
        data = read_bytes(self.topology.inside(plan.path), plan.path)
        body = front_matter.read(decode(data, plan.path).text, plan.path).body
        return PlanDetail(plan, overviews.trimmed(body))

    def retrieve_overview(
        self, scope: str | Scope = EVERYWHERE, *, is_full: bool = False
    ) -> list[OverviewAnswer]:
        """Return overviews: a workspace's or the asked repository's in full (T1), others in short (T0)."""
        asked = Scope.parse(scope)
        reading = self.shelf.read(asked, (Kind.OVERVIEW,))
        self.problems = reading.problems
        self._check_scope(asked, is_empty=not reading.overviews)
        ordered = sorted(reading.overviews, key=lambda each: each.folder.split("/"))
        return overviews.tiered(ordered, asked, is_full=is_full)

    def retrieve_learnings(
        self,
        scope: str | Scope = EVERYWHERE,
        *,
        tags: Sequence[str] = (),
        category: str = "",
        with_superseded: bool = False,
    ) -> Learnings:
        """Return the decisions and lessons of a scope, with one of these tags and of this category."""
        asked = Scope.parse(scope)
        wider = Scope(asked.workspace, asked.domain) if len(asked.parts) == LEVELS else asked
        reading = self.shelf.read(wider, LEARNINGS)
        self.problems = reading.problems
        self._check_scope(wider, is_empty=not reading.learnings)
        files = [file for file in reading.learnings if asked.holds(file.scope) or file.scope == wider]
        return learnings.select(files, asked, tags=tags, category=category, with_superseded=with_superseded)

    def _check_scope(self, asked: Scope, *, is_empty: bool) -> None:
        """Raise NotFoundError for a workspace or domain that is not there, with those that are.

        A repository may be known by its name as a tag alone, and a root without any scope is only empty.
        """
        wanted = Scope(*asked.parts[: LEVELS - 1])
        if not is_empty or not wanted.parts:
            return
        known = self.topology.scopes()
        if known and not any(wanted.holds(each) for each in known):
            raise NotFoundError("scope", str(wanted), hint=near_scopes(wanted, known))

    def _check_statuses(self, status: Iterable[str]) -> None:
        known = [each.value for each in plans.PlanStatus]
        for word in status:
            if word not in known:
                raise InputError(f"no status {word!r}", hint=f"one of {', '.join(known)}")

    # Upkeep

    def lint(self, scope: str | Scope = EVERYWHERE) -> Checked:
        """Check every file of a scope against its format."""
        from archivist.workspace import upkeep

        return upkeep.check(self.topology, Scope.parse(scope))

    def proposed_migration(self, scope: str | Scope = EVERYWHERE) -> Migration:
        """Return what migrating a scope would change; nothing is written."""
        from archivist.workspace import upkeep

        return upkeep.proposed(self.topology, Scope.parse(scope))

    def migrate(self, changes: Sequence[Change]) -> tuple[list[Change], list[Problem]]:
        """Write proposed changes; return those that were made, and what was left alone."""
        from archivist.workspace import upkeep

        return upkeep.apply(self.topology, changes)

    # Saving

    def save_memory(
        self,
        items: Sequence[MemoryItem],
        scope: str | Scope = EVERYWHERE,
        *,
        on_conflict: OnConflict | str = "refuse",
        create: bool = False,
    ) -> list[Outcome]:
        """Save decisions, lessons and plans' statuses; say of each item what became of it, and why.

        One that cannot be saved is refused with its reason and does not hold up the others. `create` allows a
        workspace or domain that has no folder yet.
        """
        from archivist.clock import system_clock
        from archivist.workspace.save import OnConflict
        from archivist.workspace.saving import Saving

        if on_conflict not in set(OnConflict):
            words = ", ".join(rule.value for rule in OnConflict)
            raise InputError(f"no rule {on_conflict!r} for conflicts", hint=f"one of {words}")
        today = (self._now or system_clock)().astimezone().date()
        return Saving(self.shelf, today).save(
            items, Scope.parse(scope), OnConflict(on_conflict), create=create
        )


def _shelf(root: Path, rules: WorkspaceRules) -> Shelf:
    """Return what this process already read of a root; the oldest of several is forgotten."""
    key = (root.absolute(), rules)
    if key not in _SHELVES:
        shelf = Shelf(Topology(root, rules))
        while len(_SHELVES) >= _MAX_SHELVES:
            _SHELVES.pop(next(iter(_SHELVES)))
        _SHELVES[key] = shelf
    return _SHELVES[key]
