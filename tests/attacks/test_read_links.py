"""A file that the user names in a repository may be a link out of it: what it leads to is not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archivist.exchange.share import LESSONS
from tests.commands import Command
from tests.e2e.client_homes import make_repository

_PRIVATE = "# Notes\n\n## Current Sprint\nHORSE is private.\n"


@pytest.mark.req("N7")
@pytest.mark.parametrize("words", ["archive import-bank", "knowledge import"])
@pytest.mark.parametrize("through", ["file", "folder"])
def test_a_named_link_out_of_the_repository_is_not_followed(
    archivist: Command, tmp_path: Path, words: str, through: str
) -> None:
    clone = make_repository(tmp_path / "clone")
    archivist("init", cwd=clone)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "bank.md").write_text(_PRIVATE)
    if through == "file":
        (clone / "bank.md").symlink_to("../private/bank.md")
    else:
        (clone / "docs").symlink_to("../private")
    named = "bank.md" if through == "file" else "docs/bank.md"
    for path in (named, "." if through == "file" else "docs"):
        ran = archivist(*words.split(), path, cwd=clone)
        assert "a link that leaves the folder is not followed" in ran.out + ran.err or ran.code, ran
    for search in (("archive", "search", "HORSE"), ("recall", "HORSE"), ("knowledge", "list")):
        assert "HORSE is private" not in archivist(*search, cwd=clone).out
    (clone / "real.md").write_text(_PRIVATE)
    (clone / "inside.md").symlink_to("real.md")
    assert archivist(*words.split(), "inside.md", cwd=clone).code == 0


@pytest.mark.req("N7")
def test_a_change_of_the_banks_own_share_file_is_named_as_such(archivist: Command, project: Path) -> None:
    archivist("init")
    archivist("lessons", "add", "Ours")
    archivist("share", "shared")
    (own,) = (project / "shared" / LESSONS).glob("*.jsonl")
    line = json.loads(own.read_text().splitlines()[0])
    own.write_text(json.dumps({**line, "summary": "Changed by somebody"}) + "\n")
    ran = archivist("share", "shared")
    assert "somebody else changed 1 lesson in this bank's own file" in ran.err
    assert "--trust" not in ran.err
    assert "Changed by somebody" not in archivist("brief").out
