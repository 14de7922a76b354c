"""Commands for a team: send sessions to its server, share runs there, work on the queue of its banks."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Event

import click

from archivist.bank import Bank
from archivist.config.sources import change_file
from archivist.edges.cli import options
from archivist.edges.cli.output import EXIT_PARTIAL, Answer, note, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import ArchivistError, ConfigError, EmbedderError, InputError
from archivist.exchange.outbox_service import TOKEN_VARIABLE, Outbox
from archivist.paths import CONFIG_NAME, OF_PERSON, bank_file, bank_name, home_folder, project_folder
from archivist.reflect.service import Reflection
from archivist.reflect.trigger import ReflectionOutcome


@options.command(owners_of="runs")
@click.option("--to", "url", metavar="URL", default="", help="Send this project's sessions to this server.")
@click.option("--off", "is_off", is_flag=True, help="Send nothing any more; what waits stays.")
def sync(session: Session, url: str, is_off: bool) -> Answer:
    """Send the sessions that wait to the team's server.

    With --to it checks a server and stores its address and the token, which is read from ARCHIVIST_TOKEN or
    stdin. From then on each session of this project is sent when it ends.
    """
    if url and is_off:
        raise click.UsageError("--to and --off exclude each other")
    config = home_folder() / CONFIG_NAME
    if is_off:
        for key in ("server.url", "server.folders"):
            change_file(config, key)
        Outbox.forget_token()
        return Answer({"url": ""}, "nothing is sent any more")
    if url:
        return _connect(session, url, config)
    outbox = Outbox.from_settings(session.load_settings(None).config.server)
    if outbox is None:
        raise ConfigError("no server is configured", hint="archivist sync --to URL")
    done = outbox.send(time.time(), is_forced=True)
    view = {"url": outbox.url, **done._asdict()}
    warnings = [f"archivist: {done.problem}"] if done.problem else []
    if done.refused:
        names = ", ".join(file.name for file in outbox.waiting(".refused")[:3])
        warnings.append(f"archivist: {done.refused} that the server cannot read, in {outbox.folder}: {names}")
    text = f"{pluralize(done.sent, 'run')} sent, {done.waiting} waiting"
    return Answer(view, text, warnings=warnings, code=EXIT_PARTIAL if done.waiting or done.refused else 0)


def _connect(session: Session, url: str, config: Path) -> Answer:
    folder = project_folder(bank_file(session.require_bank_path()))
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    token = (token or sys.stdin.readline()).strip()
    if not token:
        raise InputError("a token is needed", hint="archivist token create on the server prints one")
    address, _, bank = url.rstrip("/").partition("/banks/")
    outbox = Outbox(address, token, bank)
    hello = outbox.call("GET", "/")
    who, told = str(hello.get("actor") or ""), hello.get("banks")
    banks = [str(name) for name in told] if isinstance(told, list) else []
    teams = {name.partition(OF_PERSON)[0] for name in banks}
    if not bank and len(teams) > 1:
        # Which one is meant must not depend on an order: the one that is called as the project, or a named.
        bank = next((name for name in banks if name.partition(OF_PERSON)[0] == folder.name), "")
        if not bank:
            hint = f"name one: {address}/banks/{banks[0]}"
            raise InputError(f"the token opens {len(teams)} banks: {', '.join(banks)}", hint=hint)
    is_public = any(name.startswith(f"{bank}{OF_PERSON}") for name in banks) if bank else False
    notes = [f"archivist: {bank} is the team's: everybody in it sees these sessions"] if is_public else []
    rules = session.load_settings(None).config.server
    # What was meant for another server is not sent to this one.
    folders = Outbox.parse_folders(rules.folders) if rules.url == address else {}
    folders[str(folder)] = bank
    change_file(config, "server.url", address)
    entries = [f"{place}={name}" if name else place for place, name in folders.items()]
    change_file(config, "server.folders", ",".join(entries))
    outbox.store_token()
    view = {"url": address, "bank": bank, "actor": who, "folders": entries}
    where = f"{address}, bank {bank}," if bank else address
    return Answer(view, f"sessions in {folder} are sent to {where} as {who}", warnings=notes)


@options.command(owners_of="runs")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option("--to", "bank", metavar="NAME", default="", help="The bank; by default the team's.")
def share_runs(session: Session, runs: tuple[str, ...], bank: str) -> Answer:
    """Share runs on the team's server: copy them from your own bank there to the team's."""
    from urllib.parse import quote

    folder = project_folder(bank_file(session.require_bank_path()))
    outbox = Outbox.from_settings(session.load_settings(None).config.server, folder)
    if outbox is None:
        raise ConfigError("no server is configured for this project", hint="archivist sync --to URL")
    done = [outbox.call("POST", f"/api/runs/{quote(run)}/share", {"to": bank}) for run in runs]
    text = "\n".join(f"{each.get('run')}  shared with {each.get('bank')}" for each in done)
    return Answer({"shared": done}, text)


# To ask a bank whether a run waits takes 0.1 ms.
_POLL_S = 1.0


class _StopError(BaseException):
    """A signal asks the worker to end; like KeyboardInterrupt it unwinds, and leases are given back."""


@click.command()
@click.option("--once", is_flag=True, help="End when no run waits.")
@click.option("--bank", "names", metavar="all|NAME,…", default="", help="By default the project's.")
@options.as_json
@click.pass_obj
def worker(session: Session, once: bool, names: str, as_json: bool) -> int:
    """Reflect on queued runs as they come, until stopped. Any number of workers share the queue.

    Each run is leased to one worker. SIGTERM and Ctrl-C give the lease back. A worker that was killed loses
    its lease at once if it ran on this machine, else when the lease ends.
    """

    # The first signal unwinds the work in progress, a second one kills.
    def stop(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise _StopError

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    counts: Counter[str] = Counter()
    banks: dict[Path, Bank] = {}
    try:
        _work(session, names, banks, counts, is_once=once, as_json=as_json)
    except _StopError:
        note("archivist: stopped")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for bank in banks.values():
            bank.close()
    note(f"archivist: {pluralize(counts.total(), 'run')} done, {counts['failed']} failed")
    return EXIT_PARTIAL if counts["failed"] else 0


def _work(
    session: Session,
    names: str,
    banks: dict[Path, Bank],
    counts: Counter[str],
    *,
    is_once: bool,
    as_json: bool,
) -> None:
    """Take the runs of all banks in turns, and wait for more unless it is only once."""
    is_idle, problems = Event(), set[str]()
    while True:
        files = session.find_banks(names, with_people=True) if names else {"": session.require_bank_path()}
        before = counts.total()
        for file in files.values():
            try:
                bank = banks.get(file)
                if bank is None or not bank.is_there:
                    bank = banks[file] = session.open_named(file)
                for result in bank.reflections.reflect_waiting() if bank.reflections.waiting_runs() else ():
                    counts[_report(bank_name(bank.path), result, as_json=as_json)] += 1
                # One that fails is asked again with the next run.
                if counts.total() > before:
                    with suppress(EmbedderError):
                        for _ in bank.vectors.embed_waiting():
                            pass
            except ArchivistError as error:
                # Another bank can still be worked on; a lasting problem is told once.
                if is_once and len(files) == 1:
                    raise
                if error.message not in problems:
                    note(f"archivist: {error.message}")
                    problems.add(error.message)
        if counts.total() > before:
            _gather_lessons(banks)
        else:
            if is_once:
                return
            is_idle.wait(_POLL_S)


def _gather_lessons(banks: dict[Path, Bank]) -> None:
    """Give each team what the own banks of its people have in common."""
    people: dict[Path, list[Bank]] = {}
    for file, bank in banks.items():
        if OF_PERSON in bank_name(file):
            people.setdefault(file.parent.parent.with_name(file.name), []).append(bank)
    for team, own in people.items():
        if team in banks:
            for lesson in banks[team].team_lessons.gather(own):
                note(f"archivist: {bank_name(team)} learnt {lesson.short_id}, which its people met")


def _report(bank: str, result: Reflection | ReflectionOutcome, *, as_json: bool) -> str:
    """Print one line about a run, and return what became of it."""
    error = ""
    if isinstance(result, ReflectionOutcome):
        error, created, updated = result.error, result.created, result.updated
        state = "failed" if error else result.status
    else:
        created, updated, state = len(result.created), len(result.updated), "reflected"
    if as_json:
        line = {"bank": bank, "run": result.run, "state": state, "created": created, "updated": updated}
        print_json({**line, **({"error": error} if error else {})}, is_line=True)
    else:
        told = error or f"{pluralize(created, 'new lesson')}, {updated} met again"
        say(f"{bank}  {result.run}  {state}: {told}")
    # Whoever reads a pipe wants to see each line when it comes.
    sys.stdout.flush()
    return state
