"""Commands that install Archivist into clients and remove it."""

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
# The question that a client asks its user before it runs a new hook or server.
_ASKS = {
    "claude-code": "Claude Code asks once whether to trust this folder and its MCP server.",
    "codex": "Codex asks once whether to trust the new hooks.",
    "vscode": "VS Code asks once whether to trust the MCP server.",
}

client_argument = click.argument("client", type=click.Choice([*CLIENTS, _PLUGIN]))
folder_argument = click.argument("folder", required=False, type=click.Path(path_type=Path))
_project_option = click.option("--project", is_flag=True, help="For this project; the default.")
_user_option = click.option("--user", is_flag=True, help="For all projects of this user.")


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --project and --user to a command."""
    return _project_option(_user_option(command))


dry_run_option = click.option("--dry-run", is_flag=True, help="Print the changes without making them.")


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
    """Install hooks and MCP server into the settings of CLIENT and print the diff.

    Everything else in the files is kept, comments included; a backup lies beside each file. `plugin FOLDER`
    writes a plugin instead.
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
    """Remove hooks and MCP server from the settings of CLIENT and print the diff; the bank stays.

    A file that was not changed since is restored byte for byte; from others only our entries are removed.
    """
    plan = _make_plan(session, client, folder, _is_project(project, user), is_removal=True)
    _apply_plan(plan, client, dry_run, as_json)
    if not dry_run and plan.place is not None:
        from archivist.edges.install.changes import remove_exclusion

        # Git sees these files again once no client has a backup left.
        remove_exclusion(plan.root)
    if not plan.changes_anything:
        note(f"{client} is not installed here")


def _is_project(project: bool, user: bool) -> bool:
    if project and user:
        raise click.UsageError("--project and --user exclude each other\nhint: call it once for each")
    return not user


class _Plan(NamedTuple):
    """The changes of a command, and how to make them; writing returns the backups."""

    root: Path
    found: Sequence[InstallChange]
    write: Callable[[], list[Path]]
    kept: Sequence[Path] = ()
    place: InstallLocation | None = None

    @property
    def path_prefix(self) -> str:
        """Return `~` for files of the user, so that nobody takes them for a project's."""
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
    """Return the folder whose settings a client reads: that of a named bank, else of the checkout."""
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
        note(f"backup: {copy}")
    for path in plan.kept:
        note(f"kept, because it was changed: {path}")
    if dry_run and plan.changes_anything:
        note("nothing was changed: this was a dry run")


def _warn_about_setup(session: Session, is_project: bool) -> None:
    from archivist.edges.install import chain

    with suppress(RuntimeError):
        for line in chain.double_hook_warnings(
            chain.find_installs(_project_root(session), Path.home(), CLIENTS)
        ):
            note(f"hint: {line}")
    if is_project and session.find_bank_path() is None:
        note("hint: there is no bank yet, so the hooks have nothing to inject: archivist init creates one")
