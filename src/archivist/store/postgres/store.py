"""The engine of a team: many banks in one PostgreSQL database, through psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import local
from typing import TYPE_CHECKING, Any

import psycopg

from archivist.errors import BankError, BankReadOnlyError, InputError, NoBankError
from archivist.store.postgres.across import best_banks
from archivist.store.postgres.connection import (
    BANK_SETTING,
    BETWEEN_BANKS,
    BankSession,
    Pool,
    describe_url,
    map_postgres_errors,
    set_local,
    split_url,
)
from archivist.store.postgres.schema import STEP_NAMES, VECTORS, applied_steps, migrate
from archivist.store.postgres.search import PostgresReader, SearchCache
from archivist.store.postgres.writer import PostgresEraser, PostgresWriter
from archivist.store.results import Damage, SearchFilter, TextQuery

if TYPE_CHECKING:
    from pathlib import Path

    from archivist.records import Actor
    from archivist.store.protocol import Store

BUSY_TIMEOUT_S = 30.0
_LONGEST_NAME = 200


class _Nesting(local):
    """The transaction that a thread is in."""

    session: BankSession | None = None
    reader: PostgresReader | None = None
    writer: PostgresWriter | None = None


class PostgresStore:
    """A bank in a database that other banks share. Threads and processes may use it at the same time.

    The methods are described in `store.protocol.Store`.
    """

    def __init__(self, pool: Pool, bank: str, busy_timeout_s: float, *, has_vectors: bool) -> None:
        self.bank = bank
        self.server = f"{describe_url(pool.url)}#{bank}"
        self._pool = pool
        self._busy_timeout_s = busy_timeout_s
        self._cache = SearchCache()
        self._cache.has_vectors = has_vectors
        self._here = _Nesting()
        self._values: dict[Any, Any] = {}

    @classmethod
    def open(cls, url: str, *, create: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S) -> PostgresStore:
        """Open a bank by its URL (`postgresql://…#NAME`), making it or upgrading the database when needed."""
        server, bank = split_url(url)
        if not bank or len(bank) > _LONGEST_NAME or "\x00" in bank:
            raise InputError(
                f"{describe_url(url)} names no bank", hint="write postgresql://HOST/DATABASE#NAME"
            )
        pool = Pool.share(server)
        try:
            with map_postgres_errors(url, bank, busy_timeout_s):
                # The tables are brought up to date when they are not.
                with server_connection(pool, busy_timeout_s) as connection:
                    applied = applied_steps(connection)
                    if STEP_NAMES - applied - {VECTORS}:
                        migrate(connection)
                        applied = applied_steps(connection)
                    if create:
                        with connection.transaction():
                            set_local(connection, {BANK_SETTING: bank})
                            sql = "INSERT INTO banks (bank) VALUES ($1) ON CONFLICT DO NOTHING"
                            connection.execute(sql, (bank,))
                store = cls(pool, bank, busy_timeout_s, has_vectors=VECTORS in applied)
                if not create and not store.is_same_bank:
                    raise NoBankError(store.server)
                return store
        except BaseException:
            pool.close()
            raise

    @property
    def is_read_only(self) -> bool:
        with self._mapping_errors(), server_connection(self._pool) as connection:
            return bool(connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,))

    @property
    def is_same_bank(self) -> bool:
        try:
            self.version()
        except NoBankError:
            return False
        return True

    @property
    def is_reading(self) -> bool:
        return self._here.reader is not None

    @property
    def is_writing(self) -> bool:
        return self._here.writer is not None

    def version(self) -> int:
        with self.reading():
            return self._here.session.version if self._here.session else 0

    def best_banks(
        self,
        stores: Sequence[Store],
        words: TextQuery,
        search_filter: SearchFilter,
        vector: Sequence[float],
        limit: int,
    ) -> set[int] | None:
        here = self.server.removesuffix(f"#{self.bank}")
        names = [
            store.bank
            for store in stores
            if isinstance(store, PostgresStore) and store.server == f"{here}#{store.bank}"
        ]
        if (
            len(names) < len(stores)
            or search_filter.groups
            or search_filter.has_ranges
            or any(BETWEEN_BANKS in name for name in names)
        ):
            return None
        near = vector if self._cache.has_vectors else ()
        with self._mapping_errors(), server_connection(self._pool) as connection:
            best = best_banks(connection, names, words, search_filter, near, limit)
        return {at for at, name in enumerate(names) if name in best}

    @contextmanager
    def _mapping_errors(self, lock_timeout_s: float | None = None) -> Iterator[None]:
        timeout_s = self._busy_timeout_s if lock_timeout_s is None else lock_timeout_s
        with map_postgres_errors(self._pool.url, self.bank, timeout_s):
            yield

    @contextmanager
    def _in_session(self, *, is_writing: bool, timeout_s: float) -> Iterator[BankSession]:
        session = BankSession(self._pool, self.bank, is_writing=is_writing, timeout_s=timeout_s)
        self._here.session = session
        try:
            yield session
            # An error of a statement that was not waited for is raised here at the latest.
            session.commit()
        except BaseException:
            session.roll_back()
            raise
        finally:
            self._here.session = None

    @contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        with self._mapping_errors():
            inside = self._here.writer or self._here.reader
            if inside is not None:
                yield inside
                return
            with self._in_session(is_writing=False, timeout_s=self._busy_timeout_s) as session:
                reader = self._here.reader = PostgresReader(session, self._cache)
                reader.value_cache = self._values
                try:
                    yield reader
                finally:
                    self._here.reader = None

    @contextmanager
    def writing(
        self, actor: Actor, now: datetime, *, lock_timeout_s: float | None = None
    ) -> Iterator[PostgresWriter]:
        """Open a transaction; within one, join it. The outermost block commits."""
        lock_timeout_s = self._busy_timeout_s if lock_timeout_s is None else lock_timeout_s
        with self._mapping_errors(lock_timeout_s):
            outer, session = self._here.writer, self._here.session
            if outer is not None and session is not None:
                is_same = actor == outer.actor
                yield outer if is_same else PostgresWriter(session, self._cache, actor, now)
                return
            with self._in_session(is_writing=True, timeout_s=lock_timeout_s) as session:
                self._here.writer = PostgresWriter(session, self._cache, actor, now)
                try:
                    yield self._here.writer
                finally:
                    self._here.writer = None

    @contextmanager
    def erasing(self, actor: Actor, now: datetime) -> Iterator[PostgresEraser]:
        # How often an erased word occurred is not remembered either.
        self._cache.match_counts.clear()
        with self.writing(actor, now):
            if self._here.session is not None:
                yield PostgresEraser(self._here.session, self._cache, actor, now)

    def explain(self, error: Exception) -> None:
        """Do nothing: the server checks its own pages."""

    def check_engine(self) -> tuple[bool, str]:
        with self._mapping_errors(), server_connection(self._pool) as connection:
            server, extension = server_versions(connection)
        if not self._cache.has_vectors:
            return False, f"PostgreSQL {server} at {self.server}: {vector_remedy(extension)}"
        return True, f"PostgreSQL {server} with vector {extension} at {self.server}"

    def find_damage(self) -> list[Damage]:
        """Check that the index counts what it holds; the server checks its pages, `verify` the records."""
        with self.reading() as reader:
            counted, words = reader.execute(
                "SELECT documents, words FROM banks WHERE bank = :bank"
            ).fetchone()
            sql = "SELECT count(*), coalesce(sum(size), 0) FROM documents WHERE bank = :bank"
            actual, size = reader.execute(sql).fetchone()
        if (counted, words) == (actual, int(size)):
            return []
        return [Damage("table documents", f"it holds {actual} documents, and counts {counted}", True)]

    def settle(self) -> None:
        """Do nothing: a transaction is in the server's log when it is committed."""

    def setting_at_rest(self, name: str) -> str:
        with self.reading() as reader:
            return reader.setting(name)

    def scrub(self) -> bool:
        """Have the server remove what was deleted from its tables; its log and backups are its operator's."""
        try:
            with self._mapping_errors(), server_connection(self._pool) as connection:
                for table in connection.execute(_OWN_TABLES).fetchall():
                    connection.execute(f"VACUUM {table[0]}".encode())
        except BankReadOnlyError:
            return False
        return True

    def count_raw_bytes(self, needles: Sequence[bytes]) -> dict[str, int]:  # noqa: ARG002
        """Return nothing: the files of a server are not ours to read."""
        return {}

    def reindex(self) -> None:
        from archivist.records import Actor, ActorKind

        now = datetime.now().astimezone()
        with self.writing(Actor(ActorKind.ARCHIVIST), now) as writer:
            writer.rebuild_derived()

    def back_up(self, target: Path) -> None:
        raise BankError(
            f"{self.server!r} is not a file, and cannot be copied to {str(target)!r}",
            hint="pg_dump copies the database; archivist store move copies this bank into a file",
        )

    def close(self) -> None:
        """Close the bank."""
        self._pool.close()


_OWN_TABLES = (
    "SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables"
    " WHERE schemaname = 'archivist' AND n_dead_tup > 0"
)


@contextmanager
def server_connection(pool: Pool, wait_s: float = 0.0) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection for what concerns the server, and no bank."""
    connection = pool.take(wait_s)
    try:
        yield connection
    except psycopg.OperationalError:
        connection.close()
        raise
    finally:
        pool.give_back(connection)


def server_versions(connection: psycopg.Connection[Any]) -> tuple[str, str]:
    """Return the version of the server, and of its vectors; empty for none."""
    row = connection.execute(
        "SELECT current_setting('server_version'),"
        " coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '')"
    ).fetchone()
    return (str(row[0]), str(row[1])) if row else ("", "")


def vector_remedy(extension: str) -> str:
    """Say why a database has no vectors, and what adds them."""
    if extension:
        return "its tables have no vectors yet: archivist store init adds them"
    return (
        "search is by words alone, since the database has no extension vector: install pgvector on the"
        " server, run CREATE EXTENSION vector as its administrator, then archivist store init"
    )
