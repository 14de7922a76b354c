"""What the tests of faults share: banks are copied, broken and put back, which nobody accepts each time."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVIST_TRUST__FOLDERS", str(tmp_path))
