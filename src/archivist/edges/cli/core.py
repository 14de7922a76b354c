"""Commands about what is always in context: core memory, proposals to change it, working memory."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

import click

from archivist.bank import Bank
from archivist.core.blocks import render_block
from archivist.core.files_service import FollowedFile
from archivist.core.proposals import block_name
from archivist.edges import views
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, list_records
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import field_lines, pluralize
from archivist.edges.views import block_view, core_view, pick, proposal_view, time_text
from archivist.errors import ArchivistError, InputError
from archivist.files.parse import parse_json
from archivist.records import Block, Proposal, Working
from archivist.records.tier_words import ProposalStatus

_role = click.option("--role", metavar="R", default="", help="The role; by default the actor's own.")
_list_item = options.combine(click.argument("section", metavar="LIST"), click.argument("item"), _role)
_name = click.argument("name", metavar="ID")
_comment = click.option("--comment", metavar="TEXT", default="", help="A comment for the history.")
_decision = options.combine(_name, _comment)
_guarded = click.argument("section", type=click.Choice(["playbook", "rules"]))
_block_text = options.combine(_guarded, click.argument("content", metavar="TEXT"))
_block_role = click.option("--role", metavar="R", default="", help="Only for this role; by default for all.")


core = CommandGroup(
    "core",
    help="Show and change the blocks that are always in context.\n\n"
    "They are playbook, rules, status, threads, role state and lessons.",
)


@options.bank_command(core)
@_role
def show(bank: Bank, role: str) -> Answer:
    """Print the core memory of a role, and the tokens that each block takes."""
    view = bank.core.view(role)
    named = [(f"{size.section}:{size.role}" if size.role else size.section, size) for size in view.sizes]
    rows = [(name, size.tokens, size.most) for name, size in named]
    table = (("Block", "Tokens", "At most"), [*rows, ("all", view.tokens, view.budget)])
    return Answer(core_view(view), f"{view.text}\n" if view.text else "", tables=[table])


@options.bank_command(core)
@_role
def render(bank: Bank, role: str) -> Answer:
    """Print the core memory of a role as text for a prompt; nothing when it is empty."""
    view = bank.core.view(role)
    return Answer({"text": view.text, "tokens": view.tokens, "budget": view.budget}, view.text)


@options.bank_command(core, cls=options.DashTextCommand)
@click.argument("section")
@click.argument("content")
@_role
def update(bank: Bank, section: str, content: str, role: str) -> Answer:
    """Change SECTION: status, threads, roleState or lessons.

    CONTENT is a text, or JSON with the section's fields: given fields are replaced, the others stay. - reads
    it from stdin. A text sets the sprint of the status, what the role works on, or all of its lessons.
    """
    return _block_answer(bank.core.update(section, options.read_text_argument(content), role=role))


@options.bank_command(core, cls=options.DashTextCommand)
@_list_item
def append(bank: Bank, section: str, item: str, role: str) -> Answer:
    """Append ITEM to LIST: threads, blockers, inProgress, recentlyShipped or lessons.

    A thread is a text, or JSON with id, summary, roles, lastUpdate. A thread with a known id is updated.
    """
    return _block_answer(bank.core.append(section, options.read_text_argument(item), role=role))


@options.bank_command(core, "close-thread")
@click.argument("name", metavar="ID")
def close_thread(bank: Bank, name: str) -> Answer:
    """Close the thread ID: remove it from the list."""
    return _block_answer(bank.core.close_thread(name))


@options.bank_command(core, "take-out", cls=options.DashTextCommand)
@_list_item
def take_out(bank: Bank, section: str, item: str, role: str) -> Answer:
    """Remove ITEM from LIST by its exact text, for example a blocker that is resolved."""
    return _block_answer(bank.core.take_out(section, item, role=role))


@options.bank_command(core, cls=options.DashTextCommand)
@_block_text
@click.option("--reason", metavar="WHY", required=True, help="Why, for the history.")
@_block_role
def adopt(bank: Bank, section: str, content: str, reason: str, role: str) -> Answer:
    """Replace the playbook or the rules by TEXT without a proposal, as an approver may; - reads stdin."""
    proposal = bank.proposals.adopt(section, options.read_text_argument(content), reason=reason, role=role)
    # Adopting records an accepted proposal, which can be rolled back like any other.
    undo = f"archivist proposals roll-back {proposal.short_id}"
    return Answer(proposal_view(proposal), f"{proposal.short_id}  {section} changed; to undo: {undo}")


@options.bank_command(core)
@_guarded
@click.argument("path", metavar="FILE", type=click.Path())
@_block_role
@options.approve
def follow(bank: Bank, section: str, path: str, role: str, is_approved: bool) -> Answer:
    """Take FILE as playbook or rules, as an approver may; its later changes are proposed.

    Risky commands in it are refused without --approve.
    """
    done = bank.core_files.follow(section, path, role=role, is_approved=is_approved)
    return Answer(_file_view(done), f"{done.block}  follows {_file_name(bank, done)}")


@options.bank_command(core)
@_guarded
@_block_role
def unfollow(bank: Bank, section: str, role: str) -> Answer:
    """Stop following a file; the text that was accepted stays."""
    done = bank.core_files.unfollow(section, role=role)
    return Answer(_file_view(done), f"{done.block}  no longer follows {_file_name(bank, done)}")


@options.bank_command(core)
def files(bank: Bank) -> Answer:
    """List the followed files, and propose what has changed in them."""
    made = bank.core_files.refresh()
    found = bank.core_files.list()
    state = ("State", lambda each: each.problem or ("changed" if each.is_changed else "as accepted"))
    columns = "block", ("Path", partial(_file_name, bank)), state
    answer = list_records("files", found, _file_view, *columns, empty="no file is followed")
    hints = [f"proposed: archivist proposals show {each.short_id}" for each in made]
    return answer._replace(notes=(*answer.notes, *hints))


@options.bank_command(core)
@click.option("--questions", type=click.IntRange(1, 1_000), metavar="N", default=60,
              help="How many; 60 by default.")  # fmt: skip
def measure(bank: Bank, questions: int) -> Answer:
    """Measure memory on your own history: tokens in context, questions answered, results to the point.

    The questions are made from the stream, with known answers. Exit 1 when a bar is missed.
    """
    found = bank.stream.measure(questions)
    rows = [("tokens in context, the most of a role", f"{found.tokens:,}", "at most 5,000")]
    if found.questions:
        rows += [
            ("questions answered by what is retrieved", f"{found.recalled:.0%}", "at least 90 %"),
            ("of these by the first result", f"{found.right:.0%}", ""),
            ("results that are to the point", f"{found.relevant:.0%}", "at least 80 %"),
        ]
    nothing = "too few entries in the stream to ask about"
    notes = [f"{found.questions} questions" if found.questions else nothing]
    notes += [f"missed: {text}" for text in found.missed]
    view = {**found._asdict(), "problems": found.problems}
    table = (("What", "Measured", "Bar"), rows)
    return Answer(view, notes=notes, tables=[table], code=1 if found.problems else 0)


def _file_name(bank: Bank, each: FollowedFile) -> str:
    """Return a file's path, in the project from its folder."""
    root = bank.root.absolute()
    return str(each.path.relative_to(root) if each.path.is_relative_to(root) else each.path)


def _file_view(each: FollowedFile) -> dict[str, Any]:
    return {**each._asdict(), "path": str(each.path)}


def _block_answer(block: Block) -> Answer:
    return Answer(block_view(block), render_block(block) or f"{block.id} is empty")


proposals = CommandGroup("proposals", help="Propose changes of playbook and rules, and decide on them.")


@options.bank_command(proposals, "list")
@click.option("--status", type=options.enum_choice(ProposalStatus), help="Only this status.")
@click.option("--all", "with_decided", is_flag=True, help="Include decided and expired proposals.")
def list_(bank: Bank, status: str | None, with_decided: bool) -> Answer:
    """List the open proposals."""
    chosen = ProposalStatus(status) if status else None if with_decided else ProposalStatus.OPEN
    until = ("Until", lambda proposal: f"{proposal.expires:%Y-%m-%d}")
    names = ("ID", "short_id"), ("Status", _status_text), ("Block", block_name)
    found = bank.proposals.list(chosen)
    return list_records("proposals", found, proposal_view, *names, "proposer", until, "reason")


@options.bank_command(proposals, "show")
@_name
def show_proposal(bank: Bank, name: str) -> Answer:
    """Print the proposal ID (p-001): its change, reason, evidence and decision."""
    proposal = bank.proposals.get(name)
    evidence = list(bank.proposals.evidence(name))
    changed = bank.proposals.diff(name)
    is_open = proposal.status is ProposalStatus.OPEN
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    fields = [
        ("status", _status_text(proposal)),
        ("block", block_name(proposal)),
        *pick(proposal, "proposer created").items(),
        ("until", proposal.expires if is_open else ""),
        ("decided", f"{time_text(proposal.decided)}{by}" if proposal.decided and not is_open else ""),
        ("comment", proposal.comment),
        *(("evidence", text) for text in evidence),
    ]
    lines = (f"{proposal.short_id}  {proposal.reason}", "", *field_lines(fields), "", changed)
    return Answer({**proposal_view(proposal), "cited": evidence, "diff": changed}, "\n".join(lines))


@options.bank_command(proposals, cls=options.DashTextCommand)
@_block_text
@click.option("--reason", metavar="WHY", required=True, help="Why it should change.")
@_block_role
@click.option("--evidence", metavar="ID", multiple=True, help="A lesson, run, event or entry; repeatable.")
def add(bank: Bank, /, section: str, content: str, **fields: Any) -> Answer:
    """Propose TEXT as the whole playbook or all rules; - reads it from stdin."""
    proposal = bank.proposals.propose(section, options.read_text_argument(content), **fields)
    changed, issue = bank.proposals.diff(proposal.id), proposal.extra.get("issue")
    view = {**proposal_view(proposal), "diff": changed}
    notes = (f"issue: {issue}",) if issue else ()
    return Answer(view, f"{proposal.short_id}  {proposal.reason}\n{changed}", notes)


@options.bank_command(proposals, cls=options.DashTextCommand)
@_decision
def accept(bank: Bank, name: str, comment: str) -> Answer:
    """Accept the proposal ID: its text becomes the text of the block.

    Warns if a lesson that it cites was changed or does not help. With proposals.issue_command in your own
    settings an issue is opened for it, if it has none yet.
    """
    warnings = [f"warning: {doubt}" for doubt in bank.proposals.doubts(name)]
    warnings += [f"hint: archivist proposals roll-back {name}"] if warnings else []
    answer = _proposal_answer(bank.proposals.accept(name, comment=comment))
    if bank.config.proposals.issue_command:
        try:
            answer = answer._replace(notes=(f"issue: {bank.proposals.open_issue(name)}",))
        except ArchivistError as error:
            # The proposal is accepted; the issue can be opened again.
            warnings.append(f"archivist: {error.message}")
    return answer._replace(warnings=warnings)


@options.bank_command(proposals, cls=options.DashTextCommand)
@_decision
def reject(bank: Bank, name: str, comment: str) -> Answer:
    """Reject the proposal ID; the block stays as it is."""
    return _proposal_answer(bank.proposals.reject(name, comment=comment))


@options.bank_command(proposals, "roll-back", cls=options.DashTextCommand)
@_decision
def roll_back(bank: Bank, name: str, comment: str) -> Answer:
    """Restore the text that the block had before the accepted proposal ID."""
    return _proposal_answer(bank.proposals.roll_back(name, comment=comment))


@options.bank_command(proposals)
@_name
@click.option("--open", "is_opening", is_flag=True, help="Open it with proposals.issue_command.")
def issue(bank: Bank, name: str, is_opening: bool) -> Answer:
    """Print the proposal ID as an issue for a tracker: a title line, then the body in Markdown."""
    if is_opening:
        opened = bank.proposals.open_issue(name)
        return Answer({"issue": opened}, f"{name}  issue: {opened}")
    text = bank.proposals.to_issue(name)
    title, _, body = text.partition("\n")
    return Answer({"title": title, "body": body.strip("\n") + "\n"}, text)


@options.bank_command(proposals)
def rules(bank: Bank) -> Answer:
    """Propose a rule for each failure seen in `proposals.rule_at_runs` runs. Finishing a run does it too."""
    made = bank.proposals.propose_rules()
    return Answer(
        {"proposals": [proposal_view(proposal) for proposal in made]},
        "\n".join(f"{proposal.short_id}  {proposal.extra.get('rule', '')}" for proposal in made),
        (f"{pluralize(len(made), 'rule')} proposed",),
    )


def _proposal_answer(proposal: Proposal) -> Answer:
    text = f"{proposal.short_id}  {block_name(proposal)}: {_status_text(proposal)}"
    return Answer(proposal_view(proposal), text)


def _status_text(proposal: Proposal) -> str:
    return proposal.status.value.replace("_", " ")


working = CommandGroup(
    "working", help="Read and write the acting agent's working memory: archivist --actor agent:NAME working …"
)


@options.bank_command(working, "show")
def show_working(bank: Bank) -> Answer:
    """Print plan, constraints, context and notes."""
    kept = bank.working.get()
    return _working_answer(kept)._replace(notes=() if kept else ("working memory is empty",))


@options.bank_command(working, cls=options.DashTextCommand)
@click.argument("text")
def plan(bank: Bank, text: str) -> Answer:
    """Set the plan to TEXT; - reads it from stdin."""
    return _working_answer(bank.working.update(plan=options.read_text_argument(text).strip()))


@options.bank_command(working, cls=options.DashTextCommand)
@click.argument("text")
@click.option("--lift", is_flag=True, help="Remove it instead.")
def constraint(bank: Bank, text: str, lift: bool) -> Answer:
    """Add the constraint TEXT, or remove it with --lift."""
    with bank.transaction():
        kept = bank.working.get()
        active = kept.constraints if kept else ()
        rest = [constraint for constraint in active if constraint != text.strip()]
        return _working_answer(bank.working.update(constraints=rest if lift else [*active, text]))


@options.bank_command(working, "note", cls=options.DashTextCommand)
@click.argument("text")
def note_(bank: Bank, text: str) -> Answer:
    """Add the note TEXT to the scratchpad; - reads it from stdin."""
    return _working_answer(bank.working.note(options.read_text_argument(text)))


@options.command(working, cls=options.DashTextCommand)
@click.argument("key")
@click.argument("value", required=False)
@click.option("--drop", is_flag=True, help="Remove KEY instead.")
def context(session: Session, key: str, value: str | None, drop: bool) -> Answer:
    """Set KEY of the context to VALUE, which is JSON or else a text; null removes KEY."""
    if drop == (value is not None):
        raise click.UsageError("give a VALUE, or --drop\nhint: archivist working context branch main")
    parsed: object = None
    # Text that is no JSON is taken as it is, so that plain words need no quotes.
    if value is not None:
        parsed = value.removeprefix("\n")
        with suppress(InputError):
            parsed = parse_json(value, "VALUE")
    with session.bank() as bank:
        return _working_answer(bank.working.update(context={key: parsed}))


@options.bank_command(working)
def clear(bank: Bank) -> Answer:
    """Delete the agent's working memory."""
    was_there = bank.working.clear()
    return Answer({"cleared": was_there}, notes=("cleared" if was_there else "working memory was empty",))


def _working_answer(kept: Working | None) -> Answer:
    view = {"working": views.working_view(kept)}
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
