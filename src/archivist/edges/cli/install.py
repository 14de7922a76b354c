"""Commands that put Archivist into agents' clients and take it out again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from archivist.edges.cli.output import json_option, note, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.hook_events import CLIENTS

if TYPE_CHECKING:
    from archivist.edges.install.changes import InstallChange
    from archivist.edges.install.clients import InstallLocation

_PLUGIN = "plugin"
# What a client asks its user before it calls us.
_ASKS = {
    "claude-code": "Claude Code asks once whether to trust this folder and its MCP server.",
    "codex": "Codex asks once whether to trust the new hooks.",
    "vscode": "VS Code asks once whether to trust the MCP server.",
}

client_argument = click.argument("client", type=click.Choice([*CLIENTS, _PLUGIN]))
folder_argument = click.argument("folder", required=False, type=click.Path(path_type=Path))
_project_option = click.option("--project", is_flag=True, help="Into this project's files; the default.")
_user_option = click.option("--user", is_flag=True, help="Into your own files, for all projects.")


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take either scope."""
    return _project_option(_user_option(command))


dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")


@click.command()
@client_argument
@folder_argument
@scope_options
@dry_run_option
@json_option
@click.pass_obj
def install(
    session: Session,
    client: str,
    folder: Path | None,
    project: bool,
    user: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Put hooks and MCP server into the settings of CLIENT, print the diff; `plugin FOLDER` makes a plugin.

    What else stands in the files stays as it is, comments too; a copy of each is kept beside it.
    """
    is_project = _is_project(project, user)
    plan = _make_plan(session, client, folder, is_project)
    _apply_plan(plan, client, dry_run, as_json)
    if not plan.changes_anything:
        note(f"{client} is installed already")
    elif client in _ASKS and not dry_run:
        note(_ASKS[client])
    if client != _PLUGIN:
        _warn_about_setup(session, is_project)


@click.command()
@client_argument
@folder_argument
@scope_options
@dry_run_option
@json_option
@click.pass_obj
def uninstall(
    session: Session,
    client: str,
    folder: Path | None,
    project: bool,
    user: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take hooks and MCP server out of the settings of CLIENT and print the diff; the bank stays.

    A file that nobody has changed since becomes what it was, byte for byte; of others only ours goes.
    """
    plan = _make_plan(session, client, folder, _is_project(project, user), is_removal=True)
    _apply_plan(plan, client, dry_run, as_json)
    if not dry_run:
        _restore_git_exclude(plan)
    if not plan.changes_anything:
        note(f"{client} is not installed here")


def _is_project(project: bool, user: bool) -> bool:
    if project and user:
        raise click.UsageError("--project and --user exclude each other\nhint: call it once for each")
    return not user


class _Plan(NamedTuple):
    """What a command would change, and how to change it; writing returns the copies of what was."""

    root: Path
    found: Sequence[InstallChange]
    write: Callable[[], list[Path]]
    kept: Sequence[Path] = ()
    place: InstallLocation | None = None

    @property
    def path_prefix(self) -> str:
        """Return what stands before the names of files, so that nobody takes the user's for a project's."""
        return "~" if self.place is not None and self.place.is_user else ""

    @property
    def changes_anything(self) -> bool:
        return any(change.action != "unchanged" for change in self.found)


def _make_plan(
    session: Session, client: str, folder: Path | None, is_project: bool, *, is_removal: bool = False
) -> _Plan:
    from archivist.edges.install import changes, plugin
    from archivist.edges.install.clients import InstallLocation, targets

    if client == _PLUGIN:
        if folder is None:
            raise click.UsageError(f"name the folder: archivist install {client} FOLDER")
        found = plugin.plan_uninstall(folder) if is_removal else plugin.plan_install(folder)
        return _Plan(
            folder,
            found,
            lambda: plugin.write_plugin(found, folder),
            plugin.user_modified_files(found, folder),
        )
    if folder is not None:
        raise click.UsageError(f"a folder goes with plugin only, not with {client}")
    root = _project_root(session) if is_project else Path.home().absolute()
    place = InstallLocation(root, is_user=not is_project)
    wanted = targets(client, place)
    found = changes.plan_uninstall(wanted) if is_removal else changes.plan_install(wanted)
    return _Plan(root, found, lambda: changes.apply_changes(found, wanted), place=place)


def _project_root(session: Session) -> Path:
    """Return the folder whose settings a client reads: of a named bank its own, else that of the checkout."""
    from archivist.paths import checkout_of

    root = session.find_bank_path() if session.bank_path else None
    if root is None:
        return checkout_of(Path.cwd())
    return (root.parent if root.is_file() else root).absolute()


def _apply_plan(plan: _Plan, client: str, dry_run: bool, as_json: bool) -> None:
    from archivist.edges.install.changes import exclude_from_git, has_backup, refuse_unwritable

    refuse_unwritable(plan.found)
    copies = [] if dry_run else plan.write()
    if not dry_run:
        exclude_from_git(change.path for change in plan.found if has_backup(change.path))
    root = plan.root.absolute()
    if as_json:
        rows = [
            {"file": str(each.path), "action": each.action, "diff": each.diff(root, plan.path_prefix)}
            for each in plan.found
        ]
        kept = [str(copy) for copy in copies]
        print_json({"client": client, "dry_run": dry_run, "changes": rows, "backups": kept})
        return
    for change in plan.found:
        say(change.diff(root, plan.path_prefix), nl=False)
    for copy in copies:
        note(f"as it was: {copy}")
    for path in plan.kept:
        note(f"left as somebody changed it: {path}")
    if dry_run and plan.changes_anything:
        note("nothing was changed: this was a dry run")


def _restore_git_exclude(plan: _Plan) -> None:
    """Let git see what it saw, once no client has a copy left."""
    from archivist.edges.install.changes import remove_exclusion

    if plan.place is not None:
        remove_exclusion(plan.root)


def _warn_about_setup(session: Session, is_project: bool) -> None:
    from archivist.edges.install import chain

    with suppress(RuntimeError):
        for line in chain.double_hook_warnings(
            chain.find_installs(_project_root(session), Path.home(), CLIENTS)
        ):
            note(f"hint: {line}")
    if is_project and session.find_bank_path() is None:
        note("hint: there is no bank yet, so that the hooks have nothing to say: archivist init makes one")
