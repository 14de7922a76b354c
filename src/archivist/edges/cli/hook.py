"""The command that clients call; here for its help, and for calls that name a bank first."""

from __future__ import annotations

import click

from archivist.edges.cli.output import json_option
from archivist.edges.cli.session import Session
from archivist.moments import CLIENTS


@click.command()
@click.argument("client", type=click.Choice(CLIENTS))
@click.argument("event", required=False, default="", metavar="[EVENT]")
@json_option
@click.pass_obj
def hook(session: Session, client: str, event: str, as_json: bool) -> None:  # noqa: ARG001
    """Answer the event of a client on stdin, in its own JSON; what went wrong, `archivist doctor` tells.

    EVENT is session-start, prompt, tool-failure, subagent-start, stop or session-end, or the client's own
    name for it; without it the event names itself. A hook never blocks and always exits 0.
    """
    from archivist.edges.hooks.dispatch import answer

    answer([client, event] if event else [client], bank=session.bank_path)
