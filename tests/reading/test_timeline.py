"""A run at a glance: what stands out, what folds away, and which programs it called."""

from __future__ import annotations

import re

import pytest

from archivist.charts import draw_flow
from archivist.reading.timeline import (
    EventOutline,
    StepMark,
    ToolUse,
    count_tools,
    fold_timeline,
    mark_steps,
    program_of,
)
from archivist.records.run_words import EventKind


def _call(seq: int, text: str, *, is_error: bool = False) -> EventOutline:
    return EventOutline(seq, None, EventKind.TOOL_CALL, "", "Bash", text, is_error)


@pytest.mark.parametrize(
    ("tool", "text", "program"),
    [
        ("Bash", "git push", "git"),
        ("Bash", "cd app && CI=1 npm test", "npm"),
        ("exec_command", "timeout -k 5 60 /usr/bin/make all", "make"),
        ("Bash", "sudo -E env A=b uv run pytest", "uv"),
        ("Bash", '"$x"', "Bash"),
        ("Edit", "git push", "Edit"),
        ("Bash", "", "Bash"),
    ],
)
def test_a_call_is_known_by_its_program(tool: str, text: str, program: str) -> None:
    assert program_of(tool, text) == program


def test_failures_recoveries_evidence_and_words_stand_out() -> None:
    said = EventOutline(0, None, EventKind.MESSAGE, "user", "", "push it", False)
    events = [
        said,
        _call(1, "git push", is_error=True),
        _call(2, "ls"),
        _call(3, "git push -u origin main"),
        _call(4, "git status"),
        _call(5, "make"),
    ]
    marks = mark_steps(events, cited={3, 5})
    assert marks == {
        0: StepMark.SAID,
        1: StepMark.FAILED,
        3: StepMark.RECOVERED,
        5: StepMark.CITED,
    }
    parts = fold_timeline(events, marks)
    assert [(part.first, part.last, part.mark) for part in parts] == [
        (0, 0, StepMark.SAID),
        (1, 1, StepMark.FAILED),
        (2, 2, None),
        (3, 3, StepMark.RECOVERED),
        (4, 4, None),
        (5, 5, StepMark.CITED),
    ]
    assert parts[2].tools == (("ls", 1),)


def test_a_success_long_afterwards_is_no_recovery() -> None:
    events = [
        _call(0, "git push", is_error=True),
        *(_call(at, "ls") for at in range(1, 14)),
        _call(14, "git log"),
    ]
    assert mark_steps(events) == {0: StepMark.FAILED}


def test_a_failure_that_only_the_output_shows_is_marked() -> None:
    events = [_call(0, "make check"), _call(1, "ls")]
    assert mark_steps(events, failed={0}) == {0: StepMark.FAILED}


def test_one_failed_call_is_not_drawn_as_long_as_twelve() -> None:
    uses = [ToolUse("codex", "sed", 280, 1), ToolUse("codex", "git", 473, 12)]
    chart = draw_flow(uses, {}, "Tools")
    failed = [float(width) for width in re.findall(r'width="([\d.]+)" fill="#b8501a"', chart)]
    assert len(failed) == 2
    assert max(failed) > 3 * min(failed)
    assert "Solid: failed" in chart


@pytest.mark.req("A16")
def test_the_graph_of_tools_marks_where_lessons_exist() -> None:
    calls = [
        ("claude", "Bash", "git push", True),
        ("claude", "Bash", "git log", False),
        ("codex", "Edit", "", False),
    ]
    uses = count_tools(calls)
    assert [tuple(use) for use in uses] == [("claude", "git", 2, 1), ("codex", "Edit", 1, 0)]
    chart = draw_flow(uses, {"git": 2}, "Tools <of> runs")
    assert "★ 2" in chart
    assert "git: 2 calls, 1 failed, 2 lessons." in chart
    assert "Tools &lt;of&gt; runs" in chart
