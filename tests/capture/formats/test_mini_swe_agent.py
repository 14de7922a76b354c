"""mini-swe-agent's trajectories, version 1 and 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archivist.capture.formats import SkippedRecord, mini_swe_agent, read_log
from archivist.records import Episode, EpisodeStatus, Event

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def from_file(name: str) -> tuple[list[Event], Episode]:
    found = list(read_log(FIXTURES / name))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ][-1]


def test_version_2_gives_calls_with_codes_and_durations() -> None:
    events, _ = from_file("mini-swe-agent-2.traj.json")
    calls = [(event.target, event.exit_code, event.duration_s) for event in events if event.tool]
    assert calls == [
        ("python -m pytest -q", 127, 1.5),
        ("git log -1", 0, 0.5),
        ("python3 -m pytest -q", -1, 60.0),
    ]


def test_version_2_tells_a_timeout_by_its_exception() -> None:
    events, _ = from_file("mini-swe-agent-2.traj.json")
    last = [event for event in events if event.tool][-1]
    assert last.is_error
    assert last.extra["timed_out"] is True
    assert "timed out after 60 seconds" in str(last.extra["exception"])


def test_version_2_names_task_project_model_and_usage() -> None:
    _, episode = from_file("mini-swe-agent-2.traj.json")
    assert episode.task == "Bricks are counted twice\nSee count()."
    assert (episode.project, episode.extra["instance"]) == ("ada/kiln", "ada__kiln-7")
    assert (episode.provider, episode.model, episode.status) == (
        "mini-swe-agent",
        "deepseek-chat",
        EpisodeStatus.SUCCESS,
    )
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.cached_tokens, episode.usage.cost_usd) == (
        1000,
        800,
        0.03,
    )


def test_version_1_reads_the_fenced_command_and_the_answer_to_it() -> None:
    events, episode = from_file("mini-swe-agent-1.traj.json")
    first, second = [event for event in events if event.tool]
    assert (first.text, first.target, first.exit_code) == (
        "cd /app && wc -l bricks.txt",
        "wc -l bricks.txt",
        1,
    )
    assert first.output == "wc: bricks.txt: No such file or directory"
    assert (second.output, second.is_error, second.extra) == ("zzz", True, {"timed_out": True})
    assert (episode.task, episode.status) == ("Count the bricks", EpisodeStatus.FAILED)


def test_the_harness_is_not_the_user() -> None:
    events, _ = from_file("mini-swe-agent-1.traj.json")
    (complaint,) = [event for event in events if event.name == "harness"]
    assert complaint.role == "system"


def test_two_runs_of_one_task_have_two_ids_and_a_rename_changes_nothing(tmp_path: Path) -> None:
    data = (FIXTURES / "mini-swe-agent-2.traj.json").read_text()
    (tmp_path / "a.json").write_text(data)
    (tmp_path / "b.json").write_text(data.replace('"r1770000000.0"', '"another"'))
    ids = {
        [each for each in read_log(path) if isinstance(each, Episode)][-1].id
        for path in (tmp_path / "a.json", tmp_path / "b.json", FIXTURES / "mini-swe-agent-2.traj.json")
    }
    assert len(ids) == 2


def test_the_instance_is_told_by_the_image_when_it_is_not_named(capture: Read) -> None:
    image = "docker.io/swebench/sweb.eval.x86_64.ada_1776_kiln-7:latest"
    document = {
        "info": {"config": {"environment": {"image": image}}},
        "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
    }
    _, episodes, _ = capture(mini_swe_agent, document=document)
    assert episodes[0].project == "ada/kiln"


def test_replies_of_the_responses_interface_are_read(capture: Read) -> None:
    reply: dict[str, Any] = {
        "object": "response",
        "id": "resp_1",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "Look."}]},
            {
                "type": "function_call",
                "name": "bash",
                "arguments": json.dumps({"command": "ls"}),
                "call_id": "c1",
            },
        ],
        "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}]},
    }
    result = {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "<returncode>0</returncode>\n<output>\na\n</output>",
    }
    events, _, _ = capture(
        mini_swe_agent, document={"messages": [{"role": "user", "content": "x"}, reply, result]}
    )
    assert [event.text for event in events] == ["x", "Look.", "ls"]
    assert (events[2].exit_code, events[2].output) == (0, "a")


def test_elements_that_are_no_messages_are_counted(capture: Read) -> None:
    document = {"messages": [None, {"role": "assistant", "content": "y"}, 7]}
    _, episodes, skipped = capture(mini_swe_agent, document=document)
    assert len(episodes) == 1
    assert [each.where for each in skipped] == ["messages[0]", "messages[2]"]
