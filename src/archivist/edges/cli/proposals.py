"""Commands about proposals: changes of playbook and rules that somebody must accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.core import DashTextCommand, read_text_argument
from archivist.edges.cli.output import enum_choice, json_option, note, pluralize, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.views import proposal_view
from archivist.records.tier_words import ProposalStatus

if TYPE_CHECKING:
    from archivist.records import Proposal

_comment = click.option("--comment", metavar="TEXT", default="", help="What you want to be remembered of it.")
_name = click.argument("name", metavar="ID")


@click.group()
def proposals() -> None:
    """Propose changes of playbook and rules, and decide on them."""


@proposals.command("list")
@click.option("--status", type=enum_choice(ProposalStatus), help="Only this status.")
@click.option("--all", "with_decided", is_flag=True, help="Also those that were decided or have expired.")
@json_option
@click.pass_obj
def list_(session: Session, status: str | None, with_decided: bool, as_json: bool) -> None:
    """Print the proposals that wait for a decision."""
    chosen = ProposalStatus(status) if status else None if with_decided else ProposalStatus.OPEN
    with session.bank() as bank:
        found = bank.proposals.list(chosen)
    if as_json:
        print_json({"proposals": [proposal_view(each) for each in found]})
        return
    print_table(
        ("ID", "Status", "Block", "Proposer", "Until", "Reason"), [_proposal_row(each) for each in found]
    )


@proposals.command()
@_name
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print the proposal ID (p-001): what it changes and why, what it cites, what became of it."""
    with session.bank() as bank:
        proposal = bank.proposals.get(name)
        cited = list(bank.proposals.evidence(name))
        changed = bank.proposals.diff(name)
    if as_json:
        print_json({**proposal_view(proposal), "cited": cited, "diff": changed})
        return
    for line in _proposal_lines(proposal, cited):
        say(line)
    say("")
    say(changed, nl=False)


@proposals.command(cls=DashTextCommand)
@click.argument("section", type=click.Choice(["playbook", "rules"]))
@click.argument("content", metavar="TEXT")
@click.option("--reason", metavar="WHY", required=True, help="Why it should change.")
@click.option("--role", metavar="R", default="", help="Only for this role; by default for all.")
@click.option(
    "--evidence", metavar="ID", multiple=True, help="A lesson, run, event or stream entry; may be repeated."
)
@json_option
@click.pass_obj
def add(
    session: Session,
    section: str,
    content: str,
    reason: str,
    role: str,
    evidence: tuple[str, ...],
    as_json: bool,
) -> None:
    """Propose TEXT as all of the playbook or the rules; - reads it from stdin."""
    text = read_text_argument(content)
    with session.bank() as bank:
        proposal = bank.proposals.propose(section, text, reason=reason, role=role, evidence=evidence)
        changed = bank.proposals.diff(proposal.id)
    if as_json:
        print_json({**proposal_view(proposal), "diff": changed})
        return
    say(f"{proposal.short_id}  {proposal.reason}")
    say(changed, nl=False)


@proposals.command(cls=DashTextCommand)
@_name
@_comment
@json_option
@click.pass_obj
def accept(session: Session, name: str, comment: str, as_json: bool) -> None:
    """Accept the proposal ID: its text becomes the block's."""
    with session.bank() as bank:
        _print_proposal(bank.proposals.accept(name, comment=comment), as_json)


@proposals.command(cls=DashTextCommand)
@_name
@_comment
@json_option
@click.pass_obj
def reject(session: Session, name: str, comment: str, as_json: bool) -> None:
    """Reject the proposal ID; the block stays as it is."""
    with session.bank() as bank:
        _print_proposal(bank.proposals.reject(name, comment=comment), as_json)


@proposals.command("roll-back", cls=DashTextCommand)
@_name
@_comment
@json_option
@click.pass_obj
def roll_back(session: Session, name: str, comment: str, as_json: bool) -> None:
    """Give the block back the text that it had before the accepted proposal ID."""
    with session.bank() as bank:
        _print_proposal(bank.proposals.roll_back(name, comment=comment), as_json)


@proposals.command()
@_name
@json_option
@click.pass_obj
def issue(session: Session, name: str, as_json: bool) -> None:
    """Print the proposal ID as an issue for a tracker: a title line, then the body in Markdown."""
    with session.bank() as bank:
        text = bank.proposals.to_issue(name)
    if as_json:
        title, _, body = text.partition("\n")
        print_json({"title": title, "body": body.strip("\n") + "\n"})
    else:
        say(text, nl=False)


@proposals.command()
@json_option
@click.pass_obj
def rules(session: Session, as_json: bool) -> None:
    """Propose a rule for each failure that proposals.rule_at_runs runs met; finishing a run does it too."""
    with session.bank() as bank:
        made = bank.proposals.propose_rules()
    if as_json:
        print_json({"proposals": [proposal_view(each) for each in made]})
        return
    for each in made:
        say(f"{each.short_id}  {each.extra.get('rule', '')}")
    note(f"{pluralize(len(made), 'rule')} proposed")


def _proposal_row(proposal: Proposal) -> tuple[object, ...]:
    until = f"{proposal.expires:%Y-%m-%d}"
    status = _status_text(proposal.status)
    return proposal.short_id, status, _block_name(proposal), proposal.proposer, until, proposal.reason


def _print_proposal(proposal: Proposal, as_json: bool) -> None:
    if as_json:
        print_json(proposal_view(proposal))
    else:
        say(f"{proposal.short_id}  {_block_name(proposal)}: {_status_text(proposal.status)}")


def _block_name(proposal: Proposal) -> str:
    from archivist.core.proposals import block_name

    return block_name(proposal)


def _status_text(status: ProposalStatus) -> str:
    return status.value.replace("_", " ")


def _proposal_lines(proposal: Proposal, cited: list[str]) -> Iterator[str]:
    from archivist.clock import to_short_text

    yield f"{proposal.short_id}  {proposal.reason}"
    yield ""
    yield f"  {'status':<12}{_status_text(proposal.status)}"
    yield f"  {'block':<12}{_block_name(proposal)}"
    yield f"  {'proposer':<12}{proposal.proposer}"
    yield f"  {'created':<12}{to_short_text(proposal.created)}"
    if proposal.status is ProposalStatus.OPEN:
        yield f"  {'until':<12}{to_short_text(proposal.expires)}"
    elif proposal.decided:
        by = f" by {proposal.decided_by}" if proposal.decided_by else ""
        yield f"  {'decided':<12}{to_short_text(proposal.decided)}{by}"
    if proposal.comment:
        yield f"  {'comment':<12}{proposal.comment}"
    for each in cited:
        yield f"  {'evidence':<12}{each}"
