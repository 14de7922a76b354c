"""What a tool call is, and what came back from it."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest

from archivist.capture.calls import (
    LoggedCall,
    arguments_from,
    calls_in_message,
    describe,
    from_structured,
    is_timeout,
    read_outcome,
    target_of,
)
from archivist.capture.formats import mini_swe_agent
from archivist.capture.recorder import (
    LogOrigin,
    instance_in,
    maker_and_model,
    project_of_instance,
    task_of,
)
from archivist.capture.values import as_float, as_integer, as_time, clip, content_text, count, omission_mark
from archivist.paths import project_of_address, project_of_folder, remote_address
from archivist.records import EventKind

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** Add File: b.py\n+more\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "target"),
    [
        ("Bash", {"command": "pytest -q", "description": "x"}, "pytest -q", "pytest -q"),
        ("shell", {"command": ["bash", "-lc", "make all"]}, "make all", "make all"),
        (
            "shell",
            {"command": ["git", "commit", "-m", "two words"]},
            "git commit -m 'two words'",
            "git commit -m 'two words'",
        ),
        ("exec_command", {"cmd": "cd /a && ls"}, "cd /a && ls", "ls"),
        ("bash_command", {"keystrokes": "ls\n", "duration": 0.1}, "ls", "ls"),
        ("Read", {"file_path": "/a/b.py"}, '{"file_path":"/a/b.py"}', "/a/b.py"),
        ("str_replace_editor", {"command": "view", "path": "/a"}, '{"command":"view","path":"/a"}', "/a"),
        ("Grep", {"pattern": "x+"}, '{"pattern":"x+"}', "x+"),
        ("issue_ready", {}, "", ""),
    ],
)
def test_a_call_comes_down_to_its_command_or_file(
    tool: str, arguments: dict[str, Any], text: str, target: str
) -> None:
    described = describe(LoggedCall(tool, arguments))
    assert (described.kind, described.text, described.target) == (EventKind.TOOL_CALL, text, target)


@pytest.mark.parametrize(
    ("tool", "arguments", "target", "old", "new"),
    [
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, "a", "x", "y"),
        ("Write", {"file_path": "a", "content": "y"}, "a", "", "y"),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}] * 2},
            "a",
            "1\n1",
            "2\n2",
        ),
        ("str_replace_editor", {"command": "create", "path": "a", "file_text": "y"}, "a", "", "y"),
        ("replace", {"path": "a", "old_str": "x", "new_str": "y"}, "a", "x", "y"),
        ("some_new_editor", {"path": "a", "old_str": "x", "new_str": "y"}, "a", "x", "y"),
        ("apply_patch", {"input": PATCH}, "a.py", "old", "new\nmore"),
        (
            "shell",
            {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]},
            "a.py",
            "old",
            "new\nmore",
        ),
    ],
)
def test_an_edit_names_its_file_and_what_changed(
    tool: str, arguments: dict[str, Any], target: str, old: str, new: str
) -> None:
    described = describe(LoggedCall(tool, arguments))
    assert (described.kind, described.target) == (EventKind.EDIT, target)
    assert (described.extra["old"], described.extra["new"]) == (old, new)


def test_reading_a_patch_with_cat_is_no_edit() -> None:
    assert (
        describe(LoggedCall("Bash", {"command": f"grep -n '{PATCH}' notes.md"})).kind is EventKind.TOOL_CALL
    )


def test_long_arguments_stay_json() -> None:
    text = describe(LoggedCall("Write", {"file_path": "a", "content": "x" * 50_000})).text
    assert arguments_from(text)["file_path"] == "a"
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("cd /testbed && python -m pytest x", "python -m pytest x"),
        ("cd '/a b'; cd c && ls", "ls"),
        ("cd /a", "cd /a"),
        ("  ls  ", "ls"),
        ("echo cd /a && ls", "echo cd /a && ls"),
    ],
)
def test_the_way_to_the_folder_is_no_part_of_the_target(command: str, target: str) -> None:
    assert target_of(command) == target


def test_calls_written_into_a_message_are_found() -> None:
    (call,) = calls_in_message("<function=execute_bash>\n<parameter=command>ls -l</parameter>\n</function>")
    assert call == LoggedCall("execute_bash", {"command": "ls -l"})
    found = calls_in_message('{"plan": "x", "commands": [{"keystrokes": "ls\\n"}], "task_complete": true}')
    assert [call.tool for call in found] == ["bash_command", "mark_task_complete"]
    assert calls_in_message('the key "commands" {is not json}') == []


@pytest.mark.parametrize(
    ("content", "output", "exit_code", "is_error"),
    [
        ("plain", "plain", None, False),
        ("Exit code 2\nboom", "boom", 2, True),
        ("<returncode>0</returncode>\n<output>\nfine\n</output>", "fine", 0, False),
        ("<returncode>1</returncode>\n<output>\n</output>", "", 1, True),
        ("Process exited with code 0\nOutput:\nok", "ok", 0, False),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nbad", "bad", 1, True),
        ("done\n[The command completed with exit code 3.]\n[Current working directory: /a]", "done", 3, True),
        ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist.", None, True),
        ("the exit code is 5", "the exit code is 5", None, False),
    ],
)
def test_an_output_is_taken_out_of_its_frame(
    content: str, output: str, exit_code: int | None, is_error: bool
) -> None:
    outcome = read_outcome(content)
    assert (outcome.output, outcome.exit_code, outcome.is_error) == (output, exit_code, is_error)


def test_a_long_output_given_as_head_and_tail_keeps_both() -> None:
    content = (
        "<returncode>0</returncode>\n<warning>\nToo long.\n</warning>\n<output_head>\nfirst\n</output_head>\n"
        "<elided_chars>\n99 characters elided\n</elided_chars>\n<output_tail>\nlast\n</output_tail>"
    )
    output = read_outcome(content).output
    assert output.startswith("first")
    assert output.endswith("last")


@pytest.mark.parametrize(
    "content",
    [
        "Command timed out after 2m 0.0s",
        "command timed out after 10000 milliseconds\npartial",
        "\nEXECUTION TIMED OUT",
        "The last command <command>sleep 9</command> timed out and has been killed.",
        "x" * 5000 + "\n[The command timed out after 30 seconds.]",
        "The command 'x' was cancelled because it took more than 30 seconds.",
    ],
)
def test_a_timeout_is_told(content: str) -> None:
    assert is_timeout(content)
    assert read_outcome(content).extra == {"timed_out": True}
    assert read_outcome(content).is_error


@pytest.mark.parametrize(
    "content", ["", "requests.exceptions.Timeout", "timeout=30", "the test timed_out_flag passed"]
)
def test_talk_of_timeouts_is_none(content: str) -> None:
    assert not is_timeout(content)


def test_an_output_given_as_an_object_is_read() -> None:
    outcome = from_structured('{"output": "x", "metadata": {"exit_code": 1, "duration_seconds": 0.5}}')
    assert outcome is not None
    assert (outcome.output, outcome.exit_code, outcome.duration_s, outcome.is_error) == ("x", 1, 0.5, True)
    passed = from_structured({"command": "t", "passed": False, "output": "no"})
    assert passed is not None
    assert passed.is_error
    assert from_structured('{"a": 1}') is None
    assert from_structured("{broken}") is None


def test_a_clipped_text_keeps_both_ends_and_counts_the_rest() -> None:
    text = "a" * 100 + "b" * 1000 + "c" * 100
    assert clip(text, 100) == "a" * 100 + omission_mark(1000) + "c" * 100
    assert clip("short", 100) == "short"
    assert (
        clip(text[:600] + omission_mark(50_000) + text[600:], 100)
        == "a" * 100 + omission_mark(51_002) + "c" * 100
    )


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("Fix it", "Fix it"),
        (
            "<pr_description>\nConsider the following PR description:\nIt breaks\r\nbadly\n</pr_description>",
            "It breaks\nbadly",
        ),
        ("Please solve this issue: It breaks\n\nYou can execute bash commands", "It breaks"),
        ("Here's the issue text:\nISSUE:\nIt breaks\n\nINSTRUCTIONS:\nNow", "It breaks"),
        (
            "<uploaded_files>x</uploaded_files><issue_description>\nIt breaks\n</issue_description>",
            "It breaks",
        ),
        ("Rules.\n\nTask Description:\nIt breaks\n\nCurrent terminal state:\n$", "It breaks"),
    ],
)
def test_the_task_is_the_problem_itself(prompt: str, task: str) -> None:
    assert task_of(prompt) == task


def test_a_long_task_is_cut_at_two_thousand_characters() -> None:
    assert len(task_of("x" * 9000)) == 2000


def test_the_project_is_told_by_instance_folder_or_remote() -> None:
    assert project_of_instance("marshmallow-code__marshmallow-1343") == "marshmallow-code/marshmallow"
    assert project_of_instance("plain") == ""
    assert instance_in("3-ada__loom-kit-12.traj.json.gz") == "ada__loom-kit-12"
    assert project_of_folder("/home/ada/code/kiln") == "kiln"
    assert project_of_folder("/mnt/heat-test/app") == "heat-test"
    assert project_of_folder("/testbed") == ""
    assert project_of_folder("C:\\Users\\ada\\kiln") == "kiln"
    assert project_of_address(remote_address("git@github.com:ada/kiln.git")) == "ada/kiln"
    assert project_of_address(remote_address("https://github.com/ada/kiln")) == "ada/kiln"
    by_web, by_ssh = "https://git.example/Ada Byron/kiln.git", "git@git.example:Ada Byron/kiln.git"
    assert remote_address(by_web) == remote_address(by_ssh) == "//git.example/Ada Byron/kiln"


def test_the_maker_is_told_by_prefix_or_family() -> None:
    assert maker_and_model("deepseek/deepseek-chat") == ("deepseek", "deepseek-chat")
    assert maker_and_model("openrouter/x/y") == ("x", "y")
    assert maker_and_model("claude-opus-5") == ("anthropic", "claude-opus-5")
    assert maker_and_model("homemade") == ("", "homemade")


def test_loose_values_never_raise() -> None:
    assert (as_integer(True), as_integer(3.0), as_integer(3.5), as_integer("3"), as_integer(1 << 70)) == (
        None,
        3,
        None,
        None,
        None,
    )
    assert (as_float(float("nan")), as_float(10**400), as_float(2)) == (None, None, 2.0)
    assert (count(-4), count(None), count(7)) == (0, 0, 7)
    assert as_time("2025-12-22T21:02:14.296195661+00:00") is not None
    assert as_time(1770000000.5) == as_time(1770000000500)
    assert (as_time("yesterday"), as_time(-1), as_time(1e300), as_time([])) == (None, None, None, None)
    assert content_text([{"type": "text", "text": "a"}, "b", 3, {"type": "image"}]) == "a\nb\n[image]"


@pytest.mark.parametrize("name", ["a__" * 4_000, "a" * 12_000, "9a_1776_Z" * 1_400, "a__b-" * 2_400])
def test_a_name_made_to_search_long_takes_no_time(name: str) -> None:
    start = time.process_time()
    instance_in(name)
    project_of_instance(name)
    info = {"config": {"environment": {"image": name, "cwd": "/testbed"}}}
    log = {"info": info, "messages": [], "trajectory_format": "mini-swe-agent-1"}
    list(mini_swe_agent.read(io.BytesIO(json.dumps(log).encode()), LogOrigin("log")))
    assert time.process_time() - start < 1
