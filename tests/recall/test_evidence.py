"""Evidence: what speaks for an answer, and when a question finds nothing."""

from __future__ import annotations

import pytest

from archivist.recall.embedders.static import open_bundled
from archivist.recall.evidence import (
    Candidates,
    cover_words,
    describe_doubt,
    excess_length,
    excess_size,
    least_evidence,
)
from archivist.recall.scoring import CosineBaseline, Relevance
from archivist.store.results import IndexedDocument

ASKED = {"gallery": 4.0, "thursdays": 5.0, "make": 5.0}


def _cover(*texts: str) -> float:
    return cover_words(ASKED, texts, open_bundled())


@pytest.mark.req("C5")
def test_the_longer_the_texts_the_more_evidence_an_answer_needs() -> None:
    found = [
        IndexedDocument(1, "event", "r#1", 0, None, 0.3, "", "r", 1, "", 0, words) for words in (10, 90, 400)
    ]
    short, middle, long = (excess_length([document]) for document in found)
    assert excess_length([]) == short == 0
    assert short < middle < long
    assert excess_length(found) < long


@pytest.mark.req("C5")
def test_the_larger_the_bank_the_more_evidence_an_answer_needs_as_far_as_was_measured() -> None:
    counts = (0, 200, 5_000, 20_000, 10**6)
    sizes = [least_evidence("static-1", 0.0, excess_size(documents)) for documents in counts]
    assert sizes == sorted(sizes)
    assert sizes[-1] == sizes[-2]


@pytest.mark.req("C5")
def test_a_question_is_covered_by_its_words_and_by_near_ones() -> None:
    same, near, other = "Thursdays make the gallery", "On Fridays the museum", "The proxy drops a packet"
    assert _cover(same) == pytest.approx(1.0)
    assert _cover(other) < _cover(near) < _cover(same)
    assert _cover(other, near) == _cover(near)


def test_a_rare_word_counts_more_than_a_common_one_of_equal_weight_in_the_bank() -> None:
    assert _cover("On Thursdays") > _cover("Make it so")


def test_a_text_without_words_covers_nothing() -> None:
    assert _cover() == _cover("") == _cover("?!") == 0.0
    assert cover_words({}, ["The gallery"], open_bundled()) == 0.0
    assert cover_words({"\U0001f600": 1.0}, ["The gallery"], open_bundled()) == 0.0


@pytest.mark.parametrize(
    ("text", "needed", "documents", "is_asked"),
    [
        ("who waters the orchids outside", 4, 30, True),
        ("who waters the orchids outside", 4, 29, False),
        ("who waters the orchids outside", 3, 30, True),
        ("water orchids outside", 4, 120, False),
        ("who waters the orchids", 2, 120, False),
        ("what did we do yesterday", 0, 120, False),
        ("a pasted log of many words", 21, 120, False),
    ],
)
def test_evidence_is_asked_of_questions_of_some_words_in_banks_of_some_size(
    text: str, needed: int, documents: int, is_asked: bool
) -> None:
    words = {str(number): 1.0 for number in range(needed)}
    usual = CosineBaseline(0.1, 0.1)
    assert Candidates((), {}, 1.0, {}, usual, words, documents=documents).asks_for_evidence(text) is is_asked
    assert not Candidates((), {}, 1.0, {}, None, words, documents=documents).asks_for_evidence(text)


def _weigh(needed: int, *, unknown: int = 0, has_unknown_name: bool = False) -> float:
    words = {str(number): 1.0 for number in range(needed)}
    candidates = Candidates(
        (), {}, float(needed), {}, None, words, tuple(words)[:unknown], has_unknown_name=has_unknown_name
    )
    return candidates.find_evidence({1: Relevance(0.5, 0.5, 0.2, 0.5, 0.3)}).sum()


def test_of_three_needed_words_less_evidence_is_asked() -> None:
    assert _weigh(3) > _weigh(4) == pytest.approx(_weigh(5))


@pytest.mark.req("C5")
def test_words_and_names_that_no_text_has_speak_against_an_answer() -> None:
    assert _weigh(4) > _weigh(4, unknown=1) > _weigh(4, unknown=3)
    assert _weigh(4) > _weigh(4, has_unknown_name=True)


def test_without_anything_found_there_is_no_evidence() -> None:
    assert Candidates((), {}, 0.0, {}, None).find_evidence({}).words == 0.0


@pytest.mark.req("C5")
def test_a_doubt_says_what_was_missing() -> None:
    words = {"orchids": 2.0, "water": 1.0, "who": 1.0, "outside": 1.0}
    candidates = Candidates((), {}, 5.0, {}, None, words, ("orchids",))
    doubt = describe_doubt(candidates.find_evidence({}), 0.0, 1.2, candidates.unknown)
    assert "1.20 needed" in doubt
    assert "no text has orchids" in doubt
