"""How many tokens a text is said to take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.text import changed_part, estimate_tokens, first_words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("记忆库的设计", 6),
        ("メモリ", 3),
        ("기억", 2),
        ("記憶 abcd", 4),
        ("naïve café — “so”", 5),
        ("🎉", 1),
    ],
)
def test_letters_count_by_fours_and_wide_characters_one_by_one(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_an_estimate_grows_with_its_text(one: str, other: str) -> None:
    assert (
        max(estimate_tokens(one), estimate_tokens(other))
        <= estimate_tokens(one + other)
        <= estimate_tokens(one) + estimate_tokens(other)
    )
    assert (estimate_tokens(one) == 0) is (one == "")


def test_of_two_long_texts_the_words_that_differ_are_shown() -> None:
    start = "`bun run lint` fails with code 1 in every folder of this repository: run"
    old, new = f"{start} `bun run lint:fix` first (24 of 29)", f"{start} `bun run fix` first (24 of 29)"
    before, after = "… run `bun run lint:fix` first (24 of …", "… run `bun run fix` first (24 of …"
    assert changed_part(old, new) == (before, after)
    code = "one two three `four five six seven` eight"
    assert changed_part(code, f"{code} nine") == (
        "… `four five six seven` eight",
        "… `four five six seven` eight nine",
    )
    assert changed_part("one two", "one two three") == ("one two", "one two three")


def test_a_title_shows_the_words_of_links_not_their_marks() -> None:
    link = "[https://example.org/mise/discussions/10944](https://example.org/mise/discussions/10944)"
    assert first_words(f"look at {link}") == "look at example.org/mise/discussions/10944"
    assert first_words("see [the plan](docs/plan.md) first") == "see the plan first"
    assert first_words("a [ ] box and (round) ones") == "a [ ] box and (round) ones"
    assert len(first_words("[" * 100_000)) == 80
