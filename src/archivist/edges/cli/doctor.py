"""The command that looks whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import json_option, print_json, progress
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.desks.health import Check


@click.command()
@click.option("--reindex", is_flag=True, help="Build everything derived again: text index, vectors, tallies.")
@json_option
@click.pass_obj
def doctor(session: Session, reindex: bool, as_json: bool) -> int:
    """Check the bank and the way from your clients to it; --reindex makes index and vectors anew."""
    with session.bank() as bank:
        if reindex:
            bank.reindex()
            embed(bank)
        found = [*bank.health(), *_chain(bank)]
    if as_json:
        print_json({"checks": [{"name": each.name, "ok": each.is_well, "text": each.text} for each in found]})
    else:
        for each in found:
            click.echo(f"{'ok  ' if each.is_well else 'look'}  {each.name:<10}  {each.text}")
    return 0 if all(each.is_well for each in found) else 1


def _chain(bank: Bank) -> list[Check]:
    from pathlib import Path

    from archivist.edges.install import chain

    try:
        home = Path.home()
    except RuntimeError:
        home = None
    return chain.checks(bank.root.absolute(), home, bank.path.absolute().parent)


def embed(bank: Bank) -> None:
    """Make the vectors that are missing, with a bar where somebody watches."""
    done = 0
    with progress(bank.unembedded(), "vectors") as advance:
        for step in bank.embed_waiting():
            advance(step.done - done)
            done = step.done
