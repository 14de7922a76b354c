"""Commands about working memory: the acting agent's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.options import Answer, DashTextCommand, command, read_text_argument
from archivist.edges.cli.session import Session
from archivist.records.plain import to_plain

if TYPE_CHECKING:
    from archivist.records import Working


@click.group()
def working() -> None:
    """Read and write the acting agent's working memory: archivist --actor agent:NAME working …"""


@command(working)
def show(session: Session) -> Answer:
    """Print plan, constraints, context and notes."""
    with session.bank() as bank:
        kept = bank.working.get()
    answer = _working_answer(kept)
    return answer if kept else answer._replace(notes=("working memory is empty",))


@command(working, cls=DashTextCommand)
@click.argument("text")
def plan(session: Session, text: str) -> Answer:
    """Set the plan to TEXT; - reads it from stdin."""
    with session.bank() as bank:
        return _working_answer(bank.working.update(plan=read_text_argument(text).strip()))


@command(working, cls=DashTextCommand)
@click.argument("text")
@click.option("--lift", is_flag=True, help="Remove it instead.")
def constraint(session: Session, text: str, lift: bool) -> Answer:
    """Add the constraint TEXT, or remove it with --lift."""
    with session.bank() as bank, bank.transaction():
        kept = bank.working.get()
        active = kept.constraints if kept else ()
        rest = [constraint for constraint in active if constraint != text.strip()]
        return _working_answer(bank.working.update(constraints=rest if lift else [*active, text]))


@command(working, "note", cls=DashTextCommand)
@click.argument("text")
def note_(session: Session, text: str) -> Answer:
    """Add the note TEXT to the scratchpad; - reads it from stdin."""
    with session.bank() as bank:
        return _working_answer(bank.working.note(read_text_argument(text)))


@command(working, cls=DashTextCommand)
@click.argument("key")
@click.argument("value", required=False)
@click.option("--drop", is_flag=True, help="Remove KEY instead.")
def context(session: Session, key: str, value: str | None, drop: bool) -> Answer:
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
        return _working_answer(bank.working.update(context={key: parsed}))


@command(working)
def clear(session: Session) -> Answer:
    """Delete the agent's working memory."""
    with session.bank() as bank:
        was_there = bank.working.clear()
    note = "cleared" if was_there else "working memory was empty"
    return Answer({"cleared": was_there}, notes=(note,))


def _working_answer(kept: Working | None) -> Answer:
    view = {"working": to_plain(kept)}
    if kept is None:
        return Answer(view)
    context = [
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in kept.context.items()
    ]
    lines = [f"Plan: {kept.plan}"] if kept.plan else []
    lists = {"Constraints": kept.constraints, "Notes": kept.scratchpad, "Context": context}
    for heading, items in lists.items():
        if items:
            lines += [f"{heading}:", *(f"- {item}" for item in items)]
    return Answer(view, "\n".join(lines))
