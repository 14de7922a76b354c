"""What a file of a watched folder is, by its path and its own words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.archive.folders import (
    decode_text,
    describe_file,
    find_owner,
    guess_date,
    guess_type,
    is_wanted,
    split_front_matter,
    validate_pattern,
)
from archivist.errors import InputError, RecordError
from archivist.records import DocumentType, Folder
from tests.samples import WHEN


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("docs/decisions/0001-one.md", DocumentType.DECISION),
        ("docs/adr/7.md", DocumentType.DECISION),
        ("docs/ADR-007.md", DocumentType.DECISION),
        ("docs/research/memgpt.md", DocumentType.RESEARCH),
        ("docs/design/api.md", DocumentType.SPEC),
        ("specs/api.md", DocumentType.SPEC),
        ("notes/lessons.md", DocumentType.LESSON),
        ("agents/memory/archives/bank-2026-02-08-v7.md", DocumentType.CYCLE),
        ("bank-v3.md", DocumentType.CYCLE),
        ("inspector.md", DocumentType.RESEARCH),
        ("README.md", DocumentType.RESEARCH),
    ],
)
def test_the_sort_of_a_text_is_guessed_from_its_path(source: str, expected: DocumentType) -> None:
    assert guess_type(source) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a/2026-02-08-memgpt.md", "2026-02-08"),
        ("a/bank-2026-02-08-v7.md", "2026-02-08"),
        ("a/260208_memgpt.md", "2026-02-08"),
        ("a/20260208.md", "2026-02-08"),
        ("2026-02-08/plain.md", ""),
        ("a/2026-13-40.md", ""),
        ("a/123456.md", ""),
        ("a/1234567890.md", ""),
    ],
)
def test_the_day_of_a_text_is_read_from_its_name(source: str, expected: str) -> None:
    found = guess_date(source)
    assert (f"{found:%Y-%m-%d}" if found else "") == expected


def test_front_matter_says_more_than_the_path() -> None:
    fields = ("type: spec", "date: 2026-02-03", "roles: [ops, qa]", "issues: [84, '#85']", "tags: a, b")
    text = "\n".join(("---", *fields, "importance: 8", "---", "Body"))
    told = describe_file("docs/research/2020-01-01.md", text, file_time=WHEN)
    assert (told.type, told.date) == (DocumentType.SPEC, datetime(2026, 2, 3, tzinfo=UTC))
    assert (told.roles, told.issues, told.tags, told.importance) == (("ops", "qa"), (84, 85), ("a", "b"), 8)
    assert (told.front.body, told.front.first_line) == ("Body", 9)


def test_without_front_matter_path_and_file_time_count() -> None:
    told = describe_file("docs/decisions/x.md", "Text", file_time=WHEN)
    assert (told.type, told.date, told.importance) == (DocumentType.DECISION, WHEN, 5)
    assert describe_file("docs/x.md", "Text", type=DocumentType.LESSON).type is DocumentType.LESSON


@pytest.mark.parametrize(
    "text",
    [
        "---\nfoo: [bar\n---\nBody",
        "---\njust words\n---\nBody",
        "---\n- a\n- b\n---\nBody",
        "---\na: 1\na: 2\n---\nBody",
        "---\n\x01\n---\nBody",
        f"---\na: {'x' * 20_000}\n---\nBody",
    ],
)
def test_front_matter_that_is_none_stays_in_the_text_and_is_named(text: str) -> None:
    front = split_front_matter(text)
    assert (front.body, front.fields, front.first_line) == (text, {}, 1)
    assert front.problem


@pytest.mark.parametrize("text", ["---\nno end", "--- a rule\n\ntext", "text\n---\n", ""])
def test_a_rule_is_no_front_matter(text: str) -> None:
    assert split_front_matter(text) == ({}, "", text, 1, "")


def test_odd_values_of_front_matter_are_passed_over() -> None:
    text = "---\ntype: mood\ndate: soon\nroles: 7\nissues: {a: b}\nimportance: 99\n---\nBody"
    told = describe_file("docs/x.md", text)
    assert (told.type, told.date, told.roles, told.issues) == (DocumentType.RESEARCH, None, (), ())
    assert told.importance == 5


@given(st.text(max_size=200))
def test_any_text_has_a_body(text: str) -> None:
    for each in (text, f"---\n{text}\n---\nBody"):
        front = split_front_matter(each)
        assert front.raw or front.body == each.replace("\r\n", "\n").replace("\r", "\n") or not front.problem


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a.md", "**/*.md", True),
        ("x/y/a.md", "**/*.md", True),
        ("x/y/a.md", "*.md", False),
        ("a.txt", "**/*.md", False),
        ("x/a.md", "x/**", True),
        ("x/a1.md", "x/a?.md", True),
        (".git/a.md", "**/*.md", False),
        ("node_modules/p/README.md", "**/*.md", False),
        ("a+b.md", "a+b.md", True),
    ],
)
def test_patterns_choose_files(path: str, pattern: str, expected: bool) -> None:
    assert is_wanted(path, pattern) is expected


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*.md", "a/../../b"])
def test_a_pattern_stays_below_its_folder(pattern: str) -> None:
    with pytest.raises(InputError, match="no path below"):
        validate_pattern(pattern)


def test_a_file_belongs_to_the_deepest_folder_that_wants_it() -> None:
    docs = Folder(id="docs", added=WHEN)
    inner = Folder(id="docs/decisions", pattern="*.md", added=WHEN)
    every = Folder(id=".", added=WHEN)
    assert find_owner("docs/decisions/a.md", [docs, inner, every]) == inner
    assert find_owner("docs/decisions/old/a.md", [docs, inner, every]) == docs
    assert find_owner("README.md", [docs, inner, every]) == every
    assert find_owner("docsy/a.md", [docs, inner]) is None


def test_only_text_is_read() -> None:
    assert decode_text(b"\xef\xbb\xbfcaf\xc3\xa9") == "caf\u00e9"
    with pytest.raises(RecordError, match="not UTF-8 text \\(byte 3\\)"):
        decode_text(b"caf\xe9")
    with pytest.raises(RecordError, match="binary"):
        decode_text(b"a\x00b")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("type: bogus", "front matter: type: 'bogus' is not one of cycle, decision, research, spec, lesson"),
        ("type: [spec]", "front matter: type: ['spec'] is not one of"),
        ("importance: 99", "front matter: importance: 99 is not a whole number from 1 to 10"),
        ("importance: high", "front matter: importance: 'high' is not a whole number"),
        ("date: nope", "front matter: date: 'nope' is not a date like 2026-02-08"),
        ("created: 12", "front matter: created: 12 is not a date"),
    ],
)
def test_what_front_matter_says_in_vain_is_told(line: str, problem: str) -> None:
    about = describe_file("docs/a.md", f"---\n{line}\n---\nText.\n")
    (told,) = about.problems
    assert told.startswith(problem)
    assert told.endswith("; left out")
    assert (about.type, about.importance, about.front.body) == (DocumentType.RESEARCH, 5, "Text.\n")


def test_good_front_matter_is_no_problem() -> None:
    told = "---\ntype: spec\nimportance: 10\ndate: 2026-02-08\ncreated:\nother: 1\n---\nText.\n"
    assert describe_file("docs/a.md", told).problems == ()
