"""Archivist's own event stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archivist.capture.formats import LogOrigin, SkippedRecord, native, read_log
from archivist.records import Episode, EpisodeStatus, Event

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def test_an_episode_line_and_events_make_a_run() -> None:
    found = list(read_log(FIXTURES / "stream.jsonl"))
    (episode,) = [each for each in found if isinstance(each, Episode)]
    assert (episode.id, episode.task, episode.project) == ("run-9", "Paint the barn", "farm")
    assert episode.status is EpisodeStatus.FAILED
    first, note, _ = [each for each in found if isinstance(each, Event)]
    assert (first.exit_code, first.is_error, note.extra) == (1, True, {"importance": 4})


def test_events_alone_are_enough(capture: Read) -> None:
    events, episodes, _ = capture(
        native,
        {"run": "r", "seq": 3, "kind": "message", "role": "user", "text": "Paint"},
        {"run": "r", "kind": "log", "text": "no number"},
    )
    assert [event.seq for event in events] == [2, 3]
    assert (episodes[0].task, episodes[0].status) == ("Paint", EpisodeStatus.RUNNING)


def test_the_run_that_began_the_log_comes_last(capture: Read) -> None:
    rows = [{"run": run, "seq": 0, "kind": "log"} for run in ("main", "child")]
    _, episodes, _ = capture(native, *rows)
    assert [episode.id for episode in episodes] == ["child", "main"]


def test_events_without_run_need_one_from_the_caller(capture: Read) -> None:
    row = {"seq": 0, "kind": "log"}
    _, episodes, skipped = capture(native, row)
    assert (episodes, len(skipped)) == ([], 1)
    _, episodes, _ = capture(native, row, origin=LogOrigin(run="mine"))
    assert episodes[0].id == "mine"


def test_events_belong_to_the_run_that_was_named_before(capture: Read) -> None:
    row = {"kind": "log", "text": "later"}
    events, episodes, skipped = capture(
        native, {"episode": {"id": "r1", "task": "Paint"}}, row, {"run": "r2", **row}, row
    )
    assert ([event.run for event in events], skipped) == (["r1", "r2", "r2"], [])
    assert [episode.id for episode in episodes] == ["r2", "r1"]


def test_a_field_out_of_place_is_named(capture: Read) -> None:
    _, _, skipped = capture(native, {"run": "r", "seq": 0, "kind": "banana"}, {"run": "r", "seq": "one"})
    assert "kind" in skipped[0].reason
    assert "seq" in skipped[1].reason
