"""ATIF in and out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.capture.formats import LogOrigin, SkippedRecord, atif, read_log
from archivist.capture.values import clip
from archivist.exchange.files import to_atif
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind, Finding, Usage

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"
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


def back_from(written: dict[str, Any]) -> tuple[list[Event], Episode]:
    found = list(atif.read(io.BytesIO(json.dumps(written).encode()), LogOrigin()))
    assert not [each for each in found if isinstance(each, SkippedRecord)]
    (episode,) = [each for each in found if isinstance(each, Episode)]
    return [each for each in found if isinstance(each, Event)], episode


@pytest.mark.req("N9")
@pytest.mark.parametrize("log", sorted(path.name for path in FIXTURES.iterdir()))
def test_what_goes_out_comes_back_the_same(log: str) -> None:
    events, episodes = from_file(log)
    for episode in episodes:
        written = to_atif(episode, events)
        back, again = back_from(written)
        assert back == [event for event in events if event.run == episode.id]
        assert again == replace(episode, trajectories=())
        assert to_atif(again, back) == written


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    [
        "Exit code 1\nboom", '{"command": "ls"}', '{"input": ""}', " x ", "<returncode>2</returncode>",
        "x" * 30_000, "command timed out after 3 seconds", "*** Begin Patch\n*** Update File: a\n+b",
    ]
)  # fmt: skip
TIMES = st.none() | st.datetimes(min_value=datetime(1990, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
FACTS = st.dictionaries(
    TEXTS, TEXTS | st.booleans() | st.integers(-9, 9) | st.lists(TEXTS, max_size=2), max_size=3
)
EVENTS = st.builds(
    Event,
    run=st.just("r"), seq=st.integers(0, 1_000), kind=st.sampled_from(EventKind), time=TIMES,
    name=TEXTS, agent=TEXTS, role=TEXTS | st.sampled_from(["user", "assistant", "system"]), phase=TEXTS,
    tool=TEXTS, target=TEXTS, text=TEXTS, output=TEXTS,
    exit_code=st.none() | st.integers(-1, 255), is_error=st.booleans(),
    duration_s=st.none() | st.floats(0, 1e6), extra=FACTS,
    findings=st.lists(st.builds(Finding, description=TEXTS, file=TEXTS), max_size=2).map(tuple),
)  # fmt: skip
EPISODES = st.builds(
    Episode,
    id=st.just("r"), parent=TEXTS, project=TEXTS, task=TEXTS, session=TEXTS, agent=TEXTS, model=TEXTS,
    provider=TEXTS | st.just("openrouter"), kind=st.sampled_from(EpisodeKind), started=TIMES, finished=TIMES,
    status=st.sampled_from(EpisodeStatus), summary=TEXTS, domain=TEXTS, extra=FACTS,
    tags=st.lists(TEXTS, max_size=2).map(tuple),
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 9), cost_usd=st.floats(0, 9)),
)  # fmt: skip


@pytest.mark.req("N9")
@given(EPISODES, st.lists(EVENTS, max_size=4, unique_by=lambda event: event.seq))
def test_out_and_in_and_out_again_is_the_same_document(episode: Episode, events: list[Event]) -> None:
    once = [replace(event, text=clip(event.text), output=clip(event.output)) for event in events]
    written = to_atif(episode, once)
    back, again = back_from(written)
    assert to_atif(again, back) == written
    assert back == sorted(once, key=lambda event: event.seq)


def test_a_field_that_is_none_of_ours_costs_its_step_only() -> None:
    events = [Event(run="r", seq=seq, kind=EventKind.MESSAGE, text="Dug.") for seq in range(2)]
    written = to_atif(Episode(id="r", task="Dig"), events)
    written["steps"][0]["extra"]["archivist"]["kind"] = "dance"
    written["extra"]["archivist"]["status"] = "asleep"
    found = list(atif.read(io.BytesIO(json.dumps(written).encode()), LogOrigin()))
    skipped = [each.where for each in found if isinstance(each, SkippedRecord)]
    assert skipped == ["steps[0]", "extra.archivist"]
    assert [each.seq for each in found if isinstance(each, Event)] == [1]
    assert [each.id for each in found if isinstance(each, Episode)] == ["r"]


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
    assert [(step["source"], step["message"]) for step in written["steps"]] == [("user", "Dig")]
    assert back_from(written)[0] == []


def test_nested_subagents_have_a_limit(capture: Read) -> None:
    inner = trajectory({"source": "user", "message": "x"})
    for _ in range(12):
        inner = trajectory({"source": "user", "message": "x"}, subagent_trajectories=[inner])
    _, episodes, skipped = capture(atif, document=inner)
    assert len(episodes) == 9
    assert skipped[0].reason == "nested too deeply"


def _noted(event: str, message: str, **extra: Any) -> dict[str, Any]:
    return {"source": "system", "message": message, "extra": {"event_type": event, **extra}}


def _verified(command: str, *, passed: bool, output: str) -> dict[str, Any]:
    result = {"content": {"command": command, "passed": passed, "output": output}}
    return {"source": "system", "message": "Tool execution results", "observation": {"results": [result]}}


@pytest.mark.req("A1", "A15")
def test_an_orchestrators_subtasks_are_runs_of_its_task(tmp_path: Path) -> None:
    log = trajectory(
        _noted("session_start", "Session started: s"),
        _verified("bun run typecheck", passed=False, output="error TS6133"),
        _noted("task_selected", "Selected task: Wire the commands", task_id="oa-abafe0"),
        _noted("subtask_start", "Starting subtask: ## Fix types\n\nRun it.", subtask_id="oa-abafe0-fix"),
        _verified("bun run typecheck", passed=False, output="error TS6133"),
        _noted("subtask_failed", "Subtask failed: red", subtask_id="oa-abafe0-fix", error="types are red"),
        _noted("subtask_start", "Starting subtask: Wire the commands", subtaskId="oa-abafe0-001"),
        _verified("bun test", passed=True, output="3 pass"),
        _noted("subtask_complete", "Subtask complete", subtaskId="oa-abafe0-001"),
        _verified("bun run typecheck", passed=False, output="error TS6133"),
        _noted("session_complete", "Session failed: Verification failed after healing", success=False),
    )
    path = tmp_path / "s.json"
    path.write_text(json.dumps(log))
    found = list(read_log(path))
    fix, wire, main = [each for each in found if isinstance(each, Episode)]
    assert [each.task for each in (fix, wire, main)] == ["oa-abafe0"] * 3
    assert [each.subtask for each in (fix, wire, main)] == ["oa-abafe0-fix", "oa-abafe0-001", ""]
    assert [each.parent for each in (fix, wire, main)] == [main.id, main.id, ""]
    assert {fix.kind, wire.kind} == {EpisodeKind.SUBAGENT_RUN}
    assert (fix.status, wire.status) == (EpisodeStatus.FAILED, EpisodeStatus.SUCCESS)
    assert (main.status, main.extra["title"]) == (EpisodeStatus.FAILED, "Wire the commands")
    calls = [(each.run, each.text) for each in found if isinstance(each, Event) and each.tool]
    assert calls == [
        ("s", "bun run typecheck"),
        ("s.oa-abafe0-fix", "bun run typecheck"),
        ("s.oa-abafe0-001", "bun test"),
        ("s", "bun run typecheck"),
    ]
    ends = {each.run: each.text for each in found if isinstance(each, Event) and each.kind == "finish"}
    assert ends == {"s.oa-abafe0-fix": "types are red", "s": "Verification failed after healing"}
