"""The command that serves the memory to MCP clients."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from archivist.edges.cli.output import json_option, note, print_json
from archivist.edges.cli.session import Session
from archivist.errors import InputError


@click.command()
@click.option(
    "--tools",
    "sets",
    default="default",
    show_default=True,
    metavar="SETS",
    help="Which tools, comma-separated: default, archivist, cognitive, layers, workspace, all.",
)
@click.option(
    "--http", "place", metavar="HOST:PORT", help="Serve over HTTP on this machine instead of stdio."
)
@click.option("--bank", "bank_path", metavar="PATH", help="Project folder or bank file.")
@click.option("--actor", "actor_text", metavar="WHO", help="Who acts; by default the agent that connects.")
@json_option
@click.pass_obj
def mcp(
    session: Session,
    sets: str,
    place: str | None,
    bank_path: str | None,
    actor_text: str | None,
    as_json: bool,
) -> None:
    """Serve the memory to an MCP client over stdin and stdout.

    The bank is opened at the first call. With --http, each client needs a token (archivist token create).
    """
    from archivist.records import Actor
    from archivist.tools.functions import select_tools

    chosen = select_tools(sets)
    named = replace(
        session, bank_path=bank_path or session.bank_path, actor_text=actor_text or session.actor_text
    )
    actor = Actor.parse(named.actor_text) if named.actor_text else None
    # Another edge, so it is started by name; what was asked for is checked before the SDK is loaded.
    serving = import_module("archivist.edges.mcp.serving")
    listening = None if place is None else serving.parse_address(place)
    # A client that starts us does so where it works; over HTTP they come from anywhere.
    folder = Path.cwd() if listening is None else None
    memory = _server_module().MemoryServer(lambda: named.bank(folder=folder), chosen, actor=actor)
    if listening is None:
        if sys.stdin.isatty():
            note("archivist: waiting for an MCP client on stdin; Ctrl-D ends it (see docs/guides/mcp.md)")
        serving.serve_stdio(memory)
        return

    def announce(url: str) -> None:
        note(f"archivist: MCP at {url}; archivist token create --actor agent:NAME hands out a token")
        if as_json:
            print_json({"url": url})
            sys.stdout.flush()

    serving.serve_http(memory, listening, announce=announce)


def _server_module() -> ModuleType:
    try:
        return import_module("archivist.edges.mcp.server")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise InputError(
            "the MCP server needs the MCP SDK", hint="pip install 'archivist-memory[mcp]'"
        ) from error
