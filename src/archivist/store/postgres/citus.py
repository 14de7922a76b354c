"""Spread the banks of a database over the nodes of a Citus cluster: every table by its bank, side by side.

Citus divides a table by itself. Our own partitions within each shard would make sixteen tables of every one,
so a partitioned table is first made whole. A table that is distributed already is left alone: the command can
be run again after an interruption or an upgrade that added tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from archivist.errors import BankError
from archivist.store.postgres.connection import SCHEMA
from archivist.store.postgres.maintenance import open_server
from archivist.store.postgres.schema import STEP_NAMES, UNFORCED, VECTORS, applied_steps, guard_table

# All tables follow this one: the rows of a bank are on one node.
_FIRST = "banks"
# The steps that were taken, which every node must be able to read.
_STEPS = "migrations"
# The append-only ledger has a trigger, which touches no other row and so is safe on a worker.
_SETTINGS = (f"SET search_path = {SCHEMA}, public, extensions", "SET citus.enable_unsafe_triggers = on")


class ServerTable(NamedTuple):
    """A table of the database: its name, whether it has partitions, and the columns that are not computed."""

    name: str
    is_partitioned: bool
    columns: str


def plan_distribution(url: str, shards: int) -> list[list[str]]:
    """Return the transactions that distribute the tables, each a list of statements; none when all are."""
    with open_server(url) as connection:
        return list(_transactions(_tables_left(connection), shards))


def distribute_tables(url: str, shards: int) -> Iterator[str]:
    """Distribute the tables, and yield the name of each; refuse a server without Citus."""
    with open_server(url) as connection:
        if not _has_citus(connection):
            raise BankError(
                "the server has no extension citus, and no tables were changed",
                hint="install Citus on every node and run CREATE EXTENSION citus there:"
                " docs/guides/scale-out.md has the steps; --dry-run prints the SQL",
            )
        tables = _tables_left(connection)
        for statement in _SETTINGS:
            connection.execute(statement.encode())
        for table, statements in zip(tables, _transactions(tables, shards), strict=True):
            with connection.transaction():
                for statement in statements:
                    connection.execute(statement.encode())
            yield table.name
        # The settings end with the connection: it is not given to the next who asks for one.
        connection.close()


def script(transactions: Sequence[Sequence[str]]) -> str:
    """Return transactions as a script for psql."""
    lines = [f"{statement};" for statement in _SETTINGS]
    for statements in transactions:
        lines += ["BEGIN;", *(f"{statement};" for statement in statements), "COMMIT;"]
    return "\n".join(lines) if transactions else ""


def _transactions(tables: Sequence[ServerTable], shards: int) -> Iterator[list[str]]:
    """Yield the statements for each table.

    Citus copies the rows of a table as its owner, and a policy that binds the owner would hide them: it is
    lifted until the rows are there.
    """
    for name, is_partitioned, columns in tables:
        if name == _STEPS:
            yield [f"SELECT create_reference_table('{SCHEMA}.{name}')"]
            continue
        group = f"colocate_with => '{SCHEMA}.{_FIRST}'"
        if name == _FIRST:
            group = f"colocate_with => 'none', shard_count => {shards}"
        force = f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY"
        yield [
            *([] if name in UNFORCED else [f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY"]),
            *(_make_whole(name, columns) if is_partitioned else ()),
            f"SELECT create_distributed_table('{SCHEMA}.{name}', 'bank', {group})",
            f"SELECT truncate_local_data_after_distributing_table('{SCHEMA}.{name}')",
            *([] if name in UNFORCED else [force]),
        ]


def _make_whole(name: str, columns: str) -> Iterator[str]:
    """Yield the statements that replace a partitioned table by one without partitions, with all its rows."""
    yield f"CREATE TABLE {name}_whole (LIKE {name} INCLUDING ALL)"
    yield f"INSERT INTO {name}_whole ({columns}) SELECT {columns} FROM {name}"
    yield f"DROP TABLE {name}"
    yield f"ALTER TABLE {name}_whole RENAME TO {name}"
    yield from (statement for statement in guard_table(name) if " FORCE ROW " not in statement)


def _has_citus(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone() is not None


def _tables_left(connection: psycopg.Connection[Any]) -> list[ServerTable]:
    """Return the tables that are not distributed yet, the one that the others follow first."""
    if STEP_NAMES - applied_steps(connection) - {VECTORS}:
        raise BankError(
            "the tables are missing or of an older version", hint="archivist store init makes them"
        )
    done = "AND c.oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)" if _has_citus(connection) else ""
    rows = connection.execute(
        f"""SELECT c.relname, c.relkind = 'p',
            (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = '{SCHEMA}' AND c.relkind IN ('r', 'p') AND NOT c.relispartition {done}
        ORDER BY c.relname <> '{_FIRST}', c.relname""".encode()
    ).fetchall()
    return [ServerTable(*row) for row in rows]
