"""What an unpacked archive links to makes its folder no part of another repository."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from archivist.files.worktrees import repository_fingerprint, to_main_worktree, worktrees_of
from tests.attacks.test_hidden_banks import told
from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

pytestmark = pytest.mark.usefixtures("home")

_WISDOM = "The kiln lies behind db-7.internal"
_REMEDY = "PYTHONPATH=src"


@pytest.fixture
def private(archivist: Command, tmp_path: Path) -> Path:
    """Return a repository with a lesson in its bank, and a linked worktree beside it."""
    folder = make_repository(tmp_path / "private")
    git(folder, "worktree", "add", "-q", "../fix-1")
    archivist("init", cwd=folder)
    archivist("lessons", "add", _WISDOM, cwd=folder)
    return folder


def _unpack(folder: Path, how: str) -> Path:
    """Unpack an archive of somebody who guessed where the private repository lies; return its folder."""
    folder.mkdir()
    mark, wanted = folder / ".git", folder
    match how:
        case "link":
            mark.symlink_to("../fix-1/.git")
        case "chain":
            (folder / "mark").symlink_to("../fix-1/.git")
            mark.symlink_to("mark")
        case "copy":
            shutil.copy(folder.parent / "fix-1" / ".git", mark)
        case "hard link":
            os.link(folder.parent / "fix-1" / ".git", mark)
        case "own file behind a link":
            (folder / "mark").write_text("gitdir: ../private/.git/worktrees/fix-1\n")
            mark.symlink_to("mark")
        case "entry behind a link":
            (folder / "worktrees").mkdir()
            (folder / "worktrees" / "x").symlink_to("../../private/.git/worktrees/fix-1")
            mark.write_text("gitdir: worktrees/x\n")
        case "common folder":
            git(folder, "init", "-q")
            (mark / "commondir").write_text("../../private/.git\n")
        case "nested":
            git(folder, "init", "-q")
            (wanted := folder / "inner").mkdir()
            (wanted / ".git").symlink_to("../../fix-1/.git")
    return wanted


_WAYS = (
    "link", "chain", "copy", "hard link", "own file behind a link", "entry behind a link", "common folder",
    "nested",
)  # fmt: skip


@pytest.mark.parametrize("how", _WAYS)
def test_a_link_in_the_place_of_git_makes_no_worktree_of_another_repository(
    archivist: Command, private: Path, how: str
) -> None:
    theirs = _unpack(private.parent / "theirs", how)
    assert _WISDOM in told(archivist, private.parent / "fix-1")
    assert _WISDOM not in told(archivist, theirs)
    assert _WISDOM not in archivist("brief", cwd=theirs).out
    assert not to_main_worktree(theirs).is_relative_to(private)
    assert private not in worktrees_of(theirs)
    before = sorted(private.rglob("*"))
    archivist("config", "set", "brief.max_lessons", "20", cwd=theirs)
    archivist("setup", "--undo", "--yes", cwd=theirs)
    assert sorted(private.rglob("*")) == before


def test_a_folder_behind_a_link_of_a_repository_is_no_worktree_of_another(
    archivist: Command, private: Path
) -> None:
    theirs = make_repository(private.parent / "theirs")
    (theirs / "inner").symlink_to("../fix-1")
    assert _WISDOM not in told(archivist, theirs / "inner")


def test_setup_says_that_it_follows_no_link_in_the_place_of_git(archivist: Command, private: Path) -> None:
    theirs = _unpack(private.parent / "theirs", "link")
    done = archivist("setup", "--yes", cwd=theirs)
    assert done.code
    assert "'.git' in it is a link, which is not followed" in done.err
    assert "archivist setup --any-folder" in done.err


def test_a_project_behind_a_link_of_the_user_is_itself(archivist: Command, private: Path) -> None:
    linked = private.parent / "code"
    linked.symlink_to(private.parent / "fix-1")
    assert _WISDOM in told(archivist, linked)
    assert _WISDOM in archivist("brief", cwd=linked).out
    moved = private.parent / "data"
    moved.mkdir()
    (private.parent / "fix-1").rename(moved / "fix-1")
    (private.parent / "fix-1").symlink_to(moved / "fix-1")
    assert _WISDOM in told(archivist, private.parent / "fix-1")


@pytest.mark.parametrize("how", ["link", "hard link"])
def test_a_link_to_the_mark_of_a_repository_makes_none_of_it(
    archivist: Command, home: Path, tmp_path: Path, how: str
) -> None:
    work = tmp_path / "shared"
    mine, theirs = make_repository(work / "mine"), make_repository(work / "theirs")
    archivist("init", cwd=work)
    for number in range(2):
        archivist("capture", str(client_homes.codex(home, mine, number)), cwd=work)
    archivist("reflect", cwd=work)
    mark = theirs / ".git" / "description"
    mark.unlink()
    if how == "link":
        mark.symlink_to(mine / ".git" / "description")
    else:
        os.link(mine / ".git" / "description", mark)
    assert repository_fingerprint(theirs) == ""
    assert _REMEDY not in archivist("brief", "--task", "Test the kiln", cwd=theirs).out
    assert _REMEDY in archivist("brief", "--task", "Test the kiln", cwd=mine).out
