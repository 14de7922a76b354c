"""Find, read and save the skills of a root; secrets in a saved text are redacted."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.capture.redaction import redact
from archivist.errors import InputError, NotFoundError
from archivist.files.write import explain_os_errors, read_bytes, replace_if_unchanged
from archivist.service import BankService
from archivist.workspace.files_service import Topology
from archivist.workspace.skills import (
    FILE_NAME,
    FOLDER,
    Skill,
    compose_skill,
    nearest_skills,
    read_skill,
    skill_name_in,
    validate_skill_name,
)
from archivist.workspace.topology import FileKind, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank

_MAX_SUGGESTIONS = 10


class SkillSaveStatus(StrEnum):
    """The outcome of saving a skill."""

    SAVED = "saved"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class SavedSkill(NamedTuple):
    """A saved skill and the outcome."""

    skill: Skill
    kept: SkillSaveStatus


class Skills(BankService):
    """The skills of a root's workspaces, with the access rules of the bank."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self._topology = topology

    @reads(Layer.WORKSPACE)
    def list_in_scope(self, scope: str = "") -> list[Skill]:
        """Return the skills of a scope and of everything below it."""
        return list_skills(self._topology, WorkspaceScope.parse(scope))

    @reads(Layer.WORKSPACE)
    def find(self, name: str, scope: str = "") -> Skill:
        """Return the skill with a name that applies to a scope."""
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
        """Save a skill; another one with that name in the same scope stays unless it is to be replaced."""
        return save_skill(
            self._topology,
            name,
            text,
            scope,
            description=description,
            is_replacing=is_replacing,
            create=create,
        )


def list_skills(topology: Topology, scope: WorkspaceScope) -> list[Skill]:
    """Return the skills of a scope and of everything below it, ordered by scope and name."""
    found = []
    for place in topology.scan(scope, (FileKind.DOCUMENT,)).places:
        if skill_name_in(place.name):
            try:
                text = place.path.read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            found.append(read_skill(text, place.name, place.scope))
    return sorted(found, key=lambda skill: (skill.scope, skill.name))


def find_skill(topology: Topology, name: str, scope: WorkspaceScope) -> Skill:
    """Return the skill with a name that applies to a scope: its own, else the nearest above it."""
    found = [skill for skill in list_skills(topology, WorkspaceScope(scope.workspace)) if skill.name == name]
    chosen = nearest_skills(found, scope)
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        places = ", ".join(str(skill.scope) for skill in chosen)
        raise InputError(
            f"{len(chosen)} skills are called {name!r}: in {places}", hint="name one with --scope"
        )
    raise NotFoundError("skill", name, hint="archivist workspace skills list shows the known skills")


def save_skill(
    topology: Topology,
    name: str,
    text: str,
    scope: str | WorkspaceScope,
    *,
    description: str = "",
    is_replacing: bool = False,
    create: bool = False,
) -> SavedSkill:
    """Save a skill in its scope, without secrets; another one with its name is replaced only on request.

    `create` allows a scope that has no folder yet.
    """
    validate_skill_name(name)
    home = WorkspaceScope.parse(scope)
    if not home.parts:
        raise InputError("a skill belongs to a workspace", hint="--scope WORKSPACE[/DOMAIN[/REPOSITORY]]")
    known = topology.scopes()
    if known and home not in known and not create:
        # A typo must not create a folder.
        near = [each for each in known if each.workspace == home.workspace] or known
        names = ", ".join(dict.fromkeys(str(each) for each in near[:_MAX_SUGGESTIONS]))
        raise InputError(
            f"no scope {str(home)!r} in this workspace", hint=f"there is {names}; --create makes a new one"
        )
    composed = compose_skill(redact(text).text, name, redact(description).text)
    path = topology.path_inside(topology.folder(FileKind.DOCUMENT, home) / FOLDER / name / FILE_NAME)
    with explain_os_errors(path):
        before = read_bytes(path)
        if before == composed.encode():
            status = SkillSaveStatus.UNCHANGED
        elif before is not None and not is_replacing:
            raise InputError(
                f"there is another skill {name!r} in {home}",
                hint=f"see archivist workspace skills show {name} --scope {home}; --replace replaces it",
            )
        elif not replace_if_unchanged(path, before, composed.encode()):
            raise InputError(f"skill {name!r} was changed meanwhile by somebody else", hint="try again")
        else:
            status = SkillSaveStatus.SAVED if before is None else SkillSaveStatus.REPLACED
    return SavedSkill(read_skill(composed, topology.name_of(path), home), status)
