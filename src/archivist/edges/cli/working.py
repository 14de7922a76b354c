"""Commands about working memory: the acting agent's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.core import DashTextCommand, read_text_argument
from archivist.edges.cli.output import json_option, note, print_json, say
from archivist.edges.cli.session import Session

if TYPE_CHECKING:
    from archivist.records import Working


@click.group()
def working() -> None:
    """Read and write the acting agent's own working memory: archivist --actor agent:NAME working …"""


@working.command()
@json_option
@click.pass_obj
def show(session: Session, as_json: bool) -> None:
    """Print the plan, the constraints, the context and the notes; nothing when there are none."""
    with session.bank() as bank:
        kept = bank.working.get()
    _print_working(kept, as_json)
    if kept is None and not as_json:
        note("nothing in mind")


@working.command(cls=DashTextCommand)
@click.argument("text")
@json_option
@click.pass_obj
def plan(session: Session, text: str, as_json: bool) -> None:
    """Make TEXT the plan; - reads it from stdin."""
    with session.bank() as bank:
        _print_working(bank.working.update(plan=read_text_argument(text).strip()), as_json)


@working.command(cls=DashTextCommand)
@click.argument("text")
@click.option("--lift", is_flag=True, help="Let go of it instead.")
@json_option
@click.pass_obj
def constraint(session: Session, text: str, lift: bool, as_json: bool) -> None:
    """Add the constraint TEXT, or with --lift let go of it."""
    with session.bank() as bank, bank.transaction():
        kept = bank.working.get()
        active = kept.constraints if kept else ()
        rest = [each for each in active if each != text.strip()]
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
@click.option("--drop", is_flag=True, help="Take KEY out instead.")
@json_option
@click.pass_obj
def context(session: Session, key: str, value: str | None, drop: bool, as_json: bool) -> None:
    """Set KEY of the task's context to VALUE, which is JSON or else a text; null takes KEY out."""
    if drop == (value is not None):
        raise click.UsageError("give a VALUE, or --drop\nhint: archivist working context branch main")
    with session.bank() as bank:
        _print_working(
            bank.working.update(context={key: None if value is None else _parse_value(value)}), as_json
        )


@working.command()
@json_option
@click.pass_obj
def clear(session: Session, as_json: bool) -> None:
    """Let go of everything."""
    with session.bank() as bank:
        was_there = bank.working.clear()
    if as_json:
        print_json({"cleared": was_there})
    else:
        note("cleared" if was_there else "nothing was in mind")


def _parse_value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text.removeprefix("\n")
    return value


def _print_working(kept: Working | None, as_json: bool) -> None:
    from archivist.records.plain import to_plain

    if as_json:
        print_json({"working": to_plain(kept)})
        return
    for line in _working_lines(kept) if kept else ():
        say(line)


def _working_lines(kept: Working) -> Iterator[str]:
    if kept.plan:
        yield f"Plan: {kept.plan}"
    for heading, items in (("Constraints", kept.constraints), ("Notes", kept.scratchpad)):
        if items:
            yield f"{heading}:"
            yield from (f"- {item}" for item in items)
    if kept.context:
        yield "Context:"
        yield from (
            f"- {key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for key, value in kept.context.items()
        )
