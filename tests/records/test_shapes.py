"""Records keep the documents' shapes without loss."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import RecordError
from archivist.records import LessonType, Severity, Source, Status, Tally
from archivist.records.shapes import (
    from_cross_run,
    from_episode_line,
    from_reflective,
    to_cross_run,
    to_episode_line,
    to_reflective,
)
from tests.samples import DOCUMENT_LESSONS, REFLECTIVE_LESSON, lesson, lessons


def _place(imported: Any) -> Any:
    from dataclasses import replace

    return replace(imported.lesson, number=imported.number, unseen_from=-imported.runs_since)


@pytest.mark.req("F1", "F2")
@pytest.mark.parametrize("line", DOCUMENT_LESSONS, ids=lambda line: str(line["id"]))
def test_every_key_of_a_cross_run_line_comes_back_as_it_was(line: dict[str, Any]) -> None:
    written = to_cross_run(_place(from_cross_run(line)), Tally(), 0)
    assert {key: written[key] for key in line} == line


@pytest.mark.req("F1")
def test_a_cross_run_line_is_written_in_the_documented_order() -> None:
    keys = list(to_cross_run(lesson(), Tally(), 0))
    assert keys[:8] == ["id", "ts", "run_id", "type", "source", "description", "frequency", "severity"]


@pytest.mark.req("A2")
def test_every_key_of_a_reflective_line_comes_back_as_it_was() -> None:
    written = to_reflective(_place(from_reflective(REFLECTIVE_LESSON)), Tally(), 0)
    evidence = written.pop("evidence")
    assert isinstance(evidence, dict)
    assert {key: evidence[key] for key in REFLECTIVE_LESSON["evidence"]} == REFLECTIVE_LESSON["evidence"]
    assert {key: written[key] for key in REFLECTIVE_LESSON if key != "evidence"} == {
        key: value for key, value in REFLECTIVE_LESSON.items() if key != "evidence"
    }


@pytest.mark.parametrize("line", [DOCUMENT_LESSONS[0], REFLECTIVE_LESSON])
def test_unknown_fields_survive(line: dict[str, Any]) -> None:
    strange = {**line, "mood": {"colour": ["blue", 3]}, "note": None}
    read, write = (from_reflective, to_reflective) if "summary" in line else (from_cross_run, to_cross_run)
    written = write(_place(read(strange)), Tally(), 0)
    assert written["mood"] == {"colour": ["blue", 3]}
    assert written["note"] is None


def test_a_bare_count_becomes_a_set_of_runs() -> None:
    read = from_cross_run({**DOCUMENT_LESSONS[0], "frequency": 4}).lesson
    assert read.frequency == 4
    assert "2026-04-03-der-huster" in read.runs


def test_a_bare_count_read_again_does_not_grow_the_set() -> None:
    first = from_cross_run({**DOCUMENT_LESSONS[0], "frequency": 2}).lesson
    later = {**DOCUMENT_LESSONS[0], "frequency": 3, "last_seen_run": "r-9", "run_id": "r-9"}
    assert from_cross_run(later, known=first).lesson.frequency == 3


def test_a_count_below_the_named_runs_has_faded() -> None:
    line = {**DOCUMENT_LESSONS[0], "run_id": "r-1", "last_seen_run": "r-2", "frequency": 1}
    read = from_cross_run(line).lesson
    assert (read.runs, read.faded, read.frequency) == (("r-1", "r-2"), 1, 1)


def test_user_feedback_is_manual_and_a_reflective_lesson_is_believed() -> None:
    assert from_cross_run(DOCUMENT_LESSONS[1]).lesson.source is Source.MANUAL
    line = {key: value for key, value in REFLECTIVE_LESSON.items() if key != "supersededBy"}
    read = from_reflective(line).lesson
    assert (read.confirmed, read.status) == (True, Status.ACTIVE)


def test_importance_out_of_a_hundred_is_understood() -> None:
    assert from_reflective({**REFLECTIVE_LESSON, "importance": 80}).lesson.importance == 0.8


def test_an_upper_case_severity_is_understood() -> None:
    assert from_cross_run({**DOCUMENT_LESSONS[0], "severity": "WARNING"}).lesson.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"severity": "awful"}, "severity: 'awful' is not one of bug, warning, info, recommendation"),
        ({"type": "hunch"}, "type: 'hunch' is not one of"),
        ({"description": "  "}, "description: missing or empty"),
        ({"description": None}, "description: missing or empty"),
        ({"ts": "yesterday"}, "not an ISO 8601 time"),
        ({"frequency": -1}, "frequency: expected a count"),
        ({"frequency": "many"}, "frequency: expected a count"),
        ({"tags": "one"}, "tags: expected a list"),
        ({"tags": [1]}, "tags: expected text"),
    ],
)
def test_a_wrong_field_is_named_with_its_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        from_cross_run({**DOCUMENT_LESSONS[0], **change})
    assert reason in caught.value.message


@given(lessons(number=3), st.integers(0, 20))
def test_any_lesson_survives_both_shapes(made: Any, run_count: int) -> None:
    from dataclasses import replace

    made = replace(made, unseen_from=run_count - 2)
    for read, write in ((from_cross_run, to_cross_run), (from_reflective, to_reflective)):
        back = read(write(made, Tally(), 2))
        placed = replace(back.lesson, number=back.number, unseen_from=run_count - back.runs_since)
        assert placed == made


@pytest.mark.req("A1")
def test_an_episode_line_survives_with_its_unknown_fields() -> None:
    line = {
        "id": "ep-1", "projectRoot": "/srv/app", "taskId": "t-1", "subtaskId": "t-1a", "sessionId": "s-1",
        "kind": "healer_run", "startedAt": "2026-03-01T08:00:00Z", "finishedAt": "2026-03-01T09:00:00Z",
        "status": "partial", "summary": "Fixed half of it.", "tags": ["typecheck"], "trajectories": ["t-9"],
        "usage": {"input_tokens": 10, "output_tokens": 4, "cached_tokens": 0, "cost_usd": 0.5,
                  "efficiency": 0.25, "extra": {}},
        "weather": "fine",
    }  # fmt: skip
    written = to_episode_line(from_episode_line(line))
    assert {key: written[key] for key in line} == line


def test_a_lesson_type_is_taken_from_an_anti_pattern_category() -> None:
    read = from_reflective({**REFLECTIVE_LESSON, "category": "anti_pattern"}).lesson
    assert read.type is LessonType.ANTI_PATTERN
