"""Skills: procedures that agents can follow again, as portable `SKILL.md` files.

A portable skill has only the six fields that every client reads. It is saved below its scope as
`_skills/NAME/SKILL.md`; its name is the name of the folder. Secrets in a saved text are redacted. One that an
agent saved has its name in the metadata, and agents replace only their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from archivist.capture.redaction import redact
from archivist.errors import InputError, NotFoundError, StateError
from archivist.files.open import read_if_any, real_path
from archivist.files.write import explain_os_errors, replace_if_unchanged
from archivist.workspace import front_matter
from archivist.workspace.documents import field_text
from archivist.workspace.files_service import Topology, require_scope
from archivist.workspace.links_service import find_way_out
from archivist.workspace.skill_files import CLIENT_FOLDERS, FILE_NAME, SAVED_BY, SKILLS, metadata_of
from archivist.workspace.topology import EVERYWHERE, FileKind, WorkspaceScope

MAX_NAME = 64
# The fields with a text, and how long it may be.
_TEXT_FIELDS = {"name": 0, "description": 1024, "license": 0, "compatibility": 500, "allowed-tools": 0}
FIELDS = (*_TEXT_FIELDS, "metadata")
# An agent loads the whole body when it follows a skill; longer material belongs into files beside it.
MAX_BODY_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# Claude Code runs such commands when it loads a skill, before anybody reads it.
_RUN_ON_LOAD = re.compile(r"!`|^[ \t]*(?:`{3,}|~{3,})[ \t]*!", re.MULTILINE)
_PLACE = re.compile(rf"(?:^|/){SKILLS}/(?P<name>[^/]+)/{re.escape(FILE_NAME)}$")


class Skill(NamedTuple):
    """One skill file; `client` is the agent tool that keeps it, empty for a skill of a workspace."""

    name: str
    description: str
    scope: WorkspaceScope
    path: str
    text: str
    fields: Mapping[str, str] = {}
    problems: tuple[str, ...] = ()
    client: str = ""


def read_skill(text: str, path: str, scope: WorkspaceScope, client: str = "") -> Skill:
    """Read a skill leniently: its problems are listed, and the rest is returned."""
    values = front_matter.read(text, path).values
    fields = {key: field_text(values.get(key)) for key in _TEXT_FIELDS}
    # A skill is called as its folder.
    name = path.rsplit("/", 2)[-2]
    # A client reads more fields than those that are portable.
    problems = () if client else tuple(find_problems(text, name))
    return Skill(name, fields["description"], scope, path, text, fields, problems, client)


def find_problems(text: str, name: str) -> list[str]:
    """Return every reason why a text is not a portable skill with this name."""
    head = front_matter.read(text, FILE_NAME)
    found = [f"line {problem.line}: {problem.text}" for problem in head.problems]
    if not head.has_any:
        return [*found, "no front matter with name and description"]
    found += [f"{key}: not a field of a portable skill" for key in head.values if key not in FIELDS]
    for key, most in _TEXT_FIELDS.items():
        value = head.values.get(key)
        if not (isinstance(value, str) and value.strip()):
            if key in ("name", "description"):
                found.append(f"{key}: missing or empty")
            elif key in head.values:
                found.append(f"{key}: must be a text")
        elif most and len(value) > most:
            found.append(f"{key}: {len(value)} characters, at most {most}")
        elif key == "name" and not is_skill_name(value):
            found.append(
                f"name: {value!r} is not lower-case words with hyphens, at most {MAX_NAME} characters"
            )
        elif key == "name" and name and value != name:
            found.append(f"name: {value!r}, but the skill is saved as {name!r}")
    metadata = head.values.get("metadata", {})
    if not (isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())):
        found.append("metadata: must be names with texts (quote numbers and dates)")
    if not head.body.strip():
        found.append("no instructions below the front matter")
    elif len(head.body.encode("utf-8", "replace")) > MAX_BODY_BYTES:
        found.append(f"more than {MAX_BODY_BYTES >> 10} KiB of instructions")
    return found


def is_skill_name(text: str) -> bool:
    """Say whether a text is a valid name of a skill."""
    return len(text) <= MAX_NAME and bool(_NAME.fullmatch(text))


def compose_skill(text: str, name: str, description: str = "") -> str:
    """Return a text as a skill with this name: missing fields are added from the arguments.

    Raise InputError with every reason why it is not a portable skill.
    """
    head = front_matter.read(text, FILE_NAME)
    if not head.problems:
        given = {"name": name, "description": " ".join(description.split())}
        missing = {key: value for key, value in given.items() if value and not head.values.get(key)}
        if missing:
            text = front_matter.edit_fields(text, missing, FILE_NAME)
    problems = find_problems(text, name)
    if problems:
        needs_text = any(each.startswith(("description: missing", "no front matter")) for each in problems)
        hint = "--description TEXT adds one" if needs_text else f"the fields are {', '.join(FIELDS)}"
        raise InputError(f"not a portable skill: {'; '.join(problems)}", hint=hint)
    return text if text.endswith("\n") else f"{text}\n"


class SavedSkill(NamedTuple):
    """A saved skill and the outcome."""

    skill: Skill
    kept: Literal["saved", "replaced", "unchanged"]


def list_skills(topology: Topology, scope: WorkspaceScope) -> list[Skill]:
    """Return the skills of a scope and of everything below it, ordered by scope and name."""
    found = []
    for place in topology.scan(scope, (FileKind.DOCUMENT,)).places:
        if _PLACE.search(place.name):
            try:
                text = (read_if_any(Path(place.file)) or b"").decode("utf-8", "replace")
            except InputError:
                continue
            found.append(read_skill(text, place.name, place.scope))
    return sorted(found, key=lambda skill: (skill.scope, skill.name))


def list_client_skills(root: Path, home: Path | None = None) -> Iterator[Skill]:
    """Yield the skills that clients keep in a root, and those that they keep in the user's home."""
    for top in dict.fromkeys((root, home or root)):
        for folder, client in CLIENT_FOLDERS.items():
            for path in sorted((top / folder).glob(f"*/{FILE_NAME}")):
                # A link into the workspace is its own skill, which is listed there.
                if path.parent.is_symlink() and real_path(path.parent).parent.name == SKILLS:
                    continue
                try:
                    data = b"" if find_way_out(top, path) else read_if_any(path)
                except InputError:
                    continue
                if data:
                    name = path.relative_to(top).as_posix()
                    shown = name if top == root else f"~/{name}"
                    yield read_skill(data.decode("utf-8", "replace"), shown, EVERYWHERE, client)


def find_skill(topology: Topology, name: str, scope: WorkspaceScope) -> Skill:
    """Return the skill with a name that applies to a scope: its own, else the nearest above it.

    Without any above it, the one below it.
    """
    found = [skill for skill in list_skills(topology, WorkspaceScope(scope.workspace)) if skill.name == name]
    above = [skill for skill in found if skill.scope.contains(scope)]
    chosen = [skill for skill in found if scope.contains(skill.scope)]
    if above and scope.parts:
        deepest = max(len(skill.scope.parts) for skill in above)
        chosen = [skill for skill in above if len(skill.scope.parts) == deepest]
    if not chosen:
        chosen = [skill for skill in list_client_skills(topology.root) if skill.name == name][:1]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        places = ", ".join(str(skill.scope) for skill in chosen)
        hint = "name one with --scope"
        raise InputError(f"{len(chosen)} skills are called {name!r}: in {places}", hint=hint)
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
    said_by: str = "",
) -> SavedSkill:
    """Save a skill in its scope, without secrets; another one with its name is replaced only on request.

    `create` allows a scope that has no folder yet. `said_by` is the agent that saves it, empty for a person.
    """
    if not is_skill_name(name):
        hint = f"lower-case letters and digits in words joined by hyphens, at most {MAX_NAME} characters"
        raise InputError(f"{name!r} is not a valid name of a skill", hint=hint)
    home = WorkspaceScope.parse(scope)
    if not home.parts:
        raise InputError("a skill belongs to a workspace", hint="--scope WORKSPACE[/DOMAIN[/REPOSITORY]]")
    if not create:
        require_scope(topology, home)
    composed = compose_skill(redact(text).text, name, redact(description).text)
    if said_by:
        from archivist.lessons.agent_words import agent_suspicion

        # A skill is followed without a question, and files have no quarantine.
        grants = "it grants tools" if "allowed-tools" in front_matter.read(composed, FILE_NAME).values else ""
        runs = "it runs a command when it is loaded" if _RUN_ON_LOAD.search(composed) else ""
        if why := agent_suspicion(composed) or grants or runs:
            raise InputError(f"{why}: only a person may save that", hint="ask your user to save it")
        composed = front_matter.edit_fields(
            composed, {"metadata": {**metadata_of(composed), SAVED_BY: said_by}}, FILE_NAME
        )
    path = topology.path_inside(topology.folder(FileKind.DOCUMENT, home) / SKILLS / name / FILE_NAME)
    with explain_os_errors(path):
        before = read_if_any(path)
        if before == composed.encode():
            return SavedSkill(read_skill(composed, topology.name_of(path), home), "unchanged")
        author = metadata_of((before or b"").decode("utf-8", "replace"))[SAVED_BY]
        if before is not None and said_by and author != said_by:
            raise StateError(f"another skill {name!r} in {home} is not yours", hint="choose another name")
        if before is not None and not is_replacing:
            hint = f"see archivist workspace skills show {name} --scope {home}; --replace replaces it"
            raise StateError(f"there is another skill {name!r} in {home}", hint=hint)
        if not replace_if_unchanged(path, before, composed.encode()):
            raise StateError(f"skill {name!r} was changed meanwhile by somebody else", hint="try again")
    kept: Literal["saved", "replaced"] = "saved" if before is None else "replaced"
    return SavedSkill(read_skill(composed, topology.name_of(path), home), kept)
