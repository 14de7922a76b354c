"""A file cannot make the archive read beyond the project, even where a person vouches for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import Command

_ADDED = "2026-03-01T10:00:00Z"


@pytest.mark.req("N7")
def test_an_approved_file_watches_no_folder_outside_of_the_project(
    archivist: Command, project: Path, tmp_path: Path
) -> None:
    private, given = tmp_path / "private", tmp_path / "given"
    for folder in (private, given, project / "docs"):
        folder.mkdir()
    (private / "note.md").write_text("# Wages\nZoe earns 4711 a week\n")
    (project / "docs" / "a.md").write_text("# Ports\nThe gate listens on 9009\n")
    (project / "away").symlink_to(private)
    outside = (str(private), "../private", "docs/../../private", "away", "/etc", str(Path.home()), "x\0y")
    lines = [{"id": name, "type": None, "pattern": "**/*.md", "added": _ADDED} for name in (*outside, "docs")]
    (given / "folders.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert archivist("init").code == 0
    ran = archivist("import", str(given), "--approve")
    assert f"archivist archive watch {private}" in ran.err
    assert ran.err.count("outside of the project") >= 5
    archivist("archive", "refresh")
    listed = json.loads(archivist("archive", "list", "--folders", "--json").out)["folders"]
    assert [each["folder"] for each in listed] == ["docs"]
    assert "4711" not in archivist("archive", "search", "what does Zoe earn").out
    assert "9009" in archivist("archive", "search", "which port has the gate").out
