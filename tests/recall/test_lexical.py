"""What a question becomes for the index: any string is one, names are whole and in parts, noise is out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.config import Config, RecallRules
from archivist.recall.lexical import (
    SILENT,
    extract_terms,
    possible_names,
    remove_names,
    select_words,
    weigh_word,
)
from archivist.recall.query import Query
from archivist.store.results import TextQuery
from tests.banks import fresh_bank

ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.text(
    "aBz1 _-./:\\'\"*()^+é日\ud800\x00", max_size=60
)
WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=6), max_size=20, unique=True).map(tuple)


@pytest.fixture
def words_only(tmp_path: Path) -> Iterator[Bank]:
    """Open a bank that searches by words alone."""
    opened = fresh_bank(tmp_path / "words", config=Config(recall=RecallRules(embedder="none")))
    yield opened
    opened.close()


@given(ANY_TEXT)
def test_any_string_is_a_question(text: str) -> None:
    asked = extract_terms(text)
    assert len(set(asked.words)) == len(asked.words)
    assert all(word and word == word.lower() and not word.isspace() for word in asked.words)
    assert all(len(phrase) > 1 and all(phrase) for phrase in asked.phrases)


@given(ANY_TEXT)
@settings(max_examples=60)
def test_no_question_breaks_the_index(words_only: Bank, text: str) -> None:
    if not words_only.lessons.query(Query()):
        words_only.lessons.add("Restart the aB_z1 server")
    words_only.recall(Query(text=text))


@pytest.mark.parametrize("unit", ["a", "A", "aB", "-", "_", ".", "'", "a.b.", "a-", "é", "word "])
def test_a_pasted_blob_costs_no_more_than_its_length(unit: str) -> None:
    blob = unit * (30_000 // len(unit))
    before = process_time()
    extract_terms(blob)
    possible_names(blob)
    assert process_time() - before < 1


def test_words_that_say_nothing_are_left_out() -> None:
    assert extract_terms("What did the tests do when it wasn't there?").words == ("tests",)
    assert not SILENT.intersection(extract_terms("Where's the server that you've been using?").words)


@pytest.mark.parametrize("question", ["who are you", "to be or not to be", "a", "it's"])
def test_a_question_of_nothing_but_such_words_keeps_them(question: str) -> None:
    assert extract_terms(question).words


def test_a_question_of_stop_words_finds_the_text_that_holds_them(words_only: Bank) -> None:
    words_only.lessons.add("Nothing of that sort")
    words_only.lessons.add("Who are you, asks the login page")
    assert [hit.name for hit in words_only.recall(Query(text="who are you")).hits] == ["m-002"]


@pytest.mark.parametrize("question", ["", " \n\t", "?!…", "'\"*()^:", "\x00", "\ud800", "💥"])
def test_a_question_without_a_word_asks_for_nothing(question: str) -> None:
    assert extract_terms(question) == TextQuery(())


# Names, each with the other ways to write it and the parts by which somebody remembers it.
NAMES = [
    (
        "max_retry_count",
        ["maxRetryCount", "MaxRetryCount", "max-retry-count", "retry count", "MAX_RETRY_COUNT"],
    ),
    ("maxRetryCount", ["max_retry_count", "max-retry-count", "retry", "maxretrycount"]),
    ("HTTPServer", ["http_server", "httpServer", "HttpServer", "http-server", "httpserver"]),
    ("http_server", ["HTTPServer", "httpServer", "server"]),
    ("parseJSONBody", ["parse_json_body", "ParseJsonBody", "json"]),
    ("src/app/main_loop.py", ["src/app/main_loop.py", "main_loop.py", "mainLoop", "app/main_loop"]),
    ("C:\\build\\output.log", ["C:\\build\\output.log", "build/output.log", "output.log"]),
    ("E0308", ["E0308", "e0308", "error E0308"]),
    ("TS2304", ["TS2304", "error TS2304: Cannot find name"]),
    ("--no-cache", ["--no-cache", "no-cache", "no_cache", "NO_CACHE", "cache"]),
    ("python 3.11.4", ["3.11.4", "python 3.11", "python"]),
    ("std::unordered_map", ["std::unordered_map", "unordered_map", "unorderedMap"]),
]


@pytest.mark.parametrize(("name", "question"), [(name, each) for name, asked in NAMES for each in asked])
def test_a_name_is_found_whole_by_its_parts_and_in_its_other_spellings(
    words_only: Bank, name: str, question: str
) -> None:
    with words_only.transaction():
        words_only.lessons.add("Something about bananas and boats")
        words_only.lessons.add(f"Beware of {name} here")
        words_only.lessons.add("More on the topic of clouds")
    assert [hit.name for hit in words_only.recall(Query(text=question)).hits][:1] == ["m-002"]


def test_a_whole_name_stands_above_its_scattered_parts(words_only: Bank) -> None:
    words_only.lessons.add("The cache is warm, no trouble there, and the disk is fine")
    words_only.lessons.add("Build the image with --no-cache after a base change today")
    assert words_only.recall(Query(text="--no-cache")).hits[0].name == "m-002"


def test_forms_of_a_word_and_accents_are_one(words_only: Bank) -> None:
    words_only.lessons.add("Migrations must be reversible in the Café service")
    for question in ("migration", "migrating", "cafe", "CAFÉ"):
        assert words_only.recall(Query(text=question)).hits, question


def test_the_beginning_of_a_word_finds_it_when_nothing_holds_it_whole(words_only: Bank) -> None:
    words_only.lessons.add("Kubernetes restarts the pod")
    assert [hit.name for hit in words_only.recall(Query(text="kube")).hits] == ["m-001"]
    assert words_only.recall(Query(text="ku")).hits == ()
    words_only.lessons.add("kube is a nickname")
    assert [hit.name for hit in words_only.recall(Query(text="kube")).hits] == ["m-002"]


def test_only_words_of_letters_that_nothing_holds_are_tried_as_beginnings() -> None:
    held = {"cache": 3, "serv": 0, "e03": 0, "ab": 0}
    found = select_words(TextQuery(tuple(held)), lambda words, _most: [held[word] for word in words], 100)
    assert (found.words, found.prefixes) == (("cache",), ("serv",))


@given(WORDS, st.data(), st.integers(0, 300))
def test_a_budget_keeps_the_rarest_words(words: tuple[str, ...], data: st.DataObject, budget: int) -> None:
    # What is counted no further than the budget is all equally common.
    held = {word: data.draw(st.integers(0, budget + 1)) for word in words}
    kept = select_words(TextQuery(words), lambda words, _most: [held[word] for word in words], budget)
    left_out = [held[word] for word in words if held[word] and word not in kept.words]
    assert all(held[word] > 0 for word in kept.words)
    assert len(kept.words) <= 1 or sum(held[word] for word in kept.words) <= budget
    assert max((held[word] for word in kept.words), default=0) <= min(left_out, default=budget + 1)
    assert kept.words or not left_out


def test_counting_goes_no_further_than_the_budget() -> None:
    asked: list[int] = []

    def holding(words: Sequence[str], most: int) -> list[int]:
        asked.append(most)
        return [most] * len(words)

    assert select_words(TextQuery(("common", "words")), holding, 10).words == ("common",)
    assert set(asked) == {11}


def test_a_pasted_log_asks_for_no_more_than_an_index_can_bear() -> None:
    log = " ".join(f"part{number}.name{number}" for number in range(5000))
    found = select_words(extract_terms(log), lambda words, _most: [1] * len(words), 10_000)
    assert len(found.words) + len(found.phrases) + len(found.prefixes) < 100


def test_possible_names_are_words_and_pairs_of_them() -> None:
    names = possible_names("What did Anna Lee's dr. dev-bot say?")
    assert {"anna", "lee", "anna lee", "dev-bot"} <= set(names)
    assert len(names) == len(set(names))
    assert possible_names("") == []


@given(ANY_TEXT)
def test_possible_names_of_any_text_are_in_it(text: str) -> None:
    folded = text.casefold()
    for name in possible_names(text):
        assert all(word in folded for word in name.split())


def test_a_name_goes_whole_and_nothing_else_goes() -> None:
    assert remove_names("When did Anna's dog see Annabel?", ["anna"]) == "When did dog see Annabel?"
    assert remove_names("ask dev-bot, not dev-bots", ["dev-bot"]) == "ask , not dev-bots"
    assert remove_names("a.c is not abc", ["a.c"]) == "is not abc"
    assert remove_names("Anna", ["anna"]) == ""
    assert remove_names("as it was", []) == "as it was"


@given(st.integers(0, 49), st.integers(50, 1000))
def test_no_word_tells_less_than_nothing_and_rarer_ones_tell_more(holders: int, documents: int) -> None:
    assert weigh_word(holders, documents) >= weigh_word(holders + 1, documents) >= 0
    assert weigh_word(1, documents) > weigh_word(9, documents)
