"""Check a SQLite bank: its schema, its pages, the rows beside the records, and what is derived from them.

The ledger, and each record against it, is checked by `store.ledger`; the two find what the other cannot see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import apsw

from archivist.clock import from_text
from archivist.errors import BankDamagedError
from archivist.records.kinds import KINDS
from archivist.records.plain import canonical_json
from archivist.records.words import UNFINISHED_ERASURES
from archivist.store.ledger import payload_hash, sum_events
from archivist.store.results import Damage
from archivist.store.rows import DECODING_ERRORS
from archivist.store.sqlite.schema import MIGRATIONS, Migration
from archivist.store.sqlite.search import SqliteReader, VectorCache
from archivist.store.vectors import BLOCK

# What is built from the records, and can be built again.
DERIVED_TABLES = frozenset((
    "documents", "speakers", "search", "search_data", "search_idx", "search_docsize", "search_config",
    "embedders", "vector_rows", "vector_halves", "vector_blocks", "vector_changes", "tallies", "event_sums",
))  # fmt: skip
_MAX_MESSAGES = 100
_TREE = re.compile(r"Tree (\d+) ")
_SHARED_PAGE = re.compile(r"Multiple uses for byte \d+ of page (\d+)")
# What SQLite says of an index, of the text index and of the list of free pages: all can be built again.
_ABOUT_INDEX = re.compile(r"index (\w+)|FTS5 table main\.(\w+)|^fts5: .* table \"(\w+)\"")
_ABOUT_FREE_PAGES = re.compile(r"Freelist|never used|Main freelist", re.IGNORECASE)
# An event without words has no document.
_ALWAYS_INDEXED = tuple(kind for kind in KINDS if kind.is_searchable and kind.name != "event")
_COUNTS = ("helpful", "ineffective", "ignored")


def find_damage(db: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> Iterator[Damage]:
    """Yield everything that is wrong with a bank's file, apart from its ledger and its records."""
    is_whole = True
    for check in (
        partial(_check_schema, migrations=migrations),
        _check_pages,
        _check_other_rows,
        _check_derived,
    ):
        try:
            for damage in check(db):
                is_whole = False
                yield damage
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, *DECODING_ERRORS) as error:
            # Otherwise it is what an earlier check has named that broke this one.
            if is_whole:
                is_whole = False
                yield Damage("the file", f"a check could not be finished: {error}")


def find_cause(db: apsw.Connection, reader: SqliteReader, migrations: Sequence[Migration]) -> str:
    """Return the first damage that explains why the code failed; empty for a bank that is whole."""
    for damage in find_damage(db, migrations):
        return str(damage)
    try:
        problems = reader.verify().problems
    except (BankDamagedError, apsw.Error, *DECODING_ERRORS) as error:
        return error.where if isinstance(error, BankDamagedError) else str(error)
    return problems[0] if problems else ""


@cache
def reference_schema(migrations: Sequence[Migration] = MIGRATIONS) -> dict[str, tuple[str, str, str]]:
    """Return type, table and SQL of everything that a new bank has, by name."""
    db = apsw.Connection(":memory:")
    for migration in migrations:
        migration.apply(db)
    db.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, position INTEGER) STRICT")
    return _schema_of(db)


def _schema_of(db: apsw.Connection) -> dict[str, tuple[str, str, str]]:
    rows: Any = db.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema")
    return {str(name): (str(kind), str(table), sql or "") for name, kind, table, sql in rows}


def find_planted(path: Path) -> str:
    """Return the first trigger or view of a file that Archivist did not make, which would run with it."""
    expected = reference_schema()
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
        try:
            there = _schema_of(db)
        except apsw.Error:
            # Whoever opens it says what it is.
            return ""
    is_code = {name: row for name, row in there.items() if row[0] in ("trigger", "view")}
    return next((f"{row[0]} {name}" for name, row in is_code.items() if expected.get(name) != row), "")


def _check_schema(db: apsw.Connection, migrations: Sequence[Migration]) -> Iterator[Damage]:
    expected, there = reference_schema(tuple(migrations)), _schema_of(db)
    for name, (kind, table, sql) in expected.items():
        is_derived = kind != "table" or table in DERIVED_TABLES
        if name not in there:
            yield Damage(f"{kind} {name}", "it is missing", is_derived)
        elif there[name] != (kind, table, sql):
            yield Damage(f"{kind} {name}", "its definition was changed", is_derived)
    for name, (kind, _, _) in there.items():
        if name not in expected and not name.startswith("sqlite_"):
            yield Damage(f"{kind} {name}", "Archivist made no such thing", is_derived=True)


def _check_pages(db: apsw.Connection) -> Iterator[Damage]:
    rows: Any = db.execute("SELECT rootpage, type, name, tbl_name FROM sqlite_schema WHERE rootpage > 0")
    trees = {int(root): (str(kind), str(name), str(table)) for root, kind, name, table in rows}
    try:
        yield from _run_integrity_check(db, trees)
    except (apsw.CorruptError, apsw.SQLError) as error:
        # The check of the whole file gives up at some damage; table by table it says at which.
        is_found = False
        for name in [*sorted({table for _, _, table in trees.values()}), "search"]:
            try:
                for damage in _run_integrity_check(db, trees, name):
                    is_found = True
                    yield damage
            except (apsw.CorruptError, apsw.SQLError) as stopped:
                is_found = True
                yield Damage(f"table {name}", str(stopped), name in DERIVED_TABLES)
        if not is_found:
            yield Damage("the file", str(error))
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield Damage(f"table {table}", f"row {row} belongs to a row of {parent} that is missing")


def _run_integrity_check(
    db: apsw.Connection, trees: Mapping[int, tuple[str, str, str]], table: str = ""
) -> Iterator[Damage]:
    """Run SQLite's own check of the file or of one table, and say what each line of it is about."""
    found: Any = db.execute(f"PRAGMA integrity_check({apsw.format_sql_value(table or _MAX_MESSAGES)})")
    for (text,) in found:
        for line in str(text).splitlines():
            if line == "ok" or line.startswith("***"):
                continue
            where, is_derived = "the file", bool(_ABOUT_FREE_PAGES.search(line))
            if root := _find_tree(db, line):
                kind, name, owner = trees.get(root, ("table", "of the schema", ""))
                where, is_derived = f"{kind} {name}", kind == "index" or owner in DERIVED_TABLES
            elif about := _ABOUT_INDEX.search(line):
                where = f"index {about[1] or about[2] or about[3]}"
                # Rows that should be unique and are not cannot be indexed again.
                is_derived = not line.startswith("non-unique")
            elif " value in " in line:
                where = f"column {line.rpartition(' ')[2]}"
                is_derived = line.rpartition(" ")[2].partition(".")[0] in DERIVED_TABLES
            yield Damage(where, line, is_derived)


def _find_tree(db: apsw.Connection, line: str) -> int:
    """Return the root of the tree that a line of SQLite's check is about; 0 when it does not say."""
    if tree := _TREE.match(line):
        return int(tree[1])
    if page := _SHARED_PAGE.match(line):
        # The table of pages by owner stops at some damage itself.
        with suppress(apsw.Error):
            sql = "SELECT rootpage FROM dbstat JOIN sqlite_schema USING (name) WHERE pageno = ?"
            row: Any = db.execute(sql, (int(page[1]),)).fetchone()
            return int(row[0]) if row else 0
    return 0


# The tables beside the records, and the columns that are read as more than text, the key first.
_OTHER_ROWS = {
    "settings": ("name", "value"),
    "pending": ("run", "queued", "leased_until"),
    "captured_files": ("digest", "runs"),
    "answers": ("id", "time"),
    "messages": ("id", "time", "data"),
}


def check_other_row(table: str, values: Mapping[str, Any]) -> None:
    """Raise when a row of a table beside the records cannot be read."""
    match table:
        # Counters are numbers; of the others some are one word, and what looks like JSON is an object.
        case "settings" if values["name"].startswith("last_"):
            int(values["value"] or 0)
        case "settings" if values["name"] == UNFINISHED_ERASURES:
            _require_items(json.loads(values["value"] or "[]"), dict)
        case "settings" if values["value"].startswith(("{", "[")):
            _require_items([json.loads(values["value"])], dict)
        case "pending":
            from_text(values["queued"])
            if values["leased_until"]:
                from_text(values["leased_until"])
        case "captured_files":
            _require_items(json.loads(values["runs"]), str)
        case "answers":
            from_text(values["time"])
        case "messages":
            from_text(values["time"])
            _require_items([json.loads(values["data"])], dict)


def _require_items(found: Any, kind: type) -> None:
    if not isinstance(found, list):
        raise TypeError(f"expected list, not {type(found).__name__}")
    for item in found:
        if not isinstance(item, kind):
            raise TypeError(f"expected {kind.__name__}, not {type(item).__name__}")


def _check_other_rows(db: apsw.Connection) -> Iterator[Damage]:
    """Check that the rows beside the records can be read."""
    for table, columns in _OTHER_ROWS.items():
        for values in db.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            try:
                check_other_row(table, dict(zip(columns, values, strict=True)))
            except DECODING_ERRORS as error:
                yield Damage(f"{table} {str(values[0])[:80]!r}", str(error))


def _check_derived(db: apsw.Connection) -> Iterator[Damage]:
    """Compare what is derived with what it is derived from."""
    queries = {
        "documents of records that are gone": " UNION ALL ".join(
            f"SELECT record FROM documents WHERE kind = '{kind.name}'"
            f" AND record NOT IN (SELECT id FROM {kind.table})"
            for kind in KINDS
            if kind.is_searchable
        ),
        "records that no search finds": " UNION ALL ".join(
            f"SELECT id FROM {kind.table}"
            f" WHERE id NOT IN (SELECT record FROM documents WHERE kind = '{kind.name}')"
            for kind in _ALWAYS_INDEXED
        ),
        "documents that are not in the text index": (
            "SELECT id FROM documents EXCEPT SELECT id FROM search_docsize"
        ),
        "words of documents that are gone": "SELECT id FROM search_docsize EXCEPT SELECT id FROM documents",
        "documents without their vector": (
            "SELECT d.id FROM documents d LEFT JOIN embedders e ON e.id = d.embedder"
            " LEFT JOIN vector_rows r ON r.id = (d.embedder << 32) + d.id"
            " LEFT JOIN vector_halves h ON h.id = (d.embedder << 32) + d.id WHERE d.embedder > 0"
            " AND (length(r.row) IS NOT e.dimensions + 4 OR length(h.row) IS NOT 2 * e.dimensions)"
        ),
        "blocks of vectors of a wrong size": (
            "SELECT b.id FROM vector_blocks b LEFT JOIN embedders e ON e.id = b.id >> 32"
            f" WHERE length(b.bits) IS NOT {BLOCK} * ((e.dimensions + 63) / 64 * 8)"
        ),
        "runs whose events were counted wrongly": (
            "SELECT run FROM (SELECT run, count(*) AS events FROM events GROUP BY run"
            " EXCEPT SELECT run, events FROM event_sums)"
            " UNION SELECT run FROM event_sums WHERE run NOT IN (SELECT run FROM events)"
        ),
        "lessons whose uses were counted wrongly": (
            "SELECT l.id FROM lessons l LEFT JOIN tallies t ON t.lesson = l.id LEFT JOIN"
            " (SELECT value, count(*) AS uses FROM briefs, json_each(briefs.lessons) GROUP BY value) b"
            " ON b.value = l.id WHERE coalesce(t.used, 0) <> coalesce(b.uses, 0)"
        ),
        "lessons whose verdicts were counted wrongly": (
            "SELECT l.id FROM lessons l LEFT JOIN tallies t ON t.lesson = l.id LEFT JOIN (SELECT lesson, "
            + ", ".join(f"sum(effect = '{name}') AS {name}" for name in _COUNTS)
            + " FROM verdicts GROUP BY lesson) v ON v.lesson = l.id WHERE "
            + " OR ".join(f"coalesce(t.{name}, 0) <> coalesce(v.{name}, 0)" for name in _COUNTS)
        ),
    }  # fmt: skip
    for what, sql in queries.items():
        found: list[Any] = db.execute(f"SELECT * FROM ({sql}) LIMIT {_MAX_MESSAGES}").fetchall()
        if found:
            many = "" if len(found) < _MAX_MESSAGES else " or more"
            yield Damage("derived data", f"{len(found)}{many} {what}, first {found[0][0]!r}", is_derived=True)
    yield from _check_event_sums(db)


def _check_event_sums(db: apsw.Connection) -> Iterator[Damage]:
    """Compare the stored sums of events with what the ledger says of them: the next sum builds on them."""
    rows: Any = db.execute(
        "SELECT s.run, s.events, s.digest, l.payload_hash FROM event_sums s JOIN ledger l ON l.seq ="
        " (SELECT max(seq) FROM ledger WHERE record = s.run AND kind = 'event')"
    )
    for run, events, digest, entered in rows:
        if payload_hash(canonical_json({"run": run, "events": events, "digest": digest})) != entered:
            # Where the events themselves are not as the ledger says, `verify` tells.
            actual = sum_events(SqliteReader(db, VectorCache()), run)
            if payload_hash(canonical_json(actual._asdict())) == entered:
                yield Damage(f"event_sums {run!r}", "it is not the sum of the events", is_derived=True)
