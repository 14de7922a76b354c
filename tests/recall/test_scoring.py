"""Importance, recency and relevance: weights times parts, half-lives, and scales."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import RecallRules
from archivist.recall.scoring import Relevance, Weights, score_documents, score_recency
from archivist.store.results import IndexedDocument

DAY_S = 86_400
NOW = 2_000_000_000
RULES = RecallRules(half_life_days=30.0, half_life_cycles=20.0)
ARCHIVIST = Weights(0.4, 0.3, 0.3)
ALONE = Weights(0.0, 0.0, 1.0)


def _placed(
    place: int = 1, *, time: int | None = NOW, cycle: int | None = None, importance: float = 0.5
) -> IndexedDocument:
    return IndexedDocument(place, "lesson", f"id-{place}", time, cycle, importance, "", "", 0, "", 0)


documents = st.dictionaries(
    st.integers(1, 20),
    st.tuples(st.floats(0, 3), st.floats(0, 1), st.integers(0, 400)),
    min_size=1,
    max_size=12,
)


def _read(
    drawn: dict[int, tuple[float, float, int]],
) -> tuple[dict[int, Relevance], dict[int, IndexedDocument]]:
    found = {place: Relevance(total) for place, (total, _, _) in drawn.items()}
    placed = {
        place: _placed(place, time=NOW - days * DAY_S, importance=importance)
        for place, (_, importance, days) in drawn.items()
    }
    return found, placed


@pytest.mark.req("C3")
@given(st.floats(0, 1000), st.floats(0.5, 365))
def test_recency_halves_with_every_half_life_in_days(age: float, half_life: float) -> None:
    rules = RecallRules(half_life_days=half_life, half_life_cycles=1.0)
    age_s, life_s = int(age * DAY_S), half_life * DAY_S
    older = score_recency(_placed(time=NOW - age_s), rules, NOW)
    younger = score_recency(_placed(time=NOW - age_s), rules, NOW - life_s)
    if age_s >= life_s:
        assert older == pytest.approx(younger / 2)
    assert score_recency(_placed(time=NOW), rules, NOW + life_s) == pytest.approx(0.5)


@pytest.mark.req("C3")
@given(st.integers(0, 500), st.integers(1, 100))
def test_recency_halves_with_every_half_life_in_cycles(cycle: int, half_life: int) -> None:
    rules = RecallRules(half_life_days=1.0, half_life_cycles=float(half_life))
    placed = _placed(cycle=cycle, time=0)
    now = score_recency(placed, rules, NOW, cycle + 7)
    later = score_recency(placed, rules, NOW, cycle + 7 + half_life)
    assert later == pytest.approx(now / 2)
    assert score_recency(placed, rules, NOW, cycle) == 1


def test_days_count_where_either_side_knows_no_cycle() -> None:
    month = NOW + 30 * DAY_S
    assert score_recency(_placed(cycle=3), RULES, month) == pytest.approx(0.5)
    assert score_recency(_placed(), RULES, month, 9) == pytest.approx(0.5)


def test_what_has_no_time_is_not_recent_and_the_future_is_no_newer_than_now() -> None:
    assert score_recency(_placed(time=None), RULES, NOW) == 0
    assert score_recency(_placed(time=NOW + 999), RULES, NOW) == 1
    assert score_recency(_placed(cycle=9), RULES, NOW, 3) == 1
    assert score_recency(_placed(), RecallRules(half_life_days=0.0, half_life_cycles=0.0), NOW) == 0


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_the_newer_is_never_less_recent(one: int, other: int) -> None:
    newer, older = (score_recency(_placed(time=NOW - age), RULES, NOW) for age in sorted((one, other)))
    assert newer >= older


@pytest.mark.req("A5", "C3")
@given(documents, st.builds(Weights, *[st.floats(0, 5)] * 3))
def test_a_score_is_the_sum_of_weights_times_parts(
    drawn: dict[int, tuple[float, float, int]], weights: Weights
) -> None:
    found, placed = _read(drawn)
    for place, score in score_documents(found, placed, weights=weights, rules=RULES, now=NOW).items():
        total = (
            weights.importance * score.importance
            + weights.recency * score.recency
            + weights.relevance * score.relevance
        )
        assert score.total == pytest.approx(total, abs=1e-9)
        assert (score.importance, score.why) == (placed[place].importance, found[place])


@pytest.mark.req("A5")
@given(documents, st.floats(0, 10), st.floats(0.1, 10))
def test_beside_other_merits_only_the_order_and_the_gaps_of_relevance_count(
    drawn: dict[int, tuple[float, float, int]], constant: float, factor: float
) -> None:
    found, placed = _read(drawn)
    moved = {place: Relevance(factor * why.total + constant) for place, why in found.items()}
    one, other = (
        score_documents(each, placed, weights=ARCHIVIST, rules=RULES, now=NOW) for each in (found, moved)
    )
    # Where all are the same to within the last digits, adding makes them the same.
    if max(why.total for why in found.values()) - min(why.total for why in found.values()) > 1e-3:
        assert all(one[place].relevance == pytest.approx(other[place].relevance, abs=1e-6) for place in found)
        assert {min(s.relevance for s in one.values()), max(s.relevance for s in one.values())} == {0, 1}


@given(documents)
def test_alone_relevance_stays_as_it_is(drawn: dict[int, tuple[float, float, int]]) -> None:
    found, placed = _read(drawn)
    scored = score_documents(found, placed, weights=ALONE, rules=RULES, now=NOW)
    assert {place: score.total for place, score in scored.items()} == {
        place: why.total for place, why in found.items()
    }


@given(documents, st.integers(1, 20), st.floats(0, 1))
def test_a_greater_merit_never_lowers(
    drawn: dict[int, tuple[float, float, int]], place: int, importance: float
) -> None:
    found, placed = _read(drawn)
    if place not in placed:
        return
    raised = {**placed, place: placed[place]._replace(importance=max(placed[place].importance, importance))}
    before, after = (
        score_documents(found, each, weights=ARCHIVIST, rules=RULES, now=NOW)[place].total
        for each in (placed, raised)
    )
    assert after >= before


def test_a_single_answer_is_wholly_relevant_and_nothing_is_nothing() -> None:
    found = score_documents({1: Relevance(0.01)}, {1: _placed()}, weights=ARCHIVIST, rules=RULES, now=NOW)
    assert found[1].total == pytest.approx(0.4 * 0.5 + 0.3 + 0.3)
    assert score_documents({}, {}, weights=ARCHIVIST, rules=RULES, now=NOW) == {}
