"""Texts in pieces: nothing is lost, headings begin pieces, code and tables stay whole."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist.archive.chunking import chunk_text

GUIDE = """# Guide

Before anything.

## Install

Run it:

```sh
# not a heading
pip install it

make
```

| a | b |
|---|---|
| 1 | 2 |

## Use

### Twice

Again.
"""


@pytest.mark.req("C4")
def test_headings_begin_pieces_and_their_path_is_kept() -> None:
    made = chunk_text(GUIDE)
    assert [(each.heading, each.line) for each in made] == [
        ("Guide", 1),
        ("Guide > Install", 5),
        ("Guide > Use > Twice", 20),
    ]
    assert made[0].text == "# Guide\n\nBefore anything."
    assert made[2].text == "## Use\n\n### Twice\n\nAgain."


@pytest.mark.req("C4")
def test_code_and_tables_stay_whole_however_small_the_limit() -> None:
    made = chunk_text(GUIDE, limit_tokens=8, target_tokens=4)
    fence = "```sh\n# not a heading\npip install it\n\nmake\n```"
    assert any(fence in each.text for each in made)
    assert any("| a | b |\n|---|---|\n| 1 | 2 |" in each.text for each in made)
    assert all(len(each.text) <= 32 or each.text.startswith("```") or "|" in each.text for each in made)


def test_code_in_a_long_list_stays_whole_too() -> None:
    code = "  ```\n  one\n\n  two\n  ```"
    made = chunk_text(f"- {'word ' * 30}\n\n{code}\n- more {'word ' * 30}\n", limit_tokens=20)
    assert any("one\n\n  two" in each.text for each in made)


def test_a_long_section_is_cut_at_paragraphs() -> None:
    paragraphs = [f"Paragraph {number} " + "word " * 40 for number in range(12)]
    made = chunk_text("# Long\n\n" + "\n\n".join(paragraphs), limit_tokens=120, target_tokens=100)
    assert len(made) > 3
    assert {each.heading for each in made} == {"Long"}
    for paragraph in paragraphs:
        assert sum(paragraph.strip() in each.text for each in made) == 1


def test_a_line_without_end_is_cut_after_sentences() -> None:
    made = chunk_text("A sentence of words. " * 200, limit_tokens=50)
    assert all(len(each.text) <= 200 for each in made)
    assert all(each.text.rstrip().endswith(".") for each in made)


def test_code_beyond_all_bounds_is_cut_at_lines() -> None:
    code = "\n".join(f"line {number}" for number in range(5_000))
    made = chunk_text(f"```\n{code}\n```\n", limit_tokens=100)
    assert len(made) > 10
    assert all(len(each.text) <= 400 for each in made)


def test_lines_are_counted_from_where_the_text_begins() -> None:
    assert chunk_text("\n\nText", first_line=5)[0].line == 7
    assert chunk_text("", first_line=5) == []
    assert chunk_text(" \n\t\n") == []


_marks = st.sampled_from(
    [*"ab#`|->*=.~1)\t<\r\n\x0c", "\n\n", "\u2028", "```\n", "# ", "## x\n", "- ", "word ", "    ",
     "[a]: b\n",
     "| a | b |\n|---|---|\n", "Title\n===\n", "> quoted\n", "<div>\n"]
)  # fmt: skip
_texts = st.one_of(st.text(max_size=200), st.lists(_marks, max_size=100).map("".join))


@pytest.mark.req("C4")
@settings(max_examples=400)
@given(_texts, st.integers(1, 40))
def test_nothing_is_lost_and_nothing_is_too_long(text: str, limit: int) -> None:
    made = chunk_text(text, limit_tokens=limit, target_tokens=limit)
    assert "".join("".join(each.text for each in made).split()) == "".join(text.split())
    whole = "\n".join(each.text for each in made)
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.strip() and len(line) <= limit * 4:
            assert line in whole
    for each in made:
        is_whole = "`" in each.text or "~" in each.text or "|" in each.text or "    " in each.text
        assert len(each.text) <= limit * 4 or is_whole or "\t" in each.text
    assert [each.line for each in made] == sorted(each.line for each in made)


@pytest.mark.req("C4")
@pytest.mark.parametrize(("opening", "closing"), [("```python", "```"), ("~~~", "~~~"), ("  ````", "  ````")])
def test_code_too_long_to_stay_whole_keeps_a_fence_around_each_piece(opening: str, closing: str) -> None:
    lines = [f"value_{number} = {number}" for number in range(2_000)]
    text = "\n".join(["# Code", "", opening, *lines, closing, "", "After."])
    found = chunk_text(text)
    code = [each for each in found if "value_" in each.text]
    assert len(code) > 2
    for each in code:
        body = each.text.removeprefix("# Code\n\n").split("\n")
        assert (body[0], body[-1]) == (opening, closing)
        assert len(each.text) <= 480 * 4
    for each in code[1:]:
        assert text.split("\n")[each.line - 1] == each.text.split("\n")[1]
    kept = [line for each in code for line in each.text.split("\n") if line.startswith("value_")]
    assert kept == lines
    assert found[-1].text.endswith("After.")


def test_a_fence_as_long_as_a_page_is_not_repeated_around_every_letter() -> None:
    text = f"{'`' * 17_000}\n{'x' * 40_000}\n"
    begun = time.process_time()
    pieces = list(chunk_text(text))
    assert time.process_time() - begun < 2
    assert len(pieces) < 200
