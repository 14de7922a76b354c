"""Several processes, several clones: nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Status
from tests.conftest import Command

_ADD = """
import sys
from archivist import Bank
bank = Bank.open(sys.argv[1], create=True)
for number in range(100):
    bank.lessons.add(f"Lesson {sys.argv[2]}-{number}")
"""


@pytest.mark.req("N5", "M7")
def test_eight_processes_adding_at_once_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    workers = [
        subprocess.Popen([sys.executable, "-c", _ADD, str(folder), str(number)], stderr=subprocess.PIPE)
        for number in range(8)
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert errors == [b""] * 8
    with Bank.open(folder) as bank:
        lessons = bank.lessons.query(Query())
        assert len(lessons) == 800
        assert sorted(lesson.number for lesson in lessons) == list(range(1, 801))
        found = bank.ledger.verify()
        assert (found.entries, found.problems) == (800, ())


def _git(folder: Path, *words: str) -> str:
    identity = [
        "-c",
        "user.name=Test",
        "-c",
        "user.email=test@example.invalid",
        "-c",
        "init.defaultBranch=main",
    ]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.req("N10")
def test_two_clones_share_lessons_through_git_without_a_conflict(archivist: Command, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    _git(origin, "init", "--bare", "-q")
    clones = [tmp_path / name for name in ("ada", "bob")]
    for clone in clones:
        _git(tmp_path, "clone", "-q", str(origin), str(clone))
        archivist("init", cwd=clone)

    def publish(clone: Path) -> None:
        done = archivist("share", "shared", "--json", cwd=clone)
        for origin in json.loads(done.out)["waiting"]:
            done = archivist("share", "shared", "--trust", origin, cwd=clone)
        assert done.code == 0
        _git(clone, "add", "shared")
        _git(clone, "commit", "-qm", "share", "--allow-empty")

    ada, bob = clones
    archivist("lessons", "add", "Run the linter first", cwd=ada)
    publish(ada)
    _git(ada, "push", "-q", "origin", "HEAD:main")
    _git(bob, "pull", "-q", "origin", "main")
    publish(bob)
    archivist("lessons", "edit", "m-001", "--summary", "Run the linter before the tests", cwd=ada)
    archivist("lessons", "edit", "m-001", "--tag", "ci", cwd=bob)
    archivist("lessons", "add", "Only Bob knows", cwd=bob)
    publish(ada)
    publish(bob)
    _git(ada, "push", "-q", "origin", "HEAD:main")
    _git(bob, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    publish(bob)
    _git(bob, "push", "-q", "origin", "HEAD:main")
    _git(ada, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    publish(ada)
    states = []
    for clone in clones:
        with Bank.open(clone) as bank:
            assert bank.ledger.verify().is_whole
            states.append(
                sorted((each.summary, each.tags, each.status) for each in bank.lessons.query(Query()))
            )
    assert states[0] == states[1]
    assert {summary for summary, _, _ in states[0]} == {"Only Bob knows", "Run the linter before the tests"}
    assert all(status is Status.ACTIVE for *_, status in states[0])
