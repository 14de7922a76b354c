"""Commands about core memory: the blocks that are always in context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archivist.edges.cli.options import DashTextCommand, print_answer, read_text_argument
from archivist.edges.cli.output import json_option, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.views import block_view, core_view, proposal_view

if TYPE_CHECKING:
    from archivist.records import Block

_role = click.option("--role", metavar="R", default="", help="The role; by default the actor's own.")


@click.group()
def core() -> None:
    """Show and change the blocks that are always in context.

    They are playbook, rules, status, threads, role state and lessons.
    """


@core.command()
@_role
@json_option
@click.pass_obj
def show(session: Session, role: str, as_json: bool) -> None:
    """Print the core memory of a role, and the tokens that each block takes."""
    with session.bank() as bank:
        view = bank.core.view(role)
    if as_json:
        print_json(core_view(view))
        return
    if view.text:
        say(view.text)
    rows = [
        (f"{size.section.value}:{size.role}" if size.role else size.section.value, size.tokens, size.most)
        for size in view.sizes
    ]
    print_table(("Block", "Tokens", "At most"), [*rows, ("all", view.tokens, view.budget)])


@core.command()
@_role
@json_option
@click.pass_obj
def render(session: Session, role: str, as_json: bool) -> None:
    """Print the core memory of a role as text for a prompt; nothing when it is empty."""
    with session.bank() as bank:
        view = bank.core.view(role)
    if as_json:
        print_json({"text": view.text, "tokens": view.tokens, "budget": view.budget})
    elif view.text:
        say(view.text, nl=False)


@core.command(cls=DashTextCommand)
@click.argument("section")
@click.argument("content")
@_role
@json_option
@click.pass_obj
def update(session: Session, section: str, content: str, role: str, as_json: bool) -> None:
    """Change SECTION: status, threads, roleState or lessons.

    CONTENT is a text, or JSON with the section's fields: given fields are replaced, the others stay. - reads
    it from stdin. A text sets the sprint of the status, what the role works on, or all of its lessons.
    """
    with session.bank() as bank:
        block = bank.core.update(section, read_text_argument(content), role=role)
    _print_block(block, as_json)


@core.command(cls=DashTextCommand)
@click.argument("section", metavar="LIST")
@click.argument("item")
@_role
@json_option
@click.pass_obj
def append(session: Session, section: str, item: str, role: str, as_json: bool) -> None:
    """Append ITEM to LIST: threads, blockers, inProgress, recentlyShipped or lessons.

    A thread is a text, or JSON with id, summary, roles, lastUpdate. A thread with a known id is updated.
    """
    with session.bank() as bank:
        block = bank.core.append(section, read_text_argument(item), role=role)
    _print_block(block, as_json)


@core.command("close-thread")
@click.argument("name", metavar="ID")
@json_option
@click.pass_obj
def close_thread(session: Session, name: str, as_json: bool) -> None:
    """Close the thread ID: remove it from the list."""
    with session.bank() as bank:
        block = bank.core.close_thread(name)
    _print_block(block, as_json)


@core.command("take-out", cls=DashTextCommand)
@click.argument("section", metavar="LIST")
@click.argument("item")
@_role
@json_option
@click.pass_obj
def take_out(session: Session, section: str, item: str, role: str, as_json: bool) -> None:
    """Remove ITEM from LIST by its exact text, for example a blocker that is resolved."""
    with session.bank() as bank:
        block = bank.core.take_out(section, item, role=role)
    _print_block(block, as_json)


@core.command(cls=DashTextCommand)
@click.argument("section", type=click.Choice(["playbook", "rules"]))
@click.argument("content", metavar="TEXT")
@click.option("--reason", metavar="WHY", required=True, help="Why, for the history.")
@click.option("--role", metavar="R", default="", help="Only for this role; by default for all.")
@json_option
@click.pass_obj
def adopt(session: Session, section: str, content: str, reason: str, role: str, as_json: bool) -> None:
    """Replace the playbook or the rules by TEXT without a proposal, as an approver may; - reads stdin."""
    with session.bank() as bank:
        proposal = bank.proposals.adopt(section, read_text_argument(content), reason=reason, role=role)
    undo = f"archivist proposals roll-back {proposal.short_id}"
    print_answer(
        proposal_view(proposal), f"{proposal.short_id}  {section} changed; to undo: {undo}", as_json=as_json
    )


def _print_block(block: Block, as_json: bool) -> None:
    from archivist.core.view import render_block

    text = render_block(block)
    if as_json:
        print_json(block_view(block))
    else:
        say(text or f"{block.id} is empty", nl=not text)
