"""Commands that open the bank to others: the server, and the tokens that it asks for."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import (
    global_option,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.views import token_view

if TYPE_CHECKING:
    from archivist.records import Actor

# Named, not imported: one door knows nothing of another, and the server needs what only an extra installs.
_SERVING = "archivist.edges.http.serving"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port, 0 for any; server.port by default.")
@click.option("--tls-cert", type=click.Path(dir_okay=False), metavar="FILE", help="The certificate, PEM.")
@click.option("--tls-key", type=click.Path(dir_okay=False), metavar="FILE", help="Its key, PEM.")
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without TLS.")
@click.option("--quiet", is_flag=True, help="Do not note the requests on stderr.")
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
    """Serve the bank over HTTP until stopped. Prints its address, and a link that opens once in a browser.

    Programs come with a token: archivist token create.
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
        from archivist.errors import InputError

        if (error.name or "").startswith("archivist"):
            raise
        raise InputError(
            f"serving needs {error.name!r}, which is not installed",
            hint="pip install 'archivist-memory[server]'",
        ) from None


@click.group()
def token() -> None:
    """Hand out, list and revoke the tokens that a server asks for."""


@token.command()
@click.option("--actor", "who", metavar="KIND:NAME[:ROLE]", required=True, help="In whose name it acts.")
@click.option("--role", metavar="R", default="", help="The actor's role, beside one that --actor names.")
@click.option("--name", metavar="N", default="", help="What it is called; else as its actor.")
@click.option("--expires", type=float, metavar="DAYS", help="For how many days; else until it is revoked.")
@click.option("--bank", "place", metavar="PATH", help="The bank that it opens; else as for every command.")
@global_option
@json_option
@click.pass_obj
def create(
    session: Session,
    who: str,
    role: str,
    name: str,
    expires: float | None,
    place: str | None,
    is_global: bool,
    as_json: bool,
) -> None:
    """Print a new token. It is shown this once; the bank keeps only its hash."""
    if place and is_global:
        raise click.UsageError("--bank and --global exclude each other")
    asked = replace(session, bank_path=place) if place else session
    with asked.bank(is_global=is_global) as bank:
        issued = bank.tokens.create(_parse_actor(who, role), name=name, expires_days=expires)
    if as_json:
        print_json({**token_view(issued.token, "valid"), "token": issued.secret})
        return
    say(issued.secret)
    until = f"until {issued.token.expires:%Y-%m-%d %H:%M} UTC" if issued.token.expires else "until revoked"
    note(f"{issued.token.id}  {issued.token.name}: acts as {issued.token.actor}, {until}; shown only now")


def _parse_actor(who: str, role: str) -> Actor:
    from archivist.records import Actor

    actor = Actor.parse(who)
    if role and actor.role not in ("", role):
        raise click.UsageError(f"--actor names the role {actor.role!r}, --role another")
    return replace(actor, role=role or actor.role)


@token.command("list")
@click.option("--all", "with_ended", is_flag=True, help="Also those that expired or were revoked.")
@global_option
@json_option
@click.pass_obj
def list_(session: Session, with_ended: bool, is_global: bool, as_json: bool) -> None:
    """Print the tokens that hold."""
    with session.bank(is_global=is_global) as bank:
        found = [(each, each.state(bank.now()).value) for each in bank.tokens.list(with_ended=with_ended)]
    if as_json:
        print_json({"tokens": [token_view(each, state) for each, state in found]})
        return
    if not found:
        note("no tokens: archivist token create hands one out")
        return
    rows = [
        (each.id, state, each.actor, f"{each.expires:%Y-%m-%d}" if each.expires else "-", each.name)
        for each, state in found
    ]
    print_table(("ID", "State", "Actor", "Until", "Name"), rows)


@token.command()
@click.argument("names", metavar="ID…", nargs=-1, required=True)
@global_option
@json_option
@click.pass_obj
def revoke(session: Session, names: tuple[str, ...], is_global: bool, as_json: bool) -> None:
    """Revoke tokens by id or name, all of them or, if one is unknown, none."""
    with session.bank(is_global=is_global) as bank, bank.transaction():
        gone = [bank.tokens.revoke(name) for name in dict.fromkeys(names)]
    if as_json:
        print_json({"tokens": [token_view(each, "revoked") for each in gone]})
        return
    say(f"{pluralize(len(gone), 'token')} revoked: {', '.join(each.name for each in gone)}")
