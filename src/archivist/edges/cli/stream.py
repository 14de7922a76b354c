"""Commands about the stream: what agents logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.doctor import embed
from archivist.edges.cli.options import (
    importance_option,
    issue_option,
    print_answer,
    print_records,
    role_option,
    search_limit_option,
    tag_option,
)
from archivist.edges.cli.output import (
    enum_choice,
    json_option,
    note,
    pluralize,
    print_json,
    report_problems,
    say,
)
from archivist.edges.cli.session import Session
from archivist.edges.views import entry_view, insights_view
from archivist.records.tier_words import EntryType
from archivist.stream.entries import MAX_CYCLE

if TYPE_CHECKING:
    from archivist.stream.insights_service import Insights

_LISTED = 20
_pr_option = click.option(
    "--pr", "prs", type=int, multiple=True, metavar="N", help="A related pull request; repeatable."
)
_cycles_option = click.option(
    "--cycles", metavar="A[:B]", default="", help="Only of these cycles, hot or archived."
)


@click.group()
def stream() -> None:
    """Log what agents do, cycle by cycle; list it, search it, reflect on it."""


@stream.command()
@click.argument("action")
@click.option(
    "--cycle",
    type=click.IntRange(0, MAX_CYCLE),
    metavar="N",
    help="The cycle; by default the role's current.",
)
@click.option("--role", metavar="R", default="", help="Who acted; by default the actor's own role.")
@importance_option
@click.option("--type", type=enum_choice(EntryType), default="action", show_default=True, help="Its type.")
@click.option("--content", metavar="TEXT", default="", help="What happened, in a few sentences.")
@tag_option
@issue_option
@_pr_option
@click.option("--run", metavar="ID", default="", help="The run that it belongs to.")
@click.option("--reflect", is_flag=True, help="Reflect afterwards if a reflection is due.")
@json_option
@click.pass_obj
def log(session: Session, /, action: str, reflect: bool, as_json: bool, **fields: Any) -> None:
    """Log ACTION to the stream. Issues and pull requests in its text (#84, PR #12) are recognised."""
    with session.bank() as bank:
        entry = bank.stream.log(action, **fields)
        due = bank.stream.due_reason()
        done = bank.stream.reflect(if_due=True) if reflect and due else None
    reflected = {"reflection": insights_view(done)} if done else {}
    print_answer(
        {"entry": entry_view(entry), "reflection_due": due if not done else "", **reflected},
        f"{entry.id}  cycle {entry.cycle}  {entry.action}",
        as_json=as_json,
    )
    if done and not as_json:
        _print_insights(done)
    elif due and not as_json:
        note(f"hint: reflection is due ({due}): archivist stream reflect")


@stream.command()
@click.option("--role", metavar="R", default="", help="The role that begins it.")
@json_option
@click.pass_obj
def cycle(session: Session, role: str, as_json: bool) -> None:
    """Begin the next cycle and print its number. What the role logs from now on belongs to it."""
    with session.bank() as bank:
        number = bank.stream.begin_cycle(role)
    print_answer({"cycle": number, "role": role}, str(number), as_json=as_json)


@stream.command("list")
@_cycles_option
@role_option
@click.option("--importance", type=int, default=1, metavar="1-10", help="The minimum importance.")
@click.option(
    "--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the latest; 20 by default."
)
@json_option
@click.pass_obj
def list_(
    session: Session, cycles: str, role: str, importance: int, limit: int | None, as_json: bool
) -> None:
    """List entries in order: the latest, or those of --cycles 180:185."""
    with session.bank() as bank:
        if cycles or importance != 1:
            first, last = _parse_cycles(cycles) if cycles else (0, MAX_CYCLE)
            found = bank.stream.by_cycle(first, last, role=role, min_importance=importance)
            found = found[-limit:] if limit else found
        else:
            found = bank.stream.recent(limit or _LISTED, role=role)[::-1]
    print_records(
        "entries",
        found,
        entry_view,
        {
            "ID": lambda entry: entry.id,
            "Cycle": lambda entry: entry.cycle,
            "Role": lambda entry: entry.role,
            "Imp": lambda entry: entry.importance,
            "Type": lambda entry: entry.type.value,
            "Action": lambda entry: entry.action,
        },
        as_json=as_json,
    )


@stream.command()
@click.argument("name", metavar="ID")
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print all fields of the entry ID."""
    with session.bank() as bank:
        view = entry_view(bank.stream.get(name))
    if as_json:
        print_json(view)
        return
    for label, value in view.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if text:
            say(f"{label}: {text}")


@stream.command()
@click.argument("text", metavar="QUERY")
@role_option
@click.option("--issue", type=int, metavar="N", help="Only what refers to this issue.")
@click.option("--importance", "min_importance", type=int, metavar="1-10", help="The minimum importance.")
@_cycles_option
@click.option("--archived", is_flag=True, help="Include archived cycles.")
@search_limit_option
@json_option
@click.pass_obj
def search(
    session: Session, /, text: str, cycles: str, archived: bool, as_json: bool, **filters: Any
) -> None:
    """Search the entries for QUERY by recency, importance and relevance, best match first."""
    with session.bank() as bank:
        found = bank.stream.search(
            text,
            cycles=_parse_cycles(cycles) if cycles else None,
            tier="" if archived else "stream",
            **filters,
        )
    if as_json:
        hits = [{**entry_view(entry), "score": round(hit.score, 4)} for hit, entry in found]
        print_json({"hits": hits})
        return
    for hit, entry in found:
        say(f"{hit.score:.2f}  {entry.id}  cycle {entry.cycle}  {entry.role}".rstrip())
        for line in (hit.text, *(f"({remark})" for remark in hit.notes)):
            say(f"      {line}")
    if not found:
        note("nothing found")


@stream.command()
@click.argument("name", metavar="ID")
@click.option("--action", metavar="TEXT", help="The new action.")
@click.option("--content", metavar="TEXT", help="The new content.")
@click.option("--importance", type=int, metavar="1-10", help="How important it is.")
@click.option("--type", type=enum_choice(EntryType), help="Its type.")
@tag_option
@issue_option
@_pr_option
@json_option
@click.pass_obj
def edit(session: Session, /, name: str, as_json: bool, **fields: Any) -> None:
    """Change the entry ID; its history keeps the earlier version."""
    changes = {field: value for field, value in fields.items() if value not in (None, ())}
    if not changes:
        raise click.UsageError("nothing to change\nhint: archivist stream edit --help lists the fields")
    with session.bank() as bank:
        entry = bank.stream.edit(name, **changes)
    print_answer(entry_view(entry), f"{entry.id}  cycle {entry.cycle}  {entry.action}", as_json=as_json)


@stream.command()
@click.argument("name", metavar="ID")
@json_option
@click.pass_obj
def remove(session: Session, name: str, as_json: bool) -> None:
    """Remove the entry ID from the stream; archivist undo ID restores it."""
    with session.bank() as bank:
        entry = bank.stream.remove(name)
    print_answer({"removed": entry.id}, f"removed {entry.id}  {entry.action}", as_json=as_json)


@stream.command()
@click.option("--if-due", is_flag=True, help="Only if importance, cycles or a new sprint make it due.")
@json_option
@click.pass_obj
def reflect(session: Session, if_due: bool, as_json: bool) -> None:
    """Write what recurred since the last reflection to stream and archive. Needs no language model."""
    with session.bank() as bank:
        done = bank.stream.reflect(if_due=if_due)
    if as_json:
        print_json(insights_view(done))
        return
    _print_insights(done)


@stream.command("import")
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Import nothing if a line is bad.")
@json_option
@click.pass_obj
def import_(session: Session, paths: tuple[Path, ...], strict: bool, as_json: bool) -> int:
    """Import stream.jsonl files, also compressed ones; known entries are updated."""
    with session.bank() as bank:
        done = bank.stream.import_lines(paths, is_strict=strict)
        embed(bank)
    counts = {"added": done.added, "changed": done.changed, "unchanged": done.unchanged}
    print_answer(
        {**counts, "skipped": [str(problem) for problem in done.problems]},
        f"entries: {done.added} new, {done.changed} changed, {done.unchanged} the same",
        as_json=as_json,
    )
    return report_problems(done.problems)


@stream.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@json_option
@click.pass_obj
def export(session: Session, file: Path | None, as_json: bool) -> None:
    """Write the stream as JSON lines to FILE, or to stdout."""
    with session.bank() as bank:
        if file is None:
            for line in bank.stream.lines():
                say(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
            return
        lines = bank.stream.export(file)
    print_answer({"file": str(file), "lines": lines}, f"{file}  {pluralize(lines, 'line')}", as_json=as_json)


def _parse_cycles(text: str) -> tuple[int, int]:
    """Read `180` or `180:185`."""
    first, mark, last = text.partition(":")
    try:
        return int(first), int(last) if mark else int(first)
    except ValueError:
        raise click.UsageError(
            f"cycles {text!r} are not a range\nhint: one cycle, 180, or two, 180:185"
        ) from None


def _print_insights(done: Insights) -> None:
    if done.skipped:
        note(f"no reflection: {done.skipped}")
        return
    for entry in done.entries:
        say(f"{entry.importance:>2}  {entry.action}")
        say(f"    {entry.content}")
    for text in done.told_core:
        say(f"core  {text}")
    first, last = done.cycles or (0, 0)
    looked = "1 entry" if done.gathered == 1 else f"{done.gathered} entries"
    found = pluralize(len(done.entries), "insight") if done.entries else "nothing recurs"
    note(f"{done.reason}: looked at {looked} of cycles {first} to {last}, {found}")
    for problem in done.problems:
        note(f"archivist: core memory: {problem}")
