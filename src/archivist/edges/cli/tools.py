"""Commands about the tools that agents call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from archivist.edges.cli.output import print_json
from archivist.edges.cli.session import Session

_SETS = ["archivist", "cognitive", "layers", "workspace"]


@click.group(invoke_without_command=True)
@click.option("--format", "shape", type=click.Choice(["openai", "anthropic", "mcp"]), default="openai")
@click.option("--set", "toolsets", type=click.Choice(_SETS), multiple=True, help="Only this set; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which is always done.")
@click.pass_context
def tools(ctx: click.Context, shape: str, toolsets: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001
    """Print the schemas of the tools in the format of a provider."""
    if ctx.invoked_subcommand is not None:
        return
    from archivist.tools import functions as offered

    write = {
        "openai": offered.for_openai,
        "anthropic": offered.for_anthropic,
        "mcp": offered.for_mcp,
    }[shape]
    print_json(write(offered.tools(*toolsets)))


@tools.command()
@click.argument("name")
@click.argument("arguments", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which is always done.")
@click.pass_obj
def call(session: Session, name: str, arguments: str, as_json: bool) -> None:  # noqa: ARG001
    """Call the tool NAME with ARGUMENTS, a JSON object, as an agent unless --actor is given."""
    from archivist.records import Actor, ActorKind
    from archivist.tools import functions as offered

    try:
        values: Any = json.loads(arguments)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}") from None
    if not isinstance(values, dict):
        raise click.BadParameter("expected a JSON object")
    with session.bank(folder=Path.cwd()) as bank:
        # Tools run with the rights of an agent.
        acting = bank if session.actor_text else bank.acting_as(Actor(ActorKind.AGENT, "tools"))
        print_json(offered.call(acting, name, values))
