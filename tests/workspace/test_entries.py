"""The entries of learning files."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.workspace import learnings

DECISIONS = """# Decisions

### [2026-02-08] Chose xstate v5

**Category:** architecture
**Tags:** workflow, state-management, xstate

Actor model.

Strong types.

---

### [2026-02-09] Keep pnpm

**Category:** tooling
**Tags:** pnpm

One lock file.

---
"""


@pytest.mark.req("W5")
def test_entries_are_read_with_their_lines() -> None:
    first, second = learnings.parse_entries(DECISIONS, "decisions.md")
    assert first == learnings.LearningEntry(
        "Chose xstate v5",
        date(2026, 2, 8),
        "architecture",
        ("workflow", "state-management", "xstate"),
        "Actor model.\n\nStrong types.",
        3,
        10,
    )
    assert (second.title, second.line, second.end_line) == ("Keep pnpm", 14, 19)
    assert learnings.stray_lines(DECISIONS) == []


@pytest.mark.parametrize("text", ["", "\n\n", "# Decisions\n", "Just words.\n", "---\n---\n"])
def test_a_file_without_entries_has_none(text: str) -> None:
    assert learnings.parse_entries(text, "lessons.md") == []


@pytest.mark.parametrize(
    ("text", "rules", "title"),
    [
        ("###\n\n**Category:** a\n\nText.\n", ["no-title", "no-date"], ""),
        ("### [2026-02-08]\n\n**Category:** a\n\nText.\n", ["no-title"], ""),
        ("### Title\n\n**Category:** a\n\nText.\n", ["no-date"], "Title"),
        ("### [8 Feb] Title\n\n**Category:** a\n\nText.\n", ["bad-date"], "Title"),
        ("### [2026-02-30] Title\n\n**Category:** a\n\nText.\n", ["bad-date"], "Title"),
        ("### [2026-02-08] Title\n\nText.\n", ["no-category"], "Title"),
        ("### [2026-02-08] Title\n\n**Category:** a\n", ["no-text"], "Title"),
        ("### 2026-02-08: Title ###\n\n- **Category**: a\n\nText.\n", [], "Title"),
        ("### [docs](https://example.org) moved\n\n**Category:** a\n\nText.", ["no-date"], None),
    ],
)
def test_what_an_entry_lacks_is_named_and_the_entry_served(
    text: str, rules: list[str], title: str | None
) -> None:
    (entry,) = learnings.parse_entries(text, "lessons.md")
    assert [(each.rule, each.line) for each in entry.problems] == [(rule, 1) for rule in rules]
    assert title is None or entry.title == title
    assert entry.category in ("a", "")


def test_a_heading_in_a_code_block_or_a_quote_is_none() -> None:
    text = (
        "### [2026-02-08] One\n\n**Category:** a\n\n"
        "```md\n### [2026-01-01] Not one\n---\n```\n\n> ### Nor this\n"
    )
    (entry,) = learnings.parse_entries(text, "lessons.md")
    assert entry.text.endswith("> ### Nor this")
    assert "### [2026-01-01] Not one" in entry.text


def test_a_rule_right_below_a_text_ends_the_entry_all_the_same() -> None:
    for quirk in ("", "* a list\n\n"):
        text = (
            f"### [2026-02-08] One\n**Category:** a\n\n{quirk}Text.\n---\n"
            "### [2026-02-09] Two\n**Category:** b\nMore."
        )
        first, second = learnings.parse_entries(text, "lessons.md")
        assert first.text == f"{quirk}Text.".strip()
        assert (second.title, second.text) == ("Two", "More.")


def test_a_superseded_entry_says_by_what() -> None:
    text = "### [2026-02-08] Old\n\n**Category:** a\n**Superseded by:** [2026-03-01] New\n\nText.\n"
    (entry,) = learnings.parse_entries(text, "decisions.md")
    assert (entry.superseded_by, entry.text) == ("[2026-03-01] New", "Text.")


def test_text_outside_of_entries_is_found() -> None:
    text = "# Lessons\n\nWords.\n\n### [2026-02-08] One\n**Category:** a\nText.\n\n## Part\n\nMore words.\n"
    assert learnings.stray_lines(text) == [11]
    assert learnings.stray_lines("# Lessons\n\n- Use pnpm.\n- Use UTC.\n") == [3, 4]


_LINES = st.sampled_from(
    [
        "### [2026-02-08] One", "### Two", "## Part", "# Top", "#### Deep", "###", "####### seven", "###no",
        "---", "***", "___", "text", "", "", "--", "===", "**Category:** a", "**Tags:** a, b", "[ref]: /url",
        '"title"', "a # b", "   ", "text  ", "-x", "*x*", "----", "&amp;", "|a|b|", "# ", "### x ###",
    ]
)  # fmt: skip
_ODD = st.sampled_from(
    ["```", "~~~", "- ### x", "> ### x", "    ### x", "<!--", "-->", "<div>", "1. x", " ### y", "\t"]
)


@given(st.lists(_LINES | _ODD, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_entries_stand_where_they_say(lines: list[str], end: str) -> None:
    found = learnings.parse_entries(end.join(lines), "lessons.md")
    for entry in found:
        assert lines[entry.line - 1].lstrip().startswith("###")
        assert entry.line <= entry.end_line <= len(lines)
    assert all(first.end_line < second.line for first, second in pairwise(found))
