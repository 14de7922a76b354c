"""Commands that move memory in files."""

from __future__ import annotations

from pathlib import Path

import click

from archivist.edges.cli.doctor import embed
from archivist.edges.cli.output import (
    global_option,
    json_option,
    note,
    pluralize,
    print_json,
    report_problems,
    say,
)
from archivist.edges.cli.session import Session


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--shape",
    type=click.Choice(["cross-run", "reflective"]),
    default="cross-run",
    show_default=True,
    help="Spelling of the lessons: snake_case or camelCase.",
)
@global_option
@json_option
@click.pass_obj
def export(session: Session, folder: Path, shape: str, is_global: bool, as_json: bool) -> None:
    """Write lessons, archive, episodes and audit as JSON lines into FOLDER."""
    from archivist.exchange.files import LessonFormat

    with session.bank(is_global=is_global) as bank:
        written = bank.exchange.export(folder, shape=LessonFormat(shape))
    if as_json:
        print_json({"folder": str(folder), "lines": written})
        return
    for name, lines in written.items():
        say(f"{folder / name}  {pluralize(lines, 'line')}")


@click.command("import")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Refuse everything when one line is bad.")
@global_option
@json_option
@click.pass_obj
def import_(session: Session, paths: tuple[Path, ...], strict: bool, is_global: bool, as_json: bool) -> int:
    """Take lessons, episodes and audit records in from files, or from all *.jsonl of a folder.

    Both spellings are known by their content. A record that is here already is merged.
    """
    with session.bank(is_global=is_global) as bank:
        taken = bank.exchange.import_files(_expand_files(paths), is_strict=strict)
        embed(bank)
    if as_json:
        print_json(
            {
                "created": taken.created,
                "changed": taken.changed,
                "unchanged": taken.unchanged,
                "renumbered": taken.renumbered,
                "skipped": [str(problem) for problem in taken.problems],
            }
        )
    else:
        known = ("lessons", "episodes", "briefs", "verdicts")
        for kind in dict.fromkeys((*known, *taken.created, *taken.changed, *taken.unchanged)):
            counts = [taken.created.get(kind, 0), taken.changed.get(kind, 0), taken.unchanged.get(kind, 0)]
            if any(counts):
                say(f"{kind}: {counts[0]} new, {counts[1]} merged, {counts[2]} the same")
        for old, new in taken.renumbered.items():
            note(f"{old} is {new} here: the number was taken")
    return report_problems(taken.problems)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def share(session: Session, folder: Path, as_json: bool) -> int:
    """Take in what other clones wrote to FOLDER, and write what this bank knows. Commit FOLDER to git."""
    with session.bank() as bank:
        done = bank.exchange.share(folder)
    if as_json:
        print_json(
            {
                "changed": done.changed,
                "written": done.written,
                "skipped": [str(problem) for problem in done.problems],
            }
        )
    else:
        say(
            f"took in {pluralize(done.changed['lessons'], 'lesson')}"
            f" and {pluralize(done.changed['audit'], 'audit record')};"
            f" wrote {pluralize(done.written['lessons'], 'lesson')} to {folder}"
        )
    return report_problems(done.problems)


def _expand_files(paths: tuple[Path, ...]) -> list[Path]:
    from archivist.errors import InputError

    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(path.glob("*.jsonl"))
        if not inside:
            raise InputError(f"{str(path)!r} has no *.jsonl files")
        files += [file for file in inside if file.stat().st_size]
    return files
