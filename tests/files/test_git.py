"""Git is the user's program: a repository cannot bring its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from archivist.files.git import ask_git
from tests.e2e.client_homes import make_repository


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize("where", ["{}/node_modules/.bin", "./node_modules/.bin", ""])
def test_a_git_that_a_clone_brings_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    clone = make_repository(tmp_path / "clone")
    planted = clone / "node_modules" / ".bin" / "git"
    planted.parent.mkdir(parents=True)
    planted.write_text(f'#!/bin/sh\ntouch "{tmp_path}/ran"\n')
    planted.chmod(0o755)
    (clone / "git").symlink_to(planted)
    monkeypatch.chdir(clone)
    monkeypatch.setenv("PATH", os.pathsep.join((where.format(clone), os.environ["PATH"])))
    assert ask_git(clone, "rev-parse", "--is-inside-work-tree") == b"true\n"
    assert not (tmp_path / "ran").exists()
    monkeypatch.setenv("PATH", where.format(clone))
    assert ask_git(clone, "rev-parse", "--is-inside-work-tree") is None
    assert not (tmp_path / "ran").exists()
