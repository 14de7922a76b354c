"""All miners together."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from archivist.reading.history import RunHistory
from archivist.reflect.miners import MINERS, mine_candidates

from .scripted import edit, learnt, no_module, past, run, sh, tool, user

WORDS = st.sampled_from(
    [
        "pip install numpy",
        "python use.py",
        "pytest -x",
        "git push",
        no_module("numpy"),
        "bash: jq: command not found",
        "FAILED tests/a.py::test_b - AssertionError: x",
        "sed -i 's/a/b/' src/core.py",
        "1 passed in 1s",
        "`",
        "$(",
        "/home/me/x",
    ]
)
TEXT = st.one_of(WORDS, st.text(max_size=40))
CALLS = st.lists(
    st.one_of(
        st.builds(sh, TEXT, TEXT, st.sampled_from([0, 1, 124, 127])),
        st.builds(tool, TEXT, TEXT, TEXT, failed=st.booleans()),
        st.builds(edit, TEXT, TEXT, TEXT, TEXT, failed=st.booleans()),
        st.builds(user, TEXT),
    ),
    max_size=12,
)


def test_each_miner_is_listed_once() -> None:
    assert len(set(MINERS)) == len(MINERS) == 22


def test_a_smooth_run_teaches_nothing() -> None:
    assert learnt(run(sh("ls", "a"), sh("pytest", "3 passed in 1s"))) == []


def test_errors_of_the_code_being_written_are_no_lessons() -> None:
    syntax = '  File "/srv/widget/new.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
    wrong = (
        'Traceback (most recent call last):\n  File "/srv/repro.py", line 4, in <module>\nAssertionError: 3\n'
    )
    assert learnt(run(sh("python new.py", syntax, 1), sh("python repro.py", wrong, 1))) == []


def test_the_most_important_comes_first() -> None:
    calls = [
        sh("tree", "bash: tree: command not found", 127),
        sh("python use.py", no_module("numpy"), 1),
        sh("pip install numpy"),
        sh("python use.py", "done"),
    ]
    weights = [each.importance for each in learnt(run(*calls), run(*calls, name="run-2"))]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) == 2


@given(CALLS, CALLS)
def test_whatever_happened_the_promises_hold(
    first: list[dict[str, object]], second: list[dict[str, object]]
) -> None:
    before, after = run(*first), run(*second, name="run-2")
    found = mine_candidates(after, past(before))
    ids = {f"run-2#{seq}" for seq in range(len(second))}
    for each in found:
        assert 0 < len(each.summary) <= 200
        assert each.key.startswith("acme/widget|")
        assert set(each.events) <= ids
        assert each.events
        assert 0 <= each.importance <= 1
        assert "/home/me" not in each.summary
    assert json.loads(json.dumps(after.digest)) == after.digest
    assert mine_candidates(after, past(before)) == found
    assert len({each.key for each in mine_candidates(before, RunHistory([]))}) == len(
        mine_candidates(before, RunHistory([]))
    )
