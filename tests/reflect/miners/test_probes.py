"""Calls that try something out once."""

from __future__ import annotations

import pytest

from .scripted import learnt, run, sh

UNKNOWN = "error: unexpected argument '--deep' found"


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    ("called", "printed", "then"),
    [
        ("cargo info leftpad --deep", UNKNOWN, "cargo info leftpad"),
        ("npm view left-padder --deep", "error: unknown option '--deep'", "npm view left-padder"),
        ("node /tmp/probe.mjs --deep", "node: bad option: --deep", "node /tmp/probe.mjs"),
        ("python scratch_probe.py --deep", "error: unknown option '--deep'", "python scratch_probe.py"),
        ("git log --deep 3fa9c1e..HEAD", "fatal: unrecognized argument: --deep", "git log 3fa9c1e..HEAD"),
        ("git show 3fa9c1e:src/a.ts", "fatal: path 'src/a.ts' exists on disk, but not in '3fa9c1e'",
         "git show 3fa9c1e:a.ts"),
        ("curl -s https://api.example/items?page=1", "zsh: no matches found: https://api.example/items?page=1",
         "curl -s 'https://api.example/items?page=1'"),
        ("mill list src/cart.ts", "throw new CartError(`unknown option --deep`);", "mill list --all"),
    ],
)  # fmt: skip
def test_what_one_run_tried_out_is_not_learnt(called: str, printed: str, then: str) -> None:
    assert learnt(run(sh(called, printed, 2), sh(then, "ok, 3 found"))) == []


@pytest.mark.req("N1")
@pytest.mark.parametrize("version", ["3fa9c1e", "81c02fd"])
def test_what_two_runs_met_is_no_probe(version: str) -> None:
    refused = "fatal: unrecognized argument: --deep"
    runs = [
        run(
            sh(f"git log --deep {commit}..HEAD", refused, 128),
            sh(f"git log --graph {commit}..HEAD", "* a1 totals"),
            name=name,
        )
        for name, commit in (("r1", "3fa9c1e"), ("r2", version))
    ]
    (lesson,) = learnt(*runs)
    assert "--deep" in lesson.summary


@pytest.mark.req("N1")
def test_a_call_of_the_project_is_learnt_at_once() -> None:
    (lesson,) = learnt(run(sh("cargo pilot list --deep", UNKNOWN, 2), sh("cargo pilot list", "3 tasks")))
    assert lesson.remedies == ("cargo pilot list",)
