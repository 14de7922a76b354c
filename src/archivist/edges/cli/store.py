"""Commands about where the bank lies: move it to a server or a file, back it up, restore and salvage it."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist import paths, trust
from archivist.bank import Bank
from archivist.clock import system_clock
from archivist.cold_start import blake2s
from archivist.config.sources import server_url
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import EXIT_PARTIAL, Answer, embed, note, progress
from archivist.edges.cli.session import Session, note_finished_erasures
from archivist.edges.cli.wording import pluralize
from archivist.errors import ArchivistError, InputError, NoBankError, UntrustedBankError
from archivist.files.git import exclude_from_git, keep_out_of_git
from archivist.files.open import refuse_to_fill_disk
from archivist.store.move import MoveResult, MoveStep, copy_bank
from archivist.store.sqlite.copies import put_in_place, restore_backup, salvage_bank
from archivist.store.sqlite.salvage import SalvageAccount
from archivist.store.sqlite.store import SqliteStore
from archivist.trust import note_server_bank, server_bank_of

if TYPE_CHECKING:
    from archivist.store.postgres.maintenance import ServerStatus

_MOVING = ".moving"


store = CommandGroup(
    "store", help="Keep banks on a PostgreSQL server: set it up, look at it, move a bank there and back."
)


@options.command(store, "init", owners_of="bank")
def init_store(session: Session) -> Answer:
    """Make or upgrade the tables of the server, and index large banks. Run it again after an upgrade."""
    from archivist.store.postgres.maintenance import describe_server, set_up_server

    url = _require_server(session)
    steps, indexes = set_up_server(url)
    found = describe_server(url)
    done = f"{pluralize(len(steps), 'step')} taken" if steps else "nothing to do"
    lines = [f"{found.place}: {done}", *(f"indexed vectors: {name}" for name in indexes)]
    warnings = [f"archivist: {found.problem}"] if found.problem else []
    view = {"server": found.place, "steps": steps, "indexes": indexes, "problem": found.problem}
    return Answer(view, "\n".join(lines), warnings=warnings, code=1 if found.problem else 0)


@options.command(store, "status")
@options.is_global
def store_status(session: Session, is_global: bool) -> Answer:
    """Say where this project's bank is kept, and what the server holds of it; without a bank, the server."""
    if not is_global and session.find_bank_path() is None:
        return _server_status(session)
    with session.bank(is_global=is_global, folder=Path.cwd()) as bank:
        is_well, engine = bank.store.check_engine()
        server, file = bank.store.server, bank.path
    view: dict[str, Any] = {"bank": server or str(file), "engine": engine, "ok": is_well}
    lines = [f"bank    {server or file}", f"engine  {engine}"]
    rows: list[tuple[str, int]] = []
    if server:
        from archivist.store.postgres.maintenance import describe_server

        found = describe_server(paths.url_on_server(file, _require_server(session), server_bank_of(file)))
        rows = [(name.replace("_", " "), count) for name, count in found.rows.items() if count]
        view |= {"rows": found.rows, "bytes": found.total_bytes, "indexes": found.indexes}
        lines += _size_lines(found)
    else:
        view["bytes"] = file.stat().st_size
        lines.append(f"size    {file.stat().st_size / 1024 / 1024:.1f} MB")
    tables = [(("Table", "Rows"), rows)] if rows else []
    return Answer(view, "\n".join(lines), tables=tables, code=0 if is_well else 1)


def _server_status(session: Session) -> Answer:
    """Describe the server alone: who sets one up has no bank on it yet."""
    url = server_url(session.load_settings(None).config)
    if not url:
        raise NoBankError(session.bank_path or str(Path.cwd()))
    from archivist.store.postgres.maintenance import describe_server

    found = describe_server(url.partition("#")[0])
    engine = f"PostgreSQL {found.version}" + (f" with vector {found.vectors}" if found.vectors else "")
    view: dict[str, Any] = {"bank": None, "server": found.place, "engine": engine, "ok": not found.problem}
    view |= {"problem": found.problem, "bytes": found.total_bytes, "indexes": found.indexes}
    problem = [f"problem {found.problem}"] if found.problem else []
    lines = [f"server  {found.place}", f"engine  {engine}", *problem, *_size_lines(found)]
    return Answer(view, "\n".join(lines), code=1 if found.problem else 0)


def _size_lines(found: ServerStatus) -> list[str]:
    size = f"size    {found.total_bytes / 1024 / 1024:.1f} MB, all banks of the database together"
    return [size, *(f"index   {name}" for name in found.indexes)]


@options.command(store, "move", owners_of="bank")
@click.argument("to", type=click.Choice(["server", "file"]))
@click.option("--as", "name", metavar="NAME", default="", help="The bank's name on the server.")
@options.is_global
def move_store(session: Session, to: str, name: str, is_global: bool) -> Answer:
    """Copy this project's bank to the server, or into a file, check the copy, and use it from then on.

    The bank that was copied stays: the file under another name, the one on the server as it is. A move that
    was interrupted goes on where it was.
    """
    place = paths.home_folder() if is_global else session.require_bank_path()
    file = paths.bank_file(place).absolute()
    is_on_server = bool(server_bank_of(file))
    if is_on_server == (to == "server"):
        raise InputError(f"the bank is {'on the server' if is_on_server else 'a file'} already")
    if name and to == "file":
        raise InputError("--as names a bank on the server")
    moved, where = _move_to_server(session, file, name) if to == "server" else _move_to_file(session, file)
    rows, vectors = pluralize(moved.rows, "row"), pluralize(moved.vectors, "vector")
    text = f"moved {rows}, {pluralize(moved.entries, 'ledger entry')} with their chain, {vectors}: {where}"
    return Answer({"bank": where, **moved._asdict()}, text)


@options.command(store, "distribute", owners_of="bank")
@click.option("--shards", metavar="N", type=click.IntRange(1, 4096), default=64, show_default=True,
              help="Parts to divide the banks into: more than the nodes there will ever be.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the SQL and change nothing.")
def distribute_store(session: Session, shards: int, dry_run: bool) -> Answer:
    """Spread the banks of the server over the nodes of a Citus cluster, each bank on one node.

    Stop whatever writes to the server first. Run it again after an upgrade: it goes on with the tables that
    are not distributed yet.
    """
    from archivist.store.postgres.citus import distribute_tables, plan_distribution, script

    url = _require_server(session)
    if dry_run:
        planned = plan_distribution(url, shards)
        return Answer({"transactions": planned}, script(planned) or "nothing to do")
    tables = []
    for table in distribute_tables(url, shards):
        note(f"distributed {table}")
        tables.append(table)
    text = f"{pluralize(len(tables), 'table')} distributed" if tables else "nothing to do"
    return Answer({"tables": tables}, text)


def _move_to_server(session: Session, file: Path, name: str) -> tuple[MoveResult, str]:
    from archivist.store.postgres.store import PostgresStore

    server = _require_server(session)
    about = f"{os.uname().nodename} {os.path.realpath(file)} {file.stat().st_ino}"
    name = name or paths.name_on_server(file, "", blake2s(os.fsencode(about), digest_size=6).hexdigest())
    with (
        session.bank(is_global=file.parent == paths.home_folder()) as bank,
        closing(PostgresStore.open(paths.url_on_server(file, server, name), create=True)) as target,
    ):
        moved, where = _copy(bank.store, target), target.server
    note_server_bank(file, name)
    former = file.with_name(f"{file.name}.moved-{system_clock():%Y%m%dT%H%M%S}")
    file.replace(former)
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    note(f"hint: the file is kept as {former}")
    return moved, where


def _move_to_file(session: Session, file: Path) -> tuple[MoveResult, str]:
    if paths.is_file(file):
        raise InputError(f"{str(file)!r} is in the way", hint="it is not this bank: move it elsewhere")
    is_global = file.parent == paths.home_folder()
    part = file.with_name(file.name + _MOVING)
    with session.bank(is_global=is_global) as bank, closing(SqliteStore.open(part, create=True)) as target:
        moved, where = _copy(bank.store, target), bank.store.server
    part.replace(file)
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            part.with_name(part.name + ending).replace(file.with_name(file.name + ending))
    note_server_bank(file, "")
    if not is_global:
        exclude_from_git(file)
        keep_out_of_git(file)
        Bank.accept(file, session.actor(), is_known=True)
    note(f"hint: {where} stays as it is")
    return moved, str(file)


def _copy(source: Any, target: Any) -> MoveResult:
    steps = copy_bank(source, target, system_clock())
    step = next(steps)
    while isinstance(step, MoveStep):
        table, shown = step.table, 0
        with progress(step.total, table) as advance:
            while isinstance(step, MoveStep) and step.table == table:
                advance(step.copied - shown)
                shown, step = step.copied, next(steps)
    if not isinstance(step, MoveResult):
        raise InputError("the copy was not finished", hint="run it again")
    return step


def _require_server(session: Session) -> str:
    if url := server_url(session.load_settings(session.find_bank_path()).config):
        return url
    hint = "set ARCHIVIST_STORE=postgresql://HOST/DATABASE, or archivist config set --global store.url URL"
    raise InputError("no server is named", hint=hint)


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
    place = _bank_place(session, is_global, must_exist=False)
    if not paths.is_file(file):
        raise InputError(f"there is no backup {str(file)!r}", hint="name a file that archivist backup wrote")
    folders = session.load_settings(None).config.trust.folders
    with Bank.preview(file.absolute()) as copy:
        is_known = bool(trust.places_of(trust.mark_of(copy.store)))
    is_known = is_known or trust.is_accepted(file.absolute(), folders)
    if not is_known and not accept and not is_global:
        hint = "archivist restore FILE --accept restores it all the same"
        raise InputError(f"{str(file)!r} is no backup of a bank that you made or accepted here", hint=hint)
    written: dict[str, str] = {}
    # What killed erasures left is finished before the bank that says so is replaced.
    with suppress(ArchivistError), Bank.open(place, create=False, actor=session.actor()) as bank:
        note_finished_erasures(bank)
        written = bank.exchange.listed_files()
    kept = restore_backup(file, place, system_clock(), written)
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
@click.option("--replace", is_flag=True, help="Put it in the place of the damaged bank, which is kept.")
@options.is_global
def salvage(session: Session, target: Path | None, replace: bool, is_global: bool) -> Answer:
    """Copy everything that can be read of a damaged bank into a new one, and say what is lost.

    Records that are damaged or missing come from the ledger, which holds every state of them. The damaged
    file is not changed. The exit code is 7 when something is lost or does not fit the ledger.
    """
    place, now = _bank_place(session, is_global), system_clock()
    # What is salvaged of a bank that the user has not accepted is not accepted either.
    folders = session.load_settings(None).config.trust.folders
    is_ours = trust.is_accepted(place, folders)
    if is_ours:
        trust.refuse_foreign_log(place, folders)
        noted = trust.find_note(place)
        # A bank whose mark cannot be read is believed by its place.
        with suppress(ArchivistError), Bank.preview(place) as copy:
            is_ours = noted is None or trust.mark_of(copy.store) in ("", noted.get("mark"))
    if replace and not is_ours:
        raise UntrustedBankError(str(place))
    new = target or place.with_name(f"{place.name}.salvaged-{now:%Y%m%dT%H%M%S%f}")
    with suppress(FileNotFoundError):
        refuse_to_fill_disk([place], new.parent)
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
            note_finished_erasures(bank)
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
    return Answer(view, text, notes, code=0 if account.is_complete else EXIT_PARTIAL, warnings=warnings)


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
    if place is not None and trust.server_bank_of(paths.bank_file(place)):
        hint = "pg_dump and pg_restore copy the database; archivist store move file makes it a file"
        raise InputError("the bank is on a server, and not a file", hint=hint)
    if is_global:
        return paths.bank_file(paths.home_folder())
    if place is None and (must_exist or session.bank_path):
        place = Path(session.bank_path) if session.bank_path else None
        if must_exist and (place is None or not paths.bank_file(place).exists()):
            raise NoBankError(session.bank_path or str(Path.cwd()))
    file = paths.bank_file(place or Path.cwd()).absolute()
    trust.refuse_links(file)
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
