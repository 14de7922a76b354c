"""Commands for a workspace's markdown: read, save, lint, migrate; and what every workspace command needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from archivist.bank import Bank
from archivist.edges.cli import options
from archivist.edges.cli.group import LazyGroup
from archivist.edges.cli.output import EXIT_PARTIAL, Answer, problem_lines
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import InputError, NoBankError
from archivist.files.open import read_bounded
from archivist.files.parse import parse_json
from archivist.paths import bank_file, project_folder
from archivist.workspace.documents import (
    learnings_view,
    overviews_view,
    plan_view,
    plans_view,
    to_yaml,
    unread_view,
)
from archivist.workspace.files_service import Topology, find_root
from archivist.workspace.lint import WorkspaceMigration
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem, SaveOutcome, SaveResult, item_from, items_from
from archivist.workspace.topology import RULES, LintProblem, WorkspaceScope, suggest_scopes

# Reading is not checking: a few problems and the way to all of them are enough.
_SHOWN = 5
# Items are sentences: a larger file is the wrong one.
_MAX_INPUT = 4 * 1024**2
LINT_HINT = "archivist workspace lint says what to do"

# name → module and help of the commands that are imported only when they are called.
_ELSEWHERE = {
    "hot": ("workspace_hot:hot", "Show how full hot memory is; demote and promote."),
    "init": ("workspace_hot:init", "Lay out a workspace and link it into agent tools."),
    "link": ("workspace_hot:link", "Link hot files into agent tools."),
    "unlink": ("workspace_hot:unlink", "Remove those links."),
    "skills": ("workspace_hot:skills", "List, show and save skills."),
    "transcripts": ("workspace_cold:transcripts", "List, capture and show raw transcripts."),
    "drafts": ("workspace_cold:drafts", "Draft entries from captured runs."),
    "search": ("workspace_cold:search", "Search every document of every root."),
    "graph": ("workspace_cold:graph", "Draw what is related to what."),
}


@click.group(cls=LazyGroup, table=_ELSEWHERE)
def workspace() -> None:
    """Read, save, check and migrate a workspace's markdown.

    SCOPE is WORKSPACE, WORKSPACE/DOMAIN or WORKSPACE/DOMAIN/REPOSITORY; without one, all workspaces count.
    """


def find_topology(session: Session, root: str | None) -> Topology:
    """Return the files of a root: the named one, else the nearest upwards, else the bank's project."""
    bank_path = session.find_bank_path()
    rules = session.load_settings(bank_path).config.workspace
    if root:
        return Topology(Path(root), rules)
    here = Path.cwd()
    names = (rules.hot, rules.transcripts)
    nearest = find_root(here, rules) or next(
        (folder for folder in (here, *here.parents) if any((folder / name).is_dir() for name in names)), None
    )
    if nearest is None and bank_path is not None:
        nearest = project_folder(bank_file(bank_path))
    return Topology(nearest or here, rules)


def _read_root(ctx: click.Context, _param: click.Parameter, root: str | None) -> Topology | None:
    """Return the files of the root that --root names, here or before the subcommand."""
    above: Topology | None = ctx.parent.params.get("topology") if ctx.parent else None
    # A shell that completes a word has no session.
    if ctx.resilient_parsing or (above and not root):
        return above
    return find_topology(ctx.obj, root)


root_param = partial(click.option, "--root", metavar="FOLDER", type=click.Path(exists=True, file_okay=False))
root_option = root_param("topology", callback=_read_root, help="The workspace's root.")
_tags = click.option("--tag", "tags", metavar="T", multiple=True, help="With any of these tags; repeatable.")
on_conflict = click.option(
    "--on-conflict", metavar="RULE", default="refuse", help="refuse, supersede or keep_both."
)


def require_bank(session: Session) -> Bank:
    """Open the project's bank; without one, the error names the commands that need it."""
    try:
        return session.bank(folder=Path.cwd())
    except NoBankError as error:
        error.hint = (
            f"{error.hint}; of archivist workspace, only drafts, transcripts and `hot promote m-001` need one"
        )
        raise


def read_source(source: str, max_bytes: int, hint: str) -> str:
    """Return the text of a file, or of stdin; the hint is for one that is too large."""
    try:
        # Editors on Windows begin a file with a byte order mark.
        return read_bounded(source, max_bytes, hint=hint).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source!r} is not UTF-8: byte {error.start}", hint="save it as UTF-8") from None


@options.command(workspace)
@options.scope_argument
@click.option("--status", metavar="S", multiple=True, help="Of this status; repeated: any of them.")
@_tags
@click.option("--full", "name", metavar="NAME", help="One plan in full, by its id, path or name.")
@root_option
def plans(_session: Session, /, scope: str, name: str | None, topology: Topology, **filters: Any) -> Answer:
    """Print the front matter of the plans of SCOPE as YAML."""
    opened = Workspace(topology.root, topology.rules)
    if name:
        detail = opened.retrieve_plan(name, scope)
        plan = plan_view(detail.plan)
        view: dict[str, object] = {"plans": [plan | {"content": detail.content, "_meta": plan.pop("_meta")}]}
        return Answer(view, to_yaml(view))
    found = opened.retrieve_plans(scope, **filters)
    return _read_answer(opened, scope, plans_view(found), is_empty=not found)


@options.command(workspace)
@options.scope_argument
@click.option("--full", "is_full", is_flag=True, help="Every overview in full, not only the one asked for.")
@root_option
def overview(_session: Session, /, scope: str, is_full: bool, topology: Topology) -> Answer:
    """Print the overviews of SCOPE: a workspace or a repository in full, everything below as abstracts."""
    opened = Workspace(topology.root, topology.rules)
    found = opened.retrieve_overview(scope, is_full=is_full)
    return _read_answer(opened, scope, overviews_view(found), is_empty=not found)


@options.command(workspace)
@options.scope_argument
@_tags
@click.option("--category", metavar="C", default="", help="Of this category.")
@click.option("--all", "with_superseded", is_flag=True, help="Also those that were superseded.")
@root_option
def learnings(_session: Session, /, scope: str, topology: Topology, **filters: Any) -> Answer:
    """Print the decisions and lessons of SCOPE as YAML."""
    opened = Workspace(topology.root, topology.rules)
    found = opened.retrieve_learnings(scope, **filters)
    is_empty = not found.decisions and not found.lessons
    return _read_answer(opened, scope, learnings_view(found), is_empty=is_empty)


def _read_answer(opened: Workspace, scope: str, view: dict[str, object], *, is_empty: bool) -> Answer:
    errors = [problem for problem in opened.problems if problem.severity == "error"]
    warnings = problem_lines(errors, LINT_HINT, most=_SHOWN) + (
        _scope_lines(opened, scope) if is_empty else []
    )
    return Answer({**view, **unread_view(opened.problems)}, to_yaml(view), warnings=warnings)


def _scope_lines(opened: Workspace, scope: str) -> list[str]:
    """Return why nothing was found, and the known scopes, when the asked one does not exist."""
    asked = WorkspaceScope.parse(scope)
    known = opened.topology.scopes()
    if not known:
        rules = opened.topology.rules
        folders = f"{rules.resources or '.'} or {rules.learnings or '.'}"
        return [
            f"archivist: nothing below {folders} in {opened.topology.root}",
            "hint: --root names another folder; archivist workspace save WORKSPACE TEXT begins one",
        ]
    is_known = not asked.parts or any(asked.contains(each) for each in known)
    return (
        [] if is_known else [f"archivist: no scope {str(asked)!r}", f"hint: {suggest_scopes(asked, known)}"]
    )


# Saving


@options.command(workspace)
@options.scope_argument
@click.argument("text", default="")
@click.option("--kind", type=click.Choice(["decision", "lesson", "plan_status"]), help="Else found by rule.")
@click.option("--title", metavar="TEXT", default="", help="The first sentence otherwise.")
@click.option("--category", metavar="C", default="", help="Found by rule otherwise.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated.")
@click.option("--plan", metavar="NAME", default="", help="The plan whose status changes.")
@click.option("--status", metavar="S", default="", help="The plan's new status.")
@click.option("--from", "source", metavar="FILE", help="Items as JSON: a list, or one a line; - reads stdin.")
@on_conflict
@click.option("--create", is_flag=True, help="Allow a workspace or domain that has no folder yet.")
@root_option
def save(
    session: Session, /, scope: str, source: str | None, topology: Topology, create: bool, **fields: Any
) -> Answer:
    """Save TEXT to SCOPE as a decision, a lesson or a plan's status, unless it is there already.

    A text that contradicts an entry is refused; --on-conflict supersede writes it and marks the old entry.
    Exit 7 when something was not written.
    """
    rule = fields.pop("on_conflict")
    if not source and not fields["text"] and not fields["plan"]:
        raise click.UsageError("nothing to save\nhint: archivist workspace save SCOPE TEXT, or --from FILE")
    items = _read_items(source) if source else [item_from(fields)]
    good = [item for item in items if isinstance(item, MemoryItem)]
    opened = Workspace(topology.root, topology.rules, actor=session.actor())
    saved = iter(opened.save_memory(good, scope, on_conflict=rule, create=create))
    # In the order of the input, with those that were refused while reading.
    outcomes = [next(saved) if isinstance(item, MemoryItem) else item for item in items]
    results = [outcome.result for outcome in outcomes]
    lines = []
    for outcome in outcomes:
        where = f"  {outcome.place}" if outcome.place else ""
        lines.append(f"{outcome.result:<9} {outcome.kind:<11} {outcome.title}{where}")
        if outcome.reason:
            is_elsewhere = outcome.against and outcome.against != outcome.place
            lines.append(f"          {outcome.reason}{f' ({outcome.against})' if is_elsewhere else ''}")
    view: dict[str, object] = {result.value: results.count(result) for result in SaveResult}
    view["items"] = [outcome._asdict() for outcome in outcomes]
    hint = "hint: --on-conflict supersede marks the old entry and writes the new; keep_both writes it beside"
    notes = (hint,) if SaveResult.CONFLICT in results else ()
    code = EXIT_PARTIAL if {SaveResult.CONFLICT, SaveResult.REFUSED} & set(results) else 0
    return Answer(view, "\n".join(lines), notes, code=code)


def _read_items(source: str) -> Sequence[MemoryItem | SaveOutcome]:
    """Read the items of a JSON list, of one object, or of one object a line."""
    text = read_source(source, _MAX_INPUT, "save it in parts")
    hint = 'items are JSON: [{"text": "…", "kind": "lesson"}]'
    try:
        whole = parse_json(text, repr(source), hint=hint)
    except InputError as error:
        # JSON lines: not JSON as a whole, but line by line.
        try:
            lines = [line for line in text.splitlines() if line.strip()]
            return items_from([parse_json(line, repr(source)) for line in lines])
        except InputError:
            raise error from None
    return items_from(whole if isinstance(whole, list) else [whole])


# Upkeep

_writing = click.option(
    "--write/--dry-run", "is_writing", default=False, help="Write it, or only show a diff."
)


@options.command(workspace)
@options.scope_argument
@click.option("--rules", "with_rules", is_flag=True, help="List the rules instead.")
@root_option
def lint(_session: Session, /, scope: str, with_rules: bool, topology: Topology) -> Answer:
    """Check the files of SCOPE against their formats; exit 1 when there are errors."""
    if with_rules:
        rules = list(RULES.values())
        table = (("Rule", "Severity", "Asks", "Remedy"), rules)
        return Answer({"rules": [rule._asdict() for rule in rules]}, tables=[table])
    opened = Workspace(topology.root, topology.rules)
    checked = opened.lint(scope)
    warnings = len(checked.problems) - checked.errors
    found = [{**_problem_view(problem), "severity": problem.severity} for problem in checked.problems]
    view = {"files": checked.files, "errors": checked.errors, "warnings": warnings, "problems": found}
    text = "\n".join(f"{problem}  [{problem.remedy}]" for problem in checked.problems)
    errors = pluralize(checked.errors, "error")
    total = f"{errors}, {pluralize(warnings, 'warning')} in {pluralize(checked.files, 'file')}"
    notes = (total, *(() if checked.files else _scope_lines(opened, scope)))
    return Answer(view, text, notes, code=1 if checked.errors else 0)


def _problem_view(problem: LintProblem) -> dict[str, object]:
    view = problem._asdict()
    del view["advice"]
    return {**view, "remedy": problem.remedy}


@options.command(workspace, owners_of="workspace")
@options.scope_argument
@_writing
@root_option
def migrate(_session: Session, scope: str, is_writing: bool, topology: Topology) -> Answer:
    """Add missing front matter to plans and overviews of SCOPE, and merge ABSTRACT.md into OVERVIEW.md.

    Shows a unified diff; --write makes the changes. Bodies stay; the part of an ABSTRACT.md that is more
    than a description is added below the overview. A second run changes nothing.
    """
    opened = Workspace(topology.root, topology.rules)
    return _changes_answer(opened.propose_migration(scope), opened.migrate if is_writing else None)


@options.command(workspace, owners_of="workspace")
@options.scope_argument
@_writing
@root_option
def archive(_session: Session, scope: str, is_writing: bool, topology: Topology) -> Answer:
    """Move the superseded decisions and lessons of SCOPE to the archive folder beside their file.

    Shows a unified diff; --write makes the changes. Archived entries are no longer read; git has them too.
    """
    opened = Workspace(topology.root, topology.rules)
    return _changes_answer(opened.propose_archive(scope), opened.archive if is_writing else None)


def _changes_answer(proposed: WorkspaceMigration, write: Callable[..., Any] | None) -> Answer:
    """Make the proposed changes of files if there is a function that does; return them, or their diff."""
    done, left = write(proposed.changes) if write else (proposed.changes, [])
    problems = [*proposed.problems, *left]
    views = [{"path": each.path, "reasons": list(each.reasons), "diff": each.diff()} for each in done]
    lines = []
    for each in done:
        verb = "removed" if each.after is None else "made" if each.before is None else "changed"
        lines.append(f"{verb:<8} {each.path}  ({', '.join(each.reasons)})")
    total = f"{pluralize(len(done), 'file')} {'changed' if write else 'would change'}"
    total += "; --write makes the changes" if done and not write else ""
    text = "\n".join(lines) if write else "".join(each.diff() for each in done)
    notes = (total, *problem_lines(problems, f"these are left as they are; {LINT_HINT}", most=_SHOWN))
    view = {"written": bool(write), "changes": views, "left": list(map(_problem_view, problems))}
    return Answer(view, text, notes, code=EXIT_PARTIAL if problems else 0)
