"""Work on skills: agents save what they can do, per workspace, without the secrets in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.access.rights import Layer, reads, writes
from archivist.service import BankService
from archivist.workspace.files_service import Topology
from archivist.workspace.skill_files import SavedSkill, find_skill, list_skills, save_skill
from archivist.workspace.topology import WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.skills import Skill


class Skills(BankService):
    """The skills of a root's workspaces, read and saved in the name of the bank's actor."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self._topology = topology

    @reads(Layer.WORKSPACE)
    def list_in_scope(self, scope: str = "") -> list[Skill]:
        """Return the skills of a scope and of everything below it."""
        return list_skills(self._topology, WorkspaceScope.parse(scope))

    @reads(Layer.WORKSPACE)
    def find(self, name: str, scope: str = "") -> Skill:
        """Return the skill of a name that counts for a scope."""
        return find_skill(self._topology, name, WorkspaceScope.parse(scope))

    @writes(Layer.WORKSPACE)
    def save(
        self,
        name: str,
        text: str,
        scope: str,
        *,
        description: str = "",
        is_replacing: bool = False,
        create: bool = False,
    ) -> SavedSkill:
        """Save a skill; another one of that name in the same scope stays unless it is to be replaced."""
        return save_redacted(
            self._topology,
            name,
            text,
            scope,
            description=description,
            is_replacing=is_replacing,
            create=create,
        )


def save_redacted(
    topology: Topology,
    name: str,
    text: str,
    scope: str,
    *,
    description: str = "",
    is_replacing: bool = False,
    create: bool = False,
) -> SavedSkill:
    """Save a skill without the secrets that its text holds."""
    from archivist.capture.redaction import redact

    return save_skill(
        topology,
        name,
        redact(text).text,
        WorkspaceScope.parse(scope),
        description=redact(description).text,
        is_replacing=is_replacing,
        create=create,
    )
