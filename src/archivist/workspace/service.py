"""Work on the workspace's markdown: read plans, overviews and learnings, save, lint, migrate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.service import BankService
from archivist.workspace.memory import PlanDetail, Workspace
from archivist.workspace.topology import EVERYWHERE, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.learnings import Learnings
    from archivist.workspace.migrate import FileChange, WorkspaceMigration
    from archivist.workspace.overviews import OverviewAnswer
    from archivist.workspace.plans import Plan
    from archivist.workspace.problems import LintProblem
    from archivist.workspace.save import MemoryItem, OnConflict, SaveOutcome
    from archivist.workspace.upkeep import LintReport


class WorkspaceService(BankService):
    """The markdown memory of the bank's project folder: files that people own, and the bank only reads."""

    def __init__(self, bank: Bank) -> None:
        super().__init__(bank)
        self.workspace = Workspace(bank.root, bank.config.workspace, now=bank.now)

    @reads(Layer.WORKSPACE)
    def retrieve_plans(
        self,
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        status: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> list[Plan]:
        """Return the plans of a scope and below it, as their front matter tells (T0)."""
        return self.workspace.retrieve_plans(scope, status=status, tags=tags)

    @reads(Layer.WORKSPACE)
    def retrieve_plan(self, name: str, scope: str | WorkspaceScope = EVERYWHERE) -> PlanDetail:
        """Return one plan in full (T2), by its id, its path or its name."""
        return self.workspace.retrieve_plan(name, scope)

    @reads(Layer.WORKSPACE)
    def retrieve_overview(
        self, scope: str | WorkspaceScope = EVERYWHERE, *, is_full: bool = False
    ) -> list[OverviewAnswer]:
        """Return overviews: a workspace's or the asked repository's in full (T1), others in short (T0)."""
        return self.workspace.retrieve_overview(scope, is_full=is_full)

    @reads(Layer.WORKSPACE)
    def retrieve_learnings(
        self,
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        tags: Sequence[str] = (),
        category: str = "",
        with_superseded: bool = False,
    ) -> Learnings:
        """Return the decisions and lessons of a scope, with one of these tags and of this category."""
        return self.workspace.retrieve_learnings(
            scope, tags=tags, category=category, with_superseded=with_superseded
        )

    @reads(Layer.WORKSPACE)
    def text_at(self, path: str) -> str | None:
        """Return the text of a document of the workspace by its path, or None when there is none there."""
        rules, root = self._bank.config.workspace, self._bank.root.resolve()
        try:
            file = (root / path).resolve()
            homes = [(root / folder).resolve() for folder in (rules.resources, rules.learnings)]
            if file.suffix != ".md" or not any(file.is_relative_to(home) for home in homes):
                return None
            return file.read_text("utf-8")
        except (OSError, ValueError, RuntimeError):
            return None

    @reads(Layer.WORKSPACE)
    def lint(self, scope: str | WorkspaceScope = EVERYWHERE) -> LintReport:
        """Check every file of a scope against its format."""
        return self.workspace.lint(scope)

    @writes(Layer.WORKSPACE)
    def save_memory(
        self,
        items: Sequence[MemoryItem],
        scope: str | WorkspaceScope = EVERYWHERE,
        *,
        on_conflict: OnConflict | str = "refuse",
        create: bool = False,
    ) -> list[SaveOutcome]:
        """Save decisions, lessons and plans' statuses; say of each item what became of it, and why."""
        return self.workspace.save_memory(items, scope, on_conflict=on_conflict, create=create)

    @reads(Layer.WORKSPACE)
    def propose_migration(self, scope: str | WorkspaceScope = EVERYWHERE) -> WorkspaceMigration:
        """Return what migrating a scope would change; nothing is written."""
        return self.workspace.propose_migration(scope)

    @writes(Layer.WORKSPACE)
    def migrate(self, changes: Sequence[FileChange]) -> tuple[list[FileChange], list[LintProblem]]:
        """Write proposed changes; return those that were made, and what was left alone."""
        return self.workspace.migrate(changes)
