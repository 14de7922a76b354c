"""Copies of a bank's file: back it up while others write, salvage a damaged one, put a copy in its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from archivist.errors import (
    BankDamagedError,
    BankError,
    BankTooNewError,
    InputError,
    NoBankError,
    NotABankError,
)
from archivist.files.write import refuse_links, temporary_folder
from archivist.records.actor import Actor
from archivist.records.plain import canonical_json
from archivist.records.words import WRITTEN_FILES, ActorKind
from archivist.store.sqlite.pages import HEADER_BYTES, MAGIC, PAGE_BYTES, PageReader
from archivist.store.sqlite.salvage import Salvage, SalvageAccount
from archivist.store.sqlite.schema import APPLICATION_ID, MIGRATIONS
from archivist.store.sqlite.store import BUSY_TIMEOUT_S, SqliteStore, connect, map_errors
from archivist.trust import carry_mark, log_of, renew_note

if TYPE_CHECKING:
    from archivist.store.protocol import Store

_NEW = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_SIDE_FILES = ("-wal", "-shm")
_IMAGE = "image.db"
_NOTHING = (
    "archivist restore FILE brings a backup; else move the file away, and archivist init makes a new bank"
)


def write_backup(store: Store, file: Path, *, is_forced: bool = False) -> None:
    """Copy an open bank into a new file, while others read and write it, and check the copy."""
    refuse_links(file)
    if file.is_symlink() or (os.path.lexists(file) and not (is_forced and file.is_file())):
        hint = "name a new file" if file.is_symlink() or not file.is_file() else "--force replaces it"
        raise InputError(f"{str(file)!r} exists already", hint=hint)
    with _private_folder(file.parent) as folder:
        copy = folder / "copy.db"
        _make_empty_file(copy)
        store.back_up(copy)
        _check_copy(copy, "archivist salvage copies what can be read into a new bank")
        _move(copy, file, is_forced=is_forced)


def restore_backup(
    backup: Path, path: Path, now: datetime, written: Mapping[str, str] | None = None
) -> Path | None:
    """Put a backup in the place of a bank; return where what was there is kept, if anything was.

    A backup that is damaged, or newer than this version, is refused before anything is changed. Files that
    the replaced bank listed as `written` stay listed: an erasure must find them.
    """
    if not backup.is_file():
        raise NoBankError(str(backup))
    if os.path.lexists(path) and backup.samefile(path):
        raise InputError(
            f"{str(backup)!r} is the bank itself", hint="name a file that archivist backup wrote"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _private_folder(path.parent) as folder:
        copy = folder / "copy.db"
        _make_empty_file(copy)
        with map_errors(backup, BUSY_TIMEOUT_S):
            _copy_pages(backup, copy)
            with closing(connect(copy, _NEW)) as db:
                db.execute("PRAGMA journal_mode = WAL").fetchall()
        _check_copy(copy, "use an older backup, or archivist salvage", name=backup)
        if written:
            archivist = Actor(ActorKind.ARCHIVIST)
            with closing(SqliteStore.open(copy)) as store, store.writing(archivist, now) as writer:
                listed = writer.json_setting(WRITTEN_FILES) | dict(written)
                writer.set_setting(WRITTEN_FILES, canonical_json(listed))
        return put_in_place(copy, path, "replaced", now)


def salvage_bank(path: Path, target: Path, now: datetime) -> SalvageAccount:
    """Fill a new bank with everything that can be read of a damaged one, which stays as it is."""
    if not os.path.lexists(path):
        raise NoBankError(str(path))
    refuse_links(target)
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already", hint="name a new file with --to")
    with _private_folder(target.parent) as folder:
        account, bank = _salvage_best(path, folder, now)
        if not account.records and not account.entries:
            try:
                # A new bank holds nothing, and is whole.
                _check_copy(folder / _IMAGE, "")
            except (BankDamagedError, NotABankError):
                raise BankDamagedError(str(path), "nothing in it can be read", hint=_NOTHING) from None
        _check_copy(bank, "the damaged file was not changed")
        _move(bank, target)
    return account


def rewrite_bank(path: Path, now: datetime) -> None:
    """Write a bank's file anew from its own records; refuse when that would lose something.

    This mends what building indexes again cannot: damaged pages of indexes and of the list of free pages.
    """
    with _private_folder(path.parent) as folder:
        image = folder / _IMAGE
        with map_errors(path, BUSY_TIMEOUT_S):
            _copy_pages(path, image)
        account, bank = _salvage_image(image, path, folder, now)
        if account.restored or not account.is_complete:
            raise BankDamagedError(str(path), "more than its indexes; archivist verify names it")
        _check_copy(bank, "the damaged file was not changed")
        put_in_place(bank, path, "damaged", now)


def put_in_place(source: Path, path: Path, word: str, now: datetime) -> Path | None:
    """Make a bank's file hold what a closed file holds; return where what it held before is kept.

    SQLite itself overwrites the file in one transaction, so that other processes notice it as they notice
    any change, and no acknowledged write falls between the kept file and the new one. A file that SQLite
    cannot open serves nobody: it is renamed. Whoever opens the bank after a kill knows its log and its mark.
    """
    with closing(SqliteStore.open(source)) as store:
        carry_mark(path, store)
    kept = path.with_name(f"{path.name}.{word}-{now:%Y%m%dT%H%M%S%f}") if os.path.lexists(path) else None
    if kept is not None:
        if os.path.lexists(kept):
            raise InputError(f"{str(kept)!r} exists already", hint="try again")
        try:
            with map_errors(path, BUSY_TIMEOUT_S), _private_folder(path.parent) as folder:
                _overwrite(source, path, kept, folder / "kept.db")
        except (NotABankError, BankDamagedError, apsw.SQLError):
            kept.unlink(missing_ok=True)
            for end in ("", *_SIDE_FILES):
                with suppress(FileNotFoundError):
                    path.with_name(path.name + end).rename(kept.with_name(kept.name + end))
            _move(source, path)
        except BankError:
            kept.unlink(missing_ok=True)
            raise
    else:
        _move(source, path)
    # It is this user's own, and trusted if the bank before it was.
    path.chmod(0o600)
    with closing(SqliteStore.open(path, log_of(path))) as store:
        renew_note(path, store)
    return kept


# Files


@contextmanager
def _private_folder(parent: Path) -> Iterator[Path]:
    """Give a folder beside the target, so that what is ready there only needs a new name."""
    try:
        with temporary_folder(parent) as folder:
            yield folder
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{str(parent)!r} cannot be used: {reason}", hint="name another folder") from error


def _make_empty_file(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _move(source: Path, target: Path, *, is_forced: bool = False) -> None:
    """Give a finished file its name; only when forced in the place of another."""
    with source.open("rb") as file:
        os.fsync(file.fileno())
    if is_forced:
        source.replace(target)
        return
    try:
        # Unlike a rename, a hard link never replaces a file that was created meanwhile.
        os.link(source, target)
    except FileExistsError:
        raise InputError(f"{str(target)!r} exists already", hint="name a new file") from None
    except OSError:
        # A file system without hard links.
        source.rename(target)


def _check_copy(path: Path, hint: str, *, name: Path | None = None) -> None:
    """Refuse a finished copy that is damaged, or that this version cannot read."""
    try:
        with closing(SqliteStore.open(path)) as store:
            problems = [str(damage) for damage in store.find_damage()]
            with store.reading() as reader:
                problems += reader.verify().problems
    except BankTooNewError as error:
        raise BankTooNewError(str(name or path), error.unknown) from None
    except BankDamagedError as error:
        problems = [error.where]
    except NotABankError as error:
        raise NotABankError(str(name or path), error.reason) from None
    if problems:
        raise BankDamagedError(str(name or path), problems[0], hint=hint)


# Pages


def _copy_pages(source: Path, target: Path) -> None:
    """Copy all pages of one state of a file, and of the log beside it, as they are."""
    with (
        closing(connect(source, apsw.SQLITE_OPEN_READWRITE)) as old,
        closing(connect(target, _NEW)) as new,
    ):
        # Closing the last connection would write the log into the file, which stays as it is.
        old.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with new.backup("main", old, "main") as backup:
            backup.step(-1)


def _overwrite(source: Path, path: Path, kept: Path, part: Path) -> None:
    """Overwrite a bank in one transaction; the state before it goes to a file of its own first."""
    _make_empty_file(part)
    log = log_of(path)
    with (
        closing(connect(path, apsw.SQLITE_OPEN_READWRITE)) as live,
        closing(connect(source, apsw.SQLITE_OPEN_READWRITE)) as new,
    ):
        # Only beside a log can the old state be read while the new one is written; an empty file has none.
        live.execute("PRAGMA journal_mode = WAL; SELECT count(*) FROM sqlite_schema").fetchall()
        with live.backup("main", new, "main") as backup:
            # Others may note the log as theirs until the lock is taken; from then on pages go into it.
            for pages in (1, -1):
                if log is not None:
                    log.before_overwrite()
                backup.step(pages)
                if pages == 1:
                    # Nobody writes between the copy that is kept and the new state.
                    _copy_pages(path, part)
                    _move(part, kept)


def _salvage_best(path: Path, folder: Path, now: datetime) -> tuple[SalvageAccount, Path]:
    """Salvage a file with its log; without it where the log is what does not fit."""
    alone = folder / "alone.db"
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size and path.is_file():
        # Before SQLite opens the file, which would apply the log for good.
        shutil.copyfile(path, alone)
    found = _salvage_image(_copy_image(path, folder), path, folder, now)
    if found[0].is_complete or not alone.exists():
        return found
    without_log = _salvage_image(alone, path, folder, now)
    return without_log if without_log[0].is_complete and without_log[0].entries else found


def _copy_image(path: Path, folder: Path) -> Path:
    """Copy a damaged file with the committed part of its log; also one that SQLite does not open."""
    image = folder / _IMAGE
    try:
        _make_empty_file(image)
        _copy_pages(path, image)
    except apsw.Error:
        image.unlink()
        for end in ("", "-wal"):
            part = path.with_name(path.name + end)
            if part.is_file():
                shutil.copyfile(part, image.with_name(image.name + end))
        if image.is_file():
            _apply_log(image)
    return image


def _apply_log(image: Path) -> None:
    """Write the log of a copy into it, under a header that SQLite accepts."""
    with image.open("r+b") as file:
        start = bytearray(file.read(HEADER_BYTES).ljust(HEADER_BYTES, b"\x00"))
        pages = max(1, image.stat().st_size // PAGE_BYTES)
        start[:24] = MAGIC + b"\x10\x00\x02\x02\x00\x40\x20\x20"
        # The change counter and the version for which the number of pages is valid.
        start[24:28] = start[92:96] = b"\x00\x00\x00\x01"
        start[28:32] = pages.to_bytes(4)
        start[44:48], start[56:60] = (4).to_bytes(4), (1).to_bytes(4)
        start[68:72] = APPLICATION_ID.to_bytes(4)
        file.seek(0)
        file.write(start)
    with suppress(apsw.Error), closing(apsw.Connection(str(image))) as db:
        db.wal_checkpoint(None, apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _salvage_image(image: Path, path: Path, folder: Path, now: datetime) -> tuple[SalvageAccount, Path]:
    """Salvage a copy of a damaged file into a new bank beside it."""
    bank = folder / f"{image.stem}-salvaged.db"
    SqliteStore.open(bank, create=True).close()
    known = {migration.name for migration in MIGRATIONS}
    with ExitStack() as stack:
        db = stack.enter_context(closing(apsw.Connection(str(bank))))
        data: bytes | mmap = b""
        if image.is_file() and image.stat().st_size:
            file = stack.enter_context(image.open("rb"))
            data = stack.enter_context(mmap(file.fileno(), 0, access=ACCESS_READ))
        with closing(PageReader(data)) as pages:
            root = pages.schema_roots().get("migrations")
            rows = [row for _, found in pages.tree_pages(root) for row in found] if root else []
            applied = {str(row.values[0]) for row in rows if row.values}
            if known < applied:
                raise BankTooNewError(str(path), min(applied - known))
            # A payload is read before its entry may be.
            db.execute("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE")
            account = Salvage(db, pages, now, is_current=not applied or applied >= known).run()
            db.execute("COMMIT")
    return account, bank
