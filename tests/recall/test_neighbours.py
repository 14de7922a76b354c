"""Neighbours lend, those who are named are heard, and what is distilled stands higher."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.recall.scoring import LENT, Relevance, add_neighbour_scores, boost_scores
from archivist.store.results import IndexedDocument


def _placed(
    place: int, thread: str = "r", position: int = 0, kind: str = "event", speaker: str = ""
) -> IndexedDocument:
    return IndexedDocument(place, kind, f"id-{place}", 0, None, 0.5, speaker, thread, position, "", 0)


streams = st.dictionaries(
    st.integers(1, 30),
    st.tuples(st.sampled_from(["", "r", "s"]), st.integers(0, 12), st.sampled_from([0.0, 0.1, 0.5, 1.5])),
    max_size=12,
)


def _read(
    drawn: dict[int, tuple[str, int, float]],
) -> tuple[dict[int, Relevance], dict[int, IndexedDocument]]:
    seen: set[tuple[str, int]] = set()
    found, placed = {}, {}
    for place, (thread, position, total) in drawn.items():
        if not thread or (thread, position) not in seen:
            seen.add((thread, position))
            found[place], placed[place] = Relevance(total), _placed(place, thread, position)
    return found, placed


@given(streams)
def test_lending_takes_nothing_away_and_says_what_it_gave(drawn: dict[int, tuple[str, int, float]]) -> None:
    found, placed = _read(drawn)
    lent = add_neighbour_scores(found, placed)
    assert set(lent) == set(found)
    for place, why in lent.items():
        assert why.total == pytest.approx(found[place].total + why.neighbours)
        assert why.neighbours >= 0
        near = [
            other
            for other in found
            if other != place
            and placed[other].thread == placed[place].thread != ""
            and abs(placed[other].position - placed[place].position) <= max(LENT)
            and found[other].total
        ]
        assert (why.neighbours > 0) == bool(near)


def test_the_nearer_neighbour_lends_more() -> None:
    placed = {1: _placed(1, position=5), 2: _placed(2, position=6), 3: _placed(3, position=7)}
    lent = add_neighbour_scores({1: Relevance(1.0), 2: Relevance(0.0), 3: Relevance(0.0)}, placed)
    assert 1 > lent[2].total > lent[3].total > 0
    assert lent[1].total == 1


def test_nothing_is_lent_across_streams_or_outside_of_any() -> None:
    placed = {1: _placed(1, "r", 1), 2: _placed(2, "s", 2), 3: _placed(3, "", 1), 4: _placed(4, "", 2)}
    found = {place: Relevance(1.0) for place in placed}
    assert add_neighbour_scores(found, placed) == found


def test_a_lone_word_among_answers_gains_on_a_better_one_that_stands_alone() -> None:
    placed = {place: _placed(place, "r", place) for place in (1, 2, 3)} | {9: _placed(9, "s", 9)}
    found = {1: Relevance(0.8), 2: Relevance(0.7), 3: Relevance(0.8), 9: Relevance(0.9)}
    lent = add_neighbour_scores(found, placed)
    assert lent[2].total > lent[9].total


def test_who_is_named_is_raised_and_who_said_nothing_of_it_is_not() -> None:
    placed = {1: _placed(1, speaker="anna"), 2: _placed(2, speaker="ben"), 3: _placed(3, speaker="anna")}
    found = {1: Relevance(0.5), 2: Relevance(0.5), 3: Relevance(0.0)}
    raised = boost_scores(found, placed, frozenset({"anna"}))
    assert raised[1].total > raised[2].total == 0.5
    assert (raised[3].total, raised[1].speaker > 0) == (0, True)
    assert boost_scores(found, placed, frozenset()) == found


@given(st.floats(0, 2))
def test_of_equal_fit_a_lesson_stands_above_a_run_and_a_run_above_an_event(total: float) -> None:
    placed = {place: _placed(place, kind=kind) for place, kind in enumerate(("lesson", "episode", "event"))}
    raised = boost_scores({place: Relevance(total) for place in placed}, placed, frozenset())
    assert raised[0].total >= raised[1].total >= raised[2].total == total
    for why in raised.values():
        assert why.total == pytest.approx((total + why.speaker) * why.standing)
