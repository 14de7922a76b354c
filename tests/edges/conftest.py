"""What the tests of several edges share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def at(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a project's folder."""
    monkeypatch.chdir(project)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return project
