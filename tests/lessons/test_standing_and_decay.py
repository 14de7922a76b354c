"""Lessons firm and fade by the documented rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archivist.lessons.candidate import Candidate, Sighting
from archivist.lessons.gate import record_sighting
from archivist.lessons.standing import decay_lesson, with_status
from archivist.records import ARCHIVIST, Lesson, LessonType, Provenance, Source, Status
from tests.samples import WHEN, lesson


def _see(known: Lesson, run: str, count: int = 1) -> Lesson:
    sighting = Sighting(
        provenance=Provenance.REVIEWED, actor=ARCHIVIST, now=WHEN, run_count=count, run=run, counted=run
    )
    found = Candidate(summary="Found again", events=(f"{run}#1.0",))
    return with_status(record_sighting(known, found, sighting), promote_at_runs=2)


def _pass(known: Lesson, count: int, *, preferences_fade: bool = True, run: str = "other") -> Lesson:
    after = decay_lesson(
        known, run=run, run_count=count, now=WHEN, due_from=count - 10, preferences_fade=preferences_fade
    )
    return with_status(after, promote_at_runs=2)


@pytest.mark.req("F4")
def test_a_candidate_becomes_active_in_its_second_distinct_run() -> None:
    once = _see(lesson(), "r1")
    assert (once.frequency, once.status) == (1, Status.CANDIDATE)
    assert _see(once, "r1") is once
    twice = _see(once, "r2")
    assert (twice.frequency, twice.status, twice.last_seen_run) == (2, Status.ACTIVE, "r2")


@pytest.mark.req("F4")
@pytest.mark.parametrize(
    "fields", [{"type": LessonType.PREFERENCE}, {"source": Source.MANUAL}, {"confirmed": True}]
)
def test_preferences_and_what_people_said_are_active_at_once(fields: dict[str, Any]) -> None:
    assert with_status(lesson(runs=("r1",), **fields), promote_at_runs=2).status is Status.ACTIVE


@pytest.mark.parametrize("status", [Status.QUARANTINED, Status.SUPERSEDED, Status.ARCHIVED])
def test_no_sighting_brings_a_retired_lesson_back(status: Status) -> None:
    assert with_status(lesson(runs=("a", "b", "c"), status=status), promote_at_runs=2).status is status


@pytest.mark.req("F6")
def test_ten_unseen_runs_take_one_frequency_and_the_count_starts_anew() -> None:
    known = lesson(runs=("a", "b", "c"), status=Status.ACTIVE, unseen_from=0)
    for count in range(1, 10):
        assert _pass(known, count) is known
    after = _pass(known, 10)
    assert (after.frequency, after.unseen_from, after.status) == (2, 10, Status.ACTIVE)
    assert _pass(after, 19) is after
    assert _pass(after, 20).frequency == 1


@pytest.mark.req("F6")
def test_a_lesson_that_faded_below_two_is_no_longer_told() -> None:
    known = lesson(runs=("a", "b"), status=Status.ACTIVE)
    assert _pass(known, 10).status is Status.CANDIDATE


@pytest.mark.req("F6")
def test_at_frequency_zero_a_lesson_is_archived() -> None:
    gone = _pass(lesson(runs=("a",), status=Status.CANDIDATE), 10)
    assert (gone.frequency, gone.status) == (0, Status.ARCHIVED)


@pytest.mark.req("F6")
def test_five_sightings_last_fifty_unseen_runs() -> None:
    known = lesson(runs=tuple("abcde"), status=Status.ACTIVE)
    for count in range(1, 50):
        known = _pass(known, count)
        assert known.status is not Status.ARCHIVED
    assert _pass(known, 50).status is Status.ARCHIVED


@pytest.mark.req("F6")
def test_the_run_that_met_a_lesson_does_not_age_it() -> None:
    known = replace(lesson(runs=("a", "now"), last_seen_run="now"), unseen_from=3)
    assert _pass(known, 20, run="now").unseen_from == 20


def test_preferences_can_be_set_not_to_fade() -> None:
    wish = lesson(type=LessonType.PREFERENCE, runs=("manual",), status=Status.ACTIVE)
    assert _pass(wish, 10).status is Status.ARCHIVED
    assert _pass(wish, 10, preferences_fade=False) is wish


def test_what_waits_for_a_person_does_not_fade_unseen() -> None:
    said = lesson(provenance=Provenance.SUGGESTED, runs=("r-1",), status=Status.CANDIDATE)
    assert _pass(said, 10) is said


@pytest.mark.req("F6")
@pytest.mark.parametrize("fields", [{"source": Source.MANUAL}, {"confirmed": True}])
def test_what_a_person_wrote_or_approved_does_not_fade(fields: dict[str, Any]) -> None:
    theirs = lesson(runs=("r-1",), status=Status.ACTIVE, **fields)
    assert _pass(theirs, 10) is theirs
