"""ArcheFlow's run events become an episode and events."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from archivist.capture.formats import LogOrigin, SkippedRecord, read_log
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Severity
from tests.samples import run_lines, write_jsonl


class RunLog(NamedTuple):
    """The runs of a log, the first one first, and the lines that were no events."""

    runs: list[tuple[Episode, list[Event]]]
    problems: list[SkippedRecord]


def _read(tmp_path: Path, lines: list[Any], run: str = "") -> RunLog:
    path = write_jsonl(tmp_path / "run.jsonl", lines)
    items = list(read_log(path, LogOrigin(path.name, run), "archeflow"))
    events = [item for item in items if isinstance(item, Event)]
    episodes = [item for item in reversed(items) if isinstance(item, Episode)]
    return RunLog(
        [(episode, [event for event in events if event.run == episode.id]) for episode in episodes],
        [item for item in items if isinstance(item, SkippedRecord)],
    )


def _verdict(**change: Any) -> dict[str, Any]:
    return {**run_lines("r1", {"severity": "bug", "description": "x"})[1], **change}


def test_a_run_is_summed_up_and_its_findings_are_typed(tmp_path: Path) -> None:
    found = {
        "severity": "CRITICAL",
        "description": "Null",
        "category": "code",
        "file": "a.py",
        "line": 3,
        "cwe": 476,
    }
    log = _read(tmp_path, run_lines("r1", found, fixed=["Null"]))
    ((episode, events),) = log.runs
    assert (episode.id, episode.task, episode.status) == ("r1", "Task of r1", EpisodeStatus.SUCCESS)
    assert episode.started is not None
    assert episode.finished is not None
    assert [event.kind for event in events] == [
        EventKind.START, EventKind.VERDICT, EventKind.FIX, EventKind.FINISH
    ]  # fmt: skip
    (typed,) = events[1].findings
    assert (typed.severity, typed.category, typed.file, typed.line) == (Severity.BUG, "code", "a.py", 3)
    assert (typed.found_by, typed.extra) == ("guardian", {"cwe": 476})
    assert events[2].findings[0].description == "Null"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"run_id": "r1", "seq": 1}, "type: missing"),
        ({"run_id": "r1", "seq": "one", "type": "run.start"}, "seq: expected a whole number"),
        ({"run_id": "r1", "seq": 1, "type": "run.start", "ts": "noon"}, "time: not an ISO 8601 time"),
        (_verdict(data=["x"]), "data: expected an object"),
        (_verdict(data={"findings": "x"}), "findings: expected a list"),
    ],
)
def test_a_bad_event_is_named_and_the_others_are_taken(tmp_path: Path, line: Any, reason: str) -> None:
    log = _read(tmp_path, [*run_lines("r1"), line])
    (problem,) = log.problems
    assert problem.where == f"line {len(run_lines('r1')) + 1}"
    assert reason in problem.reason
    assert len(log.runs[0][1]) == len(run_lines("r1"))


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("finding", "reason"),
    [
        ({"severity": "bug"}, "finding 1: description: missing"),
        (3, "finding 1: expected an object"),
    ],
)
def test_a_bad_finding_is_named_and_the_others_of_its_verdict_are_taken(
    tmp_path: Path, finding: Any, reason: str
) -> None:
    log = _read(tmp_path, [*run_lines("r1"), _verdict(data={"findings": [finding, "Null"]})])
    (problem,) = log.problems
    assert problem.where == f"line {len(run_lines('r1')) + 1}"
    assert reason in problem.reason
    assert [each.description for each in log.runs[0][1][-1].findings] == ["Null"]


@pytest.mark.req("F3")
@pytest.mark.parametrize("severity", ["awful", 3])
def test_a_finding_of_an_unknown_severity_is_named_and_may_be_a_known_one(
    tmp_path: Path, severity: object
) -> None:
    found = {"severity": severity, "description": "x"}
    log = _read(tmp_path, [*run_lines("r1"), _verdict(data={"findings": [found, "Null"]})])
    (problem,) = log.problems
    assert f"finding 1: severity: {severity!r} is not one of bug" in problem.reason
    assert [each.severity for each in log.runs[0][1][-1].findings] == [Severity.INFO, Severity.INFO]


def test_an_event_without_a_run_takes_the_given_one(tmp_path: Path) -> None:
    log = _read(tmp_path, [{"seq": 1, "type": "run.start", "data": {"task": "t"}}], run="given")
    assert (log.runs[0][0].id, log.problems) == ("given", [])


@pytest.mark.req("F3")
def test_events_belong_to_the_run_that_was_named_before(tmp_path: Path) -> None:
    first, *rest = run_lines("r1", {"severity": "bug", "description": "x"})
    unnamed = [{key: value for key, value in line.items() if key != "run_id"} for line in rest]
    log = _read(tmp_path, [unnamed[0], first, *unnamed, run_lines("r2")[0], unnamed[0]])
    (problem,) = log.problems
    assert (problem.where, problem.reason[:15]) == ("line 1", "run_id: missing")
    assert [(episode.id, len(events)) for episode, events in log.runs] == [("r1", len(rest) + 1), ("r2", 2)]
    assert log.runs[0][0].status is EpisodeStatus.SUCCESS
    assert [finding.description for event in log.runs[0][1] for finding in event.findings] == ["x"]


def test_events_of_several_runs_are_kept_apart_and_twins_get_numbers_of_their_own(tmp_path: Path) -> None:
    lines = [*run_lines("r1"), *run_lines("r2"), {**run_lines("r1")[0], "data": {"task": "twin"}}]
    log = _read(tmp_path, lines)
    assert [episode.id for episode, _ in log.runs] == ["r1", "r2"]
    assert [event.seq for event in log.runs[0][1]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({}, "success"),
        ({"status": "failed"}, "failed"),
        ({"outcome": "aborted"}, "aborted"),
        ({"status": "?"}, "partial"),
    ],
)
def test_how_a_run_ended_comes_from_its_last_event(tmp_path: Path, data: dict[str, str], status: str) -> None:
    log = _read(
        tmp_path, [*run_lines("r1")[:-1], {"run_id": "r1", "seq": 9, "type": "run.complete", "data": data}]
    )
    assert log.runs[0][0].status == status


def test_a_run_without_an_end_is_still_running(tmp_path: Path) -> None:
    assert _read(tmp_path, run_lines("r1")[:-1]).runs[0][0].status is EpisodeStatus.RUNNING


def test_unknown_events_and_fields_are_kept(tmp_path: Path) -> None:
    log = _read(
        tmp_path, [{"run_id": "r1", "seq": 1, "type": "agent.sneeze", "data": {"loud": True}, "host": "x"}]
    )
    (event,) = log.runs[0][1]
    assert (event.kind, event.name) == (EventKind.OTHER, "agent.sneeze")
    assert event.extra == {"host": "x", "data": {"loud": True}}
