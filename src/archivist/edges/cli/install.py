"""Commands that connect clients: install, uninstall, and the hook that clients call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from archivist.edges.cli.output import Answer, command, json_option
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

F = TypeVar("F", bound=Callable[..., Answer])


def _client_options(handler: F) -> F:
    """Add what installing and uninstalling share."""
    # Decorators apply from the last to the first.
    for option in (
        click.option("--dry-run", is_flag=True, help="Print the changes without making them."),
        click.option("--user", is_flag=True, help="For all projects of this user."),
        click.option("--project", is_flag=True, help="For this project; the default."),
        click.argument("folder", required=False, type=click.Path(path_type=Path)),
        click.argument("client", type=click.Choice([*CLIENTS, _PLUGIN])),
    ):
        handler = option(handler)
    return handler


@command()
@_client_options
def install(
    session: Session, client: str, folder: Path | None, project: bool, user: bool, dry_run: bool
) -> Answer:
    """Install hooks and MCP server into the settings of CLIENT and print the diff.

    Everything else in the files is kept, comments included; a backup lies beside each file. `plugin FOLDER`
    writes a plugin instead.
    """
    from archivist.edges.install import chain

    plan = _make_plan(session, client, folder, project, user)
    answer = _apply_plan(plan, client, dry_run)
    warnings = []
    if not plan.changes_anything:
        warnings.append(f"{client} is installed already")
    elif client in _ASKS and not dry_run:
        warnings.append(_ASKS[client])
    if client != _PLUGIN:
        with suppress(RuntimeError):
            installs = chain.find_installs(_project_root(session), Path.home(), CLIENTS)
            warnings += [f"hint: {line}" for line in chain.double_hook_warnings(installs)]
        if not user and session.find_bank_path() is None:
            warnings.append(
                "hint: there is no bank yet, so the hooks have nothing to inject: archivist init creates one"
            )
    return answer._replace(warnings=warnings)


@command()
@_client_options
def uninstall(
    session: Session, client: str, folder: Path | None, project: bool, user: bool, dry_run: bool
) -> Answer:
    """Remove hooks and MCP server from the settings of CLIENT and print the diff; the bank stays.

    A file that was not changed since is restored byte for byte; from others only our entries are removed.
    """
    plan = _make_plan(session, client, folder, project, user, is_removal=True)
    answer = _apply_plan(plan, client, dry_run)
    if not dry_run and plan.place is not None:
        from archivist.edges.install.changes import remove_exclusion

        # Git sees these files again once no client has a backup left.
        remove_exclusion(plan.root)
    return answer if plan.changes_anything else answer._replace(warnings=(f"{client} is not installed here",))


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
    session: Session, client: str, folder: Path | None, project: bool, user: bool, *, is_removal: bool = False
) -> _Plan:
    from archivist.edges.install import changes, plugin
    from archivist.edges.install.clients import InstallLocation, targets

    if project and user:
        raise click.UsageError("--project and --user exclude each other\nhint: call it once for each")
    # A plugin is a folder to publish, not settings of this machine.
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
    root = Path.home().absolute() if user else _project_root(session)
    place = InstallLocation(root, is_user=user)
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


def _apply_plan(plan: _Plan, client: str, dry_run: bool) -> Answer:
    from archivist.edges.install.changes import exclude_from_git, has_backup, refuse_unwritable

    # All files are checked before the first is written.
    refuse_unwritable(plan.found)
    copies = [] if dry_run else plan.write()
    if not dry_run:
        exclude_from_git(change.path for change in plan.found if has_backup(change.path))
    diffs = [change.diff(plan.root.absolute(), plan.path_prefix) for change in plan.found]
    rows = [
        {"file": str(change.path), "action": change.action, "diff": diff}
        for change, diff in zip(plan.found, diffs, strict=True)
    ]
    notes = [f"backup: {copy}" for copy in copies]
    notes += [f"kept, because it was changed: {path}" for path in plan.kept]
    if dry_run and plan.changes_anything:
        notes.append("nothing was changed: this was a dry run")
    backups = [str(copy) for copy in copies]
    view = {"client": client, "dry_run": dry_run, "changes": rows, "backups": backups}
    return Answer(view, "".join(diffs), notes)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="CLIENT [EVENT]")
@json_option
@click.pass_obj
def hook(session: Session, words: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001
    """Answer the event of a client on stdin, in its own JSON; what went wrong, `archivist doctor` tells.

    CLIENT is claude-code, codex, cursor, gemini or vscode. EVENT is session-start, prompt, tool-failure,
    subagent-start, stop or session-end, or the client's own name for it; without it the event names itself.
    A hook never blocks and always exits 0.
    """
    from archivist.edges.hooks.dispatch import answer_hook

    # Words that are off are noted too: to a client an exit code may mean that it must stop.
    answer_hook(words, bank=session.bank_path)
