"""Plain values are checked on the way in."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given

from archivist.errors import RecordError
from archivist.records import Actor, ActorKind, Episode, Event, EventKind, Finding, Lesson, Usage
from archivist.records.plain import canonical_json, from_plain, to_plain
from tests.samples import WHEN, json_values, lesson, lessons


@given(lessons())
def test_a_record_survives_json(made: Lesson) -> None:
    assert from_plain(Lesson, json.loads(canonical_json(to_plain(made)))) == made


def test_nested_records_survive() -> None:
    event = Event(
        run="r", seq=3, kind=EventKind.VERDICT, time=WHEN, findings=(Finding(description="x", line=4),)
    )
    assert from_plain(Event, to_plain(event)) == event
    episode = Episode(id="r", usage=Usage(input_tokens=5, efficiency=0.5), number=2)
    assert from_plain(Episode, to_plain(episode)) == episode


def test_records_are_frozen() -> None:
    with pytest.raises(AttributeError):
        lesson().summary = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "expected an object, not a list"),
        ({}, "missing"),
        ({"id": 3}, "id: expected text"),
        ({"id": "r", "number": "3"}, "number: expected a whole number, not text"),
        ({"id": "r", "number": True}, "number: expected a whole number"),
        ({"id": "r", "number": 1 << 70}, "number: a number beyond 64 bits"),
        ({"id": "r", "status": "great"}, "status: 'great' is not one of running, success"),
        ({"id": "r", "usage": {"cost_usd": "much"}}, "usage: cost_usd: expected a number"),
        ({"id": "r", "started": "soon"}, "started: not an ISO 8601 time"),
    ],
)
def test_what_is_wrong_is_named(value: Any, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        from_plain(Episode, value)
    assert reason in caught.value.message


@given(json_values)
def test_no_json_value_does_more_than_raise_a_record_error(value: Any) -> None:
    with suppress(RecordError):
        from_plain(Episode, value)


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert from_plain(Episode, {"id": "r", "task": "a\ud800b"}).task == "a?b"


def test_an_actor_is_read_as_it_is_written() -> None:
    for text in ("human", "human:ada", "agent:claude:guardian", "agent::guardian"):
        assert str(Actor.parse(text)) == text
    assert Actor.parse("orchestrator") == Actor(ActorKind.ORCHESTRATOR)
    with pytest.raises(RecordError, match="unknown actor kind 'robot'"):
        Actor.parse("robot:x")
