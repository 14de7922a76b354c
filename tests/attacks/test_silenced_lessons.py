"""A pull or a stranger's sessions silence no lesson unsaid, and nothing silences what a person typed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

OURS = "https://github.com/acme/shop"
TYPED = "Never push to main. Releases: `npm run release`"
SCRIPT = '{"scripts": {"release": "x"}}'


def _session_start(archivist: Command, folder: Path, name: str) -> str:
    event = {"session_id": name, "cwd": str(folder), "source": "startup"}
    return archivist("hook", "claude-code", "session-start", stdin=json.dumps(event).encode(), cwd=folder).out


def _mined(home: Path, folder: Path, number: int) -> str:
    """Write a session in which `npm run release` failed until it was given a flag; return the log."""
    error = "error: the following arguments are required: --dry"
    calls = (("npm run release", error, 2), ("npm run release -- --dry", "released", 0))
    return str(client_homes.claude_code(home, folder, number, calls))


@pytest.fixture
def shop(archivist: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(home))
    shop = make_repository(tmp_path / "shop", OURS)
    (shop / "package.json").write_text(SCRIPT)
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "release")
    archivist("init", cwd=shop)
    return shop


@pytest.mark.parametrize("pulled", ['{"scripts": {}}', "{", None])
def test_what_a_person_typed_is_told_whatever_a_pull_takes_away(
    archivist: Command, shop: Path, pulled: str | None
) -> None:
    archivist("lessons", "add", TYPED, "--type", "pattern", "--repo", "shop", cwd=shop)
    (shop / "package.json").unlink()
    if pulled is not None:
        (shop / "package.json").write_text(pulled)
    assert "Never push to main" in _session_start(archivist, shop, "a")
    assert "Never push to main" in archivist("brief", "--task", "push a release", cwd=shop).out
    # It is still named to who looks.
    assert ("npm run release" in archivist("doctor", cwd=shop).out) is (pulled != "{")


@pytest.mark.parametrize(
    ("manifest", "is_told"),
    [
        ('{"scripts": {"rel\\u0065ase": "x"}}', True),
        (json.dumps({"scripts": {"release": "x"}, "pad": "x" * 5_000_000}), True),
        ("\ufeff" + SCRIPT, True),
        ('{"scripts": {"a": "x"}, "scripts": {"release": "x"}}', True),
        (f'{{"n": {"[" * 30_000}{"]" * 30_000}}}', True),
        ('{"scripts": {', True),
        ('{"scripts": {"other": "echo \\"release\\""}}', False),
        ('{"scripts": {}}', False),
    ],
)
def test_only_a_file_that_was_read_and_understood_withholds_and_that_is_counted(
    archivist: Command, home: Path, shop: Path, manifest: str, is_told: bool
) -> None:
    archivist("capture", *(_mined(home, shop, number) for number in range(2)), cwd=shop)
    archivist("reflect", cwd=shop)
    assert "npm run release -- --dry" in _session_start(archivist, shop, "a")
    (shop / "package.json").write_text(manifest)
    told, brief = _session_start(archivist, shop, "b"), archivist("brief", "--task", "release", cwd=shop)
    assert [("npm run release -- --dry" in text) for text in (told, brief.out)] == [is_told] * 2
    counted = "1 lesson is withheld: what is named there is gone from the working tree"
    assert [counted in text for text in (told, brief.err)] == [not is_told] * 2


def test_a_file_that_cannot_be_read_withholds_nothing(archivist: Command, home: Path, shop: Path) -> None:
    archivist("capture", *(_mined(home, shop, number) for number in range(2)), cwd=shop)
    archivist("reflect", cwd=shop)
    (shop / "package.json").unlink()
    os.mkfifo(shop / "package.json")
    assert "npm run release -- --dry" in _session_start(archivist, shop, "a")


def test_sessions_of_another_project_age_no_lesson(archivist: Command, home: Path, shop: Path) -> None:
    stranger = make_repository(shop / "vendor" / "stranger", "https://evil.example/x/stranger")
    archivist("lessons", "add", "Staging is read only", "--type", "pattern", "--repo", "shop", cwd=shop)
    archivist("capture", *(_mined(home, shop, number) for number in range(2)), cwd=shop)
    archivist("reflect", cwd=shop)
    before = _session_start(archivist, shop, "a")
    assert "Staging is read only" in before
    assert "npm run release -- --dry" in before
    theirs = [str(client_homes.claude_code(home, stranger, number)) for number in range(2, 25)]
    archivist("capture", *theirs, cwd=shop)
    archivist("reflect", cwd=shop)
    after = _session_start(archivist, shop, "b")
    assert "Staging is read only" in after
    assert "npm run release -- --dry" in after
    listed = json.loads(archivist("lessons", "list", "--repo", "shop", "--json", cwd=shop).out)["lessons"]
    assert {lesson["runs_since_last_seen"] for lesson in listed} <= {0, 1, 2}
