"""What helped is weighed by runs, and steps back when later runs show that its time is over."""

from __future__ import annotations

from archivist.reading.remedies import proofs


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


def test_a_part_that_failed_is_the_whole_that_failed() -> None:
    assert proofs([(("make a && make b",), ()), ((), ("make b",))])["make a && make b"].has_failed_since


def test_what_two_later_runs_did_instead_takes_the_place() -> None:
    old = [(("a",), ())] * 5
    assert _ranked(*old, (("b",), ()), (("c",), ()))[0] == "a"
    assert _ranked(*old, (("b",), ()), (("b",), ()))[0] == "b"
