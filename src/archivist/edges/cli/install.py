"""Commands that connect clients: install, uninstall, and the hook that clients call."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import Answer
from archivist.edges.cli.session import Session
from archivist.edges.hook_events import CLIENTS
from archivist.paths import checkout_of

_PLUGIN = "plugin"
# The question that a client asks its user before it runs a new hook or server.
_ASKS = {
    "claude-code": "Claude Code asks once whether to trust this folder and its MCP server.",
    "codex": "Codex asks once whether to trust the new hooks.",
    "vscode": "VS Code asks once whether to trust the MCP server.",
}

_client_options = options.combine(
    click.argument("client", type=click.Choice([*CLIENTS, _PLUGIN])),
    click.argument("folder", required=False, type=click.Path(path_type=Path)),
    click.option("--project", is_flag=True, help="For this project; the default."),
    click.option("--user", is_flag=True, help="For all projects of this user."),
    click.option("--dry-run", is_flag=True, help="Print the changes without making them."),
)


@options.command()
@_client_options
def install(session: Session, /, client: str, user: bool, dry_run: bool, **words: Any) -> Answer:
    """Install hooks and MCP server into the settings of CLIENT and print the diff.

    Everything else in the files is kept, comments included; a backup lies beside each file. `plugin FOLDER`
    writes a plugin instead.
    """
    from archivist.edges.install import chain

    answer, is_changed = _change_settings(session, client, user=user, dry_run=dry_run, **words)
    warnings = [] if is_changed else [f"{client} is installed already"]
    if is_changed and client in _ASKS and not dry_run:
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


@options.command()
@_client_options
def uninstall(session: Session, /, client: str, **words: Any) -> Answer:
    """Remove hooks and MCP server from the settings of CLIENT and print the diff; the bank stays.

    A file that was not changed since is restored byte for byte; from others only our entries are removed.
    """
    answer, is_changed = _change_settings(session, client, **words, is_removal=True)
    return answer if is_changed else answer._replace(warnings=(f"{client} is not installed here",))


def _change_settings(
    session: Session,
    client: str,
    *,
    folder: Path | None,
    project: bool,
    user: bool,
    dry_run: bool,
    is_removal: bool = False,
) -> tuple[Answer, bool]:
    """Change the settings of a client, or a plugin's folder; return the answer and whether they differed."""
    from archivist.edges.install import changes, plugin
    from archivist.edges.install.clients import InstallLocation, targets
    from archivist.files.write import refuse_links

    if project and user:
        raise click.UsageError("--project and --user exclude each other\nhint: call it once for each")
    # A plugin is a folder to publish, not settings of this machine.
    is_plugin = client == _PLUGIN
    if is_plugin and folder is None:
        raise click.UsageError(f"name the folder: archivist install {client} FOLDER")
    if folder is not None and not is_plugin:
        raise click.UsageError(f"a folder goes with plugin only, not with {client}")
    root = folder or (Path.home().absolute() if user else _project_root(session))
    wanted = [] if is_plugin else targets(client, InstallLocation(root, is_user=user))
    if is_plugin:
        found = plugin.plan_uninstall(root) if is_removal else plugin.plan_install(root)
    else:
        found = changes.plan_uninstall(wanted) if is_removal else changes.plan_install(wanted)
    # All files are checked before the first is written.
    changes.refuse_unwritable(found)
    for change in () if user else found:
        # An unpacked archive is no repository, and holds links all the same; a plugin's folder may be one.
        if is_plugin or change.path.parent != root:
            refuse_links(change.path.parent, below=root)
    copies = []
    if not dry_run:
        copies = plugin.write_plugin(found, root) if is_plugin else changes.apply_changes(found, wanted)
        changes.exclude_from_git(change.path for change in found if changes.has_backup(change.path))
        if is_removal and not is_plugin:
            # Git sees these files again once no client has a backup left.
            changes.remove_exclusion(root)
    # Nobody takes files of the user for a project's.
    prefix = "~" if user and not is_plugin else ""
    diffs = [change.diff(root.absolute(), prefix) for change in found]
    rows = [
        {"file": str(change.path), "action": change.action, "diff": diff}
        for change, diff in zip(found, diffs, strict=True)
    ]
    is_changed = any(change.action != "unchanged" for change in found)
    notes = [f"backup: {copy}" for copy in copies]
    if is_plugin:
        kept = plugin.user_modified_files(found, root)
        notes += [f"kept, because it was changed: {path}" for path in kept]
    if dry_run and is_changed:
        notes.append("nothing was changed: this was a dry run")
    backups = [str(copy) for copy in copies]
    view = {"client": client, "dry_run": dry_run, "changes": rows, "backups": backups}
    return Answer(view, "".join(diffs), notes), is_changed


def _project_root(session: Session) -> Path:
    """Return the folder whose settings a client reads: that of a named bank, else of the checkout."""
    root = session.find_bank_path() if session.bank_path else None
    if root is None:
        return checkout_of(Path.cwd())
    return (root.parent if root.is_file() else root).absolute()


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="CLIENT [EVENT]")
@options.as_json
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
