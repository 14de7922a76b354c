"""OpenHands events: classic, SDK, and an evaluation's output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from archivist.capture.formats import SkippedRecord, openhands, read_log
from archivist.records import Episode, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def from_file(name: str) -> tuple[list[Event], Episode]:
    found = list(read_log(FIXTURES / name))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ][-1]


def did(number: int, action: str, **given: Any) -> dict[str, Any]:
    return {"id": number, "source": "agent", "action": action, "args": given}


def saw(cause: int, observation: str, content: str = "", **extras: Any) -> dict[str, Any]:
    return {
        "id": cause + 1,
        "source": "agent",
        "cause": cause,
        "observation": observation,
        "content": content,
        "extras": extras,
    }


def test_actions_and_observations_are_joined_by_cause() -> None:
    events, _ = from_file("openhands.json")
    run, edit = [event for event in events if event.tool]
    assert (run.tool, run.text, run.exit_code, run.duration_s) == ("execute_bash", "npm test", 127, 4.0)
    assert (edit.kind, edit.target, edit.extra["new"]) == (
        EventKind.EDIT,
        "/workspace/loom/shuttle.js",
        "slide()",
    )


def test_the_task_is_the_issue_and_usage_the_last_sum() -> None:
    _, episode = from_file("openhands.json")
    assert (episode.task, episode.project, episode.status) == (
        "The shuttle sticks",
        "loom",
        EpisodeStatus.SUCCESS,
    )
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.cached_tokens, episode.usage.cost_usd) == (
        200,
        150,
        0.02,
    )


def test_the_sdk_form_is_joined_by_tool_call() -> None:
    events, episode = from_file("openhands-sdk.jsonl")
    run, edit = [event for event in events if event.tool]
    assert (run.text, run.exit_code, run.is_error, run.extra["timed_out"]) == (
        "./grind corn",
        None,
        True,
        True,
    )
    assert (edit.target, edit.is_error, edit.output) == ("/work/mill.cfg", True, "Invalid path")
    assert (episode.task, episode.status) == ("Grind the corn", EpisodeStatus.FAILED)


def test_an_error_answers_its_action_and_a_rejection_fails_the_run(capture: Read) -> None:
    events, episodes, _ = capture(
        openhands,
        document=[
            did(1, "run", command="x"),
            saw(1, "error", "boom"),
            did(3, "reject", outputs={"reason": "no"}),
        ],
    )
    assert (events[0].output, events[0].is_error) == ("boom", True)
    assert episodes[0].status is EpisodeStatus.FAILED


def test_an_older_exit_code_stands_in_extras(capture: Read) -> None:
    events, _, _ = capture(openhands, did(1, "run", command="x"), saw(1, "run", "no", exit_code=2))
    assert (events[0].exit_code, events[0].is_error) == (2, True)


def test_states_tell_the_end(capture: Read) -> None:
    for state, status in (
        ("stopped", EpisodeStatus.ABORTED),
        ("error", EpisodeStatus.FAILED),
        ("finished", EpisodeStatus.SUCCESS),
    ):
        said = did(1, "message", content="hello")
        _, episodes, _ = capture(openhands, said, saw(1, "agent_state_changed", agent_state=state))
        assert episodes[0].status is status


def test_an_evaluation_holds_one_run_a_line(capture: Read) -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "instance_id": f"ada__kiln-{number}",
            "instance": {"problem_statement": f"Problem {number}"},
            "metadata": {"llm_config": {"model": "anthropic/claude-x"}},
            "history": [
                [did(1, "run", command="ls"), saw(1, "run", "a", exit_code=0)],
                [did(3, "finish"), saw(3, "null")],
            ],
            "metrics": {"accumulated_cost": 0.5},
            "error": "it crashed" if number == 2 else None,
        }

    events, episodes, _ = capture(openhands, row(1), row(2))
    assert [episode.task for episode in episodes] == ["Problem 1", "Problem 2"]
    assert [episode.status for episode in episodes] == [EpisodeStatus.SUCCESS, EpisodeStatus.FAILED]
    assert {episode.project for episode in episodes} == {"ada/kiln"}
    assert len({event.run for event in events}) == 2


def test_what_is_no_event_is_counted(capture: Read) -> None:
    _, _, skipped = capture(
        openhands, document=[did(1, "run", command="x"), {"id": 2}, 5, {"kind": "HologramEvent"}]
    )
    assert len(skipped) == 3
