"""Options, types and arguments that commands share: `@options.tag`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

role = click.option("--role", metavar="R", default="", help="Only entries of this role.")
tag = click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; repeatable.")
issue = click.option(
    "--issue", "issues", type=int, metavar="N", multiple=True, help="A related issue; repeatable."
)
importance = click.option(
    "--importance", type=int, default=5, show_default=True, metavar="1-10", help="How important it is."
)
search_limit = click.option(
    "--max",
    "limit",
    type=click.IntRange(1, 200),
    default=5,
    show_default=True,
    metavar="N",
    help="At most N.",
)
limit = click.option(
    "--max", "limit", type=click.IntRange(min=1), metavar="N", help="At most N, the latest first."
)

scope_argument = click.argument("scope", default="", metavar="[SCOPE]")
scope = click.option(
    "--scope", metavar="SCOPE", default="", help="WORKSPACE[/DOMAIN[/REPOSITORY]]; without it all."
)


def enum_choice(words: type[StrEnum]) -> click.Choice[str]:
    """Return the choice of an enumeration's values; Click by itself would offer the names of its members."""
    return click.Choice([word.value for word in words])


outcome = click.Choice(["success", "partial", "failed", "aborted"])


class DateTimeParam(click.DateTime):
    """A day or a time, as people write it: without a zone, which is UTC."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the moment, or say what one looks like."""
        try:
            return super().convert(value, param, ctx).replace(tzinfo=UTC)
        except click.BadParameter:
            self.fail(f"{value!r} is no day: write it as 2026-04-03 or 2026-04-03T14:00:00", param, ctx)


class DashTextCommand(click.Command):
    """A command whose texts may begin with a dash and a space, as Markdown lists do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep such texts from being read as options: the newline before them is stripped later."""
        return super().parse_args(ctx, [f"\n{word}" if word.startswith("- ") else word for word in args])


def read_text_argument(given: str) -> str:
    """Return an argument's text; `-` reads it from stdin."""
    return sys.stdin.buffer.read().decode("utf-8", "replace") if given == "-" else given


def combine(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for options and arguments that several commands share, in this order."""

    def add(handler: F) -> F:
        # Decorators apply from the last to the first.
        for option in reversed(options):
            handler = option(handler)
        return handler

    return add
