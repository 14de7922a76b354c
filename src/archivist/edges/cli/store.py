"""Commands about where banks are kept: set up a server or a cluster, move a bank there and back."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archivist import paths
from archivist.clock import system_clock
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, note, progress
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import InputError
from archivist.trust import note_server_bank, server_bank_of

if TYPE_CHECKING:
    from archivist.store.move import MoveResult

_MOVING = ".moving"


@click.group(cls=CommandGroup)
def store() -> None:
    """Keep banks on a PostgreSQL server: set it up, look at it, move a bank there and back."""


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
    """Say where this project's bank is kept, and what the server holds of it."""
    with session.bank(is_global=is_global, folder=Path.cwd()) as bank:
        is_well, engine = bank.store.check_engine()
        server, file = bank.store.server, bank.path
    view: dict[str, Any] = {"bank": server or str(file), "engine": engine, "ok": is_well}
    lines = [f"bank    {server or file}", f"engine  {engine}"]
    rows: list[tuple[str, int]] = []
    if server:
        from archivist.store.postgres.maintenance import describe_server

        found = describe_server(f"{_require_server(session).partition('#')[0]}#{server_bank_of(file)}")
        rows = [(name.replace("_", " "), count) for name, count in found.rows.items() if count]
        view |= {"rows": found.rows, "bytes": found.total_bytes, "indexes": found.indexes}
        lines.append(f"size    {found.total_bytes / 1024 / 1024:.1f} MB, all banks of the database together")
        lines += [f"index   {name}" for name in found.indexes]
    else:
        view["bytes"] = file.stat().st_size
        lines.append(f"size    {file.stat().st_size / 1024 / 1024:.1f} MB")
    tables = [(("Table", "Rows"), rows)] if rows else []
    return Answer(view, "\n".join(lines), tables=tables, code=0 if is_well else 1)


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
    text = (
        f"moved {pluralize(moved.rows, 'row')}, {pluralize(moved.entries, 'ledger entry')} with their chain,"
        f" {pluralize(moved.vectors, 'vector')}: {where}"
    )
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

    server = _require_server(session).partition("#")[0]
    name = name or _name_of_file(file)
    with (
        session.bank(is_global=file.parent == paths.home_folder()) as bank,
        closing(PostgresStore.open(f"{server}#{name}", create=True)) as target,
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
    from archivist.bank import Bank
    from archivist.files.git import exclude_from_git, keep_out_of_git
    from archivist.store.sqlite.store import SqliteStore

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
    from archivist.store.move import MoveResult, MoveStep, copy_bank

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
    from archivist.config.sources import server_url

    if url := server_url(session.load_settings(session.find_bank_path()).config):
        return url
    raise InputError(
        "no server is named",
        hint="set ARCHIVIST_STORE=postgresql://HOST/DATABASE, or archivist config set --global store.url URL",
    )


def _name_of_file(file: Path) -> str:
    """Return a name that no other file has, and that a second try finds again."""
    from archivist.cold_start import blake2s

    about = f"{os.uname().nodename} {os.path.realpath(file)} {file.stat().st_ino}"
    return paths.name_on_server(file, "", blake2s(os.fsencode(about), digest_size=6).hexdigest())
