"""Commands for the HTTP server and its access tokens."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from typing import Any

import click

from archivist.edges.cli.options import Answer, command, list_records
from archivist.edges.cli.output import global_option, json_option, pluralize, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.views import token_view
from archivist.errors import InputError
from archivist.records.actor import Actor

# Imported by name: edges do not import each other, and the server needs the extra `server`.
_SERVING = "archivist.edges.http.serving"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port, 0 for any; server.port by default.")
@click.option("--tls-cert", type=click.Path(dir_okay=False), metavar="FILE", help="The certificate, PEM.")
@click.option("--tls-key", type=click.Path(dir_okay=False), metavar="FILE", help="Its key, PEM.")
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without TLS.")
@click.option("--quiet", is_flag=True, help="Do not log requests to stderr.")
@global_option
@json_option
@click.pass_obj
def serve(
    session: Session,
    host: str,
    port: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    insecure: bool,
    quiet: bool,
    is_global: bool,
    as_json: bool,
) -> None:
    """Serve the bank over HTTP until stopped. Prints the address, and a browser link that works once.

    Programs authenticate with a token: archivist token create.
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    with session.bank(is_global=is_global) as bank:
        rules = bank.config.server
    serving = _import_serving()
    opened = serving.open_server(
        lambda: session.bank(is_global=is_global),
        host=host,
        port=rules.port if port is None else port,
        certificate=serving.Certificate(tls_cert, tls_key) if tls_cert else None,
        is_insecure=insecure,
        is_quiet=quiet,
    )
    if as_json:
        print_json({"url": opened.url, "link": opened.link})
    else:
        say(opened.url)
        say(f"{opened.link}  (for a browser, once)")
    sys.stdout.flush()
    opened.serve()


def _import_serving() -> Any:
    try:
        return import_module(_SERVING)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("archivist"):
            raise
        raise InputError(
            f"serving needs {error.name!r}, which is not installed",
            hint="pip install 'archivist-memory[server]'",
        ) from None


@click.group()
def token() -> None:
    """Create, list and revoke access tokens for the server."""


@command(token)
@click.option(
    "--actor", "who", metavar="KIND:NAME[:ROLE]", required=True, help="The actor that it authenticates."
)
@click.option("--role", metavar="R", default="", help="The actor's role, if --actor names none.")
@click.option("--name", metavar="N", default="", help="Its name; by default the actor.")
@click.option("--expires", type=float, metavar="DAYS", help="Days until it expires; by default it does not.")
@click.option("--bank", "place", metavar="PATH", help="The bank; by default as for every command.")
@global_option
def create(
    session: Session,
    who: str,
    role: str,
    name: str,
    expires: float | None,
    place: str | None,
    is_global: bool,
) -> Answer:
    """Create a token and print it. It is shown only once; the bank stores its hash."""
    if place and is_global:
        raise click.UsageError("--bank and --global exclude each other")
    actor = Actor.parse(who)
    if role and actor.role not in ("", role):
        raise click.UsageError(f"--actor names the role {actor.role!r}, --role another")
    named = replace(session, bank_path=place) if place else session
    with named.bank(is_global=is_global) as bank:
        actor = replace(actor, role=role or actor.role)
        issued = bank.tokens.create(actor, name=name, expires_days=expires)
    until = f"until {issued.token.expires:%Y-%m-%d %H:%M} UTC" if issued.token.expires else "until revoked"
    note = f"{issued.token.id}  {issued.token.name}: acts as {issued.token.actor}, {until}; shown only now"
    return Answer({**token_view(issued.token, "valid"), "token": issued.secret}, issued.secret, (note,))


@command(token, "list")
@click.option("--all", "with_ended", is_flag=True, help="Include expired and revoked tokens.")
@global_option
def list_(session: Session, with_ended: bool, is_global: bool) -> Answer:
    """List the valid tokens."""
    with session.bank(is_global=is_global) as bank:
        tokens = bank.tokens.list(with_ended=with_ended)
        found = [(token, token.state(bank.now()).value) for token in tokens]
    return list_records(
        "tokens",
        found,
        lambda pair: token_view(*pair),
        {
            "ID": lambda pair: pair[0].id,
            "State": lambda pair: pair[1],
            "Actor": lambda pair: pair[0].actor,
            "Until": lambda pair: f"{pair[0].expires:%Y-%m-%d}" if pair[0].expires else "-",
            "Name": lambda pair: pair[0].name,
        },
        empty="no tokens: archivist token create makes one",
    )


@command(token)
@click.argument("names", metavar="ID…", nargs=-1, required=True)
@global_option
def revoke(session: Session, names: tuple[str, ...], is_global: bool) -> Answer:
    """Revoke tokens by id or name: all of them, or none if one is unknown."""
    with session.bank(is_global=is_global) as bank, bank.transaction():
        revoked = [bank.tokens.revoke(name) for name in dict.fromkeys(names)]
    return Answer(
        {"tokens": [token_view(token, "revoked") for token in revoked]},
        f"{pluralize(len(revoked), 'token')} revoked: {', '.join(token.name for token in revoked)}",
    )
