"""Commands that serve the bank: over HTTP, with access tokens, over MCP, and one tool at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from archivist.bank import Bank
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, list_records, note, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.edges.views import token_view
from archivist.errors import AccessError, InputError
from archivist.files.parse import parse_json
from archivist.records.actor import Actor
from archivist.records.words import ActorKind
from archivist.tools import functions as offered
from archivist.tools import prompts
from archivist.tools.functions import select_tools
from archivist.tools.registry import Toolset, find_tool

_SETS = ["archivist", "cognitive", "layers", "workspace"]


@contextmanager
def _open_workspace(session: Session) -> Iterator[Bank]:
    """Open the workspace of the working folder where there is no bank, in one that ends with the call."""
    from archivist.edges.cli.workspace import find_topology

    topology = find_topology(session, None)
    with Bank.temporary(session.load_settings(None).config, root=topology.root) as bank:
        yield bank


def _import_door(module: str, extra: str) -> Any:
    """Import a door by name, since edges do not import each other; it may need a package that is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("archivist"):
            raise
        own = "in its clone pipx install --force '.[mcp,server]'"
        hint = f"{own}, else pip install 'archivist-memory[{extra}]'"
        needed = f"serving needs the extra {extra!r}: {error.name!r} is not installed"
        raise InputError(needed, hint=hint) from None


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N",
              help="The port, 0 for any; server.port by default.")  # fmt: skip
@click.option("--tls-cert", type=click.Path(dir_okay=False), metavar="FILE", help="The certificate, PEM.")
@click.option("--tls-key", type=click.Path(dir_okay=False), metavar="FILE", help="Its key, PEM.")
@click.option("--insecure", "is_insecure", is_flag=True, help="Listen beyond this machine without TLS.")
@click.option("--quiet", "is_quiet", is_flag=True, help="Do not log requests to stderr.")
@click.option("--bank", "names", metavar="all|NAME,…", default="", help="Serve these banks of yours.")
@click.option("--processes", type=click.IntRange(1, 64), metavar="N", default=1, help="How many serve.")
@options.is_global
@options.as_json
@click.pass_obj
def serve(
    session: Session, /, port: int | None, names: str, is_global: bool, as_json: bool, **how: Any
) -> None:
    """Serve the bank over HTTP until stopped. Prints the address, and a link for a browser.

    Programs authenticate with a token: archivist token create. With --bank it serves several, of which each
    token opens those that it was created for.
    """
    certificate, key = how.pop("tls_cert"), how.pop("tls_key")
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if names and is_global:
        raise click.UsageError("--bank and --global exclude each other")
    files = session.find_banks(names) if names else {}
    banks: dict[str, Callable[[], Bank]]
    banks = {name: partial(session.open_named, file) for name, file in files.items()}
    open_bank = next(iter(banks.values()), lambda: session.bank(is_global=is_global))
    # A bank that does not open is reported before the server is imported.
    for each in banks.values():
        each().close()
    with open_bank() as bank:
        rules = bank.config.server
    serving = _import_door("archivist.edges.http.serving", "server")
    opened = serving.open_server(
        open_bank,
        banks=banks or None,
        port=rules.port if port is None else port,
        certificate=serving.listening.Certificate(certificate, key) if certificate else None,
        pages=_import_door("archivist.edges.web.site", "server").make_pages(),
        **how,
    )
    opened.serve(partial(_announce, opened, opened.url, f"{opened.link}  (for a browser)", as_json=as_json))


def _announce(opened: Any, *lines: str, as_json: bool) -> None:
    """Print where a server is, and the link that signs a browser in."""
    if as_json:
        print_json({"url": opened.url, "link": opened.link})
    else:
        for line in lines:
            say(line)
    # Whoever started the server waits for the address, and serving blocks.
    sys.stdout.flush()


@click.command("open")
@click.option("--no-browser", is_flag=True, help="Print the link only.")
@options.is_global
@options.as_json
@click.pass_obj
def open_(session: Session, /, no_browser: bool, is_global: bool, as_json: bool) -> None:
    """Open the bank's pages in a browser; Ctrl-C ends the server behind them."""
    # A bank that does not open is reported before the server is imported.
    session.bank(is_global=is_global).close()
    serving = _import_door("archivist.edges.http.serving", "server")
    site = _import_door("archivist.edges.web.site", "server")
    opened = serving.open_server(
        lambda: session.bank(is_global=is_global),
        host="127.0.0.1",
        port=0,
        is_quiet=True,
        pages=site.make_pages(),
    )

    def announce() -> None:
        # Without the link the pages ask for a token.
        _announce(opened, opened.link, as_json=as_json)
        if not no_browser:
            import webbrowser
            from threading import Thread

            # A browser of the terminal returns only when it is closed.
            Thread(target=webbrowser.open, args=(opened.link,), daemon=True).start()

    opened.serve(announce)


token = CommandGroup("token", help="Create, list and revoke access tokens for the server.")


@options.command(token)
@click.option("--actor", "who", metavar="KIND:NAME[:ROLE]", required=True, help="Whom it authenticates.")
@click.option("--role", metavar="R", default="", help="The actor's role, if --actor names none.")
@click.option("--name", metavar="N", default="", help="Its name; by default the actor.")
@click.option("--expires", type=float, metavar="DAYS", help="Days until it expires; by default it does not.")
@click.option("--bank", "names", metavar="NAME,…", default="", help="The banks, by name or path.")
@options.is_global
def create(session: Session, /, who: str, role: str, names: str, is_global: bool, **fields: Any) -> Answer:
    """Create a token and print it. It is shown only once; the bank stores its hash.

    With several banks it is one token, which each bank can revoke for itself.
    """
    if names and is_global:
        raise click.UsageError("--bank and --global exclude each other")
    actor = Actor.parse(who)
    if role and actor.role not in ("", role):
        raise click.UsageError(f"--actor names the role {actor.role!r}, --role another")
    named_actor = replace(actor, role=role or actor.role)
    with ExitStack() as opened:
        banks = [session.open_named(file) for file in session.find_banks(names).values()] if names else []
        first, *others = [opened.enter_context(bank) for bank in banks or [session.bank(is_global=is_global)]]
        token, secret = first.tokens.create(named_actor, name=fields["name"], expires_days=fields["expires"])
        for bank in others:
            bank.tokens.admit(token)
    until = f"until {token.expires:%Y-%m-%d %H:%M} UTC" if token.expires else "until revoked"
    shown = f"{token.id}  {token.name}: acts as {token.actor}, {until}; shown only now"
    return Answer({**token_view(token, "valid"), "token": secret}, secret, (shown,))


@options.bank_command(token, "list", has_global=True)
@click.option("--all", "with_ended", is_flag=True, help="Include expired and revoked tokens.")
def list_(bank: Bank, with_ended: bool) -> Answer:
    """List the valid tokens."""
    now = bank.now()
    views = [token_view(token, token.state(now)) for token in bank.tokens.list(with_ended=with_ended)]
    until = ("Until", lambda view: (view["expires"] or "-")[:10])
    nothing = "no tokens: archivist token create makes one"
    return list_records("tokens", views, None, "id", "state", "actor", until, "name", empty=nothing)


@options.bank_command(token, has_global=True)
@click.argument("names", metavar="ID…", nargs=-1, required=True)
def revoke(bank: Bank, names: tuple[str, ...]) -> Answer:
    """Revoke tokens by id or name: all of them, or none if one is unknown."""
    with bank.transaction():
        revoked = [bank.tokens.revoke(name) for name in dict.fromkeys(names)]
    text = f"{pluralize(len(revoked), 'token')} revoked: {', '.join(token.name for token in revoked)}"
    return Answer({"tokens": [token_view(token, "revoked") for token in revoked]}, text)


def _role_of_client(session: Session, folder: Path, client: str) -> str:
    from archivist.access.roles import session_role

    rules = session.load_settings(session.find_bank_path()).config.core.roles
    return session_role(rules, client=client, folder=str(folder))


@click.command()
@click.option("--tools", "sets", default="default", metavar="SETS", show_default=True,
              help=f"Which tools, comma-separated: default, {', '.join(_SETS)}, all.")  # fmt: skip
@click.option("--http", "place", metavar="HOST:PORT", help="Serve over HTTP on this machine, not stdio.")
@click.option("--bank", "bank_path", metavar="PATH", help="Project folder or bank file.")
@click.option("--actor", "actor_text", metavar="WHO", help="The actor; by default the agent that connects.")
@options.as_json
@click.pass_obj
def mcp(session: Session, /, sets: str, place: str | None, as_json: bool, **given: Any) -> None:
    """Serve the bank to an MCP client over stdin and stdout.

    The bank is opened at the first call. With --http each client needs a token (archivist token create).
    """
    chosen = select_tools(sets)
    named = replace(session, **{name: value for name, value in given.items() if value})
    actor = Actor.parse(named.actor_text) if named.actor_text else None
    # Arguments are checked before the SDK loads.
    serving = import_module("archivist.edges.mcp.serving")
    listening = None if place is None else serving.parse_address(place)
    if listening is None and actor is not None and actor.kind is not ActorKind.AGENT:
        hint = "with --http, a token acts as another: archivist token create --actor KIND:NAME"
        raise AccessError(str(actor), "speak", "over stdio, where each client is an agent", hint=hint)
    # A client starts a stdio server in its working folder; over HTTP there is none.
    folder = Path.cwd() if listening is None else None
    server = _import_door("archivist.edges.mcp.server", "mcp")
    # Over HTTP there is no working folder, and each client's token is in a bank.
    open_files = partial(_open_workspace, named) if listening is None else None
    role_of = partial(_role_of_client, named, folder) if folder is not None else None
    memory = server.MemoryServer(
        partial(named.bank, folder=folder), chosen, actor=actor, role_of=role_of, open_files=open_files
    )
    if listening is None:
        if sys.stdin.isatty():
            note("archivist: waiting for an MCP client on stdin; Ctrl-D ends it (see docs/guides/mcp.md)")
        serving.serve_stdio(memory)
        return

    def announce(url: str) -> None:
        note(f"archivist: MCP at {url}; archivist token create --actor agent:NAME makes a token")
        if as_json:
            print_json({"url": url})
            sys.stdout.flush()

    serving.serve_http(memory, listening, announce=announce)


_always_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, which is always done.")


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--format", "shape", type=click.Choice(["openai", "anthropic", "mcp"]), default="openai")
@click.option("--set", "toolsets", type=click.Choice(_SETS), multiple=True, help="Only this set; repeatable.")
@_always_json
@click.pass_context
def tools(ctx: click.Context, shape: str, toolsets: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001
    """Print the schemas of the tools in the format of a provider."""
    if ctx.invoked_subcommand is not None:
        return
    write = {"openai": offered.for_openai, "anthropic": offered.for_anthropic, "mcp": offered.for_mcp}[shape]
    print_json(write(offered.tools(*toolsets)))


@tools.command(short_help="Print the request to reflect on a run.")
@click.option("--run", default="", metavar="ID", help="The run to reflect on.")
@click.option("--focus", default="", metavar="TEXT", help="What to look at above all.")
@click.option(
    "--set", "toolsets", type=click.Choice(_SETS), multiple=True, help="The sets that the agent has."
)
def prompt(run: str, focus: str, toolsets: tuple[str, ...]) -> None:
    """Print the request to reflect on a run, for an agent with the tools that `archivist mcp` offers."""
    chosen = offered.tools(*toolsets) if toolsets else offered.select_tools("default")
    say(prompts.reflect([each.name for each in chosen], run=run, focus=focus))


@tools.command(short_help="Call a tool with a JSON object.")
@click.argument("name")
@click.argument("arguments", default="{}")
@_always_json
@click.pass_obj
def call(session: Session, name: str, arguments: str, as_json: bool) -> None:  # noqa: ARG001
    """Call the tool NAME with ARGUMENTS, a JSON object, as the agent of --actor, or as `tools`."""
    try:
        values = parse_json(arguments, "ARGUMENTS")
    except InputError as error:
        raise click.BadParameter(error.message) from None
    if not isinstance(values, dict):
        raise click.BadParameter("expected a JSON object")
    tool = find_tool(name)
    is_of_files = tool is not None and tool.toolset is Toolset.WORKSPACE and session.find_bank_path() is None
    with _open_workspace(session) if is_of_files else session.bank(folder=Path.cwd()) as bank:
        # Tools run with the rights of an agent, whoever types the call that a model wrote.
        is_agent = bank.actor.kind is ActorKind.AGENT
        acting = bank if is_agent else bank.acting_as(Actor(ActorKind.AGENT, "tools"))
        print_json(offered.call(acting, name, values))
