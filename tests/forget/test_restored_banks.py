"""A restored bank still knows what the replaced one wrote: an erasure finds it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import Command

NAME = "Quillfeather1971"


@pytest.mark.req("N7")
@pytest.mark.parametrize("is_restored", [False, True])
def test_an_erasure_after_a_restore_finds_what_the_replaced_bank_wrote(
    archivist: Command, project: Path, tmp_path: Path, is_restored: bool
) -> None:
    assert archivist("init").code == 0
    archivist("lessons", "add", f"Ask {NAME} before a release")
    assert archivist("backup", str(tmp_path / "kept.db")).code == 0
    for words in (("export", str(tmp_path / "out")), ("share", str(tmp_path / "shared"))):
        assert archivist(*words).code == 0
    if is_restored:
        assert archivist("restore", str(tmp_path / "kept.db")).code == 0
    erased = json.loads(archivist("erase", "--matching", NAME, "--yes", "--json").out)
    written = [*(tmp_path / "out").rglob("*"), *(tmp_path / "shared").rglob("*")]
    assert [path for path in written if path.is_file() and NAME in path.read_text()] == []
    replaced = list((project / ".archivist").glob("memory.db.replaced-*"))
    assert len(replaced) == is_restored
    noted = {Path(each["place"]): each["note"] for each in erased["places"]}
    assert all("before a restore" in noted[path] for path in replaced)
