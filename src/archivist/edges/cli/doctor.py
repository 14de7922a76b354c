"""The command that looks whether all is well."""

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
@click.option("--reindex", is_flag=True, help="Build everything derived again: text index, vectors, tallies.")
@json_option
@click.pass_obj
def doctor(session: Session, reindex: bool, as_json: bool) -> int:
    """Check the bank and the way from your clients to it; --reindex makes index and vectors anew."""
    if reindex:
        with session.bank() as bank:
            bank.doctor.reindex()
            embed(bank)
    found, error = _run_checks(session)
    if as_json:
        print_json({"checks": [{"name": each.name, "ok": each.is_well, "text": each.text} for each in found]})
    else:
        for each in found:
            say(f"{'ok  ' if each.is_well else 'look'}  {each.name:<10}  {each.text}")
    if error is not None:
        raise error
    return 0 if all(each.is_well for each in found) else 1


def _run_checks(session: Session) -> tuple[list[Check], ArchivistError | None]:
    """Return every check; without a bank that opens, why it does not, and all that can be looked at still."""
    from archivist.clock import system_clock
    from archivist.doctor import check_hook_failures, failed_check
    from archivist.paths import bank_file

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
        reason = _unreadable_bank_error() if isinstance(error, NoBankError) else None
        shown = failed_check("bank", reason or error)
        folder = file.absolute().parent if file is not None else None
        return [
            shown,
            check_hook_failures(folder, system_clock()),
            *_client_checks(root, folder),
        ], reason or error


def _unreadable_bank_error() -> BankError | None:
    """Return that a bank's folder may not be looked into, if that is why there seems to be none."""
    from archivist.paths import unreadable_above

    held = unreadable_above(Path.cwd())
    if held is None:
        return None
    return BankError(f"{str(held)!r} cannot be read", hint="check the permissions of the folder")


def _client_root(session: Session, root: Path) -> Path:
    """Return the folder whose settings a client reads that is opened here; a named bank's is its own."""
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
