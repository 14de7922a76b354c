"""OpenCode exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import SkippedRecord, opencode, read_log
from archivist.reading.calls import event_failure
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def from_file(path: Path) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(path))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ]


def exported(*parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    message = {"info": {"role": "assistant", "sessionID": "ses_1", **info}, "parts": list(parts)}
    return {"info": {"id": "ses_1", "projectID": "p", "directory": "/src/mill"}, "messages": [message]}


def called(tool: str, status: str = "completed", **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": tool, "callID": "c", "state": {"status": status, "input": {}, **state}}


def test_a_session_names_its_harness_its_model_and_the_models_maker() -> None:
    _, (episode,) = from_file(FIXTURES / "opencode.json")
    assert (episode.id, episode.agent, episode.project) == ("ses_kiln1", "opencode", "kiln")
    # The log names the service that was asked, which serves the models of several makers.
    assert (episode.provider, episode.model) == ("opencode", "claude-sonnet-4.5")
    assert (episode.status, episode.kind) == (EpisodeStatus.SUCCESS, EpisodeKind.ORCHESTRATOR_RUN)
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.cached_tokens) == (3 * 1010, 300)
    assert (episode.usage.output_tokens, episode.usage.cost_usd) == (3 * 65, 0.03)
    assert (episode.extra["agent_version"], episode.extra["cwd"]) == ("1.18.33", "/src/kiln")


def test_a_command_that_exits_with_an_error_has_failed_though_its_call_completed() -> None:
    events, _ = from_file(FIXTURES / "opencode.json")
    ran, missing, refused, edit, searched, task, passed = [event for event in events if event.tool]
    assert (ran.text, ran.exit_code, ran.is_error, ran.duration_s) == (
        "pytest tests/test_glaze.py", 1, True, 3.5,
    )  # fmt: skip
    assert ran.output == "E   ModuleNotFoundError: No module named 'glaze'\n"
    assert (missing.target, missing.is_error) == ("/src/kiln/src/glaize.py", True)
    assert refused.extra["rejected"] is True
    assert event_failure(refused) is None
    assert (edit.kind, edit.target, edit.extra["old"]) == (
        EventKind.EDIT, "/src/kiln/src/glaze.py", "def prase(",
    )  # fmt: skip
    assert (searched.is_error, task.extra["child"]) == (False, "ses_kiln2")
    assert (passed.exit_code, passed.is_error) == (0, False)


def test_parts_of_the_client_are_apart_and_none_counts_as_typed() -> None:
    events, _ = from_file(FIXTURES / "opencode.json")
    said = [(event.role, event.extra.get("typed")) for event in events if event.kind is EventKind.MESSAGE]
    assert said == [("user", None), ("system", None), ("assistant", None), ("assistant", None)]


def test_a_subagents_session_names_its_parent_and_nobody_typed_its_prompt(capture: Read) -> None:
    document = exported({"type": "text", "text": "Look for callers."}, role="user")
    document["info"]["parentID"] = "ses_0"
    events, (episode,), _ = capture(opencode, document=document)
    assert (episode.parent, episode.kind) == ("ses_0", EpisodeKind.SUBAGENT_RUN)
    assert "typed" not in events[0].extra


@pytest.mark.parametrize(
    ("part", "is_error", "mark"),
    [
        (called("bash", output="x\n<bash_metadata>\nbash tool terminated command after exceeding timeout"
                " 120000 ms\n</bash_metadata>", metadata={"exit": None}), True, "timed_out"),
        (called("bash", "error", error="Tool execution aborted"), False, "interrupted"),
        (called("bash", "error", error="The user has specified a rule which prevents you from using this"
                " specific tool call."), True, "rejected"),
        (called("invalid", output="The arguments provided to the tool are invalid: …"), True, ""),
        (called("bash", "running"), False, "result_missing"),
    ],
)  # fmt: skip
def test_each_end_of_a_call_is_told_apart(capture: Read, part: Any, is_error: bool, mark: str) -> None:
    (event,), _, _ = capture(opencode, document=exported(part))
    assert event.is_error is is_error
    assert not mark or event.extra[mark] is True


@pytest.mark.parametrize(
    ("error", "status"),
    [("MessageAbortedError", EpisodeStatus.ABORTED), ("APIError", EpisodeStatus.FAILED)],
)
def test_a_message_that_broke_off_ends_the_run(capture: Read, error: str, status: EpisodeStatus) -> None:
    document = exported({"type": "text", "text": "I begin"}, error={"name": error, "data": {"message": "x"}})
    _, (episode,), _ = capture(opencode, document=document)
    assert episode.status is status


def test_a_summary_of_the_client_is_no_message(capture: Read) -> None:
    (event,), _, _ = capture(opencode, document=exported({"type": "text", "text": "So far"}, summary=True))
    assert (event.kind, event.name) == (EventKind.LOG, "compaction")
