"""The workspace of a bank's project: the same calls as without a bank, with its access rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.service import BankService
from archivist.workspace.markdown_service import PlanDetail, Workspace
from archivist.workspace.topology import EVERYWHERE, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.documents import OverviewAnswer, Plan
    from archivist.workspace.learnings import Learnings
    from archivist.workspace.save import MemoryItem, OnConflict, SaveOutcome
    from archivist.workspace.topology import LintProblem
    from archivist.workspace.upkeep import FileChange, WorkspaceMigration
    from archivist.workspace.upkeep_service import LintReport


class WorkspaceService(BankService):
    """The markdown memory of the bank's project folder, with the access rules of the bank."""

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
        """Return the plans of a scope and below it, from their front matter (T0)."""
        return self.workspace.retrieve_plans(scope, status=status, tags=tags)

    @reads(Layer.WORKSPACE)
    def retrieve_plan(self, name: str, scope: str | WorkspaceScope = EVERYWHERE) -> PlanDetail:
        """Return one plan in full (T2), by its id, its path or its name."""
        return self.workspace.retrieve_plan(name, scope)

    @reads(Layer.WORKSPACE)
    def retrieve_overview(
        self, scope: str | WorkspaceScope = EVERYWHERE, *, is_full: bool = False
    ) -> list[OverviewAnswer]:
        """Return overviews: of a workspace or the asked repository in full (T1), others in short (T0)."""
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
        """Return the decisions and lessons of a scope, with one of these tags and this category."""
        return self.workspace.retrieve_learnings(
            scope, tags=tags, category=category, with_superseded=with_superseded
        )

    @reads(Layer.WORKSPACE)
    def text_at(self, path: str) -> str | None:
        """Return the text of a document of the workspace by its path, or None when it does not exist."""
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
        """Save decisions, lessons and plan statuses; return the outcome of each item with its reason."""
        return self.workspace.save_memory(items, scope, on_conflict=on_conflict, create=create)

    @reads(Layer.WORKSPACE)
    def propose_migration(self, scope: str | WorkspaceScope = EVERYWHERE) -> WorkspaceMigration:
        """Return the changes that migrating a scope would make; nothing is written."""
        return self.workspace.propose_migration(scope)

    @writes(Layer.WORKSPACE)
    def migrate(self, changes: Sequence[FileChange]) -> tuple[list[FileChange], list[LintProblem]]:
        """Write proposed changes; return those that were made, and a problem for each that was not."""
        return self.workspace.migrate(changes)
