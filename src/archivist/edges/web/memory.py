"""The pages of facts and their conflicts, core memory, proposals, and the workspace's markdown."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from archivist.access.rights import Layer, Verb
from archivist.bank import Bank
from archivist.core.blocks import (
    GUARDED,
    render_block,
    section_of,
    text_of,
    threads_of,
    token_limit,
    validate_role,
)
from archivist.core.proposals import may_decide, parse_approvers
from archivist.core.render import visible_blocks
from archivist.edges import views
from archivist.edges.web.rendering import PAGE_SIZE, PageView, Visit, action, page
from archivist.errors import ArchivistError, InputError, NotFoundError
from archivist.layers.knowledge_service import BY_NAME
from archivist.records import Block, CoreSection, Proposal
from archivist.records.plain import digest_of
from archivist.records.tier_words import ProposalStatus
from archivist.text import estimate_tokens

_MOST_ITEMS = 100
_STATUS_LISTS = ("in_progress", "blockers", "recently_shipped")


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
        "facts": [views.table_view(fact) for fact in found[:PAGE_SIZE]],
        "has_projects": any(fact.project for fact in found),
        "next_page": next_page,
        "conflicts": [
            {**views.conflict_view(each), "version": digest_of(each.kept, each.lost)}
            for each in bank.knowledge.conflicts()[:PAGE_SIZE]
        ],
    }
    return PageView("knowledge.html", "Knowledge", content)


@action("/knowledge/conflicts/{name}", shows=knowledge)
def decide_conflict(visit: Visit) -> str:
    """Decide a conflict for the current value or for the other one."""
    choice = visit.form.get("choice", "")
    if choice not in ("kept", "lost"):
        raise InputError("no decision", hint="choose one of the two values")
    for each in visit.bank.knowledge.conflicts():
        if each.id == visit.names["name"]:
            visit.require_version(digest_of(each.kept, each.lost), each.fact)
    visit.bank.knowledge.decide(visit.names["name"], for_lost=choice == "lost")
    return "/knowledge"


@page("/core")
def core(visit: Visit) -> PageView:
    """Show the blocks that are always in context, each with its budget; a person edits them here."""
    return _show_core(visit, visit.query.get("role", ""), visit.query.get("block", ""))


def _show_core(visit: Visit, role: str, changed: str, problem: ArchivistError | None = None) -> PageView:
    """Show core memory after a change of a block; what was refused stays in its form, with the reason."""
    bank, role = visit.bank, validate_role(role)
    blocks = {block.id: block for block in bank.core.blocks()}
    cards = []
    for name in visible_blocks(role):
        word, _, whose = name.partition(":")
        section = CoreSection(word)
        block = blocks.get(name) or Block(section=section, role=whose, updated=bank.now())
        text, fields = render_block(block), _block_fields(block)
        if problem and name == changed:
            fields = {key: visit.form.get(key, value) for key, value in fields.items()}
        cards.append({
            "id": name,
            "section": word,
            "role": whose,
            "text": text,
            "tokens": estimate_tokens(text) if text else 0,
            "most": token_limit(section, bank.config.core),
            "updated": block.updated if text else None,
            "actor": block.actor,
            "is_guarded": section in GUARDED,
            "fields": fields,
        })  # fmt: skip
    content = {
        "core": views.core_view(bank.core.view(role)),
        "role": role,
        "roles": sorted({block.role for block in blocks.values() if block.role}),
        "blocks": cards,
        "may_adopt": _may_adopt(visit),
        "changed": changed,
        "done": visit.query.get("done", ""),
        "problem": problem,
    }
    return PageView("core.html", "Core memory", content)


def _block_fields(block: Block) -> dict[str, str]:
    """Return the fields of a block as a form shows them, a list by lines."""
    content: Any = block.content
    if block.section is CoreSection.THREADS:
        return {"threads": "\n".join(f"{each.id}: {each.summary}" for each in threads_of(content))}
    if block.section is CoreSection.STATUS:
        lists = {name: "\n".join(content.get(name, ())) for name in _STATUS_LISTS}
        return {"sprint": content.get("sprint", ""), **lists}
    names = ("last_action", "next_action", "working_on")
    if block.section is CoreSection.ROLE_STATE:
        return {name: content.get(name, "") for name in names}
    return {"text": text_of(block)}


def _may_adopt(visit: Visit) -> bool:
    actor, approvers = visit.bank.actor, parse_approvers(visit.bank.config.proposals.approvers)
    return visit.is_person and may_decide(actor, actor, approvers)


@action("/core/{block}/{verb}")
def change_core(visit: Visit) -> PageView | str:
    """Save a block, or undo its last change. Playbook and rules change by a proposal of the person's own."""
    bank, form, (name, verb) = visit.bank, dict(visit.form), (visit.names["block"], visit.names["verb"])
    if not visit.is_person:
        bank.refuse(Layer.CORE, Verb.WRITE, what=name, hint="on this page people edit core memory")
    word, _, role = name.partition(":")
    is_guarded, reason = section_of(word) in GUARDED, form.pop("reason", "").strip()
    shown, done = form.pop("for_role", ""), "undone" if verb == "undo" else "saved"
    try:
        if verb == "undo" and is_guarded:
            bank.proposals.roll_back(form.get("proposal", ""))
        elif verb == "undo":
            bank.ledger.undo(name)
        elif verb != "edit":
            raise NotFoundError("change", verb, hint="edit or undo")
        elif is_guarded:
            text, why = form.get("text", "").replace("\r\n", "\n"), reason or "edited on the page"
            if not _may_adopt(visit):
                bank.proposals.propose(word, text, reason=why, role=role)
                return "/proposals"
            done = bank.proposals.adopt(word, text, reason=why, role=role).short_id
        else:
            bank.core.update(word, _read_fields(form), role=role)
    except InputError as error:
        return _show_core(visit, shown, name, error)
    return f"/core?{urlencode({'role': shown, 'block': name, 'done': done})}#{quote(name)}"


def _read_fields(form: dict[str, str]) -> dict[str, Any] | list[dict[str, str]]:
    """Return the fields of a free block as its form was filled in."""
    if "threads" in form:
        parts = [line.partition(":") for line in form["threads"].splitlines() if line.strip()]
        return [{"id": name.strip(), "summary": summary.strip()} for name, _, summary in parts]
    names = ("text", "sprint", "last_action", "next_action", "working_on")
    fields: dict[str, Any] = {name: form[name].replace("\r\n", "\n") for name in names if name in form}
    return fields | {name: form[name].splitlines() for name in _STATUS_LISTS if name in form}


@page("/proposals")
def list_proposals(visit: Visit) -> PageView:
    """List the proposals: those that wait first, each with its diff."""
    bank = visit.bank
    found = bank.proposals.list()
    waiting = [each for each in found if each.status is ProposalStatus.OPEN][:PAGE_SIZE]
    decided = [each for each in found[::-1] if each.status is not ProposalStatus.OPEN][:PAGE_SIZE]
    approvers, may_any = parse_approvers(bank.config.proposals.approvers), visit.may("proposals", "decide")

    def view(proposal: Proposal, **more: object) -> views.View:
        version = digest_of(proposal.before, proposal.after)
        return {**views.proposal_view(proposal), "version": version, **more}

    content = {
        "waiting": [
            view(
                each,
                diff=bank.proposals.diff(each.id),
                cited=list(bank.proposals.evidence(each.id)),
                doubts=list(bank.proposals.doubts(each.id)),
                judged=_judged_row(bank, each),
                may_decide=may_any and may_decide(bank.actor, each.proposer, approvers),
            )
            for each in waiting
        ],
        "decided": list(map(view, decided)),
        "outdated": [view(each, doubt=reason) for each, reason in bank.proposals.outdated_rules()],
        "done": _DONE.get(visit.query.get("done", ""), ""),
        "changed": visit.query.get("id", ""),
        "may_decide": may_any,
    }
    return PageView("proposals.html", "Proposals", content)


# What the page says after a decision.
_DONE = {
    "accept": "accepted: every run reads it first from now on.",
    "reject": "rejected: nothing was changed.",
    "roll-back": "rolled back: the block reads as it did before.",
}


def _judged_row(bank: Bank, proposal: Proposal) -> views.View | None:
    """Return how the lesson did that a proposal is made from, None before it was judged."""
    lesson = next(iter(bank.lessons.get_many(proposal.evidence[:1])), None)
    rows = bank.audits.audit_report(lesson=lesson.id).lessons if lesson else ()
    return views.report_row_view(rows[0]) if rows else None


@action("/proposals/{name}/{decision}", shows=list_proposals)
def decide_proposal(visit: Visit) -> str:
    """Accept or reject a proposal with a reason, or take an acceptance back."""
    proposals = visit.bank.proposals
    decide = {"accept": proposals.accept, "reject": proposals.reject, "roll-back": proposals.roll_back}
    decision = visit.names["decision"]
    if decision not in decide:
        raise InputError(f"no decision {decision!r}", hint=", ".join(decide))
    proposal = visit.bank.proposals.get(visit.names["name"])
    visit.require_version(digest_of(proposal.before, proposal.after), proposal.short_id)
    decide[decision](visit.names["name"], comment=visit.form.get("comment", "").strip())
    return f"/proposals?{urlencode({'done': decision, 'id': proposal.short_id})}"


@page("/workspace")
def workspace(visit: Visit) -> PageView:
    """Show the plans, overviews and learnings of the project's markdown memory, and its lint."""
    bank = visit.bank
    try:
        learnings = bank.workspace.retrieve_learnings("")
        content = {
            "problem": "",
            "hint": "",
            "plans": bank.workspace.retrieve_plans("")[:_MOST_ITEMS],
            "overviews": bank.workspace.retrieve_overview("")[:_MOST_ITEMS],
            "decisions": learnings.decisions[:_MOST_ITEMS],
            "lessons": learnings.lessons[:_MOST_ITEMS],
            "lint": bank.workspace.lint("").problems[:_MOST_ITEMS],
        }
    except ArchivistError as error:
        content = {"problem": error.message, "hint": error.hint}
    return PageView("workspace.html", "Workspace", content)
