"""Banks with content of every kind, and the ways in which a test damages their files."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from archivist import Bank
from archivist.store.sqlite.pages import PageReader
from tests.commands import run_here
from tests.samples import MISSING_MODULE, agent_log

PAGE = 4096
TOPICS = ("Caching", "Login", "Export", "Parser", "Billing", "Search", "Upload")


class FileDamage(NamedTuple):
    """One way to damage a bank's file."""

    name: str
    apply: Callable[[Path, random.Random], None]


def fill_bank(folder: Path) -> Path:
    """Make a bank with records of every kind, several pages of each large table, and free pages."""

    def run(*words: str, stdin: bytes = b"") -> str:
        ran = run_here(words, folder, stdin, {})
        assert ran.code in (0, 7), (words, ran)
        return ran.out

    folder.mkdir()
    run("init")
    for session in range(2):
        calls = [*MISSING_MODULE, *((f"cat part{n}.log", f"line {n} " * 900, False) for n in range(12))]
        log = agent_log(folder / f"log{session}.jsonl", calls, session=f"s-{session}", project="billing")
        run("run", "start", "--run", f"s-{session}", "--task", "fix the tests", "--repo", "billing")
        run("run", "finish", str(log), "--run", f"s-{session}")
    with Bank.open(folder, create=False) as bank:
        for n in range(120):
            rule = f"{'keep ' * (n % 5) * 60}check {TOPICS[n % 7]} {n}"
            bank.lessons.add(f"{TOPICS[n % 7]} number {n} breaks without {n * 7919}", rule=rule, tags=("x",))
    for n in range(4):
        run("knowledge", "set", "build", f"key{n}", f"value {n}")
        run("stream", "log", f"did step {n}", "--role", "builder", "--content", f"what happened {n} " * 30)
    run("archive", "add", "A long text. " * 900, "--type", "spec")
    run("token", "create", "--actor", "agent:ci")
    run("core", "append", "threads", "the tests")
    db = connect(folder)
    db.execute("DELETE FROM answers; CREATE TABLE gone (text TEXT)")
    db.executemany("INSERT INTO gone VALUES (?)", [("x" * 3000,) for _ in range(30)])
    # A few free pages, as any bank has that lives for a while.
    db.execute("DROP TABLE gone")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    return folder / ".archivist" / "memory.db"


def connect(folder: Path) -> apsw.Connection:
    """Open a project's bank as another program would."""
    return apsw.Connection(str(folder / ".archivist" / "memory.db"))


# Bytes


def _patch(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def _flip(path: Path, start: int, length: int, count: int, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(count):
        content[start + chance.randrange(length)] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def _pages_of(path: Path, table: str) -> list[int]:
    """Return the pages of a table or an index, the root first."""
    reader = PageReader(path.read_bytes())
    root = reader.schema_roots()[table]
    return [number for number, _ in reader.tree_pages(root)]


def _header(offset: int, data: bytes) -> Callable[[Path, random.Random], None]:
    return lambda path, _: _patch(path, offset, data)


def _flip_in(table: str, count: int = 6) -> Callable[[Path, random.Random], None]:
    """Flip bits in a page of a table or index other than its root."""

    def apply(path: Path, chance: random.Random) -> None:
        page = chance.choice(_pages_of(path, table)[1:] or _pages_of(path, table))
        _flip(path, (page - 1) * PAGE, PAGE, count, chance)

    return apply


def _flip_schema(path: Path, chance: random.Random) -> None:
    pages = [number for number, _ in PageReader(path.read_bytes()).tree_pages(1)]
    _flip(path, (pages[1] - 1) * PAGE, PAGE, 30, chance)


def _break_schema_text(path: Path, _chance: random.Random) -> None:
    content = path.read_bytes()
    pages = [number for number, _ in PageReader(content).tree_pages(1)]
    for page in pages:
        at = content.find(b"CREATE TABLE lessons", (page - 1) * PAGE, page * PAGE)
        if at >= 0:
            _patch(path, at, b"CREATE TUBLE lessons")


def _zero(table: str, *, is_root: bool = False) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, chance: random.Random) -> None:
        pages = _pages_of(path, table)
        page = pages[0] if is_root else chance.choice(pages[1:] or pages)
        _patch(path, (page - 1) * PAGE, bytes(PAGE))

    return apply


def _swap(one: str, other: str) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, chance: random.Random) -> None:
        first, second = chance.choice(_pages_of(path, one)[1:]), chance.choice(_pages_of(path, other)[1:])
        content = bytearray(path.read_bytes())
        here, there = slice((first - 1) * PAGE, first * PAGE), slice((second - 1) * PAGE, second * PAGE)
        content[here], content[there] = content[there], content[here]
        path.write_bytes(content)

    return apply


def _flip_overflow(path: Path, chance: random.Random) -> None:
    """Cut the chain of a long text's pages."""
    reader = PageReader(path.read_bytes())
    root = reader.schema_roots()["events"]
    before = set(reader.seen)
    leaves = {number for number, _ in reader.tree_pages(root)}
    page = chance.choice(sorted(reader.seen - leaves - before))
    _patch(path, (page - 1) * PAGE, struct.pack(">I", 0xFFFFFF))


def _break_free_list(path: Path, _chance: random.Random) -> None:
    trunk = struct.unpack(">I", path.read_bytes()[32:36])[0]
    assert trunk
    _patch(path, (trunk - 1) * PAGE + 4, struct.pack(">II", 2, 5))


def _truncate(share: float) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, _chance: random.Random) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return apply


def _fill_with(content: bytes) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, _chance: random.Random) -> None:
        path.write_bytes(content)

    return apply


def _become_other_program(path: Path, _chance: random.Random) -> None:
    path.unlink()
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE songs (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO songs VALUES (1, 'la')")
    db.close()


# The log: a bank is written to and copied with its log before anybody has closed it.


def _with_log(change: Callable[[Path, Path, random.Random], None]) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, chance: random.Random) -> None:
        live = path.with_name("live.db")
        shutil.copyfile(path, live)
        db = apsw.Connection(str(live))
        db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        for number in range(20):
            db.execute("UPDATE pending SET error = ?", (f"{number}" * 200,))
            db.execute("INSERT INTO settings VALUES (?, ?)", (f"note{number}", "x" * 500))
        log = path.with_name(f"{path.name}-wal")
        shutil.copyfile(live.with_name("live.db-wal"), log)
        db.close()
        for end in ("", "-wal", "-shm"):
            live.with_name(live.name + end).unlink(missing_ok=True)
        change(path, log, chance)

    return apply


def _flip_log(_path: Path, log: Path, chance: random.Random) -> None:
    _flip(log, 32, log.stat().st_size - 32, 10, chance)


def _cut_log(_path: Path, log: Path, _chance: random.Random) -> None:
    content = log.read_bytes()
    log.write_bytes(content[: len(content) // 2])


def _break_header_under_log(path: Path, _log: Path, _chance: random.Random) -> None:
    _patch(path, 0, bytes(100))


def _lay_foreign_log(path: Path, _chance: random.Random) -> None:
    """Put the log of another bank beside this one."""
    other = path.with_name("other.db")
    db = apsw.Connection(str(other))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    db.execute("CREATE TABLE songs (id INTEGER PRIMARY KEY, name TEXT)")
    db.executemany("INSERT INTO songs VALUES (?, ?)", [(n, "la " * 300) for n in range(60)])
    shutil.copyfile(other.with_name("other.db-wal"), path.with_name(f"{path.name}-wal"))
    db.close()
    for end in ("", "-wal", "-shm"):
        other.with_name(other.name + end).unlink(missing_ok=True)


# Rows


def _sql(*statements: str) -> Callable[[Path, random.Random], None]:
    def apply(path: Path, _chance: random.Random) -> None:
        db = apsw.Connection(str(path))
        for statement in statements:
            db.execute(statement)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.close()

    return apply


_OPEN_LEDGER = "DROP TRIGGER ledger_keeps; DROP TRIGGER ledger_stays"
_CLOSE_LEDGER = (
    "CREATE TRIGGER ledger_keeps BEFORE UPDATE ON ledger\n"
    "            BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;\n"
    "        CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger\n"
    "            BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END"
)


def _in_ledger(statement: str) -> Callable[[Path, random.Random], None]:
    return _sql(_OPEN_LEDGER, f"PRAGMA foreign_keys = OFF; {statement}", _CLOSE_LEDGER)


def _change_lesson(change: str) -> Callable[[Path, random.Random], None]:
    return _sql(f"UPDATE lessons SET {change} WHERE id = (SELECT max(id) FROM lessons)")  # noqa: S608


DAMAGES = [
    FileDamage("header: magic", _header(0, b"SQLote")),
    FileDamage("header: page size", _header(16, b"\x20\x00")),
    FileDamage("header: versions", _header(18, b"\x09\x09")),
    FileDamage("header: page count", _header(28, b"\x00\x00\x00\x20")),
    FileDamage("header: schema format", _header(44, b"\x00\x00\x00\x09")),
    FileDamage("header: encoding", _header(56, b"\x00\x00\x00\x03")),
    FileDamage("header: application id", _header(68, b"abcd")),
    FileDamage("header: zeroed", _header(0, bytes(100))),
    FileDamage("schema: flipped bits", _flip_schema),
    FileDamage("schema: first page zeroed", _header(0, bytes(PAGE))),
    FileDamage("schema: first page lost its tree", _header(100, bytes(200))),
    FileDamage("schema: text of a table", _break_schema_text),
    FileDamage("leaf: lessons", _flip_in("lessons")),
    FileDamage("leaf: lessons, heavily", _flip_in("lessons", 60)),
    FileDamage("leaf: events", _flip_in("events")),
    FileDamage("leaf: ledger", _flip_in("ledger")),
    FileDamage("leaf: ledger payloads", _flip_in("ledger_payloads", 20)),
    FileDamage("leaf: entries", _flip_in("entries", 30)),
    FileDamage("root: lessons zeroed", _zero("lessons", is_root=True)),
    FileDamage("root: ledger zeroed", _zero("ledger", is_root=True)),
    FileDamage("root: events zeroed", _zero("events", is_root=True)),
    FileDamage("root: settings zeroed", _zero("settings", is_root=True)),
    FileDamage("page zeroed: lessons", _zero("lessons")),
    FileDamage("page zeroed: ledger", _zero("ledger")),
    FileDamage("page zeroed: payloads", _zero("ledger_payloads")),
    FileDamage("pages swapped: lessons, events", _swap("lessons", "events")),
    FileDamage("pages swapped: ledger, payloads", _swap("ledger", "ledger_payloads")),
    FileDamage("overflow: chain cut", _flip_overflow),
    FileDamage("free pages: list broken", _break_free_list),
    FileDamage("index: flipped bits", _flip_in("sqlite_autoindex_events_1", 40)),
    FileDamage("index: root zeroed", _zero("lessons_by_weight", is_root=True)),
    FileDamage("index: ledger by record", _zero("ledger_by_record")),
    FileDamage("text index: flipped bits", _flip_in("search_data", 40)),
    FileDamage("text index: page zeroed", _zero("search_idx", is_root=True)),
    FileDamage("text index: rows gone", _sql("DELETE FROM search_data WHERE id > 10")),
    FileDamage("text index: a document forgotten", _sql("DELETE FROM search_docsize WHERE id % 3 = 0")),
    FileDamage("documents: some gone", _sql("DELETE FROM documents WHERE id % 2")),
    FileDamage("vectors: cut short", _sql("UPDATE vector_rows SET row = x'00' WHERE id % 2")),
    FileDamage("tallies: wrong", _sql("UPDATE tallies SET used = used + 7", "DELETE FROM event_sums")),
    FileDamage("log: flipped bits", _with_log(_flip_log)),
    FileDamage("log: cut", _with_log(_cut_log)),
    FileDamage("log: whole, header broken", _with_log(_break_header_under_log)),
    FileDamage("log: of another file", _lay_foreign_log),
    FileDamage("truncated: half", _truncate(0.5)),
    FileDamage("truncated: by a little", _truncate(0.997)),
    FileDamage("truncated: one page", _truncate(0.004)),
    FileDamage("truncated: empty", _truncate(0)),
    FileDamage("garbage", _fill_with(b"\x93neither a bank nor text\x00" * 2_000)),
    FileDamage("another program's file", _become_other_program),
    FileDamage("row: status", _change_lesson("status = 'nonsense'")),
    FileDamage("row: time", _change_lesson("updated = 'yesterday'")),
    FileDamage("row: list", _change_lesson("tags = '{nope'")),
    FileDamage("row: list of numbers", _change_lesson("tags = '[1, 2]'")),
    FileDamage("row: no text", _change_lesson("summary = CAST(x'ff41fe' AS TEXT)")),
    FileDamage("row: extra of a run", _sql("UPDATE episodes SET extra = '[]'")),
    FileDamage("row: kind of an event", _sql("UPDATE events SET kind = 'nonsense', time = 'x'")),
    FileDamage("row: id of an event", _sql("UPDATE OR IGNORE events SET id = 'nonsense'")),
    FileDamage(
        "row: part of an id", _sql("UPDATE verdicts SET lesson = 'none'; UPDATE blocks SET role = 'x'")
    ),
    FileDamage("row: lessons of a brief", _sql("UPDATE briefs SET lessons = 'nope'")),
    FileDamage("row: settings", _sql("UPDATE settings SET value = '{'")),
    FileDamage("row: a number", _sql("UPDATE settings SET value = 'x' WHERE name LIKE 'last%'")),
    FileDamage("row: captured files", _sql("UPDATE captured_files SET runs = '5'")),
    FileDamage("row: changed words", _change_lesson("summary = 'Trust me'")),
    FileDamage("row: removed", _sql("DELETE FROM lessons WHERE id = (SELECT max(id) FROM lessons)")),
    FileDamage("ledger: a verb", _in_ledger("UPDATE ledger SET verb = 'add' WHERE seq = 9")),
    FileDamage("ledger: an actor", _in_ledger("UPDATE ledger SET actor_kind = 'ghost' WHERE seq = 9")),
    FileDamage("ledger: a time", _in_ledger("UPDATE ledger SET time = 'never' WHERE seq = 9")),
    FileDamage("ledger: entries removed", _in_ledger("DELETE FROM ledger WHERE seq BETWEEN 20 AND 24")),
    FileDamage("ledger: payloads changed", _sql("UPDATE ledger_payloads SET payload = '{}' WHERE seq > 30")),
    FileDamage("ledger: payloads no JSON", _sql("UPDATE ledger_payloads SET payload = '{' WHERE seq > 30")),
    FileDamage("dropped: lessons", _sql("DROP TABLE lessons")),
    FileDamage("dropped: captured files", _sql("DROP TABLE captured_files")),
    FileDamage("dropped: text index", _sql("DROP TABLE search")),
    FileDamage("dropped: an index", _sql("DROP INDEX lessons_by_weight")),
    FileDamage("dropped: a trigger", _sql("DROP TRIGGER ledger_keeps")),
    FileDamage("added: a trigger", _sql("CREATE TRIGGER spy AFTER INSERT ON lessons BEGIN SELECT 1; END")),
    FileDamage("columns: one renamed", _sql("ALTER TABLE episodes RENAME COLUMN summary TO words")),
]


def readable_ids(path: Path) -> dict[str, set[str]]:
    """Return the ids of every record that a plain reader can read, from either end of each table."""
    from archivist.records.kinds import KINDS

    found: dict[str, set[str]] = {}
    try:
        db = apsw.Connection(str(path))
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    except apsw.Error:
        return found
    for kind in KINDS:
        ids = found.setdefault(kind.table, set())
        for order in ("ASC", "DESC"):
            try:
                rows: Any = db.execute(f"SELECT * FROM {kind.table} ORDER BY rowid {order}")  # noqa: S608
                for row in rows:
                    if isinstance(row[0], str):
                        ids.add(row[0])
            except (apsw.Error, UnicodeDecodeError):
                continue
    db.close()
    return found


def sqlite_complaints(path: Path) -> list[str]:
    """Return what SQLite's own check says; what it raises when it cannot check."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        rows: Any = db.execute("PRAGMA integrity_check").fetchall()
        db.close()
    except apsw.Error as error:
        return [str(error)]
    lines = [line for (text,) in rows for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]
