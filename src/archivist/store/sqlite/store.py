"""The embedded engine: one SQLite file per bank, through apsw."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import apsw

from archivist.errors import (
    BankDamagedError,
    BankError,
    BankFullError,
    BankLockedError,
    BankReadOnlyError,
    BankTooNewError,
    NoBankError,
    NotABankError,
    StateError,
)
from archivist.files.locks import find_lock_problem, is_checked, remember_checked
from archivist.files.write import queue_at_folder
from archivist.paths import home_folder
from archivist.records import Actor
from archivist.store.rows import DECODING_ERRORS
from archivist.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration
from archivist.store.sqlite.search import WEIGHED, SqliteReader, VectorCache, score_bm25

if TYPE_CHECKING:
    from archivist.store.results import Damage
    from archivist.store.sqlite.erase import SqliteEraser
    from archivist.store.sqlite.writer import SqliteWriter
    from archivist.trust import LogNote

    # Identity (device and inode), size and time of a file; no identity when there is none.
    _FileStamp = tuple[tuple[int, int] | None, int, int]
    _FileStamps = tuple[_FileStamp, _FileStamp]

BUSY_TIMEOUT_S = 30.0
_ONE_NAME = "leave one of the two out, then try again"
_READS_AT_REST = 3


class SqliteStore:
    """A bank in one file. Other processes may use the same file at the same time.

    The methods are described in `store.protocol.Store`.
    """

    server = ""

    def __init__(
        self, path: Path, busy_timeout_s: float, migrations: Sequence[Migration], log: LogNote | None
    ) -> None:
        self.path = path
        self._log = log
        self._busy_timeout_s = busy_timeout_s
        self._migrations = migrations
        self._lock = RLock()
        self._writer: SqliteWriter | None = None
        self.is_reading = False
        self._identity = _file_stamp(path)[0]
        self._reopened = 0
        self._unexplained = 0

    @classmethod
    def open(
        cls,
        path: Path,
        log: LogNote | None = None,
        *,
        create: bool = False,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> SqliteStore:
        """Open a bank's file, making or upgrading it when needed."""
        if create and not path.exists():
            # Only its owner may read it: memories quote code and commands.
            try:
                path.parent.parent.mkdir(parents=True, exist_ok=True)
                path.parent.mkdir(mode=0o700, exist_ok=True)
                _require_locks(path)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as error:
                raise BankReadOnlyError(str(path)) from error
        if not path.is_file():
            raise NoBankError(str(path))
        _require_locks(path)
        store = cls(path, busy_timeout_s, migrations, log)
        with map_errors(path, busy_timeout_s):
            try:
                store._connect(create=create)
            except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
                raise BankDamagedError(str(path), str(error)) from error
        return store

    def _connect(self, *, create: bool = False) -> None:
        """Open a connection, and check and upgrade what is in the file."""
        path = self.path
        self._db = connect(path, apsw.SQLITE_OPEN_READWRITE, self._busy_timeout_s)
        # The stamps of the files when they could only be opened as immutable.
        self._stamps: _FileStamps | None = None
        try:
            self._db.execute("PRAGMA schema_version").fetchall()
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError) as error:
            # Without room the index of the log cannot be made.
            result = getattr(error, "extendedresult", 0)
            if isinstance(error, apsw.IOError) and result != apsw.SQLITE_IOERR_SHMSIZE:
                raise
            # A write-ahead log needs a writable folder with room; without, a bank at rest is still readable.
            # Others may write it from elsewhere, which only the stamps of the files show.
            self._db.close()
            self._stamps = _file_stamps(path)
            self._db = connect(path, apsw.SQLITE_OPEN_READONLY, self._busy_timeout_s, "?immutable=1")
        try:
            self._db.execute(
                "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF"
            )
            application_id = self._query_int("PRAGMA application_id")
            if application_id != APPLICATION_ID:
                ours = "SELECT count(*) FROM sqlite_schema WHERE name IN ('ledger', 'migrations')"
                if self._query_int(ours) == 2:
                    raise BankDamagedError(str(path), "the header: it does not name Archivist as the owner")
                if application_id or self._query_int("SELECT count(*) FROM sqlite_schema"):
                    raise NotABankError(str(path), "it is another program's SQLite file")
                if not create:
                    raise NotABankError(str(path), "it is empty", is_damaged=True)
            self._migrate()
        except BaseException:
            self._db.close()
            raise
        self._db.register_fts5_function(WEIGHED, score_bm25)
        self._cache = VectorCache()
        self._reader = SqliteReader(self._db, self._cache)
        self._schema = self._known_version = -1

    def _migrate(self) -> None:
        db = self._db
        applied = self._applied_migrations()
        pending = [migration for migration in self._migrations if migration.name not in applied]
        if not pending:
            return
        if db.readonly("main"):
            hint = "an older Archivist made it: open it once where it can be written, or copy it there"
            raise BankReadOnlyError(str(self.path), hint=hint)
        from archivist.store.sqlite.writer import rebuild_derived

        # Changing the journal mode does not wait for other processes by itself.
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL").fetchall()
                break
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        needs_refill = False
        for migration in pending:
            with self._immediate_transaction(self._busy_timeout_s):
                # Another process may have applied it before we got the lock.
                if migration.name in self._applied_migrations():
                    continue
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, position INTEGER) STRICT"
                )
                migration.apply(db)
                db.execute("INSERT INTO migrations SELECT ?, count(*) FROM migrations", (migration.name,))
                needs_refill = needs_refill or migration.refills
                if migration is pending[-1] and needs_refill:
                    rebuild_derived(db)

    def _applied_migrations(self) -> set[str]:
        """Return the names of the applied migrations; refuse a bank with one that is not known here."""
        if not self._query_int("SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'"):
            return set()
        applied = [str(row[0]) for row in self._db.execute("SELECT name FROM migrations ORDER BY position")]
        known = {migration.name for migration in self._migrations}
        for name in applied:
            if name not in known:
                raise BankTooNewError(str(self.path), name)
        return known.intersection(applied)

    @contextmanager
    def _immediate_transaction(self, timeout_s: float) -> Iterator[None]:
        """Open a transaction that writes, when it is our turn; it fails when others write for too long."""
        db, log = self._db, self._log
        deadline = time.monotonic() + timeout_s
        # SQLite itself polls, ever more slowly: with eight writers one in a hundred waited over 100 ms.
        with queue_at_folder(self.path.parent, timeout_s):
            db.set_busy_timeout(max(0, int((deadline - time.monotonic()) * 1000)))
            try:
                db.execute("BEGIN IMMEDIATE")
            finally:
                db.set_busy_timeout(int(self._busy_timeout_s * 1000))
            try:
                if log is not None:
                    log.before_write()
                yield
                # The first migration has not made the ledger yet.
                entry = None
                with suppress(apsw.SQLError):
                    entry = self._query_int("SELECT max(seq) FROM ledger") if log is not None else None
                db.execute("COMMIT")
                if log is not None:
                    log.after_commit(entry)
            except BaseException:
                if not db.get_autocommit():
                    db.execute("ROLLBACK")
                raise

    def _query_int(self, sql: str) -> int:
        row = self._db.execute(sql).fetchone()
        value = row[0] if row else 0
        return value if isinstance(value, int) else 0

    @property
    def is_read_only(self) -> bool:
        """Say whether the file can only be read here."""
        return self._db.readonly("main")

    @property
    def is_same_bank(self) -> bool:
        """Say whether the file at the path is still the one that was opened."""
        return _file_stamp(self.path)[0] == self._identity

    @property
    def is_writing(self) -> bool:
        return self._writer is not None

    def version(self) -> int:
        with self._map_errors():
            self._reopen_if_changed()
            # Each connection counts for itself.
            return self._query_int("PRAGMA data_version") + (self._reopened << 32)

    @contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        with self._map_errors():
            if self._writer is not None or self.is_reading:
                yield self._writer or self._reader
                return
            self._reopen_if_changed()
            self._db.execute("BEGIN")
            self.is_reading = True
            try:
                self._require_current_schema()
                yield self._reader
                # An immutable file is read without a lock: what was read while it changed is no answer.
                if self._stamps is not None and self._stamps != _file_stamps(self.path):
                    raise BankError(f"{str(self.path)!r} was written while it was read", hint="try again")
            finally:
                self.is_reading = False
                self._db.execute("ROLLBACK")

    @contextmanager
    def writing(
        self, actor: Actor, now: datetime, *, lock_timeout_s: float | None = None
    ) -> Iterator[SqliteWriter]:
        """Open a transaction; within one, join it. The outermost block commits."""
        lock_timeout_s = self._busy_timeout_s if lock_timeout_s is None else lock_timeout_s
        with self._lock, map_errors(self.path, lock_timeout_s), self._explaining():
            from archivist.store.sqlite.writer import SqliteWriter

            if self._writer is not None:
                is_same = actor == self._writer.actor
                yield self._writer if is_same else SqliteWriter(self._db, self._cache, actor, now)
                return
            if self.is_read_only:
                raise BankReadOnlyError(str(self.path))
            with self._immediate_transaction(lock_timeout_s):
                self._require_current_schema()
                self._writer = SqliteWriter(self._db, self._cache, actor, now)
                try:
                    yield self._writer
                finally:
                    self._writer = None

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        """Let one thread use the connection, and map the driver's errors."""
        with self._lock, map_errors(self.path, self._busy_timeout_s), self._explaining():
            yield

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        if self._writer is not None or self.is_reading:
            yield
            return
        try:
            yield
        except (*DECODING_ERRORS, apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
            self.explain(error)
            raise

    def best_banks(self, *_asked: object) -> None:
        return None

    def explain(self, error: Exception) -> None:
        if id(error) == self._unexplained:
            return
        from archivist.store.sqlite.check import find_cause

        cause = ""
        # A closed connection, or one that others keep busy, cannot be asked.
        with self._lock, suppress(apsw.Error), self._fresh_view() as db:
            cause = find_cause(db, SqliteReader(db, VectorCache()), self._migrations)
        if cause:
            raise BankDamagedError(str(self.path), cause) from error
        # Whoever calls this store within a call of it asks again about the same error.
        self._unexplained = id(error)

    def check_engine(self) -> tuple[bool, str]:
        return True, f"SQLite {apsw.sqlite_lib_version()}, a file of its own"

    def find_damage(self) -> list[Damage]:
        from archivist.store.sqlite.check import find_damage

        with self._map_errors(), self._fresh_view() as db:
            return list(find_damage(db, self._migrations))

    @contextmanager
    def _fresh_view(self) -> Iterator[apsw.Connection]:
        """Give another connection, in one view: what other processes write meanwhile is no damage.

        A connection that has searched remembers how the text index was laid out, and after another process
        has written it SQLite's check calls the index damaged.
        """
        is_immutable = self._stamps is not None
        flags = apsw.SQLITE_OPEN_READONLY if is_immutable else apsw.SQLITE_OPEN_READWRITE
        options = "?immutable=1" if is_immutable else ""
        with closing(connect(self.path, flags, self._busy_timeout_s, options)) as db:
            db.execute("PRAGMA trusted_schema = OFF; BEGIN")
            yield db

    def _require_current_schema(self) -> None:
        """Refuse a bank that newer code upgraded since it was opened: its tables may differ.

        A bank that was restored meanwhile is another one under the same name: nothing known of it counts.
        """
        # The first statement of a view: from here on the version is of what is read.
        if (schema := self._query_int("PRAGMA schema_version")) != self._schema:
            self._cache, self._schema = VectorCache(), schema
            self._reader = SqliteReader(self._db, self._cache)
        elif self._db.data_version() == self._known_version:
            return
        if self._query_int("SELECT count(*) FROM migrations") != len(self._migrations):
            self._applied_migrations()
        self._known_version = self._db.data_version()

    def _reopen_if_changed(self) -> None:
        """Reopen a file that was opened as immutable and has been written since."""
        if self._stamps is None or self.is_reading or self._stamps == _file_stamps(self.path):
            return
        before = self._db, self._stamps
        try:
            self._connect()
        except BaseException:
            self._db, self._stamps = before
            raise
        self._reopened += 1
        before[0].close()

    @contextmanager
    def erasing(self, actor: Actor, now: datetime) -> Iterator[SqliteEraser]:
        from archivist.store.sqlite.erase import SqliteEraser

        with self.writing(actor, now):
            yield SqliteEraser(self._db, self._cache, actor, now)

    def settle(self) -> None:
        with self._map_errors(), suppress(apsw.BusyError):
            self._db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def setting_at_rest(self, name: str) -> str:
        log = self.path.with_name(f"{self.path.name}-wal")
        if not _file_stamp(log)[1]:
            with self.reading() as reader:
                return reader.setting(name)
        # Another process may be writing the log into the file just now.
        for _ in range(_READS_AT_REST):
            with (
                suppress(apsw.Error),
                closing(connect(self.path, apsw.SQLITE_OPEN_READONLY, 0, "?immutable=1")) as db,
            ):
                return SqliteReader(db, VectorCache()).setting(name)
        return ""

    def scrub(self) -> bool:
        from archivist.store.sqlite.erase import scrub

        with self._map_errors(), queue_at_folder(self.path.parent, self._busy_timeout_s):
            if self._log is not None:
                self._log.before_write(is_rewritten=True)
            is_clean = scrub(self._db)
            if self._log is not None:
                self._log.after_commit()
            return is_clean

    def count_raw_bytes(self, needles: Sequence[bytes]) -> dict[str, int]:
        from archivist.store.sqlite.erase import count_raw_bytes

        with self._map_errors():
            return count_raw_bytes(self._db, self.path, needles)

    def reindex(self) -> None:
        from archivist.store.sqlite.writer import rebuild_derived

        with self._map_errors(), self._immediate_transaction(self._busy_timeout_s):
            self._require_current_schema()
            self._db.execute("REINDEX")
            rebuild_derived(self._db)

    def back_up(self, target: Path) -> None:
        # It copies one state while others write, leaves deleted content behind, and the copy needs no log.
        with self._map_errors():
            self._db.execute("VACUUM INTO ?", (os.fsencode(target).decode("utf-8", "replace"),))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def _require_locks(path: Path) -> None:
    """Refuse a bank on a file system whose locks do not lock; it is tried once for each file system."""
    try:
        home = home_folder()
    except RuntimeError:
        return
    if is_checked(path.parent, home):
        return
    problem = find_lock_problem(path.parent)
    if problem:
        raise BankError(
            f"{str(path)!r} cannot be used safely: {problem}",
            hint="two programs that write at once would damage the bank: move it to a local disk",
        )
    if problem is not None:
        remember_checked(path.parent, home)


def _file_stamps(path: Path) -> _FileStamps:
    """Return stamps of a file and its log that change when one of them is written."""
    return _file_stamp(path), _file_stamp(path.with_name(f"{path.name}-wal"))


def _file_stamp(path: Path) -> _FileStamp:
    try:
        found = path.stat()
    except OSError:
        return None, 0, 0
    return (found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns


def connect(
    path: Path, flags: int, busy_timeout_s: float = BUSY_TIMEOUT_S, options: str = ""
) -> apsw.Connection:
    """Open a file by its name, or by its bytes where its name is not text."""
    is_text = str(path).isascii() or os.fsencode(path) == str(path).encode("utf-8", "replace")
    if is_text and not options:
        db = apsw.Connection(str(path), flags=flags)
    else:
        address = path.absolute().as_uri() + options
        db = apsw.Connection(address, flags=flags | apsw.SQLITE_OPEN_URI)
    db.set_busy_timeout(int(busy_timeout_s * 1000))
    return db


@contextmanager
def map_errors(path: Path, busy_timeout_s: float) -> Iterator[None]:
    """Map the driver's errors to ours, once, here."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise BankLockedError(str(path), busy_timeout_s) from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise BankReadOnlyError(str(path)) from error
    except apsw.NotADBError as error:
        raise NotABankError(str(path), "it is not a SQLite file", is_damaged=True) from error
    except BankDamagedError as error:
        if error.place:
            raise
        raise BankDamagedError(str(path), error.where, hint=error.hint) from error
    except (apsw.CorruptError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BankDamagedError(str(path), str(error)) from error
    except apsw.ConstraintError as error:
        # Two facts of one name in a file that is imported, for example.
        raise StateError(f"two records would have one name or number: {error}", hint=_ONE_NAME) from error
    except apsw.FullError as error:
        raise BankFullError(str(path)) from error
    except (apsw.CantOpenError, apsw.IOError) as error:
        hint = "check the disk, and the permissions of the file and its folder"
        raise BankError(f"cannot use {str(path)!r}: {error}", hint=hint) from error
