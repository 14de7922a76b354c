"""Commands that export, import and share memory as files."""

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
@click.option("--strict", is_flag=True, help="Import nothing when one line is bad.")
@global_option
@json_option
@click.pass_obj
def import_(session: Session, paths: tuple[Path, ...], strict: bool, is_global: bool, as_json: bool) -> int:
    """Import lessons, episodes and audit records from files, or from all *.jsonl of a folder.

    Both spellings are recognised by their content. A record that the bank knows is merged.
    """
    from archivist.errors import InputError

    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{str(path)!r} has no *.jsonl files")
        files += [file for file in inside if not path.is_dir() or file.stat().st_size]
    with session.bank(is_global=is_global) as bank:
        done = bank.exchange.import_files(files, is_strict=strict)
        embed(bank)
    counts = {"created": done.created, "changed": done.changed, "unchanged": done.unchanged}
    if as_json:
        skipped = [str(problem) for problem in done.problems]
        print_json({**counts, "renumbered": done.renumbered, "skipped": skipped})
        return report_problems(done.problems)
    known = ("lessons", "episodes", "briefs", "verdicts")
    for kind in dict.fromkeys((*known, *(kind for count in counts.values() for kind in count))):
        new, merged, same = (count.get(kind, 0) for count in counts.values())
        if new or merged or same:
            say(f"{kind}: {new} new, {merged} merged, {same} the same")
    for old, new_name in done.renumbered.items():
        note(f"{old} is {new_name} here: the number was taken")
    return report_problems(done.problems)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def share(session: Session, folder: Path, as_json: bool) -> int:
    """Import what other clones wrote to FOLDER, and write what this bank knows. Commit FOLDER to git."""
    with session.bank() as bank:
        done = bank.exchange.share(folder)
    if as_json:
        skipped = [str(problem) for problem in done.problems]
        print_json({"changed": done.changed, "written": done.written, "skipped": skipped})
        return report_problems(done.problems)
    say(
        f"imported {pluralize(done.changed['lessons'], 'lesson')}"
        f" and {pluralize(done.changed['audit'], 'audit record')};"
        f" wrote {pluralize(done.written['lessons'], 'lesson')} to {folder}"
    )
    return report_problems(done.problems)
