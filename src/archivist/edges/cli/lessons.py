"""Commands about lessons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archivist.edges.cli.output import (
    enum_choice,
    global_option,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session
from archivist.records.words import Category, LessonType, Scope, Severity, Status

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Lesson

F = TypeVar("F", bound=Callable[..., Any])


def _facet_options(command: F) -> F:
    """Add the options for what a lesson applies to: the same for adding, editing and listing."""
    options = [
        click.option("--type", type=enum_choice(LessonType), help="How it came to be believed."),
        click.option("--category", type=enum_choice(Category), help="What sort of advice it is."),
        click.option("--scope", type=enum_choice(Scope), help="What it is about."),
        click.option("--domain", metavar="D", help="writing, code, general, or your own."),
        click.option("--role", metavar="R", help="The role it is for."),
        click.option("--repo", metavar="R", help="The repository it is for."),
        click.option("--task", metavar="T", help="The task it is for."),
        click.option("--provider", metavar="P", help="The provider it is for."),
        click.option("--tool", metavar="T", help="The tool it is for."),
        click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; may be repeated."),
    ]
    return _apply(options, command)


def _content_options(command: F) -> F:
    """Add the options for a lesson's own words and weight."""
    options = [
        click.option("--rule", metavar="TEXT", help='"IF … THEN …"'),
        click.option("--detail", metavar="TEXT", help="A short paragraph with more context."),
        click.option("--severity", type=enum_choice(Severity), help="How bad it is to ignore it."),
        click.option("--importance", type=float, help="0 to 1."),
    ]
    return _apply(options, command)


def _apply(options: Sequence[Callable[[F], F]], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def _drop_unset(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, ())}


@click.group()
def lessons() -> None:
    """List, show, add, edit and forget lessons."""


@lessons.command("list")
@_facet_options
@click.option("--all", "with_retired", is_flag=True, help="Also superseded and archived ones.")
@click.option("--status", type=enum_choice(Status), help="Only this status.")
@click.option(
    "--matching",
    metavar="TEXT",
    help="Only lessons that match this text by words or meaning, best first.",
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
    """Print the live and quarantined lessons as a table, or with --all every lesson."""
    from archivist.lessons.quarantine import quarantine_reason
    from archivist.recall.query import LIVE, Query

    statuses = (Status(status),) if status else tuple(Status) if with_retired else (*LIVE, Status.QUARANTINED)
    query = Query(
        text=matching or "", statuses=statuses, limit=limit, is_matching=True, **_drop_unset(facets)
    )
    with session.bank(is_global=is_global) as bank:
        found = bank.lessons.query(query)
        if not matching and not limit:
            found.sort(key=lambda lesson: lesson.number)
        if as_json:
            print_json({"lessons": bank.lessons.views(found)})
            return
    headings = ["ID", "Freq", "Type", "Domain", "Description"]
    rows = [
        [lesson.short_id, lesson.frequency, lesson.type, lesson.domain, lesson.summary] for lesson in found
    ]
    if with_retired or any(lesson.status is Status.QUARANTINED for lesson in found):
        headings.insert(2, "Status")
        for row, lesson in zip(rows, found, strict=True):
            why = quarantine_reason(lesson)
            row.insert(2, f"{lesson.status}: {why}" if why else lesson.status.value)
    print_table(headings, rows)


@lessons.command()
@click.argument("name", metavar="ID")
@global_option
@json_option
@click.pass_obj
def show(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Print everything about the lesson ID (m-001)."""
    bank, (bare,) = session.bank_of(name, is_global=is_global)
    with bank:
        lesson = bank.lessons.get(bare)
        view = {
            **_lesson_views(bank, [lesson], name)[0],
            "stale": bank.liveness.find_stale([lesson]).get(lesson.id, ""),
        }
    if as_json:
        print_json(view)
        return
    from archivist.edges.cli.output import lesson_lines

    for line in lesson_lines(view):
        say(line)


@lessons.command()
@click.argument("text")
@_facet_options
@_content_options
@global_option
@json_option
@click.pass_obj
def add(session: Session, /, text: str, is_global: bool, as_json: bool, **fields: Any) -> None:
    """Add TEXT as a lesson: a preference unless --type is given, and active at once.

    A lesson that an agent adds is a candidate, and a pattern unless --type is given.
    """
    values = _drop_unset(fields)
    if is_global:
        values.setdefault("scope", Scope.GLOBAL.value)
    with session.bank(is_global=is_global) as bank:
        lesson = bank.lessons.add(text, **values)
        if as_json:
            print_json(bank.lessons.views([lesson])[0])
            return
    _print_saved(lesson, lesson.short_id)


@lessons.command()
@click.argument("name", metavar="ID")
@click.option("--summary", metavar="TEXT", help="New words for it.")
@_facet_options
@_content_options
@global_option
@json_option
@click.pass_obj
def edit(session: Session, /, name: str, is_global: bool, as_json: bool, **fields: Any) -> None:
    """Change the lesson ID; its history keeps the earlier version."""
    values = _drop_unset(fields)
    if not values:
        raise click.UsageError("nothing to change\nhint: archivist lessons edit --help lists the options")
    bank, (bare,) = session.bank_of(name, is_global=is_global)
    with bank:
        lesson = bank.lessons.edit(bare, **values)
        if as_json:
            print_json(_lesson_views(bank, [lesson], name)[0])
            return
    _print_saved(lesson, _display_name(lesson, name))


def _print_saved(lesson: Lesson, name: str) -> None:
    """Print a lesson that was written, and how to approve it if it is quarantined."""
    from archivist.lessons.quarantine import quarantine_reason

    say(f"{name}  {lesson.summary}")
    if why := quarantine_reason(lesson):
        note(f"quarantined ({why}): archivist lessons approve {name}")


def _display_name(lesson: Lesson, asked: str) -> str:
    """Return a lesson's short id, marked as of the global bank if the user asked for it that way."""
    from archivist.brief.select import global_mark_of

    return f"{global_mark_of(asked)}{lesson.short_id}"


def _lesson_views(bank: Bank, lessons: Sequence[Lesson], asked: str) -> list[dict[str, Any]]:
    """Return lessons as plain values, called as they were asked for."""
    from archivist.brief.select import global_mark_of
    from archivist.edges.views import lesson_views

    return lesson_views(bank, lessons, mark=global_mark_of(asked))


def _print_status_changes(verb: str, known: Sequence[Lesson], after: Sequence[Lesson], asked: str) -> None:
    """Print which lessons were changed, and which had that status before."""
    changed = [_display_name(lesson, asked) for lesson in after if lesson not in known]
    unchanged = [_display_name(lesson, asked) for lesson in after if lesson in known]
    if changed:
        say(f"{pluralize(len(changed), 'lesson')} {verb}: {', '.join(changed)}")
    if unchanged:
        note(f"{verb} already: {', '.join(unchanged)}")


@lessons.command()
@click.argument("names", nargs=-1, required=True, metavar="ID…")
@global_option
@json_option
@click.pass_obj
def approve(session: Session, names: tuple[str, ...], is_global: bool, as_json: bool) -> None:
    """Approve the lessons ID: quarantined ones are briefed from now on."""
    bank, bare = session.bank_of(*names, is_global=is_global)
    with bank, bank.transaction():
        known = bank.lessons.get_many(bare)
        approved = [bank.lessons.approve(name) for name in bare]
        if as_json:
            print_json({"lessons": _lesson_views(bank, approved, names[0])})
            return
    _print_status_changes("approved", known, approved, names[0])


@lessons.command()
@click.argument("names", metavar="ID…", nargs=-1, required=True)
@click.option("--replaced-by", metavar="ID", help="The lesson that says it better.")
@global_option
@json_option
@click.pass_obj
def forget(
    session: Session, names: tuple[str, ...], replaced_by: str | None, is_global: bool, as_json: bool
) -> None:
    """Move lessons to the archive, whatever their frequency. If one ID is unknown, none is moved.

    With --replaced-by they are superseded by that lesson instead.
    """
    bank, bare = session.bank_of(*names, *filter(None, [replaced_by]), is_global=is_global)
    by = bare.pop() if replaced_by else ""
    with bank, bank.transaction():
        known = bank.lessons.get_many(bare)
        gone = [bank.lessons.archive(name, by) if by else bank.forget(name) for name in bare]
        if as_json:
            print_json({"lessons": _lesson_views(bank, gone, names[0])})
            return
    _print_status_changes("superseded" if by else "archived", known, gone, names[0])


@lessons.command()
@click.argument("name", metavar="ID")
@global_option
@json_option
@click.pass_obj
def history(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Print every change of the lesson ID, with its actor."""
    from archivist.edges.views import history_views

    bank, (name,) = session.bank_of(name, is_global=is_global)
    with bank:
        rows = history_views(bank.ledger.history(name))
    if as_json:
        print_json({"history": rows})
        return
    print_table(
        ("Seq", "Time", "Actor", "Verb", "Change"),
        [(row["seq"], row["time"][:19] + "Z", row["actor"], row["verb"], row["change"]) for row in rows],
    )
