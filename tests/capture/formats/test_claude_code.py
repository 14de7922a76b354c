"""Claude Code's native transcripts and stream-json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import SkippedRecord, claude_code, read_log
from archivist.reading.calls import event_failure
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def said(kind: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": "s", "message": {"role": kind, "content": list(blocks)}, **more}


def use(call_id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def got(call_id: str, content: Any, *, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def from_file(name: str) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(FIXTURES / name))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ]


def test_a_native_session_is_told_by_its_own_lines() -> None:
    _, episodes = from_file("claude-code-native.jsonl")
    main = episodes[-1]
    assert main.id == main.session == "6f0a7a52-1111-4222-8333-944455556666"
    assert main.task == "Make the kiln's temperature test pass"
    assert (main.project, main.agent, main.provider, main.model) == (
        "kiln",
        "claude-code",
        "claude-code",
        "claude-sonnet-4-5",
    )
    assert main.status is EpisodeStatus.SUCCESS
    assert (main.extra["branch"], main.extra["maker"]) == ("main", "anthropic")


def test_a_reply_spread_over_lines_is_counted_once() -> None:
    _, episodes = from_file("claude-code-native.jsonl")
    usage = episodes[-1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (4 * 1110, 4 * 20, 4 * 1000)


def test_a_failed_command_has_its_code_output_and_duration() -> None:
    events, _ = from_file("claude-code-native.jsonl")
    failed = next(event for event in events if event.is_error)
    assert (failed.exit_code, failed.duration_s) == (1, 5.0)
    assert failed.output == "E   assert 21 == 20\n1 failed in 0.12s"
    assert failed.target == "pytest -q tests/test_heat.py"


def test_a_command_without_error_exited_zero() -> None:
    events, _ = from_file("claude-code-native.jsonl")
    assert [event.exit_code for event in events if event.tool == "Bash"] == [1, 0]


def test_thinking_is_left_out() -> None:
    events, _ = from_file("claude-code-native.jsonl")
    assert not [event for event in events if "hidden" in event.text]


def test_a_sidechain_is_a_run_of_its_own() -> None:
    events, episodes = from_file("claude-code-native.jsonl")
    child, main = episodes
    assert (child.parent, child.kind, child.task) == (main.id, EpisodeKind.SUBAGENT_RUN, "Review heat.py")
    assert child.id == f"{main.id}.ab12"
    assert [event.tool for event in events if event.run == child.id and event.tool] == ["Read"]
    assert next(event for event in events if event.tool == "Task").extra["child"] == child.id


def test_a_printed_session_ends_with_its_result() -> None:
    _, episodes = from_file("claude-code-stream.jsonl")
    child, main = episodes
    assert main.status is EpisodeStatus.SUCCESS
    usage = main.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (3250, 400, 0.25)
    assert (child.parent, child.task, child.status) == (main.id, "Look for weft", EpisodeStatus.SUCCESS)
    assert child.project == main.project == "loom"


def test_a_sidechain_without_agent_id_is_followed_through_its_parents(capture: Read) -> None:
    events, episodes, _ = capture(
        claude_code,
        said("user", words("go"), uuid="u1"),
        said("user", words("one"), uuid="aaaaaaaa1", parentUuid=None, isSidechain=True),
        said("user", words("two"), uuid="bbbbbbbb1", parentUuid=None, isSidechain=True),
        said("assistant", words("of one"), uuid="aaaaaaaa2", parentUuid="aaaaaaaa1", isSidechain=True),
    )
    assert [episode.id for episode in episodes] == ["s.aaaaaaaa", "s.bbbbbbbb", "s"]
    assert [event.text for event in events if event.run == "s.aaaaaaaa"] == ["one", "of one"]


def test_a_line_that_comes_twice_counts_once(capture: Read) -> None:
    row = said("user", words("go"), uuid="u1")
    events, _, _ = capture(claude_code, row, row)
    assert len(events) == 1


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ([said("user", words("[Request interrupted by user]"))], EpisodeStatus.ABORTED),
        ([said("assistant", words("Done."))], EpisodeStatus.SUCCESS),
        ([said("assistant", use("t", command="ls"))], EpisodeStatus.ABORTED),
        ([said("assistant", use("t", command="ls")), said("user", got("t", "x"))], EpisodeStatus.ABORTED),
        ([said("assistant", words("API Error: 529"), isApiErrorMessage=True)], EpisodeStatus.FAILED),
        ([{"type": "result", "subtype": "error_max_turns", "is_error": False}], EpisodeStatus.PARTIAL),
        ([{"type": "result", "subtype": "success", "is_error": True}], EpisodeStatus.FAILED),
        (
            [
                {"type": "result", "subtype": "success", "is_error": False},
                said("assistant", use("t", command="ls")),
            ],
            EpisodeStatus.ABORTED,
        ),
    ],
)
def test_the_end_decides_the_status(capture: Read, ending: list[Any], status: EpisodeStatus) -> None:
    _, episodes, _ = capture(claude_code, said("user", words("go")), *ending)
    assert episodes[-1].status is status


def test_a_printed_session_without_result_was_cut_off(capture: Read) -> None:
    init = {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x", "cwd": "/x/kiln"}
    _, episodes, _ = capture(claude_code, init, said("assistant", words("Let me look.")))
    assert episodes[-1].status is EpisodeStatus.ABORTED


def test_what_the_client_says_is_not_the_user(capture: Read) -> None:
    events, episodes, _ = capture(
        claude_code,
        said(
            "user",
            words("This session is being continued from a previous conversation that ran out of context."),
        ),
        said("user", words("<system-reminder>be nice</system-reminder>")),
        said("user", words("Caveat: …"), isMeta=True),
        said("user", words("<command-name>/review</command-name><command-args>heat.py</command-args>")),
        {
            "type": "attachment",
            "sessionId": "s",
            "attachment": {"type": "queued_command", "prompt": "and be quick"},
        },
    )
    assert [(event.kind, event.role) for event in events[:3]] == [
        (EventKind.LOG, ""),
        (EventKind.MESSAGE, "system"),
        (EventKind.MESSAGE, "system"),
    ]
    assert [event.text for event in events if event.role == "user"] == ["/review heat.py", "and be quick"]
    assert episodes[-1].task == "/review heat.py"


def test_a_refused_call_is_marked(capture: Read) -> None:
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    events, episodes, _ = capture(
        claude_code,
        said("assistant", use("t", command="rm x")),
        said("user", got("t", refusal, is_error=True)),
    )
    assert events[0].extra["rejected"] is True
    assert episodes[-1].status is EpisodeStatus.ABORTED


REFUSAL = "The user doesn't want to proceed with this tool use. The tool use was rejected."


@pytest.mark.parametrize(
    ("tool", "output", "is_error"),
    [
        ("Bash", REFUSAL, False),
        ("Bash", f"Exit code 2\n{REFUSAL}", True),
        ("mcp__db__query", f"{REFUSAL}\nERROR: relation users does not exist", True),
    ],
)
def test_a_tool_that_prints_a_refusal_was_not_refused(
    capture: Read, tool: str, output: str, is_error: bool
) -> None:
    events, _, _ = capture(
        claude_code,
        said("assistant", use("t", tool, command="make check")),
        said("user", got("t", output, is_error=is_error)),
    )
    assert "rejected" not in events[0].extra
    assert (event_failure(events[0]) is not None) == is_error


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ("To tell you how to proceed, the user said:\nKeep the old flag.", ["Keep the old flag."]),
        ("The user provided the following reason for the rejection:  Keep it.", ["Keep it."]),
        ("the user said:\nNo.\n\nNote: The user's next message may contain a correction.", ["No."]),
        ("the user said:\nThe user wants to clarify these questions.\n- Which one?", []),
        ("STOP what you are doing and wait for the user to tell you how to proceed.", []),
    ],
)
def test_the_reason_of_a_refusal_is_what_the_user_typed(capture: Read, told: str, typed: list[str]) -> None:
    refusal = f"The user doesn't want to proceed with this tool use. The tool use was rejected. {told}"
    line = {**said("user", got("t", refusal, is_error=True)), "toolDenialKind": "user-rejected"}
    events, _, _ = capture(claude_code, said("assistant", use("t", command="rm x")), line)
    assert [event.text for event in events if event.role == "user" and event.extra["typed"]] == typed


def test_a_result_without_its_call_is_kept(capture: Read) -> None:
    events, _, _ = capture(claude_code, said("user", got("gone", "output")))
    assert events[0].output == "output"
    assert events[0].extra["call_missing"] is True


def test_unknown_records_are_counted_and_housekeeping_is_not(capture: Read) -> None:
    _, _, skipped = capture(
        claude_code,
        said("user", words("go")),
        {"type": "hologram"},
        {"type": "queue-operation"},
        {},
        '{"type": "us',
    )
    assert [each.where for each in skipped] == ["line 2", "line 4", "line 5"]
    assert "hologram" in skipped[0].reason


def test_a_command_of_the_clients_own_leaves_the_last_word_to_the_agent(capture: Read) -> None:
    """A custom command is a prompt: the agent owes an answer."""
    command = words("<command-name>/{}</command-name><command-args></command-args>")

    def status(*more: dict[str, Any], name: str = "context") -> EpisodeStatus:
        asked = {**command, "text": command["text"].format(name)}
        begun = [said("user", words("Heat it")), said("assistant", words("It is hot."))]
        _, (episode,), _ = capture(claude_code, *begun, said("user", asked), *more)
        return episode.status

    printed = said("user", words("<local-command-stdout>12 % used</local-command-stdout>"))
    assert status(printed) is EpisodeStatus.SUCCESS
    assert status() is EpisodeStatus.ABORTED
    assert status(name="exit") is EpisodeStatus.SUCCESS
    assert status(printed, said("user", words("Go on"))) is EpisodeStatus.ABORTED
    assert status(said("user", words("Go on")), printed) is EpisodeStatus.ABORTED
