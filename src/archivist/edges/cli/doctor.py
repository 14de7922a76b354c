"""The command that checks the bank and its clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import json_option, print_json, progress, say
from archivist.edges.cli.session import Session
from archivist.errors import ArchivistError, BankError, NoBankError
from archivist.paths import project_folder

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.doctor import Check


@click.command()
@click.option("--reindex", is_flag=True, help="Rebuild text index, vectors and counters.")
@json_option
@click.pass_obj
def doctor(session: Session, reindex: bool, as_json: bool) -> int:
    """Check the bank and the clients' connection to it; exit 1 on a warning."""
    if reindex:
        with session.bank() as bank:
            bank.doctor.reindex()
            embed(bank)
    found, error = _run_checks(session)
    if as_json:
        print_json({"checks": [{"name": each.name, "ok": each.is_well, "text": each.text} for each in found]})
    else:
        for each in found:
            say(f"{'ok  ' if each.is_well else 'warn'}  {each.name:<10}  {each.text}")
    if error is not None:
        raise error
    return 0 if all(each.is_well for each in found) else 1


def _run_checks(session: Session) -> tuple[list[Check], ArchivistError | None]:
    """Return every check; if the bank does not open, the error and the checks that need no bank."""
    from archivist.clock import system_clock
    from archivist.doctor import check_hook_failures, failed_check
    from archivist.paths import bank_file, unreadable_above

    try:
        with session.bank() as bank:
            return [
                *bank.doctor.health(),
                *_client_checks(_client_root(session, bank.root), bank.path.parent),
            ], None
    except ArchivistError as error:
        place = session.find_bank_path()
        file = bank_file(place) if place is not None else None
        root = _client_root(session, project_folder(file) if file is not None else Path.cwd())
        held = unreadable_above(Path.cwd()) if isinstance(error, NoBankError) else None
        reason = error
        if held is not None:
            reason = BankError(f"{str(held)!r} cannot be read", hint="check the permissions of the folder")
        shown = failed_check("bank", reason)
        folder = file.absolute().parent if file is not None else None
        hooks = check_hook_failures(folder, system_clock())
        return [shown, hooks, *_client_checks(root, folder)], reason


def _client_root(session: Session, root: Path) -> Path:
    """Return the folder whose settings a client reads that is opened here."""
    from archivist.paths import checkout_of

    return root if session.bank_path else checkout_of(Path.cwd())


def _client_checks(root: Path, log_folder: Path | None) -> list[Check]:
    from archivist.edges.install import chain
    from archivist.paths import home_folder

    try:
        home = Path.home()
    except RuntimeError:
        home = None
    return chain.check_chain(root.absolute(), home, (log_folder or home_folder()).absolute())


def embed(bank: Bank) -> int:
    """Make the missing vectors, with a progress bar on a terminal; return how many were made."""
    done = 0
    with progress(bank.vectors.count_unembedded(), "vectors") as advance:
        for step in bank.vectors.embed_waiting():
            advance(step.done - done)
            done = step.done
    return done
