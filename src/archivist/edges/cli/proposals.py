"""Commands about proposals: changes of playbook and rules that need approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archivist.edges.cli.options import (
    Answer,
    DashTextCommand,
    command,
    field_lines,
    list_records,
    read_text_argument,
)
from archivist.edges.cli.output import enum_choice, pluralize
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


@command(proposals, "list")
@click.option("--status", type=enum_choice(ProposalStatus), help="Only this status.")
@click.option("--all", "with_decided", is_flag=True, help="Include decided and expired proposals.")
def list_(session: Session, status: str | None, with_decided: bool) -> Answer:
    """List the open proposals."""
    chosen = ProposalStatus(status) if status else None if with_decided else ProposalStatus.OPEN
    with session.bank() as bank:
        found = bank.proposals.list(chosen)
    return list_records(
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
    )


@command(proposals)
@_name
def show(session: Session, name: str) -> Answer:
    """Print the proposal ID (p-001): its change, reason, evidence and decision."""
    with session.bank() as bank:
        proposal = bank.proposals.get(name)
        evidence = list(bank.proposals.evidence(name))
        changed = bank.proposals.diff(name)
    is_open = proposal.status is ProposalStatus.OPEN
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    fields = (
        ("status", _status_text(proposal)),
        ("block", _block_name(proposal)),
        ("proposer", proposal.proposer),
        ("created", time_text(proposal.created)),
        ("until", time_text(proposal.expires) if is_open else ""),
        ("decided", f"{time_text(proposal.decided)}{by}" if proposal.decided and not is_open else ""),
        ("comment", proposal.comment),
        *(("evidence", text) for text in evidence),
    )
    lines = (f"{proposal.short_id}  {proposal.reason}", "", *field_lines(fields), "", changed)
    return Answer({**proposal_view(proposal), "cited": evidence, "diff": changed}, "\n".join(lines))


@command(proposals, cls=DashTextCommand)
@click.argument("section", type=click.Choice(["playbook", "rules"]))
@click.argument("content", metavar="TEXT")
@click.option("--reason", metavar="WHY", required=True, help="Why it should change.")
@click.option("--role", metavar="R", default="", help="Only for this role; by default for all.")
@click.option(
    "--evidence", metavar="ID", multiple=True, help="A lesson, run, event or stream entry; repeatable."
)
def add(
    session: Session,
    section: str,
    content: str,
    reason: str,
    role: str,
    evidence: tuple[str, ...],
) -> Answer:
    """Propose TEXT as the whole playbook or all rules; - reads it from stdin."""
    text = read_text_argument(content)
    with session.bank() as bank:
        proposal = bank.proposals.propose(section, text, reason=reason, role=role, evidence=evidence)
        changed = bank.proposals.diff(proposal.id)
    view = {**proposal_view(proposal), "diff": changed}
    return Answer(view, f"{proposal.short_id}  {proposal.reason}\n{changed}")


@command(proposals, cls=DashTextCommand)
@_name
@_comment
def accept(session: Session, name: str, comment: str) -> Answer:
    """Accept the proposal ID: its text becomes the text of the block."""
    with session.bank() as bank:
        return _proposal_answer(bank.proposals.accept(name, comment=comment))


@command(proposals, cls=DashTextCommand)
@_name
@_comment
def reject(session: Session, name: str, comment: str) -> Answer:
    """Reject the proposal ID; the block stays as it is."""
    with session.bank() as bank:
        return _proposal_answer(bank.proposals.reject(name, comment=comment))


@command(proposals, "roll-back", cls=DashTextCommand)
@_name
@_comment
def roll_back(session: Session, name: str, comment: str) -> Answer:
    """Restore the text that the block had before the accepted proposal ID."""
    with session.bank() as bank:
        return _proposal_answer(bank.proposals.roll_back(name, comment=comment))


@command(proposals)
@_name
def issue(session: Session, name: str) -> Answer:
    """Print the proposal ID as an issue for a tracker: a title line, then the body in Markdown."""
    with session.bank() as bank:
        text = bank.proposals.to_issue(name)
    title, _, body = text.partition("\n")
    return Answer({"title": title, "body": body.strip("\n") + "\n"}, text)


@command(proposals)
def rules(session: Session) -> Answer:
    """Propose a rule for each failure seen in `proposals.rule_at_runs` runs. Finishing a run does it too."""
    with session.bank() as bank:
        made = bank.proposals.propose_rules()
    return Answer(
        {"proposals": [proposal_view(proposal) for proposal in made]},
        "\n".join(f"{proposal.short_id}  {proposal.extra.get('rule', '')}" for proposal in made),
        (f"{pluralize(len(made), 'rule')} proposed",),
    )


def _proposal_answer(proposal: Proposal) -> Answer:
    text = f"{proposal.short_id}  {_block_name(proposal)}: {_status_text(proposal)}"
    return Answer(proposal_view(proposal), text)


def _block_name(proposal: Proposal) -> str:
    from archivist.core.proposals import block_name

    return block_name(proposal)


def _status_text(proposal: Proposal) -> str:
    return proposal.status.value.replace("_", " ")
