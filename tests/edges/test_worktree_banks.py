"""One bank for all worktrees of a repository, wherever a command is called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from archivist import Bank
from archivist.errors import NoBankError
from tests.conftest import Command


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def trees(project: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return two linked worktrees of the project's repository, which has no bank."""
    _git(project, "init")
    (project / "src").mkdir()
    (project / "src" / "till.py").write_text("total = 0\n")
    _git(project, "add", ".")
    _git(project, "commit", "-m", "begin")
    for name in ("fix-1", "fix-2"):
        _git(project, "worktree", "add", str(tmp_path / name))
    return tmp_path / "fix-1", tmp_path / "fix-2"


@pytest.mark.parametrize("below", ["", "src", "new"])
def test_init_in_a_linked_worktree_makes_the_bank_of_the_main_one(
    archivist: Command, project: Path, trees: tuple[Path, Path], below: str
) -> None:
    here = trees[0] / below
    here.mkdir(exist_ok=True)
    made = archivist("init", cwd=here)
    file = (project / below if below == "src" else project) / ".archivist" / "memory.db"
    assert made.out == f"Made a bank: {file}\n"
    assert "hint: a linked worktree has the bank of its repository's main one" in made.err
    assert not (here / ".archivist").exists()
    _git(project, "worktree", "remove", "--force", str(trees[0]))
    told = archivist("run", "start", "--run", "r1", cwd=trees[1] / ("src" if below == "src" else ""))
    assert told.code == 0
    finished = archivist("run", "finish", "--run", "r1", cwd=trees[1] / ("src" if below == "src" else ""))
    assert "no bank" not in finished.err
    assert finished.out.startswith("r1: ")


def test_init_names_a_folder_of_a_linked_worktree_likewise(
    archivist: Command, project: Path, trees: tuple[Path, Path]
) -> None:
    made = archivist("init", str(trees[0]))
    assert made.out == f"Made a bank: {project / '.archivist' / 'memory.db'}\n"


def test_doctor_names_a_bank_in_a_linked_worktree_and_how_to_move_it(
    archivist: Command, project: Path, trees: tuple[Path, Path]
) -> None:
    Bank.open(trees[0] / ".archivist", create=True).close()
    again = archivist("init", cwd=trees[0])
    assert again.out.startswith("There is a bank already")
    told = archivist("doctor", "--json", cwd=trees[0]).out
    assert "git worktree remove deletes it" in told
    assert f"mv .archivist {project}, and there archivist trust" in told
    # What it says works.
    archivist("lessons", "add", "Prefer small commits", cwd=trees[0])
    (trees[0] / ".archivist").rename(project / ".archivist")
    assert archivist("trust", "--yes", cwd=project).code == 0
    assert "Prefer small commits" in archivist("brief", cwd=trees[1]).out
    assert "worktree remove" not in archivist("doctor", cwd=project).out


def test_doctor_says_how_to_join_the_bank_of_a_linked_worktree_with_the_main_ones(
    archivist: Command, project: Path, trees: tuple[Path, Path]
) -> None:
    Bank.open(trees[0] / ".archivist", create=True).close()
    Bank.open(project, create=True).close()
    archivist("lessons", "add", "Prefer small commits", cwd=trees[0])
    told = archivist("doctor", "--json", cwd=trees[0]).out
    assert "archivist export" in told
    assert archivist("export", "../out", cwd=trees[0]).code == 0
    assert archivist("import", "--approve", "../out", cwd=project).code == 0
    assert "Prefer small commits" in archivist("brief", cwd=trees[1]).out


@pytest.mark.req("N9")
def test_python_opens_the_bank_that_commands_find_and_makes_none_beside_it(
    archivist: Command, project: Path, trees: tuple[Path, Path]
) -> None:
    archivist("init", cwd=project)
    archivist("lessons", "add", "Prefer small commits", cwd=project)
    own = project / ".archivist" / "memory.db"
    for place in (project, project / "src", trees[0], trees[1] / "src"):
        for create in (None, True):
            with Bank.open(place, create=create) as bank:
                assert bank.path == own
                assert "Prefer small commits" in bank.brief().text
    assert not [path for tree in trees for path in tree.rglob(".archivist")]
    assert list(project.rglob(".archivist")) == [own.parent]


@pytest.mark.req("N9")
@pytest.mark.parametrize("name", ["", "new", "new.db"])
def test_python_makes_a_bank_only_when_told_to(tmp_path: Path, name: str) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(NoBankError) as refused:
        Bank.open(plain / name)
    assert "archivist setup makes one" in (refused.value.hint or "")
    assert list(plain.iterdir()) == []
    Bank.open(plain / name, create=True).close()
    Bank.open(plain / name).close()


@pytest.mark.req("N9")
def test_python_makes_the_bank_of_a_linked_worktree_in_the_main_one(
    project: Path, trees: tuple[Path, Path]
) -> None:
    with Bank.open(trees[0], create=True) as bank:
        assert bank.path == project / ".archivist" / "memory.db"
