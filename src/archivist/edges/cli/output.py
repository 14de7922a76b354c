"""Print: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, TextIO

import click

from archivist.cold_start import lazy_pattern
from archivist.text import make_legible

EXIT_PARTIAL = 7
_PROBLEMS_SHOWN = 20
# No column is cut to less: the last one, and any between it and the first; then where that is too wide.
_LEAST = ((10, 5), (8, 3))
# What JSON leaves as it is and a terminal, or UTF-8, does not.
_OBEYED = lazy_pattern("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
global_option = click.option("--global", "is_global", is_flag=True, help="Use the global bank.")


def enum_choice(words: type[StrEnum]) -> click.Choice[str]:
    """Return the choice of a closed set's words; Click by itself would ask for the names of its members."""
    return click.Choice([word.value for word in words])


ended_choice = click.Choice(["success", "partial", "failed", "aborted"])


class DateTimeParam(click.DateTime):
    """A day or a time, as people write it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the moment, or say what one looks like."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no day: write it as 2026-04-03 or 2026-04-03T14:00:00", param, ctx)


def say(text: object = "", *, nl: bool = True) -> None:
    """Print a text to stdout; what came from somebody's log must not steer the reader's terminal."""
    click.echo(make_legible(str(text)), nl=nl)


def note(text: object) -> None:
    """Say something that is not data; where it cannot be said, the work goes on without."""
    try:
        click.echo(make_legible(str(text)), err=True)
    except OSError:
        close_quietly(sys.stderr)


def close_quietly(*streams: TextIO) -> None:
    """Point streams elsewhere, so that the interpreter's last flush is quiet too."""
    for stream in streams:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(value: object) -> None:
    """Print a value as JSON, exactly: what a terminal would obey is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    click.echo(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print left-aligned columns; on a terminal the last one is cut to fit, then the widest between."""
    import shutil

    lines = [list(headings), *([" ".join(make_legible(str(cell)).split()) for cell in row] for row in rows)]
    widths = [max(map(_display_width, column)) for column in zip(*lines, strict=True)]
    if sys.stdout.isatty():
        widths = fit_widths(widths, shutil.get_terminal_size().columns)
    for line in lines:
        cells = (_pad_cell(cell, width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def fit_widths(widths: Sequence[int], columns: int) -> list[int]:
    """Return the widths of columns that stand in a line; the first, by which a row is called, stays whole."""
    fits = [_trim_widths(widths, columns, *least) for least in _LEAST]
    return next((fit for fit in fits if sum(fit) + 2 * (len(fit) - 1) <= columns), fits[0])


def _trim_widths(widths: Sequence[int], columns: int, least_last: int, least_between: int) -> list[int]:
    fit = list(widths)
    last = len(fit) - 1
    for place in (last, *sorted(range(1, last), key=lambda each: -widths[each])):
        over = sum(fit) + 2 * last - columns
        least = least_last if place == last else least_between
        fit[place] = max(fit[place] - max(0, over), min(fit[place], least))
    return fit


def _pad_cell(cell: str, width: int) -> str:
    """Return a cell that takes up a width: cut where it is wider, filled up where it is not."""
    taken = _display_width(cell)
    if taken > width:
        while cell and _display_width(cell) >= width:
            cell = cell[:-1]
        cell += "…"
        taken = _display_width(cell)
    return cell + " " * (width - taken)


def _display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes up."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


@contextmanager
def progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show progress on a terminal and nothing elsewhere; the function given moves it so many steps on."""
    if not sys.stderr.isatty() or length < 2:
        yield lambda _steps: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield bar.update


def report_problems(problems: Sequence[object]) -> int:
    """Name the lines that were left out; return the exit code that says whether there were any."""
    for problem in problems[:_PROBLEMS_SHOWN]:
        note(f"archivist: {problem}")
    if len(problems) > _PROBLEMS_SHOWN:
        note(f"archivist: … and {len(problems) - _PROBLEMS_SHOWN} more")
    if problems:
        left_out = "1 line was" if len(problems) == 1 else f"{len(problems)} lines were"
        note(f"hint: {left_out} left out; --strict refuses the whole")
    return EXIT_PARTIAL if problems else 0


def pluralize(number: int, noun: str) -> str:
    """Return `1 lesson` or `3 lessons`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
