"""Commands that connect clients: setup and its undo, install, uninstall, and the hook that clients call."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from archivist import paths, projects
from archivist.bank import Bank
from archivist.brief.select import BriefFormat, BriefRequest
from archivist.capture.client_logs import ClientLog, checkout_places, find_client_logs
from archivist.capture.service import CaptureOverrides
from archivist.doctor import LOG
from archivist.edges.cli import options
from archivist.edges.cli.banks import create_bank, refuse_global_place
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    Answer,
    confirm,
    embed,
    note,
    print_json,
    problem_lines,
    progress,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import approval_notes, pluralize
from archivist.edges.hook_events import CLIENTS
from archivist.edges.install import chain, changes, plugin
from archivist.edges.install.changes import (
    NO_LOCAL_SERVER,
    SETUP_FILE,
    ClientPlan,
    InstallChange,
    SetupRecord,
)
from archivist.edges.install.clients import (
    SHARED_BY_WORKTREES,
    WITHOUT_HOOKS,
    InstallLocation,
    present_clients,
)
from archivist.errors import AccessError, ArchivistError, InputError, UntrustedBankError
from archivist.files import hook_log
from archivist.files.git import remove_bank_exclusion
from archivist.files.open import read_small_text, real_path
from archivist.files.worktrees import bank_place, repositories_above, worktrees_of
from archivist.files.write import refuse_links
from archivist.paths import bank_file, checkout_of, state_folder
from archivist.records.words import ActorKind
from archivist.reflect.trigger import ReflectionOutcome
from archivist.text import on_one_line
from archivist.trust import accepted_banks, has_bank_at, is_noted, mark_of, places_of, withdraw_trust
from archivist.trust import refuse_links as refuse_linked_bank

_PLUGIN = "plugin"
# The question that a client asks its user before it runs a new hook or server.
ASKS = {
    "claude-code": "Claude Code asks once whether to trust this folder, and its server if it has one.",
    "codex": "Codex asks once whether to trust the new hooks.",
    "vscode": "VS Code asks once whether to trust the MCP server.",
}

ALL = "all"


class _ClientName(click.Choice[str]):
    """The name of a client; for others it says how they use the memory."""

    name = "client"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            how = WITHOUT_HOOKS.get(value, "archivist mcp serves any MCP client, see docs/guides/mcp.md")
            known = "" if value in WITHOUT_HOOKS else f": one of {', '.join(self.choices)}"
            self.fail(f"no hooks are known for {value!r}{known}\nhint: its MCP server: {how}", param, ctx)
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

    CLIENT is claude-code, codex, cursor, gemini, vscode, or all: every one that is used on this machine.
    Everything else in the files is kept, comments included; a backup of each file is kept under your home.
    `plugin FOLDER` writes a plugin instead.
    """
    if client == _PLUGIN:
        return _change_plugin(folder, dry_run=dry_run)
    place = _install_place(session, client, folder, user=user, **scope)
    clients = usual_clients(Path.home()) if client == ALL else [client]
    if not clients:
        raise InputError("no client was found on this machine", hint=f"name it: {', '.join(CLIENTS)}")
    plans = [
        changes.plan_client(each, place.read_by(each), is_server_alone=is_server_alone) for each in clients
    ]
    answer = _change_settings(client, plans, dry_run=dry_run)
    warnings = [f"{plan.client} is installed already" for plan in plans if not plan.is_changed]
    if not dry_run and not is_server_alone:
        warnings += [ASKS[plan.client] for plan in plans if plan.is_changed and plan.client in ASKS]
    warnings += [f"archivist: {remark}" for plan in plans for remark in plan.remarks]
    with suppress(RuntimeError):
        installs = chain.find_installs(project_root(session), Path.home(), CLIENTS)
        warnings += [f"hint: {line}" for line in chain.double_hook_warnings(installs)]
    if not user and session.find_bank_path() is None:
        warnings.append(
            "hint: there is no bank yet, so hooks have nothing to inject: archivist setup makes one"
        )
    return answer._replace(warnings=warnings)


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
    warnings = [f"archivist: about {where}" if is_changed else f"{client} is not installed here"]
    with suppress(RuntimeError):
        others = chain.find_installs(place.root, None if user else Path.home(), clients)
        planned = {(plan.client, plan.place.scope) for plan in plans}
        warnings += [
            f"hint: {client} is also installed elsewhere: archivist uninstall {client} --{scope}"
            for client, scope, *_ in others
            if client in clients and (client, scope) not in planned
        ]
    return answer._replace(warnings=warnings)


def usual_clients(home: Path) -> list[str]:
    """Return the clients to install into: those on this machine, each of whose hooks fires once."""
    found = present_clients(home)
    # VS Code runs the hooks in Claude Code's settings too.
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
    copies = []
    for plan in plans if not dry_run else ():
        copies += changes.apply_plan(plan, is_removal=is_removal)
    # Nobody takes files of the user for a project's.
    diffs = [
        (change, change.diff(plan.place.root.absolute(), "~" if plan.place.is_user else ""))
        for plan in plans
        for change in plan.changes
    ]
    return _describe_changes(client, diffs, [str(copy) for copy in copies], dry_run=dry_run)


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
    """Answer the event of a client on stdin, in its own JSON; what went wrong, `archivist doctor` tells.

    CLIENT is claude-code, codex, cursor, gemini or vscode. EVENT is session-start, prompt, tool-failure,
    subagent-start, stop or session-end, or the client's own name for it; without it the event names itself.
    A hook never blocks and always exits 0.
    """
    from archivist.edges.hooks.dispatch import answer_hook

    # Words that are off are noted too: to a client an exit code may mean that it must stop.
    answer_hook(words, bank=session.bank_path)


_READ_CLIENTS = "Claude Code, Codex, Gemini CLI, OpenCode, Copilot CLI, VS Code, Cursor"
_CACHES = ("file_systems", "trusted.json")
# How long setup waits for a hook that imports a session; a reflection takes a few seconds.
_HOOK_WAIT_S = 60.0
_OWN_FILES = ("", "-wal", "-shm", "-journal")


@click.command()
@click.argument("words", metavar="", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--undo", is_flag=True, help="Take everything back that setup did here.")
@click.option("--user", is_flag=True, help="Install for all your projects, not for this clone alone.")
@click.option("--moved-from", "former", metavar="FOLDER", multiple=True, type=click.Path(path_type=Path),
              help="Also take sessions of this former folder, or of those of its name below.")  # fmt: skip
@options.as_json
@click.pass_obj
def setup(
    session: Session,
    /,
    words: tuple[str, ...],
    undo: bool,
    user: bool,
    former: tuple[Path, ...],
    **how: bool,
) -> None:
    """Make a bank, learn from this repository's logged sessions, connect clients, print the next brief.

    Finds the logs of Claude Code, Codex, Gemini CLI, OpenCode, Copilot CLI, VS Code and Cursor for all
    worktrees of the repository. Shows what would be written into the clients' settings and asks; git does
    not see those files. Run it again to bring in what is new.
    """
    if words:
        hint = f"archivist install {words[0]}" if words[0] in CLIENTS else "cd into the repository first"
        raise click.UsageError(f"setup takes no words: it is about the folder that you are in\nhint: {hint}")
    actor = session.actor()
    if actor.kind is not ActorKind.HUMAN:
        raise AccessError(str(actor), "set up", "a bank", hint="only people connect clients to a bank")
    if (folder := project_root(session)).parent == folder:
        raise InputError(f"{str(folder)!r} is no project", hint="cd into a repository first")
    view = _undo(session, **how) if undo else _set_up(session, user=user, former=former, **how)
    if how["as_json"]:
        print_json(view)
    if view.get("is_partial"):
        click.get_current_context().exit(EXIT_PARTIAL)


def _set_up(
    session: Session, *, yes: bool, dry_run: bool, user: bool, former: Sequence[Path], as_json: bool
) -> dict[str, Any]:
    tell = _silence if as_json else say
    checkout = project_root(session)
    place = _bank_place(session)
    file = paths.bank_file(place).absolute()
    places = checkout_places(checkout, [real_path(folder) for folder in former])
    logs, problems, gone, left_out = find_client_logs(places, Path.home(), os.environ)
    plans, remarks, refused = _plan_clients(checkout, {log.client for log in logs}, user=user)
    view: dict[str, Any] = {
        "bank": str(file),
        "sessions": dict(Counter(log.client for log in logs)),
        "gone": dict(gone),
        "left_out": dict(left_out),
        "clients": [
            {"client": plan.client, "changes": [str(change.path) for change in plan.changes]}
            for plan in plans
        ],
        "remarks": remarks,
        "refused": refused,
        "dry_run": dry_run,
    }
    refuse_global_place(file)
    has_repository = bool(repositories_above(file))
    sessions = _describe_sessions(logs, gone, left_out, has_repository=has_repository)
    was_at = _find_former_folder(file)
    if dry_run:
        _tell_bank(file, was_at, sessions, tell)
        _show_plans(plans, remarks, tell, is_full=True)
        tell("\n".join(("Nothing was changed: this was a dry run.", *problem_lines(problems))))
        return view
    is_first_home = not paths.home_folder().exists()
    if was_at:
        note(f"archivist: {was_at}")
    shown, is_new, notes, warnings = create_bank(session, place)
    state = paths.state_folder(file)
    record = SetupRecord.load(state)
    replaced = [f"archivist: {line}" for line in record.find_changed()]
    has_home = record.has_made_home or is_first_home
    record = record._replace(has_made_bank=record.has_made_bank or is_new, has_made_home=has_home)
    record.save(state)
    is_here = paths.is_file(file)
    hidden = "; git does not see it" if is_here and has_repository and not warnings else ""
    tell(f"Memory    {file if is_here else shown}{' (new)' if is_new else ''}{hidden}")
    tell(f"Sessions  {sessions}")
    with session.bank(folder=checkout) as bank:
        view |= _learn(bank, checkout, logs, problems, tell)
        if former:
            # Sessions of a clone with another remote would else seem to be another repository's.
            bank.lessons.claim(view["project"])
        view["installed"] = _connect(plans, remarks, record, state, tell, yes=yes)
        is_connected = bool(view["installed"]) or any("is installed already" in line for line in remarks)
        view["brief"] = _tell_brief(bank, session, view["project"], tell, is_connected=is_connected)
    for line in (*notes, *warnings, *replaced, *problem_lines(problems)):
        note(line)
    tell("\nUndo all of it: archivist setup --undo. Bring in what is new: archivist setup.")
    is_partial = bool(view["unread"]) or (yes and bool(view["refused"]))
    return {**view, "created": is_new, "problems": problems, "is_partial": is_partial}


def _bank_place(session: Session) -> Path:
    """Return the place of the bank that setup uses here, also where there is none yet or any more."""
    return session.find_bank_path() or Path(session.bank_path or bank_place(project_root(session)))


def _find_former_folder(file: Path) -> str | None:
    """Return where a bank that is not trusted was the user's before, empty if unknown; None if it is."""
    if not paths.is_file(file) or is_noted(file):
        return None
    known: list[Path] = []
    with suppress(ArchivistError), Bank.preview(file) as copy:
        known = [place for place in places_of(mark_of(copy.store)) if place != file]
    if not known:
        return ""
    former = paths.project_folder(known[0])
    then = f"archivist trust, then archivist setup --moved-from {shlex.quote(str(former))}"
    return f"it is the bank of {on_one_line(str(former))}, moved or copied; to go on with it: {then}"


def _tell_bank(file: Path, was_at: str | None, sessions: str, tell: Any) -> None:
    """Say which bank would be used, and which sessions are there."""
    presence = "is there" if has_bank_at(file) else "would be made"
    distrust = "is there, and not trusted: archivist trust shows what it holds, and accepts it"
    tell(f"Memory    {file} {distrust if was_at is not None else presence}")
    if was_at:
        tell(f"          {was_at}")
    tell(f"Sessions  {sessions}")


def _silence(_text: object = "", *, nl: bool = True) -> None:
    """Say nothing: the answer is JSON."""


def _describe_sessions(
    logs: Sequence[ClientLog], gone: Counter[str], left_out: Counter[str], *, has_repository: bool
) -> str:
    """Count the sessions that were found, and those that were not taken but may be the repository's."""
    place = "repository" if has_repository else "folder"
    lines = [f"none of this {place} found in the logs of {_READ_CLIENTS}"]
    if not has_repository:
        lines.append("this folder is in no git repository: only sessions that began in it count")
    if logs:
        counts = Counter(log.client for log in logs).most_common()
        lines[0] = f"{len(logs)} found: {', '.join(f'{number} of {name}' for name, number in counts)}"
    if gone:
        # They began in folders of the repository's name that are gone: it may have been there before.
        first, *others = gone
        name = first.replace("\\", "/").rpartition("/")[2]
        where = f"a folder called {name} that is gone"
        where = f"{len(gone)} folders called {name} that are gone" if others else where
        try:
            above = os.path.commonpath(gone)
        except ValueError:
            # Folders of two systems have nothing in common.
            above = first
        take = f"to take them: archivist setup --moved-from {shlex.quote(above)}"
        lines.append(f"{gone.total()} more began in {where}; {take}")
    if left_out:
        folder = left_out.most_common(1)[0][0]
        where = folder if len(left_out) == 1 else f"{folder} and {len(left_out) - 1} more"
        began = f"{left_out.total()} left out that began inside of it, maybe in another repository: {where}"
        take = "to take those of a folder that is gone: archivist setup --moved-from FOLDER"
        lines.append(f"{began}; {take}")
    return "\n          ".join(lines)


def _learn(
    bank: Bank, checkout: Path, logs: Sequence[ClientLog], problems: list[str], tell: Any
) -> dict[str, Any]:
    """Capture the logs in order of time and reflect on them; say what came of it."""
    with bank.reading() as reader:
        project = projects.project_at(reader, checkout, bank.root)
    overrides = CaptureOverrides(project=project, folder=str(checkout))
    runs: set[str] = set()
    secrets = unread = 0
    # A hook that still works on a session notes at its end that it has told it; until then setup waits.
    with (
        hook_log.lock_sessions(paths.state_folder(bank.path), _HOOK_WAIT_S),
        progress(len(logs), "capture") as advance,
    ):
        # What hooks kept of a session is numbered in another way than its log, so one of the two is taken.
        told = bank.runs.runs_with_note([log.session for log in logs if log.session], LOG)
        for log in logs:
            try:
                if log.session in told:
                    continue
                if log.is_database:
                    taken = bank.runs.take(log.read_items(), overrides)
                else:
                    taken = bank.runs.capture_file(log.path, overrides=overrides)
                runs.update((*taken.created, *taken.updated))
                secrets += sum(taken.secrets.values())
            except InputError as error:
                problems.append(f"{log.path}: {error.message}")
                unread += 1
            finally:
                advance(1)
    with progress(len(bank.reflections.waiting_runs()), "reflect") as advance:
        for done in bank.reflections.reflect_waiting():
            if isinstance(done, ReflectionOutcome) and done.error:
                problems.append(f"{done.run}: {done.error}")
            advance(1)
    embed(bank)
    held = bank.doctor.status()
    lessons = held["active_lessons"] + held["candidate_lessons"]
    redacted = f"; {pluralize(secrets, 'secret')} redacted" if secrets else ""
    redacted += f"; {pluralize(unread, 'log')} could not be read, see below" if unread else ""
    if logs:
        tell(f"Captured  {pluralize(len(runs), 'new or longer run')} of project {project}{redacted}")
        learnt = f"{pluralize(lessons, 'lesson')} in all: archivist lessons list"
        reason = "no log could be read" if unread == len(logs) else "no failure recurred"
        tell(f"Learnt    {learnt if lessons else f'no lesson yet: {reason}'}")
        for line in approval_notes(held["quarantined_lessons"]):
            tell(f"          {line}")
        if held["open_proposals"]:
            proposals = pluralize(held["open_proposals"], "proposal")
            tell(f"          {proposals} for core memory to decide on: archivist proposals list")
    else:
        tell(
            "          After the first session that a client ends here, its log is captured and learnt from,"
        )
        tell("          and the session after it is told what was learnt.")
    counts = {"lessons": lessons, "secrets": secrets, "unread": unread}
    return {"project": project, "runs": sorted(runs), **counts}


def _plan_clients(
    checkout: Path, logged: set[str], *, user: bool
) -> tuple[list[ClientPlan], list[str], list[str]]:
    """Return what would be written for each client that is used here, remarks, and which are left out."""
    home = Path.home().absolute()
    place = InstallLocation(home if user else checkout, is_user=user, is_local=not user)
    installs = chain.find_installs(checkout, home, CLIENTS)
    plans: list[ClientPlan] = []
    remarks: list[str] = []
    refused: list[str] = []
    for client in usual_clients(home):
        own = [each for each in installs if each.client == client and each.hooks and not each.problem]
        if scopes := [each.scope for each in own]:
            remarks.append(f"{client} is installed already ({scopes[0]})")
            if user and "user" not in scopes:
                remarks[-1] += f", here alone; for all projects first: archivist uninstall {client} --local"
            continue
        try:
            plan = changes.plan_client(client, place.read_by(client))
        except InputError as error:
            remarks.append(f"{client} is left out: {error.message}; {error.hint}")
            refused.append(client)
            continue
        plans.append(plan)
        is_served = any(each.client == client and each.has_server for each in installs)
        remarks += [remark for remark in plan.remarks if not is_served or NO_LOCAL_SERVER not in remark]
        if len(worktrees_of(checkout)) > 1 and not user and client not in SHARED_BY_WORKTREES:
            also = "in each worktree archivist setup, or once archivist setup --user"
            remarks.append(f"{client} reads the settings of the folder where it starts: {also}")
    remarks += [
        f"{client} is learnt from, and told on request only: archivist brief, or by MCP: {how}"
        for client, how in WITHOUT_HOOKS.items()
        if client in logged
    ]
    return plans, remarks, refused


def _show_plans(plans: Sequence[ClientPlan], remarks: Sequence[str], tell: Any, *, is_full: bool) -> None:
    for plan in plans:
        for change in plan.changes:
            diff = change.diff(plan.place.root, "~" if plan.place.is_user else "")
            added = sum(line.startswith("+") for line in diff.splitlines()) - 1
            if is_full and diff:
                tell(diff, nl=False)
            elif diff:
                tell(f"Client    {plan.client}: {change.action} {change.path} ({pluralize(added, 'line')})")
    for remark in remarks:
        tell(f"Client    {remark}")
    if not plans and not remarks:
        tell(f"Client    none was found on this machine: archivist install {'|'.join(CLIENTS)}")


def _connect(
    plans: Sequence[ClientPlan],
    remarks: Sequence[str],
    record: SetupRecord,
    state: Path,
    tell: Any,
    *,
    yes: bool,
) -> list[str]:
    """Show what would be written, ask, and install; return the clients that were installed."""
    is_asked = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    _show_plans(plans, remarks, tell, is_full=is_asked)
    names = ", ".join(plan.client for plan in plans)
    if not plans:
        return []
    if not yes and not is_asked:
        tell(f"          Nothing was installed: archivist setup --yes installs into {names}.")
        return []
    if is_asked and not click.confirm(f"Install into {names}?", default=True, err=True):
        return []
    for plan in plans:
        done = [plan.client, plan.place.scope, str(plan.place.root)]
        record = record._replace(installs=[*record.installs, done])
        # Before the files: what is half written can be undone, too.
        record.save(state)
        changes.apply_plan(plan)
        if plan.client in ASKS:
            tell(f"          {ASKS[plan.client]}")
    return [plan.client for plan in plans]


def _tell_brief(bank: Bank, session: Session, project: str, tell: Any, *, is_connected: bool) -> str:
    """Print what the next session is told, or would be if a client were connected."""
    request = BriefRequest(project=project, form=BriefFormat.MARKDOWN, fence=False)
    brief = bank.brief(request, global_bank=session.global_bank())
    if brief.text:
        told = "The next session here is told:"
        told = (
            told
            if is_connected
            else "Nothing is installed, so no session is told this yet. It would be told:"
        )
        tell(f"\n{told}\n\n{brief.text.rstrip()}\n\nWhy each of them: archivist brief --explain")
        if crowded := brief.count_crowded():
            tell(crowded)
    else:
        # What to do about it has been said above.
        reason = bank.briefs.explain_empty(brief, request).partition(": ")[0]
        tell(f"\nThe next session here is told nothing yet: {reason}.")
    return brief.text


def _undo(session: Session, *, yes: bool, dry_run: bool, as_json: bool) -> dict[str, Any]:
    """Uninstall the clients that setup connected, in every worktree, and delete the bank that it made."""
    file = paths.bank_file(_bank_place(session)).absolute()
    refuse_linked_bank(file)
    record = SetupRecord.load(paths.state_folder(file))
    if record == SetupRecord():
        hint = "archivist uninstall all removes what is in the clients' settings here"
        raise InputError(f"archivist setup was not run for the bank {str(file)!r}", hint=hint)
    plans = [changes.plan_client(client, place, is_removal=True) for client, place in record.places()]
    removed = [
        f"{plan.client} in {plan.place.root}{', for all your projects' if plan.place.is_user else ''}"
        for plan in plans
        if plan.is_changed
    ]
    lines = [f"Uninstall {each}" for each in removed]
    left = [str(path) for plan in plans for path in plan.left_files()]
    lines += [f"Leave     {path}: it holds nothing that setup wrote" for path in left]
    is_deleted = record.has_made_bank
    try:
        with session.bank() as bank:
            held = bank.doctor.status()
        lessons = held["active_lessons"] + held["candidate_lessons"]
        contents = f"with {pluralize(lessons, 'lesson')} and {pluralize(held['runs'], 'run')}"
    except UntrustedBankError:
        # Something else lies in its place now, perhaps by a pull.
        is_deleted, contents = False, "it is not the bank that setup made"
    except ArchivistError as error:
        # The settings are taken back whatever has happened to the bank.
        note(f"archivist: {error.message}")
        contents = "which cannot be read; archivist salvage copies what is left, before you undo"
    if record.has_made_bank:
        lines.append(f"Delete    {file} {contents}" if is_deleted else f"Leave     {file}: {contents}")
    tell = _silence if as_json else say
    for line in lines:
        tell(line)
    view = {
        "bank": str(file),
        "uninstalled": removed,
        "left": left,
        "bank_deleted": is_deleted,
        "dry_run": dry_run,
    }
    if dry_run:
        tell("Nothing was changed: this was a dry run.")
        return view
    if not yes and not confirm("Undo it?", "undoing", "--yes undoes it without asking"):
        return {**view, "uninstalled": [], "bank_deleted": False}
    for plan in plans:
        changes.apply_plan(plan, is_removal=True)
    if is_deleted:
        _delete_bank(file, record)
    else:
        (paths.state_folder(file) / SETUP_FILE).unlink()
    tell("Undone.")
    return view


def _delete_bank(file: Path, record: SetupRecord) -> None:
    """Delete a bank with everything that was written for it; what else lies in its folder stays."""
    withdraw_trust(file)
    own = [file.with_name(file.name + ending) for ending in _OWN_FILES]
    ignored = file.with_name(".gitignore")
    for path in (*own, *([ignored] if read_small_text(ignored) == "*\n" else [])):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        file.parent.rmdir()
    remove_bank_exclusion(file)
    shutil.rmtree(paths.state_folder(file), ignore_errors=True)
    if not record.has_made_home or accepted_banks():
        return
    home = paths.home_folder()
    with suppress(OSError):
        (home / "state").rmdir()
        # Nothing of the user's: no settings, no global bank, no log of failures.
        if all(path.name in _CACHES for path in home.iterdir()):
            shutil.rmtree(home)
