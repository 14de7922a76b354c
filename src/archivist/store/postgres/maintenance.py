"""Set up a server for banks, and say what it holds: what concerns no single bank."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from archivist.store.postgres.connection import (
    BANK_SETTING,
    Pool,
    describe_url,
    map_postgres_errors,
    set_local,
    split_url,
)
from archivist.store.postgres.schema import (
    PARTITIONS,
    STEP_NAMES,
    VECTORS,
    applied_steps,
    migrate,
    table_names,
)
from archivist.store.postgres.search import EXACT
from archivist.store.postgres.store import server_connection, server_versions, vector_remedy

# An HNSW build that does not fit into memory takes many times as long.
_BUILD_MEMORY = "512MB"


class ServerStatus(NamedTuple):
    """What a server holds: versions, what is missing, and the rows and bytes of one bank or of all."""

    place: str
    version: str
    vectors: str
    problem: str
    total_bytes: int
    rows: dict[str, int]
    indexes: tuple[str, ...]


def set_up_server(url: str) -> tuple[list[str], list[str]]:
    """Make or upgrade the tables, and index vectors that are too many to compare one by one.

    Return the steps that were taken and the indexes that were built.
    """
    with open_server(url) as connection:
        steps = migrate(connection)
        has_vectors = VECTORS in applied_steps(connection)
        return steps, list(_build_indexes(connection)) if has_vectors else []


def describe_server(url: str) -> ServerStatus:
    """Return what a server holds; with a bank in the URL, the rows of that bank."""
    bank = split_url(url)[1]
    with open_server(url) as connection:
        version, extension = server_versions(connection)
        applied = applied_steps(connection)
        problem = ""
        if STEP_NAMES - applied - {VECTORS}:
            problem = "the tables are missing or of an older version: archivist store init makes them"
        elif VECTORS not in applied:
            problem = vector_remedy(extension)
        rows: dict[str, int] = {}
        size = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        if applied and bank:
            with connection.transaction():
                set_local(connection, {BANK_SETTING: bank})
                for table in sorted(table_names(has_vectors=VECTORS in applied)):
                    found = connection.execute(
                        f"SELECT count(*) FROM {table} WHERE bank = $1".encode(), (bank,)
                    )
                    rows[table] = int((found.fetchone() or (0,))[0])
        indexes = tuple(row[0] for row in connection.execute(_HNSW).fetchall())
    return ServerStatus(describe_url(url), version, extension, problem, int((size or (0,))[0]), rows, indexes)


def _build_indexes(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Index each partition and width that holds more vectors of one bank than are compared one by one."""
    connection.execute("SELECT set_config('maintenance_work_mem', $1, false)", (_BUILD_MEMORY,))
    there = {row[0] for row in connection.execute(_HNSW).fetchall()}
    for number in range(PARTITIONS):
        # A cluster has no partitions.
        if connection.execute("SELECT to_regclass($1)", (f"vectors_{number}",)).fetchone() == (None,):
            continue
        # A partition has no policy of its own, so all its banks can be counted. It is cheap to rule out, but
        # not by the server's statistics, which lag behind an import.
        more = connection.execute(f"SELECT 1 FROM vectors_{number} OFFSET $1 LIMIT 1".encode(), (EXACT,))
        if not more.fetchone():
            continue
        widths = connection.execute(
            f"SELECT DISTINCT dimensions FROM (SELECT dimensions FROM vectors_{number}"
            " GROUP BY bank, embedder, dimensions HAVING count(*) > $1) large".encode(),
            (EXACT,),
        ).fetchall()
        for (width,) in widths:
            name = f"vectors_{number}_hnsw_{int(width)}"
            if name not in there:
                # A build that was killed leaves an index that nothing uses.
                connection.execute(f"DROP INDEX IF EXISTS {name}".encode())
                # Others go on writing meanwhile.
                connection.execute(
                    f"CREATE INDEX CONCURRENTLY {name} ON vectors_{number} USING hnsw"
                    f" ((halves::halfvec({int(width)})) halfvec_ip_ops)"
                    f" WHERE dimensions = {int(width)}".encode()
                )
                yield name


_HNSW = (
    "SELECT i.relname FROM pg_class i JOIN pg_am a ON a.oid = i.relam JOIN pg_namespace n"
    " ON n.oid = i.relnamespace JOIN pg_index x ON x.indexrelid = i.oid"
    " WHERE a.amname = 'hnsw' AND n.nspname = 'archivist' AND x.indisvalid ORDER BY 1"
)


@contextmanager
def open_server(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection to a server for what concerns no single bank, with our own errors."""
    server, bank = split_url(url)
    pool = Pool.share(server)
    try:
        with map_postgres_errors(url, bank, 0), server_connection(pool) as connection:
            yield connection
    finally:
        pool.close()
