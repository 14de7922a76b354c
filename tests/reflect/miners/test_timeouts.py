"""Commands that did not end in time."""

from __future__ import annotations

from .scripted import learnt, one, run, sh

SLOW = sh("npm run e2e", "", 124, duration_s=120.0)


def test_what_was_run_instead_is_named() -> None:
    lesson = one(run(SLOW, sh("npm run e2e -- --shard=1/4", "ok")))
    assert lesson.summary.startswith("`npm run e2e` timed out after 120 s: ")
    assert "--shard=1/4" in lesson.summary


def test_once_without_a_remedy_is_thin() -> None:
    assert learnt(run(SLOW)) == []


def test_twice_is_told() -> None:
    assert "`npm run e2e` timed out after 120 s: run a part of it" in one(run(SLOW, SLOW)).summary
