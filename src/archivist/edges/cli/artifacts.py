"""Commands about the files that runs produced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import Answer, bank_command, list_records
from archivist.edges.cli.wording import field_lines, pluralize
from archivist.edges.views import table_view, time_text
from archivist.errors import ArchivistError, NotFoundError
from archivist.records.plain import to_plain
from archivist.records.tier_words import ArtifactType

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Artifact

# Enough to compare by eye.
_CHECKSUM_SHOWN = 12

artifacts = click.Group(
    "artifacts", help="Register files that runs produced, and check whether they have changed."
)


@bank_command(artifacts)
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path())
@click.option("--task", metavar="T", required=True, help="The task that it was made for.")
@click.option("--agent", metavar="A", default="", help="Who made it; by default the actor.")
@click.option("--type", type=options.enum_choice(ArtifactType), default="file", help="The type of the file.")
@click.option("--description", metavar="TEXT", default="", help="What it contains.")
@click.option("--run", metavar="ID", default="", help="The run that made it.")
def register(bank: Bank, /, paths: tuple[str, ...], **fields: Any) -> Answer:
    """Register FILE with its current size and SHA-256. Registering a changed FILE adds a version."""
    registered: list[Artifact] = []
    for path in map(_absolute_path, paths):
        try:
            registered += [bank.artifacts.register(path, **fields)]
        except ArchivistError as error:
            if not registered:
                raise
            # Files before a refused one are registered, so they are printed too.
            return _list_artifacts(registered)._replace(error=error)
    return _list_artifacts(registered)


@bank_command(artifacts, "list")
@click.option("--task", metavar="T", default="", help="Only of this task.")
@click.option("--agent", metavar="A", default="", help="Only of this agent.")
@click.option("--type", type=options.enum_choice(ArtifactType), help="Only of this type.")
@click.option("--path", metavar="FILE", default="", help="Only versions of this file.")
@options.limit
def list_(bank: Bank, /, path: str, **filters: Any) -> Answer:
    """List the artifacts, newest first."""
    return _list_artifacts(bank.artifacts.query(path=_absolute_path(path) if path else "", **filters))


@bank_command(artifacts)
@click.argument("name", metavar="ARTIFACT")
def show(bank: Bank, name: str) -> Answer:
    """Print all fields of ARTIFACT, an id or the path of a file."""
    artifact = _find_artifact(bank, name)
    fields = {**to_plain(artifact), "created": time_text(artifact.created)}
    shown = field_lines(item for item in fields.items() if item[0] not in ("path", "description", "extra"))
    heading = f"{artifact.path}  {artifact.description}".rstrip()
    return Answer({"artifact": table_view(artifact)}, "\n".join((heading, "", *shown)))


@bank_command(artifacts)
@click.argument("path", metavar="FILE")
def versions(bank: Bank, path: str) -> Answer:
    """List the registered versions of FILE, oldest first."""
    return _list_artifacts(bank.artifacts.versions(_absolute_path(path)))


@bank_command(artifacts)
@click.argument("names", metavar="[ARTIFACT…]", nargs=-1)
def verify(bank: Bank, names: tuple[str, ...]) -> Answer:
    """Compare files with their registered versions, all or the named ones; exit 1 on a difference."""
    checks = bank.artifacts.verify([_find_artifact(bank, name).id for name in names])
    wrong = [check for check in checks if check.state != "same"]
    same = len(checks) - len(wrong)
    views = [{**table_view(check.artifact), "state": check.state, "note": check.note} for check in checks]
    rows = [(check.state, check.artifact.path, check.artifact.task, check.note) for check in wrong]
    return Answer(
        {"artifacts": views, "same": same},
        notes=(f"{same} of {pluralize(len(checks), 'file')} the same",),
        tables=[(("State", "Path", "Task", "What"), rows)] if wrong else (),
        code=1 if wrong else 0,
    )


@bank_command(artifacts)
@click.argument("names", metavar="ARTIFACT…", nargs=-1, required=True)
def remove(bank: Bank, names: tuple[str, ...]) -> Answer:
    """Unregister artifacts: all of them, or none if one is unknown. The files stay."""
    with bank.transaction():
        removed = [bank.artifacts.remove(_find_artifact(bank, name).id) for name in dict.fromkeys(names)]
    paths = ", ".join(artifact.path for artifact in removed)
    return Answer(
        {"artifacts": [table_view(artifact) for artifact in removed]},
        f"{pluralize(len(removed), 'artifact')} removed: {paths}",
    )


def _absolute_path(path: str) -> str:
    """Return a path from the caller's folder; the bank only knows its own."""
    return str(Path.cwd() / path)


def _find_artifact(bank: Bank, name: str) -> Artifact:
    """Return an artifact by its id, by its path in the project, or by a path from here."""
    # From here first: it is what a shell completes.
    for candidate in (_absolute_path(name) if name else name, name):
        try:
            return bank.artifacts.get(candidate)
        except NotFoundError:
            continue
    raise NotFoundError("artifact", name)


def _list_artifacts(found: Sequence[Artifact]) -> Answer:
    checksum = ("SHA-256", lambda artifact: artifact.checksum[:_CHECKSUM_SHOWN])
    columns = "id", "type", "task", "agent", ("Bytes", "size_bytes"), checksum, "path", "description"
    return list_records("artifacts", found, table_view, *columns, empty="no artifacts")
