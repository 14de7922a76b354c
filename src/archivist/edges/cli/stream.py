"""Commands about what agents logged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist.edges.cli.output import (
    enum_choice,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    report_problems,
    say,
)
from archivist.edges.cli.session import Session
from archivist.records.tier_words import EntryType
from archivist.stream.entries import MAX_CYCLE

if TYPE_CHECKING:
    from archivist.records import Entry
    from archivist.stream.insights_service import Insights

_CYCLE = click.IntRange(0, MAX_CYCLE)


@click.group()
def stream() -> None:
    """Log, list, search and reflect on what agents did, cycle by cycle."""


@stream.command()
@click.argument("action")
@click.option("--cycle", type=_CYCLE, metavar="N", help="The cycle; else the one the role has begun.")
@click.option("--role", metavar="R", default="", help="Who acted; the actor's own role by default.")
@click.option(
    "--importance", type=int, default=5, show_default=True, metavar="1-10", help="How much it matters."
)
@click.option("--type", type=enum_choice(EntryType), default="action", show_default=True, help="What it is.")
@click.option("--content", metavar="TEXT", default="", help="What happened, in some sentences.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated.")
@click.option("--issue", "issues", type=int, multiple=True, metavar="N", help="An issue; may be repeated.")
@click.option("--pr", "prs", type=int, multiple=True, metavar="N", help="A pull request; may be repeated.")
@click.option("--run", metavar="ID", default="", help="The run that it belongs to.")
@click.option("--reflect", is_flag=True, help="Reflect afterwards when that is due.")
@json_option
@click.pass_obj
def log(session: Session, /, action: str, reflect: bool, as_json: bool, **fields: Any) -> None:
    """Log ACTION to the stream. Issues and pull requests in its words (#84, PR #12) are found."""
    with session.bank() as bank:
        entry = bank.stream.log(action, **fields)
        due = bank.stream.due_reason()
        done = bank.stream.reflect(if_due=True) if reflect and due else None
    if as_json:
        reflected = {"reflection": _insights_view(done)} if done else {}
        print_json({"entry": _entry_view(entry), "reflection_due": due if not done else "", **reflected})
        return
    say(f"{entry.id}  cycle {entry.cycle}  {entry.action}")
    if done:
        _print_insights(done)
    elif due:
        note(f"hint: reflection is due ({due}): archivist stream reflect")


@stream.command()
@click.option("--role", metavar="R", default="", help="Whose cycle it is.")
@json_option
@click.pass_obj
def cycle(session: Session, role: str, as_json: bool) -> None:
    """Begin the next cycle and print its number; what the role logs belongs to it."""
    with session.bank() as bank:
        number = bank.stream.begin_cycle(role)
    if as_json:
        print_json({"cycle": number, "role": role})
        return
    say(str(number))


@stream.command("list")
@click.option("--cycles", metavar="A[:B]", default="", help="Only of these cycles, hot or archived.")
@click.option("--role", metavar="R", default="", help="Only of this role.")
@click.option("--importance", type=int, default=1, metavar="1-10", help="Only from this importance on.")
@click.option(
    "--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the latest; else 20."
)
@json_option
@click.pass_obj
def list_(
    session: Session, cycles: str, role: str, importance: int, limit: int | None, as_json: bool
) -> None:
    """Print entries in order: the latest, or those of --cycles 180:185."""
    with session.bank() as bank:
        if cycles or importance != 1:
            first, last = _parse_cycles(cycles) if cycles else (0, MAX_CYCLE)
            found = bank.stream.by_cycle(first, last, role=role, min_importance=importance)
            found = found[-limit:] if limit else found
        else:
            found = bank.stream.recent(limit or 20, role=role)[::-1]
    if as_json:
        print_json({"entries": [_entry_view(entry) for entry in found]})
        return
    _print_entries(found)


@stream.command()
@click.argument("name", metavar="ID")
@json_option
@click.pass_obj
def show(session: Session, name: str, as_json: bool) -> None:
    """Print everything about the entry ID."""
    with session.bank() as bank:
        entry = bank.stream.get(name)
    if as_json:
        print_json(_entry_view(entry))
        return
    for label, value in _entry_view(entry).items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if text:
            say(f"{label}: {text}")


@stream.command()
@click.argument("text", metavar="QUERY")
@click.option("--role", metavar="R", default="", help="Only of this role.")
@click.option("--issue", type=int, metavar="N", help="Only what refers to this issue.")
@click.option("--importance", type=int, metavar="1-10", help="Only from this importance on.")
@click.option("--cycles", metavar="A[:B]", default="", help="Only of these cycles, hot or archived.")
@click.option("--archived", is_flag=True, help="Also what has left the hot cycles.")
@click.option("--max", "limit", type=click.IntRange(1, 200), default=5, show_default=True, metavar="N")
@json_option
@click.pass_obj
def search(
    session: Session,
    text: str,
    role: str,
    issue: int | None,
    importance: int | None,
    cycles: str,
    archived: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Find what was logged about QUERY: by recency, importance and relevance, the best first."""
    with session.bank() as bank:
        found = bank.stream.search(
            text,
            role=role,
            issue=issue,
            min_importance=importance,
            limit=limit,
            cycles=_parse_cycles(cycles) if cycles else None,
            tier="" if archived else "stream",
        )
    if as_json:
        print_json(
            {"hits": [{**_entry_view(each.entry), "score": round(each.hit.score, 4)} for each in found]}
        )
        return
    for each in found:
        say(f"{each.hit.score:.2f}  {each.entry.id}  cycle {each.entry.cycle}  {each.entry.role}".rstrip())
        say(f"      {each.hit.text}")
        for text in each.hit.notes:
            say(f"      ({text})")
    if not found:
        note("nothing found")


@stream.command()
@click.argument("name", metavar="ID")
@click.option("--action", metavar="TEXT", help="New words for it.")
@click.option("--content", metavar="TEXT", help="What happened.")
@click.option("--importance", type=int, metavar="1-10", help="How much it matters.")
@click.option("--type", type=enum_choice(EntryType), help="What it is.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated.")
@click.option("--issue", "issues", type=int, multiple=True, metavar="N", help="An issue; may be repeated.")
@click.option("--pr", "prs", type=int, multiple=True, metavar="N", help="A pull request; may be repeated.")
@json_option
@click.pass_obj
def edit(session: Session, /, name: str, as_json: bool, **fields: Any) -> None:
    """Change the entry ID; its history keeps what it was."""
    changes = {field: value for field, value in fields.items() if value not in (None, ())}
    if not changes:
        raise click.UsageError("nothing to change\nhint: archivist stream edit --help lists what can be")
    with session.bank() as bank:
        entry = bank.stream.edit(name, **changes)
    if as_json:
        print_json(_entry_view(entry))
        return
    say(f"{entry.id}  cycle {entry.cycle}  {entry.action}")


@stream.command()
@click.argument("name", metavar="ID")
@json_option
@click.pass_obj
def remove(session: Session, name: str, as_json: bool) -> None:
    """Take the entry ID out of the stream; archivist undo ID brings it back."""
    with session.bank() as bank:
        entry = bank.stream.remove(name)
    if as_json:
        print_json({"removed": entry.id})
        return
    say(f"removed {entry.id}  {entry.action}")


@stream.command()
@click.option("--if-due", is_flag=True, help="Only when importance, cycles or a new sprint ask for it.")
@json_option
@click.pass_obj
def reflect(session: Session, if_due: bool, as_json: bool) -> None:
    """Write what recurs since the last reflection to stream and archive, counted without a model."""
    with session.bank() as bank:
        done = bank.stream.reflect(if_due=if_due)
    if as_json:
        print_json(_insights_view(done))
        return
    _print_insights(done)


@stream.command("import")
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Refuse everything when one line is bad.")
@json_option
@click.pass_obj
def import_(session: Session, paths: tuple[Path, ...], strict: bool, as_json: bool) -> int:
    """Take stream.jsonl files in, also compressed; an entry that is known is brought up to date."""
    from archivist.edges.cli.doctor import embed

    with session.bank() as bank:
        taken = bank.stream.import_lines(paths, is_strict=strict)
        embed(bank)
    if as_json:
        skipped = [str(problem) for problem in taken.problems]
        counts = {"added": taken.added, "changed": taken.changed, "unchanged": taken.unchanged}
        print_json({**counts, "skipped": skipped})
    else:
        say(f"entries: {taken.added} new, {taken.changed} changed, {taken.unchanged} the same")
    return report_problems(taken.problems)


@stream.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@json_option
@click.pass_obj
def export(session: Session, file: Path | None, as_json: bool) -> None:
    """Write the stream as JSON lines to FILE, or to stdout."""
    import json

    with session.bank() as bank:
        if file is None:
            for line in bank.stream.lines():
                say(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
            return
        lines = bank.stream.export(file)
    if as_json:
        print_json({"file": str(file), "lines": lines})
        return
    say(f"{file}  {pluralize(lines, 'line')}")


def _entry_view(entry: Entry) -> dict[str, object]:
    from archivist.records.lines import to_stream_line

    return {**to_stream_line(entry), "archived": entry.is_archived}


def _print_entries(entries: list[Entry]) -> None:
    rows = [
        (each.id, each.cycle, each.role, each.importance, each.type.value, each.action) for each in entries
    ]
    print_table(("ID", "Cycle", "Role", "Imp", "Type", "Action"), rows)


def _parse_cycles(text: str) -> tuple[int, int]:
    """Read `180` or `180:185`."""
    first, mark, last = text.partition(":")
    try:
        return int(first), int(last) if mark else int(first)
    except ValueError:
        raise click.UsageError(
            f"cycles {text!r} are no range\nhint: one cycle, 180, or two, 180:185"
        ) from None


def _insights_view(done: Insights) -> dict[str, object]:
    return {
        "reason": done.reason,
        "skipped": done.skipped,
        "gathered": done.gathered,
        "cycles": list(done.cycles) if done.cycles else None,
        "entries": [_entry_view(entry) for entry in done.entries],
        "documents": [f"{each.source}#{each.position}" for each in done.documents],
        "core": list(done.told_core),
        "problems": list(done.problems),
    }


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
