"""Options, arguments and output that several groups of commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import click

from archivist.edges.cli.output import EXIT_PARTIAL, json_option, note, print_json, print_table, say

if TYPE_CHECKING:
    from archivist.edges.cli.session import Session
    from archivist.errors import ArchivistError

R = TypeVar("R")
Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[object]]]
# A screenful; a file with one systematic mistake has thousands.
_PROBLEMS_SHOWN = 20

role_option = click.option("--role", metavar="R", default="", help="Only entries of this role.")
tag_option = click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; repeatable.")
issue_option = click.option(
    "--issue", "issues", type=int, metavar="N", multiple=True, help="A related issue; repeatable."
)
importance_option = click.option(
    "--importance", type=int, default=5, show_default=True, metavar="1-10", help="How important it is."
)
search_limit_option = click.option(
    "--max",
    "limit",
    type=click.IntRange(1, 200),
    default=5,
    show_default=True,
    metavar="N",
    help="At most N.",
)
limit_option = click.option(
    "--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the latest first."
)


class DashTextCommand(click.Command):
    """A command whose texts may begin with a dash and a space, as Markdown lists do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep such texts from being read as options: the newline before them is stripped later."""
        return super().parse_args(ctx, [f"\n{word}" if word.startswith("- ") else word for word in args])


def read_text_argument(given: str) -> str:
    """Return an argument's text; `-` reads it from stdin."""
    return sys.stdin.buffer.read().decode("utf-8", "replace") if given == "-" else given


class Answer(NamedTuple):
    """What a command prints: a view with --json, else a text and a table on stdout and notes on stderr.

    Problems go to stderr in both cases and set the exit code; an error is raised after the output.
    """

    view: object
    text: str = ""
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    problems: Sequence[object] = ()
    code: int = 0
    error: ArchivistError | None = None


def command(
    group: click.Group | None = None, name: str | None = None, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """Make a function a command with --json, in a group if one is given; it is called with the session."""

    def add(handler: Callable[..., Answer | None]) -> click.Command:
        @wraps(handler)
        def run(session: Session, /, as_json: bool, **words: Any) -> int:
            answer = handler(session, **words)
            if answer is None:
                # The handler has streamed its output.
                return 0
            if as_json:
                print_json(answer.view)
            else:
                if answer.text:
                    say(answer.text, nl=not answer.text.endswith("\n"))
                for number, (headings, rows) in enumerate(answer.tables):
                    if number:
                        say()
                    print_table(headings, rows)
                for text in answer.notes:
                    note(text)
            if answer.error is not None:
                raise answer.error
            return note_problems(answer.problems) or answer.code

        make = click.command if group is None else group.command
        return make(name, cls=cls)(json_option(click.pass_obj(run)))

    return add


def list_records(
    name: str,
    records: Sequence[R],
    view: Callable[[R], object],
    columns: Mapping[str, Callable[[R], object]],
    *,
    empty: str = "",
) -> Answer:
    """Return records as a table; `empty` is the note when there are none."""
    views = {name: [view(record) for record in records]}
    if not records and empty:
        return Answer(views, notes=(empty,))
    rows = [[cell(record) for cell in columns.values()] for record in records]
    return Answer(views, tables=[(tuple(columns), rows)])


def field_lines(fields: Iterable[tuple[str, object]]) -> list[str]:
    """Return the fields of one record, one on each line; empty ones are left out."""
    return [f"  {name.replace('_', ' '):<12}{value}" for name, value in fields if value not in ("", None)]


def note_problems(problems: Sequence[object]) -> int:
    """Name what was left out on stderr; return the exit code that says whether there was anything."""
    for problem in problems[:_PROBLEMS_SHOWN]:
        note(f"archivist: {problem}")
    if len(problems) > _PROBLEMS_SHOWN:
        note(f"archivist: … and {len(problems) - _PROBLEMS_SHOWN} more")
    return EXIT_PARTIAL if problems else 0


def shorten(text: str, most: int) -> str:
    """Return a text on one line, cut to a number of characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
