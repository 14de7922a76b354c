"""Commands about core memory: the blocks that are always in context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archivist.edges.cli.options import Answer, DashTextCommand, command, read_text_argument
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


@command(core)
@_role
def show(session: Session, role: str) -> Answer:
    """Print the core memory of a role, and the tokens that each block takes."""
    with session.bank() as bank:
        view = bank.core.view(role)
    rows = [
        (f"{size.section.value}:{size.role}" if size.role else size.section.value, size.tokens, size.most)
        for size in view.sizes
    ]
    table = (("Block", "Tokens", "At most"), [*rows, ("all", view.tokens, view.budget)])
    return Answer(core_view(view), f"{view.text}\n" if view.text else "", tables=[table])


@command(core)
@_role
def render(session: Session, role: str) -> Answer:
    """Print the core memory of a role as text for a prompt; nothing when it is empty."""
    with session.bank() as bank:
        view = bank.core.view(role)
    return Answer({"text": view.text, "tokens": view.tokens, "budget": view.budget}, view.text)


@command(core, cls=DashTextCommand)
@click.argument("section")
@click.argument("content")
@_role
def update(session: Session, section: str, content: str, role: str) -> Answer:
    """Change SECTION: status, threads, roleState or lessons.

    CONTENT is a text, or JSON with the section's fields: given fields are replaced, the others stay. - reads
    it from stdin. A text sets the sprint of the status, what the role works on, or all of its lessons.
    """
    with session.bank() as bank:
        block = bank.core.update(section, read_text_argument(content), role=role)
    return _block_answer(block)


@command(core, cls=DashTextCommand)
@click.argument("section", metavar="LIST")
@click.argument("item")
@_role
def append(session: Session, section: str, item: str, role: str) -> Answer:
    """Append ITEM to LIST: threads, blockers, inProgress, recentlyShipped or lessons.

    A thread is a text, or JSON with id, summary, roles, lastUpdate. A thread with a known id is updated.
    """
    with session.bank() as bank:
        block = bank.core.append(section, read_text_argument(item), role=role)
    return _block_answer(block)


@command(core, "close-thread")
@click.argument("name", metavar="ID")
def close_thread(session: Session, name: str) -> Answer:
    """Close the thread ID: remove it from the list."""
    with session.bank() as bank:
        block = bank.core.close_thread(name)
    return _block_answer(block)


@command(core, "take-out", cls=DashTextCommand)
@click.argument("section", metavar="LIST")
@click.argument("item")
@_role
def take_out(session: Session, section: str, item: str, role: str) -> Answer:
    """Remove ITEM from LIST by its exact text, for example a blocker that is resolved."""
    with session.bank() as bank:
        block = bank.core.take_out(section, item, role=role)
    return _block_answer(block)


@command(core, cls=DashTextCommand)
@click.argument("section", type=click.Choice(["playbook", "rules"]))
@click.argument("content", metavar="TEXT")
@click.option("--reason", metavar="WHY", required=True, help="Why, for the history.")
@click.option("--role", metavar="R", default="", help="Only for this role; by default for all.")
def adopt(session: Session, section: str, content: str, reason: str, role: str) -> Answer:
    """Replace the playbook or the rules by TEXT without a proposal, as an approver may; - reads stdin."""
    with session.bank() as bank:
        proposal = bank.proposals.adopt(section, read_text_argument(content), reason=reason, role=role)
    undo = f"archivist proposals roll-back {proposal.short_id}"
    return Answer(proposal_view(proposal), f"{proposal.short_id}  {section} changed; to undo: {undo}")


def _block_answer(block: Block) -> Answer:
    from archivist.core.blocks import render_block

    return Answer(block_view(block), render_block(block) or f"{block.id} is empty")
