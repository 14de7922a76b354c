"""Front matter: plain and odd, read and changed in place."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from archivist.errors import InputError
from archivist.workspace import front_matter

PLAN = """---
# what it is
name: "Workflow Engine"   # quoted
description: Build an engine
status: new # the state
created: 2026-02-08
tags: [workflow, engine]
---

# Workflow Engine

Body.
"""


def test_the_fields_and_the_body_are_told_apart() -> None:
    read = front_matter.read(PLAN, "p.md")
    assert read.values == {
        "name": "Workflow Engine",
        "description": "Build an engine",
        "status": "new",
        "created": date(2026, 2, 8),
        "tags": ["workflow", "engine"],
    }
    assert (read.body_line, read.problems, read.has_any) == (9, (), True)
    assert read.body == "\n# Workflow Engine\n\nBody.\n"


@pytest.mark.parametrize("text", ["", "\n", "# Title\n", "-- -\nname: x\n", "text\n---\nname: x\n---\n"])
def test_a_text_without_front_matter_is_all_body(text: str) -> None:
    assert front_matter.read(text, "p.md") == ({}, text, 1, (), False)


def test_front_matter_that_never_ends_is_named() -> None:
    read = front_matter.read("---\nname: x\n\nBody\n", "p.md")
    assert [(each.line, each.rule) for each in read.problems] == [(1, "unclosed")]
    assert not read.has_any


def test_a_mark_and_foreign_line_ends_are_no_hindrance() -> None:
    read = front_matter.read("\ufeff---\r\nname: x\r\ntags:\r\n  - a\r\n  - b\r\n---\r\nBody\r\n", "p.md")
    assert read.values == {"name": "x", "tags": ["a", "b"]}
    assert (read.body, read.body_line) == ("Body\r\n", 7)


@pytest.mark.parametrize(
    ("head", "line", "rule", "values"),
    [
        ("name: a\ndescription: b: c\nstatus: new", 3, "broken-yaml", {"name": "a", "status": "new"}),
        ("name: a\nname: b\nstatus: new", 3, "duplicate-key", {"name": "a", "status": "new"}),
        ("name: a\ncreated: 2026-13-45\nstatus: new", 3, "bad-date", {"name": "a", "status": "new"}),
        ("name: a\ntags:\n\t- x\nstatus: new", 4, "tab", {"name": "a", "status": "new"}),
        ("name: [a\nstatus: new", 3, "broken-yaml", {"status": "new"}),
        ("- a\n- b", 2, "broken-yaml", {}),
        ("name: !!python/object:os.system x\nstatus: new", 2, "broken-yaml", {"status": "new"}),
        ("name: \x01", 2, "broken-yaml", {}),
    ],
)
def test_what_is_broken_is_named_and_the_rest_still_read(
    head: str, line: int, rule: str, values: dict[str, object]
) -> None:
    read = front_matter.read(f"---\n{head}\n---\nBody\n", "p.md")
    assert [(each.file, each.line, each.rule) for each in read.problems] == [("p.md", line, rule)]
    assert read.values == values
    assert read.body == "Body\n"


def test_aliases_that_multiply_do_not_take_the_machine() -> None:
    head = "a: &a [x, x]\n" + "".join(
        f"{n}: &{n} [*{p}, *{p}]\n" for p, n in zip("abcdef", "bcdefg", strict=True)
    )
    assert "a" in front_matter.read(f"---\n{head}---\n", "p.md").values


# Against a second parser

_KEYS = st.sampled_from(["name", "status", "tags", "created", "true", "a-b", "null", "x1"])
_PIECES = st.sampled_from(
    [
        "a", "B", "é", " ", "  ", ":", ": ", "#", " #", "'", '"', "[", "]", "{", ",", ", ", "-", "- ", "&",
        "*", "!", "|", ">", "%", "@", "`", "\\", "1", "0", "2026-02-08", "2026-02-30", "true", "Null", "~",
        "yes", ".", "/", "=", "<<", "\t", "\u2028", "\xa0", "?", "? ", "\x85", "\ufeff", "12:30", "n", "word",
        "two words", "—",
    ]
)  # fmt: skip
_VALUES = st.lists(_PIECES, max_size=5).map("".join)
_LISTS = st.lists(_VALUES, max_size=3).map(lambda items: f"[{', '.join(items)}]")
_LINES = st.one_of(
    st.builds("{}: {}".format, _KEYS, _VALUES),
    st.builds("{}: {}".format, _KEYS, _LISTS),
    st.builds('{}: "{}"'.format, _KEYS, _VALUES),
    st.builds("{}: '{}'".format, _KEYS, _VALUES),
    st.builds("{}:".format, _KEYS),
    st.builds("{}- {}".format, st.sampled_from(["", "  ", "    "]), _VALUES),
    _VALUES,
)


def _ruamel(head: str) -> object:
    parser = YAML(typ="safe", pure=True)
    parser.composer.warn_double_anchors = False
    loaded = parser.load(head)
    return {str(key): value for key, value in loaded.items()} if isinstance(loaded, dict) else loaded


@given(st.lists(_LINES, max_size=5))
@example(["tags:", "  - a", "- b"])
@example(["tags: a", "  - b"])
@example(["name: a 'b' c"])
@example(["name: don't: x"])
@example(["name: yes", "status: 12:30", "x1: 010", "tags: [1, 0x1f, 1.5, .5, ~]"])
def test_reading_follows_yaml_1_2(lines: list[str]) -> None:
    head = "".join(f"{line}\n" for line in lines)
    read = front_matter.read(f"---\n{head}---\n", "p.md")
    if read.problems or any(key in ("true", "null") for key in read.values):
        return
    try:
        expected = _ruamel(head) or {}
    except (YAMLError, ValueError):
        return
    assert read.values == expected


@given(
    st.dictionaries(st.sampled_from(["name", "note", "tags"]), st.text() | st.lists(st.text()) | st.dates())
)
def test_what_is_written_is_read_back(values: dict[str, object]) -> None:
    text = front_matter.add_front_matter("# Body\n", values)
    read = front_matter.read(text, "p.md")
    assert read.values == values
    assert read.body.lstrip("\n") == "# Body\n"
    assert front_matter.load_yaml(text[4 : text.index("\n---\n", 3) + 1] if values else "{}") == values


# Changing


def test_a_change_touches_nothing_but_its_value() -> None:
    changed = front_matter.edit_fields(PLAN, {"status": "done", "updated": date(2026, 2, 9)}, "p.md")
    assert changed == PLAN.replace("status: new #", "status: done #").replace(
        "tags: [workflow, engine]\n", "tags: [workflow, engine]\nupdated: 2026-02-09\n"
    )
    assert front_matter.edit_fields(changed, {"status": "done"}, "p.md") == changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("status: 'new'", "status: 'done'"),
        ('status: "new"', 'status: "done"'),
        ("status:", "status: done"),
        ("status: # open", "status: done # open"),
        ("status: >-\n  new\n  or so\n# end", "status: done\n# end"),
        ("status:\n  - new\n# end", "status: done\n# end"),
        ("a: &s new\nstatus: *s", "a: &s new\nstatus: done"),
    ],
)
def test_the_value_keeps_its_quotes_and_its_place(before: str, after: str) -> None:
    text = f"---\n{before}\nend: 1\n---\nBody\n"
    changed = front_matter.edit_fields(text, {"status": "done"}, "p.md")
    assert changed == text.replace(before, after)
    read = front_matter.read(changed, "p.md")
    assert read.values["status"] == "done"
    assert read.problems == ()


@pytest.mark.parametrize("head", ["{status: new, x: 1}", "status: &s new\nb: *s"])
def test_a_value_that_cannot_be_replaced_in_place_is_refused(head: str) -> None:
    with pytest.raises(InputError, match=re.escape("p.md: cannot change status")):
        front_matter.edit_fields(f"---\n{head}\n---\nBody\n", {"status": "done"}, "p.md")


def test_broken_front_matter_is_not_changed() -> None:
    with pytest.raises(InputError, match=re.escape("p.md:3: ")):
        front_matter.edit_fields("---\nname: a\nname: b\n---\n", {"status": "done"}, "p.md")


@given(
    st.dictionaries(st.sampled_from(["name", "status", "note", "tags"]), st.text() | st.lists(st.text())),
    st.dictionaries(st.sampled_from(["name", "status", "new"]), st.text() | st.lists(st.text()) | st.dates()),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_change_is_seen_and_the_rest_unchanged(
    values: dict[str, object], changes: dict[str, object], end: str
) -> None:
    text = front_matter.add_front_matter("# Body\n", values).replace("\n", end)
    changed = front_matter.edit_fields(text, changes, "p.md")
    assert front_matter.read(changed, "p.md").values == {**values, **changes}
    assert changed.endswith(f"# Body{end}")
