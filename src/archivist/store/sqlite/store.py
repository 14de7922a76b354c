"""The embedded engine: one SQLite file per bank, through apsw."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import apsw

from archivist.errors import (
    BankDamagedError,
    BankError,
    BankLockedError,
    BankReadOnlyError,
    BankTooNewError,
    NoBankError,
    NotABankError,
)
from archivist.records import Actor
from archivist.store.sqlite.reader import SqliteReader
from archivist.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration
from archivist.store.sqlite.search import WEIGHED, VectorCache, score_bm25

if TYPE_CHECKING:
    from archivist.store.results import Sizes
    from archivist.store.sqlite.erase import SqliteEraser
    from archivist.store.sqlite.writer import SqliteWriter

    _Sight = tuple[tuple[int, int, int] | None, ...]
    # A connection, and how the files looked when they were opened as such that nobody writes.
    _Opened = tuple[apsw.Connection, _Sight | None]

BUSY_TIMEOUT_S = 30.0


class SqliteStore:
    """A bank in one file. Other processes may use the same file at the same time."""

    def __init__(
        self, path: Path, opened: _Opened, busy_timeout_s: float, migrations: Sequence[Migration]
    ) -> None:
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._migrations = migrations
        self._lock = RLock()
        self._writer: SqliteWriter | None = None
        self._is_reading = False
        self._identity = _file_identity(path)
        self._reopened = 0
        self._use_connection(opened)

    def _use_connection(self, opened: _Opened) -> None:
        self._db, self._sight = opened
        self._db.register_fts5_function(WEIGHED, score_bm25)
        self._cache = VectorCache()
        self._reader = SqliteReader(self._db, self._cache)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = False,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> SqliteStore:
        """Open a bank's file, making or upgrading it when needed."""
        if create and not path.exists():
            _make_file(path)
        if not path.is_file():
            raise NoBankError(str(path))
        with _map_errors(path, busy_timeout_s):
            opened = _open_connection(path, busy_timeout_s, migrations, create=create)
        return cls(path, opened, busy_timeout_s, migrations)

    @property
    def is_read_only(self) -> bool:
        """Say whether the file can only be read here."""
        return self._db.readonly("main")

    @property
    def is_same_bank(self) -> bool:
        """Say whether the file at the path is still the one that was opened."""
        return _file_identity(self.path) == self._identity

    @property
    def is_reading(self) -> bool:
        """Say whether this store is within a view of its own."""
        return self._is_reading

    @property
    def is_writing(self) -> bool:
        """Say whether this store is within a transaction of its own."""
        return self._writer is not None

    def version(self) -> int:
        """Return a number that is another one whenever somebody else has changed the bank since."""
        with self._lock, _map_errors(self.path, self._busy_timeout_s):
            self._reopen_if_changed()
            # Each connection counts for itself.
            return _query_int(self._db, "PRAGMA data_version") + (self._reopened << 32)

    @contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        """Open a view that does not change while it is read."""
        with self._lock, _map_errors(self.path, self._busy_timeout_s):
            if self._writer is not None or self._is_reading:
                yield self._writer or self._reader
                return
            self._reopen_if_changed()
            self._db.execute("BEGIN")
            self._is_reading = True
            try:
                self._require_current_schema()
                yield self._reader
                self._require_unchanged()
            finally:
                self._is_reading = False
                self._db.execute("ROLLBACK")

    @contextmanager
    def writing(
        self, actor: Actor, now: datetime, *, lock_timeout_s: float | None = None
    ) -> Iterator[SqliteWriter]:
        """Open a transaction; within one, join it. The outermost block commits."""
        lock_timeout_s = self._busy_timeout_s if lock_timeout_s is None else lock_timeout_s
        with self._lock, _map_errors(self.path, lock_timeout_s):
            if self._writer is not None:
                yield self._writer.as_actor(actor, now)
                return
            if self.is_read_only:
                raise BankReadOnlyError(str(self.path))
            from archivist.store.sqlite.writer import SqliteWriter

            self._begin_immediate(lock_timeout_s)
            self._writer = SqliteWriter(self._db, self._cache, actor, now)
            try:
                self._require_current_schema()
                yield self._writer
                self._db.execute("COMMIT")
            except BaseException:
                if not self._db.get_autocommit():
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._writer = None

    def _begin_immediate(self, lock_timeout_s: float) -> None:
        try:
            self._db.set_busy_timeout(int(lock_timeout_s * 1000))
            self._db.execute("BEGIN IMMEDIATE")
        finally:
            self._db.set_busy_timeout(int(self._busy_timeout_s * 1000))

    def _require_current_schema(self) -> None:
        """Refuse a bank that newer code upgraded since it was opened: its tables may be others."""
        if _query_int(self._db, "SELECT count(*) FROM migrations") != len(self._migrations):
            _refuse_newer(_applied_migrations(self._db), self.path, self._migrations)

    def _reopen_if_changed(self) -> None:
        """Open a file anew that was opened as one nobody writes, and has been written since."""
        if self._sight is None or self._is_reading or self._sight == _file_stamps(self.path):
            return
        before = self._db
        self._use_connection(_open_connection(self.path, self._busy_timeout_s, self._migrations))
        self._reopened += 1
        before.close()

    def _require_unchanged(self) -> None:
        """Refuse what was read, without a lock, of a file that somebody was writing."""
        if self._sight is not None and self._sight != _file_stamps(self.path):
            raise BankError(f"{str(self.path)!r} was written while it was read", hint="ask again")

    @contextmanager
    def erasing(self, actor: Actor, now: datetime) -> Iterator[SqliteEraser]:
        """Open a transaction that can also take away for good."""
        from archivist.store.sqlite.erase import SqliteEraser

        with self.writing(actor, now):
            yield SqliteEraser(self._db, self._cache, actor, now)

    def scrub(self) -> bool:
        """Leave no trace of what was deleted; False while another process stands in the way."""
        from archivist.store.sqlite import erase as sqlite_erase

        with self._lock, _map_errors(self.path, self._busy_timeout_s):
            return sqlite_erase.scrub(self._db)

    def count_raw_bytes(self, needles: Sequence[bytes]) -> dict[str, int]:
        """Count needles in the raw bytes of the file and its log."""
        from archivist.store.sqlite import erase as sqlite_erase

        with self._lock, _map_errors(self.path, self._busy_timeout_s):
            return sqlite_erase.count_raw_bytes(self._db, self.path, needles)

    def sizes(self) -> Sizes:
        """Return how large the bank is, and how much the records of each kind say."""
        from archivist.store.sqlite import erase as sqlite_erase

        with self.reading():
            return sqlite_erase.sizes(self._db)

    def run_sizes(self, excluded: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return the number and size of each run's events, besides those named."""
        from archivist.store.sqlite import erase as sqlite_erase

        with self.reading():
            return sqlite_erase.run_sizes(self._db, excluded)

    def reindex(self) -> None:
        """Build the text index and the tallies again from the records."""
        from archivist.store.sqlite.writer import rebuild_derived

        with self._lock, _map_errors(self.path, self._busy_timeout_s):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._require_current_schema()
                rebuild_derived(self._db)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_file(path: Path) -> None:
    """Create the file, and its folder, readable by its owner only: memories quote code and commands."""
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise BankReadOnlyError(str(path)) from error


def _file_stamps(path: Path) -> _Sight:
    """Return what is another one when a file or its log was written, seen from outside."""
    return _file_stamp(path), _file_stamp(path.with_name(f"{path.name}-wal"))


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _open_connection(
    path: Path, busy_timeout_s: float, migrations: Sequence[Migration], *, create: bool = False
) -> _Opened:
    db, sight = _open_file(path, int(busy_timeout_s * 1000))
    try:
        db.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF")
        _check_application_id(db, path, create)
        _migrate(db, path, migrations, busy_timeout_s)
    except BaseException:
        db.close()
        raise
    return db, sight


def _open_file(path: Path, busy_timeout_ms: int) -> _Opened:
    db, sight = _connect(path, apsw.SQLITE_OPEN_READWRITE), None
    db.set_busy_timeout(busy_timeout_ms)
    try:
        db.execute("PRAGMA schema_version").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # A write-ahead log needs a writable folder; a bank at rest on a read-only one is still readable.
        # Others may write it from elsewhere, of which nothing but the look of the files tells.
        db.close()
        sight = _file_stamps(path)
        db = _connect(path, apsw.SQLITE_OPEN_READONLY, "?immutable=1")
        db.set_busy_timeout(busy_timeout_ms)
    return db, sight


def _connect(path: Path, flags: int, how: str = "") -> apsw.Connection:
    """Open a file by its name, or by its bytes where it has a name that is no text."""
    is_text = str(path).isascii() or os.fsencode(path) == str(path).encode("utf-8", "replace")
    if is_text and not how:
        return apsw.Connection(str(path), flags=flags)
    return apsw.Connection(path.absolute().as_uri() + how, flags=flags | apsw.SQLITE_OPEN_URI)


def _check_application_id(db: apsw.Connection, path: Path, create: bool) -> None:
    application_id = _query_int(db, "PRAGMA application_id")
    if application_id == APPLICATION_ID:
        return
    if application_id or _query_int(db, "SELECT count(*) FROM sqlite_schema"):
        raise NotABankError(str(path), "it is another program's SQLite file")
    if not create:
        raise NotABankError(str(path), "it is empty")


def _migrate(db: apsw.Connection, path: Path, migrations: Sequence[Migration], busy_timeout_s: float) -> None:
    applied = _applied_migrations(db)
    _refuse_newer(applied, path, migrations)
    pending = [migration for migration in migrations if migration.name not in applied]
    if not pending:
        return
    if db.readonly("main"):
        hint = "an older Archivist made it: open it once where it can be written, or copy it there"
        raise BankReadOnlyError(str(path), hint=hint)
    from archivist.store.sqlite.writer import rebuild_derived

    _use_write_ahead_log(db, busy_timeout_s)
    needs_refill = False
    for migration in pending:
        db.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been quicker between the look and the lock.
            if migration.name not in _applied_migrations(db):
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, position INTEGER) STRICT"
                )
                migration.apply(db)
                db.execute("INSERT INTO migrations SELECT ?, count(*) FROM migrations", (migration.name,))
                needs_refill = needs_refill or migration.refills
                if migration is pending[-1] and needs_refill:
                    rebuild_derived(db)
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise


def _refuse_newer(applied: Sequence[str], path: Path, migrations: Sequence[Migration]) -> None:
    known = {migration.name for migration in migrations}
    for name in applied:
        if name not in known:
            raise BankTooNewError(str(path), name)


def _use_write_ahead_log(db: apsw.Connection, busy_timeout_s: float) -> None:
    # Changing the journal mode does not wait for other openers by itself.
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _applied_migrations(db: apsw.Connection) -> list[str]:
    if not _query_int(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'"):
        return []
    return [str(row[0]) for row in db.execute("SELECT name FROM migrations ORDER BY position")]


def _query_int(db: apsw.Connection, sql: str) -> int:
    row = db.execute(sql).fetchone()
    value = row[0] if row else 0
    return value if isinstance(value, int) else 0


@contextmanager
def _map_errors(path: Path, busy_timeout_s: float) -> Iterator[None]:
    """Map the driver's errors to ours, once, here."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise BankLockedError(str(path), busy_timeout_s) from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise BankReadOnlyError(str(path)) from error
    except apsw.NotADBError as error:
        raise NotABankError(str(path), "it is not a SQLite file") from error
    except (apsw.CorruptError, json.JSONDecodeError) as error:
        raise BankDamagedError(str(path), str(error)) from error
    except apsw.FullError as error:
        raise BankError(
            f"the disk is full: {str(path)!r}", hint="free some space; nothing was lost"
        ) from error
    except (apsw.CantOpenError, apsw.IOError) as error:
        raise BankError(f"cannot use {str(path)!r}: {error}") from error
