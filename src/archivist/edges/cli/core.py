"""Commands about core memory: what is always in context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import json_option, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.views import block_view, core_view, proposal_view

if TYPE_CHECKING:
    from archivist.records import Block


class DashTextCommand(click.Command):
    """A command whose texts may begin with a dash and a space, as lists in Markdown do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep such texts from being read as options; the line end before them is taken off with others."""
        return super().parse_args(ctx, [f"\n{word}" if word.startswith("- ") else word for word in args])


_role = click.option("--role", metavar="R", default="", help="The role; by default the actor's own.")


@click.group()
def core() -> None:
    """Show and change what is always in context: playbook, rules, status, threads, role state, lessons."""


@core.command()
@_role
@json_option
@click.pass_obj
def show(session: Session, role: str, as_json: bool) -> None:
    """Print what a role has in its context, and what each block takes of its budget."""
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
    """Print what a role has in its context as text for a prompt; nothing when there is nothing."""
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

    CONTENT is a text, or JSON with the section's fields: those given replace, the rest stays; - reads it from
    stdin. A text is the sprint of the status, what the role works on, or all its lessons.
    """
    text = read_text_argument(content)
    with session.bank() as bank:
        block = bank.core.update(section, text, role=role)
    _print_block(block, as_json)


@core.command(cls=DashTextCommand)
@click.argument("section", metavar="LIST")
@click.argument("item")
@_role
@json_option
@click.pass_obj
def append(session: Session, section: str, item: str, role: str, as_json: bool) -> None:
    """Append ITEM to LIST: threads, blockers, inProgress, recentlyShipped or lessons.

    A thread is a text, or JSON with id, summary, roles, lastUpdate; one whose id is known is updated.
    """
    with session.bank() as bank:
        block = bank.core.append(section, read_text_argument(item), role=role)
    _print_block(block, as_json)


@core.command("close-thread")
@click.argument("name", metavar="ID")
@json_option
@click.pass_obj
def close_thread(session: Session, name: str, as_json: bool) -> None:
    """Take the thread ID, which is settled, out of the list."""
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
    """Take ITEM out of LIST by its words: what is no longer a blocker, or in progress."""
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
    """Give the playbook or the rules a new TEXT in one step, as people who approve may; - reads stdin."""
    text = read_text_argument(content)
    with session.bank() as bank:
        proposal = bank.proposals.adopt(section, text, reason=reason, role=role)
    if as_json:
        print_json(proposal_view(proposal))
    else:
        undo = f"archivist proposals roll-back {proposal.short_id}"
        say(f"{proposal.short_id}  {section} changed; {undo} takes it back")


def read_text_argument(given: str) -> str:
    """Return an argument's text; `-` means what stands on stdin."""
    if given != "-":
        return given
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _print_block(block: Block, as_json: bool) -> None:
    from archivist.core.view import render_block

    if as_json:
        print_json(block_view(block))
    else:
        say(render_block(block) or f"{block.id} is empty", nl=not render_block(block))
