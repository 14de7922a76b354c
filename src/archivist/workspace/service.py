"""The workspace of a bank's project: the same calls as without a bank, with its access rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.access.rights import Layer, decides, reads, writes
from archivist.errors import InputError
from archivist.files.open import real_path, refuse_way_out
from archivist.service import BankService
from archivist.workspace.files_service import read_bytes
from archivist.workspace.learnings import speaker_of
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.topology import WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.links_service import Drift
    from archivist.workspace.skills_service import SavedSkill, Skill


class WorkspaceService(BankService, Workspace):
    """The markdown memory of the bank's project folder, with the access rules of the bank."""

    def __init__(self, bank: Bank) -> None:
        BankService.__init__(self, bank)
        Workspace.__init__(self, bank.root, bank.config.workspace, now=bank.now, actor=bank.actor)

    retrieve_plans = reads(Layer.WORKSPACE)(Workspace.retrieve_plans)
    retrieve_plan = reads(Layer.WORKSPACE)(Workspace.retrieve_plan)
    retrieve_overview = reads(Layer.WORKSPACE)(Workspace.retrieve_overview)
    retrieve_learnings = reads(Layer.WORKSPACE)(Workspace.retrieve_learnings)
    find_repository = reads(Layer.WORKSPACE)(Workspace.find_repository)
    lint = reads(Layer.WORKSPACE)(Workspace.lint)
    propose_migration = reads(Layer.WORKSPACE)(Workspace.propose_migration)
    migrate = decides(Layer.WORKSPACE)(Workspace.migrate)
    propose_archive = reads(Layer.WORKSPACE)(Workspace.propose_archive)
    archive = decides(Layer.WORKSPACE)(Workspace.archive)
    save_memory = writes(Layer.WORKSPACE)(Workspace.save_memory)

    @reads(Layer.WORKSPACE)
    def retrieve_skills(self, scope: str, name: str = "") -> list[Skill]:
        """Return the skills of a scope and below it and those that clients keep here, or one by its name."""
        from archivist.workspace import skills_service

        asked = WorkspaceScope.parse(scope)
        if name:
            return [skills_service.find_skill(self.topology, name, asked)]
        own = skills_service.list_skills(self.topology, asked)
        return [*own, *skills_service.list_client_skills(self.topology.root)]

    @writes(Layer.WORKSPACE)
    def save_skill(
        self, name: str, text: str, scope: str, *, description: str = "", is_replacing: bool = False
    ) -> SavedSkill:
        """Save a skill of a workspace; another one with that name stays unless it is to be replaced."""
        from archivist.workspace import skills_service

        return skills_service.save_skill(
            self.topology,
            name,
            text,
            scope,
            description=description,
            is_replacing=is_replacing,
            said_by=speaker_of(self._bank.actor),
        )

    @reads(Layer.WORKSPACE)
    def find_drift(self) -> list[Drift]:
        """Return the copies and links of agent tools that no longer have what the hot files say."""
        from archivist.workspace import links_service

        return links_service.find_drift(self.topology.root, self.topology.rules.hot)

    @reads(Layer.WORKSPACE)
    def text_at(self, path: str) -> str | None:
        """Return the text of a document of the workspace by its path, or None when it does not exist."""
        rules, root = self._bank.config.workspace, real_path(self._bank.root)
        try:
            file = real_path(root / path)
            homes = [real_path(root / folder) for folder in (rules.resources, rules.learnings)]
            if file.suffix != ".md" or not any(file.is_relative_to(home) for home in homes):
                return None
            refuse_way_out(root / path)
            return read_bytes(file, path).decode("utf-8")
        except (InputError, ValueError):
            return None
