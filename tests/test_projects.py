"""Which project a session works on: two repositories are two, however alike their folders are called."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from archivist import Bank, projects
from archivist.capture.service import CaptureOverrides
from archivist.paths import bank_file
from archivist.recall.query import Query
from archivist.records import Episode
from archivist.store.filters import equals
from tests.banks import note_as_made_here
from tests.samples import MISSING_MODULE, agent_log


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True)


def _repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    _git(folder, "init")
    _git(folder, "commit", "--allow-empty", "-m", "begin")
    if remote:
        _git(folder, "remote", "add", "origin", remote)
    return folder


def _begun(bank: Bank, run: str, folder: Path) -> str:
    """Begin a session in a folder as a hook does, and return the project that it is filed under."""
    with bank.reading() as reader:
        project = projects.project_at(reader, folder, bank.root)
    bank.sessions.brief_session(run, project, folder=folder)
    return bank.runs.episode(run).project


@pytest.mark.parametrize(
    ("folder", "remote", "name"),
    [
        ("t4/home/app", "", "app"),
        ("zz/src", "", "src"),
        ("zz/app", "https://github.com/acme/shop.git", "shop"),
        ("my-clone", "git@example.org:acme/shop.git", "shop"),
        ("shop.v2", "/srv/git/x.git", "shop.v2"),
    ],
)
def test_a_repository_is_called_by_its_remote_else_by_its_own_folder(
    bank: Bank, folder: str, remote: str, name: str
) -> None:
    assert _begun(bank, "r-1", _repository(bank.root / folder, remote)) == name


@pytest.mark.parametrize("known_as", ["t4", "acme/shop", "home/app"])
def test_a_bank_keeps_the_name_that_it_has_for_a_repository(bank: Bank, known_as: str) -> None:
    """Folders such as `app` were passed over once, and a folder's name came before the remote's."""
    app = _repository(bank.root / "t4" / "home" / "app", "https://github.com/acme/shop.git")
    kept = projects.checkout_info(app, bank.root)
    bank.capture(Episode(id="r-0", project=known_as, extra={projects.CHECKOUT: kept}), ())
    bank.lessons.add("Glaze before firing", repo=known_as)
    assert _begun(bank, "r-1", app) == known_as
    assert "Glaze before firing" in bank.brief(project=known_as).text


REMOTES = [("", ""), ("git@example.org:acme/api.git", "git@example.org:beta/api.git"), ("", "x:beta/api")]


@pytest.mark.parametrize(("one", "other"), REMOTES)
def test_two_repositories_of_one_name_are_two_projects(bank: Bank, one: str, other: str) -> None:
    first = _repository(bank.root / "a" / "api", one)
    second = _repository(bank.root / "b" / "api", other)
    assert _begun(bank, "s-1", first) == "api"
    found = _begun(bank, "s-2", second)
    assert found in ("b/api", "beta/api")
    assert (_begun(bank, "s-3", first), _begun(bank, "s-4", second)) == ("api", found)


def test_what_one_of_two_met_is_not_told_in_the_other(bank: Bank, tmp_path: Path) -> None:
    first, second = (_repository(bank.root / each / "api") for each in "ab")
    for run in ("s-1", "s-2"):
        assert _begun(bank, run, first) == "api"
        bank.runs.finish(agent_log(tmp_path / f"{run}.jsonl", MISSING_MODULE, session=run, project="api"))
    with bank.reading() as reader:
        mine, theirs = (projects.project_at(reader, each, bank.root) for each in (first, second))
    assert "freezegun" in bank.sessions.brief_session("s-3", mine).text
    assert "freezegun" not in bank.sessions.brief_session("s-4", theirs).text
    prompt = "please install freezegun for the tests"
    assert bank.sessions.brief_prompt("s-5", theirs, prompt) is None
    assert bank.sessions.brief_prompt("s-5", mine, prompt) is not None


def test_a_captured_log_is_filed_as_a_session_would_be(bank: Bank, tmp_path: Path) -> None:
    first, second = (_repository(bank.root / each / "api") for each in "ab")
    logs = {each: tmp_path / f"log-{each.parent.name}.jsonl" for each in (first, second)}
    for folder, log in logs.items():
        agent_log(log, MISSING_MODULE, session=log.stem, project="api")
        log.write_text(log.read_text().replace("/home/x/api", str(folder)))
        bank.runs.finish(log)
    assert [bank.runs.episode(log.stem).project for log in logs.values()] == ["api", "b/api"]


def test_a_project_is_the_same_when_it_moves(bank: Bank) -> None:
    first, second = (_repository(bank.root / each / "api") for each in "ab")
    assert (_begun(bank, "s-1", first), _begun(bank, "s-2", second)) == ("api", "b/api")
    for name in "ab":
        (bank.root / name).rename(bank.root / f"{name}{name}")
    assert _begun(bank, "s-3", bank.root / "bb" / "api") == "b/api"
    assert _begun(bank, "s-4", bank.root / "aa" / "api") == "api"


def test_a_repository_in_a_moved_ones_place_is_another(bank: Bank) -> None:
    first = _repository(bank.root / "other" / "backend")
    assert _begun(bank, "s-1", first) == "backend"
    (bank.root / "moved").mkdir()
    first.rename(bank.root / "moved" / "backend")
    fresh = _repository(bank.root / "other" / "backend")
    assert _begun(bank, "s-2", fresh) == "other/backend"
    assert _begun(bank, "s-3", bank.root / "moved" / "backend") == "backend"
    assert _begun(bank, "s-4", fresh) == "other/backend"


@pytest.mark.parametrize("how", ["cloned", "copied"])
def test_a_repository_that_is_brought_back_is_the_same(bank: Bank, how: str) -> None:
    """Cloned anew it is known by its remote; a copy that keeps times, as of a backup, by those."""
    remote = "git@example.org:acme/shop.git" if how == "cloned" else ""
    folder = _repository(bank.root / "shop", remote)
    assert _begun(bank, "s-1", folder) == "shop"
    if how == "cloned":
        shutil.rmtree(folder)
        _repository(folder, remote)
    else:
        shutil.copytree(folder, bank.root / "kept")
        shutil.rmtree(folder)
        shutil.copytree(bank.root / "kept", folder)
    assert _begun(bank, "s-2", folder) == "shop"


def test_the_banks_own_folder_is_the_same_with_a_new_repository(bank: Bank) -> None:
    _git(bank.root, "init")
    project = _begun(bank, "s-1", bank.root)
    shutil.rmtree(bank.root / ".git")
    _git(bank.root, "init")
    assert _begun(bank, "s-2", bank.root) == project


def test_a_renamed_repository_is_found_however_much_was_done_elsewhere(bank: Bank) -> None:
    alpha, beta = (_repository(bank.root / each) for each in ("alpha", "beta"))
    assert _begun(bank, "s-1", alpha) == "alpha"
    for number in range(25):
        _begun(bank, f"b-{number}", beta)
    assert _begun(bank, "s-2", alpha.rename(bank.root / "delta")) == "alpha"
    assert _begun(bank, "s-3", _repository(bank.root / "gamma")) == "gamma"


def test_a_renamed_repository_is_known_by_its_remote(bank: Bank) -> None:
    folder = _repository(bank.root / "shop", "git@example.org:acme/shop.git")
    _repository(bank.root / "till")
    assert _begun(bank, "s-1", folder) == "shop"
    assert _begun(bank, "s-2", bank.root / "till") == "till"
    assert _begun(bank, "s-3", folder.rename(bank.root / "store")) == "shop"


def test_clones_are_one_project(bank: Bank) -> None:
    remote = "git@example.org:acme/api.git"
    first, second = _repository(bank.root / "a" / "api", remote), _repository(bank.root / "b" / "api", remote)
    assert {_begun(bank, "s-1", first), _begun(bank, "s-2", second)} == {"api"}
    (bank.root / "c").mkdir()
    _git(bank.root, "clone", str(first), "c/api")
    assert _begun(bank, "s-3", bank.root / "c" / "api") == "api"


def test_a_copied_bank_is_not_asked_about_the_original(tmp_path: Path) -> None:
    original = _repository(tmp_path / "one" / "shop")
    with Bank.open(original, create=True) as bank:
        assert _begun(bank, "s-1", original) == "shop"
    (tmp_path / "two").mkdir()
    copied = Path(shutil.copytree(original, tmp_path / "two" / "shop"))
    note_as_made_here(bank_file(copied))
    with Bank.open(copied) as bank:
        assert _begun(bank, "s-2", copied) == "shop"


def test_a_name_of_which_nothing_says_where_is_nobodys_until_it_is_claimed(bank: Bank) -> None:
    bank.capture(Episode(id="old", project="api"), ())
    bank.capture(Episode(id="far", project="api", extra={"cwd": "/nowhere/else/api"}), ())
    first, second = (_repository(bank.root / each / "api") for each in "ab")
    assert (_begun(bank, "s-1", second), _begun(bank, "s-2", first)) == ("b/api", "a/api")
    with bank.reading() as reader:
        assert projects.project_and_doubt(reader, first, bank.root)[1] == "api"
    with bank.transaction() as writer:
        projects.claim_name(writer, "api", first, bank.root)
    assert (_begun(bank, "s-3", second), _begun(bank, "s-4", first)) == ("b/api", "api")
    with bank.reading() as reader:
        assert projects.project_and_doubt(reader, second, bank.root)[1] == ""


def test_worktrees_of_a_bare_repository_are_one_project(bank: Bank, tmp_path: Path) -> None:
    bare = bank.root / "till.git"
    _git(bank.root, "clone", "--bare", str(_repository(tmp_path / "far" / "till")), str(bare))
    _git(bare, "remote", "remove", "origin")
    for name in ("fix-1", "fix-2"):
        _git(bare, "worktree", "add", f"../{name}")
    (bank.root / "fix-1" / "src").mkdir()
    assert _begun(bank, "s-1", bank.root / "fix-1" / "src") == "till"
    assert _begun(bank, "s-2", bank.root / "fix-2") == "till"


def test_a_project_is_found_under_the_name_that_it_had(bank: Bank) -> None:
    """A worktree of a bare repository was filed by its own folder once."""
    bare = bank.root / "till.git"
    _git(bank.root, "clone", "--bare", str(_repository(bank.root / "far")), str(bare))
    _git(bare, "worktree", "add", "../fix-1")
    bank.capture(Episode(id="other", project="far"), ())
    old = Episode(id="old", project="fix-1", extra={"cwd": str(bank.root / "fix-1")})
    bank.runs.take([old], CaptureOverrides(is_filed=True))
    assert _begun(bank, "s-1", bank.root / "fix-1") == "fix-1"


PORT = "Exit code 1\nError: listen EADDRINUSE: address already in use :::3000"
UNRUNNABLE = "Exit code 126\nbash: ./gen.sh: Permission denied"
IN_API = [("./gen.sh", UNRUNNABLE, True), ("chmod +x gen.sh", "", False), ("./gen.sh", "ok", False)]
IN_WEB = [("npm start", PORT, True), ("fuser -k 3000/tcp", "", False), ("npm start", "up", False)]
Moves = list[tuple[Path, list[tuple[str, str, bool]]]]


def _log_of(path: Path, run: str, moves: Moves) -> Path:
    """Write the log of a session that goes from folder to folder; each line says where it was."""
    agent_log(path, [call for _, calls in moves for call in calls], session=run, prompt="Bump everything")
    folders = [moves[0][0]] * 2 + [folder for folder, calls in moves for _ in range(2 * len(calls))]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    folders += [folders[-1]] * (len(lines) - len(folders))
    told = [{**line, "cwd": str(folder)} for line, folder in zip(lines, folders, strict=True)]
    path.write_text("".join(json.dumps(line) + "\n" for line in told))
    return path


@pytest.mark.parametrize("is_in_root", [True, False])
def test_what_failed_in_another_repository_is_filed_there(
    bank: Bank, tmp_path: Path, is_in_root: bool
) -> None:
    api, web = (_repository(bank.root / each) for each in ("api", "web"))
    begun = bank.root if is_in_root else api
    for run in ("s-1", "s-2"):
        home = _begun(bank, run, begun)
        # A folder within the one that it began in is the same repository.
        inner = begun / "inner"
        inner.mkdir(exist_ok=True)
        moves: Moves = [(begun, [("ls", "", False)]), (inner, [("ls", "", False)]), (api, IN_API)]
        log = _log_of(tmp_path / f"{run}.jsonl", run, [*moves, (web, IN_WEB)])
        bank.runs.finish(log, overrides=CaptureOverrides(run=run, project=home))
        bank.runs.finish(log, overrides=CaptureOverrides(run=run, project=home))
    parts = {"s-1@api", "s-2@api"} if is_in_root else set()
    assert {each.id for each in bank.runs.episodes()} == {"s-1", "s-2", "s-1@web", "s-2@web", *parts}
    assert bank.runs.episode("s-1@web").parent == "s-1"
    assert bank.runs.episode("s-1").project == home
    told = {each: bank.brief(repo=each).text for each in ("api", "web")}
    assert ("chmod +x gen.sh" in told["api"], "fuser -k 3000/tcp" in told["api"]) == (True, False)
    assert ("chmod +x gen.sh" in told["web"], "fuser -k 3000/tcp" in told["web"]) == (False, True)


def test_a_session_is_not_told_of_its_own_part_elsewhere(bank: Bank, tmp_path: Path) -> None:
    api, web = (_repository(bank.root / each) for each in ("api", "web"))
    home = _begun(bank, "s-1", api)
    log = _log_of(tmp_path / "s-1.jsonl", "s-1", [(api, [("ls", "", False)]), (web, IN_WEB)])
    bank.runs.finish(log, overrides=CaptureOverrides(run="s-1", project=home))
    assert bank.briefs.heal(PORT, command="npm start", repo="web", run="s-1").text == ""
    assert "fuser -k 3000/tcp" in bank.briefs.heal(PORT, command="npm start", repo="web", run="s-2").text


def test_what_a_subagent_did_elsewhere_is_filed_there(bank: Bank, tmp_path: Path) -> None:
    api, web = (_repository(bank.root / each) for each in ("api", "web"))
    home = _begun(bank, "s-1", api)
    known = CaptureOverrides(run="s-1", project=home, folder=str(api))
    for agent, moves in {"a1": [(web, IN_WEB)], "a2": [(api, IN_API)]}.items():
        log = _log_of(tmp_path / f"agent-{agent}.jsonl", "s-1", moves)
        lines = [
            json.loads(line) | {"isSidechain": True, "agentId": agent}
            for line in log.read_text().splitlines()
        ]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        bank.runs.finish(log, overrides=known)
    filed = {each.id: each.project for each in bank.runs.episodes()}
    assert filed == {"s-1": "api", "s-1.a1": "web", "s-1.a2": "api"}
    assert "fuser -k 3000/tcp" in bank.briefs.heal(PORT, command="npm start", repo="web", run="s-2").text
    assert {each.repo for each in bank.lessons.query(Query()) if "npm" in each.rule} == {"web"}


def _saying(log: Path, folder: Path, words: str) -> Path:
    """Let the user say something at the end of a log, in a folder."""
    *_, last = (
        json.loads(line) for line in log.read_text().splitlines() if json.loads(line)["type"] == "user"
    )
    said = {"message": {"role": "user", "content": words}, "uuid": "said", "cwd": str(folder)}
    line = {name: each for name, each in last.items() if name != "toolUseResult"} | said
    with log.open("a") as stream:
        stream.write(json.dumps(line) + "\n")
    return log


@pytest.mark.parametrize("is_in_root", [True, False])
def test_a_wish_is_that_of_the_repository_that_it_was_said_in(
    bank: Bank, tmp_path: Path, is_in_root: bool
) -> None:
    api, web = (_repository(bank.root / each) for each in ("api", "web"))
    begun = bank.root if is_in_root else api
    home = _begun(bank, "s-1", begun)
    log = _log_of(tmp_path / "s-1.jsonl", "s-1", [(begun, [("ls", "", False)]), (web, [("ls", "", False)])])
    _saying(log, web, "Always use yarn in this project, never npm.")
    bank.runs.finish(log, overrides=CaptureOverrides(run="s-1", project=home))
    assert {each.repo for each in bank.lessons.query(Query()) if "yarn" in each.summary} == {"web"}
    assert bank.runs.episode("s-1").task == "Bump everything"
    with bank.reading() as reader:
        rows = reader.select_fields("event", ("text",), equals("run", "s-1"), equals("role", "user"))
    assert rows == [("Bump everything",)]


def test_a_folder_that_is_no_repository_is_part_of_the_run_and_teaches_nothing_outside_of_the_project(
    bank: Bank, tmp_path: Path
) -> None:
    api = _repository(bank.root / "api")
    home = _begun(bank, "s-1", api)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    inner = api / "inner"
    inner.mkdir()
    moves: Moves = [(api, [("ls", "", False)]), (inner, IN_WEB), (scratch, IN_API), (tmp_path / "x", IN_API)]
    bank.runs.finish(
        _log_of(tmp_path / "s-1.jsonl", "s-1", moves), overrides=CaptureOverrides(run="s-1", project=home)
    )
    assert [each.id for each in bank.runs.episodes()] == ["s-1"]
    assert "fuser -k 3000/tcp" in bank.briefs.heal(PORT, command="npm start", repo="api").text
    assert "chmod +x" not in bank.briefs.heal(UNRUNNABLE, command="./gen.sh", repo="api").text
