"""The command that sets everything up, from the bank and the logged sessions to the first brief; its undo."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from archivist import paths, projects
from archivist.bank import Bank
from archivist.brief.moments_service import AT_FAILURE, AT_PROMPT
from archivist.brief.select import BriefFormat, BriefRequest, RenderedBrief
from archivist.capture.client_logs import (
    CheckoutPlaces,
    ClientLog,
    checkout_places,
    find_client_logs,
    name_take,
)
from archivist.capture.service import CaptureOverrides, CaptureResult
from archivist.doctor import LOG, logged_versions
from archivist.edges.cli import options
from archivist.edges.cli.banks import create_bank, refuse_global_place
from archivist.edges.cli.install import describe_question, project_root, without_doubles
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    ask,
    confirm,
    embed,
    note,
    print_json,
    problem_lines,
    progress,
    say_wrapped,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import approval_notes, name_problem, pluralize, retired_notes, unread_notes
from archivist.edges.hook_events import CLIENTS, EVENT_NAMES, PROMPT, TOOL_FAILURE
from archivist.edges.install import chain, changes
from archivist.edges.install.changes import (
    ClientPlan,
    SetupRecord,
)
from archivist.edges.install.clients import SHARED_BY_WORKTREES, InstallLocation, present_clients
from archivist.edges.install.versions import find_shortcoming, version_of
from archivist.errors import AccessError, ArchivistError, InputError, UntrustedBankError
from archivist.files import hook_log
from archivist.files.git import remove_bank_exclusion
from archivist.files.open import read_small_text, real_path
from archivist.files.worktrees import bank_place, shared_git_dir, worktrees_of
from archivist.records import Lesson
from archivist.records.words import ActorKind, Provenance
from archivist.reflect.trigger import ReflectionOutcome
from archivist.text import on_one_line
from archivist.trust import accepted_banks, has_bank_at, is_noted, mark_of, places_of, withdraw_trust
from archivist.trust import refuse_links as refuse_linked_bank

_READ_CLIENTS = "Claude Code, Codex, Gemini CLI, OpenCode, Copilot CLI, VS Code, Cursor"
_OF_OTHERS = "it is for all your projects, and another was set up"
_OTHER_CLONES = (
    "what you added, approved or forgot there is not known here: archivist share FOLDER, in both, brings what"
    " you added and approved; forget again what is here again"
)
_CACHES = ("file_systems", "trusted.json")
# How long setup waits for a hook that imports a session; a reflection takes a few seconds.
_HOOK_WAIT_S = 60.0
_OWN_FILES = ("", "-wal", "-shm", "-journal")
# What becomes of a log that was found: every one is counted under one of these.
_NEW, _LONGER, _KNOWN = "new", "longer than before", "known already"
_SHORTER, _EMPTY = "with less than is known of the run", "without any event"
_UNREADABLE = "unreadable"
_BECAME = (_NEW, _LONGER, _KNOWN, _SHORTER, _EMPTY, _UNREADABLE)


@click.command()
@click.argument("words", metavar="", nargs=-1)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--undo", is_flag=True, help="Take everything back that setup did here.")
@click.option("--user", is_flag=True, help="Install for all your projects, not for this clone alone.")
@click.option("--moved-from", "former", metavar="FOLDER", multiple=True, type=click.Path(path_type=Path),
              help="Also take sessions of this former folder, or of those of its name below.")  # fmt: skip
@click.option("--client", "named", metavar="CLIENT", multiple=True, type=click.Choice(CLIENTS),
              help="Also connect this client, without a session of its own here.")  # fmt: skip
@click.option("--any-folder", is_flag=True, help="Also where there is no git repository.")
@options.as_json
@click.pass_obj
def setup(
    session: Session,
    /,
    words: tuple[str, ...],
    undo: bool,
    user: bool,
    former: tuple[Path, ...],
    named: tuple[str, ...],
    any_folder: bool,
    **how: bool,
) -> None:
    """Make a bank, learn from this repository's logged sessions, connect clients, print the next brief.

    Finds the logs of Claude Code, Codex, Gemini CLI, OpenCode, Copilot CLI, VS Code and Cursor for all
    worktrees of the repository. Shows what would be written into the settings of the clients that have
    sessions here and asks; git does not see the files that it makes. Run it again to bring in what is new.
    """
    if words:
        hint = f"archivist install {words[0]}" if words[0] in CLIENTS else "cd into the repository first"
        raise click.UsageError(f"setup takes no words: it is about the folder that you are in\nhint: {hint}")
    actor = session.actor()
    if actor.kind is not ActorKind.HUMAN:
        raise AccessError(str(actor), "set up", "a bank", hint="only people connect clients to a bank")
    if undo and (user or former or named):
        raise click.UsageError(
            "--undo takes back all that setup did here: leave --user and --moved-from out, and --client"
        )
    if not undo:
        _refuse_other_folders(session, is_insisted=any_folder)
    view = _undo(session, **how) if undo else _set_up(session, user=user, former=former, named=named, **how)
    if how["as_json"]:
        print_json(view)
    if view.get("is_partial"):
        click.get_current_context().exit(EXIT_PARTIAL)


def _refuse_other_folders(session: Session, *, is_insisted: bool) -> None:
    """Refuse a folder that is no project: a bank there would be that of everything below it."""
    folder = project_root(session)
    if folder.parent == folder:
        raise InputError(f"{str(folder)!r} is no project", hint="cd into a repository first")
    file = paths.bank_file(_bank_place(session)).absolute()
    refuse_global_place(file)
    is_project = shared_git_dir(folder) is not None or has_bank_at(file)
    if not (is_project or is_insisted or session.bank_path):
        hint = "cd into a repository first; for this folder and all below it: archivist setup --any-folder"
        is_linked = (folder / ".git").is_symlink()
        why = "'.git' in it is a link, which is not followed" if is_linked else "is in no git repository"
        raise InputError(f"{str(folder)!r}{':' if is_linked else ''} {why}", hint=hint)


def _set_up(
    session: Session, *, user: bool, former: Sequence[Path], named: Sequence[str], **how: bool
) -> dict[str, Any]:
    tell = _silence if how["as_json"] else say_wrapped
    checkout = project_root(session)
    place = _bank_place(session)
    file = paths.bank_file(place).absolute()
    clones = projects.find_clones(checkout, accepted_banks())
    places = checkout_places(checkout, [real_path(folder) for folder in former], clones)
    logs, problems, unreadable = find_client_logs(places, Path.home(), os.environ)
    problems += unreadable
    choice = _plan_clients(checkout, logs, named, user=user)
    plans, present = choice.plans, choice.present
    view = _view_found(file, logs, places, unreadable, choice) | {"dry_run": how["dry_run"]}
    has_repository = shared_git_dir(checkout) is not None
    sessions = _describe_sessions(logs, places, has_repository=has_repository)
    was_at = _find_former_folder(file)
    if how["dry_run"]:
        _tell_bank(file, was_at, sessions, tell)
        _show_plans(plans, _note_versions(checkout, choice, {}).remarks, checkout, tell)
        _show_diffs(plans, tell)
        tell("\n".join(("Nothing was changed: this was a dry run.", *problem_lines(problems))))
        return view
    is_first_home = not paths.home_folder().exists()
    if was_at:
        note(f"archivist: {was_at}")
    shown, is_new, notes, warnings = create_bank(session, place)
    state = paths.state_folder(file)
    record, replaced = _open_record(state, has_made_bank=is_new, has_made_home=is_first_home)
    is_here = paths.is_file(file)
    hidden = "; git does not see it" if is_here and has_repository and not warnings else ""
    tell(on_one_line(f"Memory    {file if is_here else shown}{' (new)' if is_new else ''}{hidden}"))
    tell(f"Sessions  {sessions}")
    with session.bank(folder=checkout) as bank:
        if clones:
            _name_as_clone(bank, checkout, clones[0])
        view |= _learn(bank, checkout, logs, problems, tell)
        if former:
            # Sessions of a clone with another remote would else seem to be another repository's.
            bank.lessons.claim(view["project"])
        request = BriefRequest(project=view["project"], form=BriefFormat.MARKDOWN, fence=False)
        brief = bank.brief(request, global_bank=session.global_bank())
        _tell_lessons(bank, brief, view, [*present, *(plan.client for plan in plans)], tell)
        choice = _note_versions(checkout, choice, logged_versions(bank))
        _show_plans(plans, choice.remarks, checkout, tell)
        view["installed"] = _connect(choice, record, state, tell, yes=how["yes"])
        _tell_brief(brief, tell, is_connected=bool(view["installed"] or present))
    for line in (*notes, *warnings, *replaced, *problem_lines(problems)):
        note(line)
    tell("\nUndo all of it: archivist setup --undo. Bring in what is new: archivist setup.")
    left_out = [client for client in choice.refused if client not in view["installed"]]
    is_partial = bool(view["unread"] or view["damaged"] or unreadable) or (how["yes"] and bool(left_out))
    return view | {"brief": brief.text, "created": is_new, "problems": problems, "is_partial": is_partial}


def _view_found(
    file: Path,
    logs: Sequence[ClientLog],
    places: CheckoutPlaces,
    unreadable: Sequence[str],
    choice: _ClientChoice,
) -> dict[str, Any]:
    """Return what was found as plain values."""
    return {
        "bank": str(file),
        "sessions": dict(Counter(log.client for log in logs)),
        "gone": dict(places.gone),
        "left_out": dict(places.left_out),
        "lost": dict(places.lost),
        "replaced": dict(places.replaced),
        "unreadable": unreadable,
        "is_partial": bool(unreadable),
        "clones": list(map(str, places.clones)),
        "clients": [plan.view() for plan in choice.plans],
        "remarks": choice.remarks,
        "refused": choice.refused,
    }


def _open_record(state: Path, *, has_made_bank: bool, has_made_home: bool) -> tuple[SetupRecord, list[str]]:
    """Note what setup made, for its undo; return the record, and which settings others changed since."""
    record = SetupRecord.load(state)
    replaced = [f"archivist: {line}" for line in record.find_changed()]
    record = record._replace(
        has_made_bank=record.has_made_bank or has_made_bank,
        has_made_home=record.has_made_home or has_made_home,
    )
    record.save(state)
    return record, replaced


def _name_as_clone(bank: Bank, checkout: Path, clone: Path) -> None:
    """Call the project as in another clone of its repository, unless a remote or the bank names it."""
    with bank.reading() as reader:
        name = projects.name_of_clone(reader, checkout, bank.root, clone)
    if name:
        bank.lessons.claim(name)


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
    tell(on_one_line(f"Memory    {file} {distrust if was_at is not None else presence}"))
    if was_at:
        tell(f"          {was_at}")
    tell(f"Sessions  {sessions}")


def _silence(_text: object = "", *, nl: bool = True) -> None:
    """Say nothing: the answer is JSON."""


def _describe_sessions(logs: Sequence[ClientLog], places: CheckoutPlaces, *, has_repository: bool) -> str:
    """Count the sessions that were found, and those that were not taken but may be the repository's."""
    place = "repository" if has_repository else "folder"
    lines = [f"none of this {place} found in the logs of {_READ_CLIENTS}"]
    if not has_repository:
        lines.append("this folder is in no git repository: only sessions that began in it count")
    if logs:
        counts = Counter(log.client for log in logs).most_common()
        lines[0] = f"{len(logs)} found: {', '.join(f'{number} of {name}' for name, number in counts)}"
    if places.clones:
        lines += [
            f"those of other clones count too: {', '.join(map(str, places.clones))}",
            _OTHER_CLONES,
        ]
    if gone := places.gone:
        # They began in folders of the repository's name that are gone: it may have been there before.
        name = next(iter(gone)).replace("\\", "/").rpartition("/")[2]
        where = f"a folder called {name} that is gone"
        where = f"{len(gone)} folders called {name} that are gone" if len(gone) > 1 else where
        lines.append(f"{gone.total()} more began in {where}; {name_take(gone)}")
    if left_out := places.left_out:
        where = ", ".join(f"{folder} ({count})" for folder, count in left_out.most_common())
        began = f"{left_out.total()} left out that began inside of it, maybe in another repository: {where}"
        # Of a folder that is there its own files say what it is.
        absent = [folder for folder in left_out if not paths.is_folder(Path(folder))]
        lines.append(f"{began}; if it was not, {name_take(absent)}" if absent else began)
    take = f"archivist setup --moved-from {shlex.quote(str(places.trees[0]))}"
    lines += [
        f"{count} left out that began here and whose logs name another repository,"
        f" {on_one_line(remote)[:100]}; to take them: {take}"
        for remote, count in places.replaced.items()
    ]
    return "\n          ".join(map(on_one_line, lines))


def _learn(
    bank: Bank, checkout: Path, logs: Sequence[ClientLog], problems: list[str], tell: Any
) -> dict[str, Any]:
    """Capture the logs in order of time and reflect on them; say what became of each log."""
    with bank.reading() as reader:
        project = projects.project_at(reader, checkout, bank.root)
    overrides = CaptureOverrides(project=project, folder=str(checkout))
    runs: set[str] = set()
    became: Counter[str] = Counter()
    filed: Counter[str] = Counter()
    secrets = damaged = 0
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
                    became[_KNOWN] += 1
                    filed[bank.runs.episode(log.session).project] += 1
                    continue
                if log.is_database:
                    taken = bank.runs.take(log.read_items(), overrides, is_log=True)._replace(
                        file=str(log.path)
                    )
                else:
                    taken = bank.runs.capture_file(log.path, overrides=overrides)
                runs.update((*taken.created, *taken.updated))
                filed.update(episode.project for episode in taken.episodes if not episode.parent)
                secrets += sum(taken.secrets.values())
                damaged += bool(notes := unread_notes(taken))
                problems += notes
                became[_describe_taken(taken)] += 1
            except InputError as error:
                problems.append(name_problem(log.path, error))
                became[_UNREADABLE] += 1
            finally:
                advance(1)
    with progress(len(bank.reflections.waiting_runs()), "reflect") as advance:
        for done in bank.reflections.reflect_waiting():
            if isinstance(done, ReflectionOutcome) and done.error:
                problems.append(f"{done.run}: {done.error}")
            advance(1)
    embed(bank)
    _tell_captured(became, filed, project, secrets, damaged, tell)
    counted = {"secrets": secrets, "unread": became[_UNREADABLE], "damaged": damaged}
    return {
        "project": project, "runs": sorted(runs), "logs": dict(became), "projects": dict(filed), **counted
    }  # fmt: skip


def _tell_captured(
    became: Counter[str], filed: Counter[str], project: str, secrets: int, damaged: int, tell: Any
) -> None:
    """Say what became of the logs, and under which projects their runs are filed."""
    if not became:
        tell(
            "          After the first session that a client ends here, its log is captured and learnt from,"
            " and the session after it is told what was learnt."
        )
        return
    counts = ", ".join(f"{became[word]} {word}" for word in _BECAME if became[word])
    redacted = f"; {pluralize(secrets, 'secret')} redacted" if secrets else ""
    runs = [f"{name} ({pluralize(number, 'run')})" for name, number in filed.most_common()]
    where = f"projects {', '.join(runs)}" if len(runs) > 1 else f"project {next(iter(filed), project)}"
    tell(f"Captured  {counts}; filed under {where}{redacted}")
    # Nothing tells whose a folder was that became a repository after its sessions.
    claims = [shlex.quote(name) for name in filed if projects.is_distinct_name(name) and name != project]
    if claims:
        tell(f"          if that is this repository: archivist lessons claim {' or '.join(claims)}")
    if damaged:
        tell(f"          {pluralize(damaged, 'log')} could be read in part only, see below")
    if became[_UNREADABLE]:
        tell(f"          {pluralize(became[_UNREADABLE], 'log')} could not be read, see below")


def _describe_taken(taken: CaptureResult) -> str:
    """Return what became of a log, in the word by which setup counts it."""
    if taken.created:
        return _NEW
    if taken.shorter:
        return _SHORTER
    if taken.updated:
        return _LONGER
    return _KNOWN if taken.episodes else _EMPTY


def _tell_lessons(
    bank: Bank, brief: RenderedBrief, view: dict[str, Any], clients: Sequence[str], tell: Any
) -> None:
    """Say how many lessons the bank holds now and when the clients tell each, and what waits for a person."""
    held = bank.doctor.status()
    view["lessons"] = lessons = held["active_lessons"] + held["candidate_lessons"]
    if not view["logs"]:
        return
    if lessons:
        events = {event for client in clients for event in EVENT_NAMES[client]}
        missing = {AT_FAILURE: TOOL_FAILURE not in events, AT_PROMPT: PROMPT not in events}
        counts: Counter[str] = Counter()
        for moment, count in bank.moments.count(brief).items():
            counts["on request" if missing.get(moment) else moment] += count
        moments = ", ".join(f"{count} {moment}" for moment, count in counts.items())
        tell(f"Learnt    {pluralize(lessons, 'lesson')} held now: {moments}; archivist lessons list")
    else:
        is_all = view["unread"] == sum(view["logs"].values())
        tell(f"Learnt    no lesson yet: {'no log could be read' if is_all else 'no failure recurred'}")
    for line in (*approval_notes(held["quarantined_lessons"]), *retired_notes(bank)):
        tell(f"          {line}")
    if held["open_proposals"]:
        proposals = pluralize(held["open_proposals"], "proposal")
        tell(
            f"          {proposals} of a rule that every session would be told: archivist proposals list,"
            " then accept or reject; until you do, nothing changes"
        )


def _choose_clients(
    used: Collection[str], named: Collection[str], *, is_connected: bool
) -> tuple[list[str], list[str]]:
    """Return the clients to connect, and those that are on this machine alone.

    Until a client has a session here or is connected, all that are on this machine are meant.
    """
    here = present_clients(Path.home())
    wanted = [client for client in CLIENTS if client in named or (client in used and client in here)]
    wanted = without_doubles(wanted if wanted or is_connected else here)
    return wanted, [client for client in without_doubles([*wanted, *here]) if client not in wanted]


class _ClientChoice(NamedTuple):
    """What would be written for each client that is used here, and what a person may choose instead.

    `refused` are the clients whose settings here stay as they are, `by_user` the plans for the user's own
    settings of those, and of clients that would not read the settings of here everywhere. `present` are the
    files of the clients that have our hooks already.
    """

    plans: Sequence[ClientPlan]
    remarks: Sequence[str]
    refused: Sequence[str]
    present: Mapping[str, frozenset[Path]]
    by_user: Mapping[str, ClientPlan] = MappingProxyType({})

    def offer_user(self, *clients: str) -> _ClientChoice:
        """Return the choice with the user's own settings for more clients, as far as they can be written."""
        plans = dict(self.by_user)
        for client in clients:
            with suppress(ArchivistError):
                place = InstallLocation(Path.home().absolute(), is_user=True)
                plans[client] = changes.plan_client(client, place)
        return self._replace(by_user=plans)


def _plan_clients(
    checkout: Path, logs: Sequence[ClientLog], named: Collection[str], *, user: bool
) -> _ClientChoice:
    """Plan the clients that have sessions here or are named, without those that are installed."""
    home = Path.home().absolute()
    place = InstallLocation(home if user else checkout, is_user=user, is_local=not user)
    installs = chain.find_installs(checkout, home, CLIENTS)
    scopes: dict[str, list[str]] = {}
    present: dict[str, frozenset[Path]] = {}
    for each in installs:
        if each.hooks and not each.problem:
            scopes.setdefault(each.client, []).append(each.scope)
            present[each.client] = present.get(each.client, each.hooks) | each.hooks
    is_connected = any(set(found) != {"user"} for found in scopes.values())
    used = {log.client.removesuffix("-cli") for log in logs}
    wanted, others = _choose_clients(used, named, is_connected=is_connected)
    plans: list[ClientPlan] = []
    remarks: list[str] = []
    refused: list[str] = []
    for client, found in scopes.items():
        remarks.append(f"{client} is installed already ({found[0]})")
        if user and "user" not in found:
            remarks[-1] += f", here alone; for all projects first: archivist uninstall {client} --local"
    for client in wanted:
        if client in scopes:
            continue
        try:
            plan = changes.plan_client(client, place.read_by(client))
        except InputError as error:
            remarks.append(f"{client} is left out: {error.message}; {error.hint}")
            refused.append(client)
            continue
        is_served = any(each.client == client and each.has_server for each in installs)
        plans.append(plan._replace(add_server="") if is_served else plan)
        is_shared = plan.place.is_user or client in SHARED_BY_WORKTREES
        if len(worktrees_of(checkout)) > 1 and not is_shared:
            also = "in each worktree archivist setup, or once archivist setup --user"
            remarks.append(f"{client} reads the settings of the folder where it starts: {also}")
    remarks += changes.list_remarks(plans)
    absent = [each for each in CLIENTS if each in used and each not in (*wanted, *others, *scopes)]
    if absent := [each for each in without_doubles([*wanted, *scopes, *absent]) if each in absent]:
        options = " ".join(f"--client {client}" for client in absent)
        named_absent = ", ".join(absent)
        remarks.append(f"not found on this machine: {named_absent}; to connect: archivist setup {options}")
    if offered := [client for client in others if client not in scopes]:
        options = " ".join(f"--client {client}" for client in offered)
        remarks.append(f"without a session here: {', '.join(offered)}; to connect: archivist setup {options}")
    return _ClientChoice(plans, remarks, refused, present).offer_user(*(() if user else refused))


def _note_versions(checkout: Path, choice: _ClientChoice, logged: Mapping[str, str]) -> _ClientChoice:
    """Return the choice with what the versions of the clients do not do."""
    hooks = {**choice.present, **{plan.client: plan.hook_files for plan in choice.plans}}
    lacking = {
        client: lack
        for client, files in hooks.items()
        if (lack := find_shortcoming(client, checkout, files, version_of(client, logged), is_for_all=True))
    }
    texts = [lack.text for lack in lacking.values()]
    planned = [plan.client for plan in choice.plans if plan.client in lacking and not plan.place.is_user]
    of_worktrees = [client for client in planned if lacking[client].is_of_worktrees]
    return choice._replace(remarks=[*choice.remarks, *texts]).offer_user(*of_worktrees)


def _show_plans(plans: Sequence[ClientPlan], remarks: Sequence[str], checkout: Path, tell: Any) -> None:
    """Say in a line each what would be written for the clients, and what else matters of them."""
    for plan in plans:
        for change in plan.changes:
            lines = change.diff(plan.place.root).splitlines()[2:]
            counts = [
                f"{sign}{number}" for sign in "+-" if (number := sum(line[0] == sign for line in lines))
            ]
            if counts:
                name, root = change.path, plan.place.root
                # Of a linked worktree it may be the main one's.
                if name.is_relative_to(root) and (
                    plan.place.is_user or real_path(root) == real_path(checkout)
                ):
                    name = Path("~" if plan.place.is_user else "") / name.relative_to(root)
                tell(
                    on_one_line(f"Client    {plan.client}: {change.action} {name} ({' '.join(counts)} lines)")
                )
    for remark in remarks:
        tell(on_one_line(f"Client    {remark}"))
    if not plans and not remarks:
        tell(f"Client    none was found on this machine: archivist install {'|'.join(CLIENTS)}")


def _show_diffs(plans: Sequence[ClientPlan], tell: Any) -> None:
    for plan in plans:
        for change in plan.changes:
            if diff := change.diff(plan.place.root, "~" if plan.place.is_user else ""):
                tell(diff, nl=False)


def _connect(choice: _ClientChoice, record: SetupRecord, state: Path, tell: Any, *, yes: bool) -> list[str]:
    """Ask, and install; return the clients that were installed."""
    plans: Sequence[ClientPlan] = choice.plans
    names = ", ".join(plan.client for plan in plans)
    if not plans and (yes or not choice.by_user):
        return []
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        if names:
            tell(f"          Nothing was installed: archivist setup --yes installs into {names}.")
        return []
    while not yes:
        by_user = ", ".join(choice.by_user)
        if by_user:
            tell(f"          u installs {by_user} for all your projects, in your own settings.")
        # Of a client whose settings here stay as they are only the user's own are left.
        own = {plan.client: plan for plan in plans}
        either = {**choice.by_user, **own}
        question = f"Install into {names}?" if names else f"Install into {by_user}?"
        letters = f"{'Y/n' if names else 'N'}/{'u/' if by_user else ''}d"
        default = "y" if names else "n"
        answer = ask(question, f"{letters} or names, d shows every line", default=default, names=either)
        if answer == "d":
            _show_diffs([*plans, *choice.by_user.values()], tell)
        elif answer == "n":
            tell("          Nothing was installed: setup asks again, archivist install CLIENT adds one.")
            return []
        else:
            chosen = {"y": own, "u": {**own, **choice.by_user}}.get(answer)
            plans = list((chosen or {client: either[client] for client in answer.split()}).values())
            break
    for plan in plans:
        done = [plan.client, plan.place.scope, str(plan.place.root)]
        record = record._replace(installs=[*record.installs, done])
        # Before the files: what is half written can be undone, too.
        record.save(state)
        changes.apply_plan(plan)
        if asked := describe_question(plan):
            tell(f"          {asked}")
    return [plan.client for plan in plans]


def _tell_brief(brief: RenderedBrief, tell: Any, *, is_connected: bool) -> None:
    """Print what the next session is told, or would be if a client were connected."""
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
        reason = brief.why_no_lesson.partition(": ")[0]
        tell(f"\nThe next session here is told nothing yet: {reason}.")


def _hand_over(shared: Sequence[ClientPlan], record: SetupRecord, heir: Path) -> None:
    """Let another project's setup take back what is installed for all projects, and the home."""
    other = SetupRecord.load(heir)
    handed = [[plan.client, plan.place.scope, str(plan.place.root)] for plan in shared]
    has_made_home = other.has_made_home or record.has_made_home
    other._replace(installs=[*other.installs, *handed], has_made_home=has_made_home).save(heir)


def _describe_bank(session: Session) -> tuple[bool, str]:
    """Say whether the bank here is one of the user's, and what it holds."""
    try:
        with session.bank() as bank:
            held = bank.doctor.status()
            with bank.reading() as reader:
                typed = [lesson.provenance for lesson in reader.select(Lesson)].count(Provenance.TYPED)
    except UntrustedBankError:
        # Something else lies in its place now, perhaps by a pull.
        return False, "it is not the bank that setup made"
    except ArchivistError as error:
        # The settings are taken back whatever has happened to the bank.
        note(f"archivist: {error.message}")
        return True, "which cannot be read; archivist salvage copies what is left, before you undo"
    lessons = held["active_lessons"] + held["candidate_lessons"]
    own = f" ({typed} of which you wrote)" if typed else ""
    return True, f"with {pluralize(lessons, 'lesson')}{own} and {pluralize(held['runs'], 'run')}"


def _find_kept(session: Session, plans: Sequence[ClientPlan]) -> dict[str, str]:
    """Return what is said of each client here that setup did not install and does not remove."""
    files = {change.path for plan in plans for change in plan.changes}
    return {
        each.client: f"Leave     {each.client}: setup did not install it;"
        f" archivist uninstall {each.client} --{each.scope} removes it"
        for each in chain.find_installs(project_root(session), None, CLIENTS)
        if each.hooks - files
    }


def _undo(session: Session, *, yes: bool, dry_run: bool, as_json: bool) -> dict[str, Any]:
    """Uninstall the clients that setup connected, in every worktree, and delete the bank that it made."""
    file = paths.bank_file(_bank_place(session)).absolute()
    refuse_linked_bank(file)
    state = paths.state_folder(file)
    record = SetupRecord.load(state)
    if record == SetupRecord():
        hint = "archivist uninstall all removes what is in the clients' settings here"
        raise InputError(f"nothing to undo: setup was not run for the bank {str(file)!r}", hint=hint)
    plans = [changes.plan_client(client, place, is_removal=True) for client, place in record.places()]
    # What is installed for all projects is theirs to take back that were set up, too.
    records = sorted(state.parent.glob(f"*/{paths.SETUP_FILE}"))
    heirs = [file.parent for file in records if file.parent != state]
    shared = [plan for plan in plans if heirs and plan.place.is_user]
    plans = [plan for plan in plans if plan not in shared]
    removed = [
        f"{plan.client} in {plan.place.root}{', for all your projects' if plan.place.is_user else ''}"
        for plan in plans
        if plan.is_changed
    ]
    lines = [f"Uninstall {each}" for each in removed]
    left = [str(path) for plan in plans for path in plan.left_files()]
    lines += [f"Leave     {path}: it holds nothing that setup wrote" for path in left]
    kept = _find_kept(session, [*plans, *shared])
    lines += [f"Leave     {plan.client}: {_OF_OTHERS}" for plan in shared]
    lines += kept.values()
    is_own, contents = _describe_bank(session)
    is_deleted = record.has_made_bank and is_own
    if record.has_made_bank:
        lines.append(f"Delete    {file} {contents}" if is_deleted else f"Leave     {file}: {contents}")
    elif has_bank_at(file):
        delete = f"rm -r {shlex.quote(str(file.parent))} deletes it"
        lines.append(f"Leave     {file} {contents}: it was there before setup; {delete}")
    tell = _silence if as_json else say_wrapped
    for line in lines:
        tell(on_one_line(line))
    view = {
        "bank": str(file),
        "uninstalled": removed,
        "left": left,
        "still_installed": list(kept),
        "bank_deleted": is_deleted,
        "dry_run": dry_run,
    }
    if dry_run:
        tell("Nothing was changed: this was a dry run.")
        return view
    if not yes and not confirm("Undo it?", "undoing", "--yes undoes it without asking"):
        tell("Nothing was changed.")
        return {**view, "uninstalled": [], "bank_deleted": False}
    for plan in plans:
        changes.apply_plan(plan, is_removal=True)
    if heirs:
        _hand_over(shared, record, heirs[0])
    if is_deleted:
        _delete_bank(file, record)
    else:
        (state / paths.SETUP_FILE).unlink()
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
