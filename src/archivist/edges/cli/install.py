"""Commands that put Archivist into agents' clients and take it out again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import json_option, note, print_json
from archivist.edges.cli.session import Session
from archivist.moments import CLIENTS

if TYPE_CHECKING:
    from archivist.edges.install.changes import Change
    from archivist.edges.install.clients import Target

_PLUGIN = "plugin"
# What a client asks its user before it calls us.
_ASKS = {
    "claude-code": "Claude Code asks once whether to trust this folder and its MCP server.",
    "codex": "Codex asks once whether to trust the new hooks.",
    "vscode": "VS Code asks once whether to trust the MCP server.",
}

client_argument = click.argument("client", type=click.Choice([*CLIENTS, _PLUGIN]))
folder_argument = click.argument("folder", required=False, type=click.Path(path_type=Path))
scope_option = click.option(
    "--project/--user",
    "is_project",
    default=True,
    help="Into this project's files (the default), or into yours, for all projects.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")


@click.command()
@client_argument
@folder_argument
@scope_option
@dry_run_option
@json_option
@click.pass_obj
def install(
    session: Session, client: str, folder: Path | None, is_project: bool, dry_run: bool, as_json: bool
) -> None:
    """Put hooks and MCP server into the settings of CLIENT, print the diff; `plugin FOLDER` makes a plugin.

    What else stands in the files stays as it is, comments too; a copy of each is kept beside it.
    """
    from archivist.edges.install import changes, plugin

    if client == _PLUGIN:
        place = _plugin_folder(client, folder)
        found = plugin.to_install(place)
        _tell(found, place, dry_run, as_json, client)
        if not dry_run:
            plugin.write(found, place)
        return
    root, targets = _targets(session, client, folder, is_project)
    found = changes.to_install(targets)
    copies = [] if dry_run else changes.write(found, targets)
    _tell(found, root, dry_run, as_json, client, copies)
    if not any(change.action != "unchanged" for change in found):
        note(f"{client} is installed already")
        return
    if client in _ASKS and not dry_run:
        note(_ASKS[client])
    if is_project and session.place() is None:
        note("hint: there is no bank yet, so that the hooks have nothing to say: archivist init makes one")


@click.command()
@client_argument
@folder_argument
@scope_option
@dry_run_option
@json_option
@click.pass_obj
def uninstall(
    session: Session, client: str, folder: Path | None, is_project: bool, dry_run: bool, as_json: bool
) -> None:
    """Take hooks and MCP server out of the settings of CLIENT and print the diff; the bank stays.

    A file that nobody has changed since becomes what it was, byte for byte; of others only ours goes.
    """
    from archivist.edges.install import changes, plugin

    if client == _PLUGIN:
        root = _plugin_folder(client, folder)
        found = plugin.to_uninstall(root)
        if not dry_run:
            plugin.write(found, root)
    else:
        root, targets = _targets(session, client, folder, is_project)
        found = changes.to_uninstall(targets)
        if not dry_run:
            changes.write(found, targets)
    _tell(found, root, dry_run, as_json, client)
    if not any(change.action != "unchanged" for change in found):
        note(f"{client} is not installed here")


def _targets(
    session: Session, client: str, folder: Path | None, is_project: bool
) -> tuple[Path, list[Target]]:
    from archivist.edges.install.clients import Place, targets

    if folder is not None:
        raise click.UsageError(f"a folder goes with plugin only, not with {client}")
    root = (session.place() or Path.cwd()) if is_project else Path.home()
    root = root.parent if root.is_file() else root
    return root, targets(client, Place(root.absolute(), is_user=not is_project))


def _plugin_folder(client: str, folder: Path | None) -> Path:
    if folder is None:
        raise click.UsageError(f"name the folder: archivist install {client} FOLDER")
    return folder


def _tell(
    found: Sequence[Change],
    root: Path,
    dry_run: bool,
    as_json: bool,
    client: str,
    copies: Sequence[Path] = (),
) -> None:
    if as_json:
        rows = [
            {"file": str(each.path), "action": each.action, "diff": each.diff(root.absolute())}
            for each in found
        ]
        kept = [str(copy) for copy in copies]
        print_json({"client": client, "dry_run": dry_run, "changes": rows, "backups": kept})
        return
    for change in found:
        click.echo(change.diff(root.absolute()), nl=False)
    for copy in copies:
        note(f"as it was: {copy}")
    if dry_run and any(change.action != "unchanged" for change in found):
        note("nothing was changed: this was a dry run")
