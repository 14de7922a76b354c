"""Commands for what agents load: hot memory, its links into agent tools, and skills."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    Answer,
    Table,
    list_records,
    note,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.workspace import on_conflict, read_source, require_bank, root_option
from archivist.edges.views import pick
from archivist.errors import InputError
from archivist.text import shorten_line
from archivist.tools.prompts import save_memory
from archivist.workspace import hot_service, links_service
from archivist.workspace.documents import skill_view
from archivist.workspace.files_service import Topology, find_scope
from archivist.workspace.hot import NEARLY, HotFile, HotItem
from archivist.workspace.hot_service import MovedRule, Review
from archivist.workspace.layout_service import lay_out
from archivist.workspace.learnings import speaker_of
from archivist.workspace.links_service import Client, LinkResult
from archivist.workspace.skills_service import find_skill, list_client_skills, list_skills, save_skill
from archivist.workspace.topology import EVERYWHERE, WorkspaceScope

# As of a linter, so that a pre-commit hook can stop the growth.
EXIT_OVER = 1
# Rules are sentences; the first words tell which.
_ITEM_CHARACTERS = 100
# The most that Codex reads of AGENTS.md unless its configuration says otherwise.
_CODEX_BYTES = 32 * 1024
# Long material belongs into files beside the skill, which agents read only when they need them.
_MAX_SKILL_BYTES = 1 << 20


@click.group(cls=CommandGroup, invoke_without_command=True)
@root_option
@click.option("--items", "with_items", is_flag=True, help="List every rule and how many runs needed it.")
@options.as_json
@click.pass_context
def hot(ctx: click.Context, topology: Topology, with_items: bool, as_json: bool) -> int:
    """Show the size of hot memory, and what should leave or join it. Exit 1 when it is over budget."""
    if ctx.invoked_subcommand is not None:
        return 0
    # Files alone can be reviewed; a bank adds how often each rule was needed.
    with ctx.obj.bank_if_any() or nullcontext() as bank:
        review = hot_service.review(topology, bank)
    view = _review_view(review)
    if as_json:
        print_json(view)
    else:
        _print_review(review, view if with_items else {**view, "items": ()})
    return EXIT_OVER if review.usage.is_over else 0


@options.command(hot, owners_of="workspace")
@click.argument("item")
@click.option("--to", "scope", metavar="SCOPE", required=True, help="The workspace whose lesson it becomes.")
@on_conflict
@root_option
def demote(_session: Session, item: str, scope: str, topology: Topology, on_conflict: str) -> Answer:
    """Move a rule into a workspace's lessons.

    ITEM is its id (h-1a2b3c) or place (FILE:LINE), as `hot --items` prints them.
    """
    return _moved_answer(hot_service.demote(topology, item, scope, on_conflict=on_conflict))


@options.command(hot, owners_of="workspace")
@click.argument("name", metavar="LESSON")
@click.option("--file", "file", metavar="FILE", required=True, help="The hot file that it goes into.")
@root_option
def promote(session: Session, name: str, file: str, topology: Topology) -> Answer:
    """Put a lesson into a hot file.

    LESSON is a lesson of the bank (m-001) or a learning entry (FILE:LINE); it also stays where it is.
    """
    with nullcontext() if ":" in name else require_bank(session) as bank:
        return _moved_answer(hot_service.promote(topology, name, file, bank))


def _moved_answer(moved: MovedRule) -> Answer:
    text = f"{moved.source} → {moved.target}  {shorten_line(moved.text, _ITEM_CHARACTERS)}"
    return Answer(moved._asdict(), text)


def _print_review(review: Review, view: dict[str, Any]) -> None:
    usage = review.usage
    for problem in (*review.problems, *review.drift):
        note(f"archivist: {problem}")
    if not usage.files:
        note("archivist: no hot files")
        note("hint: archivist workspace init makes them in workspace.hot (agent/rules/common unless set)")
        return
    loaded = f"as {usage.agent} loads it" if usage.agent else ""
    total = ", ".join(filter(None, (loaded, _budget_note(usage.share))))
    whole = ("all", usage.lines, usage.max_lines, usage.tokens, f"{usage.share:.0%}", total)
    rows = [*map(_file_row, usage.files), whole]
    print_table(("File", "Lines", "Budget", "Tokens", "Used", "Note"), rows)
    for title, key in (
        ("Rules and the runs that met them", "items"),
        ("Demote: the least used first, just enough to come under budget", "demote"),
        ("Promote: used everywhere", "promote"),
    ):
        if view[key]:
            say(f"\n{title}")
        for each in view[key]:
            place = f"{each['file']}:{each['line']}  " if "file" in each else f"{each['scope']}  ".lstrip()
            say(f"  {each['id']}  {place}{each['reason']}")
            say(f"      {shorten_line(each['text'], _ITEM_CHARACTERS)}")
    if review.demotions:
        note("hint: archivist workspace hot demote ID --to WORKSPACE moves one into its lessons")
    elif usage.is_over and any(file.agents for file in usage.files_for(usage.agent)):
        note(f"hint: shorten the files that {usage.agent} loads by itself, or raise workspace.hot_lines")
    elif usage.is_over:
        note("hint: more than 80 % of the runs met every rule: raise the budget, or say things shorter")
    if review.promotions:
        note("hint: archivist workspace hot promote ID --file FILE puts one into a hot file")


def _file_row(file: HotFile) -> tuple[object, ...]:
    lines, tokens = file.budget or (None, None)
    limits = [str(lines)] * bool(lines) + [f"{tokens} tokens"] * bool(tokens)
    share = "-" if file.share is None else f"{file.share:.0%}"
    # A tool's own file need not declare a budget.
    said = f"read by {', '.join(file.agents)}" if file.agents else file.problem
    said = said or ("" if file.is_declared else "no budget declared")
    remark = ", ".join(filter(None, (said, _budget_note(file.share))))
    return file.path, file.lines, " / ".join(limits) or "-", file.tokens, share, remark


def _budget_note(share: float | None) -> str:
    if share is None or share <= NEARLY:
        return ""
    return "over budget" if share > 1 else "nearly full: review it"


def _review_view(review: Review) -> dict[str, Any]:
    def view_file(file: HotFile) -> dict[str, object]:
        lines, tokens = file.budget or (None, None)
        share = None if file.share is None else round(file.share, 3)
        limits = {"budget_lines": lines, "budget_tokens": tokens, "declared": file.is_declared}
        named = pick(file, "path lines tokens agents problem")
        return {**named, **limits, "share": share, "over": file.is_over}

    def view_item(item: HotItem, reason: str, **more: object) -> dict[str, object]:
        return {**pick(item, "id file line text"), **more, "reason": reason}

    usage = review.usage
    return {
        "files": list(map(view_file, usage.files)),
        **pick(usage, "lines tokens agent max_lines max_tokens"),
        "share": round(usage.share, 3),
        "over": usage.is_over,
        "runs": review.runs,
        "items": [view_item(item, str(use), met=use.met) for item, use in review.items],
        "demote": [view_item(each.item, each.reason) for each in review.demotions],
        "promote": [{**asdict(each.warm), "reason": each.reason} for each in review.promotions],
        "problems": review.problems,
        "old_copies": [drift._asdict() for drift in review.drift],
    }


# Links


_CLIENT = click.Choice([*options.enum_choice(Client).choices, "all"])
_CLIENTS = click.argument("clients", metavar="CLIENT…", nargs=-1, required=True, type=_CLIENT)
_DRY_RUN = click.option("--dry-run", "is_dry_run", is_flag=True, help="Only show what would be done.")


@options.command(owners_of="workspace")
@_CLIENTS
@click.option("--copy", "as_copies", is_flag=True, help="Make marked copies instead of links.")
@_DRY_RUN
@root_option
def link(_session: Session, /, clients: tuple[str, ...], topology: Topology, **how: Any) -> Answer:
    """Link hot files, commands and skills into agent tools: cursor, codex, claude-code, gemini, vscode, all.

    Your own files are never overwritten; a second call changes nothing.
    """
    root, folder = topology.root, topology.rules.hot
    chosen = _parse_clients(clients)
    rules, problems = links_service.read_rules(root, folder)
    # Before the links: a file that cannot be read is why one is missing.
    for problem in problems:
        note(f"archivist: {problem}")
    commands, _ = links_service.read_rules(root, links_service.COMMANDS)
    done = links_service.link(root, folder, rules, chosen, commands=commands, **how)
    skills = list_skills(topology, EVERYWHERE)
    done += links_service.link_skills(root, skills, chosen, is_dry_run=how["is_dry_run"])
    if not rules and not done:
        hint = "write one, agent/rules/common/user-profile.md for example"
        raise InputError(f"no hot files in {folder!r}", hint=hint)
    if Client.CODEX in chosen:
        if (root / "AGENTS.override.md").is_file():
            note("archivist: Codex reads AGENTS.override.md here and not AGENTS.md")
        file = root / "AGENTS.md"
        if file.is_file() and file.stat().st_size > _CODEX_BYTES:
            note("archivist: AGENTS.md has more than 32 KiB, the most that Codex reads by default")
    answer = _links_answer(done, how["is_dry_run"])
    return answer._replace(code=EXIT_PARTIAL) if problems else answer


@options.command(owners_of="workspace")
@_CLIENTS
@_DRY_RUN
@root_option
def unlink(_session: Session, clients: tuple[str, ...], is_dry_run: bool, topology: Topology) -> Answer:
    """Remove everything that `link` made for agent tools, and restore what was there before."""
    chosen = _parse_clients(clients)
    done = links_service.unlink(topology.root, topology.rules.hot, chosen, is_dry_run=is_dry_run)
    return _links_answer(done, is_dry_run)


def _parse_clients(clients: tuple[str, ...]) -> list[Client]:
    return list(Client) if "all" in clients else [Client(name) for name in dict.fromkeys(clients)]


def _links_answer(done: list[LinkResult], is_dry_run: bool) -> Answer:
    left = [each for each in done if each.done == "left"]
    rows = [(each.client, each.path, each.done, each.told) for each in done if each not in left]
    headings = ("Client", "Path", "Would be" if is_dry_run else "Done", "As")
    view = {"places": [each._asdict() for each in done], "dry_run": is_dry_run}
    tables: list[Table] = [(headings, rows)] if rows else []
    notes = () if done else ("archivist: nothing of ours there",)
    warnings = [f"archivist: {each.path} is left as it is: {each.told}" for each in left]
    return Answer(view, notes=notes, tables=tables, warnings=warnings, code=EXIT_PARTIAL if left else 0)


@options.command(owners_of="workspace")
@click.argument("scope")
@click.option("--description", metavar="TEXT", default="", help="What it is about, in one or two sentences.")
@click.option("--client", "clients", multiple=True, type=_CLIENT, help="By default those in use, else all.")
@root_option
def init(
    _session: Session, scope: str, description: str, clients: tuple[str, ...], topology: Topology
) -> Answer:
    """Lay out the workspace SCOPE and link it into agent tools.

    Folders, an overview, files for decisions and lessons, hot files with the learning-cycle triggers, and the
    command save-memory. Existing files are never changed.
    """
    asked = WorkspaceScope.parse(scope)
    if not asked.parts:
        raise InputError("no workspace is named", hint="archivist workspace init devtools")
    made = lay_out(topology, asked, save_memory(()), description)
    root, folder = topology.root, topology.rules.hot
    chosen = _parse_clients(clients) if clients else links_service.clients_in_use(root)
    rules, commands = (links_service.read_rules(root, name)[0] for name in (folder, links_service.COMMANDS))
    links = links_service.link(root, folder, rules, chosen, commands=commands)
    answer = _links_answer(links, False)
    rows = [(name, "made" if is_made else "kept") for name, is_made in made.items()]
    files = [{"path": name, "done": done} for name, done in rows]
    view = {"files": files, "places": [each._asdict() for each in links]}
    notes = ("hint: archivist workspace lint says what the overview still needs",)
    return answer._replace(view=view, tables=[(("Path", "Done"), rows), *answer.tables], notes=notes)


# Skills

skills = CommandGroup("skills", help="List, show and save the skills of workspaces, as portable SKILL.md.")


@options.command(skills, "list")
@options.scope_argument
@click.option("--clients", "with_clients", is_flag=True, help="Also those of agent tools, here and at home.")
@root_option
def list_(_session: Session, scope: str, with_clients: bool, topology: Topology) -> Answer:
    """Print the skills of SCOPE and of everything below it."""
    found = list_skills(topology, find_scope([topology], scope))
    found += list_client_skills(topology.root, Path.home()) if with_clients else ()
    problems = [f"archivist: {skill.path}: {problem}" for skill in found for problem in skill.problems]
    place = ("Scope", lambda skill: skill.client or skill.scope)
    answer = list_records("skills", found, skill_view, "name", place, "description")
    return answer._replace(notes=problems)


@options.command(skills)
@click.argument("name")
@options.scope
@root_option
def show(_session: Session, name: str, scope: str, topology: Topology) -> Answer:
    """Print the skill NAME that applies to a scope: its own, else the nearest above it."""
    skill = find_skill(topology, name, WorkspaceScope.parse(scope))
    return Answer({**skill_view(skill), "content": skill.text}, skill.text)


@options.command(skills)
@click.argument("name")
@click.option("--from", "source", metavar="FILE", required=True, help="The text; - reads it from stdin.")
@click.option("--scope", metavar="SCOPE", required=True, help="WORKSPACE[/DOMAIN[/REPOSITORY]].")
@click.option("--description", metavar="TEXT", default="", help="When to use it, if the text does not say.")
@click.option("--replace", "is_replacing", is_flag=True, help="Replace another skill of that name.")
@click.option("--create", is_flag=True, help="Allow a scope that has no folder yet.")
@root_option
def save(
    session: Session, /, name: str, source: str, scope: str, topology: Topology, **fields: Any
) -> Answer:
    """Save a text as the skill NAME of a scope; secrets in it are redacted."""
    text = read_source(source, _MAX_SKILL_BYTES, "put long material into files beside the skill")
    saved = save_skill(topology, name, text, scope, said_by=speaker_of(session.actor()), **fields)
    return Answer({**skill_view(saved.skill), "saved": saved.kept}, f"{saved.kept}: {saved.skill.path}")
