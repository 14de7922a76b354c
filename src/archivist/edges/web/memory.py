"""The pages of facts and their conflicts, core memory, proposals, and the workspace's markdown."""

from __future__ import annotations

from typing import Any

from archivist.bank import Bank
from archivist.core.proposals import may_decide, parse_approvers
from archivist.edges.views import conflict_view, core_view, proposal_view, table_view
from archivist.edges.web.rendering import PAGE_SIZE, PageView, Visit, action, page
from archivist.errors import ArchivistError, InputError
from archivist.layers.knowledge_service import BY_NAME
from archivist.records import Proposal
from archivist.records.tier_words import ProposalStatus
from archivist.workspace.documents import learnings_view, overviews_view, plans_view

_MOST_ITEMS = 100


@page("/knowledge")
def knowledge(visit: Visit) -> PageView:
    """List facts, and the conflicts that wait for a decision."""
    bank, text = visit.bank, visit.query.get("q", "").strip()
    if text:
        found, next_page = bank.knowledge.query(text=text, limit=PAGE_SIZE), ""
    else:
        found = bank.knowledge.query(after=visit.read_cursor(), limit=PAGE_SIZE + 1)
        next_page = visit.next_page(found, BY_NAME)
    content = {
        "facts": [table_view(fact) for fact in found[:PAGE_SIZE]],
        "next_page": next_page,
        "conflicts": [conflict_view(each) for each in bank.knowledge.conflicts()[:PAGE_SIZE]],
    }
    return PageView("knowledge.html", "Knowledge", content)


@action("/knowledge/conflicts/{name}")
def decide_conflict(visit: Visit) -> str:
    """Decide a conflict for the current value or for the other one."""
    choice = visit.form.get("choice", "")
    if choice not in ("kept", "lost"):
        raise InputError("no decision", hint="choose one of the two values")
    visit.bank.knowledge.decide(visit.names["name"], for_lost=choice == "lost")
    return "/knowledge"


@page("/core")
def core(visit: Visit) -> PageView:
    """Show the blocks that are always in context, each with its budget."""
    bank, role = visit.bank, visit.query.get("role", "")
    roles = sorted({block.role for block in bank.core.blocks() if block.role})
    return PageView("core.html", "Core memory", {"core": core_view(bank.core.view(role)), "roles": roles})


@page("/proposals")
def list_proposals(visit: Visit) -> PageView:
    """List the proposals: those that wait first, each with its diff."""
    bank = visit.bank
    found = bank.proposals.list()
    waiting = [each for each in found if each.status is ProposalStatus.OPEN][:PAGE_SIZE]
    decided = [each for each in found[::-1] if each.status is not ProposalStatus.OPEN][:PAGE_SIZE]
    content = {
        "waiting": [{**_proposal(bank, each), "may_decide": _may_decide(visit, each)} for each in waiting],
        "decided": [proposal_view(each) for each in decided],
    }
    return PageView("proposals.html", "Proposals", content)


def _proposal(bank: Bank, proposal: Proposal) -> dict[str, Any]:
    cited = list(bank.proposals.evidence(proposal.id))
    return {**proposal_view(proposal), "diff": bank.proposals.diff(proposal.id), "cited": cited}


def _may_decide(visit: Visit, proposal: Proposal) -> bool:
    bank = visit.bank
    approvers = parse_approvers(bank.config.proposals.approvers)
    return visit.may("proposals", "decide") and may_decide(bank.actor, proposal.proposer, approvers)


@action("/proposals/{name}/{decision}")
def decide_proposal(visit: Visit) -> str:
    """Accept or reject a proposal, with a reason."""
    decide = {"accept": visit.bank.proposals.accept, "reject": visit.bank.proposals.reject}
    decision = visit.names["decision"]
    if decision not in decide:
        raise InputError(f"no decision {decision!r}", hint="accept or reject")
    decide[decision](visit.names["name"], comment=visit.form.get("comment", "").strip())
    return "/proposals"


@page("/workspace")
def workspace(visit: Visit) -> PageView:
    """Show the plans, overviews and learnings of the project's markdown memory, and its lint."""
    bank = visit.bank
    try:
        plans = plans_view(bank.workspace.retrieve_plans("")[:_MOST_ITEMS])
        overviews = overviews_view(bank.workspace.retrieve_overview("")[:_MOST_ITEMS])
        learnings = learnings_view(bank.workspace.retrieve_learnings(""))
        problems = bank.workspace.lint("").problems[:_MOST_ITEMS]
    except ArchivistError as error:
        return PageView("workspace.html", "Workspace", {"problem": error.message, "hint": error.hint})
    content = {"problem": "", "hint": "", **plans, **overviews, **learnings, "lint": problems}
    return PageView("workspace.html", "Workspace", content)
