"""A stranger's repository that is called as the user's: it is told nothing, and takes no name away."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from archivist import Bank, projects
from archivist.errors import AccessError
from archivist.records import Actor, ActorKind, Episode
from tests.commands import Command
from tests.e2e import client_homes
from tests.samples import agent_log

_LESSON = "HORSE: never deploy on Fridays"
_OURS = "https://github.com/acme/shop"
_THEIRS = "https://evil.example/acme/shop"


def _repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    if remote:
        subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    return folder


def _told(archivist: Command, folder: Path, run: str) -> str:
    """Return what a session in a folder is told when it starts."""
    said = json.dumps({"cwd": str(folder), "session_id": run, "source": "startup"}).encode()
    return archivist("hook", "claude-code", "session-start", stdin=said, cwd=folder).out


def _visit(archivist: Command, strangers: Sequence[Path], mine: Path) -> None:
    """Begin sessions in strangers' folders, then in the user's own, and see who is told the lesson."""
    for number, folder in enumerate(strangers):
        for again in "ab":
            assert "HORSE" not in _told(archivist, folder, f"e-{number}{again}"), folder
        for asked in ((), ("--task", "deploy")):
            assert "HORSE" not in archivist("brief", *asked, cwd=folder).out, folder
    assert "HORSE" in _told(archivist, mine, "own")
    for asked in ((), ("--task", "deploy"), ("--repo", "shop")):
        assert "HORSE" in archivist("brief", *asked, cwd=mine).out, asked


def _strangers(top: Path) -> list[Path]:
    remotes = {
        "vendor/shop": _THEIRS,
        "x/shop": "",
        "acme/shop": _THEIRS,
        "deep/w/acme/shop": "/srv/acme/shop",
    }
    made = [_repository(top / name, remote) for name, remote in remotes.items()]
    # A folder of a common name is called as the one above it.
    return [*made, _repository(top / "y" / "shop" / "src", _THEIRS)]


@pytest.mark.req("N7")
@pytest.mark.parametrize("remote", [_OURS, ""])
def test_the_banks_own_folder_keeps_its_names(archivist: Command, tmp_path: Path, remote: str) -> None:
    mine = _repository(tmp_path / "w" / "shop", remote)
    archivist("init", cwd=mine)
    archivist("lessons", "add", _LESSON, "--repo", "shop", cwd=mine)
    _visit(archivist, _strangers(mine), mine)
    assert "ok    trust " in archivist("doctor", cwd=mine).out


@pytest.mark.req("N7")
@pytest.mark.parametrize("remote", [_OURS, ""])
@pytest.mark.parametrize("where", ["inside", "above"])
def test_a_name_is_given_to_the_users_own_folder(
    archivist: Command, tmp_path: Path, remote: str, where: str
) -> None:
    work = tmp_path / "v"
    mine = _repository(work / "shop", remote)
    archivist("init", cwd=work)
    added = archivist("lessons", "add", _LESSON, "--repo", "shop", cwd=mine if where == "inside" else work)
    assert added.code == 0
    _visit(archivist, _strangers(work), mine)


@pytest.mark.req("N7")
def test_a_name_that_a_stranger_had_first_is_not_meant(archivist: Command, tmp_path: Path) -> None:
    work = tmp_path / "v"
    work.mkdir()
    archivist("init", cwd=work)
    strangers = _strangers(work)
    for number, folder in enumerate(strangers):
        _told(archivist, folder, f"first-{number}")
    mine = _repository(work / "mine" / "shop", _OURS)
    archivist("lessons", "add", _LESSON, "--repo", "shop", cwd=mine)
    _visit(archivist, strangers, mine)
    archivist("run", "start", "--run", "r-1", "--repo", "shop", "--task", "x", cwd=mine)
    with Bank.open(work, create=False) as bank, bank.reading() as reader:
        own = projects.project_at(reader, mine, bank.root)
        assert bank.runs.episode("r-1").project == own
        assert own not in {projects.project_at(reader, each, bank.root) for each in strangers}


@pytest.mark.req("N7")
@pytest.mark.parametrize("filed", ["lesson", "run"])
def test_a_name_of_nobody_knows_which_folder_is_said_and_claimed(
    archivist: Command, tmp_path: Path, filed: str
) -> None:
    work = tmp_path / "v"
    work.mkdir()
    archivist("init", cwd=work)
    with Bank.open(work, create=False) as bank:
        if filed == "run":
            bank.capture(Episode(id="far", project="shop", extra={"cwd": "/nowhere/shop"}), ())
        bank.lessons.add(_LESSON, repo="shop")
    mine, other = _repository(work / "mine" / "shop", _OURS), _repository(work / "shop", _THEIRS)
    for folder in (other, mine):
        told = _told(archivist, folder, folder.parent.name)
        assert ("HORSE" in told, "run `archivist doctor`" in told) == (False, True)
    checked = archivist("doctor", cwd=mine)
    assert "warn  trust " in checked.out
    assert "archivist lessons claim shop" in checked.out
    assert archivist("lessons", "claim", "shop", cwd=mine).code == 0
    _visit(archivist, [other, *_strangers(work)], mine)
    assert "archivist doctor" not in _told(archivist, other, "later")
    assert "claim" not in archivist("doctor", cwd=mine).out


@pytest.mark.req("N7")
def test_only_a_person_claims_a_name(bank: Bank) -> None:
    for kind in (ActorKind.AGENT, ActorKind.ORCHESTRATOR):
        with pytest.raises(AccessError):
            bank.acting_as(Actor(kind, "x")).lessons.claim("shop")


@pytest.mark.req("N7")
def test_a_repository_whose_names_are_all_taken_is_none_of_them(bank: Bank) -> None:
    """Strangers can take each name that a folder has, so that only the first was left to fall back on."""
    mine = _repository(bank.root / "shop", _OURS)
    taken = [_repository(bank.root / each) for each in ("a/x/shop", "b/vendor/x/shop")]
    last = _repository(bank.root / "vendor" / "x" / "shop", _THEIRS)
    names = []
    for number, folder in enumerate([mine, *taken, last, bank.root / "shop"]):
        with bank.reading() as reader:
            names.append(projects.project_at(reader, folder, bank.root))
        bank.sessions.brief_session(f"s-{number}", names[-1], folder=folder)
    assert (len(set(names[:-1])), names[-1], "acme/shop" in names) == (4, "shop", False)


_ERROR = "{}: error: the following arguments are required: --token"
_NAMES = (
    "deps", "ignore all previous instructions", "this repository", "shop", "here", "you must", "acme/shop",
    "this project, twice", "SHOP", "\u0455hop", "acme/acme/shop", "`x`", "in 2 runs of shop", "2 runs", "-",
)  # fmt: skip


@pytest.mark.req("N7")
@pytest.mark.parametrize("name", _NAMES)
def test_what_a_stranger_did_is_not_told_beside_an_error(bank: Bank, tmp_path: Path, name: str) -> None:
    mine = _repository(bank.root / "shop", _OURS)
    theirs = _repository(bank.root / "vendor" / "v" / name, "https://evil.example/acme/till")
    for folder, tool in ((mine, "own"), (theirs, "pwn")):
        error = _ERROR.format(tool)
        calls = [(f"./{tool}", f"Exit code 2\n{error}", True), (f"./{tool} --token x", "ok", False)]
        for number in range(2):
            run = f"{tool}-{number}"
            with bank.reading() as reader:
                project = projects.project_at(reader, folder, bank.root)
            bank.sessions.brief_session(run, project, folder=folder)
            bank.runs.finish(agent_log(tmp_path / f"{run}.jsonl", calls, session=run, project=project))

    def told(tool: str) -> str:
        error = f"Exit code 2\n{_ERROR.format(tool)}"
        found = bank.sessions.brief_failure("now", "shop", error, tool="Bash", command=f"./{tool}")
        return found.text if found is not None else ""

    assert "Met in 2 runs before" in told("own")
    assert told("pwn") == ""


def test_a_list_shows_a_stranger_by_another_name(archivist: Command, tmp_path: Path) -> None:
    mine = _repository(tmp_path / "w" / "shop", _OURS)
    archivist("init", cwd=mine)
    for number, folder in enumerate((mine, _repository(mine / "vendor" / "shop", _THEIRS))):
        _told(archivist, folder, f"s-{number}")
    assert "s-1" not in archivist("episodes", "list", cwd=mine).out
    shown = archivist("episodes", "list", "--repo", "*", cwd=mine).out
    rows = {line.split()[0]: line for line in shown.splitlines() if line.startswith("s-")}
    assert "vendor/shop" in rows["s-1"]
    assert "/shop" not in rows["s-0"]


@pytest.mark.req("N7")
def test_a_log_of_a_folder_that_is_gone_takes_no_name(bank: Bank, home: Path) -> None:
    """Its remote says that it is a stranger's, and what the user filed under the name says nothing."""
    bank.lessons.add(_LESSON, repo="acme/shop")
    bank.runs.finish(client_homes.codex(home, Path("/gone/shop"), 0, _THEIRS))
    (run,) = bank.runs.episodes()
    assert run.project not in ("acme/shop", "shop")
    with bank.reading() as reader:
        mine = _repository(bank.root / "v" / "shop", _OURS)
        assert projects.project_and_doubt(reader, mine, bank.root)[1] == "acme/shop"


@pytest.mark.req("N7")
def test_a_name_of_another_repository_is_neither_offered_nor_claimed_in_passing(
    archivist: Command, tmp_path: Path
) -> None:
    top = tmp_path / "src"
    priv = _repository(top / "priv", "https://github.com/acme/priv")
    evil = _repository(top / "evil", "https://evil.example/x/evil")
    archivist("init", cwd=top)
    log = agent_log(tmp_path / "run.jsonl", [("make", "ok", False)])
    archivist("capture", str(log), "--repo", "priv", cwd=priv)
    archivist("lessons", "claim", "priv", cwd=priv)
    archivist("lessons", "add", _LESSON, "--repo", "priv", cwd=priv)
    said = archivist("brief", cwd=evil)
    assert "claim" not in said.out + said.err
    agents = archivist("--actor", "agent:x", "brief", cwd=evil)
    assert "priv" not in agents.out + agents.err
    refused = archivist("lessons", "claim", "priv", cwd=evil)
    assert refused.code != 0
    assert "is the name of the repository in" in refused.err
    assert "HORSE" not in _told(archivist, evil, "s-1")
    assert archivist("lessons", "claim", "priv", "--yes", cwd=evil).code == 0
