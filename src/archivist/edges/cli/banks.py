"""Commands about the bank itself."""

from __future__ import annotations

from pathlib import Path

import click

from archivist.edges.cli.output import (
    global_option,
    json_option,
    note,
    pluralize,
    print_json,
    print_table,
    say,
)
from archivist.edges.cli.session import Session


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@global_option
@json_option
@click.pass_obj
def init(session: Session, folder: Path | None, is_global: bool, as_json: bool) -> None:
    """Make a bank in FOLDER (here by default), or the global bank; one that exists is left as it is."""
    from archivist.bank import Bank
    from archivist.errors import InputError
    from archivist.paths import bank_file, find_project, home_folder

    place = home_folder() if is_global else folder or Path(session.bank_path or ".")
    if not is_global and bank_file(place).absolute().parent == home_folder():
        raise InputError(
            "a bank here would be the global one, which belongs to no project",
            hint="archivist init --global makes it; for a project, archivist init in its own folder",
        )
    existed = bank_file(place).is_file()
    above = None if existed or is_global else find_project(place.absolute().parent)
    with Bank.open(place, actor=session.actor()) as bank:
        path = bank.path
    keep_out_of_git(path.parent)
    if as_json:
        print_json({"bank": str(path), "created": not existed})
    else:
        say(f"{'There is a bank already' if existed else 'Made a bank'}: {path}")
    if above is not None:
        note(f"hint: {bank_file(above)} is the bank of the folders around; in here this one counts instead")


def keep_out_of_git(folder: Path) -> None:
    """Leave a note for git: the database is each clone's own, the configuration is everybody's."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("memory.db*\nliveness.json\nhooks.*\n", encoding="utf-8")


@click.command()
@global_option
@json_option
@click.pass_obj
def status(session: Session, is_global: bool, as_json: bool) -> None:
    """Say what the bank holds."""
    with session.bank(is_global=is_global) as bank:
        held = bank.doctor.status()
    if as_json:
        print_json(held)
        return
    print_table(("What", "Count"), [(key.replace("_", " "), value) for key, value in held.items()])
    waiting = held["quarantined_lessons"]
    if waiting:
        from archivist.doctor import SHOW_QUARANTINED

        wait = "waits" if waiting == 1 else "wait"
        note(f"{pluralize(waiting, 'lesson')} {wait} for approval: {SHOW_QUARANTINED}")


@click.command()
@click.argument("name", metavar="ID")
@global_option
@json_option
@click.pass_obj
def undo(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Take the last change of the record ID (m-001, or any record's id) back. Again goes further back.

    What was removed is found by its name too: a fact's category/key, an artifact's path, a text's source.
    """
    bank, (bare,) = session.bank_of(name, is_global=is_global)
    with bank:
        restored = bank.ledger.undo(bare)
        last = bank.ledger.history(restored.id)[-1] if restored else None
    if as_json:
        print_json({"id": name, "exists": restored is not None, "verb": last.entry.verb if last else "undo"})
    else:
        say(f"{name}: taken back" if restored else f"{name}: taken back, it no longer exists")


@click.command()
@global_option
@json_option
@click.pass_obj
def verify(session: Session, is_global: bool, as_json: bool) -> int:
    """Check every seal of the ledger and every record against it; exit 1 when something does not fit."""
    with session.bank(is_global=is_global) as bank:
        found = bank.ledger.verify()
    if as_json:
        print_json(
            {
                "entries": found.entries,
                "erased": found.erased,
                "is_whole": found.is_whole,
                "problems": found.problems,
            }
        )
    elif found.is_whole:
        say(f"The ledger is whole: {pluralize(found.entries, 'change')}, {found.erased} erased.")
    else:
        for problem in found.problems:
            say(problem)
    return 0 if found.is_whole else 1


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: eval "$(archivist completion bash)"."""
    from click.shell_completion import get_completion_class

    from archivist.edges.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    say(kind(cli, {}, "archivist", "_ARCHIVIST_COMPLETE").source())
