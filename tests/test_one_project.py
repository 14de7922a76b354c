"""One repository is one project, however it is checked out and whichever client logged the session."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from archivist import Bank, projects
from archivist.capture.service import CaptureOverrides
from archivist.records import Episode
from tests.commands import Command
from tests.e2e import client_homes
from tests.e2e.client_homes import git, make_repository

REMOTE = "https://example.org/acme/kiln.git"
_REMEDY = "PYTHONPATH=src"


@pytest.fixture
def app(tmp_path: Path, archivist: Command) -> Path:
    """Return a repository with a bank and a worktree `../tree`."""
    folder = make_repository(tmp_path / "kiln-app", REMOTE)
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"))
    archivist("init", cwd=folder)
    return folder


def _projects(archivist: Command, folder: Path) -> set[str]:
    found = json.loads(archivist("episodes", "list", "--repo", "*", "--json", cwd=folder).out)
    return {run["project"] for run in found["episodes"]}


def test_worktrees_clones_and_clients_give_one_name(
    app: Path, archivist: Command, home: Path, tmp_path: Path
) -> None:
    clone = make_repository(tmp_path / "elsewhere" / "second", REMOTE)
    gone = Path("/gone/container/checkout")
    logs = [
        client_homes.claude_code(home, tmp_path / "tree", 0),
        client_homes.codex(home, app, 1, REMOTE),
        client_homes.claude_code(home, app, 2),
        client_homes.claude_code(home, clone, 3),
        client_homes.codex(home, gone, 4, "git@example.org:acme/kiln.git"),
        client_homes.copilot(home, gone, 5, "acme/kiln"),
    ]
    for log in logs:
        assert "kiln" in archivist("capture", str(log), cwd=app).out
    assert _projects(archivist, app) == {"kiln"}
    archivist("reflect", cwd=app)
    for folder in (app, tmp_path / "tree"):
        assert _REMEDY in archivist("brief", "--task", "Test the kiln", cwd=folder).out


@pytest.mark.parametrize("first", ["with its remote", "without"])
def test_logs_of_one_folder_that_is_gone_are_one_project_whether_or_not_they_name_the_remote(
    archivist: Command, home: Path, tmp_path: Path, first: str
) -> None:
    here, gone = make_repository(tmp_path / "bank"), Path("/gone/code/kiln")
    archivist("init", cwd=here)
    logs = [
        client_homes.codex(home, gone, 0, REMOTE),
        client_homes.claude_code(home, gone, 1),
        client_homes.claude_code(home, Path("/gone/container/kiln"), 2),
    ]
    for log in logs if first == "with its remote" else reversed(logs):
        archivist("capture", str(log), cwd=here)
    assert len(_projects(archivist, here)) == 1
    archivist("reflect", cwd=here)
    assert _REMEDY in archivist("brief", cwd=here).out


def test_two_remotes_or_names_that_had_one_folder_are_two_projects(
    archivist: Command, home: Path, tmp_path: Path
) -> None:
    here, gone = make_repository(tmp_path / "bank"), Path("/gone/code/kiln")
    archivist("init", cwd=here)
    for number, remote in enumerate(
        (REMOTE, "https://example.com/other/kiln.git", "https://example.com/a/glaze")
    ):
        archivist("capture", str(client_homes.codex(home, gone, number, remote)), cwd=here)
    assert len(_projects(archivist, here)) == 3


def test_a_run_that_was_made_in_a_worktree_that_is_gone_still_tells_its_repository(
    app: Path, archivist: Command, home: Path, tmp_path: Path
) -> None:
    archivist("capture", str(client_homes.claude_code(home, tmp_path / "tree", 0)), cwd=app)
    shutil.rmtree(tmp_path / "tree")
    git(app, "worktree", "prune")
    archivist("capture", str(client_homes.claude_code(home, app, 1)), cwd=app)
    assert _projects(archivist, app) == {"kiln"}


def test_what_a_bank_holds_under_several_names_is_told_under_each(
    app: Path, archivist: Command, home: Path, tmp_path: Path
) -> None:
    for number, name in enumerate(("tree", "tree", "acme/kiln", "acme/kiln")):
        log = client_homes.claude_code(home, tmp_path / "tree", number)
        archivist("capture", str(log), "--repo", name, cwd=app)
        archivist("reflect", cwd=app)
    other = (("make glaze", "make: *** No rule to make target 'glaze'.  Stop.", 2), ("make all", "ok", 0))
    for number in (5, 6):
        archivist("capture", str(client_homes.claude_code(home, app, number, other)), cwd=app)
    archivist("reflect", cwd=app)
    told = archivist("brief", "--task", "Test the kiln", cwd=app).out
    assert _REMEDY in told
    assert "glaze" in told


def test_a_name_that_another_repository_took_over_is_not_one_of_its_names(
    bank: Bank, tmp_path: Path, home: Path
) -> None:
    one, two = (make_repository(tmp_path / name) for name in ("one-app", "two-app"))
    for number, (folder, name) in enumerate(((one, "kiln"), (one, "one-app"), (two, "kiln"))):
        log = client_homes.claude_code(home, folder, number)
        bank.runs.capture_file(log, overrides=CaptureOverrides(project=name))
    bank.runs.capture_file(client_homes.claude_code(home, one, 9))
    with bank.reading() as reader:
        assert projects.names_of(reader, "one-app") == ("one-app",)


@pytest.mark.req("F12")
def test_a_run_is_of_the_project_where_it_was_started(
    app: Path, archivist: Command, home: Path, tmp_path: Path
) -> None:
    archivist("run", "start", "--run", "r-1", cwd=tmp_path / "tree")
    archivist("run", "finish", "--run", "r-1", str(client_homes.claude_code(home, app, 0)), cwd=app)
    assert _projects(archivist, app) == {"kiln"}
    other = make_repository(tmp_path / "glaze-app")
    archivist("run", "start", "--run", "r-2", cwd=app)
    log = str(client_homes.claude_code(home, other, 1))
    done = archivist("run", "finish", "--run", "r-2", log, cwd=app)
    assert "r-2 was started in project kiln, and its log is of glaze-app" in done.err
    named = archivist("run", "finish", "--run", "r-3", "--repo", "kiln-app", log, cwd=app)
    assert "started in" not in named.err
    assert _projects(archivist, app) == {"kiln"}


def test_a_name_that_is_given_at_the_start_holds_at_the_end(
    app: Path, archivist: Command, home: Path
) -> None:
    archivist("run", "start", "--run", "r-1", "--repo", "glaze", cwd=app)
    archivist("run", "finish", "--run", "r-1", str(client_homes.claude_code(home, app, 0)), cwd=app)
    assert _projects(archivist, app) == {"glaze"}


def test_a_lesson_of_no_known_project_is_not_told_as_one_of_this(bank: Bank) -> None:
    folder = make_repository(bank.root / "kiln-app")
    bank.capture(Episode(id="r-1", project="kiln-app", extra={"cwd": str(folder)}), ())
    said = bank.lessons.add("Run the formatter before committing")
    mined = bank.lessons.add("`kiln` is not installed", rule="Use PYTHONPATH=src")
    with bank.transaction() as writer:
        writer.put(replace(mined, signature="|missing_module:kiln"), "mine")
    chosen = {each.lesson.id for each in bank.brief(task="Mend the kiln", project="kiln-app").chosen}
    assert chosen == {said.id}


@pytest.mark.req("A4")
def test_sessions_of_a_database_are_filed_under_the_name_that_setup_says(
    archivist: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    clone = make_repository(tmp_path / "foo", "https://github.com/acme/widget")
    for number in range(3):
        client_homes.opencode(home, clone, number)
    archivist("setup", "--yes", cwd=clone)
    runs = json.loads(archivist("episodes", "list", "--repo", "*", "--json", cwd=clone).out)["episodes"]
    assert [run["projectRoot"] for run in runs] == ["widget"] * 3
    assert archivist("brief", cwd=clone).out


def test_logs_of_a_former_remote_that_a_person_files_under_the_name_are_the_repositorys(
    app: Path, archivist: Command, home: Path
) -> None:
    """The repository has moved to another owner since: the person who names it says that it is the same."""
    gone, former = Path("/gone/kiln"), "https://example.org/former/kiln.git"
    for number in range(2):
        log = client_homes.codex(home, gone, number, former)
        archivist("capture", "--repo", "kiln", str(log), cwd=app)
    archivist("reflect", cwd=app)
    assert _REMEDY in archivist("brief", cwd=app).out
    assert _REMEDY in archivist("brief", "--repo", "kiln", cwd=app).out


def test_a_brief_asked_for_by_a_name_that_is_anothers_says_how_to_claim_it(
    app: Path, archivist: Command, home: Path
) -> None:
    with Bank.open(app, create=True) as bank:
        for number in range(2):
            log = client_homes.codex(home, Path("/gone/kiln"), number, "https://example.org/former/kiln.git")
            bank.runs.capture_file(log, overrides=CaptureOverrides(project="kiln"))
    archivist("reflect", cwd=app)
    reason = archivist("brief", "--repo", "kiln", cwd=app).err
    assert "this is about kiln-app: archivist lessons claim kiln, if it is the same" in reason
    archivist("lessons", "claim", "kiln", cwd=app)
    assert _REMEDY in archivist("brief", cwd=app).out
