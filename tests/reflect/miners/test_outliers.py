"""Runs that took far more than others."""

from __future__ import annotations

from .scripted import learnt, run, sh

USUAL = [run(sh("ls"), name=f"usual-{n}", cost=0.1) for n in range(5)]
STUCK = [sh("widget build --fast", "widget: error: bad magic number", 3)] * 4


def test_the_cause_of_a_dear_run_is_told() -> None:
    found = learnt(*USUAL, run(*STUCK, name="dear", cost=0.9))
    outlier = next(each for each in found if "outlier" in each.tags)
    assert "took 9.0 times the usual cost; 4 of its 4 calls went into" in outlier.summary


def test_a_dear_run_without_a_cause_teaches_nothing() -> None:
    assert learnt(*USUAL, run(*[sh("ls")] * 9, name="dear", cost=0.9)) == []


def test_few_runs_are_no_measure() -> None:
    assert not [
        each for each in learnt(*USUAL[:4], run(*STUCK, name="dear", cost=0.9)) if "outlier" in each.tags
    ]
