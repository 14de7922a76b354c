"""A cluster of Citus: what distributes the tables, and the proof that every statement is one for one node.

Citus is in no registry, so the SQL is checked on plain PostgreSQL: it is parsed by PostgreSQL's own grammar,
and run with stand-ins for the three functions of Citus.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pglast.parser import parse_sql_json

from archivist import Bank
from archivist.records import Episode, Lesson
from archivist.store.postgres.schema import UNFORCED, table_names
from archivist.store.postgres.store import PostgresStore
from archivist.store.results import SearchFilter, TextQuery
from tests.commands import Command
from tests.postgres import Server, new_database, shared_server
from tests.samples import WHEN, finding, lesson, reviewed
from tests.store.test_postgres import ACTOR

ROOT = Path(__file__).parents[2]
TABLES = table_names(has_vectors=True)
STAND_INS = """
CREATE TABLE public.distributed (name text, colocate_with text, shards int);
CREATE FUNCTION create_distributed_table(name regclass, bank text, colocate_with text, shard_count int = 0)
    RETURNS void LANGUAGE sql AS
    $$INSERT INTO public.distributed VALUES (name::text, colocate_with, shard_count)$$;
CREATE FUNCTION create_reference_table(name regclass) RETURNS void LANGUAGE sql AS
    $$INSERT INTO public.distributed VALUES (name::text, '', 0)$$;
CREATE FUNCTION truncate_local_data_after_distributing_table(name regclass) RETURNS void LANGUAGE sql AS '';
"""


@pytest.fixture
def database() -> str:
    """Return a database of our own, with its tables and two banks in it."""
    url = new_database(shared_server())
    for name in ("one", "o'ther\\bank"):
        store = PostgresStore.open(f"{url}#{name.replace(chr(92), '%5C')}", create=True)
        with store.writing(ACTOR, WHEN) as writer:
            writer.put(lesson("a", summary=f"Rotate the keys of {name}"), "add")
            writer.put(Episode(id="r1", number=1), "capture")
        store.close()
    return url


def test_a_server_without_citus_is_refused_with_the_remedy(archivist: Command, database: str) -> None:
    refused = archivist("store", "distribute", ARCHIVIST_STORE=database)
    assert refused.code == 5
    assert "no extension citus" in refused.err
    assert "docs/guides/scale-out.md" in refused.err
    assert (ROOT / "docs/guides/scale-out.md").is_file()
    empty = archivist("store", "distribute", "--dry-run", ARCHIVIST_STORE=new_database(shared_server()))
    assert (empty.code, "store init" in empty.err) == (5, True)


def test_the_printed_sql_distributes_every_table_by_its_bank(archivist: Command, database: str) -> None:
    script = archivist("store", "distribute", "--dry-run", "--shards", "128", ARCHIVIST_STORE=database).out
    called = [
        list(call["args"])
        for call in _find(json.loads(parse_sql_json(script)), "FuncCall")
        if call["funcname"][-1]["String"]["sval"] == "create_distributed_table"
    ]
    names = [_text(arguments[0]) for arguments in called]
    with psycopg.connect(database) as connection:
        with_bank = connection.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.columns"
            " WHERE table_schema = 'archivist' AND column_name = 'bank' AND table_name !~ '_[0-9]+$'"
        ).fetchall()
    assert sorted(names) == sorted(name for (name,) in with_bank) == sorted(f"archivist.{t}" for t in TABLES)
    assert {_text(arguments[1]) for arguments in called} == {"bank"}
    # The first makes the group, and all others follow it.
    assert names[0] == "archivist.banks"
    options = [{o["NamedArgExpr"]["name"]: o["NamedArgExpr"]["arg"] for o in each[2:]} for each in called]
    assert _text(options[0]["colocate_with"]) == "none"
    assert options[0]["shard_count"]["A_Const"]["ival"]["ival"] == 128
    assert {_text(each["colocate_with"]) for each in options[1:]} == {"archivist.banks"}
    assert "create_reference_table('archivist.migrations')" in script


@pytest.mark.req("M8")
def test_the_sql_keeps_rows_walls_and_the_ledger(archivist: Command, database: str) -> None:
    script = archivist("store", "distribute", "--dry-run", ARCHIVIST_STORE=database).out
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(STAND_INS)
        connection.execute(script)
        done = connection.execute("SELECT count(*) FROM public.distributed").fetchone()
        assert done == (len(TABLES) + 1,)
        kinds = connection.execute(
            "SELECT relname, relkind::text, relrowsecurity, relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = 'archivist'::regnamespace AND relkind IN ('r', 'p')"
            " AND relname <> 'migrations'"
        ).fetchall()
        assert {row[0]: row[1:] for row in kinds} == {t: ("r", True, t not in UNFORCED) for t in TABLES}
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            connection.execute("DELETE FROM archivist.ledger")
    for name in ("one", "o'ther%5Cbank"):
        store = PostgresStore.open(f"{database}#{name}")
        with store.writing(ACTOR, WHEN) as writer:
            writer.put(lesson("b", number=2, summary="Pin the linter"), "add")
        with store.reading() as reader:
            assert reader.verify().is_whole
            assert reader.count(Lesson) == 2
            found = reader.search(TextQuery(("keys",)), search_filter=SearchFilter(), limit=9)
            assert len(found) == 1
        store.close()
    assert archivist("store", "init", ARCHIVIST_STORE=database).code == 0


@pytest.fixture(scope="module")
def logging_server() -> Iterator[Server]:
    """Start a server that writes every statement it is given, with its values, to a log."""
    server = Server()
    with psycopg.connect(server.url, autocommit=True) as connection:
        for setting, value in (
            ("logging_collector", "on"), ("log_destination", "jsonlog"), ("log_statement", "all"),
            ("log_directory", "statements"), ("log_filename", "all.log"), ("log_rotation_size", "0"),
        ):  # fmt: skip
            connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
    server.stop()
    server.start()
    yield server
    server.delete()


@pytest.mark.req("M8")
def test_every_statement_is_for_one_bank(logging_server: Server, archivist: Command) -> None:
    """So Citus sends each to the one node that has the bank, and no other node is asked."""
    suites = ("tests/contract/test_stores.py", "tests/edges/test_store_command.py")
    environment = {**os.environ, "ARCHIVIST_TEST_POSTGRES": logging_server.url}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *suites]
    done = subprocess.run(
        [*command, "-k", "not sqlite"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    _use_services(f"{new_database(logging_server.url)}#services", archivist)
    logging_server.stop()
    statements = list(_logged(logging_server.folder / "statements" / "all.json"))
    used: set[str] = set()
    for sql, values, bank in statements:
        tables = tables_of_statement(sql)
        used |= tables
        if tables:
            quoted = bank.replace("'", "''")
            assert values.lower().startswith(f"parameters: $1 = '{quoted.lower()}'"), (sql, values, bank)
    assert len(statements) > 1_000
    assert used == TABLES


def _use_services(url: str, archivist: Command) -> None:
    """Do once what agents and people do: capture, learn, search, brief, judge, erase, check."""
    with Bank.open(url, create=True) as bank:
        for run in ("r1", "r2"):
            bank.capture(*reviewed(run, finding("The keys were not rotated before the release")))
            bank.reflect(run)
        bank.brief(task="release", run="r3")
        bank.capture(*reviewed("r3", finding("The keys were not rotated before the release")))
        bank.audit("r3")
        bank.age("r3")
    server = {"ARCHIVIST_STORE": url}
    for words in (
        ("init",), ("status",), ("recall", "rotate the keys"), ("tasks", "add", "Release"),
        ("--actor", "agent:eve", "working", "note", "a text"), ("core", "update", "status", "Sprint 4"),
        ("archive", "add", "An old text", "--type", "decision"), ("erase", "m-001", "--yes"),
        ("prune", "--days", "1", "--yes"), ("doctor", "--reindex"), ("verify",), ("store", "status"),
    ):  # fmt: skip
        ran = archivist(*words, **server)
        # With a warning, and with the note that a server keeps logs.
        assert ran.code in (0, 1, 7), (words, ran)


def _logged(log: Path) -> Iterator[tuple[str, str, str]]:
    """Yield each statement of ours, its values, and the bank that its transaction is for."""
    banks: dict[str, str] = {}
    for line in log.read_text("utf-8").rstrip("\n").split("\n"):
        entry = json.loads(line)
        kind, _, sql = entry["message"].partition(": ")
        if entry.get("application_name") != "archivist" or not kind.startswith(("execute", "statement")):
            continue
        setting = 'SET LOCAL "archivist"."bank" = '
        if sql.startswith(setting):
            banks[entry["session_id"]] = sql.removeprefix(setting).strip("E' ").replace("''", "'")
        yield sql, entry.get("detail", ""), banks.get(entry["session_id"], "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM lessons",
        "SELECT * FROM lessons WHERE bank = $2",
        "SELECT * FROM lessons WHERE bank = $1 OR id = $2",
        "SELECT * FROM lessons l JOIN episodes e ON e.id = l.id WHERE l.bank = $1",
        "SELECT (SELECT count(*) FROM events) FROM lessons WHERE bank = $1",
        "SELECT id FROM lessons WHERE bank = $1 UNION ALL SELECT id FROM facts",
        "UPDATE lessons SET number = 1 WHERE id = $1",
        "UPDATE lessons SET number = 1 FROM unnest($2::text[]) n WHERE bank = $1",
        "DELETE FROM lessons WHERE bank = $1 AND id IN (SELECT id FROM facts)",
        "INSERT INTO settings (name, value) VALUES ($1, $2)",
        "INSERT INTO settings (bank, name) VALUES ($2, $1)",
        "INSERT INTO settings (bank, name) SELECT $1, id FROM facts WHERE bank = $1",
    ],
)
def test_the_proof_finds_a_statement_that_is_not(sql: str) -> None:
    with pytest.raises(AssertionError):
        tables_of_statement(sql)


def tables_of_statement(sql: str) -> set[str]:
    """Return our tables that a statement uses; fail when one of them is not held to the bank in `$1`."""
    used: set[str] = set()
    for kind in ("SelectStmt", "UpdateStmt", "DeleteStmt", "InsertStmt"):
        for query in _find(json.loads(parse_sql_json(sql)), kind):
            used |= _check_query(kind, query, sql)
    return used


def _check_query(kind: str, query: dict[str, Any], sql: str) -> set[str]:
    if "larg" in query:
        return _check_query(kind, query["larg"], sql) | _check_query(kind, query["rarg"], sql)
    if kind == "InsertStmt":
        return _check_insert(query, sql)
    sources = list(_sources([*query.get("fromClause", ()), *query.get("usingClause", ())]))
    if kind != "SelectStmt":
        assert all("RangeVar" in source for source in sources), f"Citus takes no function here: {sql}"
        sources.append({"RangeVar": query["relation"]})
    aliases = {}
    for source in sources:
        if (table := source.get("RangeVar")) and table["relname"] in TABLES:
            aliases[table.get("alias", {}).get("aliasname", table["relname"])] = table["relname"]
    joined = [source["JoinExpr"]["quals"] for source in sources if "JoinExpr" in source]
    held, pairs = set(), []
    for test in _conjuncts([query.get("whereClause"), *joined]):
        left, right = test.get("lexpr", {}), test.get("rexpr", {})
        if test.get("name") != [{"String": {"sval": "="}}] or not (owner := _owner(left, aliases)):
            continue
        if right.get("ParamRef", {}).get("number") == 1:
            held.add(owner)
        elif other := _owner(right, aliases):
            pairs.append({owner, other})
    for pair in pairs:
        held |= pair if pair & held else set()
    assert held == aliases.keys(), f"not held to one bank: {aliases.keys() - held} in {sql}"
    return set(aliases.values())


def _check_insert(query: dict[str, Any], sql: str) -> set[str]:
    table = str(query["relation"]["relname"])
    if table not in TABLES:
        return set()
    names = [column["ResTarget"]["name"] for column in query["cols"]]
    rows = query["selectStmt"]["SelectStmt"].get("valuesLists", [])
    assert rows, f"rows that are not given: {sql}"
    for row in rows:
        given = row["List"]["items"][names.index("bank")] if "bank" in names else {}
        assert given.get("ParamRef", {}).get("number") == 1, f"without its bank: {sql}"
    return {table}


def _find(node: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Yield every node of a kind in a parsed statement."""
    if isinstance(node, list):
        for each in node:
            yield from _find(each, kind)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name == kind:
                yield value
            yield from _find(value, kind)


def _sources(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        if join := node.get("JoinExpr"):
            yield from _sources([join["larg"], join["rarg"]])


def _conjuncts(nodes: list[dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    """Yield the tests that must all hold."""
    for node in nodes:
        if node and node.get("BoolExpr", {}).get("boolop") == "AND_EXPR":
            yield from _conjuncts(node["BoolExpr"]["args"])
        elif node and "A_Expr" in node:
            yield node["A_Expr"]


def _owner(node: dict[str, Any], aliases: dict[str, str]) -> str:
    """Return the table whose bank a column is, or nothing."""
    names = [part.get("String", {}).get("sval", "") for part in node.get("ColumnRef", {}).get("fields", ())]
    if names[-1:] != ["bank"]:
        return ""
    if len(names) == 1:
        return next(iter(aliases)) if len(aliases) == 1 else ""
    return names[0] if names[0] in aliases else ""


def _text(node: dict[str, Any]) -> str:
    return str(node["A_Const"]["sval"]["sval"])
