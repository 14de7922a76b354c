"""Every writing verb is killed at many steps; afterwards the bank is whole and the next call sets all right.

A process is killed before or after a call that can change a database or a file (`kill_points`). Then: the
database and the ledger are whole, what was acknowledged is there, what was erased is nowhere, no temporary
file stays, and the same command works.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from tests.commands import PROGRAM, Ran, run_here
from tests.samples import DOCUMENT_LESSONS, MISSING_MODULE, agent_log

# Put together at run time, so that no file of the tests holds it.
PARTS = ("Marmalade", "Wombat", "5512")
SECRET = " ".join(PARTS)
_POINTS = Path(__file__).parent / "kill_points"


class Verb(NamedTuple):
    """A command that writes, how often it is killed, and what shows that it was done."""

    words: tuple[str, ...]
    kills: int = 5
    look: tuple[str, ...] = ()
    shows: str = ""
    is_erasing: bool = False


VERBS = {
    "capture": Verb(("capture", "{outside}/new.jsonl"), 6, ("episodes", "list"), "s-new"),
    "reflect": Verb(("reflect",), 6, ("episodes", "show", "s-1"), "What worked"),
    "lessons add": Verb(("lessons", "add", "Pin the parser"), 5, ("lessons", "list"), "Pin the parser"),
    "lessons edit": Verb(
        ("lessons", "edit", "m-001", "--detail", "It's quick"), 3, ("lessons", "show", "m-001"), "It's quick"
    ),
    "lessons approve": Verb(("lessons", "approve", "m-003"), 3, ("lessons", "show", "m-003"), "active"),
    "lessons forget": Verb(("lessons", "forget", "m-003"), 3, ("lessons", "show", "m-003"), "archived"),
    "brief": Verb(("brief", "--run", "b-1", "--task", "lint"), 3, ("status",), "runs"),
    "run start": Verb(("run", "start", "--run", "r-2", "--task", "fix it"), 4, ("episodes", "list"), "r-2"),
    "run finish": Verb(("run", "finish", "{outside}/new.jsonl"), 6, ("episodes", "list"), "s-new"),
    "backup": Verb(("backup", "{outside}/copy.db", "--force"), 5),
    "restore": Verb(("restore", "{outside}/before.db"), 8),
    "salvage": Verb(("salvage", "--replace"), 8),
    "erase a text": Verb(("erase", "--matching", SECRET, "--yes"), 20, is_erasing=True),
    "erase a lesson": Verb(("erase", "m-002", "--yes"), 8),
    "share": Verb(("share", "{outside}/share"), 8),
    "export": Verb(("export", "{outside}/out"), 8),
    "import": Verb(("import", "{outside}/colleague"), 5, ("lessons", "list"), "Freeze the clock"),
    "prune": Verb(("prune", "--yes", "--days", "1"), 5),
    "doctor --reindex": Verb(("doctor", "--reindex"), 5),
    "workspace save": Verb(
        ("workspace", "save", "team/design", "Keep the index small. It loads each time.", "--create",
         "--root", "{outside}/workspace"), 5,
        ("workspace", "learnings", "team/design", "--root", "{outside}/workspace"), "Keep the index small",
    ),
    "core": Verb(("core", "append", "threads", "ship the parser"), 3, ("core", "show"), "ship the parser"),
    "stream": Verb(("stream", "log", "Deployed #12"), 3, ("stream", "list"), "Deployed #12"),
    "archive": Verb(
        ("archive", "add", "We chose SQL", "--type", "decision"), 3, ("archive", "search", "SQL"), "chose SQL"
    ),
    "stream export": Verb(("stream", "export", "{outside}/stream.jsonl"), 3),
    "knowledge": Verb(
        ("knowledge", "set", "ports", "web", "8080"), 3, ("knowledge", "list"), "8080"
    ),
    "proposals": Verb(
        ("proposals", "add", "rules", "Test it", "--reason", "so"), 3, ("proposals", "list"), "rules"
    ),
    "attempts": Verb(
        ("episodes", "log", "T-1", "--agent", "a", "--action", "failed", "--approach", "by hand"), 3,
        ("episodes", "list"), "T-1",
    ),
    "undo": Verb(("undo", "m-003"), 3),
    "init": Verb(("init", "{outside}/fresh"), 6, ("--bank", "{outside}/fresh", "status", "--json"), "runs"),
    "config": Verb(("config", "set", "brief.budget_tokens", "700"), 3, ("config",), "700"),
}  # fmt: skip


_NEXT = (("brief",), ("status",), ("recall", "linter"), ("lessons", "list"), ("verify",))


@dataclass(frozen=True)
class World:
    """A project, what it wrote outside and its user's home, always at the same path, with a copy."""

    folder: Path
    copy: Path
    run: Callable[..., Ran]

    @property
    def bank(self) -> Path:
        return self.folder / "project" / ".archivist" / "memory.db"

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)

    def words(self, words: Sequence[str]) -> list[str]:
        return [word.format(outside=self.folder / "outside") for word in words]

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        return {
            "HOME": str(home),
            "ARCHIVIST_HOME": str(home / ".archivist"),
            # A restored bank is a copy, which nobody has accepted.
            "ARCHIVIST_TRUST__FOLDERS": str(self.folder),
            "PYTHONHASHSEED": "0",
        }

    def kill(self, words: Sequence[str], **variables: str) -> subprocess.CompletedProcess[bytes]:
        path = os.pathsep.join(filter(None, (str(_POINTS), os.environ.get("PYTHONPATH", ""))))
        return subprocess.run(
            [PROGRAM, *self.words(words)],
            cwd=self.folder / "project",
            env={**os.environ, **self.environment(), "PYTHONPATH": path, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
        )

    def files(self) -> Iterator[Path]:
        yield from (path for path in self.folder.rglob("*") if path.is_file())

    def holders_of(self, text: str) -> list[str]:
        """Return the files beside the captured logs and the backup that hold a text."""
        needle, given = text.lower().encode(), ("first.jsonl", "new.jsonl", "before.db")
        found = (path for path in self.files() if path.name not in given)
        return [str(path) for path in found if needle in path.read_bytes().lower()]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("kills") / "world"
    outside = folder / "outside"
    for each in ("project", "outside", "home"):
        (folder / each).mkdir(parents=True)

    def run(*words: str) -> Ran:
        return run_here(made.words(words), folder / "project", b"", made.environment())

    made = World(folder, folder.with_name("copy"), run)
    agent_log(outside / "first.jsonl", [*MISSING_MODULE, ("make", f"Error: {SECRET}", True)], prompt="start")
    agent_log(outside / "new.jsonl", MISSING_MODULE, session="s-new")
    (outside / "colleague").mkdir()
    (outside / "colleague" / "lessons.jsonl").write_text(
        json.dumps({**DOCUMENT_LESSONS[0], "id": "m-009", "description": "Freeze the clock in tests"})
    )
    (outside / "workspace").mkdir()
    steps = [
        ("init",),
        ("capture", str(outside / "first.jsonl")),
        ("lessons", "add", "Run the linter first"),
        ("backup", str(outside / "before.db")),
        ("lessons", "add", f"Never print {SECRET} in a log"),
        ("--actor", "agent:a", "lessons", "add", "Try the cached build"),
        ("stream", "log", f"Saw {SECRET} once"),
        ("export", str(outside / "out")),
        ("share", str(outside / "share")),
    ]
    for words in steps:
        done = run(*words)
        assert done.code in (0, 7), (words, done)
    assert len(made.holders_of(SECRET)) >= 4
    shutil.copytree(folder, made.copy)
    return made


def _count_steps(world: World, verb: Verb) -> int:
    """Run a command unharmed, and return at how many steps it can be killed."""
    world.restore()
    counted = world.copy.with_name("steps")
    done = world.kill(verb.words, KILL_COUNT=str(counted))
    assert done.returncode in (0, 1, 7), done.stderr
    return int(counted.read_text())


def _kill_and_check(world: World, verb: Verb, step: int) -> None:
    world.restore()
    killed = world.kill(verb.words, KILL_AT=str(step))
    is_killed = killed.returncode == -signal.SIGKILL
    assert is_killed or killed.returncode in (0, 1, 7), killed.stderr
    is_acknowledged = bool(killed.stdout.strip())
    where = f"{' '.join(verb.words)} killed at step {step}"
    # The next call is any that opens the bank; it finishes what was begun.
    assert world.run(*_NEXT[step % len(_NEXT)]).code == 0, where
    with_rows = _rows_with(world.bank, SECRET)
    if verb.is_erasing:
        assert not (is_acknowledged and with_rows), where
        if not with_rows:
            assert world.holders_of(SECRET) == [], where
    _check_bank(world, where)
    assert "Run the linter first" in world.run("lessons", "list").out, where
    if is_acknowledged and verb.look:
        assert verb.shows in world.run(*verb.look).out, where
    again = world.run(*verb.words)
    # What was undone just before the kill cannot be undone again.
    assert again.code in (0, 1, 7) or "nothing to undo" in again.err, (where, again)
    assert "Traceback" not in again.err, (where, again)
    if verb.look:
        assert verb.shows in world.run(*verb.look).out, where
    if verb.is_erasing:
        assert world.holders_of(SECRET) == [], where
    _check_bank(world, where)
    assert _left_behind(world) == [], where


def _rows_with(bank: Path, text: str) -> int:
    db = apsw.Connection(str(bank), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        sql = "SELECT count(*) FROM lessons WHERE instr(summary, ?)"
        return int(next(iter(db.execute(sql, (text,))))[0])
    finally:
        db.close()


def _check_bank(world: World, where: str) -> None:
    db = apsw.Connection(str(world.bank), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], where
    finally:
        db.close()
    verified = world.run("verify")
    assert verified.code == 0, (where, verified)


def _left_behind(world: World) -> list[str]:
    """Return the temporary files and keys of erasures that are still there."""
    keys = world.folder / "home" / ".archivist" / "erasures"
    parts = (".archivist-", ".copy.")
    temporary = [str(path) for path in world.files() if path.name.endswith(".archivist")]
    temporary += [str(path) for path in world.folder.rglob("*") if path.name.startswith(parts)]
    return temporary + [str(path) for path in keys.glob("*")]


def _spread_steps(name: str, total: int, count: int) -> list[int]:
    """Return steps all over a command, the same ones each time."""
    chance = random.Random(name)  # noqa: S311
    return [1 + int(total * (number + chance.random()) / count) for number in range(count)]


@pytest.mark.soak
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_is_killed_loses_nothing_and_leaves_nothing(world: World, name: str) -> None:
    verb = VERBS[name]
    for step in _spread_steps(name, _count_steps(world, verb), verb.kills):
        _kill_and_check(world, verb, step)


def test_there_are_at_least_a_hundred_kills() -> None:
    assert sum(verb.kills for verb in VERBS.values()) >= 100


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("erase a text", 5),
        ("share", 3),
        ("backup", 2),
        ("restore", 2),
        ("salvage", 2),
        ("lessons add", 1),
        ("capture", 1),
    ],
)
def test_some_kills(world: World, name: str, count: int) -> None:
    verb = VERBS[name]
    for step in _spread_steps(f"some {name}", _count_steps(world, verb), count):
        _kill_and_check(world, verb, step)


def _own_world(tmp_path: Path) -> World:
    """Make a world without a trusted folder: log and mark of the bank must be known at each step."""
    project = tmp_path / "project"

    def run(*words: str) -> Ran:
        variables = {**made.environment(), "ARCHIVIST_TRUST__FOLDERS": ""}
        return run_here(made.words(words), project, b"", variables)

    made = World(tmp_path, tmp_path / "unused", run)
    for folder in (project, tmp_path / "outside", tmp_path / "home"):
        folder.mkdir()
    for words in (("init",), ("lessons", "add", "Run the linter first"), ("backup", "{outside}/before.db")):
        assert run(*words).code == 0
    return made


@pytest.mark.req("N7")
@pytest.mark.parametrize("first", [1, 2, 3])
def test_writers_that_are_killed_leave_a_log_that_is_known(tmp_path: Path, first: int) -> None:
    """SQLite gives a log without a whole transaction a new head; whoever wrote it may be killed as well."""
    world = _own_world(tmp_path)
    log = world.bank.with_name("memory.db-wal")
    for second in (1, 2, 3, 5, 12):
        for number in (first, second):
            words = ("knowledge", "set", "ports", f"web-{number}", "8080")
            world.kill(words, KILL_WRITE=str(number), ARCHIVIST_TRUST__FOLDERS="")
        assert log.exists(), second
        listed = world.run("lessons", "list")
        assert (listed.code, "Run the linter first" in listed.out, listed.err) == (0, True, ""), (
            second,
            listed,
        )
    assert world.run("verify").code == 0


def test_a_restore_that_is_killed_leaves_the_bank_the_users_own(tmp_path: Path) -> None:
    made = _own_world(tmp_path)
    run = made.run
    assert run("lessons", "add", "Pin the parser").code == 0
    restore = ("restore", "{outside}/before.db")
    counted = tmp_path / "steps"
    assert made.kill(restore, KILL_COUNT=str(counted), ARCHIVIST_TRUST__FOLDERS="").returncode == 0
    for step in _spread_steps("own bank", int(counted.read_text()), 20):
        made.kill(restore, KILL_AT=str(step), ARCHIVIST_TRUST__FOLDERS="")
        listed = run("lessons", "list")
        assert "Run the linter first" in listed.out, (step, listed)
        assert "changes are gone" not in run("status").err, step
        names = [path.name for path in made.bank.parent.iterdir()]
        assert not [name for name in names if ".copy." in name or name.endswith("-journal")], (step, names)
    assert run("verify").code == 0
