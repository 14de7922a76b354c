"""Run statements on PostgreSQL: the one place where they are issued, each for one bank.

A connection can die between any two statements. What a transaction has written is kept until it is committed
and written again on a new connection, if the bank is still as the transaction found it. So a restart of the
server is a delay, and not an error, unless somebody else was quicker.
"""

from __future__ import annotations

import os
import re
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from itertools import chain
from itertools import count as count_from
from struct import pack
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import Connection, RawCursor, RawServerCursor, errors
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier
from psycopg.types import TypeInfo

from archivist.errors import (
    BankDamagedError,
    BankError,
    BankFullError,
    BankLockedError,
    BankReadOnlyError,
    BankUnreachableError,
    InputError,
    NoBankError,
)
from archivist.store.ledger import GENESIS

SCHEMA = "archivist"
# The setting that row-level security compares with each row's bank.
BANK_SETTING = "archivist.bank"
# Those that one statement may search together, and what stands between their names.
BANKS_SETTING = "archivist.banks"
BETWEEN_BANKS = "\x1f"
_MOST_IDLE = 8
_CONNECT_S = 10
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 1.0
_STREAM_ROWS = 2_000
# Rows of one INSERT. Of 256 the server needs half the time of so many statements (decision 0025), and few
# sizes are few statements to prepare. COPY would be faster still, but PostgreSQL refuses it behind a policy.
_INSERT_SIZES = (256, 64, 16, 4, 1)
_PREPARED_FROM = 64
_AS_THEY_ARE = (str, bytes, type(None))
# By default the planner takes pages for those of a spinning disk, and reads 10,000 entries of a second index
# to spare 30 pages: counting a word took 1.0 ms, and 0.4 so, the exact scan of 10,000 vectors 7.8 and 3.2 ms.
_PLANNER = "-c random_page_cost=1.1 -c jit=off"
_HOST = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*)(?::\d*)?")
_QUOTED = re.compile(r'"(?!\w+")[^"]*"')
_ARRAY_QUOTED = re.compile(r'["\\]')
_BACKSLASHED = r"\\\g<0>"
# PostgreSQL holds no NUL in a text. These two characters are spelt with the second one, so that every text
# comes back as it was, and texts sort as before.
_ESCAPES = (("\x01", "\x01\x02"), ("\x00", "\x01\x01"))


class _TextDumper(Dumper):
    def dump(self, obj: Any) -> bytes:
        text: str = obj
        # Tested before it is encoded: a third of the time for the many short texts of a row.
        if "\x00" in text or "\x01" in text:
            for plain, spelt in _ESCAPES:
                text = text.replace(plain, spelt)
        return text.encode()


class _TextLoader(Loader):
    def load(self, data: Any) -> str:
        raw = bytes(data)
        if b"\x01" in raw:
            raw = raw.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")
        return raw.decode()


class HalfVector(bytes):
    """The half floats of a vector as they are packed for storage: little-endian, without a head."""


class _HalfDumper(Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, obj: Any) -> bytes:
        numbers = array("H", obj)
        numbers.byteswap()
        return len(numbers).to_bytes(2, "big") + b"\x00\x00" + numbers.tobytes()


class _HalfLoader(Loader):
    def load(self, data: Any) -> HalfVector:
        numbers = [float(number) for number in bytes(data)[1:-1].split(b",")]
        return HalfVector(pack(f"<{len(numbers)}e", *numbers))


def array_text(items: Iterable[str | int | None]) -> str:
    """Return numbers or texts as the text of an array: the driver would take a list apart item by item."""
    spelt = []
    for item in items:
        text = "NULL" if item is None else str(item)
        spelt.append(f'"{_ARRAY_QUOTED.sub(_BACKSLASHED, item)}"' if isinstance(item, str) else text)
    return f"{{{','.join(spelt)}}}"


def split_url(url: str) -> tuple[str, str]:
    """Return the server's part of a bank's URL and the bank's name: `…#NAME` or `?bank=NAME`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _refuse_url("a bracket is missing") from None
    login, _, hosts = parts.netloc.rpartition("@")
    # A sign of a password that is not encoded ends it early: the rest would be shown as the host or the port.
    if "@" in login or not all(map(_HOST.fullmatch, hosts.split(","))):
        raise _refuse_url("its host or port cannot be read")
    options = parse_qs(parts.query, keep_blank_values=True)
    named = options.pop("bank", [""])[-1] or unquote(parts.fragment)
    query = urlencode(options, doseq=True)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", query, "")), named


def _refuse_url(reason: str) -> InputError:
    hint = (
        "encode the special characters of a password: % is %25, @ is %40, # is %23, / is %2F, a space is %20"
    )
    return InputError(f"not a PostgreSQL URL: {reason}", hint=hint)


def describe_url(url: str) -> str:
    """Return where a server is, without the password."""
    try:
        found = conninfo_to_dict(split_url(url)[0])
    except (InputError, psycopg.ProgrammingError):
        return "postgresql"
    host, name = found.get("host") or "localhost", found.get("dbname") or found.get("user") or ""
    port = f":{found['port']}" if "port" in found else ""
    return f"postgresql://{host}{port}/{name}"


class Pool:
    """The idle connections of a process to one server.

    Without threads of its own, other than `psycopg_pool`: a command needs one connection, and hears of a
    wrong password at once.
    """

    _open: dict[tuple[int, str], Pool] = {}  # noqa: RUF012

    def __init__(self, url: str) -> None:
        self.url = url
        self._idle: list[Connection[Any]] = []
        self._lock = Lock()
        self.users = 0
        self._adapters = AdaptersMap(psycopg.adapters)
        self._adapters.register_dumper(str, _TextDumper)
        self._adapters.register_loader("text", _TextLoader)
        self._knows_vectors = False
        self.was_reached = False
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            # What libpq quotes may be of the password.
            raise _refuse_url(_QUOTED.sub("…", str(error).strip())) from None
        # Extensions lie in `public`, or where a host of databases keeps them. Citus then sends `SET LOCAL` on
        # to the worker that has the bank; any other server takes the name for a setting of the user's own.
        own = f"-c search_path={SCHEMA},public,extensions -c citus.propagate_set_commands=local {_PLANNER}"
        options = f"{given.get('options') or ''} {own}".strip()
        limits: dict[str, Any] = {"connect_timeout": given.get("connect_timeout") or _CONNECT_S}
        self._conninfo = make_conninfo(url, options=options, application_name="archivist", **limits)

    @classmethod
    def share(cls, url: str) -> Pool:
        """Return this process's pool for a server, and keep it open until it is closed as often."""
        # A process that was forked must not use its parent's connections.
        pool = cls._open.setdefault((os.getpid(), url), cls(url))
        pool.users += 1
        return pool

    def take(self, wait_s: float = 0.0) -> Connection[Any]:
        """Return an idle connection, or a new one; a server that is starting is waited for."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection, deadline = None, time.monotonic() + wait_s
        while connection is None:
            try:
                connection = Connection.connect(
                    self._conninfo, autocommit=True, context=self._adapters, cursor_factory=RawCursor
                )
            except psycopg.OperationalError as error:
                # The driver has no code of it. One that is down or named wrongly is not waited for.
                if "the database system is" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(2 * _FIRST_WAIT_S)
        self.was_reached = True
        self._register_vectors(connection)
        return connection

    def _register_vectors(self, connection: Connection[Any]) -> None:
        if self._knows_vectors or (info := TypeInfo.fetch(connection, "halfvec")) is None:
            return
        dumper = type("HalfDumper", (_HalfDumper,), {"oid": info.oid})
        for adapters in (self._adapters, connection.adapters):
            adapters.register_dumper(HalfVector, dumper)
            adapters.register_loader(info.oid, _HalfLoader)
        self._knows_vectors = True

    def give_back(self, connection: Connection[Any]) -> None:
        """Take a connection back, unless it is broken or there are enough."""
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if is_idle and len(self._idle) < _MOST_IDLE and self.users:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections when nobody else uses the pool."""
        with self._lock:
            self.users -= 1
            closing = [] if self.users else self._idle[:]
            if not self.users:
                self._idle.clear()
                self._open.pop((os.getpid(), self.url), None)
        for connection in closing:
            connection.close()


@lru_cache(maxsize=4096)
def number_marks(sql: str) -> str:
    """Return a statement with numbered marks, the bank as the first value; refuse one without its bank."""
    if ":bank" not in sql:
        raise AssertionError(f"a statement that names no bank: {sql}")
    first, *rest = sql.replace(":bank", "$1").split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 2))


@lru_cache(maxsize=1024)
def repeat_row(sql: str, count: int, same: tuple[bool, ...]) -> str:
    """Return the INSERT of one row as one of many rows.

    `same` says which of its values all rows share: these are given once, after those of the rows.
    """
    head, _, rest = sql.partition(" VALUES (")
    row, _, tail = rest.partition(")")
    shared = count_from(2 + count * (len(same) - sum(same)))
    first, *parts = row.split("?")
    marks = (f"${next(shared)}" if is_same else "?" for is_same in same)
    row = first + "".join(f"{mark}{part}" for mark, part in zip(marks, parts, strict=True))
    return f"{head} VALUES {', '.join([f'({row})'] * count)}{tail}"


def batch_rows(sql: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, list[Any], int]]:
    """Yield the statements that insert many rows, each with its values and the number of its rows."""
    start = 0
    for size in _INSERT_SIZES:
        while len(rows) - start >= size:
            columns = list(zip(*rows[start : start + size], strict=True))
            # What all rows share, such as their run, is sent once.
            same = tuple(size > 1 and column.count(column[0]) == size for column in columns)
            shared = [column[0] for column, is_same in zip(columns, same, strict=True) if is_same]
            varying = [column for column, is_same in zip(columns, same, strict=True) if not is_same]
            # Numbers as texts, whose type the server infers: the statement stays the same for other values.
            values = [
                value if isinstance(value, _AS_THEY_ARE) else repr(value)
                for value in chain(chain.from_iterable(zip(*varying, strict=True)), shared)
            ]
            yield repeat_row(sql, size, same), values, size
            start += size


def set_local(connection: Connection[Any], settings: Mapping[str, str]) -> None:
    """Set what holds until the end of the transaction, on workers of Citus too: `set_config` stays here."""
    for name, value in settings.items():
        connection.execute(SQL("SET LOCAL {} = {}").format(Identifier(*name.split(".")), value))


class BankSession:
    """A transaction for one bank, on whichever connection."""

    def __init__(self, pool: Pool, bank: str, *, is_writing: bool, timeout_s: float) -> None:
        self.bank = bank
        self._pool = pool
        self._is_writing = is_writing
        # How long another writer of the bank, or a server that restarts, is waited for.
        self._timeout_s = timeout_s
        self._written: list[tuple[str, Sequence[Any], bool]] = []
        self._streams = 0
        self._xid = ""
        # Statements without a result are sent, and not waited for until one with a result follows.
        self._pipeline: AbstractContextManager[Any] | None = None
        self.version = -1
        # What only a writer of the bank changes, as the transaction has it: the last place in the index, the
        # last message, and the number and hash of the ledger's last entry.
        self.last_place = self.last_message = 0
        self.ledger_head: tuple[int, str] = 0, GENESIS
        self.index_sizes: Sequence[int] | None = None
        self._retry(self._begin)

    def _retry(self, begin: Any) -> None:
        """Begin on a new connection until it works, or for as long as is waited for a server."""
        deadline, wait_s = time.monotonic() + self._timeout_s, _FIRST_WAIT_S
        while True:
            try:
                begin()
                return
            except psycopg.OperationalError as error:
                self._drop()
                # A server that never answered is down or named wrongly, and is not waited for.
                is_back_soon = _is_lost(error) and self._pool.was_reached
                if not is_back_soon or time.monotonic() + wait_s > deadline:
                    raise
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            except BaseException:
                self._drop()
                raise

    def _begin(self) -> None:
        connection = self._connection = self._pool.take()
        with connection.pipeline():
            if self._is_writing:
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                timeout = f"{max(1, int(self._timeout_s * 1000))}ms"
                set_local(connection, {BANK_SETTING: self.bank, "lock_timeout": timeout})
                # Asked for by itself: within a statement about a bank it would be that of a worker of Citus.
                xid = connection.execute("SELECT pg_current_xact_id()::text")
                # The row is locked until the end: writers of one bank come one after another.
                rows = connection.execute(
                    "UPDATE banks SET version = version + 1 WHERE bank = $1"
                    " RETURNING version - 1, last_place, last_message, documents, words",
                    (self.bank,),
                )
            else:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                set_local(connection, {BANK_SETTING: self.bank})
                rows = connection.execute(
                    "SELECT version, last_place, last_message, documents, words FROM banks WHERE bank = $1",
                    (self.bank,),
                )
            head = connection.execute(
                "SELECT seq, hash FROM ledger WHERE bank = $1 ORDER BY seq DESC LIMIT 1", (self.bank,)
            )
        row = rows.fetchone()
        if row is None:
            raise NoBankError(f"{describe_url(self._pool.url)}#{self.bank}")
        version, last_place, last_message, *sizes = row
        self._xid = (xid.fetchone() or ("",))[0] if self._is_writing else ""
        if self.version not in (-1, version):
            raise BankUnreachableError(
                describe_url(self._pool.url),
                "the connection was lost, and the bank has been changed meanwhile: nothing was written",
            )
        if self.version == -1:
            self.version, self.last_place, self.last_message = version, last_place, last_message
            # The documents of the index and their words, which do not change while a reader reads.
            self.index_sizes = sizes if not self._is_writing else None
            self.ledger_head = head.fetchone() or (0, GENESIS)

    def _again(self) -> None:
        """Begin once more and write what was written before."""
        self._begin()
        for sql, values, is_many in self._written:
            self._send(sql, values, is_many=is_many)

    def _send(self, sql: str, values: Sequence[Any], *, is_many: bool = False) -> Any:
        cursor = self._connection.cursor()
        has_result = sql.startswith("SELECT") or " RETURNING " in sql
        if not has_result and self._pipeline is None:
            self._pipeline = self._connection.pipeline()
            self._pipeline.__enter__()
        if not is_many:
            cursor.execute(number_marks(sql), (self.bank, *values))
        elif " VALUES (" in sql:
            for statement, batch, size in batch_rows(sql, values):
                is_large = size >= _PREPARED_FROM
                cursor.execute(number_marks(statement), (self.bank, *batch), prepare=is_large or None)
        else:
            cursor.executemany(number_marks(sql), [(self.bank, *row) for row in values])
        if has_result:
            self._wait()
        return cursor

    def _wait(self) -> None:
        """Wait for the statements that were sent."""
        if self._pipeline is not None:
            pipeline, self._pipeline = self._pipeline, None
            pipeline.__exit__(None, None, None)

    def execute(self, sql: str, values: Sequence[Any] = (), *, is_many: bool = False) -> Any:
        """Run one statement, again on a new connection if this one is lost."""
        cursor = self._survive(lambda: self._send(sql, values, is_many=is_many))
        if self._is_writing and (is_many or not sql.startswith("SELECT")):
            self._written.append((sql, values, is_many))
        return cursor

    def set_local(self, settings: Mapping[str, str]) -> None:
        """Set what holds until the end of the transaction."""

        def send() -> None:
            self._wait()
            with self._connection.pipeline():
                set_local(self._connection, settings)

        self._survive(send)

    def _survive(self, send: Callable[[], Any]) -> Any:
        try:
            return send()
        except psycopg.OperationalError as error:
            if not _is_lost(error):
                raise
            self._drop()
            self._retry(self._again)
            return send()

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Run one statement whose rows come in parts."""
        self._streams += 1
        self._survive(self._wait)
        with RawServerCursor(self._connection, f"rows_{self._streams}") as cursor:
            cursor.itersize = _STREAM_ROWS
            cursor.execute(number_marks(sql), (self.bank, *values))
            yield from cursor

    def commit(self) -> None:
        """Commit. When the connection is lost just then, ask whether it was, and if not, do it again."""
        if not self._is_writing:
            self._connection.execute("ROLLBACK")
            self._pool.give_back(self._connection)
            return
        is_committed = False
        while not is_committed:
            try:
                self._survive(self._wait)
                self._connection.execute("COMMIT")
                is_committed = True
            except psycopg.OperationalError as error:
                if not _is_lost(error):
                    raise
                self._drop()
                is_committed = self._was_committed()
                if not is_committed:
                    self._retry(self._again)
                    continue
                return
        self._pool.give_back(self._connection)

    def _was_committed(self) -> bool:
        found: list[Any] = []

        def ask() -> None:
            self._connection = self._pool.take()
            # A crash can lose a number that was given out; its transaction is lost with it.
            row = self._connection.execute(
                "SELECT CASE WHEN $1::xid8 >= pg_snapshot_xmax(pg_current_snapshot()) THEN 'aborted'"
                " ELSE pg_xact_status($1::xid8) END",
                (self._xid,),
            ).fetchone()
            found.append(row[0] if row else None)

        self._retry(ask)
        if found[-1] not in ("committed", "aborted"):
            raise BankUnreachableError(
                describe_url(self._pool.url),
                "the connection was lost at the very end: whether the change was written is not known",
            )
        self._pool.give_back(self._connection)
        return bool(found[-1] == "committed")

    def roll_back(self) -> None:
        """Undo everything."""
        with suppress(psycopg.Error):
            self._wait()
        with suppress(psycopg.Error):
            self._connection.execute("ROLLBACK")
        self._pool.give_back(self._connection)

    def _drop(self) -> None:
        self._pipeline = None
        # What was never opened cannot be closed.
        with suppress(AttributeError, psycopg.Error):
            self._connection.close()


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Say whether the connection is gone, or the server is about to be there again."""
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    if isinstance(error, errors.PipelineAborted):
        return False
    # Errors of the connection itself have no code; a wrong password has one, and is said at once.
    return error.sqlstate is None and "password" not in str(error) and "does not exist" not in str(error)


@contextmanager
def map_postgres_errors(url: str, bank: str, lock_timeout_s: float) -> Iterator[None]:
    """Map the driver's errors to ours, once, here."""
    place = describe_url(url) + (f"#{bank}" if bank else "")
    try:
        yield
    except errors.LockNotAvailable as error:
        raise BankLockedError(place, lock_timeout_s) from error
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
        hint = f"{_first_line(error)}: grant the role what docs/guides/postgres.md lists"
        raise BankReadOnlyError(place, hint=hint) from error
    except errors.UndefinedTable as error:
        hint = "archivist store init makes the tables"
        raise BankError(
            f"the database of {place!r} is not set up: {_first_line(error)}", hint=hint
        ) from error
    except errors.DiskFull as error:
        raise BankFullError(place, hint="free some space on its server; nothing was lost") from error
    except BankDamagedError as error:
        if error.place:
            raise
        raise BankDamagedError(place, error.where, hint=error.hint) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise BankUnreachableError(describe_url(url), _first_line(error)) from error


def _first_line(error: Exception) -> str:
    lines: Iterable[str] = str(error).strip().splitlines()
    return next(iter(lines), type(error).__name__)
