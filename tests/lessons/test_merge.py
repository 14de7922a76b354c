"""Two clones' versions of a lesson become one, whichever way they meet."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import RecordError
from archivist.lessons.standing import merge_lessons
from archivist.records import Lesson, Status
from tests.samples import WHEN, lesson, lessons

versions = lessons(lesson_id="one")


def _merge(first: Lesson, second: Lesson) -> Lesson:
    return merge_lessons(first, second, promote_at_runs=2)


@pytest.mark.req("N10")
@given(versions, versions)
def test_merge_is_commutative(first: Lesson, second: Lesson) -> None:
    assert _merge(first, second) == _merge(second, first)


@pytest.mark.req("N10")
@given(versions, versions, versions)
def test_merge_is_associative(first: Lesson, second: Lesson, third: Lesson) -> None:
    assert _merge(_merge(first, second), third) == _merge(first, _merge(second, third))


@pytest.mark.req("N10")
@given(versions, versions)
def test_merge_is_idempotent(first: Lesson, second: Lesson) -> None:
    assert _merge(first, first) == first
    both = _merge(first, second)
    assert _merge(both, first) == both == _merge(both, both)


@given(versions, st.data())
def test_merge_is_associative_between_near_twins(first: Lesson, data: st.DataObject) -> None:
    twins = [first]
    for _ in range(2):
        tags = data.draw(st.permutations(first.tags).map(tuple))
        runs = data.draw(st.sampled_from([first.runs, (), ("zz",)]))
        twins.append(replace(first, tags=tags, runs=runs, faded=0))
    a, b, c = twins
    assert _merge(_merge(a, b), c) == _merge(a, _merge(b, c)) == _merge(_merge(c, b), a)


def test_one_sighting_in_each_clone_makes_it_active() -> None:
    here, there = lesson(runs=("r1",)), lesson(runs=("r2",))
    both = _merge(here, there)
    assert (both.frequency, both.status) == (2, Status.ACTIVE)


def test_a_sighting_does_not_bring_old_words_back() -> None:
    later, latest = WHEN + timedelta(hours=1), WHEN + timedelta(hours=2)
    edited = lesson(summary="new words", edited=later, updated=later)
    seen = lesson(summary="old words", runs=("r1",), last_seen_run="r1", last_seen=latest, updated=latest)
    both = _merge(edited, seen)
    assert (both.summary, both.last_seen_run) == ("new words", "r1")


def test_forgetting_wins_over_an_older_standing() -> None:
    forgotten = lesson(status=Status.ARCHIVED, edited=WHEN + timedelta(hours=1))
    assert _merge(lesson(runs=("a", "b", "c"), status=Status.ACTIVE), forgotten).status is Status.ARCHIVED


def test_two_different_lessons_are_not_merged() -> None:
    with pytest.raises(RecordError):
        _merge(lesson("a"), lesson("b"))
