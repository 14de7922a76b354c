"""Lessons that name what is gone from a real working tree are stale, and only those."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from archivist.brief.liveness_service import FILE_NAME, GitFolder, WorkingTree, find_stale
from archivist.paths import home_folder, state_folder
from archivist.records import Scope
from tests.samples import lesson


def _git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=Ada", "-c", "user.email=ada@host.example", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _write(folder: Path, **files: str) -> None:
    """Write files; two underscores in a name stand for a slash, one capital D for the dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("D", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _commit(folder: Path, message: str = "change") -> None:
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "--allow-empty", "-m", message)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a project with a bank's folder and some history."""
    folder = tmp_path / "shop"
    (folder / ".archivist").mkdir(parents=True)
    _git(folder, "init", "-q")
    _write(
        folder,
        Dgitignore="out/\n.archivist/\n",
        src__datesDpy="def parse_date(): ...\nInfinite = 1\n",
        src__viewsDpy="def show(): ...\n",
        scripts__checkDsh="case $1 in --fast) ;; esac\n",
        Makefile=".PHONY: lint test\nlint:\n\techo\ntest: lint\n\techo\n",
        packageDjson='{"scripts": {"unit": "jest", "build": "tsc"}}',
        pyprojectDtoml='[project.scripts]\nshopctl = "shop.cli:main"\n',
    )
    _commit(folder)
    return folder


def _kept(folder: Path) -> Path:
    return state_folder(folder / ".archivist" / "memory.db") / FILE_NAME


def _reason(folder: Path, summary: str, **fields: object) -> str:
    return find_stale(folder / ".archivist", [lesson("a", summary=summary, **fields)]).get("a", "")


@pytest.mark.req("N4")
def test_a_file_that_git_knew_and_that_is_gone_makes_a_lesson_stale(tree: Path) -> None:
    assert _reason(tree, "run `scripts/check.sh` first") == ""
    _git(tree, "rm", "-q", "scripts/check.sh")
    _commit(tree)
    assert _reason(tree, "run `scripts/check.sh` first") == "`scripts/check.sh` is gone"


@pytest.mark.req("N4")
def test_a_file_that_moved_is_named_with_its_new_place(tree: Path) -> None:
    (tree / "lib").mkdir()
    _git(tree, "mv", "src/dates.py", "lib/dates.py")
    _commit(tree)
    assert _reason(tree, "edit `src/dates.py`") == "`src/dates.py` is gone; there is `lib/dates.py`"
    _write(tree, other__datesDpy="")
    _commit(tree)
    assert _reason(tree, "edit `src/dates.py`") == "`src/dates.py` is gone"


def test_a_file_removed_but_not_committed_is_gone_until_it_is_back(tree: Path) -> None:
    text = (tree / "src/views.py").read_text()
    (tree / "src/views.py").unlink()
    assert _reason(tree, "edit `src/views.py`") == "`src/views.py` is gone"
    _write(tree, src__viewsDpy=text)
    assert _reason(tree, "edit `src/views.py`") == ""


def test_what_git_never_knew_is_not_stale(tree: Path) -> None:
    assert _reason(tree, "edit `src/never.py` with `frobnicate --all`, then `make frob`") == ""


def test_what_is_generated_is_not_stale(tree: Path) -> None:
    _write(tree, out__appDjs="1")
    _git(tree, "add", "-f", "out/app.js")
    _commit(tree)
    _git(tree, "rm", "-q", "out/app.js")
    _commit(tree)
    assert _reason(tree, "load `out/app.js`") == ""


def test_what_a_sparse_checkout_leaves_out_is_not_stale(tree: Path) -> None:
    _write(tree, src__inner__xDpy="")
    _commit(tree)
    _git(tree, "sparse-checkout", "set", "scripts")
    assert not (tree / "src/views.py").exists()
    assert _reason(tree, "edit `src/views.py`") == ""
    assert _reason(tree, "tests under `src/inner` fail") == ""


def test_a_path_from_a_folder_further_down_is_found(tree: Path) -> None:
    _write(tree, viewsDpy="")
    _commit(tree)
    _git(tree, "mv", "views.py", "top.py")
    _commit(tree)
    assert _reason(tree, "edit `views.py`") == ""


@pytest.mark.req("N4")
def test_a_bank_below_the_top_asks_from_its_own_folder(tree: Path) -> None:
    part = tree / "web"
    _write(part, app__mainDjs="1")
    _commit(tree)
    (part / ".archivist").mkdir()
    assert _reason(part, "edit `app/main.js` and `src/views.py`") == ""
    _git(tree, "rm", "-q", "web/app/main.js")
    _commit(tree)
    assert _reason(part, "edit `app/main.js`") == "`app/main.js` is gone"


@pytest.mark.req("N4")
@pytest.mark.parametrize(
    ("summary", "file", "text", "reason"),
    [
        ("run `make lint`", "Makefile", "test:\n\techo\n", "`make lint` is gone"),
        ("run `make lint`", "Makefile", "include more.mk\ntest:\n\techo\n", ""),
        ("run `make lint`", "Makefile", "li%:\n\techo\n", ""),
        ("run `make lint`", "Makefile", "X = $(shell a:b)\ntest:\n", "`make lint` is gone"),
        ("run `npm run unit`", "package.json", '{"scripts": {"build": "tsc"}}', "`npm run unit` is gone"),
        ("run `npm run unit`", "package.json", '{"devDependencies": {"unit": "1"}}', ""),
        ("run `shopctl serve`", "pyproject.toml", "[project]\n", "`shopctl` is gone"),
        ("run `shopctl serve`", "pyproject.toml", '[project]\nname = "shopctl"\n', ""),
        (
            "run `scripts/check.sh --fast`",
            "scripts/check.sh",
            "echo\n",
            "`scripts/check.sh` no longer knows `--fast`",
        ),
        ("run `scripts/check.sh --never-there`", "scripts/check.sh", "echo\n", ""),
    ],
)
def test_commands_and_flags_that_were_there_and_are_gone(
    tree: Path, summary: str, file: str, text: str, reason: str
) -> None:
    assert _reason(tree, summary) == ""
    (tree / file).write_text(text)
    _commit(tree)
    assert _reason(tree, summary) == reason


@pytest.mark.parametrize("call", ["bash scripts/check.sh", "bash -eu scripts/check.sh", "./scripts/check.sh"])
def test_a_script_that_is_gone_is_gone_however_it_is_called(tree: Path, call: str) -> None:
    summary = f"Use `MODE=1 {call}` instead of `{call}`: `{call}` fails"
    assert _reason(tree, summary) == ""
    _git(tree, "rm", "-q", "scripts/check.sh")
    assert "is gone" in _reason(tree, summary)


def test_what_lives_on_in_another_file_is_not_stale(tree: Path) -> None:
    _write(tree, scripts__checkDsh="echo\n", scripts__optionsDpy="'--fast'\n")
    _commit(tree)
    assert _reason(tree, "run `scripts/check.sh --fast`") == ""


def test_a_change_seen_without_a_commit_is_seen(tree: Path) -> None:
    said = "run `scripts/check.sh --fast`"
    assert _reason(tree, said) == ""
    _write(tree, scripts__checkDsh="echo\n")
    assert _reason(tree, said) == "`scripts/check.sh` no longer knows `--fast`"
    _write(tree, scripts__checkDsh="echo --fast # again\n")
    assert _reason(tree, said) == ""


@pytest.mark.req("N4")
def test_a_program_is_gone_only_when_it_was_found_and_its_file_is_no_more(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "frobnicate"
    program.parent.mkdir()
    usual = os.environ["PATH"]
    assert _reason(tree, "use `frobnicate -x`") == ""
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{usual}")
    _commit(tree, "another look")
    assert _reason(tree, "use `frobnicate -x`") == ""
    monkeypatch.setenv("PATH", usual)
    _commit(tree, "in another shell")
    assert _reason(tree, "use `frobnicate -x`") == ""
    program.unlink()
    assert _reason(tree, "use `frobnicate -x`") == "`frobnicate` is gone"
    assert _reason(tree, "`frobnicate -x` is slow") == ""


def test_programs_of_an_environment_are_not_missed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "env" / "bin" / "frobnicate"
    program.parent.mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert _reason(tree, "use `frobnicate -x`") == ""
    shutil.rmtree(tmp_path / "env")
    assert _reason(tree, "use `frobnicate -x`") == ""


@pytest.mark.parametrize(
    ("repo", "is_ours"),
    [
        ("", True),
        ("shop", True),
        ("acme/Shop", True),
        ("acme/store", True),
        ("x/bank", False),
    ],
)
def test_only_lessons_of_this_project_are_looked_at(tree: Path, repo: str, is_ours: bool) -> None:
    _git(tree, "remote", "add", "origin", "git@host.example:acme/store.git")
    (tree / "src/views.py").unlink()
    found = find_stale(tree / ".archivist", [lesson("a", summary="edit `src/views.py`", repo=repo)])
    assert bool(found) is is_ours


def test_what_is_said_of_every_project_is_never_stale(tree: Path) -> None:
    (tree / "src/views.py").unlink()
    assert _reason(tree, "edit `src/views.py`", scope=Scope.GLOBAL) == ""
    assert find_stale(home_folder(), [lesson("a", summary="edit `src/views.py`")]) == {}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program before git that notes each call and then is git."""
    log, real = tmp_path / "calls.txt", shutil.which("git")
    wrapper = tmp_path / "before" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    log.touch()
    return log


def _gone(tree: Path) -> list[str]:
    """Take away what three lessons name, and return what they say."""
    _git(tree, "rm", "-q", "src/views.py", "Makefile")
    _commit(tree)
    return ["edit `src/views.py`", "run `make lint`", "edit `src/never.py`"]


@pytest.mark.req("N4")
def test_a_fresh_look_runs_no_process(tree: Path, calls: Path) -> None:
    said = [lesson(str(place), summary=text) for place, text in enumerate(_gone(tree))]
    first = find_stale(tree / ".archivist", said)
    assert sorted(first) == ["0", "1"]
    assert calls.read_text()
    calls.write_text("")
    assert find_stale(tree / ".archivist", said) == first
    assert calls.read_text() == ""


def test_history_is_asked_once_and_then_only_of_later_commits(tree: Path, calls: Path) -> None:
    summary = "edit `src/never.py`"
    before = _git(tree, "rev-parse", "HEAD")
    assert _reason(tree, summary) == ""
    _write(tree, src__neverDpy="")
    _commit(tree)
    _git(tree, "rm", "-q", "src/never.py")
    _commit(tree)
    calls.write_text("")
    assert _reason(tree, summary) == "`src/never.py` is gone"
    assert f"{before}..HEAD" in calls.read_text()
    _commit(tree, "later")
    calls.write_text("")
    assert _reason(tree, summary) == "`src/never.py` is gone"
    assert " log " not in calls.read_text()


def test_packed_refs_linked_trees_and_detached_heads_are_read(tree: Path, tmp_path: Path) -> None:
    commit = _git(tree, "rev-parse", "HEAD")
    _git(tree, "pack-refs", "--all")
    found = GitFolder.of(tree / "src")
    assert found is not None
    assert (found.top, found.head()) == (tree, commit)
    linked = tmp_path / "linked"
    _git(tree, "worktree", "add", "-q", "-b", "side", str(linked))
    _commit(linked, "on the side")
    there = GitFolder.of(linked)
    assert there is not None
    assert there.head() == _git(linked, "rev-parse", "HEAD") != commit
    assert "shop" in there.names()
    _git(tree, "checkout", "-q", "--detach")
    assert found.head() == commit
    (linked / ".archivist").mkdir(exist_ok=True)
    (linked / "src/views.py").unlink()
    assert _reason(linked, "edit `src/views.py`") == "`src/views.py` is gone"


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"format": 1}',
        b"[" * 100_000,
        b'{"format": 1, "stamp": 1, "looks": 3}',
    ],
)
def test_garbage_in_the_kept_file_is_as_good_as_nothing(tree: Path, garbage: bytes) -> None:
    kept = _kept(tree)
    kept.parent.mkdir(parents=True)
    (tree / "src/views.py").unlink()
    kept.write_bytes(garbage)
    assert _reason(tree, "edit `src/views.py`") == "`src/views.py` is gone"
    assert json.loads(kept.read_bytes())["format"] == 1
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in kept.parent.iterdir()] == [FILE_NAME]


def test_the_kept_file_is_bounded(tree: Path) -> None:
    many = [lesson(str(place), summary=f"edit `src/{'x' * 900}{place}.py`") for place in range(1200)]
    find_stale(tree / ".archivist", many, timeout_s=0.0)
    assert find_stale(tree / ".archivist", [lesson(str(n), summary="x") for n in range(1200)]) == {}
    kept = _kept(tree)
    assert len(json.loads(kept.read_bytes())["looks"]) == 1000
    assert kept.stat().st_size < 512 * 1024


def test_where_nothing_can_be_written_the_answer_is_the_same(tree: Path) -> None:
    (tree / "src/views.py").unlink()
    _kept(tree).mkdir(parents=True)
    assert _reason(tree, "edit `src/views.py`") == "`src/views.py` is gone"
    shutil.rmtree(tree / ".archivist")
    assert _reason(tree, "edit `src/views.py`") == "`src/views.py` is gone"
    assert not (tree / ".archivist").exists()


def test_without_git_or_patience_nothing_is_stale(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = lesson("a", summary=_gone(tree)[0])
    assert find_stale(tree / ".archivist", [said], timeout_s=0.0) == {}
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert find_stale(tree / ".archivist", [said]) == {}
    monkeypatch.setenv("PATH", path)
    assert find_stale(tree / ".archivist", [said]) == {"a": "`src/views.py` is gone"}


def test_a_git_that_hangs_is_not_waited_for(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = lesson("a", summary=_gone(tree)[0])
    slow = tmp_path / "slow" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    assert find_stale(tree / ".archivist", [said], timeout_s=0.2) == {}


def test_variables_of_a_git_hook_lead_nowhere_else(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gone(tree)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert _reason(tree, "edit `src/views.py`") == "`src/views.py` is gone"


def test_a_folder_without_git_is_known_by_its_files_only(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    (plain / ".archivist").mkdir(parents=True)
    assert WorkingTree.at(plain) is None
    _write(plain, src__aDpy="")
    assert WorkingTree.at(plain) is not None
    assert _reason(plain, "edit `src/a.py` and run `make x`, not `src/b.py`") == ""
    assert _reason(plain, "edit `src/b.py`") == ""


def test_a_repository_without_commits_makes_nothing_stale(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / ".archivist").mkdir(parents=True)
    _git(empty, "init", "-q")
    assert _reason(empty, "edit `src/a.py`") == ""
