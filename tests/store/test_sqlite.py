"""The SQLite engine: its file, its upgrades, its refusals."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from archivist import Bank
from archivist.config import Config, StoreRules
from archivist.errors import (
    BankLockedError,
    BankReadOnlyError,
    BankTooNewError,
    NoBankError,
    NotABankError,
)
from archivist.records import Actor, ActorKind, Episode, Event, EventKind, Lesson
from archivist.store.results import IndexHit, SearchFilter, TextQuery, scope_token
from archivist.store.rows import mapping_for
from archivist.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration
from archivist.store.sqlite.store import SqliteStore
from tests.banks import lay_bank
from tests.samples import WHEN, lesson

ACTOR = Actor(ActorKind.HUMAN)


def _execute(path: Path, sql: str) -> list[Any]:
    # By the library that the store uses: two copies of SQLite in one process miss each other's locks.
    db = apsw.Connection(str(path))
    rows = db.execute(sql).fetchall()
    db.close()
    return rows


@pytest.mark.req("M7")
def test_a_bank_is_one_file_in_wal_mode_for_its_owner_only(tmp_path: Path) -> None:
    with Bank.open(tmp_path / "project", create=True) as bank:
        bank.lessons.add("Prefer small commits")
        assert stat.S_IMODE(bank.path.stat().st_mode) == 0o600
        assert _execute(bank.path, "PRAGMA journal_mode") == [("wal",)]
        assert _execute(bank.path, "PRAGMA application_id") == [(APPLICATION_ID,)]


def test_the_pragmas_of_the_design_are_set(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "memory.db", create=True)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._db.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    store.close()


def test_an_older_bank_is_upgraded_in_place_and_keeps_its_records(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old = SqliteStore.open(path, create=True, migrations=())
    old.close()
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, position INTEGER) STRICT")
    for place, migration in enumerate(MIGRATIONS[:2]):
        migration.apply(db)
        db.execute("INSERT INTO migrations VALUES (?, ?)", (migration.name, place))
    how = mapping_for(Lesson)
    there = {row[1] for row in db.execute("PRAGMA table_info(lessons)")}
    row = dict(
        zip(how.columns, how.to_row(lesson("old", summary="Kept since the first version")), strict=True)
    )
    row = {name: value for name, value in row.items() if name in there}
    assert len(row) < len(how.columns)
    db.execute(
        f"INSERT INTO lessons ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
        tuple(row.values()),
    )
    db.close()

    store = SqliteStore.open(path)
    with store.reading() as reader:
        assert reader.get(Lesson, "old") == lesson("old", summary="Kept since the first version")
        hits = reader.search(TextQuery(("version",)), search_filter=SearchFilter(), limit=5)
        assert [each.record for each in reader.indexed_documents([hit.place for hit in hits]).values()] == [
            "old"
        ]
    store.close()


def test_a_newer_bank_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    future = Migration("add telepathy", lambda _db: None)
    SqliteStore.open(path, create=True, migrations=(*MIGRATIONS, future)).close()
    with pytest.raises(BankTooNewError, match=r"newer Archivist.*'add telepathy'") as caught:
        SqliteStore.open(path)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize("is_read_first", [True, False])
def test_a_bank_that_newer_code_upgrades_meanwhile_is_refused_like_at_its_opening(
    tmp_path: Path, is_read_first: bool
) -> None:
    path = tmp_path / "memory.db"
    store = SqliteStore.open(path, create=True)
    if is_read_first:
        with store.reading() as reader:
            assert reader.count(Lesson) == 0

    def move(db: apsw.Connection) -> None:
        db.execute("ALTER TABLE lessons RENAME TO wisdom")

    SqliteStore.open(path, migrations=(*MIGRATIONS, Migration("move lessons", move))).close()
    with pytest.raises(BankTooNewError, match="'move lessons'"), store.reading() as reader:
        reader.count(Lesson)
    with pytest.raises(BankTooNewError, match="'move lessons'"), store.writing(ACTOR, WHEN) as writer:
        writer.set_setting("seen", "no")
    with pytest.raises(BankTooNewError, match="'move lessons'"):
        store.reindex()
    store.close()
    assert _execute(path, "SELECT count(*) FROM settings WHERE name = 'seen'") == [(0,)]


def test_a_view_that_began_before_an_upgrade_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = SqliteStore.open(path, create=True)
    with store.reading() as reader:
        SqliteStore.open(path, migrations=(*MIGRATIONS, Migration("later", lambda _db: None))).close()
        assert reader.count(Lesson) == 0
    store.close()


def test_a_migration_that_fails_leaves_the_bank_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore.open(path, create=True).close()

    def half(db: apsw.Connection) -> None:
        db.execute("CREATE TABLE half (a)")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        SqliteStore.open(path, migrations=(*MIGRATIONS, Migration("half", half)))
    assert _execute(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == [(0,)]
    SqliteStore.open(path).close()


def test_a_missing_bank_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(NoBankError):
        Bank.open(tmp_path, create=False)


def test_text_is_not_a_bank(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("this is a shopping list, not a database, and long enough to have a header" * 20)
    with pytest.raises(NotABankError, match="not a SQLite file"):
        Bank.open(path)


def test_another_programs_database_is_not_a_bank_and_stays_untouched(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    _execute(path, "CREATE TABLE recipes (name)")
    before = path.read_bytes()
    with pytest.raises(NotABankError, match="another program"):
        Bank.open(path)
    assert path.read_bytes() == before


def test_an_empty_file_is_no_bank_unless_one_is_to_be_made(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    with pytest.raises(NotABankError, match="empty"):
        Bank.open(path, create=False)
    Bank.open(path, create=True).close()


def test_a_bank_locked_beyond_the_timeout_is_said_to_be_locked(tmp_path: Path) -> None:
    lay_bank(tmp_path)
    hasty = Bank.open(tmp_path, config=Config(store=StoreRules(busy_timeout_s=0.1)))
    db = apsw.Connection(str(hasty.path))
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(BankLockedError, match=r"more than 0\.1 s"):
        hasty.lessons.add("Never written")
    assert hasty.doctor.status()["active_lessons"] == 0
    db.execute("ROLLBACK")
    hasty.lessons.add("Written at last")
    db.close()
    hasty.close()


_AS_NOBODY = """
import os, sys, urllib.parse
os.environ["ARCHIVIST_TRUST__FOLDERS"] = sys.argv[1]
from archivist import Bank
from archivist.errors import BankReadOnlyError
with Bank.open(sys.argv[2], create=True) as loaded:
    loaded.lessons.add("What nobody may not load is loaded")
    loaded.brief()
os.environ["ARCHIVIST_HOME"] = "/nonexistent"
os.setgid(65534); os.setuid(65534)
bank = Bank.open(sys.argv[1], create=False)
print(bank.brief().text, end="")
try:
    bank.lessons.add("No")
except BankReadOnlyError as error:
    print(error.code)
"""


_WATCHED_BY_NOBODY = """
import os, sys, urllib.parse
os.environ["ARCHIVIST_TRUST__FOLDERS"] = sys.argv[1]
from archivist import Bank
from archivist.recall.query import Query
with Bank.open(sys.argv[2], create=True) as loaded:
    loaded.lessons.query(Query())
os.environ["ARCHIVIST_HOME"] = "/nonexistent"
os.setgid(65534); os.setuid(65534)
bank = Bank.open(sys.argv[1], create=False)
known = -1
for line in sys.stdin:
    is_new, known = bank.version() != known, bank.version()
    print(len(bank.lessons.query(Query())), is_new, flush=True)
"""


def _open_to_read(folder: Path) -> None:
    """Let everybody read a project, and nobody but root write it."""
    for path in (folder, folder / ".archivist", *(folder / ".archivist").iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for parent in folder.parents:
        if parent.is_relative_to("/tmp") and parent != Path("/tmp"):  # noqa: S108
            parent.chmod(parent.stat().st_mode | 0o055)


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become somebody without permission")
def test_who_can_only_read_a_bank_sees_what_others_write_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    Bank.open(folder, create=True).close()
    _open_to_read(folder)
    with subprocess.Popen(
        [sys.executable, "-c", _WATCHED_BY_NOBODY, str(folder), str(tmp_path / "other")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as watcher:
        assert watcher.stdin is not None
        assert watcher.stdout is not None

        def seen() -> str:
            watcher.stdin.write("look\n")  # type: ignore[union-attr]
            watcher.stdin.flush()  # type: ignore[union-attr]
            return watcher.stdout.readline()  # type: ignore[union-attr]

        assert (seen(), seen()) == ("0 True\n", "0 False\n")
        with Bank.open(folder, create=True) as bank:
            bank.lessons.add("Prefer small commits")
        assert (seen(), seen()) == ("1 True\n", "1 False\n")
        with Bank.open(folder) as bank:
            bank.lessons.add("Use uv for packages")
            # While its writer holds it, what is new is in the log.
            assert (seen(), seen()) == ("2 True\n", "2 False\n")
            bank.lessons.add("Run the tests in parallel")
            assert (seen(), seen()) == ("3 True\n", "3 False\n")
        with Bank.open(folder) as bank:
            bank.lessons.add("Pin the formatter")
        assert (seen(), seen()) == ("4 True\n", "4 False\n")
        watcher.stdin.close()
    assert watcher.returncode == 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become somebody without permission")
def test_a_read_only_bank_can_be_read_and_says_that_it_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    bank = Bank.open(folder, create=True)
    bank.lessons.add("Prefer small commits")
    bank.close()
    _open_to_read(folder)
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(folder), str(tmp_path / "other")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Prefer small commits [seen 1x, user_feedback]" in done.stdout, done.stderr
    assert done.stdout.endswith("bank_read_only\n")


def test_a_bank_where_no_file_can_be_made_is_said_to_be_read_only(tmp_path: Path) -> None:
    (tmp_path / "wall").write_text("a file where a folder should be")
    with pytest.raises(BankReadOnlyError):
        Bank.open(tmp_path / "wall" / "project", create=True)


@pytest.mark.req("N5")
def test_the_ledger_cannot_be_rewritten_in_place(bank: Bank) -> None:
    bank.lessons.add("Prefer small commits")
    db = apsw.Connection(str(bank.path))
    for statement in ("UPDATE ledger SET verb = 'x'", "DELETE FROM ledger"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            db.execute(statement)
    db.close()


@pytest.mark.req("N5")
@pytest.mark.parametrize(
    ("tampering", "complaint"),
    [
        ("UPDATE lessons SET summary = 'other'", "lesson ID is not as entry 1 left it"),
        ("DELETE FROM lessons", "lesson ID of entry 1 is missing"),
        ("UPDATE ledger_payloads SET payload = '{}' WHERE seq = 1", "the payload of entry 1 was changed"),
        (
            "DROP TRIGGER ledger_keeps; UPDATE ledger SET actor_name = 'eve' WHERE seq = 1",
            "entry 1 does not fit its seal",
        ),
        (
            "DROP TRIGGER ledger_stays; DELETE FROM ledger_payloads; DELETE FROM ledger WHERE seq = 2",
            "verdict",
        ),
        (
            "DROP TRIGGER ledger_stays; DELETE FROM ledger_payloads; DELETE FROM ledger WHERE seq = 1",
            "entry 1 is missing",
        ),
    ],
)
def test_tampering_is_found(bank: Bank, tampering: str, complaint: str) -> None:
    added = bank.lessons.add("Prefer small commits")
    from archivist.records import Effect, Verdict

    with bank.transaction() as writer:
        writer.put(Verdict(run="r", lesson=added.id, time=WHEN, effect=Effect.HELPFUL), "judge")
    assert bank.ledger.verify().is_whole
    _execute(bank.path, tampering)
    found = bank.ledger.verify()
    assert any(complaint.replace("ID", added.id) in problem for problem in found.problems), found.problems


@pytest.mark.req("N5")
def test_a_payload_that_is_gone_without_an_erasure_is_damage_and_shows(bank: Bank) -> None:
    added = bank.lessons.add("Prefer small commits")
    bank.lessons.edit(added.id, summary="Prefer tiny commits")
    _execute(bank.path, "DELETE FROM ledger_payloads WHERE seq = 1")
    found = bank.ledger.verify()
    assert (found.is_whole, found.entries, found.erased) == (False, 2, 0)
    assert [change.is_erased for change in bank.ledger.history("m-001")] == [True, False]


def test_threads_of_one_process_can_share_a_bank(bank: Bank) -> None:
    def add(thread: int) -> None:
        for number in range(20):
            bank.lessons.add(f"Words of thread {thread}, number {number}")

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bank.doctor.status()["active_lessons"] == 80
    assert bank.ledger.verify().is_whole


def _events(store: SqliteStore, run: str, count: int, **fields: Any) -> None:
    events = [
        Event(run=run, seq=seq, kind=EventKind.MESSAGE, text=f"{'cold ' * (seq % 5)}cache {seq}", **fields)
        for seq in range(count)
    ]
    with store.writing(ACTOR, WHEN) as writer:
        writer.put_events(run, events, "capture")


def test_a_small_scope_is_scored_as_fts5_would(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "memory.db", create=True)
    _events(store, "few", 30, tool="rare")
    _events(store, "many", 2000, tool="common")
    rare = SearchFilter(((scope_token("tool", "rare"),),))
    words = TextQuery(("cold", "cache"), (("cold", "cache"),), ("cach",))
    with store.reading() as reader:
        all_of_them = {
            hit.place: hit.score for hit in reader.search(words, search_filter=SearchFilter(), limit=9999)
        }
        scoped = reader.search(words, search_filter=rare, limit=9999)
        common = reader.search(
            words, search_filter=SearchFilter(((scope_token("tool", "common"),),)), limit=9999
        )
    assert len(scoped) == 30
    assert len(common) == 2000
    assert {hit.place for hit in scoped}.isdisjoint(hit.place for hit in common)
    for hit in (*scoped, *common):
        assert hit.score == pytest.approx(all_of_them[hit.place], rel=1e-6)
    store.close()


def test_of_what_very_many_in_a_scope_say_the_latest_are_looked_at(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "memory.db", create=True)
    _events(store, "few", 300, tool="rare")
    _events(store, "many", 6500, tool="common")
    with store.reading() as reader:
        hits = reader.search(
            TextQuery(("cache",)), search_filter=SearchFilter(((scope_token("tool", "rare"),),)), limit=10
        )
        places = sorted(
            hit.place
            for hit in reader.search(TextQuery(("cache",)), search_filter=SearchFilter(), limit=9999)
        )
    assert len(hits) == 10
    assert {hit.place for hit in hits} <= set(places[200:300])
    store.close()


def test_the_pieces_of_the_text_index_are_gathered_and_nothing_is_lost(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "memory.db", create=True)
    for run in range(40):
        _events(store, f"r{run}", 20)

    def pieces() -> int:
        return len(_execute(tmp_path / "memory.db", "SELECT DISTINCT segid FROM search_idx"))

    def found() -> list[IndexHit]:
        with store.reading() as reader:
            return reader.search(TextQuery(("cold",)), search_filter=SearchFilter(), limit=9999)

    before, scattered = found(), pieces()
    while True:
        with store.writing(ACTOR, WHEN) as writer:
            if not writer.merge_index():
                break
    assert scattered > 4 >= pieces()
    assert found() == before
    assert len(before) == 640
    store.close()


def test_a_bank_of_before_learns_who_spoke(tmp_path: Path) -> None:
    roles = ("user", "assistant", "maker")
    path = lay_bank(tmp_path)
    with Bank.open(tmp_path) as bank:
        said = (
            Event(run="r", seq=seq, kind=EventKind.MESSAGE, role=role, text="use tabs")
            for seq, role in enumerate(roles)
        )
        bank.capture(Episode(id="r"), said)
    _execute(path, "UPDATE documents SET speaker = '' WHERE speaker IN ('user', 'assistant')")
    _execute(path, "DELETE FROM migrations WHERE name = 'know who speaks'")
    SqliteStore.open(path).close()
    found = _execute(path, "SELECT speaker FROM documents WHERE kind = 'event' ORDER BY position")
    assert [speaker for (speaker,) in found] == list(roles)
