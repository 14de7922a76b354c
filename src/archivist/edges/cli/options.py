"""How commands are declared: `@options.command(group)`, and the options and types that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archivist.edges.cli.output import Answer, print_answer

if TYPE_CHECKING:
    from archivist.edges.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])

# Up to a century of days.
DAYS = click.IntRange(1, 36_500)


class DateTimeParam(click.DateTime):
    """A day or a time, as people write it: without a zone, which is UTC."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Return what stands for it in the help; Click would list the formats by their codes."""
        return "DAY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the moment, or say what one looks like."""
        try:
            return super().convert(value, param, ctx).replace(tzinfo=UTC)
        except click.BadParameter:
            self.fail(f"{value!r} is no day: write it as 2026-04-03 or 2026-04-03T14:00:00", param, ctx)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
is_global = click.option("--global", "is_global", is_flag=True, help="Use the global bank.")
role = click.option("--role", metavar="R", default="", help="Only entries of this role.")
tag = click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; repeatable.")
issue = click.option("--issue", "issues", type=int, metavar="N", multiple=True, help="Its issue; repeatable.")
approve = click.option(
    "--approve", "is_approved", is_flag=True, help="You have read the files and vouch for every word in them."
)
importance = click.option(
    "--importance", type=int, default=5, show_default=True, metavar="1-10", help="How important it is."
)
since = click.option("--since", type=DateTimeParam(), help="Only from this day on.")
until = click.option("--until", type=DateTimeParam(), help="Only up to this time.")
no_llm = click.option("--no-llm", "no_llm", is_flag=True, help="Do not ask the configured language model.")
scope_argument = click.argument("scope", default="", metavar="[SCOPE]")
scope = click.option(
    "--scope", metavar="SCOPE", default="", help="WORKSPACE[/DOMAIN[/REPOSITORY]]; else all."
)


def enum_choice(words: type[StrEnum]) -> click.Choice[str]:
    """Return the choice of an enumeration's values; Click by itself would offer the names of its members."""
    return click.Choice([word.value for word in words])


def listed_choice(*names: str, words: Iterable[str], text: str, **more: Any) -> Callable[[F], F]:
    """Return an option for one of so many words that beside its name they would not fit the screen."""
    known = click.Choice([str(word) for word in words])
    return click.option(
        *names, type=known, metavar="WORD", help=f"{text}: {', '.join(known.choices)}.", **more
    )


def limit(text: str = "At most N.", most: int | None = None, **more: Any) -> Callable[[F], F]:
    """Return the option --max N."""
    return click.option("--max", "limit", type=click.IntRange(1, most), metavar="N", help=text, **more)


class DashTextCommand(click.Command):
    """A command whose texts may begin with a dash and a space, as Markdown lists do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep such texts from being read as options: the newline before them is stripped later."""
        return super().parse_args(ctx, [f"\n{word}" if word.startswith("- ") else word for word in args])


def read_text_argument(given: str) -> str:
    """Return an argument's text; `-` reads it from stdin."""
    if given != "-":
        return given
    from archivist.files.open import read_bounded

    return read_bounded(given).decode("utf-8", "replace")


def combine(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for options and arguments that several commands share, in this order."""

    def add(handler: F) -> F:
        # Decorators apply from the last to the first.
        for option in reversed(options):
            handler = option(handler)
        return handler

    return add


def command(
    group: click.Group | None = None,
    name: str | None = None,
    cls: type[click.Command] = click.Command,
    *,
    owners_of: str = "",
) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """Make a function a command with --json, in a group if one is given; it is called with the session.

    `owners_of` names the layer that the command changes without a service: it is refused to agents.
    """

    def add(handler: Callable[..., Answer | None]) -> click.Command:
        @wraps(handler)
        def run(session: Session, /, as_json: bool, **words: Any) -> int:
            if owners_of:
                session.require_owner(owners_of)
            answer = handler(session, **words)
            # Without an answer the handler has streamed its output.
            return 0 if answer is None else print_answer(answer, as_json)

        make = click.command if group is None else group.command
        # The whole first sentence: Click by itself would cut it to fit one line of a list.
        sentence = " ".join((handler.__doc__ or "").split()).partition(". ")[0]
        return make(name, cls=cls, short_help=sentence)(as_json(click.pass_obj(run)))

    return add


def bank_command(
    group: click.Group | None = None,
    name: str | None = None,
    cls: type[click.Command] = click.Command,
    *,
    has_global: bool = False,
) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """Make a function a command that is called with the opened bank; --global is added if it has that."""

    def add(handler: Callable[..., Answer | None]) -> click.Command:
        @wraps(handler)
        def run(session: Session, /, is_global: bool = False, **words: Any) -> Answer | None:
            with session.bank(is_global=is_global, folder=Path.cwd()) as bank:
                return handler(bank, **words)

        return command(group, name, cls)(is_global(run) if has_global else run)

    return add
