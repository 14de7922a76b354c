"""Commands for skills."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import json_option, note, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.workspace_root import find_topology, root_option, scope_option

if TYPE_CHECKING:
    from archivist.workspace.skills_service import Skill

_LARGEST = 1 << 20


@click.group()
def skills() -> None:
    """List, show and save the skills of workspaces, as portable SKILL.md."""


@skills.command("list")
@click.argument("scope", default="", metavar="[SCOPE]")
@root_option
@json_option
@click.pass_obj
def list_(session: Session, scope: str, root: str | None, as_json: bool) -> None:
    """Print the skills of SCOPE and of everything below it."""
    from archivist.workspace.files_service import find_scope
    from archivist.workspace.skills_service import list_skills

    topology = find_topology(session, root)
    found = list_skills(topology, find_scope([topology], scope))
    if as_json:
        print_json({"skills": [_skill_view(each) for each in found]})
        return
    print_table(
        ("Name", "Scope", "Description"), [(each.name, each.scope, each.description) for each in found]
    )
    for each in found:
        for problem in each.problems:
            note(f"archivist: {each.path}: {problem}")


@skills.command()
@click.argument("name")
@scope_option
@root_option
@json_option
@click.pass_obj
def show(session: Session, name: str, scope: str, root: str | None, as_json: bool) -> None:
    """Print the skill NAME that applies to a scope: its own, else the nearest above it."""
    from archivist.workspace.skills_service import find_skill
    from archivist.workspace.topology import WorkspaceScope

    skill = find_skill(find_topology(session, root), name, WorkspaceScope.parse(scope))
    if as_json:
        print_json({**_skill_view(skill), "content": skill.text})
        return
    say(skill.text, nl=not skill.text.endswith("\n"))


@skills.command()
@click.argument("name")
@click.option("--from", "source", metavar="FILE", required=True, help="The text; - reads it from stdin.")
@click.option("--scope", metavar="SCOPE", required=True, help="WORKSPACE[/DOMAIN[/REPOSITORY]].")
@click.option("--description", metavar="TEXT", default="", help="When to use it, if the text does not say.")
@click.option("--replace", "is_replacing", is_flag=True, help="Replace another skill of that name.")
@click.option("--create", is_flag=True, help="Allow a scope that has no folder yet.")
@root_option
@json_option
@click.pass_obj
def save(
    session: Session,
    name: str,
    source: str,
    scope: str,
    description: str,
    is_replacing: bool,
    create: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Save a text as the skill NAME of a scope; secrets in it are redacted."""
    from archivist.workspace.skills_service import Skills, save_skill

    topology = find_topology(session, root)
    text = _read_source(source)
    bank = session.bank_if_any()
    with bank or nullcontext():
        saved = (Skills(bank, topology).save if bank else partial(save_skill, topology))(
            name, text, scope, description=description, is_replacing=is_replacing, create=create
        )
    if as_json:
        print_json({**_skill_view(saved.skill), "saved": saved.kept})
        return
    say(f"{saved.kept}: {saved.skill.path}")


def _read_source(source: str) -> str:
    """Return the text of a file, or of stdin."""
    from archivist.errors import InputError
    from archivist.files.write import explain_os_errors

    with explain_os_errors(Path(source)):
        data = sys.stdin.buffer.read(_LARGEST + 1) if source == "-" else Path(source).read_bytes()
    if len(data) > _LARGEST:
        raise InputError(
            "the text is larger than 1 MiB", hint="put long material into files beside the skill"
        )
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise InputError(f"{source!r} is not UTF-8 text", hint="save it as UTF-8") from None


def _skill_view(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "scope": str(skill.scope),
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed-tools": skill.allowed_tools,
        "problems": list(skill.problems),
        "_meta": {"document_path": skill.path, "document_id": skill.name},
    }
