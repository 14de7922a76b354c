"""Commands about lessons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from archivist.edges.cli.output import (
    count,
    global_option,
    json_option,
    print_json,
    print_table,
    word_choice,
)
from archivist.edges.cli.session import Session
from archivist.records.words import Category, LessonType, Scope, Severity, Status

F = TypeVar("F", bound=Callable[..., Any])

_FACETS = ("type", "category", "scope", "domain", "role", "repo", "task", "provider", "tool")


def _facets(command: F) -> F:
    """Add the options that place a lesson: the same for adding, editing and listing."""
    options = [
        click.option("--type", type=word_choice(LessonType), help="How it came to be believed."),
        click.option("--category", type=word_choice(Category), help="What sort of advice it is."),
        click.option("--scope", type=word_choice(Scope), help="What it is about."),
        click.option("--domain", metavar="D", help="writing, code, general, or your own."),
        click.option("--role", metavar="R", help="The role it is for."),
        click.option("--repo", metavar="R", help="The repository it is for."),
        click.option("--task", metavar="T", help="The task it is for."),
        click.option("--provider", metavar="P", help="The provider it is for."),
        click.option("--tool", metavar="T", help="The tool it is for."),
        click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _words(command: F) -> F:
    """Add the options for a lesson's own words and weight."""
    options = [
        click.option("--rule", metavar="TEXT", help='"IF … THEN …"'),
        click.option("--detail", metavar="TEXT", help="A short paragraph with nuance."),
        click.option("--severity", type=word_choice(Severity), help="How bad it is to ignore it."),
        click.option("--importance", type=float, help="0 to 1."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


@click.group()
def lessons() -> None:
    """List, show, add, edit and forget lessons."""


@lessons.command("list")
@_facets
@click.option("--all", "with_retired", is_flag=True, help="Also superseded and archived ones.")
@click.option("--status", type=word_choice(Status), help="Only this status.")
@click.option(
    "--matching",
    metavar="TEXT",
    help="Only those that match these words, in words or in meaning, best first.",
)
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@global_option
@json_option
@click.pass_obj
def list_(
    session: Session,
    /,
    with_retired: bool,
    status: str | None,
    matching: str | None,
    limit: int | None,
    is_global: bool,
    as_json: bool,
    **facets: Any,
) -> None:
    """Print the lessons as a table: those that count, or with --all every one."""
    from archivist.recall.query import LIVE, Query

    statuses = (Status(status),) if status else tuple(Status) if with_retired else (*LIVE, Status.QUARANTINED)
    query = Query(text=matching or "", statuses=statuses, limit=limit, **_given(facets))
    with session.bank(is_global=is_global) as bank:
        found = bank.query(query)
        if not matching and not limit:
            found.sort(key=lambda lesson: lesson.number)
        if as_json:
            print_json({"lessons": bank.views(found)})
            return
    headings = ["ID", "Freq", "Type", "Domain", "Description"]
    rows = [[each.short_id, each.frequency, each.type, each.domain, each.summary] for each in found]
    if with_retired:
        headings.insert(2, "Status")
        for row, each in zip(rows, found, strict=True):
            row.insert(2, each.status)
    print_table(headings, rows)


@lessons.command()
@click.argument("name", metavar="ID")
@global_option
@json_option
@click.pass_obj
def show(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Print everything about the lesson ID (m-001)."""
    with session.bank(is_global=is_global) as bank:
        lesson = bank.get(name)
        view = {**bank.views([lesson])[0], "stale": bank.stale([lesson]).get(lesson.id, "")}
    if as_json:
        print_json(view)
        return
    from archivist.edges.cli.telling import lesson_lines

    for line in lesson_lines(view):
        click.echo(line)


@lessons.command()
@click.argument("text")
@_facets
@_words
@global_option
@json_option
@click.pass_obj
def add(session: Session, /, text: str, is_global: bool, as_json: bool, **fields: Any) -> None:
    """Add TEXT as a lesson: a preference unless --type says otherwise. What people add is active at once.

    What agents add is a candidate, a pattern unless --type says otherwise.
    """
    values = _given(fields)
    if is_global:
        values.setdefault("scope", Scope.GLOBAL.value)
    with session.bank(is_global=is_global) as bank:
        lesson = bank.add(text, **values)
        if as_json:
            print_json(bank.views([lesson])[0])
            return
    click.echo(f"{lesson.short_id}  {lesson.summary}")


@lessons.command()
@click.argument("name", metavar="ID")
@click.option("--summary", metavar="TEXT", help="New words for it.")
@_facets
@_words
@global_option
@json_option
@click.pass_obj
def edit(session: Session, /, name: str, is_global: bool, as_json: bool, **fields: Any) -> None:
    """Change the lesson ID; its history keeps what it was."""
    values = _given(fields)
    if not values:
        raise click.UsageError("nothing to change\nhint: archivist lessons edit --help lists what can be")
    with session.bank(is_global=is_global) as bank:
        lesson = bank.edit(name, **values)
        if as_json:
            print_json(bank.views([lesson])[0])
            return
    click.echo(f"{lesson.short_id}  {lesson.summary}")


@lessons.command()
@click.argument("names", metavar="ID…", nargs=-1, required=True)
@click.option("--replaced-by", metavar="ID", help="The lesson that says it better.")
@global_option
@json_option
@click.pass_obj
def forget(
    session: Session, names: tuple[str, ...], replaced_by: str | None, is_global: bool, as_json: bool
) -> None:
    """Move lessons to the archive, whatever their frequency; all of them or, if one is unknown, none."""
    with session.bank(is_global=is_global) as bank, bank.transaction():
        gone = [bank.archive(name, replaced_by) if replaced_by else bank.forget(name) for name in names]
        if as_json:
            print_json({"lessons": bank.views(gone)})
            return
    click.echo(f"{count(len(gone), 'lesson')} archived: {', '.join(each.short_id for each in gone)}")


@lessons.command()
@click.argument("name", metavar="ID")
@global_option
@json_option
@click.pass_obj
def history(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Tell the story of the lesson ID: every change, who made it, and what it changed."""
    from archivist.edges.cli.telling import history_rows

    with session.bank(is_global=is_global) as bank:
        rows = history_rows(bank.history(name))
    if as_json:
        print_json({"history": rows})
        return
    print_table(
        ("Seq", "Time", "Actor", "Verb", "Change"),
        [(row["seq"], row["time"][:19] + "Z", row["actor"], row["verb"], row["change"]) for row in rows],
    )
