"""Commands about proposals: changes of playbook and rules that need approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archivist.edges.cli.options import (
    DashTextCommand,
    print_answer,
    print_fields,
    print_records,
    read_text_argument,
)
from archivist.edges.cli.output import enum_choice, json_option, note, pluralize, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.views import proposal_view, time_text
from archivist.records.tier_words import ProposalStatus

if TYPE_CHECKING:
    from archivist.records import Proposal

_comment = click.option("--comment", metavar="TEXT", default="", help="A comment for the history.")
_name = click.argument("name", metavar="ID")


@click.group()
def proposals() -> None:
    """Propose changes of playbook and rules, and decide on them."""


@proposals.command("list")
@click.option("--status", type=enum_choice(ProposalStatus), help="Only this status.")
@click.option("--all", "with_decided", is_flag=True, help="Include decided and expired proposals.")
@json_option
@click.pass_obj
def list_(session: Session, status: str | None, with_decided: bool, as_json: bool) -> None:
    """List the open proposals."""
    chosen = ProposalStatus(status) if status else None if with_decided else ProposalStatus.OPEN
    with session.bank() as bank:
        found = bank.proposals.list(chosen)
    print_records(
        "proposals",
        found,
        proposal_view,
        {
            "ID": lambda proposal: proposal.short_id,
            "Status": _status_text,
            "Block": _block_name,
            "Proposer": lambda proposal: proposal.proposer,
            "Until": lambda proposal: f"{proposal.expires:%Y-%m-%d}",
            "Reason": lambda proposal: proposal.reason,
        },
        as_json=as_json,
    )


@proposals.command()
@_name
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print the proposal ID (p-001): its change, reason, evidence and decision."""
    with session.bank() as bank:
        proposal = bank.proposals.get(name)
        evidence = list(bank.proposals.evidence(name))
        changed = bank.proposals.diff(name)
    if as_json:
        print_json({**proposal_view(proposal), "cited": evidence, "diff": changed})
        return
    is_open = proposal.status is ProposalStatus.OPEN
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    say(f"{proposal.short_id}  {proposal.reason}")
    say()
    print_fields(
        (
            ("status", _status_text(proposal)),
            ("block", _block_name(proposal)),
            ("proposer", proposal.proposer),
            ("created", time_text(proposal.created)),
            ("until", time_text(proposal.expires) if is_open else ""),
            ("decided", f"{time_text(proposal.decided)}{by}" if proposal.decided and not is_open else ""),
            ("comment", proposal.comment),
            *(("evidence", text) for text in evidence),
        )
    )
    say()
    say(changed, nl=False)


@proposals.command(cls=DashTextCommand)
@click.argument("section", type=click.Choice(["playbook", "rules"]))
@click.argument("content", metavar="TEXT")
@click.option("--reason", metavar="WHY", required=True, help="Why it should change.")
@click.option("--role", metavar="R", default="", help="Only for this role; by default for all.")
@click.option(
    "--evidence", metavar="ID", multiple=True, help="A lesson, run, event or stream entry; repeatable."
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
    """Propose TEXT as the whole playbook or all rules; - reads it from stdin."""
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
    """Accept the proposal ID: its text becomes the text of the block."""
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
    """Restore the text that the block had before the accepted proposal ID."""
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
    """Propose a rule for each failure seen in `proposals.rule_at_runs` runs. Finishing a run does it too."""
    with session.bank() as bank:
        made = bank.proposals.propose_rules()
    if as_json:
        print_json({"proposals": [proposal_view(proposal) for proposal in made]})
        return
    for proposal in made:
        say(f"{proposal.short_id}  {proposal.extra.get('rule', '')}")
    note(f"{pluralize(len(made), 'rule')} proposed")


def _print_proposal(proposal: Proposal, as_json: bool) -> None:
    text = f"{proposal.short_id}  {_block_name(proposal)}: {_status_text(proposal)}"
    print_answer(proposal_view(proposal), text, as_json=as_json)


def _block_name(proposal: Proposal) -> str:
    from archivist.core.proposals import block_name

    return block_name(proposal)


def _status_text(proposal: Proposal) -> str:
    return proposal.status.value.replace("_", " ")
