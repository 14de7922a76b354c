"""What helped is weighed by runs, and steps back when later runs show that its time is over."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.reading.remedies import common_form, proofs


def _ranked(*runs: tuple[tuple[str, ...], tuple[str, ...]]) -> list[str]:
    found = proofs(runs)
    return sorted(found, key=lambda text: found[text].rank)


def test_what_helped_in_more_runs_comes_first() -> None:
    assert _ranked((("b",), ()), (("a",), ()), (("a",), ())) == ["a", "b"]
    assert _ranked((("a",), ()), (("a",), ()), (("b",), ())) == ["a", "b"]
    assert proofs([(("a",), ()), ((), ()), (("a",), ())])["a"].runs == 2


def test_only_runs_that_tried_it_count_against_it() -> None:
    runs = [(("a",), ("a",)), ((), ()), ((), ("a",)), (("b",), ())]
    assert (proofs(runs)["a"].runs, proofs(runs)["a"].vain) == (1, 1)


def test_what_failed_since_comes_last_until_it_helps_again() -> None:
    runs: list[tuple[tuple[str, ...], tuple[str, ...]]] = [(("a",), ()), (("a",), ()), (("b",), ("a",))]
    assert _ranked(*runs) == ["b", "a"]
    assert _ranked(*runs, (("a",), ())) == ["a", "b"]


def test_one_failure_says_little_against_what_worked_often() -> None:
    often = [(("a",), ())] * 10
    assert _ranked(*often, (("b",), ("a",))) == ["a", "b"]
    assert _ranked(*often, *[(("b",), ("a",))] * 3) == ["b", "a"]


def test_a_part_that_failed_is_the_whole_that_failed() -> None:
    assert proofs([(("make a && make b",), ()), ((), ("make b",))])["make a && make b"].has_failed_since


def test_what_two_later_runs_did_instead_takes_the_place() -> None:
    old = [(("a",), ())] * 5
    assert _ranked(*old, (("b",), ()), (("c",), ()))[0] == "a"
    assert _ranked(*old, (("b",), ()), (("b",), ()))[0] == "b"


@pytest.mark.parametrize(
    ("calls", "form"),
    [
        (("npm i --force a@1.2", "npm i --force b@3.4"), "npm i --force <name>"),
        (("go test ./pkg/a_test.go", "go test ./pkg/b_test.go"), "go test ./pkg/<name>_test.go"),
        (("tf -chdir=infra/net init", "tf -chdir=infra/dns init"), "tf -chdir=infra/<name> init"),
        (("make a", "make b", "make c"), "make <name>"),
        (("make a", "just a"), ""),
        (("make a", "make a b"), ""),
        (("cargo run --release x", "cargo run --debug x"), ""),
        (("a b c d", "a x y z"), ""),
    ],
)
def test_calls_of_several_runs_have_one_form(calls: tuple[str, ...], form: str) -> None:
    assert common_form(calls) == form


@given(st.lists(st.text("ab/._-= ", max_size=20), min_size=1, max_size=4))
def test_a_common_form_fits_every_call_that_it_was_made_of(calls: list[str]) -> None:
    form = common_form(calls)
    pattern = re.escape(form).replace("<name>", ".*")
    assert not form or all(re.fullmatch(pattern, call) for call in calls)
