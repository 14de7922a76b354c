"""The check after which runs succeeded."""

from __future__ import annotations

from archivist.records import EpisodeStatus

from .scripted import edit, learnt, run, sh

CHANGE = edit("/srv/widget/src/core.py", "a", "b")
CHECK = sh("INSTA_UPDATE=always cargo test -p widget", "test result: ok. 3 passed")


def test_the_same_check_in_three_successful_runs_is_told() -> None:
    runs = [run(CHANGE, CHECK, name=f"run-{n}") for n in range(3)]
    assert "verified with `INSTA_UPDATE=always cargo test -p widget`" in learnt(*runs)[0].summary
    assert learnt(*runs[:2]) == []


def test_the_obvious_check_and_failed_runs_teach_nothing() -> None:
    plain = [run(CHANGE, sh("pytest", "3 passed in 1s"), name=f"run-{n}") for n in range(3)]
    failed = [run(CHANGE, CHECK, name=f"run-{n}", status=EpisodeStatus.FAILED) for n in range(3)]
    assert learnt(*plain) == []
    assert learnt(*failed) == []
