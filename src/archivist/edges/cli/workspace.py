"""Commands for a workspace's markdown: read, save, lint, migrate; and what every workspace command needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import EXIT_PARTIAL, Answer, command, pluralize, problem_lines
from archivist.edges.cli.session import Session
from archivist.errors import InputError
from archivist.workspace.documents import learnings_view, overviews_view, plan_view, plans_view, to_yaml
from archivist.workspace.markdown_service import Workspace

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.workspace.files_service import Topology
    from archivist.workspace.save import MemoryItem, SaveOutcome
    from archivist.workspace.service import WorkspaceService
    from archivist.workspace.topology import LintProblem

# Reading is not checking: a few problems and the way to all of them are enough.
_SHOWN = 5
# Items are sentences: a larger file is the wrong one.
_MAX_INPUT = 4 * 1024**2
LINT_HINT = "archivist workspace lint says what to do"

# name → module and help of the commands that are imported only when they are called.
_ELSEWHERE = {
    "hot": ("workspace_hot:hot", "Show how full hot memory is; demote and promote."),
    "link": ("workspace_hot:link", "Link hot files into agent tools."),
    "unlink": ("workspace_hot:unlink", "Remove those links."),
    "skills": ("workspace_hot:skills", "List, show and save skills."),
    "transcripts": ("workspace_cold:transcripts", "List, capture and show raw transcripts."),
    "drafts": ("workspace_cold:drafts", "Draft entries from captured runs."),
    "search": ("workspace_cold:search", "Search every document of every root."),
    "graph": ("workspace_cold:graph", "Draw what is related to what."),
}


class _LazyWorkspaceGroup(click.Group):
    """A group that imports some of its commands when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_ELSEWHERE]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _ELSEWHERE:
            return super().get_command(ctx, name)
        module, _, attribute = _ELSEWHERE[name][0].partition(":")
        command: click.Command = getattr(import_module(f"archivist.edges.cli.{module}"), attribute)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [(name, self.commands[name].get_short_help_str(70)) for name in self.commands]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *((name, text) for name, (_, text) in _ELSEWHERE.items())])


@click.group(cls=_LazyWorkspaceGroup)
def workspace() -> None:
    """Read, save, check and migrate a workspace's markdown.

    SCOPE is WORKSPACE, WORKSPACE/DOMAIN or WORKSPACE/DOMAIN/REPOSITORY; without one, all workspaces count.
    """


scope_argument = click.argument("scope", default="", metavar="[SCOPE]")
root_option = click.option(
    "--root", metavar="FOLDER", type=click.Path(exists=True, file_okay=False), help="The workspace's root."
)
scope_option = click.option(
    "--scope", metavar="SCOPE", default="", help="WORKSPACE[/DOMAIN[/REPOSITORY]]; without it all."
)
_tags = click.option(
    "--tag", "tags", metavar="T", multiple=True, help="With this tag; repeated: any of them."
)


def find_topology(session: Session, root: str | None) -> Topology:
    """Return the files of a root: the named one, else the nearest upwards, else the bank's project."""
    from archivist.paths import bank_file, project_folder
    from archivist.workspace.files_service import Topology, find_root

    bank_path = session.find_bank_path()
    rules = session.load_settings(bank_path).config.workspace
    if root:
        return Topology(Path(root), rules)
    here = Path.cwd()
    nearest = find_root(here, rules) or next(
        (
            folder
            for folder in (here, *here.parents)
            if any((folder / name).is_dir() for name in (rules.hot, rules.transcripts))
        ),
        None,
    )
    if nearest is None and bank_path is not None:
        nearest = project_folder(bank_file(bank_path))
    return Topology(nearest or here, rules)


def require_bank(session: Session) -> Bank:
    """Open the project's bank; without one, the error names the commands that need it."""
    from archivist.errors import NoBankError

    try:
        return session.bank()
    except NoBankError as error:
        error.hint = (
            f"{error.hint}; of archivist workspace, only search, drafts, transcripts and `hot promote m-001`"
            " need one"
        )
        raise


def _open_workspace(session: Session, root: str | None) -> Workspace:
    topology = find_topology(session, root)
    return Workspace(topology.root, topology.rules)


@contextmanager
def _open_writable(session: Session, root: str | None) -> Iterator[Workspace | WorkspaceService]:
    """Open a workspace for writing: through the bank, which checks the actor, when the root is a bank's."""
    from archivist.paths import bank_file, project_folder

    found = _open_workspace(session, root)
    place = session.find_bank_path()
    if place is None or project_folder(bank_file(place)).resolve() != found.topology.root.resolve():
        yield found
        return
    with session.bank() as bank:
        yield bank.workspace


@command(workspace)
@scope_argument
@click.option("--status", metavar="S", multiple=True, help="Of this status; repeated: any of them.")
@_tags
@click.option("--full", "name", metavar="NAME", help="One plan in full, by its id, path or name.")
@root_option
def plans(
    session: Session,
    scope: str,
    status: tuple[str, ...],
    tags: tuple[str, ...],
    name: str | None,
    root: str | None,
) -> Answer:
    """Print the front matter of the plans of SCOPE as YAML."""
    opened = _open_workspace(session, root)
    if name:
        detail = opened.retrieve_plan(name, scope)
        view = plan_view(detail.plan)
        meta = view.pop("_meta")
        whole: dict[str, object] = {"plans": [{**view, "content": detail.content, "_meta": meta}]}
        return Answer(whole, to_yaml(whole))
    found = opened.retrieve_plans(scope, status=status, tags=tags)
    return _read_answer(opened, scope, plans_view(found), is_empty=not found)


@command(workspace)
@scope_argument
@click.option("--full", "is_full", is_flag=True, help="Every overview in full, not only the one asked for.")
@root_option
def overview(session: Session, scope: str, is_full: bool, root: str | None) -> Answer:
    """Print the overviews of SCOPE: a workspace or a repository in full, everything below as abstracts."""
    opened = _open_workspace(session, root)
    found = opened.retrieve_overview(scope, is_full=is_full)
    return _read_answer(opened, scope, overviews_view(found), is_empty=not found)


@command(workspace)
@scope_argument
@_tags
@click.option("--category", metavar="C", default="", help="Of this category.")
@click.option("--all", "with_superseded", is_flag=True, help="Also those that were superseded.")
@root_option
def learnings(session: Session, /, scope: str, root: str | None, **filters: Any) -> Answer:
    """Print the decisions and lessons of SCOPE as YAML."""
    opened = _open_workspace(session, root)
    found = opened.retrieve_learnings(scope, **filters)
    is_empty = not found.decisions and not found.lessons
    return _read_answer(opened, scope, learnings_view(found), is_empty=is_empty)


def _read_answer(opened: Workspace, scope: str, view: dict[str, object], *, is_empty: bool) -> Answer:
    from archivist.workspace.topology import LintSeverity

    errors = [problem for problem in opened.problems if problem.severity is LintSeverity.ERROR]
    warnings = problem_lines(errors, LINT_HINT, most=_SHOWN)
    if is_empty:
        warnings += _scope_lines(opened, scope)
    return Answer(view, to_yaml(view), warnings=warnings)


def _scope_lines(opened: Workspace, scope: str) -> list[str]:
    """Return why nothing was found, and the known scopes, when the asked one does not exist."""
    from archivist.workspace.topology import WorkspaceScope, suggest_scopes

    asked = WorkspaceScope.parse(scope)
    known = opened.topology.scopes()
    if not known:
        rules = opened.topology.rules
        folders = f"{rules.resources or '.'} or {rules.learnings or '.'}"
        return [
            f"archivist: nothing below {folders} in {opened.topology.root}",
            "hint: --root names another folder; archivist workspace save WORKSPACE TEXT begins one",
        ]
    if asked.parts and not any(asked.contains(each) for each in known):
        return [f"archivist: no scope {str(asked)!r}", f"hint: {suggest_scopes(asked, known)}"]
    return []


# Saving


@command(workspace)
@scope_argument
@click.argument("text", default="")
@click.option(
    "--kind", type=click.Choice(["decision", "lesson", "plan_status"]), help="Found by rule otherwise."
)
@click.option("--title", metavar="TEXT", default="", help="The first sentence otherwise.")
@click.option("--category", metavar="C", default="", help="Found by rule otherwise.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated.")
@click.option("--plan", metavar="NAME", default="", help="The plan whose status changes.")
@click.option("--status", metavar="S", default="", help="The plan's new status.")
@click.option("--from", "source", metavar="FILE", help="Items as JSON: a list, or one a line; - reads stdin.")
@click.option("--on-conflict", metavar="RULE", default="refuse", help="refuse, supersede or keep_both.")
@click.option("--create", is_flag=True, help="Allow a workspace or domain that has no folder yet.")
@root_option
def save(
    session: Session,
    /,
    scope: str,
    text: str,
    source: str | None,
    on_conflict: str,
    create: bool,
    root: str | None,
    **fields: Any,
) -> Answer:
    """Save TEXT to SCOPE as a decision, a lesson or a plan's status, unless it is there already.

    A text that contradicts an entry is refused; --on-conflict supersede writes it and marks the old entry.
    Exit 7 when something was not written.
    """
    from archivist.workspace.save import MemoryItem, SaveResult, item_from

    items: Sequence[MemoryItem | SaveOutcome] = _read_items(source) if source else []
    if not source:
        if not text and not fields["plan"]:
            raise click.UsageError(
                "nothing to save\nhint: archivist workspace save SCOPE TEXT, or --from FILE"
            )
        items = [item_from({"text": text, **fields})]
    good = [item for item in items if isinstance(item, MemoryItem)]
    with _open_writable(session, root) as opened:
        saved = iter(opened.save_memory(good, scope, on_conflict=on_conflict, create=create))
    # In the order of the input, with those that were refused while reading.
    outcomes = [next(saved) if isinstance(item, MemoryItem) else item for item in items]
    results = [outcome.result for outcome in outcomes]
    views = [{**each._asdict(), "result": each.result.value, "kind": each.kind.value} for each in outcomes]
    lines = []
    for outcome in outcomes:
        where = f"  {outcome.place}" if outcome.place else ""
        lines.append(f"{outcome.result.value:<9} {outcome.kind.value:<11} {outcome.title}{where}")
        if outcome.reason:
            is_elsewhere = outcome.against and outcome.against != outcome.place
            lines.append(f"          {outcome.reason}{f' ({outcome.against})' if is_elsewhere else ''}")
    hint = "hint: --on-conflict supersede marks the old entry and writes the new; keep_both writes it beside"
    return Answer(
        {**{result.value: results.count(result) for result in SaveResult}, "items": views},
        "\n".join(lines),
        (hint,) if SaveResult.CONFLICT in results else (),
        code=EXIT_PARTIAL if {SaveResult.CONFLICT, SaveResult.REFUSED} & set(results) else 0,
    )


def _read_items(source: str) -> list[MemoryItem | SaveOutcome]:
    """Read the items of a JSON list, of one object, or of one object a line."""
    from archivist.workspace.save import items_from

    try:
        if source == "-":
            data = sys.stdin.buffer.read(_MAX_INPUT + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(_MAX_INPUT + 1)
        # Editors on Windows begin a file with a byte order mark.
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {source!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source!r} is not UTF-8: byte {error.start}") from error
    if len(data) > _MAX_INPUT:
        raise InputError(f"{source!r} is larger than {_MAX_INPUT >> 20} MiB", hint="save it in parts")
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        # JSON lines: not JSON as a whole, but line by line.
        try:
            return items_from([json.loads(line) for line in text.splitlines() if line.strip()])
        except json.JSONDecodeError:
            hint = 'items are JSON: [{"text": "…", "kind": "lesson"}]'
            message = f"{source!r} is not JSON: line {error.lineno}: {error.msg}"
            raise InputError(message, hint=hint) from None
    if isinstance(whole, dict) and isinstance(whole.get("items"), list):
        whole = whole["items"]
    return items_from(whole if isinstance(whole, list) else [whole])


# Upkeep


@command(workspace)
@scope_argument
@click.option("--rules", "with_rules", is_flag=True, help="List the rules instead.")
@root_option
def lint(session: Session, scope: str, with_rules: bool, root: str | None) -> Answer:
    """Check the files of SCOPE against their formats; exit 1 when there are errors."""
    if with_rules:
        from archivist.workspace.topology import RULES

        rules = list(RULES.values())
        table = (("Rule", "Severity", "Asks", "Remedy"), rules)
        return Answer({"rules": [rule._asdict() for rule in rules]}, tables=[table])
    opened = _open_workspace(session, root)
    checked = opened.lint(scope)
    warnings = len(checked.problems) - checked.errors
    found = [{**_problem_view(problem), "severity": problem.severity} for problem in checked.problems]
    total = (
        f"{pluralize(checked.errors, 'error')}, {pluralize(warnings, 'warning')}"
        f" in {pluralize(checked.files, 'file')}"
    )
    return Answer(
        {"files": checked.files, "errors": checked.errors, "warnings": warnings, "problems": found},
        "\n".join(f"{problem}  [{problem.remedy}]" for problem in checked.problems),
        (total, *(() if checked.files else _scope_lines(opened, scope))),
        code=1 if checked.errors else 0,
    )


def _problem_view(problem: LintProblem) -> dict[str, object]:
    view = {key: value for key, value in problem._asdict().items() if key != "advice"}
    return {**view, "remedy": problem.remedy}


@command(workspace)
@scope_argument
@click.option(
    "--write/--dry-run", "is_writing", default=False, help="Write it; the default only shows a diff."
)
@root_option
def migrate(session: Session, scope: str, is_writing: bool, root: str | None) -> Answer:
    """Add missing front matter to plans and overviews of SCOPE, and merge ABSTRACT.md into OVERVIEW.md.

    Shows a unified diff; --write makes the changes. Bodies stay; the part of an ABSTRACT.md that is more
    than a description is added below the overview. A second run changes nothing.
    """
    with _open_writable(session, root) as opened:
        migration = opened.propose_migration(scope)
        done, left = opened.migrate(migration.changes) if is_writing else ([], [])
    problems = [*migration.problems, *left]
    changes = done if is_writing else migration.changes
    views = [
        {"path": change.path, "reasons": list(change.reasons), "diff": change.diff()} for change in changes
    ]
    if is_writing:
        verbs = (
            "removed" if change.after is None else "made" if change.before is None else "changed"
            for change in done
        )
        text = "\n".join(
            f"{verb:<8} {change.path}  ({', '.join(change.reasons)})"
            for verb, change in zip(verbs, done, strict=True)
        )
        total = f"{pluralize(len(done), 'file')} changed"
    else:
        text = "".join(change.diff() for change in changes)
        total = f"{pluralize(len(changes), 'file')} would change"
        total += "; --write makes the changes" if changes else ""
    hint = f"these are left as they are; {LINT_HINT}"
    return Answer(
        {"written": is_writing, "changes": views, "left": [_problem_view(each) for each in problems]},
        text,
        (total, *problem_lines(problems, hint, most=_SHOWN)),
        code=EXIT_PARTIAL if problems else 0,
    )
