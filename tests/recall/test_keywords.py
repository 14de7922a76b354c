"""Matching by keywords: the documented rule and its guard."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.recall.keywords import KeywordIndex, Overlap, keywords, repeats

RULE = Overlap()
LESSON = "Timeline references must match story start day"


def _matches(finding: str, lesson: str, *tags: str) -> bool:
    words = frozenset(word for tag in tags for word in keywords(tag))
    return repeats(keywords(finding), keywords(lesson), words, RULE)


def test_keywords_are_lower_case_without_punctuation_stop_words_and_short_words() -> None:
    assert keywords("The API's `null_check` must be OK, in it!") == {"api", "null", "check"}


def test_a_text_of_stop_words_keeps_them() -> None:
    assert keywords("what should this be") == {"what", "should", "this"}


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (LESSON, True),
        ("Timeline references do not match the start day in chapter 3", True),
        ("Story start day: timeline wrong", True),
        ("Timeline reference wrong in the second chapter of part four", False),
        ("Voice drift in long monologue passages", False),
    ],
)
def test_half_of_the_finding_must_be_in_the_lesson(finding: str, expected: bool) -> None:
    assert _matches(finding, LESSON) is expected


@pytest.mark.req("F3")
def test_exactly_half_is_enough() -> None:
    assert _matches("alpha beta gamma delta", "alpha beta other words")
    assert not _matches("alpha beta gamma delta epsilon", "alpha beta other words")


@pytest.mark.req("F3")
def test_a_finding_of_two_words_does_not_swallow_long_lessons() -> None:
    long_lesson = "Missing null checks in API response handlers crash the importer on empty payloads"
    assert not _matches("null checks", long_lesson)
    assert not _matches("null pointer", long_lesson)
    assert not _matches("Timeline references", LESSON)
    assert _matches("null checks", "Missing null checks")


@pytest.mark.req("F3")
def test_tags_count_as_words_of_the_lesson() -> None:
    assert not _matches("continuity broken: start day", "Timeline references match story start day")
    assert _matches(
        "continuity broken: start day", "Timeline references match story start", "continuity", "day"
    )


def test_the_nearest_lesson_wins_and_among_equals_the_first() -> None:
    index = KeywordIndex(RULE)
    index.add("far", "null checks missing somewhere else")
    index.add("near", "missing null checks in handlers")
    index.add("twin", "missing null checks in handlers")
    found = index.find("missing null checks handlers")
    assert found is not None
    assert (found.key, found.share) == ("near", 1.0)


def test_a_lesson_added_after_a_search_is_found() -> None:
    index = KeywordIndex(RULE)
    index.add("one", "alpha beta")
    assert index.find("gamma delta") is None
    index.add("two", "gamma delta")
    found = index.find("gamma delta")
    assert found is not None
    assert found.key == "two"


LETTERS = ["aaa", "bbb", "ccc", "ddd", "eee", "fff", "ggg", "hhh"]
words = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=6).map(" ".join)


@given(
    st.lists(words, max_size=12), words, st.sampled_from([Overlap(), Overlap(0.3, 0.1), Overlap(1.0, 1.0)])
)
def test_the_index_finds_what_comparing_every_pair_finds(
    lessons: list[str], text: str, rule: Overlap
) -> None:
    index = KeywordIndex(rule)
    for place, each in enumerate(lessons):
        index.add(str(place), each)
    wanted = keywords(text)
    matching = [i for i, each in enumerate(lessons) if repeats(wanted, keywords(each), frozenset(), rule)]
    best = max(
        matching,
        default=None,
        key=lambda i: (len(wanted & keywords(lessons[i])), -len(keywords(lessons[i])), -i),
    )
    found = index.find(text)
    assert (found.key if found else None) == (str(best) if best is not None else None)


@given(st.text())
def test_any_text_can_be_looked_for(text: str) -> None:
    index = KeywordIndex(RULE)
    index.add("one", text)
    found = index.find(text)
    assert (found is not None) == bool(keywords(text))


def test_a_thousand_lessons_are_told_apart() -> None:
    source = random.Random(3)  # noqa: S311
    vocabulary = [f"word{number:04d}" for number in range(400)]
    texts = [" ".join(source.sample(vocabulary, 8)) for _ in range(1000)]
    index = KeywordIndex(RULE)
    for place, each in enumerate(texts):
        index.add(str(place), each)
    for place in range(0, 1000, 37):
        found = index.find(texts[place])
        assert found is not None
        assert found.key == str(place)
