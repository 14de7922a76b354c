"""Commands about the bank itself."""

from __future__ import annotations

from pathlib import Path

import click

from archivist.edges.cli.output import count, global_option, json_option, print_json, print_table
from archivist.edges.cli.session import Session


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@global_option
@json_option
@click.pass_obj
def init(session: Session, folder: Path | None, is_global: bool, as_json: bool) -> None:
    """Make a bank in FOLDER (here by default), or the global bank; one that exists is left as it is."""
    from archivist.bank import Bank
    from archivist.places import bank_file, home_folder

    place = home_folder() if is_global else folder or Path(session.bank_path or ".")
    existed = bank_file(place).is_file()
    with Bank.open(place, actor=session.actor()) as bank:
        path = bank.path
    keep_out_of_git(path.parent)
    if as_json:
        print_json({"bank": str(path), "created": not existed})
    else:
        click.echo(f"{'There is a bank already' if existed else 'Made a bank'}: {path}")


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
        held = bank.status()
    if as_json:
        print_json(held)
        return
    print_table(("What", "Count"), [(key.replace("_", " "), value) for key, value in held.items()])


@click.command()
@click.argument("name", metavar="ID")
@global_option
@json_option
@click.pass_obj
def undo(session: Session, name: str, is_global: bool, as_json: bool) -> None:
    """Take the last change of the record ID (m-001, or any record's id) back. Again goes further back."""
    with session.bank(is_global=is_global) as bank:
        restored = bank.undo(name)
        last = bank.history(restored.id if restored else name)[-1] if restored else None
    if as_json:
        print_json({"id": name, "exists": restored is not None, "verb": last.entry.verb if last else "undo"})
    else:
        click.echo(f"{name}: taken back" if restored else f"{name}: taken back, it no longer exists")


@click.command()
@global_option
@json_option
@click.pass_obj
def verify(session: Session, is_global: bool, as_json: bool) -> int:
    """Check every seal of the ledger and every record against it; exit 1 when something does not fit."""
    with session.bank(is_global=is_global) as bank:
        found = bank.verify()
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
        click.echo(f"The ledger is whole: {count(found.entries, 'change')}, {found.erased} erased.")
    else:
        for problem in found.problems:
            click.echo(problem)
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
    click.echo(kind(cli, {}, "archivist", "_ARCHIVIST_COMPLETE").source())
