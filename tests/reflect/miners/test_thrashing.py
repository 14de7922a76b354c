"""Files that runs edit over and over."""

from __future__ import annotations

from .scripted import Call, edit, learnt, one, run, sh


def _struggle() -> list[Call]:
    change = edit("/home/me/code/widget/src/core.py", "a", "b")
    back = sh("git checkout -- src/core.py")
    return [change, change, back, change, change, back, change, change, back, change]


def test_two_runs_that_put_the_same_file_back_are_told() -> None:
    lesson = one(run(*_struggle()), run(*_struggle(), name="run-2"))
    assert lesson.summary.startswith("2 runs edited `src/core.py` over and over")


def test_one_run_may_just_have_had_a_hard_task() -> None:
    assert learnt(run(*_struggle())) == []
