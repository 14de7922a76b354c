"""What of a record the index holds."""

from __future__ import annotations

from datetime import timedelta
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.records import Brief, Episode, EpisodeStatus, Event, EventKind, Lesson, Status
from archivist.store.results import scope_token, split_name
from archivist.store.searchable import SearchDocument, build_search_document
from tests.samples import WHEN, finding, lesson, lessons

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)


def _document(record: object) -> SearchDocument:
    made = build_search_document(record)
    assert made is not None
    return made


@given(ANY_TEXT, ANY_TEXT)
def test_a_scope_token_is_one_plain_word_whatever_the_value(one: str, other: str) -> None:
    token = scope_token("tool", one)
    assert token.isascii()
    assert token.isalnum()
    assert token != scope_token("role", one)
    assert (token == scope_token("tool", other)) == (
        one.casefold().encode("utf-8", "replace") == other.casefold().encode("utf-8", "replace")
    )


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("HTTPServer", ["http", "server"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("parseJSON", ["parse", "json"]),
        ("Utf8Decoder", ["utf", "8", "decoder"]),
        ("plain", ["plain"]),
        ("", []),
    ],
)
def test_a_camel_case_name_is_cut_at_its_humps(name: str, parts: list[str]) -> None:
    assert split_name(name) == parts


@given(lessons(number=1))
def test_any_lesson_has_a_document(made: Lesson) -> None:
    found = _document(made)
    assert found.is_hidden == (made.status in (Status.ARCHIVED, Status.QUARANTINED))
    assert made.summary in found.text
    assert {scope_token("tag", tag) for tag in made.tags} <= set(found.scope)
    assert (found.importance, found.superseded_by) == (made.importance, made.superseded_by)


def test_a_lesson_is_as_new_as_it_was_last_seen() -> None:
    later = WHEN + timedelta(days=3)
    assert _document(lesson()).time == WHEN
    assert _document(lesson(last_seen=later)).time == later


def test_tags_are_words_of_a_lesson_but_not_of_its_meaning() -> None:
    made = _document(lesson(summary="One", rule="IF two", detail="Three", tags=("four",)))
    assert (made.spoken, "four" in made.text) == ("One\nIF two\nThree", True)


def test_a_run_is_found_by_its_task_and_its_story() -> None:
    run = Episode(id="r", task="Fix it", summary="It went well", status=EpisodeStatus.FAILED, finished=WHEN)
    made = _document(run)
    assert (made.text, made.time) == ("Fix it\nIt went well", WHEN)
    assert scope_token("status", "failed") in made.scope


def test_what_machines_print_is_found_by_words_only() -> None:
    call = Event(
        run="r", seq=4, kind=EventKind.TOOL_CALL, tool="bash", text="make", output="all done", role="user"
    )
    made = _document(call)
    assert ("all done" in made.text, made.spoken, made.speaker) == (True, "", "")
    assert (made.thread, made.position) == ("r", 4)


def test_of_a_long_output_the_beginning_is_enough_and_of_an_error_more_of_it() -> None:
    output = " ".join(f"line{number}" for number in range(400))
    fine, failed = (
        _document(Event(run="r", seq=1, text="x", output=output, is_error=failed)) for failed in (False, True)
    )
    assert len(fine.text) < len(failed.text) < len(output)


def test_what_is_said_is_embedded_and_who_says_it_is_a_field() -> None:
    said = Event(
        run="r", seq=1, kind=EventKind.MESSAGE, text="We move to tabs", role="Guardian", extra={"cycle": 7}
    )
    made = _document(said)
    assert (made.spoken, made.speaker, made.cycle) == ("We move to tabs", "guardian", 7)
    assert "uardian" not in made.text
    review = Event(run="r", seq=2, kind=EventKind.VERDICT, findings=(finding("No null checks"),))
    assert _document(review).spoken == "No null checks"


def test_an_event_that_says_nothing_and_a_brief_have_no_document() -> None:
    assert build_search_document(Event(run="r", seq=1, text=" \n")) is None
    assert build_search_document(Brief(id="b", time=WHEN)) is None
    assert build_search_document("a text") is None


def test_both_spellings_of_a_camel_case_name_are_there() -> None:
    words = _document(lesson(summary="The getUserName call and HTTPServer hang")).text.split()
    assert {"getUserName", "get", "user", "name", "HTTPServer", "http", "server"} <= set(words)


@pytest.mark.parametrize("unit", ["a", "A", "aB", "a-", "_"])
def test_a_blob_in_a_lesson_costs_no_more_than_its_length(unit: str) -> None:
    made = lesson(detail=unit * (20_000 // len(unit)))
    before = process_time()
    build_search_document(made)
    assert process_time() - before < 1


def test_the_sort_of_speaker_is_known_of_what_is_said() -> None:
    said = [
        _document(Event(run="r", seq=1, kind=EventKind.MESSAGE, text="use tabs", role=role)).speaker
        for role in ("user", "Human", "assistant", "system", "maker")
    ]
    assert said == ["user", "user", "assistant", "", "maker"]
