"""ArcheFlow's run events, captured as they stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archivist.capture.formats import SkippedRecord, archeflow, read_log
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Severity

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def test_verdicts_carry_findings_and_fixes_theirs() -> None:
    found = list(read_log(FIXTURES / "archeflow.jsonl"))
    events = {each.kind: each for each in found if isinstance(each, Event)}
    (finding,) = events[EventKind.VERDICT].findings
    assert (finding.severity, finding.description, finding.found_by) == (
        Severity.BUG,
        "The hinge is missing",
        "guardian",
    )
    assert (finding.category, finding.file, finding.line) == ("safety", "gate.py", 4)
    assert events[EventKind.FIX].findings[0].description == "The hinge is missing"


def test_the_run_takes_its_task_and_status_from_its_ends() -> None:
    (episode,) = [each for each in read_log(FIXTURES / "archeflow.jsonl") if isinstance(each, Episode)]
    assert (episode.id, episode.task, episode.status) == (
        "2026-07-01-gate",
        "Hang the gate",
        EpisodeStatus.SUCCESS,
    )


def test_a_fix_may_give_its_finding_as_an_object(capture: Read) -> None:
    row = {
        "run_id": "r",
        "seq": 1,
        "type": "fix.applied",
        "data": {"finding": {"description": "x", "severity": "WARNING"}},
    }
    events, _, _ = capture(archeflow, row)
    assert events[0].findings[0].severity is Severity.WARNING


def test_events_that_share_a_number_get_their_own(capture: Read) -> None:
    row = {"run_id": "r", "seq": 1, "type": "note.made", "data": {}}
    events, _, _ = capture(archeflow, row, row, row)
    assert [event.seq for event in events] == [1, 2, 3]


def test_a_bad_event_is_counted_and_the_rest_kept(capture: Read) -> None:
    good = {"run_id": "r", "seq": 1, "type": "run.start", "data": {"task": "x"}}
    bad = {"run_id": "r", "seq": 2, "type": "review.verdict", "data": {"findings": 3}}
    events, episodes, skipped = capture(archeflow, good, bad)
    assert (len(events), len(episodes), len(skipped)) == (1, 1, 1)
