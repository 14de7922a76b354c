"""What may go by age, and when a bank is called large."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples import WHEN

from archivist.forget.retention import (
    Going,
    Kept,
    Needed,
    Run,
    Sizes,
    below,
    children,
    decide,
    families,
    growth_warnings,
    needed,
)

OLD = WHEN - timedelta(days=40)
BEFORE = WHEN - timedelta(days=30)


def test_an_old_run_goes_with_its_events() -> None:
    run = Run(id="r", finished=OLD, uncited=3, uncited_bytes=900)
    assert decide(run, Needed(), BEFORE) == Going("r", 3, 900)


@pytest.mark.parametrize(
    ("run", "needs", "why"),
    [
        (Run(id="r", finished=WHEN), Needed(), Kept.YOUNG),
        (Run(id="r", finished=WHEN, started=OLD), Needed(), Kept.YOUNG),
        (Run(id="r", started=WHEN), Needed(), Kept.YOUNG),
        (Run(id="r"), Needed(), Kept.UNDATED),
        (Run(id="r", finished=OLD), Needed(waiting=frozenset({"r"})), Kept.WAITING),
        (Run(id="r", finished=OLD, uncited=2), Needed(runs=frozenset({"r"})), Kept.CITED),
        (Run(id="r", finished=OLD), needed([((), ("r#1",))], (), ""), Kept.CITED),
        (Run(id="r", finished=OLD, uncited=2), Needed(last="r"), Kept.LAST),
    ],
)
def test_a_run_stays_and_says_why(run: Run, needs: Needed, why: Kept) -> None:
    assert decide(run, needs, BEFORE) is why


def test_of_a_run_with_cited_events_only_the_others_go() -> None:
    needs = needed([(("r",), ("r#1", "r#4"))], (), "")
    going = decide(Run(id="r", finished=OLD, uncited=7, uncited_bytes=70), needs, BEFORE)
    assert going == Going("r", 7, 70, frozenset({"r#1", "r#4"}), is_whole=False)


KIN = frozenset({"r", "r@web", "r.aa"})


@pytest.mark.parametrize(
    ("needs", "decided"),
    [
        (Needed(), Going("r", 3, 30)),
        (Needed(waiting=frozenset({"r@web"})), Kept.WAITING),
        (Needed(last="r.aa"), Kept.LAST),
        (needed([(("r.aa",), ("r.aa#1",))], (), ""), Going("r", 3, 30, is_whole=False)),
        (needed([(("r@web",), ())], (), ""), Going("r", 3, 30, is_whole=False)),
    ],
)
def test_the_records_of_one_session_stay_together(needs: Needed, decided: Going | Kept) -> None:
    run = Run(id="r", finished=OLD, uncited=3, uncited_bytes=30, kin=KIN)
    assert decide(run, needs, BEFORE) == decided


def test_a_session_is_a_run_with_all_that_is_below_it() -> None:
    known = children(
        [("r", ""), ("r@web", "r"), ("r.aa", "r"), ("r.aa@lib", "r.aa"), ("x", "gone"), ("y", "")]
    )
    assert set(below("r", known)) == {"r@web", "r.aa", "r.aa@lib"}
    assert below("r.aa", known) == ["r.aa@lib"]
    found = families(known)
    assert found["r.aa@lib"] == found["r"] == {"r", "r@web", "r.aa", "r.aa@lib"}
    assert found.keys() == {*found["r"], "x", "gone"}


def test_runs_that_are_each_others_parents_are_looked_at_once() -> None:
    assert below("a", children([("a", "b"), ("b", "a")])) == ["b"]


def test_a_run_whose_name_has_a_number_sign_is_cited_by_its_own_events() -> None:
    assert needed([((), ("a#b#3",))], (), "").events == {"a#b": frozenset({"a#b#3"})}


names = st.sampled_from(["a", "b", "c"])
dates = st.none() | st.integers(0, 80).map(lambda days: WHEN - timedelta(days=days))
runs = st.builds(Run, id=names, finished=dates, started=dates, uncited=st.integers(0, 3))
needs_strategy = st.builds(
    needed,
    st.lists(
        st.tuples(st.lists(names, max_size=2), st.lists(names.map(lambda name: f"{name}#1"), max_size=2))
    ),
    st.lists(names, max_size=1),
    names | st.just(""),
)


@given(run=runs, needs=needs_strategy)
def test_nothing_that_is_needed_ever_goes(run: Run, needs: Needed) -> None:
    going = decide(run, needs, BEFORE)
    if isinstance(going, Going):
        assert run.moment is not None
        assert run.moment < BEFORE
        assert run.id not in needs.waiting
        assert going.cited == needs.events.get(run.id, frozenset())
        if going.is_whole:
            assert run.id not in needs.runs
            assert run.id != needs.last


@given(run=runs, needs=needs_strategy, days=st.integers(1, 80), more=st.integers(0, 80))
def test_a_longer_memory_never_lets_more_go(run: Run, needs: Needed, days: int, more: int) -> None:
    def goes(age: int) -> bool:
        before: datetime = WHEN - timedelta(days=age)
        return isinstance(decide(run, needs, before), Going)

    assert goes(days) or not goes(days + more)


@given(run=runs, needs=needs_strategy)
def test_pruning_again_finds_nothing_more(run: Run, needs: Needed) -> None:
    going = decide(run, needs, BEFORE)
    if isinstance(going, Going) and not going.is_whole:
        left = Run(id=run.id, finished=run.finished, started=run.started, uncited=0)
        assert decide(left, needs, BEFORE) is Kept.CITED


def test_a_small_bank_needs_no_words() -> None:
    assert growth_warnings(Sizes(1_000_000, 0, {"events": 10}), 10, warn_at_mb=200, days=30) == []


@pytest.mark.req("M9")
def test_a_large_bank_is_told_what_helps() -> None:
    sizes = Sizes(410_000_000, 0, {"events": 92, "lessons": 8})
    assert growth_warnings(sizes, 73, warn_at_mb=200, days=30) == [
        "events are 92 % of 410 MB: archivist prune --days 30 --yes frees about 299 MB"
    ]


def test_a_large_bank_of_young_runs_is_told_so() -> None:
    sizes = Sizes(410_000_000, 0, {"events": 92, "lessons": 8})
    (said,) = growth_warnings(sizes, 0, warn_at_mb=200, days=30)
    assert "nothing of weight is older than 30 days" in said
