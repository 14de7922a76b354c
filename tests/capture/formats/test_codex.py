"""Codex rollouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import SkippedRecord, codex, read_log
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"
META = {
    "type": "session_meta",
    "payload": {"id": "thread-1", "cwd": "/work/mill", "model_provider": "openai"},
}


def item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload}


def happened(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **payload}}


def from_file(name: str) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(FIXTURES / name))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ]


def test_a_rollout_names_itself_and_its_repository() -> None:
    _, (episode,) = from_file("codex-rollout.jsonl")
    assert episode.id == "0199aaaa-0000-7000-8000-000000000001"
    assert (episode.project, episode.provider, episode.model) == ("ada/mill", "openai", "gpt-5.5-codex")
    assert (episode.task, episode.status) == ("Fix the build of the mill", EpisodeStatus.SUCCESS)
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.cached_tokens) == (5000, 4000)


def test_calls_have_code_duration_and_output_from_wherever_they_are_told() -> None:
    events, _ = from_file("codex-rollout.jsonl")
    first, patch, second = [event for event in events if event.tool]
    assert (first.text, first.exit_code, first.duration_s, first.is_error) == ("make all", 2, 1.5, True)
    assert first.output == "make: *** No rule to make target 'all'.  Stop.\n"
    assert (patch.kind, patch.target, patch.extra["old"]) == (EventKind.EDIT, "Makefile", "build:")
    assert (second.exit_code, second.duration_s, second.output) == (0, 0.25, "built\n")


def test_the_older_form_of_bare_items_is_read() -> None:
    events, (episode,) = from_file("codex-bare.jsonl")
    assert episode.id == "0188bbbb-0000-7000-8000-000000000002"
    assert [event.text for event in events if event.tool] == ["python3 --version"]
    assert episode.status is EpisodeStatus.SUCCESS


@pytest.mark.parametrize(
    ("output", "exit_code", "is_error"),
    [
        ("exec_command failed for `x`: No such file", None, True),
        ("failed to parse function arguments: missing field", None, True),
        ({"content": "no", "success": False}, None, True),
        ([{"type": "input_text", "text": "Exit code: 7\nWall time: 1 seconds\nOutput:\nx"}], 7, True),
        ("plain", None, False),
    ],
)
def test_failures_are_read_from_the_text_because_there_is_no_flag(
    capture: Read, output: object, exit_code: int | None, is_error: bool
) -> None:
    events, _, _ = capture(
        codex,
        META,
        item(type="function_call", name="shell", arguments="{}", call_id="c"),
        item(type="function_call_output", call_id="c", output=output),
    )
    assert (events[0].exit_code, events[0].is_error) == (exit_code, is_error)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([happened("turn_aborted", reason="interrupted")], EpisodeStatus.ABORTED),
        ([happened("task_complete"), happened("task_started")], EpisodeStatus.ABORTED),
        ([happened("task_complete")], EpisodeStatus.SUCCESS),
        ([happened("error", message="stream disconnected")], EpisodeStatus.FAILED),
    ],
)
def test_the_last_turn_decides_the_status(capture: Read, rows: list[Any], status: EpisodeStatus) -> None:
    asked = item(type="message", role="user", content=[{"type": "input_text", "text": "go"}])
    _, episodes, _ = capture(codex, META, asked, *rows)
    assert episodes[0].status is status


def test_a_spawned_thread_is_a_child(capture: Read) -> None:
    meta = {"type": "session_meta", "payload": {"id": "t2", "parent_thread_id": "t1"}}
    _, episodes, _ = capture(codex, meta)
    assert (episodes[0].parent, episodes[0].kind) == ("t1", EpisodeKind.SUBAGENT_RUN)


def test_what_exec_prints_is_read_too(capture: Read) -> None:
    command = {
        "id": "i1",
        "type": "command_execution",
        "command": "bash -lc ls",
        "aggregated_output": "no",
        "exit_code": 2,
        "status": "failed",
    }
    events, episodes, skipped = capture(
        codex,
        {"type": "thread.started", "thread_id": "t9"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": command},
        {
            "type": "item.completed",
            "item": {
                "type": "file_change",
                "changes": [{"path": "a.py", "kind": "update"}],
                "status": "completed",
            },
        },
        {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 6}},
    )
    assert (events[0].exit_code, events[0].is_error, events[1].kind, events[1].target) == (
        2,
        True,
        EventKind.EDIT,
        "a.py",
    )
    assert (episodes[0].id, episodes[0].status, skipped) == ("t9", EpisodeStatus.SUCCESS, [])


def test_arguments_that_are_no_json_are_kept_as_they_are(capture: Read) -> None:
    call = item(type="function_call", name="f", arguments='{"command": "ls', call_id="c")
    events, _, _ = capture(codex, META, call)
    assert json.loads(events[0].text) == {"input": '{"command": "ls'}


def test_unknown_records_are_counted(capture: Read) -> None:
    _, _, skipped = capture(codex, META, {"type": "hologram", "payload": {}}, {"type": "world_state"})
    assert len(skipped) == 1
