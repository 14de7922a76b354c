"""The stream's rules: references, sizes, and the cycles that a question names; and its lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import InputError, RecordError
from archivist.records import Entry, EntryType
from archivist.records.shapes import from_stream_line, to_stream_line
from archivist.stream.entries import (
    References,
    find_references,
    parse_question,
    validate_cycle_range,
    validate_importance,
)
from tests.samples import WHEN

# The two example lines of the document, and one of its reflections.
DOCUMENT_LINES = [
    (
        '{"id":"abc123","cycle":188,"timestamp":"2026-02-08T13:23:00Z","role":"research",'
        '"action":"MemGPT Literature Review","importance":8,"type":"action","tags":["memory","research"],'
        '"issueRefs":[95],"prRefs":[],"content":"Deep analysis of tiered memory.","tokenEstimate":85}'
    ),
    (
        '{"id":"def456","cycle":187,"timestamp":"2026-02-08T13:05:00Z","role":"growth",'
        '"action":"Demo Day Metrics Refresh","importance":6,"type":"action","tags":["demo"],'
        '"issueRefs":[39],"prRefs":[],"content":"Updated demo materials.","tokenEstimate":45}'
    ),
]
REFLECTION = (
    '{"id":"refl001","cycle":190,"timestamp":"2026-02-08T15:00:00Z","role":"system",'
    '"action":"Reflection: Cycles 180-190","importance":9,"type":"reflection","tags":["meta"],'
    '"content":"Double-merge cycles are efficient.","tokenEstimate":55}'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what blocks #84?", References((84,))),
        ("PR #12 closes #84", References((84,), (12,))),
        ("PRs #12, #13 and #14 are merged", References((), (12, 13, 14))),
        ("pull request #9 and #9 again", References((), (9,))),
        ("colour #fff, page.html#12, &#39; and ##3", References()),
        ("(#7)", References((7,))),
        ("issue #0", References()),
        ("#12345678901234567890", References()),
    ],
)
def test_references_are_read_from_the_text(text: str, expected: References) -> None:
    assert find_references(text) == expected


def test_references_that_are_given_and_tagged_count_too() -> None:
    assert find_references(
        "see #1", issues=(5,), prs=(6,), tags=("issue-84", "pr-7", "memory")
    ) == References((5, 1, 84), (6, 7))


@pytest.mark.parametrize(
    ("question", "cycles", "issue"),
    [
        ("What did research do in cycle 150?", (150, 150), None),
        ("cycles 180-185 of qa", (180, 185), None),
        ("between cycle 185 and 180", (180, 185), None),
        ("what happened since cycle 20", (20, None), None),
        ("before cycle 20", (None, 19), None),
        ("after cycle 20", (21, None), None),
        ("what's blocking #84?", None, 84),
        ("#84 or #85", None, None),
        ("the life cycle of a bicycle 4 me", None, None),
        ("C188 notes", (188, 188), None),
    ],
)
def test_a_question_can_name_its_cycles_and_its_issue(question: str, cycles: Any, issue: int | None) -> None:
    assert parse_question(question)[:2] == (cycles, issue)


def test_ranges_and_weights_are_checked() -> None:
    assert validate_cycle_range(3, None) == (3, None)
    with pytest.raises(InputError, match="cycles 9 to 3"):
        validate_cycle_range(9, 3)
    with pytest.raises(InputError, match="not a whole number"):
        validate_cycle_range(1.5, 3)  # type: ignore[arg-type]
    for wrong in (0, 11, True):
        with pytest.raises(InputError, match="importance"):
            validate_importance(wrong)


def test_tokens_are_estimated_as_briefs_do(bank: Bank) -> None:
    assert bank.stream.log("a" * 40).tokens == 10


# Lines


@pytest.mark.req("C2")
@pytest.mark.parametrize("line", DOCUMENT_LINES)
def test_the_documents_lines_come_back_as_they_were(line: str) -> None:
    assert json.dumps(to_stream_line(from_stream_line(json.loads(line))), separators=(",", ":")) == line


@pytest.mark.req("C2")
def test_a_reflection_line_without_references_is_read() -> None:
    entry = from_stream_line(json.loads(REFLECTION))
    assert (entry.type, entry.issues, entry.tokens) == (EntryType.REFLECTION, (), 55)
    assert from_stream_line(to_stream_line(entry)) == entry


def test_a_line_without_an_id_always_gets_the_same() -> None:
    line = json.loads(DOCUMENT_LINES[0])
    del line["id"]
    assert from_stream_line(line).id == from_stream_line(line).id
    assert from_stream_line({**line, "action": "Other"}).id != from_stream_line(line).id


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"importance": 0}, "importance: 0 is not between 1 and 10"),
        ({"importance": 11}, "importance: 11"),
        ({"importance": 5.5}, "importance: expected a whole number"),
        ({"timestamp": "yesterday"}, "timestamp: not an ISO 8601 time"),
        ({"timestamp": None}, "timestamp: missing"),
        ({"cycle": -1}, "cycle: -1 is below 0"),
        ({"cycle": None}, "cycle: missing"),
        ({"action": " "}, "action: missing or empty"),
        ({"type": "mood"}, "type: 'mood' is not one of"),
        ({"issueRefs": 84}, "issueRefs: expected a list"),
        ({"issueRefs": ["84"]}, "issueRefs: expected a whole number"),
    ],
)
def test_a_bad_line_names_the_field_as_the_line_spells_it(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        from_stream_line({**json.loads(DOCUMENT_LINES[0]), **change})
    assert caught.value.message.startswith(reason)


_words = st.text(max_size=40)
_entries = st.builds(
    Entry,
    id=st.text(min_size=1, max_size=10),
    seq=st.just(0),
    cycle=st.integers(0, 10_000),
    time=st.just(WHEN),
    role=_words,
    action=_words.filter(str.strip),
    importance=st.integers(1, 10),
    type=st.sampled_from(EntryType),
    tags=st.lists(_words, max_size=3).map(tuple),
    issues=st.lists(st.integers(1, 999), max_size=3).map(tuple),
    prs=st.lists(st.integers(1, 999), max_size=3).map(tuple),
    content=_words,
    tokens=st.integers(0, 999),
    run=_words,
    extra=st.dictionaries(st.sampled_from(["mood", "evidence", "x"]), st.integers(), max_size=2),
)


@pytest.mark.req("C2")
@given(_entries)
def test_an_entry_and_its_line_say_the_same(entry: Entry) -> None:
    assert from_stream_line(json.loads(json.dumps(to_stream_line(entry)))) == entry


def test_a_question_can_ask_for_decisions() -> None:
    assert parse_question("what did we decide about the cache?").type == "decision"
    assert parse_question("which database was chosen?").type == "decision"
    assert parse_question("what broke the cache?").type == ""
