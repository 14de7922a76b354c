"""A session belongs to where it began, wherever it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from archivist import Bank
from archivist.edges.hooks import follow_up
from tests.attacks.moving_sessions import failing_build, make_desk, moving_log, told_in
from tests.e2e.client_homes import git, make_repository


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_desk(tmp_path / "work")


def _end(log: Path, ended: Path, place: Path, *, is_named: bool = False) -> None:
    words = ("end", "claude-code", log.stem, str(log), str(ended), str(place))
    follow_up.main((*words, "named") if is_named else words)


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize("how", ["", "compacted", "gone", "below"])
def test_a_session_that_began_elsewhere_is_not_taken_in_where_it_ends(
    work: Path, tmp_path: Path, how: str
) -> None:
    shop, began = work / "shop", work / "ev"
    if how == "below":
        # The user's repository lies in the stranger's.
        shop = make_repository(began / "vendor" / "shop", "https://github.com/me/shop.git")
    with Bank.open(shop, create=True) as bank:
        for number in range(2):
            calls = [*failing_build(began), (shop, "ls", "checks", False)]
            log = moving_log(tmp_path / f"s-{number}.jsonl", began, calls)
            if how == "compacted":
                bank.sessions.open_session(log.stem, "shop", folder=shop)
            if how == "gone":
                shutil.rmtree(began, ignore_errors=True)
            _end(log, shop, shop)
        assert all(run.summary == "" for run in bank.runs.episodes())
        assert "evil" not in told_in(bank, shop)


@pytest.mark.req("N5")
@pytest.mark.parametrize("where", ["inside", "clone", "worktree", "worktree that is gone", "above", "moved"])
def test_a_session_that_began_in_the_project_or_above_it_is_taken_in(
    work: Path, tmp_path: Path, where: str
) -> None:
    shop = work / "shop"
    began = shop / "src"
    with Bank.open(shop, create=True) as bank:
        if where == "clone":
            began = make_repository(tmp_path / "clone", "git@github.com:me/shop.git")
        elif where.startswith("worktree"):
            began = tmp_path / "tree"
            git(shop, "worktree", "add", "-q", str(began), "-b", "tree")
        elif where == "above":
            began = work
        bank.sessions.open_session("s-1", "shop", folder=began)
        log = moving_log(tmp_path / "s-1.jsonl", began, failing_build(shop))
        if where == "worktree that is gone":
            git(shop, "worktree", "remove", "--force", str(began))
        _end(log, tmp_path if where == "moved" else shop, shop)
        assert bank.runs.episode("s-1").project == "shop"
        assert "--evil" in str(bank.runs.episode("s-1").extra)


def test_a_bank_that_the_user_named_takes_sessions_of_all_folders_each_as_its_own(
    work: Path, tmp_path: Path
) -> None:
    with Bank.open(tmp_path / "all", create=True) as bank:
        _end(
            moving_log(tmp_path / "s-1.jsonl", work / "ev", failing_build(work / "ev")),
            work / "shop",
            bank.root,
            is_named=True,
        )
        assert bank.runs.episode("s-1").project == "ev"
