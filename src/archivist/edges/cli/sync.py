"""The commands that connect this machine with a team's server."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from archivist.edges.cli import options
from archivist.edges.cli.output import EXIT_PARTIAL, Answer
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import ConfigError, InputError
from archivist.exchange.outbox_service import TOKEN_VARIABLE, Outbox
from archivist.paths import CONFIG_NAME, OF_PERSON, bank_file, home_folder, project_folder


@options.command(owners_of="runs")
@click.option("--to", "url", metavar="URL", default="", help="Send this project's sessions to this server.")
@click.option("--off", "is_off", is_flag=True, help="Send nothing any more; what waits stays.")
def sync(session: Session, url: str, is_off: bool) -> Answer:
    """Send the sessions that wait to the team's server.

    With --to it checks a server and stores its address and the token, which is read from ARCHIVIST_TOKEN or
    stdin. From then on each session of this project is sent when it ends.
    """
    from archivist.config.sources import change_file

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
    from archivist.config.sources import change_file

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
    lines = [f"{each.get('run')}  shared with {each.get('bank')}" for each in done]
    return Answer({"shared": done}, "\n".join(lines))
