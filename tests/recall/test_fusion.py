"""Two lists become one: every part between its bounds, better evidence never ranks lower."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.recall.scoring import (
    ENCODER_FUSION,
    CosineBaseline,
    Relevance,
    discount_long,
    estimate_baseline,
    fuse,
    is_match,
)
from archivist.store.results import IndexedDocument

PLACES = st.integers(1, 30)
SCORES = st.dictionaries(PLACES, st.floats(0.01, 40), max_size=12)
COSINES = st.dictionaries(PLACES, st.floats(-1, 1), max_size=12)
USUAL = st.builds(CosineBaseline, st.floats(-0.2, 0.5), st.floats(0.01, 0.4))


@given(SCORES, st.floats(0, 60), COSINES, USUAL)
def test_whatever_either_list_names_is_there_with_parts_that_add_up(
    words: dict[int, float], ideal: float, cosines: dict[int, float], usual: CosineBaseline
) -> None:
    found = fuse(words, ideal, cosines, usual)
    assert set(found) == set(words) | set(cosines)
    for place, why in found.items():
        assert why.total == pytest.approx(
            why.words_weight * why.words + (1 - why.words_weight) * why.meaning, abs=1e-9
        )
        assert 0 <= why.words <= 1.5
        assert 0 <= why.meaning <= 2
        assert 0 < why.words_weight < 1
        assert why.cosine == cosines.get(place)
        assert (why.words > 0) == (place in words)


@given(SCORES, st.floats(0, 60), COSINES, USUAL)
def test_what_holds_more_and_is_nearer_never_stands_below(
    words: dict[int, float], ideal: float, cosines: dict[int, float], usual: CosineBaseline
) -> None:
    found = fuse(words, ideal, cosines, usual)
    for one in found:
        for other in found:
            if words.get(one, 0) >= words.get(other, 0) and cosines.get(one, -1) >= cosines.get(other, -1):
                assert found[one].total >= found[other].total - 1e-12


@given(SCORES, st.floats(0, 60), COSINES, USUAL, PLACES, st.floats(0, 40))
def test_more_words_held_never_lowers_a_document_among_the_others(
    words: dict[int, float],
    ideal: float,
    cosines: dict[int, float],
    usual: CosineBaseline,
    place: int,
    more: float,
) -> None:
    without_cosines = dict.fromkeys(cosines, 0.2)
    before = fuse(words, ideal, without_cosines, usual)
    after = fuse({**words, place: words.get(place, 0.0) + more + 0.01}, ideal, without_cosines, usual)

    def above(found: dict[int, Relevance]) -> set[int]:
        own = found[place].total if place in found else 0.0
        return {other for other in found if other != place and found[other].total > own + 1e-12}

    assert above(after) <= above(before)


@given(SCORES, st.floats(0, 60))
def test_without_vectors_the_words_decide_alone(words: dict[int, float], ideal: float) -> None:
    found = fuse(words, ideal, {}, None)
    assert sorted(found, key=lambda place: (-found[place].total, place)) == sorted(
        words, key=lambda place: (-words[place], place)
    )
    assert all((why.words_weight, why.cosine, why.total) == (1.0, None, why.words) for why in found.values())


@given(COSINES, USUAL)
def test_without_words_the_vectors_decide_alone(cosines: dict[int, float], usual: CosineBaseline) -> None:
    found = fuse({}, 5.0, cosines, usual)
    totals = [found[place].total for place in sorted(cosines, key=lambda place: -cosines[place])]
    assert totals == sorted(totals, reverse=True)


def test_nothing_gives_nothing() -> None:
    assert fuse({}, 0.0, {}, None) == {}
    assert fuse({}, 0.0, {}, CosineBaseline(0.1, 0.1)) == {}


def test_a_question_of_which_the_best_holds_little_leaves_room_for_meaning() -> None:
    usual = CosineBaseline(0.1, 0.1)
    cosines = {1: 0.1, 2: 0.6}
    weak = fuse({1: 1.0}, 20.0, cosines, usual)
    strong = fuse({1: 20.0}, 20.0, cosines, usual)
    assert weak[2].total > weak[1].total
    assert strong[1].total > strong[2].total


def test_words_weigh_more_where_many_documents_are_about_as_near() -> None:
    usual = CosineBaseline(0.1, 0.1)
    peaked = fuse({1: 10.0}, 10.0, {place: 0.6 if place == 2 else 0.15 for place in range(1, 12)}, usual)
    crowded = fuse({1: 10.0}, 10.0, dict.fromkeys(range(1, 12), 0.6), usual)
    assert crowded[1].words_weight > peaked[1].words_weight


def test_a_long_text_does_not_win_by_its_length() -> None:
    found = {1: Relevance(0.6, 0.6, 0.0, 1.0), 2: Relevance(0.5, 0.5, 0.0, 1.0)}
    long, short = (
        IndexedDocument(n, "event", f"r#{n}", 0, None, 0.3, "", "r", n, "", 0, words)
        for n, words in ((1, 2000), (2, 30))
    )
    weighed = discount_long(found, {1: long, 2: short})
    assert weighed[2] == found[2]
    assert weighed[1].total < weighed[2].total


def test_the_meaning_of_a_long_text_counts_less() -> None:
    found = {1: Relevance(0.6, 0.0, 0.6, 0.0)}
    long = IndexedDocument(1, "event", "r#1", 0, None, 0.3, "", "r", 1, "", 0, 2000)
    assert discount_long(found, {1: long})[1].total < 0.5


@given(st.lists(st.floats(-1, 1), max_size=200))
def test_a_sample_is_believed_the_more_the_larger_it_is(sample: list[float]) -> None:
    usual = estimate_baseline(sample)
    assert usual.spread > 0
    assert -1 <= usual.mean <= 1
    if sample:
        many = estimate_baseline(sample * 50)
        assert abs(many.mean - fmean(sample)) <= abs(usual.mean - fmean(sample)) + 1e-9


@given(USUAL, st.floats(-1, 1), st.floats(-1, 1))
def test_deviations_rise_with_the_cosine(usual: CosineBaseline, one: float, other: float) -> None:
    assert usual.deviations(usual.mean) == 0
    assert (usual.deviations(one) <= usual.deviations(other)) or one > other


@pytest.mark.parametrize(
    ("why", "is_one"),
    [
        (Relevance(0.1, words=0.01), True),
        (Relevance(0.5, meaning=0.6, cosine=0.4), True),
        (Relevance(0.5, meaning=0.6, cosine=0.2), False),
        (Relevance(0.5, meaning=0.3, cosine=0.4), False),
        (Relevance(0.5, neighbours=0.4), False),
    ],
)
def test_a_match_shares_a_word_or_is_nearer_than_chance_makes_it(why: Relevance, is_one: bool) -> None:
    assert is_match(why) is is_one


@pytest.mark.req("C3")
def test_where_an_encoder_finds_a_crowd_near_the_words_decide() -> None:
    usual = CosineBaseline(0.1, 0.1)
    words = {1: 4.0, 2: 2.5}
    for tenth, first in ((0.3, 2), (0.6, 1)):
        cosines = {2: 0.7, **dict.fromkeys(range(3, 14), tenth), 1: 0.2}
        found = fuse(words, 5.0, cosines, usual, ENCODER_FUSION)
        assert max(found, key=lambda place: found[place].total) == first
