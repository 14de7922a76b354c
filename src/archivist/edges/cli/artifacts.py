"""Commands about what runs produced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import enum_choice, json_option, note, pluralize, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.views import table_view
from archivist.records.tier_words import ArtifactType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archivist.records import Artifact

_CHECKSUM_SHOWN = 12


@click.group()
def artifacts() -> None:
    """Register what runs produced, and check that it is still the same."""


@artifacts.command()
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path())
@click.option("--task", metavar="T", required=True, help="The task that it was made for.")
@click.option("--agent", metavar="A", default="", help="Who made it; by default who acts.")
@click.option("--type", "kind", type=enum_choice(ArtifactType), default="file", help="What it is.")
@click.option("--description", metavar="TEXT", default="", help="What is in it.")
@click.option("--run", metavar="ID", default="", help="The run that made it.")
@json_option
@click.pass_obj
def register(
    session: Session,
    paths: tuple[str, ...],
    task: str,
    agent: str,
    kind: str,
    description: str,
    run: str,
    as_json: bool,
) -> None:
    """Register FILE with its size and SHA-256 as of now. A FILE registered before gets its next version."""
    made = []
    with session.bank() as bank:
        try:
            for path in paths:
                where = _absolute_path(path)
                made.append(
                    bank.artifacts.register(
                        where, task=task, agent=agent, type=kind, description=description, run=run
                    )
                )
        finally:
            # Those before a file that is refused are registered, and told.
            if made:
                _print_artifacts(made, as_json=as_json)


@artifacts.command("list")
@click.option("--task", metavar="T", default="", help="Only of this task.")
@click.option("--agent", metavar="A", default="", help="Only of this agent.")
@click.option("--type", "kind", type=enum_choice(ArtifactType), help="Only of this type.")
@click.option("--path", metavar="FILE", default="", help="Only versions of this file.")
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the newest.")
@json_option
@click.pass_obj
def list_(
    session: Session, task: str, agent: str, kind: str | None, path: str, limit: int | None, as_json: bool
) -> None:
    """Print the artifacts, the newest first."""
    with session.bank() as bank:
        where = _absolute_path(path) if path else ""
        found = bank.artifacts.query(task=task, agent=agent, type=kind, path=where, limit=limit)
    _print_artifacts(found, as_json=as_json)


@artifacts.command()
@click.argument("name", metavar="ARTIFACT")
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print everything about ARTIFACT, an id or a file's path."""
    from archivist.clock import to_short_text

    with session.bank() as bank:
        artifact = _find_artifact(bank, name)
    if as_json:
        print_json({"artifact": table_view(artifact)})
        return
    say(f"{artifact.path}  {artifact.description}".rstrip())
    say()
    known = {**table_view(artifact), "created": to_short_text(artifact.created)}
    for key, value in known.items():
        if key not in ("path", "description") and value != "":
            say(f"  {key.replace('_', ' '):<12}{value}")


@artifacts.command()
@click.argument("path", metavar="FILE")
@json_option
@click.pass_obj
def versions(session: Session, path: str, as_json: bool) -> None:
    """Print every registered version of FILE, the first one first."""
    with session.bank() as bank:
        found = bank.artifacts.versions(_absolute_path(path))
    _print_artifacts(found, as_json=as_json)


@artifacts.command()
@click.argument("names", metavar="[ARTIFACT…]", nargs=-1)
@json_option
@click.pass_obj
def verify(session: Session, names: tuple[str, ...], as_json: bool) -> int:
    """Compare files with what was registered, all or the named ones; exit 1 when something does not match."""
    with session.bank() as bank:
        known = [_find_artifact(bank, name).id for name in names]
        checks = bank.artifacts.verify(known)
    wrong = [each for each in checks if each.state.value != "same"]
    if as_json:
        rows = [
            {**table_view(each.artifact), "state": each.state.value, "note": each.note} for each in checks
        ]
        print_json({"artifacts": rows, "same": len(checks) - len(wrong)})
        return 1 if wrong else 0
    if wrong:
        rows_told = [(each.state.value, each.artifact.path, each.artifact.task, each.note) for each in wrong]
        print_table(("State", "Path", "Task", "What"), rows_told)
    note(f"{len(checks) - len(wrong)} of {pluralize(len(checks), 'file')} the same")
    return 1 if wrong else 0


@artifacts.command()
@click.argument("names", metavar="ARTIFACT…", nargs=-1, required=True)
@json_option
@click.pass_obj
def remove(session: Session, names: tuple[str, ...], as_json: bool) -> None:
    """Take artifacts off the register, all or, if one is unknown, none; the files stay."""
    with session.bank() as bank, bank.transaction():
        gone = [bank.artifacts.remove(_find_artifact(bank, name).id) for name in dict.fromkeys(names)]
    if as_json:
        print_json({"artifacts": [table_view(each) for each in gone]})
        return
    say(f"{pluralize(len(gone), 'artifact')} removed: {', '.join(each.path for each in gone)}")


def _absolute_path(path: str) -> str:
    """Return a path from where the caller stands; the bank knows its own folder only."""
    from pathlib import Path

    return str(Path.cwd() / path) if path else path


def _find_artifact(bank: Any, name: str) -> Artifact:
    """Return an artifact by its id, by its path in the project, or by a path from here."""
    from archivist.errors import NotFoundError

    for each in (_absolute_path(name), name):
        try:
            found: Artifact = bank.artifacts.get(each)
        except NotFoundError:
            continue
        return found
    raise NotFoundError("artifact", name)


def _print_artifacts(found: Sequence[Artifact], *, as_json: bool) -> None:
    if as_json:
        print_json({"artifacts": [table_view(each) for each in found]})
        return
    if not found:
        note("no artifacts")
        return
    print_table(
        ("ID", "Type", "Task", "Agent", "Bytes", "SHA-256", "Path", "Description"),
        [
            (
                each.id,
                each.type.value,
                each.task,
                each.agent,
                each.size_bytes,
                each.checksum[:_CHECKSUM_SHOWN],
                each.path,
                each.description,
            )
            for each in found
        ],
    )
