"""Copilot CLI sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import SkippedRecord, copilot_cli, read_log
from archivist.reading.calls import event_failure
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def from_file(path: Path) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(path))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ]


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "timestamp": "2026-03-02T09:00:00Z"}


def call(**end: Any) -> list[dict[str, Any]]:
    start = event("tool.execution_start", toolCallId="t", toolName="bash", arguments={"command": "make"})
    return [start, event("tool.execution_complete", toolCallId="t", **end)]


def test_a_session_names_its_harness_its_repository_and_its_model() -> None:
    _, (child, episode) = from_file(FIXTURES / "copilot-cli.jsonl")
    assert (episode.id, episode.agent, episode.project) == ("c0b1-kiln", "copilot-cli", "ada/kiln")
    assert (episode.provider, episode.model) == ("copilot-cli", "claude-sonnet-4.5")
    assert (episode.extra["branch"], episode.extra["cwd"]) == ("glaze", "/src/kiln")
    assert episode.status is EpisodeStatus.SUCCESS
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.cached_tokens) == (1500, 700)
    assert (child.id, child.parent, child.kind) == ("c0b1-kiln.a1", "c0b1-kiln", EpisodeKind.SUBAGENT_RUN)
    assert (child.task, child.status) == ("Find callers of parse", EpisodeStatus.SUCCESS)
    assert (child.project, child.extra["maker"]) == ("ada/kiln", "anthropic")


def test_calls_have_their_exit_codes_and_no_text_of_hooks() -> None:
    events, _ = from_file(FIXTURES / "copilot-cli.jsonl")
    ran, missing, refused, edit, task, passed = sorted(
        (each for each in events if each.tool and each.run == "c0b1-kiln"), key=lambda each: each.seq
    )
    assert (ran.text, ran.exit_code, ran.is_error) == ("pytest tests/test_glaze.py", 1, True)
    assert (ran.output, ran.duration_s) == ("E   ModuleNotFoundError: No module named 'glaze'", 3.0)
    assert (missing.target, missing.is_error) == ("/src/kiln/src/glaize.py", True)
    assert refused.extra["rejected"] is True
    assert event_failure(refused) is None
    assert (edit.kind, edit.extra["new"]) == (EventKind.EDIT, "def parse(")
    assert task.extra["child"] == "c0b1-kiln.a1"
    assert (passed.exit_code, passed.output) == (0, "1 passed")
    assert [each.text for each in events if each.extra.get("typed")] == [
        "Make the test of the glaze parser pass."
    ]


@pytest.mark.parametrize(
    ("end", "exit_code", "is_error", "output"),
    [
        ({"success": True, "result": {"content": "no\n<exited with exit code 2>"}}, 2, True, "no"),
        ({"success": True, "result": {"content": "no\n<shellId: 3 completed with exit code 0>"}}, 0, False,
         "no"),
        ({"success": True, "result": {"content": "ok\n\nTool \"bash\" succeeded. Additional guidance from"
          " postToolUse hooks:\nx"}}, None, False, "ok"),
        ({"success": False, "error": {"message": "no such tool", "code": "failure"}}, None, True,
         "no such tool"),
    ],
)  # fmt: skip
def test_the_end_of_a_command_is_read_where_the_client_wrote_it(
    capture: Read, end: Any, exit_code: int | None, is_error: bool, output: str
) -> None:
    (found,), _, _ = capture(copilot_cli, *call(**end))
    assert (found.exit_code, found.is_error, found.output) == (exit_code, is_error, output)


def test_a_new_file_is_an_edit(capture: Read) -> None:
    made = {"path": "/src/mill/a.py", "file_text": "x = 1"}
    row = event("tool.execution_start", toolCallId="t", toolName="create", arguments=made)
    (found,), _, _ = capture(copilot_cli, row)
    assert (found.kind, found.target, found.extra["new"]) == (EventKind.EDIT, "/src/mill/a.py", "x = 1")


def test_an_abort_and_an_error_of_the_service_end_the_run(capture: Read) -> None:
    said = event("user.message", content="Do it")
    _, (aborted,), _ = capture(copilot_cli, said, event("abort", reason="user initiated"))
    _, (failed,), _ = capture(copilot_cli, said, event("session.error", message="overloaded"))
    assert (aborted.status, failed.status) == (EpisodeStatus.ABORTED, EpisodeStatus.FAILED)


@pytest.mark.parametrize(
    "said",
    [
        '<command with shellId: 2 is still running after 30 seconds. Use read_bash with shellId "2".>',
        "compiling\n<command started in background with shellId: 2>",
    ],
)
def test_a_command_that_runs_on_has_the_end_that_a_later_call_reads(capture: Read, said: str) -> None:
    reads = event("tool.execution_start", toolCallId="u", toolName="read_bash", arguments={"shellId": "2"})
    read = {"content": "2 failed\n<exited with exit code 1>"}
    done = event("tool.execution_complete", toolCallId="u", success=True, result=read)
    events, _, _ = capture(copilot_cli, *call(success=True, result={"content": said}), reads, done)
    began, ended = sorted((each for each in events if each.tool), key=lambda each: each.seq)
    assert (began.text, began.exit_code, began.extra.get("running")) == ("make", None, True)
    assert (ended.text, ended.exit_code, ended.is_error) == ("make", 1, True)
