"""SWE-agent's trajectories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from archivist.capture.formats import LogOrigin, SkippedRecord, read_log, swe_agent
from archivist.records import Episode, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def step(action: str, observation: str = "", **more: Any) -> dict[str, Any]:
    return {"action": action, "observation": observation, "response": "r", "thought": "t", **more}


def test_task_project_model_and_cost_are_found_wherever_they_stand() -> None:
    (episode,) = [each for each in read_log(FIXTURES / "swe-agent.traj") if isinstance(each, Episode)]
    assert episode.task == "weave(3) never returns\nIt hangs."
    assert (episode.project, episode.model, episode.extra["instance"]) == (
        "ada/loom",
        "gpt-4o",
        "ada__loom-42",
    )
    assert episode.usage is not None
    assert (episode.usage.cost_usd, episode.usage.extra) == (0.5, {"api_calls": 4})
    assert episode.status is EpisodeStatus.SUCCESS


def test_an_edit_names_the_open_file_and_is_an_error_when_refused() -> None:
    found = [each for each in read_log(FIXTURES / "swe-agent.traj") if isinstance(each, Event)]
    create, edit = [event for event in found if event.kind is EventKind.EDIT]
    assert (create.target, create.is_error) == ("repro.py", False)
    assert (edit.target, edit.is_error) == ("/ada__loom/repro.py", True)
    assert edit.extra["new"] == "import loom\nprint(loom.weave(3)"


def test_a_timeout_is_an_error() -> None:
    found = [each for each in read_log(FIXTURES / "swe-agent.traj") if isinstance(each, Event)]
    (run,) = [event for event in found if event.text == "python repro.py"]
    assert (run.is_error, run.extra) == (True, {"timed_out": True})


def test_the_order_of_the_keys_does_not_change_the_run(capture: Read) -> None:
    steps = [step("ls", "a.py")]
    history = [
        {"role": "system", "content": "Set."},
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": "r"},
    ]
    info = {"exit_status": "submitted (exit_cost)", "submission": "diff"}
    one = capture(swe_agent, document={"trajectory": steps, "history": history, "info": info})
    other = capture(swe_agent, document={"info": info, "history": history, "trajectory": steps})
    assert one == other
    assert [event.seq for event in one[0]] == [0, 1, 16, 17, 18]
    assert one[1][0].status is EpisodeStatus.PARTIAL


def test_the_editor_of_later_versions_is_read(capture: Read) -> None:
    action = "str_replace_editor str_replace /testbed/a.py --old_str 'x = 1' --new_str 'x = 2'"
    refused = "No replacement was performed, old_str `x = 1` did not appear verbatim in /testbed/a.py."
    events, _, _ = capture(
        swe_agent,
        document={
            "trajectory": [step(action, refused), step("str_replace_editor view /testbed/a.py", "1 x")]
        },
    )
    edit, view = [event for event in events if event.tool]
    assert (edit.kind, edit.target, edit.extra["old"], edit.is_error) == (
        EventKind.EDIT,
        "/testbed/a.py",
        "x = 1",
        True,
    )
    assert (view.kind, view.target) == (EventKind.TOOL_CALL, "/testbed/a.py")


def test_two_runs_of_one_task_have_two_ids(capture: Read) -> None:
    _, first, _ = capture(swe_agent, document={"trajectory": [step("ls", "a")]})
    _, second, _ = capture(swe_agent, document={"trajectory": [step("ls", "b")]})
    assert first[0].id != second[0].id


def test_a_step_without_an_action_is_only_talk(capture: Read) -> None:
    events, _, _ = capture(
        swe_agent, document={"trajectory": [step("", "Your output was not formatted correctly.")]}
    )
    assert [(event.kind, event.role) for event in events] == [
        (EventKind.MESSAGE, "assistant"),
        (EventKind.MESSAGE, "system"),
    ]


def test_a_log_without_steps_gives_no_run_unless_it_is_named(capture: Read) -> None:
    document = {"trajectory": [], "history": [{"role": "user", "content": "Go"}], "info": {}}
    _, episodes, skipped = capture(swe_agent, document=document)
    assert (episodes, len(skipped)) == ([], 1)
    _, episodes, _ = capture(swe_agent, document=document, origin=LogOrigin("x", run="mine"))
    assert episodes[0].task == "Go"
