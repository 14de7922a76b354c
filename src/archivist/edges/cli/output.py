"""Print: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum

import click

EXIT_PARTIAL = 7
_PROBLEMS_SHOWN = 20

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
global_option = click.option("--global", "is_global", is_flag=True, help="Use the global bank.")


def word_choice(words: type[StrEnum]) -> click.Choice[str]:
    """Return the choice of a closed set's words; Click by itself would ask for the names of its members."""
    return click.Choice([word.value for word in words])


ended_choice = click.Choice(["success", "partial", "failed", "aborted"])


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print left-aligned columns; on a terminal the last one is cut to fit."""
    import shutil

    texts = [[" ".join(str(cell).split()) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in [list(headings), *texts]) for place in range(len(headings) - 1)]
    room = shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths) if sys.stdout.isatty() else 0
    for row in [list(headings), *texts]:
        last = row[-1] if room < 10 or len(row[-1]) <= room else row[-1][: room - 1] + "…"
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, last]).rstrip())


@contextmanager
def progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show progress on a terminal and nothing elsewhere; the function given moves it so many steps on."""
    if not sys.stderr.isatty() or length < 2:
        yield lambda _steps: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield bar.update


def note(text: str) -> None:
    """Say something that is not data."""
    click.echo(text, err=True)


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


def count(number: int, noun: str) -> str:
    """Return `1 lesson` or `3 lessons`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
