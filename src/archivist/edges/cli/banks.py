"""Commands about the bank itself."""

from __future__ import annotations

from pathlib import Path

import click

from archivist.edges.cli.options import Answer, command
from archivist.edges.cli.output import global_option, pluralize, say
from archivist.edges.cli.session import Session


@command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@global_option
def init(session: Session, folder: Path | None, is_global: bool) -> Answer:
    """Create a bank in FOLDER (the current one by default), or the global bank. An existing bank is kept."""
    from archivist.bank import Bank
    from archivist.errors import InputError
    from archivist.paths import bank_file, find_project, home_folder

    place = home_folder() if is_global else folder or Path(session.bank_path or ".")
    if not is_global and bank_file(place).absolute().parent == home_folder():
        raise InputError(
            "a bank here would be the global one, which belongs to no project",
            hint="archivist init --global creates it; for a project, run archivist init in its folder",
        )
    existed = bank_file(place).is_file()
    above = None if existed or is_global else find_project(place.absolute().parent)
    with Bank.open(place, actor=session.actor()) as bank:
        path = bank.path
    keep_out_of_git(path.parent)
    hint = f"hint: in this folder the new bank replaces {bank_file(above)}" if above else ""
    return Answer(
        {"bank": str(path), "created": not existed},
        f"{'There is a bank already' if existed else 'Made a bank'}: {path}",
        (hint,) if hint else (),
    )


def keep_out_of_git(folder: Path) -> None:
    """Write a .gitignore: the database belongs to one clone, the configuration is shared."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("memory.db*\nliveness.json\nhooks.*\n", encoding="utf-8")


@command()
@global_option
def status(session: Session, is_global: bool) -> Answer:
    """Print the number of records of each kind."""
    from archivist.doctor import SHOW_QUARANTINED

    with session.bank(is_global=is_global) as bank:
        held = bank.doctor.status()
    rows = [(name.replace("_", " "), count) for name, count in held.items()]
    waiting = held["quarantined_lessons"]
    verb = "waits" if waiting == 1 else "wait"
    hint = f"{pluralize(waiting, 'lesson')} {verb} for approval: {SHOW_QUARANTINED}"
    return Answer(held, notes=(hint,) if waiting else (), tables=[(("What", "Count"), rows)])


@command()
@click.argument("name", metavar="ID")
@global_option
def undo(session: Session, name: str, is_global: bool) -> Answer:
    """Undo the last change of the record ID (m-001, or the id of any record). Repeat to go further back.

    A removed record is also found by its name: category/key of a fact, path of an artifact, source of a text.
    """
    bank, (bare,) = session.bank_of(name, is_global=is_global)
    with bank:
        restored = bank.ledger.undo(bare)
        last = bank.ledger.history(restored.id)[-1] if restored else None
    view = {"id": name, "exists": restored is not None, "verb": last.entry.verb if last else "undo"}
    return Answer(view, f"{name}: undone" if restored else f"{name}: undone, it no longer exists")


@command()
@global_option
def verify(session: Session, is_global: bool) -> Answer:
    """Check the hash chain of the ledger, and each record against it; exit 1 on a mismatch."""
    with session.bank(is_global=is_global) as bank:
        found = bank.ledger.verify()
    view = {name: getattr(found, name) for name in ("entries", "erased", "is_whole", "problems")}
    text = f"The ledger is intact: {pluralize(found.entries, 'change')}, {found.erased} erased."
    if found.is_whole:
        return Answer(view, text)
    return Answer(view, "\n".join(found.problems), code=1)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: eval "$(archivist completion bash)"."""
    from click.shell_completion import get_completion_class

    from archivist.edges.cli.group import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    say(kind(cli, {}, "archivist", "_ARCHIVIST_COMPLETE").source())
