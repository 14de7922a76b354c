"""Commands that connect clients: install, uninstall, and the hook that clients call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from shutil import which

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import Answer
from archivist.edges.cli.session import Session
from archivist.edges.hook_events import CLIENTS
from archivist.edges.install import chain, changes, plugin
from archivist.edges.install.changes import ClientPlan, InstallChange, SetupRecord
from archivist.edges.install.clients import InstallLocation, present_clients
from archivist.edges.install.entries import OUR_PROGRAM, PROGRAM
from archivist.edges.install.versions import find_shortcoming
from archivist.errors import InputError
from archivist.files.write import refuse_links
from archivist.paths import bank_file, checkout_of, state_folder
from archivist.text import on_one_line

_PLUGIN = "plugin"
# What a user of a client must know once it is installed: most ask before they run a new hook or server.
_ASKS = {
    "claude-code": "Claude Code asks once whether to trust this folder, and its server if it has one.",
    "codex": "Codex asks once whether to trust the new hooks.",
    "vscode": "VS Code asks once whether to trust the MCP server.",
    "copilot": "Copilot CLI runs these hooks once you trust this folder in it.",
    "opencode": "OpenCode has the plugin for all your projects; where there is no bank, it says nothing.",
}

ALL = "all"


class _ClientName(click.Choice[str]):
    """The name of a client; for others it says how they use the memory."""

    name = "client"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            near = [name for name in self.choices if value and name.startswith(value.lower())]
            near = near or get_close_matches(value.lower(), self.choices, n=1)
            usual = "archivist mcp serves any MCP client, see docs/guides/mcp.md"
            hint = f"did you mean {near[0]}?" if near else usual
            known = ", ".join(self.choices)
            self.fail(f"unknown client {value!r}: one of {known}\nhint: {hint}", param, ctx)
        return super().convert(value, param, ctx)


_client_options = options.combine(
    click.argument("client", metavar="CLIENT", type=_ClientName([*CLIENTS, ALL, _PLUGIN])),
    click.argument("folder", required=False, type=click.Path(path_type=Path)),
    click.option("--project", is_flag=True, help="For this project: files that git shares."),
    click.option("--local", is_flag=True, help="For this clone: files that git does not see."),
    click.option("--user", is_flag=True, help="For all projects of this user."),
    click.option("--dry-run", is_flag=True, help="Print the changes without making them."),
)


@options.command(owners_of="bank")
@_client_options
@click.option("--server", "is_server_alone", is_flag=True, help="Only the MCP server, without hooks.")
def install(
    session: Session,
    client: str,
    folder: Path | None,
    user: bool,
    dry_run: bool,
    is_server_alone: bool,
    **scope: bool,
) -> Answer:
    """Install hooks and MCP server into the settings of CLIENT and print the diff.

    CLIENT is claude-code, codex, cursor, gemini, vscode, copilot, opencode, or all that are used here.
    Everything else in the files is kept, comments included; a backup of each file is kept under your home.
    `plugin FOLDER` writes a plugin instead.
    """
    if client == _PLUGIN:
        return _change_plugin(folder, dry_run=dry_run)
    place = _install_place(session, client, folder, user=user, **scope)
    clients = without_doubles(present_clients(Path.home())) if client == ALL else [client]
    if not clients:
        raise InputError("no client was found on this machine", hint=f"name it: {', '.join(CLIENTS)}")
    plans, problems = [], []
    for each in clients:
        try:
            plans.append(changes.plan_client(each, place.read_by(each), is_server_alone=is_server_alone))
        except InputError as error:
            if client != ALL:
                raise
            problems.append(f"{each} is left out: {error.message}; {error.hint}")
    answer = _change_settings(client, plans, dry_run=dry_run)
    warnings = [f"{plan.client} is installed already" for plan in plans if not plan.is_changed]
    if not dry_run and not is_server_alone:
        warnings += [asked for plan in plans if plan.is_changed and (asked := describe_question(plan))]
    warnings += [f"archivist: {remark}" for remark in changes.list_remarks(plans)]
    if which(PROGRAM) is None and place.is_shared:
        lost = f"{PROGRAM} is not on PATH, so that no client can call it"
        warnings.append(f"warning: {lost}: add {OUR_PROGRAM.parent}")
    for plan in plans if not is_server_alone else ():
        if lack := find_shortcoming(plan.client, project_root(session), plan.hook_files):
            warnings.append(f"warning: {lack.text}")
    with suppress(RuntimeError):
        root = project_root(session)
        warnings += [f"archivist: {line}" for line in chain.find_lines_around(root)]
        installs = chain.find_installs(root, Path.home(), CLIENTS)
        warnings += [f"hint: {line}" for line in chain.double_hook_warnings(installs)]
    if not user and session.find_bank_path() is None:
        warnings.append(
            "hint: there is no bank yet, so hooks have nothing to inject: archivist setup makes one"
        )
    return answer._replace(warnings=warnings, problems=problems)


@options.command(owners_of="bank")
@_client_options
def uninstall(
    session: Session, client: str, folder: Path | None, user: bool, dry_run: bool, **scope: bool
) -> Answer:
    """Remove hooks and MCP server from the settings of CLIENT, or `all`, and print the diff; the bank stays.

    Without --project, --local or --user the shared and the local settings of this project are changed. A
    file that was not changed since is restored byte for byte; from others only our entries are removed.
    """
    if client == _PLUGIN:
        return _change_plugin(folder, dry_run=dry_run, is_removal=True)
    place = _install_place(session, client, folder, user=user, **scope)
    bank = session.find_bank_path()
    places = [place] if user or any(scope.values()) else [place._replace(is_local=True), place]
    clients = CLIENTS if client == ALL else (client,)
    plans = [plan for each in clients for plan in changes.plan_removal(each, places)]
    answer = _change_settings(client, plans, dry_run=dry_run, is_removal=True)
    if not dry_run and bank is not None:
        state = state_folder(bank_file(bank).absolute())
        record = SetupRecord.load(state)
        if (kept := record.without(plans)) != record:
            kept.save(state)
    where = "all your projects" if user else on_one_line(str(place.root))
    is_changed = any(plan.is_changed for plan in plans)
    nothing = f"no client is installed for {where}" if client == ALL else f"{client} is not installed here"
    warnings = [f"archivist: about {where}" if is_changed else nothing]
    warnings += [
        f"{plan.client} was installed for all your projects"
        for plan in plans
        if plan.is_changed and plan.place.is_user and not user
    ]
    with suppress(RuntimeError):
        others = chain.find_installs(place.root, None if user else Path.home(), clients)
        planned = {(plan.client, plan.place.scope) for plan in plans}
        warnings += [
            f"hint: {client} is also installed elsewhere: archivist uninstall {client} --{scope}"
            for client, scope, *_ in others
            if client in clients and (client, scope) not in planned
        ]
    return answer._replace(warnings=warnings)


def describe_question(plan: ClientPlan) -> str:
    """Say what a client asks when it next starts, if anything."""
    has_server = any(target.servers for target in plan.targets)
    return _ASKS.get(plan.client, "") if has_server or plan.client != "vscode" else ""


def without_doubles(clients: Sequence[str]) -> list[str]:
    """Return the clients, each once, of which each hook fires once: VS Code runs Claude Code's hooks too."""
    found = dict.fromkeys(clients)
    return [client for client in found if client != "vscode" or "claude-code" not in found]


def _install_place(
    session: Session, client: str, folder: Path | None, *, project: bool, local: bool, user: bool
) -> InstallLocation:
    if project + local + user > 1:
        raise click.UsageError("--project, --local and --user exclude each other\nhint: call it for each")
    if folder is not None:
        raise click.UsageError(f"a folder goes with plugin only, not with {client}")
    checkout = project_root(session)
    root = Path.home().absolute() if user else checkout
    return InstallLocation(root, is_user=user, is_local=local)


def _change_settings(
    client: str, plans: Sequence[ClientPlan], *, dry_run: bool, is_removal: bool = False
) -> Answer:
    """Change the settings of clients and return what was changed."""
    backups: list[str] = []
    diffs = []
    for plan in plans:
        # Nobody takes files of the user for a project's.
        root, name = plan.place.root.absolute(), "~" if plan.place.is_user else ""
        diffs += [(change, change.diff(root, name)) for change in plan.changes]
        backups += [] if dry_run else map(str, changes.apply_plan(plan, is_removal=is_removal))
    return _describe_changes(client, diffs, backups, dry_run=dry_run)


def _describe_changes(
    client: str, diffs: Sequence[tuple[InstallChange, str]], backups: Sequence[str], *, dry_run: bool
) -> Answer:
    rows = [{"file": str(change.path), "action": change.action, "diff": diff} for change, diff in diffs]
    notes = [f"backup: {copy}" for copy in backups]
    if dry_run and any(change.action != "unchanged" for change, _ in diffs):
        notes.append("nothing was changed: this was a dry run")
    view = {"client": client, "dry_run": dry_run, "changes": rows, "backups": backups}
    return Answer(view, "".join(diff for _, diff in diffs), notes)


def _change_plugin(folder: Path | None, *, dry_run: bool, is_removal: bool = False) -> Answer:
    """Write or remove a plugin's folder, which is to be published and no setting of this machine."""
    if folder is None:
        raise click.UsageError(f"name the folder: archivist install {_PLUGIN} FOLDER")
    found = plugin.plan_uninstall(folder) if is_removal else plugin.plan_install(folder)
    changes.refuse_unwritable(found)
    for change in found:
        # An unpacked archive is no repository, and holds links all the same; the folder itself may be one.
        refuse_links(change.path.parent, below=folder)
    if not dry_run:
        plugin.write_plugin(found, folder)
    kept = [f"kept, because it was changed: {path}" for path in plugin.user_modified_files(found, folder)]
    diffs = [(change, change.diff(folder.absolute())) for change in found]
    answer = _describe_changes(_PLUGIN, diffs, (), dry_run=dry_run)
    answer = answer._replace(notes=[*kept, *answer.notes])
    if any(change.action != "unchanged" for change in found):
        return answer
    state = "is not installed here" if is_removal else "is installed already"
    return answer._replace(warnings=(f"{_PLUGIN} {state}",))


def project_root(session: Session) -> Path:
    """Return the folder whose settings a client reads: that of a named bank, else of the checkout."""
    root = session.find_bank_path()
    if root is None or not session.bank_path:
        return checkout_of(Path.cwd())
    return (root.parent if root.is_file() else root).absolute()


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="CLIENT [EVENT]")
@options.as_json
@click.pass_obj
def hook(session: Session, words: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001
    """Answer a client's event on stdin in the client's own JSON; `archivist doctor` shows what went wrong.

    CLIENT is one that `install` knows. EVENT is session-start, prompt, tool-failure,
    subagent-start, stop or session-end, or the client's own name for it; without it the event names itself.
    A hook never blocks and always exits 0.
    """
    from archivist.edges.hooks.dispatch import answer_hook

    # Words that are off are noted too: to a client an exit code may mean that it must stop.
    answer_hook(words, bank=session.bank_path)
