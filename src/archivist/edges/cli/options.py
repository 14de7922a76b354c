"""Options, arguments and output that several groups of commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import click

from archivist.edges.cli.output import EXIT_PARTIAL, note, print_json, print_table, say

R = TypeVar("R")
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


def print_answer(view: Mapping[str, object], text: str, *, as_json: bool) -> None:
    """Print a result as JSON, or as a line of text."""
    if as_json:
        print_json(view)
    else:
        say(text)


def print_records(
    name: str,
    records: Sequence[R],
    view: Callable[[R], object],
    columns: Mapping[str, Callable[[R], object]],
    *,
    as_json: bool,
    empty: str = "",
) -> None:
    """Print records as JSON under a name, or as a table; `empty` is the note when there are none."""
    if as_json:
        print_json({name: [view(record) for record in records]})
    elif not records and empty:
        note(empty)
    else:
        print_table(tuple(columns), [[cell(record) for cell in columns.values()] for record in records])


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print the fields of one record below each other; empty ones are left out."""
    for name, value in fields:
        if value not in ("", None):
            say(f"  {name.replace('_', ' '):<12}{value}")


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
