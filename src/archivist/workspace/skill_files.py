"""Find, read and write the skills of a root."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from archivist.errors import InputError, NotFoundError
from archivist.files.compare_and_write import explain_os_errors, read_bytes, replace_if_unchanged
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

_SCOPES_TOLD = 10


class SkillSaveStatus(StrEnum):
    """What saving a skill came to."""

    SAVED = "saved"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class SavedSkill(NamedTuple):
    """A skill that was saved, and how."""

    skill: Skill
    kept: SkillSaveStatus


def list_skills(topology: Topology, scope: WorkspaceScope) -> list[Skill]:
    """Return the skills of a scope and of everything below it, by scope and name."""
    found = []
    for place in topology.scan(scope, (FileKind.DOCUMENT,)).places:
        if skill_name_in(place.name):
            text = _read_text(place.path)
            if text is not None:
                found.append(read_skill(text, place.name, place.scope))
    return sorted(found, key=lambda skill: (skill.scope, skill.name))


def _read_text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None


def find_skill(topology: Topology, name: str, scope: WorkspaceScope) -> Skill:
    """Return the skill of a name that counts for a scope: its own, else that of the scope around it."""
    everywhere = WorkspaceScope(scope.workspace) if scope.workspace else WorkspaceScope()
    found = [skill for skill in list_skills(topology, everywhere) if skill.name == name]
    chosen = nearest_skills(found, scope)
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        places = ", ".join(str(skill.scope) for skill in chosen)
        raise InputError(
            f"{len(chosen)} skills are called {name!r}: in {places}", hint="name one with --scope"
        )
    raise NotFoundError("skill", name, hint="archivist workspace skills list shows what there is")


def _check_scope(topology: Topology, scope: WorkspaceScope, *, create: bool) -> None:
    """Refuse a scope that is not there, so that a slip of the pen makes no folder; the first may be new."""
    if not scope.parts:
        raise InputError("a skill belongs to a workspace", hint="--scope WORKSPACE[/DOMAIN[/REPOSITORY]]")
    known = topology.scopes()
    if known and scope not in known and not create:
        near = [each for each in known if each.workspace == scope.workspace] or known
        told = ", ".join(dict.fromkeys(str(each) for each in near[:_SCOPES_TOLD]))
        raise InputError(
            f"no scope {str(scope)!r} in this workspace", hint=f"there is {told}; --create makes a new one"
        )


def save_skill(
    topology: Topology,
    name: str,
    text: str,
    scope: WorkspaceScope,
    *,
    description: str = "",
    is_replacing: bool = False,
    create: bool = False,
) -> SavedSkill:
    """Save a skill in its scope. Another one of the same name is only replaced when that is asked for.

    `create` allows a scope that has no folder yet.
    """
    validate_skill_name(name)
    _check_scope(topology, scope, create=create)
    text = compose_skill(text, name, description)
    path = topology.path_inside(topology.folder(FileKind.DOCUMENT, scope) / FOLDER / name / FILE_NAME)
    after = text.encode()
    with explain_os_errors(path):
        before = read_bytes(path)
        if before == after:
            kept = SkillSaveStatus.UNCHANGED
        elif before is not None and not is_replacing:
            raise InputError(
                f"there is another skill {name!r} in {scope}",
                hint=f"see archivist workspace skills show {name} --scope {scope}; --replace replaces it",
            )
        elif not replace_if_unchanged(path, before, after):
            raise InputError(f"skill {name!r} was changed meanwhile by somebody else", hint="try again")
        else:
            kept = SkillSaveStatus.SAVED if before is None else SkillSaveStatus.REPLACED
    return SavedSkill(read_skill(text, topology.name_of(path), scope), kept)
