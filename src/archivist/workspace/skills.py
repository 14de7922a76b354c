"""Skills: a procedure that agents can follow again, in the portable form of `SKILL.md`.

Portable means the six fields that every client reads. A skill is saved below its scope as
`_skills/NAME/SKILL.md`; what it is called and the folder's name are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archivist.errors import InputError
from archivist.workspace import front_matter
from archivist.workspace.topology import WorkspaceScope

FOLDER = "_skills"
FILE_NAME = "SKILL.md"
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
# What an agent loads at once when it follows a skill; more belongs into files beside it.
MAX_BODY_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PLACE = re.compile(rf"(?:^|/){FOLDER}/(?P<name>[^/]+)/{re.escape(FILE_NAME)}$")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill as it stands in its file."""

    name: str
    description: str
    scope: WorkspaceScope
    path: str
    text: str
    license: str = ""
    compatibility: str = ""
    allowed_tools: str = ""
    problems: tuple[str, ...] = ()


def skill_name_in(path: str) -> str:
    """Return the name of the skill that a path is the file of, or an empty text."""
    found = _PLACE.search(path)
    return found["name"] if found else ""


def read_skill(text: str, path: str, scope: WorkspaceScope) -> Skill:
    """Read a skill leniently: what is wrong with it is said, and the rest still served."""
    head = front_matter.read(text, path)
    folder = skill_name_in(path)
    said = head.values.get("name")
    return Skill(
        name=folder or (said if isinstance(said, str) else ""),
        description=_text(head.values.get("description")),
        scope=scope,
        path=path,
        text=text,
        license=_text(head.values.get("license")),
        compatibility=_text(head.values.get("compatibility")),
        allowed_tools=_text(head.values.get("allowed-tools")),
        problems=tuple(find_problems(text, folder)),
    )


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def find_problems(text: str, name: str) -> list[str]:
    """Return everything that keeps a text from being a portable skill of that name."""
    head = front_matter.read(text, FILE_NAME)
    found = [f"line {each.line}: {each.text}" for each in head.problems]
    if not head.has_any:
        return [*found, "no front matter with name and description"]
    values = head.values
    found += _check_name(values.get("name"), name)
    description = values.get("description")
    if not isinstance(description, str) or not description.strip():
        found.append("description: missing or empty")
    elif len(description) > MAX_DESCRIPTION:
        found.append(f"description: {len(description)} characters, at most {MAX_DESCRIPTION}")
    found += _check_other_fields(values)
    if not head.body.strip():
        found.append("no instructions below the front matter")
    elif len(head.body.encode("utf-8", "replace")) > MAX_BODY_BYTES:
        found.append(f"more than {MAX_BODY_BYTES >> 10} KiB of instructions")
    return found


def _check_name(said: object, name: str) -> list[str]:
    if not isinstance(said, str) or not said:
        return ["name: missing or empty"]
    if not is_skill_name(said):
        return [f"name: {said!r} is not lower-case words with hyphens, at most {MAX_NAME} characters"]
    return [f"name: {said!r}, but the skill is saved as {name!r}"] if name and said != name else []


def _check_other_fields(values: Mapping[str, object]) -> list[str]:
    found = [f"{key}: no field of a portable skill" for key in values if key not in FIELDS]
    for key in ("license", "compatibility", "allowed-tools"):
        value = values.get(key)
        if key in values and not (isinstance(value, str) and value.strip()):
            found.append(f"{key}: must be a text")
    compatibility = values.get("compatibility")
    if isinstance(compatibility, str) and len(compatibility) > MAX_COMPATIBILITY:
        found.append(f"compatibility: {len(compatibility)} characters, at most {MAX_COMPATIBILITY}")
    metadata = values.get("metadata")
    if "metadata" in values and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        found.append("metadata: must be names with texts (quote numbers and dates)")
    return found


def is_skill_name(text: str) -> bool:
    """Say whether a text can be a skill's name."""
    return len(text) <= MAX_NAME and bool(_NAME.fullmatch(text))


def validate_skill_name(name: str) -> str:
    """Return a skill's name, or raise InputError when it is none."""
    if not is_skill_name(name):
        raise InputError(
            f"{name!r} is no name of a skill",
            hint=f"lower-case letters and digits in words joined by hyphens, at most {MAX_NAME} characters",
        )
    return name


def compose_skill(text: str, name: str, description: str = "") -> str:
    """Return a text as a skill of that name: fields that the caller gives are put in where they are missing.

    Raise InputError that names everything which keeps it from being one.
    """
    head = front_matter.read(text, FILE_NAME)
    if not head.problems:
        given = {"name": name, "description": " ".join(description.split())}
        missing = {key: value for key, value in given.items() if value and not head.values.get(key)}
        if missing:
            text = front_matter.edit_fields(text, missing, FILE_NAME)
    wrong = find_problems(text, name)
    if wrong:
        is_undescribed = any(each.startswith(("description: missing", "no front matter")) for each in wrong)
        hint = "--description TEXT adds one" if is_undescribed else f"the fields are {', '.join(FIELDS)}"
        raise InputError(f"no portable skill: {'; '.join(wrong)}", hint=hint)
    return text if text.endswith("\n") else f"{text}\n"


def nearest_skills(found: Sequence[Skill], scope: WorkspaceScope) -> list[Skill]:
    """Return the skills of one name that count for a scope: those of the nearest scope around it.

    Without any around it, those below it, however many.
    """
    around = [skill for skill in found if skill.scope.contains(scope)]
    if around and scope.parts:
        deepest = max(len(skill.scope.parts) for skill in around)
        return [skill for skill in around if len(skill.scope.parts) == deepest]
    return [skill for skill in found if scope.contains(skill.scope)]
