"""ATIF in and out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import LogOrigin, SkippedRecord, atif, read_log
from archivist.exchange.files import to_atif
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"
CALLS = (EventKind.TOOL_CALL, EventKind.EDIT)
STEP_KEYS = {"step_id", "timestamp", "source", "message", "tool_calls", "observation", "extra"}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": number, "message": "", **step} for number, step in enumerate(steps, 1)]
    return {
        "schema_version": "ATIF-v1.5",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": numbered,
        **more,
    }


def acted(call_id: str, content: Any, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {
        "source": "agent",
        "tool_calls": [{"tool_call_id": call_id, "function_name": name, "arguments": given}],
        "observation": {"results": [{"source_call_id": call_id, "content": content}]},
    }


def from_file(name: str) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(FIXTURES / name))
    events = sorted((each for each in found if isinstance(each, Event)), key=lambda event: event.seq)
    return events, [each for each in found if isinstance(each, Episode)]


def test_results_are_joined_with_their_calls_in_any_order() -> None:
    events, _ = from_file("atif.json")
    run, edit = [event for event in events if event.tool][:2]
    assert (run.output, run.exit_code, run.is_error) == ("./sharpen: Permission denied", 126, True)
    assert (edit.kind, edit.target, edit.is_error) == (EventKind.EDIT, "plough.cfg", True)


def test_an_embedded_subagent_is_a_child_and_comes_first() -> None:
    _, (child, main) = from_file("atif.json")
    assert (child.parent, child.kind, child.model) == (main.id, EpisodeKind.SUBAGENT_RUN, "gpt-5-mini")
    assert (main.id, main.session, main.task) == ("atif-1-main", "atif-1", "Sharpen the plough")
    assert main.status is EpisodeStatus.SUCCESS


def test_a_call_in_the_text_of_a_message_is_joined_with_the_observation() -> None:
    events, _ = from_file("atif.json")
    (call,) = [event for event in events if event.tool == "execute_bash"]
    assert (call.text, call.exit_code, call.output) == ("chmod +x sharpen", 0, "")


def test_reasoning_is_left_out() -> None:
    events, _ = from_file("atif.json")
    assert not [event for event in events if "hidden" in event.text]


def test_copied_context_is_left_out_but_tells_the_task(capture: Read) -> None:
    copied = {
        "source": "user",
        "message": "Task Description:\nDig\n\nCurrent terminal state:\n$",
        "is_copied_context": True,
    }
    document = trajectory(copied, {"source": "agent", "message": "Dug."})
    document["agent"]["extra"] = {"continuation_index": 1}
    events, episodes, _ = capture(atif, document=document)
    assert [event.text for event in events] == ["Dug."]
    assert (episodes[0].id, episodes[0].session, episodes[0].task) == ("s.cont-1", "s", "Dig")


@pytest.mark.parametrize(
    ("steps", "more", "status"),
    [
        ([acted("c", "x", command="ls")], {}, EpisodeStatus.ABORTED),
        ([acted("c", "x", "mark_task_complete")], {}, EpisodeStatus.SUCCESS),
        ([acted("c", "x", command="ls")], {"continued_trajectory_ref": "next.json"}, EpisodeStatus.PARTIAL),
        ([acted("c", "x", command="ls")], {"extra": {"success": False}}, EpisodeStatus.FAILED),
        ([{"source": "agent", "message": "Done."}], {}, EpisodeStatus.SUCCESS),
    ],
)
def test_the_end_decides_the_status(
    capture: Read, steps: list[Any], more: dict[str, Any], status: EpisodeStatus
) -> None:
    _, episodes, _ = capture(atif, document=trajectory(*steps, **more))
    assert episodes[0].status is status


def test_one_terminal_after_several_calls_belongs_to_the_last(capture: Read) -> None:
    calls = [
        {"tool_call_id": f"c{n}", "function_name": "bash_command", "arguments": {"keystrokes": f"cmd{n}\n"}}
        for n in (1, 2)
    ]
    step = {
        "source": "agent",
        "tool_calls": calls,
        "observation": {"results": [{"content": "$ cmd1\n$ cmd2\n"}]},
    }
    events, _, _ = capture(atif, document=trajectory(step))
    assert [(event.text, event.output) for event in events] == [("cmd1", ""), ("cmd2", "$ cmd1\n$ cmd2\n")]


def test_results_that_come_before_their_calls_are_joined_too(capture: Read) -> None:
    early = {
        "source": "system",
        "message": "Tool result for t1",
        "observation": {"content": "boom", "result": {"success": False}},
    }
    late = {"source": "agent", "tool_calls": [{"id": "t1", "name": "Bash", "arguments": {"command": "ls"}}]}
    events, _, _ = capture(atif, document=trajectory(early, late))
    assert [(event.text, event.output, event.is_error) for event in events if event.tool] == [
        ("ls", "boom", True)
    ]


def test_a_check_given_as_an_object_is_a_call(capture: Read) -> None:
    content = {"command": "make check", "passed": False, "output": "1 failed"}
    step = {
        "source": "system",
        "message": "Tool execution results",
        "observation": {"results": [{"content": content}]},
    }
    events, _, _ = capture(atif, document=trajectory(step))
    assert [(event.text, event.output, event.is_error) for event in events] == [
        ("make check", "1 failed", True)
    ]


def test_keys_in_any_order_give_the_same_calls(capture: Read) -> None:
    whole = json.loads((FIXTURES / "atif.json").read_text())
    events, _, _ = capture(atif, document=whole)
    turned, episodes, _ = capture(atif, document=dict(reversed(whole.items())))
    assert [(event.tool, event.text, event.output) for event in events] == [
        (e.tool, e.text, e.output) for e in turned
    ]
    assert episodes[-1].session == "atif-1"


@pytest.mark.parametrize("log", sorted(path.name for path in FIXTURES.iterdir()))
def test_what_goes_out_comes_back_with_the_same_calls(log: str) -> None:
    events, episodes = from_file(log)
    for episode in episodes:
        written = json.dumps(to_atif(episode, events)).encode()
        found = list(atif.read(io.BytesIO(written), LogOrigin()))
        back = [each for each in found if isinstance(each, Event)]
        assert [_call(event) for event in back if event.kind in CALLS] == [
            _call(event) for event in events if event.run == episode.id and event.kind in CALLS
        ]
        (again,) = [each for each in found if isinstance(each, Episode)]
        assert (again.id, again.task, again.status, again.model) == (
            episode.id,
            episode.task,
            episode.status,
            episode.model,
        )


def _call(event: Event) -> tuple[object, ...]:
    return (
        event.kind,
        event.tool,
        event.target,
        event.text,
        event.output,
        event.exit_code,
        event.is_error,
        event.duration_s,
    )


@pytest.mark.parametrize("log", sorted(path.name for path in FIXTURES.iterdir()))
def test_what_goes_out_keeps_the_rules_of_the_format(log: str) -> None:
    events, episodes = from_file(log)
    for episode in episodes:
        written = to_atif(episode, events)
        assert written["schema_version"] == "ATIF-v1.8"
        assert written.keys() <= {
            "schema_version",
            "session_id",
            "trajectory_id",
            "agent",
            "steps",
            "final_metrics",
            "extra",
        }
        assert written["agent"].keys() <= {"name", "version", "model_name"}
        assert all(isinstance(value, str) and value for value in written["agent"].values())
        assert [step["step_id"] for step in written["steps"]] == list(range(1, len(written["steps"]) + 1))
        for step in written["steps"]:
            assert step.keys() <= STEP_KEYS
            assert step["source"] in ("system", "user", "agent")
            assert isinstance(step["message"], str)
            ids = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", []))
            results = step.get("observation", {}).get("results", [])
            assert all(result["source_call_id"] in ids for result in results)
            assert not ids or step["source"] == "agent"


def test_an_episode_without_events_still_has_a_step() -> None:
    written = to_atif(Episode(id="r", task="Dig"), [])
    assert written["steps"] == [{"step_id": 1, "source": "user", "message": "Dig"}]


def test_nested_subagents_have_a_limit(capture: Read) -> None:
    inner = trajectory({"source": "user", "message": "x"})
    for _ in range(12):
        inner = trajectory({"source": "user", "message": "x"}, subagent_trajectories=[inner])
    _, episodes, skipped = capture(atif, document=inner)
    assert len(episodes) == 9
    assert skipped[0].reason == "nested too deeply"
