"""What the tests of several edges share."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist.files.git import keep_out_of_git
from tests.banks import lay_bank
from tests.commands import Command


@pytest.fixture
def at(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a project's folder."""
    monkeypatch.chdir(project)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return project


@pytest.fixture
def bank_cli(archivist: Command, project: Path) -> Command:
    """Run the command in a project that has a bank, as `init` makes it."""
    keep_out_of_git(lay_bank(project))
    return archivist
