"""Damaged banks: every damage is named, nothing ends in a traceback, what can be read is salvaged."""

from __future__ import annotations

import json
import random
import shutil
import stat
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import apsw
import pytest

from archivist import Bank
from archivist.errors import BankDamagedError, BankTooNewError, InputError, NotABankError
from archivist.recall.query import Query
from archivist.records import Lesson
from archivist.records.actor import ARCHIVIST
from archivist.store.filters import equals
from archivist.store.sqlite.copies import restore_backup, salvage_bank
from archivist.store.sqlite.schema import MIGRATIONS
from archivist.store.sqlite.store import SqliteStore
from tests.commands import Command
from tests.conftest import START, TickingClock
from tests.edges.http_server import serving
from tests.faults.damages import DAMAGES, FileDamage, fill_bank, readable_ids, sqlite_complaints
from tests.samples import lesson

# One of each way to be damaged; all of them run by `make soak`.
_QUICK = {
    "header: magic", "schema: first page zeroed", "leaf: ledger", "page zeroed: lessons",
    "index: root zeroed", "text index: flipped bits", "log: flipped bits", "truncated: half", "garbage",
    "row: status", "ledger: an actor", "dropped: an index",
}  # fmt: skip
# Of these every command is tried at once: a page that cannot be read, and rows that cannot be understood.
_QUICK_FOR_COMMANDS = {"page zeroed: lessons", "row: status"}
_QUICK_FOR_SALVAGE = _QUICK - {"garbage", "dropped: an index", "index: root zeroed", "row: status"}


def _cases(quick: set[str]) -> list[Any]:
    return [
        pytest.param(damage, marks=() if damage.name in quick else pytest.mark.soak, id=damage.name)
        for damage in DAMAGES
    ]


COMMANDS = (
    ("brief",),
    ("recall", "caching breaks"),
    ("lessons", "list"),
    ("lessons", "add", "Say it twice"),
    ("capture", "log0.jsonl"),
    ("reflect",),
    ("export", "out"),
    ("share", "shared"),
    ("status",),
    ("erase", "--matching", "freezegun", "--yes"),
    ("undo", "m-001"),
    ("knowledge", "list"),
    ("stream", "list"),
    ("episodes", "list"),
    ("audit", "report"),
    ("prune",),
    ("run", "start", "--run", "r-9"),
    ("backup", "copy.db"),
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a bank that holds records of every kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARCHIVIST_HOME", str(tmp_path_factory.mktemp("home")))
        folder = tmp_path_factory.mktemp("sample") / "work"
        fill_bank(folder)
    return folder


class Damaged:
    """Copies of a project whose bank was damaged in the same way."""

    def __init__(self, sample: Path, folder: Path, damage: FileDamage, run: Command) -> None:
        self._sample, self._folder, self._damage, self._run = sample, folder, damage, run
        self.path = folder / ".archivist" / "memory.db"

    def lay(self) -> None:
        """Lay the damaged bank anew."""
        shutil.rmtree(self._folder)
        shutil.copytree(self._sample, self._folder)
        self._damage.apply(self.path, random.Random(1))  # noqa: S311

    def run(self, *words: str, stdin: bytes = b"") -> tuple[int, str]:
        """Run a command on the bank as it is; it must not end in a traceback."""
        ran = self._run(*words, stdin=stdin)
        assert "Traceback" not in ran.err, (words, ran.err)
        return ran.code, ran.out + ran.err


@pytest.fixture
def damaged(sample: Path, project: Path, archivist: Command, request: pytest.FixtureRequest) -> Damaged:
    """Return the damaged project of a case."""
    return Damaged(sample, project, request.param, archivist)


def _is_named(complaint: str, told: str) -> bool:
    """Say whether SQLite's words are repeated; where it gives up without a place, whether one is named."""
    if complaint == "file is not a database":
        return "it is not a SQLite file" in told
    gave_up = complaint == "database disk image is malformed"
    return complaint in told or (gave_up and any(word in told for word in ("Tree ", "table ", "index ")))


@pytest.mark.parametrize("damaged", _cases(_QUICK), indirect=True)
def test_what_sqlite_sees_is_named_and_what_is_advised_mends_it(damaged: Damaged) -> None:
    damaged.lay()
    complaints = sqlite_complaints(damaged.path)
    damaged.lay()
    code, told = damaged.run("verify")
    if complaints:
        assert code in (1, 5)
        assert [line for line in complaints if not _is_named(line, told)] == []
    damaged.lay()
    health, lines = damaged.run("doctor")
    assert (health == 0) <= (code == 0)
    if complaints:
        assert health in (1, 5)
        assert _is_named(complaints[0], lines)
    # An empty file is no bank: a repository can bring one.
    is_empty = not damaged.path.stat().st_size
    assert code == 0 or any(word in lines for word in ("salvage", "--reindex", "--bank")) or is_empty
    assert not is_empty or "no bank at" in lines
    if "doctor --reindex builds" in told:
        damaged.run("doctor", "--reindex")
        assert damaged.run("verify")[0] == 0


@pytest.mark.parametrize("damaged", _cases(_QUICK_FOR_COMMANDS), indirect=True)
def test_no_command_ends_in_a_traceback(damaged: Damaged, project: Path) -> None:
    for words in COMMANDS:
        damaged.lay()
        damaged.run(*words)
    event = {"session_id": "a", "cwd": str(project), "hook_event_name": "SessionStart", "source": "startup"}
    damaged.lay()
    assert damaged.run("hook", "claude-code", "session-start", stdin=json.dumps(event).encode())[0] == 0


@pytest.mark.parametrize("damaged", _cases(_QUICK_FOR_SALVAGE), indirect=True)
def test_a_salvaged_bank_is_whole_and_holds_what_a_plain_reader_reads(
    damaged: Damaged, project: Path
) -> None:
    damaged.lay()
    before = damaged.path.read_bytes()
    code, told = damaged.run("salvage", "--to", "new.db")
    assert damaged.path.read_bytes() == before
    readable = readable_ids(damaged.path)
    if code == 5:
        assert ("nothing in it can be read" if before else "no bank at") in told
        assert not any(readable.values())
        return
    assert code in (0, 7)
    assert damaged.run("--bank", "new.db", "verify")[0] == 0
    there = {record for ids in readable_ids(project / "new.db").values() for record in ids}
    lost = {record for ids in readable.values() for record in ids} - there - {"nonsense"}
    # What no reader understands cannot be kept, but it is told.
    assert lost == set() or (code == 7 and "events of run" in told and all("#" in name for name in lost))
    assert damaged.run("salvage", "--replace")[0] == code
    assert damaged.run("verify")[0] == 0
    assert damaged.run("lessons", "add", "It can be written again")[0] == 0
    assert len([*project.glob(".archivist/memory.db.damaged-*")]) >= 1


def _count_lessons(path: Path) -> int:
    with Bank.open(path, create=False) as bank, bank.reading() as reader:
        return reader.count(Lesson)


def test_a_lesson_that_lost_its_row_comes_back_from_the_ledger(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("lessons", "add", "Restart the broker")
    path = project / ".archivist" / "memory.db"
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM lessons")
    db.close()
    ran = archivist("salvage", "--replace")
    assert (ran.code, "1 lesson restored" in ran.out, "chain    whole" in ran.out) == (0, True, True)
    assert "Restart the broker" in archivist("lessons", "list").out


def test_a_revoked_token_does_not_come_back(archivist: Command, project: Path) -> None:
    archivist("init")
    token = json.loads(archivist("token", "create", "--actor", "agent:ci", "--json").out)
    archivist("token", "revoke", token["id"])
    path = project / ".archivist" / "memory.db"
    db = apsw.Connection(str(path))
    db.execute("DROP TRIGGER ledger_stays; DELETE FROM ledger WHERE verb LIKE '%revoke%'; DELETE FROM tokens")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    ran = archivist("salvage", "--replace")
    with Bank.open(project, create=False) as bank, bank.reading() as reader:
        tokens = reader.select_fields("token", ("revoked",))
    assert tokens == [] or all(revoked for (revoked,) in tokens), ran.out


def test_a_deleted_row_in_a_page_that_is_no_longer_used_stays_deleted(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    with Bank.open(project) as bank:
        facts = [bank.knowledge.put("build", f"key{number}", "value " * 200) for number in range(30)]
        for number in range(len(facts)):
            bank.knowledge.remove(f"build/key{number}")
    path = project / ".archivist" / "memory.db"
    with path.open("r+b") as file:
        # Without the list of free pages every page is looked at.
        file.seek(32)
        file.write(bytes(8))
    assert archivist("salvage", "--replace").code in (0, 7)
    assert json.loads(archivist("knowledge", "list", "--json").out)["facts"] == []


def test_a_bank_of_an_earlier_version_is_salvaged_and_restored_into_this_one(tmp_path: Path) -> None:
    old, new, place = tmp_path / "old.db", tmp_path / "new.db", tmp_path / "work" / "memory.db"
    store = SqliteStore.open(old, create=True)
    with store.writing(ARCHIVIST, START) as writer:
        writer.put(lesson("a", summary="Restart the broker"), "add")
    store.close()
    # As it was before its last five migrations.
    with closing(apsw.Connection(str(old))) as db:
        db.execute("DROP INDEX lessons_by_standing; ALTER TABLE lessons DROP COLUMN is_waiting")
        for column in ("provenance", "brought_by", "accepted"):
            db.execute(f"ALTER TABLE lessons DROP COLUMN {column}")
        db.execute("CREATE INDEX lessons_by_standing ON lessons (status, frequency DESC, number)")
        db.execute("DROP INDEX episodes_by_project; ALTER TABLE episodes DROP COLUMN provenance")
        db.execute("CREATE INDEX episodes_by_project ON episodes (project, finished)")
        db.execute("DROP INDEX lessons_by_repo; CREATE INDEX lessons_by_repo ON lessons (repo, status)")
        db.execute("DROP TABLE tasks")
        for migration in MIGRATIONS[-5:]:
            db.execute("DELETE FROM migrations WHERE name = ?", (migration.name,))
    assert salvage_bank(old, new, START).is_complete
    restore_backup(old, place, START)
    for path in (new, place):
        with Bank.open(path, create=False) as bank:
            assert [each.summary for each in bank.lessons.query(Query())] == ["Restart the broker"]
            assert bank.ledger.verify().is_whole


@pytest.mark.soak
def test_a_server_answers_a_damaged_bank_as_one_that_cannot_serve(project: Path) -> None:
    with serving(project) as served, served.client() as human:
        assert human.post("/api/lessons", json={"summary": "Pin the linter"}).status_code < 300
        db = apsw.Connection(str(project / ".archivist" / "memory.db"))
        db.execute("UPDATE lessons SET status = 'nonsense'; UPDATE episodes SET extra = '['")
        db.close()
        answers = [human.get(path) for path in ("/api/lessons?all=true", "/api/recall?query=linter")]
        answers.append(human.post("/api/brief", json={"task": "lint"}))
        _, noted = served.stop()
    assert {answer.status_code for answer in answers} <= {200, 503, 404, 405}
    assert 503 in {answer.status_code for answer in answers}
    assert "is damaged: lessons" in noted
    assert "Traceback" not in noted


# Backup and restore


def test_a_backup_is_private_whole_and_never_overwrites(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("lessons", "add", "Restart the broker")
    file = project / "copy.db"
    assert archivist("backup", "copy.db").code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert archivist("--bank", "copy.db", "verify").code == 0
    before = file.read_bytes()
    archivist("lessons", "add", "Restart the other broker")
    refused = archivist("backup", "copy.db")
    assert (refused.code, "--force" in refused.err, file.read_bytes()) == (4, True, before)
    assert archivist("backup", "copy.db", "--force").code == 0
    assert _count_lessons(file) == 2
    link = project / "link.db"
    link.symlink_to(project / "victim")
    for words in (("backup", "link.db"), ("backup", "link.db", "--force"), ("backup", "no/such/folder/x.db")):
        ran = archivist(*words)
        assert (ran.code, "Traceback" in ran.err) == (4, False)
    assert not (project / "victim").exists()
    assert not [each.name for each in project.iterdir() if each.name.startswith((".archivist-", ".copy."))]


def test_a_damaged_bank_gives_no_backup(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("lessons", "add", "Restart the broker")
    db = apsw.Connection(str(project / ".archivist" / "memory.db"))
    db.execute("UPDATE lessons SET summary = 'Trust me'")
    db.close()
    ran = archivist("backup", "copy.db")
    assert (ran.code, "salvage" in ran.err, (project / "copy.db").exists()) == (5, True, False)


def test_restoring_keeps_what_was_there_and_open_banks_see_it(
    bank: Bank, tmp_path: Path, clock: TickingClock
) -> None:
    bank.lessons.add("Restart the broker")
    backup = tmp_path / "copy.db"
    bank.doctor.back_up(backup)
    bank.lessons.add("Restart the other broker")
    with Bank.open(bank.path, create=False) as other:
        assert len(other.lessons.query(Query())) == 2
        kept = restore_backup(backup, bank.path, clock())
        assert kept is not None
        assert _count_lessons(kept) == 2
        assert [lesson.summary for lesson in other.lessons.query(Query())] == ["Restart the broker"]
        other.lessons.add("Written after it was restored")
    assert bank.is_there
    assert len(bank.lessons.query(Query())) == 2
    assert bank.ledger.verify().is_whole


def test_a_backup_that_is_damaged_newer_or_no_bank_is_refused_before_anything_changes(
    bank: Bank, tmp_path: Path
) -> None:
    bank.lessons.add("Restart the broker")
    good = tmp_path / "good.db"
    bank.doctor.back_up(good)
    changes = {
        "damaged": ("UPDATE lessons SET summary = 'Trust me'", BankDamagedError),
        "newer": ("INSERT INTO migrations VALUES ('tomorrow', 99)", BankTooNewError),
        "other": ("PRAGMA application_id = 5; DROP TABLE ledger_payloads; DROP TABLE ledger", NotABankError),
    }
    for name, (statement, refusal) in changes.items():
        file = tmp_path / f"{name}.db"
        shutil.copyfile(good, file)
        db = apsw.Connection(str(file))
        db.execute(statement)
        db.close()
        with pytest.raises(refusal, match=name):
            restore_backup(file, bank.path, START)
    with pytest.raises(InputError, match="is the bank itself"):
        restore_backup(bank.path, bank.path, START)
    with bank.reading() as reader:
        assert reader.count(Lesson, equals("summary", "Restart the broker")) == 1
    assert [each.name for each in bank.path.parent.iterdir() if "replaced" in each.name] == []


def test_a_backup_is_restored_where_there_is_no_bank_or_a_broken_one(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    archivist("lessons", "add", "Restart the broker")
    archivist("backup", "copy.db")
    shutil.rmtree(project / ".archivist")
    assert archivist("restore", "copy.db").code == 0
    assert "Restart the broker" in archivist("lessons", "list").out
    path = project / ".archivist" / "memory.db"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(b"garbage" * 999)
    ran = archivist("restore", "copy.db")
    assert (ran.code, "memory.db.replaced-" in ran.err) == (0, True)
    assert "Restart the broker" in archivist("lessons", "list").out
    kept = next((project / ".archivist").glob("memory.db.replaced-*[0-9]"))
    assert kept.read_bytes() == b"garbage" * 999
    refused = archivist("--actor", "agent:ci", "restore", "copy.db")
    assert refused.code == 9


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("content", [b"", b"S"], ids=["empty", "one byte"])
def test_a_backup_is_restored_at_once_where_the_bank_was_emptied(
    archivist: Command, project: Path, content: bytes, ending: str
) -> None:
    archivist("init")
    archivist("lessons", "add", "Restart the broker")
    archivist("backup", "copy.db")
    path = project / ".archivist" / "memory.db"
    path.write_bytes(content)
    if ending:
        path.with_name(path.name + ending).write_bytes(b"junk" * 999)
    began = monotonic()
    ran = archivist("restore", "copy.db")
    if ending == "-journal":
        # A bank has none, and what one holds would be written into it.
        assert (ran.code, "remove it" in ran.err) == (5, True), ran.err
        path.with_name(path.name + ending).unlink()
        ran = archivist("restore", "copy.db")
    assert (ran.code, monotonic() - began < 15) == (0, True), ran.err
    assert "Restart the broker" in archivist("lessons", "list").out
    assert archivist("verify").code == 0


def test_a_backup_is_restored_at_once_over_a_bank_that_keeps_no_log(
    archivist: Command, project: Path
) -> None:
    archivist("init")
    archivist("backup", "copy.db")
    # As a copy that somebody puts there by hand: a backup needs no log.
    shutil.copyfile(project / "copy.db", project / ".archivist" / "memory.db")
    began = monotonic()
    ran = archivist("restore", "copy.db")
    assert (ran.code, monotonic() - began < 15) == (0, True), ran.err


@pytest.mark.parametrize("is_new", [True, False])
def test_of_a_whole_bank_salvage_says_that_it_is_whole(
    archivist: Command, project: Path, is_new: bool
) -> None:
    archivist("init")
    if not is_new:
        archivist("lessons", "add", "Use tabs")
    ran = archivist("salvage", "--to", "new.db")
    assert (ran.code, "is whole: nothing needs to be salvaged" in ran.err) == (0, True), ran.err
    assert archivist("--bank", "new.db", "verify").code == 0
    for damage in (b"", b"x" * 5000):
        (project / "bad.db").write_bytes(damage)
        ran = archivist("--bank", "bad.db", "salvage", "--to", "newer.db")
        assert (ran.code, "nothing in it can be read" in ran.err) == (5, True), ran.err
