"""What a question says about the asking: words that are not searched for, breadth, who is meant, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from archivist.bank import Bank
from archivist.recall.asking import is_broad, remove_asking, unanswered_words
from archivist.recall.lexical import asks_assistant
from archivist.recall.query import Query
from archivist.records import Episode, Event, EventKind

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def _say(bank: Bank, run: str, *said: tuple[str, str], start: datetime = NOW) -> None:
    events = [
        Event(
            run=run,
            seq=seq,
            kind=EventKind.MESSAGE,
            role=role,
            text=text,
            time=start + timedelta(minutes=seq),
        )
        for seq, (role, text) in enumerate(said)
    ]
    bank.capture(Episode(id=run), events)


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("Can you list in order the payment providers we tried?", "the payment providers we tried?"),
        ("Summarize the cache design", "the cache design"),
        ("Give me a summary of the login work throughout our conversations", "the login work"),
    ],
)
def test_words_about_the_asking_are_not_searched_for(question: str, rest: str) -> None:
    assert remove_asking(question) == rest
    assert is_broad(question)


def test_what_was_decided_about_something_is_a_question_for_that() -> None:
    assert remove_asking("What did we decide about the log format?") == "the log format?"


def test_a_question_of_such_words_only_stays_as_it_is() -> None:
    assert remove_asking("tell me") == "tell me"


def test_of_two_equal_texts_the_one_of_the_named_month_comes_first(bank: Bank) -> None:
    for month in (3, 7, 9):
        said = ("user", "the nightly import failed with a timeout")
        _say(bank, f"r{month}", said, start=datetime(2026, month, 5, tzinfo=UTC))
    hits = bank.recall(Query(text="why did the nightly import fail in July")).hits
    assert hits[0].id == "r7#0"


def test_what_a_person_said_comes_before_what_the_assistant_said(bank: Bank) -> None:
    _say(bank, "a", ("assistant", "the invoices are exported as CSV files"))
    _say(bank, "u", ("user", "the invoices are exported as CSV files"))
    assert bank.recall(Query(text="how are the invoices exported")).hits[0].id == "u#0"
    assert bank.recall(Query(text="how did you say the invoices are exported")).hits[0].id == "a#0"


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("What did you recommend for the cache?", True),
        ("Which library have you suggested?", True),
        ("Can you list the endpoints?", False),
        ("What do you know about retries?", False),
    ],
)
def test_a_question_for_what_the_assistant_said_is_known(question: str, is_asked: bool) -> None:
    assert asks_assistant(question) is is_asked


def test_all_hits_come_in_the_order_of_their_times(bank: Bank) -> None:
    for day in (9, 2, 5):
        _say(
            bank, f"r{day}", ("user", f"import number {day} failed"), start=datetime(2026, 5, day, tzinfo=UTC)
        )
    hits = bank.recall(Query(text="list all the failed imports", limit=50, is_in_time_order=True)).hits
    assert [hit.id for hit in hits if hit.kind == "event"] == ["r2#0", "r5#0", "r9#0"]


def test_a_standing_wish_has_a_place_beside_what_matches_the_question(bank: Bank) -> None:
    things = (
        "invoices",
        "holidays",
        "kittens",
        "bridges",
        "opera",
        "soup",
        "trains",
        "winter",
        "chess",
        "paint",
    )
    other = [("assistant", f"we talked about {one} and {two} today") for one in things for two in things[:4]]
    named = [("assistant", f"the project parses dates with library {one}") for one in things]
    _say(bank, "r", *other, *named)
    _say(bank, "w", ("user", "Always give version numbers when you name software libraries."))
    _say(bank, "x", ("user", "Never wake me up before noon, please."))
    for _ in bank.vectors.embed_waiting():
        pass
    hits = bank.recall(Query(text="with which library does the project parse dates?")).hits
    assert "w#0" in [hit.id for hit in hits]
    assert "x#0" not in [hit.id for hit in hits]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many retries on 16 November, 2023?", {"how", "many", "16", "november", "2023"}),
        ("Which kind of key does a customer have?", {"which", "kind"}),
        ("What did we decide two weeks ago?", {"two", "weeks", "ago"}),
        ("Where is the job state?", set()),
    ],
)
def test_the_time_and_the_measure_of_a_question_need_not_be_in_its_answer(
    question: str, words: set[str]
) -> None:
    assert unanswered_words(question) == words
