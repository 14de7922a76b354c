"""The tables of a PostgreSQL database, and what brings them up to date.

A record's table follows from its class: a column for each field, as `store.rows` writes it. A field that
records gain becomes a column with the field's default. Everything else is written out here. Each step has a
name that the database keeps; one that is not known here was made by a later Archivist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from types import NoneType
from typing import TYPE_CHECKING, Any

from archivist.errors import BankError, BankTooNewError
from archivist.records.kinds import record_types
from archivist.store.postgres.connection import (
    BANK_SETTING,
    BANKS_SETTING,
    BETWEEN_BANKS,
    SCHEMA,
    describe_url,
)
from archivist.store.postgres.words import MARK_LENGTH
from archivist.store.rows import TableMapping, mapping_for

if TYPE_CHECKING:
    from psycopg import Connection

# Partitions of the tables that grow with every run: vacuum and index builds work on a sixteenth at a time.
PARTITIONS = 16
_PARTITIONED = ("lessons", "episodes", "events", "ledger", "ledger_payloads", "documents", "vectors")
# Behind a policy the planner uses no index of words: that of this table binds others than the owner.
UNFORCED = ("documents",)
# One statement may search these in several banks, whose names it sets. It may not change them.
_SEARCHED_TOGETHER = ("documents", "vectors")
_ASKED_BANKS = (
    "CREATE POLICY asked_banks ON {table} FOR SELECT USING (bank = ANY (string_to_array("
    f"current_setting('{BANKS_SETTING}', true), chr({ord(BETWEEN_BANKS)}))))"
)
# Texts are compared by their bytes, as SQLite does.
TEXT = 'text COLLATE "C"'
# One database is migrated by one process at a time: "ARCV" as a number.
_MIGRATION_LOCK = 0x41524356
VECTORS = "add vectors"
_MARKED = "mark words with their bank"
# What was indexed before lexemes began with the mark of their bank, which only the bank's own lexeme named.
_MARK_WORDS = f"""UPDATE documents SET words = (
    SELECT string_agg('''' || replace(replace(CASE left(lexeme, 1)
            WHEN '#' THEN '#' || mark
            WHEN '@' THEN '@' || mark || substr(lexeme, 2)
            ELSE mark || lexeme END, '\\', '\\\\'), '''', '''''') || ''''
        || coalesce(':' || array_to_string(positions, ','), ''), ' ')
    FROM unnest(words), (SELECT left(md5(bank), {MARK_LENGTH}) AS mark) marks)::tsvector"""

# What tables compute by themselves, beside the records' own fields.
_COMPUTED = {
    "lessons": (
        "frequency bigint GENERATED ALWAYS AS (greatest(0, json_array_length(runs::json) - faded)) STORED",
        """is_waiting bigint GENERATED ALWAYS AS (CASE WHEN accepted = 0 AND confirmed = 0
        AND provenance IN ('suggested', 'imported', 'shared') THEN 1 ELSE 0 END) STORED""",
    ),
    "episodes": (f"provenance {TEXT} NOT NULL DEFAULT 'mined'",),
}
# Indexes of other sorts: new documents wait in a list that every search reads, so a short one.
_MORE = {
    "lessons": ("CREATE INDEX ON lessons USING hash (summary)",),
    "documents": ("CREATE INDEX ON documents USING gin (words) WITH (gin_pending_list_limit = 512)",),
}
_APPEND_ONLY = """CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION refuse_change()"""
_REFUSE_CHANGE = """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'the ledger is append-only'; END$$"""
_UNIQUE = {
    "lessons": "number", "episodes": "number", "events": "run, seq", "facts": "project, category, key",
    "entries": "seq", "proposals": "number", "tokens": "digest",
}  # fmt: skip
_RECORD_INDEXES = {
    "lessons": (
        "status, is_waiting, frequency DESC, number, repo", "last_seen_run", "status, unseen_from",
        "signature", "repo, status, type", "frequency DESC, importance DESC, number, status",
        "repo, frequency DESC, importance DESC, number, status",
    ),
    "episodes": ("task", "session", "project, finished, provenance", "finished", "agent, action"),
    "events": ("kind, run",),
    "briefs": ("run",),
    "verdicts": ("run", "lesson, time"),
    "facts": ("origin",),
    "conflicts": ("fact, time", "status, time"),
    "artifacts": ("task", "type", "path, created"),
    "entries": ("cycle, role", "is_archived, cycle"),
    "archive": ("source, position", "folder, source"),
    "proposals": ("status, number",),
    "tasks": ("state, created", "owner, state", "parent"),
}  # fmt: skip
# Table → key, columns, indexes. A column has a type, a question mark where it may be missing, and a default.
# `banks` has a row for each bank: its lock, its counters, and the statistics of its index.
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "banks": ("", "version int 0, documents int 0, words int 0, last_place int 0, last_message int 0", ()),
    "settings": ("name", "name text, value text", ()),
    "ledger": (
        "seq",
        """seq int, time text, actor_kind text, actor_name text, actor_role text, verb text, kind text,
        record text, payload_hash text, previous text, hash text""",
        ("record, seq",),
    ),
    "ledger_payloads": ("seq", "seq int, payload text", ()),
    "tallies": (
        "lesson",
        """lesson text, used int 0, last_used text?, helpful int 0, ineffective int 0, ignored int 0,
        told int 0, told_failed int 0, withheld int 0, withheld_failed int 0""",
        (),
    ),
    "event_sums": ("run", "run text, events int, digest text", ()),
    "captured_files": ("digest", "digest text, runs text", ()),
    "pending": (
        "run",
        "run text, queued text, holder text '', leased_until text '', attempts int 0, error text ''",
        ("queued, run",),
    ),
    "answers": ("id", "id text, digest text, status int, body text, time text", ("time",)),
    "messages": ("id", "id int, seq int, time text, type text, data text", ()),
    "speakers": ("name", "name text", ()),
    "embedders": ("id", "id int, name text, dimensions int, is_used int", ("name",)),
    "documents": (
        "id",
        """id int, kind text, record text, revision int, time int?, cycle int?, importance float,
        speaker text, thread text, position int, superseded_by text, is_hidden int, embedder int,
        length int, size int, words tsvector""",
        ("kind, record", "thread, position", "time", "embedder, id"),
    ),
    "vectors": ("embedder, id", "embedder int, id int, dimensions int, halves halfvec", ()),
}
_TYPES = {"int": "bigint", "float": "double precision", "text": TEXT}


def migrate(connection: Connection[Any]) -> list[str]:
    """Bring the tables of a database up to date, one process at a time; return the steps that were taken."""
    from psycopg import errors

    # Whoever may not create anything may still find that nothing is to be done.
    if applied_steps(connection) >= STEP_NAMES:
        return []
    taken = []
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock($1)", (_MIGRATION_LOCK,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY)")
            applied = applied_steps(connection)
            for name, statements in _steps():
                if name in applied or (name == VECTORS and not _make_extension(connection)):
                    continue
                # Of all steps only this one changes rows: a new database has none.
                for statement in statements if name != _MARKED or "documents" in applied else ():
                    connection.execute(statement.encode())
                connection.execute("INSERT INTO migrations VALUES ($1)", (name,))
                taken.append(name)
        return taken
    except errors.InsufficientPrivilege as error:
        place = describe_url(connection.info.dsn)
        raise BankError(
            f"{place!r} has to be set up or upgraded, and this role may not: {error.diag.message_primary}",
            hint="run archivist store init as the role that owns the database, or its schema archivist",
        ) from error


def applied_steps(connection: Connection[Any]) -> set[str]:
    """Return the names of the steps that a database has; refuse one with a step that is not known here."""
    if connection.execute("SELECT to_regclass($1)", (f"{SCHEMA}.migrations",)).fetchone() == (None,):
        return set()
    applied = {row[0] for row in connection.execute("SELECT name FROM migrations")}
    if unknown := applied - STEP_NAMES:
        raise BankTooNewError(describe_url(connection.info.dsn), min(unknown))
    return applied


def _make_extension(connection: Connection[Any]) -> bool:
    """Say whether the database has vectors, after trying to add them."""
    there = "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
    if connection.execute(there).fetchone():
        return True
    offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    may_create = "SELECT 1 WHERE has_database_privilege(current_database(), 'CREATE')"
    if not (connection.execute(offered).fetchone() and connection.execute(may_create).fetchone()):
        return False
    from psycopg import errors

    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION vector")
    except errors.InsufficientPrivilege:
        return False
    return True


def _steps() -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the statements of each step, in order."""
    yield "refuse changes of the ledger", [_REFUSE_CHANGE]
    for table, (key, columns, indexes) in TABLES.items():
        spelt = ", ".join(_spell_column(*column.split()) for column in columns.split(","))
        name = VECTORS if table == "vectors" else table
        yield name, [*_create_table(table, spelt, key), *_create_indexes(table, indexes)]
    for record_class in record_types():
        how: TableMapping[Any] = mapping_for(record_class)
        columns = ", ".join([*(_column(how, name) for name in how.columns), *_COMPUTED.get(how.table, ())])
        indexes = _RECORD_INDEXES.get(how.table, ())
        yield how.table, [*_create_table(how.table, columns, "id"), *_create_indexes(how.table, indexes)]
        for name in how.columns:
            added = f"ALTER TABLE {how.table} ADD COLUMN IF NOT EXISTS {_column(how, name)}"
            yield f"{how.table}.{name}", [added]
    yield _MARKED, [_MARK_WORDS]
    # For databases that were made before; the tables of a new one have it.
    yield (
        "search several banks",
        [
            f"DO $$BEGIN IF to_regclass('{SCHEMA}.{table}') IS NOT NULL AND NOT EXISTS (SELECT 1 FROM"
            f" pg_policies WHERE tablename = '{table}' AND policyname = 'asked_banks' AND schemaname ="
            f" '{SCHEMA}') THEN {_ASKED_BANKS.format(table=table)}; END IF; END$$"
            for table in _SEARCHED_TOGETHER
        ],
    )


def _create_table(table: str, columns: str, key: str) -> Iterator[str]:
    keys = f"PRIMARY KEY (bank{', ' if key else ''}{key})"
    keys += f", UNIQUE (bank, {_UNIQUE[table]})" if table in _UNIQUE else ""
    divided = " PARTITION BY HASH (bank)" if table in _PARTITIONED else ""
    yield f"CREATE TABLE {table} (bank {TEXT} NOT NULL, {columns}, {keys}){divided}"
    if divided:
        for number in range(PARTITIONS):
            yield (
                f"CREATE TABLE {table}_{number} PARTITION OF {table}"
                f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
            )
    yield from guard_table(table)


def guard_table(table: str) -> Iterator[str]:
    """Yield the statements that keep a table's banks apart, and the ledger append-only."""
    # The first wall is that every statement names the bank; this is the second.
    own = f"bank = current_setting('{BANK_SETTING}', true)"
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    yield f"CREATE POLICY own_bank ON {table} USING ({own}) WITH CHECK ({own})"
    if table not in UNFORCED:
        yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    if table in _SEARCHED_TOGETHER:
        yield _ASKED_BANKS.format(table=table)
    if table == "ledger":
        yield _APPEND_ONLY


def _create_indexes(table: str, indexes: tuple[str, ...]) -> Iterator[str]:
    for columns in indexes:
        yield f"CREATE INDEX ON {table} (bank, {columns})"
    yield from _MORE.get(table, ())


def _column(how: TableMapping[Any], name: str) -> str:
    """Return the column of a record's field; one that may be left out of a record has its default."""
    at = how.columns.index(name)
    types = how.stored_types[at]
    kind = {int: "int", float: "float", str: "text"}[types[0]] + ("?" if NoneType in types else "")
    field: Any = next((each for each in fields(how.record) if each.name == name), None)
    if field is None or NoneType in types:
        return _spell_column(name, kind)
    default = field.default if field.default_factory is MISSING else field.default_factory()
    if default is MISSING:
        return _spell_column(name, kind)
    value = how.encoders[at](default)
    if isinstance(value, str):
        value = "'" + value.replace("'", "''") + "'"
    return _spell_column(name, kind, str(value))


def _spell_column(name: str, kind: str, default: str = "") -> str:
    words = [name, _TYPES.get(kind.rstrip("?"), kind.rstrip("?"))]
    words += [] if kind.endswith("?") else ["NOT NULL"]
    return " ".join([*words, *(["DEFAULT", default] if default else [])])


def table_names(*, has_vectors: bool) -> set[str]:
    """Return the tables that hold rows of banks."""
    records: list[TableMapping[Any]] = [mapping_for(each) for each in record_types()]
    names = {*TABLES, *(how.table for how in records)}
    return names if has_vectors else names - {"vectors"}


STEP_NAMES = frozenset(name for name, _ in _steps())


# The columns that may hold nothing, by table: only these need to say where missing values are sorted.
NULLABLE = {
    how.table: frozenset(
        name for name, types in zip(how.columns, how.stored_types, strict=True) if NoneType in types
    )
    for how in map(mapping_for, record_types())
}
