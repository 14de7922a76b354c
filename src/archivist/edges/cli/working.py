"""Commands about working memory: the acting agent's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.options import DashTextCommand, read_text_argument
from archivist.edges.cli.output import json_option, note, print_json, say
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.records import Working


@click.group()
def working() -> None:
    """Read and write the acting agent's working memory: archivist --actor agent:NAME working …"""


@working.command()
@json_option
@click.pass_obj
def show(session: Session, as_json: bool) -> None:
    """Print plan, constraints, context and notes."""
    with session.bank() as bank:
        kept = bank.working.get()
    _print_working(kept, as_json)
    if kept is None and not as_json:
        note("working memory is empty")


@working.command(cls=DashTextCommand)
@click.argument("text")
@json_option
@click.pass_obj
def plan(session: Session, text: str, as_json: bool) -> None:
    """Set the plan to TEXT; - reads it from stdin."""
    with session.bank() as bank:
        _print_working(bank.working.update(plan=read_text_argument(text).strip()), as_json)


@working.command(cls=DashTextCommand)
@click.argument("text")
@click.option("--lift", is_flag=True, help="Remove it instead.")
@json_option
@click.pass_obj
def constraint(session: Session, text: str, lift: bool, as_json: bool) -> None:
    """Add the constraint TEXT, or remove it with --lift."""
    with session.bank() as bank, bank.transaction():
        kept = bank.working.get()
        active = kept.constraints if kept else ()
        rest = [constraint for constraint in active if constraint != text.strip()]
        _print_working(bank.working.update(constraints=rest if lift else [*active, text]), as_json)


@working.command("note", cls=DashTextCommand)
@click.argument("text")
@json_option
@click.pass_obj
def note_(session: Session, text: str, as_json: bool) -> None:
    """Add the note TEXT to the scratchpad; - reads it from stdin."""
    with session.bank() as bank:
        _print_working(bank.working.note(read_text_argument(text)), as_json)


@working.command(cls=DashTextCommand)
@click.argument("key")
@click.argument("value", required=False)
@click.option("--drop", is_flag=True, help="Remove KEY instead.")
@json_option
@click.pass_obj
def context(session: Session, key: str, value: str | None, drop: bool, as_json: bool) -> None:
    """Set KEY of the context to VALUE, which is JSON or else a text; null removes KEY."""
    if drop == (value is not None):
        raise click.UsageError("give a VALUE, or --drop\nhint: archivist working context branch main")
    parsed: object = None
    if value is not None:
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = value.removeprefix("\n")
    with session.bank() as bank:
        _print_working(bank.working.update(context={key: parsed}), as_json)


@working.command()
@json_option
@click.pass_obj
def clear(session: Session, as_json: bool) -> None:
    """Delete the agent's working memory."""
    with session.bank() as bank:
        was_there = bank.working.clear()
    if as_json:
        print_json({"cleared": was_there})
    else:
        note("cleared" if was_there else "working memory was empty")


def _print_working(kept: Working | None, as_json: bool) -> None:
    if as_json:
        from archivist.records.plain import to_plain

        print_json({"working": to_plain(kept)})
        return
    if kept is None:
        return
    if kept.plan:
        say(f"Plan: {kept.plan}")
    context = [
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in kept.context.items()
    ]
    for heading, items in (
        ("Constraints", kept.constraints),
        ("Notes", kept.scratchpad),
        ("Context", context),
    ):
        if items:
            say(f"{heading}:")
            for item in items:
                say(f"- {item}")
