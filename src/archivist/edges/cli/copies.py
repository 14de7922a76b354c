"""Commands about copies of the bank: back it up, restore it, salvage a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist import paths
from archivist.clock import system_clock
from archivist.edges.cli import options
from archivist.edges.cli.output import EXIT_PARTIAL, Answer, embed
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import ArchivistError, InputError, NoBankError, UntrustedBankError
from archivist.files.git import keep_out_of_git
from archivist.trust import (
    find_note,
    is_accepted,
    mark_of,
    places_of,
    refuse_foreign_log,
    refuse_links,
    server_bank_of,
)

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.sqlite.salvage import SalvageAccount

# A screenful; the ledger of the new bank has the whole list.
_LISTED = 20


@options.bank_command(has_global=True)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(bank: Bank, file: Path, force: bool) -> Answer:
    """Copy the bank as it is now into FILE and check the copy. Others may go on writing meanwhile."""
    bank.doctor.back_up(file, is_forced=force)
    size = file.stat().st_size
    return Answer({"file": str(file), "bytes": size}, f"{file}: {size / 1024 / 1024:.1f} MB, checked")


@options.command(owners_of="bank")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--accept", is_flag=True, help="Restore a backup of a bank that was not made here by you.")
@options.is_global
def restore(session: Session, file: Path, accept: bool, is_global: bool) -> Answer:
    """Check the backup FILE and put it in the bank's place. The bank that was there is kept beside it.

    Other processes may go on using the bank: they see the restored one from their next call on. The access
    tokens in a backup of a bank that was not made here are revoked.
    """
    from archivist.bank import Bank
    from archivist.store.sqlite.copies import restore_backup

    place = _bank_place(session, is_global, must_exist=False)
    if not paths.is_file(file):
        raise NoBankError(str(file))
    folders = session.load_settings(None).config.trust.folders
    with Bank.preview(file.absolute()) as copy:
        is_known = bool(places_of(mark_of(copy.store))) or is_accepted(file.absolute(), folders)
    if not is_known and not accept and not is_global:
        raise InputError(
            f"{str(file)!r} is no backup of a bank that you made or accepted here",
            hint="archivist restore FILE --accept restores it all the same",
        )
    kept = restore_backup(file, place, system_clock())
    if not is_global:
        Bank.accept(place, session.actor(), is_known=is_known)
    with session.bank(is_global=is_global) as bank:
        warnings = _embed_if_possible(bank)
    notes = [f"hint: the bank that was there is {kept}"] if kept else []
    if problem := keep_out_of_git(place):
        warnings = [*warnings, f"archivist: {problem}"]
    view = {"bank": str(place), "kept": str(kept) if kept else None}
    return Answer(view, f"restored {place} from {file}", notes, warnings=warnings)


@options.command(owners_of="bank")
@click.option("--to", "target", type=click.Path(path_type=Path), help="The new bank's file.")
@click.option(
    "--replace", is_flag=True, help="Put the new bank in the place of the damaged one, which is kept."
)
@options.is_global
def salvage(session: Session, target: Path | None, replace: bool, is_global: bool) -> Answer:
    """Copy everything that can be read of a damaged bank into a new one, and say what is lost.

    Records that are damaged or missing come from the ledger, which holds every state of them. The damaged
    file is not changed. The exit code is 7 when something is lost or does not fit the ledger.
    """
    from archivist.bank import Bank
    from archivist.store.sqlite.copies import put_in_place, salvage_bank

    place, now = _bank_place(session, is_global), system_clock()
    # What is salvaged of a bank that the user has not accepted is not accepted either.
    folders = session.load_settings(None).config.trust.folders
    is_ours = is_accepted(place, folders)
    if is_ours:
        refuse_foreign_log(place, folders)
        is_ours = _has_own_mark(place)
    if replace and not is_ours:
        raise UntrustedBankError(str(place))
    new = target or place.with_name(f"{place.name}.salvaged-{now:%Y%m%dT%H%M%S%f}")
    account = salvage_bank(place, new, now)
    kept = None
    if replace:
        kept = put_in_place(new, place, "damaged", now)
        new.unlink(missing_ok=True)
        new = place
    elif is_ours:
        Bank.accept(new, session.actor())
    warnings = []
    if is_ours:
        with Bank.open(new, create=False, actor=session.actor()) as bank:
            warnings = _embed_if_possible(bank)
    view = {**account._asdict(), "bank": str(new), "is_complete": account.is_complete}
    view["kept"] = str(kept) if kept else None
    if kept:
        notes = [f"hint: the damaged file is {kept}"]
    elif account.is_complete and not account.restored and not account.damaged_pages:
        notes = [f"{place} is whole: nothing needs to be salvaged"]
    else:
        notes = ["hint: archivist salvage --replace puts such a bank in place of the damaged one"]
    text = "\n".join([f"{'replaced' if kept else 'wrote'} {new}", *_account_lines(account)])
    code = 0 if account.is_complete else EXIT_PARTIAL
    return Answer(view, text, notes, code=code, warnings=warnings)


def _has_own_mark(place: Path) -> bool:
    """Say whether a bank's mark is the noted one; one that cannot be read is believed by its place."""
    from archivist.bank import Bank

    note = find_note(place)
    try:
        with Bank.preview(place) as copy:
            return note is None or mark_of(copy.store) in ("", note.get("mark"))
    except ArchivistError:
        return True


def _embed_if_possible(bank: Bank) -> list[str]:
    """Make the missing vectors; an embedder that does not answer can make them later."""
    try:
        embed(bank)
    except ArchivistError as error:
        return [f"archivist: no vectors yet: {error.message}", "hint: archivist doctor --reindex makes them"]
    return []


def _bank_place(session: Session, is_global: bool, *, must_exist: bool = True) -> Path:
    """Return the file of the bank, which need not open."""
    place = paths.home_folder() if is_global else session.find_bank_path()
    if place is not None and server_bank_of(paths.bank_file(place)):
        raise InputError(
            "the bank is on a server, and not a file",
            hint="pg_dump and pg_restore copy the database; archivist store move file makes it a file",
        )
    if is_global:
        return paths.bank_file(paths.home_folder())
    if place is None and (must_exist or session.bank_path):
        place = Path(session.bank_path) if session.bank_path else None
        if must_exist and (place is None or not paths.bank_file(place).exists()):
            raise NoBankError(session.bank_path or str(Path.cwd()))
    file = paths.bank_file(place or Path.cwd()).absolute()
    refuse_links(file)
    return file


def _account_lines(account: SalvageAccount) -> list[str]:
    """Say what a salvaged bank holds, where it comes from, and what is lost."""
    held = ", ".join(f"{count} {plural}" for plural, count in account.records.items()) or "no records"
    lines = [f"holds    {held}"]
    if account.restored:
        restored = ", ".join(pluralize(count, kind) for kind, count in account.restored.items())
        lines.append(f"ledger   {restored} restored from it")
    if account.unproven:
        unproven = pluralize(account.unproven, "record")
        lines.append(f"kept     {unproven} as read, which the ledger does not prove")
    lines += [f"lost     {what}" for what in account.lost[:_LISTED]]
    if len(account.lost) > _LISTED:
        lines.append(f"lost     … and {len(account.lost) - _LISTED} more, named in the last ledger entry")
    if account.lost_payloads:
        states = pluralize(account.lost_payloads, "earlier state")
        lines.append(f"lost     up to {states} of records in the ledger")
    if account.resealed_from is None:
        lines.append(f"chain    whole, {pluralize(account.entries, 'entry')}")
    else:
        lines.append(
            f"chain    broken at entry {account.resealed_from}, {account.lost_entries} of {account.entries}"
            " entries lost; sealed again from there"
        )
    if account.damaged_pages:
        shown = ", ".join(map(str, account.damaged_pages[:_LISTED]))
        lines.append(f"pages    {len(account.damaged_pages)} damaged: {shown}")
    return lines
