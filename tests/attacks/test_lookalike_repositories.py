"""A repository of the same owner and name on another host is another repository."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from archivist.paths import remote_address
from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

OURS = "https://github.com/corp/private.git"
THEIRS = "https://evil.example/corp/private"
_REMEDY = "PYTHONPATH=src"


@pytest.mark.parametrize("theirs", [THEIRS, "git@evil.example:corp/private.git", "/srv/corp/private"])
def test_setup_takes_no_session_of_a_lookalike(
    archivist: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    monkeypatch.setenv("HOME", str(home))
    mine = make_repository(tmp_path / "mine", OURS)
    other = make_repository(tmp_path / "lookalike", theirs)
    lying = make_repository(tmp_path / "lying", "corp/private")
    client_homes.codex(home, other, 0, theirs)
    client_homes.codex(home, other, 1, OURS)
    client_homes.codex(home, Path("/gone/checkout"), 2, theirs)
    client_homes.copilot(home, other, 3, "corp/private")
    client_homes.copilot(home, lying, 4, "corp/private")
    done = archivist("setup", "--yes", cwd=mine)
    assert (done.code, _REMEDY in done.out) == (0, False), done.out
    client_homes.codex(home, Path("/gone/checkout"), 5, "git@GitHub.com:corp/private.git")
    client_homes.copilot(home, Path("/gone/checkout"), 6, "corp/private")
    assert "2 found: 1 of codex, 1 of copilot-cli" in archivist("setup", "--yes", cwd=mine).out


@pytest.mark.parametrize(("client", "named"), [("codex", OURS), ("copilot", "corp/private")])
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_repository_in_the_place_of_another_gets_none_of_the_sessions_that_name_it(
    archivist: Command,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    named: str,
    is_asked: bool,
) -> None:
    monkeypatch.setenv("HOME", str(home))
    place = make_repository(tmp_path / "shop", OURS)
    getattr(client_homes, client)(home, place, 0, named)
    shutil.rmtree(place)
    make_repository(place, "https://github.com/other/shop.git")
    done = archivist("setup", "--yes", *(("--moved-from", str(place)) if is_asked else ()), cwd=place)
    assert ("1 found: 1 of" in done.out) is is_asked, done.out
    told = f"1 left out that began here and whose logs name another repository, {named}"
    assert (told in done.out + done.err) is not is_asked


def test_another_remote_makes_a_repository_no_clone_of_it(
    archivist: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    mine, other = make_repository(tmp_path / "mine", OURS), make_repository(tmp_path / "other", THEIRS)
    git(other, "remote", "add", "upstream", OURS)
    client_homes.codex(home, mine, 0, OURS)
    client_homes.codex(home, Path("/gone/checkout"), 1, OURS)
    assert _REMEDY not in archivist("setup", "--yes", cwd=other).out


@pytest.mark.parametrize("remote", [THEIRS, OURS.replace("github.com", "github.com/x")])
def test_the_host_that_copilots_log_says_counts(
    archivist: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str
) -> None:
    monkeypatch.setenv("HOME", str(home))
    client_homes.copilot(home, Path("/gone/checkout"), 1, "corp/private", "github.com")
    other, mine = make_repository(tmp_path / "lookalike", remote), make_repository(tmp_path / "mine", OURS)
    assert _REMEDY not in archivist("setup", "--yes", cwd=other).out
    assert "1 found: 1 of copilot-cli" in archivist("setup", "--yes", cwd=mine).out


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("name", ["mine", "private"])
def test_a_shared_bank_keeps_a_lookalike_apart(
    archivist: Command, home: Path, tmp_path: Path, name: str, is_gone: bool
) -> None:
    work = tmp_path / "shared"
    mine = make_repository(work / name, OURS)
    other = make_repository(work / "lookalike", THEIRS)
    archivist("init", cwd=work)
    for number in range(2):
        log = client_homes.codex(home, mine, number, OURS)
        archivist("capture", str(log), *(("--repo", "corp/private") if name == "mine" else ()), cwd=work)
    archivist("reflect", cwd=work)
    if is_gone:
        shutil.rmtree(mine)
    assert _REMEDY not in archivist("brief", "--task", "Test the kiln", cwd=other).out
    again = make_repository(work / "again", OURS)
    assert _REMEDY in archivist("brief", "--task", "Test the kiln", cwd=again).out


def test_a_link_to_the_settings_of_another_repository_makes_no_clone_of_it(
    archivist: Command, home: Path, tmp_path: Path
) -> None:
    work = tmp_path / "shared"
    mine, other = make_repository(work / "mine", OURS), make_repository(work / "other", THEIRS)
    archivist("init", cwd=work)
    (other / ".git" / "config").unlink()
    (other / ".git" / "config").symlink_to(mine / ".git" / "config")
    for number in range(2):
        archivist("capture", str(client_homes.codex(home, mine, number, OURS)), cwd=work)
    archivist("reflect", cwd=work)
    assert _REMEDY in archivist("brief", cwd=mine).out
    assert _REMEDY not in archivist("brief", cwd=other).out


def test_a_lookalike_that_is_gone_teaches_nothing(archivist: Command, home: Path, tmp_path: Path) -> None:
    work = tmp_path / "shared"
    mine = make_repository(work / "mine", OURS)
    archivist("init", cwd=work)
    for number in range(2):
        archivist("capture", str(client_homes.codex(home, tmp_path / "gone", number, THEIRS)), cwd=work)
    archivist("reflect", cwd=work)
    assert _REMEDY not in archivist("brief", "--task", "Test the kiln", cwd=mine).out


def test_an_address_is_the_same_however_it_is_written() -> None:
    forms = (
        OURS, "https://ada:pw@GitHub.com/corp/private/", "git@github.com:corp/private.git",
        "ssh://git@github.com:22/corp/private.git", "git://github.com/corp/private",
    )  # fmt: skip
    assert {remote_address(each) for each in forms} == {"//github.com/corp/private"}
    others = (
        THEIRS,
        "https://github.com/x/corp/private",
        "https://github.com:8443/corp/private",
        "/corp/private",
    )
    assert not {remote_address(each) for each in others} & {"//github.com/corp/private"}
    assert len({remote_address(each) for each in others}) == len(others)
    assert {remote_address(each) for each in ("", "../corp/private", "corp/private", "x/y:z")} == {""}
