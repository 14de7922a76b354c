"""Gemini CLI chats."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import LogOrigin, SkippedRecord, gemini_cli, read_log
from archivist.reading.calls import event_failure
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"


def from_file(path: Path) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(path))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ]


META = {"sessionId": "g-1", "projectHash": "00", "startTime": "2026-03-02T09:00:00Z", "kind": "main"}


def shell(output: str, status: str = "success") -> dict[str, Any]:
    result = [{"functionResponse": {"response": {"output": output}}}]
    call = {"name": "run_shell_command", "args": {"command": "make"}, "status": status, "result": result}
    return {"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}


@pytest.mark.parametrize("name", ["gemini-cli.json", "gemini-cli.jsonl"])
def test_both_forms_of_a_chat_tell_the_same(name: str) -> None:
    events, (episode,) = from_file(FIXTURES / name)
    assert (episode.id, episode.agent) == ("5f0c2d11-kiln", "gemini-cli")
    assert (episode.provider, episode.model) == ("gemini-cli", "gemini-3-flash")
    assert (episode.task[:16], episode.status) == ("Make the test of", EpisodeStatus.SUCCESS)
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.output_tokens) == (1500, 144)
    ran, missing, refused, edit, searched, passed, asked = [event for event in events if event.tool]
    assert (ran.text, ran.exit_code, ran.is_error) == ("pytest tests/test_glaze.py", 1, True)
    assert ran.output == "E   ModuleNotFoundError: No module named 'glaze'"
    assert (missing.target, missing.is_error) == ("src/glaize.py", True)
    assert refused.extra["rejected"] is True
    assert event_failure(refused) is None
    assert (edit.kind, edit.target, edit.extra["new"]) == (EventKind.EDIT, "src/glaze.py", "def parse(")
    assert (searched.is_error, passed.exit_code, passed.output) == (False, 0, "1 passed")
    assert asked.extra["child"] == "9c1e"


def test_what_the_user_typed_stands_apart_from_hooks_and_named_files() -> None:
    events, _ = from_file(FIXTURES / "gemini-cli.jsonl")
    typed = [event.text for event in events if event.extra.get("typed")]
    assert typed == [
        "Make the test of the glaze parser pass, see @notes.md", "Leave build alone, run only this test.",
    ]  # fmt: skip
    assert not [event for event in events if "Injected" in event.text and event.role == "user"]
    assert not [event for event in events if "Injected" in event.output]


@pytest.mark.parametrize(
    "asked",
    [
        "<hook_context>Injected</hook_context>\n\nDo it",
        "&lt;hook_context&gt;Injected&lt;/hook_context&gt;\n\nDo it",
        "Do it\n<hook_context>Injected, and then cut",
    ],
)
def test_what_hooks_injected_is_no_part_of_the_prompt_in_any_form(capture: Read, asked: str) -> None:
    said = {"id": "u", "type": "user", "content": [{"text": asked}]}
    events, (episode,), _ = capture(gemini_cli, META, said)
    assert [event.text for event in events if event.role == "user"] == ["Do it"]
    assert episode.task == "Do it"


def test_a_rewritten_message_counts_once_and_a_rewind_undoes_nothing(capture: Read) -> None:
    say = {"id": "u", "type": "user", "content": "Do it"}
    rows = [META, say, say, {"$set": {"messages": [say]}}, {"$rewindTo": "u"}, shell("Output: ok")]
    events, _, skipped = capture(gemini_cli, *rows)
    assert [event.text for event in events] == ["Do it", "rewind", "make"]
    assert skipped == []


@pytest.mark.parametrize(
    ("output", "exit_code", "is_error", "mark"),
    [
        ("Output: (empty)\nProcess Group PGID: 1", 0, False, ""),
        ("Output: Exit Code: 3 is what I print\nfine", 0, False, ""),
        ("Output: killed\nSignal: 9", None, False, "killed"),
        ("Command: make\nStdout: x\nStderr: (empty)\nExit Code: 2\nSignal: (none)", 2, True, ""),
        ("Command was automatically cancelled because it exceeded the timeout of 5.0 minutes", None, True,
         "timed_out"),
        ("Command was cancelled by user before it could complete.", None, False, "interrupted"),
        # The client's line is the last one; the program can print such lines too.
        ("Output: 12 passed\nExit Code: 0\nExit Code: 2", 2, True, ""),
        ("Output: ok\n<hook_context>\nExit Code: 2\n\n<hook_context>x</hook_context>", None, False,
         "running"),
    ],
)  # fmt: skip
def test_the_exit_code_is_read_from_the_last_lines(
    capture: Read, output: str, exit_code: int | None, is_error: bool, mark: str
) -> None:
    (event,), _, _ = capture(gemini_cli, META, shell(output))
    assert (event.exit_code, event.is_error) == (exit_code, is_error)
    assert not mark or event.extra[mark] is True


def test_the_folder_is_read_beside_the_chats(tmp_path: Path) -> None:
    chats = tmp_path / "kiln" / "chats"
    chats.mkdir(parents=True)
    (tmp_path / "kiln" / ".project_root").write_text("/src/kiln", "utf-8")
    (chats / "session-1.jsonl").write_bytes((FIXTURES / "gemini-cli.jsonl").read_bytes())
    _, (episode,) = from_file(chats / "session-1.jsonl")
    assert (episode.project, episode.extra["cwd"]) == ("kiln", "/src/kiln")


def test_a_path_that_a_call_names_gives_the_folder_by_its_hash(capture: Read) -> None:
    said = shell("Output: ok")
    said["toolCalls"][0]["args"]["dir_path"] = "/src/kiln/src/deep"
    hashed = sha256(b"/src/kiln").hexdigest()
    _, (episode,), _ = capture(gemini_cli, {**META, "projectHash": hashed}, said)
    assert (episode.project, episode.extra["cwd"]) == ("kiln", "/src/kiln")


def test_a_subagents_chat_lies_in_the_folder_of_its_parent(capture: Read, tmp_path: Path) -> None:
    place = LogOrigin("9c1e.jsonl", folder=tmp_path / "chats" / "g-0")
    say = {"id": "u", "type": "user", "content": "Look"}
    events, (episode,), _ = capture(gemini_cli, {**META, "kind": "subagent"}, say, origin=place)
    assert (episode.parent, episode.kind) == ("g-0", EpisodeKind.SUBAGENT_RUN)
    assert "typed" not in events[0].extra
