"""Commands for a workspace's markdown: read, save, lint, migrate."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import EXIT_PARTIAL, json_option, note, pluralize, print_json, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.workspace_root import find_topology, note_problems, root_option
from archivist.errors import InputError
from archivist.workspace.documents import learnings_view, overviews_view, plan_view, plans_view, to_yaml
from archivist.workspace.markdown_service import Workspace

if TYPE_CHECKING:
    from archivist.workspace.save import MemoryItem, SaveOutcome
    from archivist.workspace.service import WorkspaceService
    from archivist.workspace.topology import LintProblem

_SHOWN = 5
_MAX_INPUT = 4 * 1024**2

# name → module and help of the commands that are imported only when they are called.
_ELSEWHERE = {
    "hot": ("workspace_hot:hot", "Show how full hot memory is; demote and promote."),
    "link": ("workspace_hot:link", "Link hot files into agent tools."),
    "unlink": ("workspace_hot:unlink", "Remove those links."),
    "skills": ("workspace_skills:skills", "List, show and save skills."),
    "transcripts": ("workspace_cold:transcripts", "List, capture and show raw transcripts."),
    "drafts": ("workspace_cold:drafts", "Draft entries from captured runs."),
    "search": ("workspace_graph:search", "Search every document of every root."),
    "graph": ("workspace_graph:graph", "Draw what is related to what."),
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


_scope = click.argument("scope", default="", metavar="[SCOPE]")
_tags = click.option(
    "--tag", "tags", metavar="T", multiple=True, help="With this tag; repeated: any of them."
)


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


@workspace.command()
@_scope
@click.option("--status", metavar="S", multiple=True, help="Of this status; repeated: any of them.")
@_tags
@click.option("--full", "name", metavar="NAME", help="One plan in full, by its id, path or name.")
@root_option
@json_option
@click.pass_obj
def plans(
    session: Session,
    scope: str,
    status: tuple[str, ...],
    tags: tuple[str, ...],
    name: str | None,
    root: str | None,
    as_json: bool,
) -> None:
    """Print the front matter of the plans of SCOPE as YAML."""
    opened = _open_workspace(session, root)
    if name:
        detail = opened.retrieve_plan(name, scope)
        view = plan_view(detail.plan)
        meta = view.pop("_meta")
        _print_view({"plans": [{**view, "content": detail.content, "_meta": meta}]}, as_json=as_json)
        return
    found = opened.retrieve_plans(scope, status=status, tags=tags)
    _print_view(plans_view(found), as_json=as_json)
    _report_problems(opened, scope, is_empty=not found)


@workspace.command()
@_scope
@click.option("--full", "is_full", is_flag=True, help="Every overview in full, not only the one asked for.")
@root_option
@json_option
@click.pass_obj
def overview(session: Session, scope: str, is_full: bool, root: str | None, as_json: bool) -> None:
    """Print the overviews of SCOPE: a workspace or a repository in full, everything below as abstracts."""
    opened = _open_workspace(session, root)
    found = opened.retrieve_overview(scope, is_full=is_full)
    _print_view(overviews_view(found), as_json=as_json)
    _report_problems(opened, scope, is_empty=not found)


@workspace.command()
@_scope
@_tags
@click.option("--category", metavar="C", default="", help="Of this category.")
@click.option("--all", "with_superseded", is_flag=True, help="Also those that were superseded.")
@root_option
@json_option
@click.pass_obj
def learnings(
    session: Session,
    scope: str,
    tags: tuple[str, ...],
    category: str,
    with_superseded: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Print the decisions and lessons of SCOPE as YAML."""
    opened = _open_workspace(session, root)
    found = opened.retrieve_learnings(scope, tags=tags, category=category, with_superseded=with_superseded)
    _print_view(learnings_view(found), as_json=as_json)
    _report_problems(opened, scope, is_empty=not found.decisions and not found.lessons)


def _print_view(view: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(view)
    else:
        say(to_yaml(view), nl=False)


def _report_problems(opened: Workspace, scope: str, *, is_empty: bool) -> None:
    """Print errors on stderr, and the known scopes when the asked one does not exist."""
    from archivist.workspace.topology import LintSeverity, WorkspaceScope, suggest_scopes

    errors = [problem for problem in opened.problems if problem.severity is LintSeverity.ERROR]
    note_problems(errors, "archivist workspace lint says what to do", most=_SHOWN)
    if not is_empty:
        return
    asked = WorkspaceScope.parse(scope)
    known = opened.topology.scopes()
    if not known:
        rules = opened.topology.rules
        note(
            f"archivist: nothing below {rules.resources or '.'} or {rules.learnings or '.'} "
            f"in {opened.topology.root}"
        )
        note("hint: --root names another folder; archivist workspace save WORKSPACE TEXT begins one")
    elif asked.parts and not any(asked.contains(each) for each in known):
        note(f"archivist: no scope {str(asked)!r}")
        note(f"hint: {suggest_scopes(asked, known)}")


# Saving


@workspace.command()
@_scope
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
@json_option
@click.pass_obj
def save(
    session: Session,
    /,
    scope: str,
    text: str,
    source: str | None,
    on_conflict: str,
    create: bool,
    root: str | None,
    as_json: bool,
    **fields: Any,
) -> int:
    """Save TEXT to SCOPE as a decision, a lesson or a plan's status, unless it is there already.

    A text that contradicts an entry is refused; --on-conflict supersede writes it and marks the old entry.
    Exit 7 when something was not written.
    """
    from archivist.workspace.save import MemoryItem, item_from

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
    outcomes = [next(saved) if isinstance(item, MemoryItem) else item for item in items]
    return _print_outcomes(outcomes, as_json=as_json)


def _read_items(source: str) -> list[MemoryItem | SaveOutcome]:
    """Read the items of a JSON list, of one object, or of one object a line."""
    from archivist.workspace.save import items_from

    try:
        if source == "-":
            data = sys.stdin.buffer.read(_MAX_INPUT + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(_MAX_INPUT + 1)
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
        try:
            return items_from([json.loads(line) for line in text.splitlines() if line.strip()])
        except json.JSONDecodeError:
            hint = 'items are JSON: [{"text": "…", "kind": "lesson"}]'
            message = f"{source!r} is not JSON: line {error.lineno}: {error.msg}"
            raise InputError(message, hint=hint) from None
    if isinstance(whole, dict) and isinstance(whole.get("items"), list):
        whole = whole["items"]
    return items_from(whole if isinstance(whole, list) else [whole])


def _print_outcomes(outcomes: Sequence[SaveOutcome], *, as_json: bool) -> int:
    from archivist.workspace.save import SaveResult

    results = [outcome.result for outcome in outcomes]
    if as_json:
        views = [
            {**each._asdict(), "result": each.result.value, "kind": each.kind.value} for each in outcomes
        ]
        print_json({**{result.value: results.count(result) for result in SaveResult}, "items": views})
    else:
        for outcome in outcomes:
            where = f"  {outcome.place}" if outcome.place else ""
            say(f"{outcome.result.value:<9} {outcome.kind.value:<11} {outcome.title}{where}")
            if outcome.reason:
                is_elsewhere = outcome.against and outcome.against != outcome.place
                say(f"          {outcome.reason}{f' ({outcome.against})' if is_elsewhere else ''}")
        if SaveResult.CONFLICT in results:
            note(
                "hint: --on-conflict supersede marks the old entry and writes the new;"
                " keep_both writes it beside"
            )
    return EXIT_PARTIAL if {SaveResult.CONFLICT, SaveResult.REFUSED} & set(results) else 0


# Upkeep


@workspace.command()
@_scope
@click.option("--rules", "with_rules", is_flag=True, help="List the rules instead.")
@root_option
@json_option
@click.pass_obj
def lint(session: Session, scope: str, with_rules: bool, root: str | None, as_json: bool) -> int:
    """Check the files of SCOPE against their formats; exit 1 when there are errors."""
    if with_rules:
        from archivist.edges.cli.output import print_table
        from archivist.workspace.topology import RULES

        if as_json:
            print_json({"rules": [rule._asdict() for rule in RULES.values()]})
        else:
            print_table(("Rule", "Severity", "Asks", "Remedy"), list(RULES.values()))
        return 0
    opened = _open_workspace(session, root)
    checked = opened.lint(scope)
    warnings = len(checked.problems) - checked.errors
    if as_json:
        found = [{**_problem_view(problem), "severity": problem.severity} for problem in checked.problems]
        view = {"files": checked.files, "errors": checked.errors, "warnings": warnings, "problems": found}
        print_json(view)
        return 1 if checked.errors else 0
    for problem in checked.problems:
        say(f"{problem}  [{problem.remedy}]")
    note(
        f"{pluralize(checked.errors, 'error')}, {pluralize(warnings, 'warning')}"
        f" in {pluralize(checked.files, 'file')}"
    )
    opened.problems = []
    _report_problems(opened, scope, is_empty=not checked.files)
    return 1 if checked.errors else 0


def _problem_view(problem: LintProblem) -> dict[str, object]:
    view = {key: value for key, value in problem._asdict().items() if key != "advice"}
    return {**view, "remedy": problem.remedy}


@workspace.command()
@_scope
@click.option(
    "--write/--dry-run", "is_writing", default=False, help="Write it; the default only shows a diff."
)
@root_option
@json_option
@click.pass_obj
def migrate(session: Session, scope: str, is_writing: bool, root: str | None, as_json: bool) -> int:
    """Add missing front matter to plans and overviews of SCOPE, and merge ABSTRACT.md into OVERVIEW.md.

    Shows a unified diff; --write makes the changes. Bodies stay; the part of an ABSTRACT.md that is more
    than a description is added below the overview. A second run changes nothing.
    """
    with _open_writable(session, root) as opened:
        migration = opened.propose_migration(scope)
        done, left = opened.migrate(migration.changes) if is_writing else ([], [])
    problems = [*migration.problems, *left]
    if as_json:
        print_json(
            {
                "written": is_writing,
                "changes": [
                    {"path": change.path, "reasons": list(change.reasons), "diff": change.diff()}
                    for change in (done if is_writing else migration.changes)
                ],
                "left": [_problem_view(each) for each in problems],
            }
        )
        return EXIT_PARTIAL if problems else 0
    if is_writing:
        for change in done:
            done_word = "removed" if change.after is None else "made" if change.before is None else "changed"
            say(f"{done_word:<8} {change.path}  ({', '.join(change.reasons)})")
        note(f"{pluralize(len(done), 'file')} changed")
    else:
        for change in migration.changes:
            say(change.diff(), nl=False)
        to_do = "; --write makes the changes" if migration.changes else ""
        note(f"{pluralize(len(migration.changes), 'file')} would change{to_do}")
    hint = "these are left as they are; archivist workspace lint says what to do"
    note_problems(problems, hint, most=_SHOWN)
    return EXIT_PARTIAL if problems else 0
