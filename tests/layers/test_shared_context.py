"""Shared-context markdown as sections with keys that stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import InputError
from archivist.layers.shared_context import Section, read, slug
from archivist.records.layers import NAME_CHARACTERS

NOTES = """\
---
category: notes
confidence: 0.8
tags: [team, shared]
---
# Swarm

How it all fits.

## Conventions

### Imports

Use the `node:` prefix.

```sh
# no heading
```

### Imports

Sorted.

## Setup
<!-- to be written -->

### Install
Run make.
"""


@pytest.mark.req("M11")
def test_each_section_with_a_body_has_a_category_a_key_and_its_text() -> None:
    found = read(NOTES, "swarm")
    assert (found.confidence, found.tags) == (0.8, ("team", "shared"))
    assert [(each.category, each.key, each.line) for each in found.sections] == [
        ("notes", "swarm", 6),
        ("convention", "imports", 12),
        ("convention", "imports-2", 20),
        ("notes", "swarm/setup/install", 27),
    ]
    assert found.sections[1].text == "Use the `node:` prefix.\n\n```sh\n# no heading\n```"


def test_without_a_title_every_heading_of_the_first_level_can_name_the_sort() -> None:
    found = read("# Decisions\n## ORM\nNone.\n# Facts\n## ORM\nPrepared.\n# Other\ntext\n", "x")
    assert [(each.category, each.key) for each in found.sections] == [
        ("decision", "orm"),
        ("fact", "orm"),
        ("shared-context", "other"),
    ]


def test_a_file_without_headings_is_one_section_by_its_name() -> None:
    assert read("Only words.\n", "Team Notes").sections == (
        Section("shared-context", "team-notes", "Only words.", 1),
    )
    assert read("", "x").sections == ()
    assert read("\n\n# Empty\n\n## Also\n", "x").sections == ()


@pytest.mark.parametrize(
    "text",
    [
        "---\nno front matter\n---\nwords",
        "---\nnever closed: yes\n# A\nwords",
        "---\n---\n# A\nwords",
        "\ufeff# A\r\nwords\r\n",
        "A\n=\nwords",
    ],
)
def test_what_only_looks_like_front_matter_or_is_spelled_otherwise_is_read(text: str) -> None:
    assert any("words" in each.text for each in read(text, "x").sections)


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("category: [a, b]", "category"),
        ("category: a/b", "category"),
        ("confidence: 2", "confidence 2 is not between 0 and 1"),
        ("confidence: .nan", "confidence nan"),
        ("confidence: sure", "confidence 'sure'"),
        ("tags: {a: b}", "tags is not a list"),
        ("a: b: c", "cannot be read"),
        ("a: [", "cannot be read"),
        ("a: &x [*x, !!python/object:os.system b]", "cannot be read"),
    ],
)
def test_front_matter_that_cannot_be_read_is_refused(front: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"---\n{front}\n---\n# A\nwords\n", "x")
    assert reason in caught.value.message


def test_headings_in_lists_and_quotations_divide_nothing() -> None:
    found = read("# A\n- # in a list\n\n> # quoted\n\nwords\n", "x")
    assert [each.key for each in found.sections] == ["a"]


def test_a_natural_number_and_a_repeated_heading_do_not_meet() -> None:
    found = read("# A\n1\n# A 2\n2\n# A\n3\n", "x")
    assert [(each.key, each.text) for each in found.sections] == [("a", "1"), ("a-2", "2"), ("a-3", "3")]


def test_slugs_of_any_title() -> None:
    assert slug("Größe & Maß: API_v2!") == "grösse-mass-api-v2"
    assert slug("日本語") == "日本語"
    assert slug("!!!") == "section"
    assert len(slug("long " * 100)) <= 60
    assert slug("long " * 100) != slug("long " * 101)


@given(st.text(alphabet=st.sampled_from(list("# ab\n-`>=*[]()!<é_")), max_size=200))
def test_any_text_gives_sections_whose_keys_are_different_and_fit(text: str) -> None:
    found = read(text, "x").sections
    keys = [(each.category, each.key) for each in found]
    assert len(set(keys)) == len(keys)
    assert all(0 < len(each.key) <= NAME_CHARACTERS and each.text.strip() for each in found)
    assert [each.line for each in found] == sorted(each.line for each in found)
    assert read(text, "x").sections == found


@given(st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=6))
def test_deep_and_long_headings_still_have_keys_that_fit(titles: list[str]) -> None:
    lines = []
    for level, title in enumerate(titles, 1):
        lines += [f"{'#' * level} {' '.join(title.split())}", "", "body", ""]
    assert all(len(each.key) <= NAME_CHARACTERS for each in read("\n".join(lines), "x").sections)
