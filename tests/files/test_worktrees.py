"""What git's own files tell of a repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from archivist.files.worktrees import (
    bank_place,
    latest_worktree,
    remote_of,
    repository_fingerprint,
    repository_of,
    to_main_worktree,
    walk_up,
)


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a repository with one commit and two remotes."""
    folder = tmp_path / "shop"
    folder.mkdir()
    _git(folder, "init")
    _git(folder, "commit", "--allow-empty", "-m", "begin")
    _git(folder, "remote", "add", "fork", "https://example.org/ada/shop.git")
    _git(folder, "remote", "add", "origin", "git@example.org:acme/shop.git")
    return folder


def test_a_linked_worktree_is_its_main_one(shop: Path, tmp_path: Path) -> None:
    _git(shop, "worktree", "add", "../fix-1")
    below = tmp_path / "fix-1" / "src"
    assert to_main_worktree(below) == shop / "src"
    assert repository_of(below, tmp_path) == shop
    assert list(walk_up(below))[1:4] == [tmp_path / "fix-1", shop / "src", shop]
    assert remote_of(tmp_path / "fix-1") == remote_of(shop) == "git@example.org:acme/shop.git"


def test_worktrees_of_a_bare_repository_are_that_repository(shop: Path, tmp_path: Path) -> None:
    ground = tmp_path / "ground"
    _git(tmp_path, "clone", "--bare", str(shop), str(ground / ".bare"))
    (ground / ".git").write_text("gitdir: ./.bare\n")
    _git(ground, "worktree", "add", "fix-1")
    assert repository_of(ground / "fix-1", tmp_path) == ground
    _git(tmp_path, "clone", "--bare", str(shop), str(tmp_path / "till.git"))
    _git(tmp_path / "till.git", "worktree", "add", "../till-1")
    (tmp_path / "till-1" / "src").mkdir()
    assert repository_of(tmp_path / "till-1" / "src", tmp_path) == tmp_path / "till.git"
    assert remote_of(tmp_path / "till.git") == remote_of(tmp_path / "till-1") == str(shop)
    found = list(walk_up(tmp_path / "till-1" / "src"))[:4]
    assert found == [tmp_path / "till-1" / "src", tmp_path / "till-1", tmp_path / "till.git", tmp_path]
    assert bank_place(tmp_path / "till-1") == tmp_path / "till.git"
    assert bank_place(ground / "fix-1") == ground
    _git(tmp_path / "till.git", "worktree", "add", "../till-2")
    os.utime(tmp_path / "till.git" / "worktrees" / "till-1" / "index", (2e9, 2e9))
    assert latest_worktree(tmp_path / "till.git") == tmp_path / "till-1"
    assert [latest_worktree(each) for each in (shop, ground, tmp_path)] == [None, None, None]


def test_a_repository_keeps_its_mark_where_it_goes(shop: Path, tmp_path: Path) -> None:
    mark = repository_fingerprint(shop)
    _git(shop, "clone", str(shop), str(tmp_path / "till"))
    assert mark
    assert repository_fingerprint(tmp_path / "till") not in ("", mark)
    assert repository_fingerprint(shop.rename(tmp_path / "store")) == mark
    assert repository_fingerprint(tmp_path) == ""


def test_a_submodule_is_a_repository_of_its_own(shop: Path, tmp_path: Path) -> None:
    _git(shop, "clone", str(shop), str(tmp_path / "till"))
    _git(shop, "submodule", "add", str(tmp_path / "till"), "till")
    assert repository_of(shop / "till", tmp_path) == shop / "till"
    assert remote_of(shop / "till") == str(tmp_path / "till")


@pytest.mark.parametrize("said", [b"", b"gitdir:", b"gitdir: ../nowhere\n", b"\xff\x00", b"gitdir: a\0b"])
def test_a_mark_that_points_nowhere_harms_nothing(tmp_path: Path, said: bytes) -> None:
    (tmp_path / ".git").write_bytes(said)
    assert repository_of(tmp_path / "src", Path("/nowhere")) == tmp_path
    assert remote_of(tmp_path) == ""
    assert (tmp_path / "src") in walk_up(tmp_path / "src")
