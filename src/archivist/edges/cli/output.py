"""How a command answers: data to stdout, the rest to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias, TypeVar

import click

from archivist.cold_start import lazy_pattern
from archivist.text import make_legible, pluralize

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.bank import Bank
    from archivist.errors import ArchivistError

R = TypeVar("R")
Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[object]]]
# Something was done, and something was left out: scripts tell it from failure (1) and from bad input (4).
EXIT_PARTIAL = 7
# A screenful; a file with one systematic mistake has thousands.
_PROBLEMS_SHOWN = 20
# In what was left out of a log: one finding of a review, whose other findings were read.
_OF_FINDING = lazy_pattern(r"\bfinding\b")
# The least widths of the last column, which says most, and of those between it and the first; the later pairs
# for narrower terminals.
_MIN_WIDTHS = ((40, 12), (10, 5), (8, 3))
# The id or the score at the beginning of a line, and how words of tables are coloured.
_NAME_OF_LINE = lazy_pattern(r"(?m)^[^\s│]\S*(?=  )")
# What stands before the words of a line: a heading of one word in a column, or the mark of a list.
_OPENING = lazy_pattern(r"[ ]*(?:\d{1,3}\. |- |(?:ok|warn)[ ]{2,4}\S{1,40}[ ]{2,}|\w{1,12}[ ]{2,})?")
_COLOURS = {"success": "green", "failed": "red", "aborted": "red", "partial": "magenta", "quarantined": "red"}
# Characters that JSON leaves as they are, but a terminal obeys or UTF-8 cannot hold.
_OBEYED = lazy_pattern("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Answer(NamedTuple):
    """What a command prints: a view with --json, else a text and tables on stdout and notes on stderr.

    Warnings, problems and the skipped lines of a file go to stderr in both cases. The last two set the exit
    code unless one is given; an error is raised after the output.
    """

    view: object
    text: str = ""
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    problems: Sequence[object] = ()
    skipped: Sequence[object] = ()
    code: int | None = None
    error: ArchivistError | None = None
    warnings: Sequence[str] = ()
    # So many lines of a terminal the last cell of a row may take.
    row_lines: int = 1
    # Whether a text that is longer than the terminal is shown in the pager.
    is_paged: bool = False


def print_answer(answer: Answer, as_json: bool) -> int:
    """Print an answer; return the exit code."""
    if as_json:
        print_json(answer.view)
    else:
        if answer.text:
            text = _NAME_OF_LINE.sub(lambda name: _in_colour(name[0], "yellow"), make_legible(answer.text))
            if not (answer.is_paged and _show_in_pager(text)):
                click.echo(text, nl=not text.endswith("\n"))
        for number, (headings, rows) in enumerate(answer.tables):
            if number:
                say()
            print_table(headings, rows, row_lines=answer.row_lines)
    notes = () if as_json else answer.notes
    findings = sum(_OF_FINDING.search(str(each)) is not None for each in answer.skipped)
    counts = {"finding": findings, "line": len(answer.skipped) - findings}
    left_out = " and ".join(pluralize(count, noun) for noun, count in counts.items() if count)
    left_out += " was" if len(answer.skipped) == 1 else " were"
    skipped = problem_lines(answer.skipped, f"{left_out} left out; --strict refuses the whole")
    for text in (*notes, *answer.warnings, *problem_lines(answer.problems), *skipped):
        note(text)
    if answer.error is not None:
        raise answer.error
    if answer.code is not None:
        return answer.code
    return EXIT_PARTIAL if answer.problems or answer.skipped else 0


def _show_in_pager(text: str) -> bool:
    """Show a text that is longer than the terminal in the user's pager; say whether it was shown."""
    import shlex
    from shutil import get_terminal_size, which
    from subprocess import run

    from archivist.files.open import repository_above

    width, height = get_terminal_size()
    lines = sum(max(1, -(-len(click.unstyle(line)) // width)) for line in text.splitlines())
    is_plain = not os.environ.get("PAGER") and os.environ.get("TERM", "dumb") == "dumb"
    if is_plain or not (sys.stdin.isatty() and is_terminal()) or lines < height:
        return False
    with suppress(OSError, ValueError):
        words = shlex.split(os.environ.get("PAGER", "")) or ["less", "-R"]
        program = which(words[0]) or ""
        # What a repository has on the PATH is not the user's.
        if os.path.isabs(program) and repository_above(os.path.dirname(program)) is None:  # noqa: PTH117, PTH120
            # Without an option of theirs less would show the colours as codes.
            options = {"LESS": "-R", **os.environ}
            return run([program, *words[1:]], input=text.encode(), env=options, check=False).returncode == 0  # noqa: S603
    return False


def is_terminal() -> bool:
    """Say whether a person reads stdout: lines are then cut to fit, and coloured."""
    return sys.stdout.isatty()


def _in_colour(text: str, colour: str | None) -> str:
    """Return a text in colour, on a terminal of somebody who wants it."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not is_terminal()
    return text if is_plain or not colour or not text else click.style(text, fg=colour)


def list_records(
    name: str,
    records: Sequence[R],
    view: Callable[[R], object] | None,
    *columns: str | tuple[str, str | Callable[[R], object]],
    empty: str = "",
    **fields: object,
) -> Answer:
    """Return records as a table; `empty` is the note when there are none, `fields` begin the view.

    Without a view the records are views. A column is a field, or a heading with a field or a function.
    """
    views = {**fields, name: [view(record) if view else record for record in records]}
    if not records and empty:
        return Answer(views, notes=(empty,))
    field: Callable[[str], Callable[[Any], object]] = attrgetter if view else itemgetter
    pairs = [(each.capitalize(), each) if isinstance(each, str) else each for each in columns]
    cells = [field(cell) if isinstance(cell, str) else cell for _, cell in pairs]
    headings = ["ID" if heading == "Id" else heading for heading, _ in pairs]
    return Answer(views, tables=[(headings, [[cell(record) for cell in cells] for record in records])])


def list_changes(views: Sequence[Mapping[str, Any]]) -> Answer:
    """Return the changes of one record as a table."""
    time = ("Time", lambda view: f"{view['time'][:19]}Z")
    return list_records("history", views, None, "seq", time, "actor", "verb", "change")


def say(text: object = "", *, nl: bool = True) -> None:
    """Print a text to stdout, without what would control the reader's terminal: it may come from a log."""
    click.echo(make_legible(str(text)), nl=nl)


def wrap_text(text: str) -> str:
    """Return a text with its long lines broken at words to fit the terminal; elsewhere as it is.

    What follows a line's heading or the mark of a list stands below its first word. Differences of files and
    other lines without words stay whole.
    """
    if not is_terminal():
        return text
    import textwrap

    wrap = textwrap.TextWrapper(terminal_columns(), break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.split("\n"):
        opening = _OPENING.match(line)
        wrap.subsequent_indent = " " * opening.end() if opening else ""
        is_whole = _display_width(line) <= wrap.width or line.startswith(("+", "-", "@@", "<!--"))
        lines += [line] if is_whole else wrap.wrap(line)
    return "\n".join(lines)


def say_wrapped(text: object = "", *, nl: bool = True) -> None:
    """Print a text to stdout, in lines that fit the terminal; work goes on when its reader has gone."""
    try:
        say(wrap_text(str(text)), nl=nl)
    except BrokenPipeError:
        close_quietly(sys.stdout)


def note(text: object) -> None:
    """Print a message to stderr as one line; a closed stderr is no reason to stop."""
    try:
        click.echo(make_legible(str(text).replace("\n", "\\n")), err=True)
    except OSError:
        close_quietly(sys.stderr)


class UnconfirmedError(click.ClickException):
    """Nobody can be asked: the call is well formed, so its usage is no help."""

    exit_code = click.UsageError.exit_code


def require_terminal(what: str, hint: str) -> None:
    """Where nobody can answer a question, end with how to agree without being asked."""
    if not sys.stdin.isatty():
        raise UnconfirmedError(f"{what} needs confirmation\nhint: {hint}")


def confirm(question: str, what: str, hint: str) -> bool:
    """Ask a person; where nobody can answer, say how to agree without being asked."""
    require_terminal(what, hint)
    return ask(question, "y/N", default="n") == "y"


def ask(question: str, choices: str, *, default: str, names: Collection[str] = ()) -> str:
    """Ask a person until the answer is one of the letters that the choices begin with; return the letter.

    Where there are names, an answer of some of them is returned as it is.
    """
    letters = choices.partition(",")[0].partition(" ")[0].lower().split("/")
    while True:
        answer = click.prompt(f"{question} [{choices}]", default=default, show_default=False, err=True)
        words = answer.lower().replace(",", " ").split()
        if words and set(words) <= set(names):
            return " ".join(words)
        letter = answer.strip().lower()[:1]
        if letter in letters:
            return letter
        note(f"please answer {' or '.join(letters)}{', or ' if names else ''}{' '.join(names)}")


def close_quietly(*streams: TextIO) -> None:
    """Point streams to the null device, so that the interpreter's last flush raises no error."""
    for stream in streams:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(value: object, *, is_line: bool = False) -> None:
    """Print a value as JSON, or as one line of it; what would control a terminal is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=None if is_line else 2)
    click.echo(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, row_lines: int = 1) -> None:
    """Print left-aligned columns; on a terminal the last one is cut to fit, then the widest between.

    Where a terminal is too narrow, what is the same in every row goes into the heading. The last cell of a
    row may take some lines.
    """
    import textwrap

    wrap = textwrap.TextWrapper(max_lines=row_lines, placeholder=" …", break_on_hyphens=False)

    def measure() -> list[int]:
        return [max(map(_display_width, column)) for column in zip(*lines, strict=True)]

    lines = [list(headings), *([" ".join(make_legible(str(cell)).split()) for cell in row] for row in rows)]
    if is_terminal() and len(lines) > 2 and sum(measure()) + 2 * len(headings) - 2 > terminal_columns():
        lines = _fold_same_columns(lines)
    widths = fit_widths(measure(), terminal_columns()) if is_terminal() else measure()
    for number, line in enumerate(lines):
        wrap.width = max(widths[-1], 2)
        first, *more = (wrap.wrap(line[-1]) if number and row_lines > 1 else None) or [line[-1]]
        cells = [_pad_cell(cell, width) for cell, width in zip([*line[:-1], first], widths, strict=True)]
        cells[-1] = cells[-1].rstrip()
        # The headings, the name of a row, and how something ended.
        colours = ["yellow", *map(_COLOURS.get, line[1:])] if number else ["cyan"] * len(line)
        click.echo("  ".join(map(_in_colour, cells, colours)).rstrip())
        for rest in more:
            click.echo(" " * (sum(widths[:-1]) + 2 * len(widths) - 2) + rest)


def _fold_same_columns(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table without the columns between that say the same in every row; the heading says it once."""
    between = range(1, len(lines[0]) - 1)
    same = [place for place in between if len({line[place] for line in lines[1:]}) == 1]
    folded = [[cell for place, cell in enumerate(line) if place not in same] for line in lines]
    said = [f"{lines[0][place].lower()} {lines[1][place]}" for place in same if lines[1][place]]
    if said:
        folded[0][-1] += f" (all: {', '.join(said)})"
    return folded


def terminal_columns() -> int:
    """Return how many columns the terminal has; 80 where nobody says."""
    import shutil

    return shutil.get_terminal_size().columns


def wrap_line(text: str, most: int = 3) -> list[str]:
    """Return a text as indented lines: on a terminal at most so many that fit into it, else one."""
    if not is_terminal():
        return [f"      {text}"]
    import textwrap

    wrap = textwrap.TextWrapper(terminal_columns(), max_lines=most, placeholder=" …")
    wrap.initial_indent = wrap.subsequent_indent = "      "
    return wrap.wrap(text)


def fit_widths(widths: Sequence[int], columns: int) -> list[int]:
    """Return widths that fit into a line; the first column stays whole, since it names the row."""
    last = len(widths) - 1
    tried = []
    for min_last, min_between in _MIN_WIDTHS:
        fit = list(widths)
        for place in (last, *sorted(range(1, last), key=lambda each: -widths[each])):
            excess = max(0, sum(fit) + 2 * last - columns)
            least = min_last if place == last else min_between
            fit[place] = max(fit[place] - excess, min(fit[place], least))
        if sum(fit) + 2 * last <= columns:
            return fit
        tried.append(fit)
    return tried[1]


def _pad_cell(cell: str, width: int) -> str:
    """Return a cell of exactly this width: cut or filled up."""
    if _display_width(cell) > width:
        # By characters: each may be two columns wide, or none.
        while cell and _display_width(cell) >= width:
            cell = cell[:-1]
        cell += "…"
    return cell + " " * (width - _display_width(cell))


def _display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes up."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


@contextmanager
def progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show progress on a terminal and nothing elsewhere; the function given advances it by some steps."""
    # A log file has no use for a bar, and one step no need of it.
    if not sys.stderr.isatty() or length < 2:
        yield lambda _steps: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield bar.update


def embed(bank: Bank) -> int:
    """Make the missing vectors, with a progress bar on a terminal; return how many were made."""
    done = 0
    with progress(bank.vectors.count_unembedded(), "vectors") as advance:
        for made in bank.vectors.embed_waiting():
            advance(made - done)
            done = made
    return done


def problem_lines(problems: Sequence[object], hint: str = "", *, most: int = _PROBLEMS_SHOWN) -> list[str]:
    """Return what was left out as lines for stderr, at most a few, and a hint."""
    lines = [f"archivist: {problem}" for problem in problems[:most]]
    if len(problems) > most:
        lines.append(f"archivist: … and {len(problems) - most} more")
    return [*lines, f"hint: {hint}"] if problems and hint else lines


def quote_path(path: str | Path) -> str:
    """Return a path as a command in this folder takes it."""
    import shlex
    from pathlib import Path

    here = Path.cwd()
    return shlex.quote(str(Path(path).relative_to(here) if Path(path).is_relative_to(here) else path))


def write_file(path: str, text: str) -> None:
    """Write a text that a command was asked to write, and say so."""
    from errno import ENOTDIR
    from pathlib import Path

    from archivist.errors import InputError
    from archivist.files.write import replace_file

    try:
        if not Path(path).absolute().parent.is_dir():
            raise NotADirectoryError(ENOTDIR, "there is no such folder")
        replace_file(Path(path), text.encode())
    except OSError as error:
        reason = error.strerror
        raise InputError(f"{path!r} cannot be written: {reason}", hint="name a file that can be") from None
    note(f"archivist: wrote {path}")
