"""Commands about the files that runs produced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.options import limit_option, print_answer, print_fields, print_records
from archivist.edges.cli.output import enum_choice, json_option, note, pluralize, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.views import table_view
from archivist.errors import NotFoundError
from archivist.records.tier_words import ArtifactType

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Artifact

_CHECKSUM_SHOWN = 12


@click.group()
def artifacts() -> None:
    """Register files that runs produced, and check whether they have changed."""


@artifacts.command()
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path())
@click.option("--task", metavar="T", required=True, help="The task that it was made for.")
@click.option("--agent", metavar="A", default="", help="Who made it; by default the actor.")
@click.option("--type", type=enum_choice(ArtifactType), default="file", help="The type of the file.")
@click.option("--description", metavar="TEXT", default="", help="What it contains.")
@click.option("--run", metavar="ID", default="", help="The run that made it.")
@json_option
@click.pass_obj
def register(session: Session, /, paths: tuple[str, ...], as_json: bool, **fields: Any) -> None:
    """Register FILE with its current size and SHA-256. Registering a changed FILE adds a version."""
    registered: list[Artifact] = []
    with session.bank() as bank:
        try:
            for path in map(_absolute_path, paths):
                registered += [bank.artifacts.register(path, **fields)]
        finally:
            # Files before a refused one are registered, so they are printed too.
            if registered:
                _print_artifacts(registered, as_json=as_json)


@artifacts.command("list")
@click.option("--task", metavar="T", default="", help="Only of this task.")
@click.option("--agent", metavar="A", default="", help="Only of this agent.")
@click.option("--type", type=enum_choice(ArtifactType), help="Only of this type.")
@click.option("--path", metavar="FILE", default="", help="Only versions of this file.")
@limit_option
@json_option
@click.pass_obj
def list_(session: Session, /, path: str, as_json: bool, **filters: Any) -> None:
    """List the artifacts, newest first."""
    with session.bank() as bank:
        found = bank.artifacts.query(path=_absolute_path(path) if path else "", **filters)
    _print_artifacts(found, as_json=as_json)


@artifacts.command()
@click.argument("name", metavar="ARTIFACT")
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print all fields of ARTIFACT, an id or the path of a file."""
    with session.bank() as bank:
        artifact = _find_artifact(bank, name)
    if as_json:
        print_json({"artifact": table_view(artifact)})
        return
    from archivist.clock import to_short_text
    from archivist.records.plain import to_plain

    say(f"{artifact.path}  {artifact.description}".rstrip())
    say()
    fields = {**to_plain(artifact), "created": to_short_text(artifact.created)}
    print_fields(item for item in fields.items() if item[0] not in ("path", "description", "extra"))


@artifacts.command()
@click.argument("path", metavar="FILE")
@json_option
@click.pass_obj
def versions(session: Session, path: str, as_json: bool) -> None:
    """List the registered versions of FILE, oldest first."""
    with session.bank() as bank:
        found = bank.artifacts.versions(_absolute_path(path))
    _print_artifacts(found, as_json=as_json)


@artifacts.command()
@click.argument("names", metavar="[ARTIFACT…]", nargs=-1)
@json_option
@click.pass_obj
def verify(session: Session, names: tuple[str, ...], as_json: bool) -> int:
    """Compare files with their registered versions, all or the named ones; exit 1 on a difference."""
    with session.bank() as bank:
        checks = bank.artifacts.verify([_find_artifact(bank, name).id for name in names])
    wrong = [check for check in checks if check.state.value != "same"]
    same = len(checks) - len(wrong)
    if as_json:
        views = [
            {**table_view(check.artifact), "state": check.state.value, "note": check.note} for check in checks
        ]
        print_json({"artifacts": views, "same": same})
        return 1 if wrong else 0
    if wrong:
        print_table(
            ("State", "Path", "Task", "What"),
            [(check.state.value, check.artifact.path, check.artifact.task, check.note) for check in wrong],
        )
    note(f"{same} of {pluralize(len(checks), 'file')} the same")
    return 1 if wrong else 0


@artifacts.command()
@click.argument("names", metavar="ARTIFACT…", nargs=-1, required=True)
@json_option
@click.pass_obj
def remove(session: Session, names: tuple[str, ...], as_json: bool) -> None:
    """Unregister artifacts: all of them, or none if one is unknown. The files stay."""
    with session.bank() as bank, bank.transaction():
        removed = [bank.artifacts.remove(_find_artifact(bank, name).id) for name in dict.fromkeys(names)]
    paths = ", ".join(artifact.path for artifact in removed)
    print_answer(
        {"artifacts": [table_view(artifact) for artifact in removed]},
        f"{pluralize(len(removed), 'artifact')} removed: {paths}",
        as_json=as_json,
    )


def _absolute_path(path: str) -> str:
    """Return a path from the caller's folder; the bank only knows its own."""
    return str(Path.cwd() / path)


def _find_artifact(bank: Bank, name: str) -> Artifact:
    """Return an artifact by its id, by its path in the project, or by a path from here."""
    for candidate in (_absolute_path(name) if name else name, name):
        try:
            return bank.artifacts.get(candidate)
        except NotFoundError:
            continue
    raise NotFoundError("artifact", name)


def _print_artifacts(found: Sequence[Artifact], *, as_json: bool) -> None:
    print_records(
        "artifacts",
        found,
        table_view,
        {
            "ID": lambda artifact: artifact.id,
            "Type": lambda artifact: artifact.type.value,
            "Task": lambda artifact: artifact.task,
            "Agent": lambda artifact: artifact.agent,
            "Bytes": lambda artifact: artifact.size_bytes,
            "SHA-256": lambda artifact: artifact.checksum[:_CHECKSUM_SHOWN],
            "Path": lambda artifact: artifact.path,
            "Description": lambda artifact: artifact.description,
        },
        as_json=as_json,
        empty="no artifacts",
    )
