"""Codex rollouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archivist.capture.formats import SkippedRecord, codex, read_log
from archivist.reading.calls import event_failure, read_tool_calls
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

Read = Callable[..., tuple[list[Event], list[Episode], list[SkippedRecord]]]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture"
META = {
    "type": "session_meta",
    "payload": {"id": "thread-1", "cwd": "/work/mill", "model_provider": "openai"},
}


def item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload}


def happened(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **payload}}


def from_file(name: str) -> tuple[list[Event], list[Episode]]:
    found = list(read_log(FIXTURES / name))
    return [each for each in found if isinstance(each, Event)], [
        each for each in found if isinstance(each, Episode)
    ]


def test_a_rollout_names_itself_and_its_repository() -> None:
    _, (episode,) = from_file("codex-rollout.jsonl")
    assert episode.id == "0199aaaa-0000-7000-8000-000000000001"
    assert (episode.project, episode.provider, episode.model) == ("ada/mill", "codex", "gpt-5.5-codex")
    assert (episode.task, episode.status) == ("Fix the build of the mill", EpisodeStatus.SUCCESS)
    assert episode.usage is not None
    assert (episode.usage.input_tokens, episode.usage.cached_tokens) == (5000, 4000)


def test_calls_have_code_duration_and_output_from_wherever_they_are_told() -> None:
    events, _ = from_file("codex-rollout.jsonl")
    first, patch, second = [event for event in events if event.tool]
    assert (first.text, first.exit_code, first.duration_s, first.is_error) == ("make all", 2, 1.5, True)
    assert first.output == "make: *** No rule to make target 'all'.  Stop.\n"
    assert (patch.kind, patch.target, patch.extra["old"]) == (EventKind.EDIT, "Makefile", "build:")
    assert (second.exit_code, second.duration_s, second.output) == (0, 0.25, "built\n")


@pytest.mark.parametrize("form", ["turns", "ordinals", "times"])
def test_a_fork_does_not_repeat_what_was_said_and_done_before_it(capture: Read, form: str) -> None:
    """A fork's file begins with all lines of the thread that it came from, written when it was made."""
    began, later = "2026-11-16T09:00:10.163Z", "2026-11-16T09:00:27.114Z"
    own: dict[str, Any] = {
        "id": "thread-2",
        "forked_from_id": "thread-1",
        "cwd": "/work/mill",
        "timestamp": began,
    }
    if form == "ordinals":
        own["subagent_history_start_ordinal"] = 6
    lines = [
        {"type": "session_meta", "payload": own},
        META,
        happened("task_started", **({"started_at": 1794819600} if form == "turns" else {})),
        item(type="message", role="user", content=[{"type": "input_text", "text": "Fix the mill"}]),
        item(type="function_call", name="shell", call_id="a", arguments='{"command": "make all"}'),
        item(type="function_call_output", call_id="a", output="Exit code: 2\nbroken"),
        happened("task_started", **({"started_at": 1794819627} if form == "turns" else {})),
        item(type="message", role="user", content=[{"type": "input_text", "text": "Now the sail"}]),
        item(type="function_call", name="shell", call_id="b", arguments='{"command": "make sail"}'),
        item(type="function_call_output", call_id="b", output="Exit code: 0\nbuilt"),
    ]
    timed = [
        {**line, "timestamp": began if at < 6 else later, **({"ordinal": at} if form == "ordinals" else {})}
        for at, line in enumerate(lines)
    ]
    events, (episode,), _ = capture(codex, *timed)
    assert (episode.id, episode.task) == ("thread-2", "Now the sail")
    assert [event.text for event in events if event.tool] == ["make sail"]


def test_the_older_form_of_bare_items_is_read() -> None:
    events, (episode,) = from_file("codex-bare.jsonl")
    assert episode.id == "0188bbbb-0000-7000-8000-000000000002"
    assert [event.text for event in events if event.tool] == ["python3 --version"]
    assert episode.status is EpisodeStatus.SUCCESS


_FORMS: dict[str, Callable[[str], dict[str, Any]]] = {
    "item": lambda said: item(type="message", role="user", content=[{"type": "input_text", "text": said}]),
    "event": lambda said: happened("user_message", message=said, images=[]),
    "completed": lambda said: happened(
        "item_completed", item={"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": said}]}
    ),
}


@pytest.mark.parametrize("order", ["together", "apart"])
@pytest.mark.parametrize(
    "forms", [["item"], ["event"], ["completed"], ["item", "event"], ["completed", "item"], [*_FORMS]]
)
def test_a_prompt_is_read_once_in_whichever_forms_it_is_written(
    capture: Read, forms: list[str], order: str
) -> None:
    prompts = ["Mend the mill", "continue", "continue", "Always use make sail."]
    pairs = [(form, said) for said in prompts for form in forms]
    pairs = pairs if order == "together" else sorted(pairs, key=lambda pair: forms.index(pair[0]))
    events, (episode,), skipped = capture(codex, META, *(_FORMS[form](said) for form, said in pairs))
    assert [event.text for event in events if event.role == "user"] == prompts
    assert all(event.extra.get("typed") for event in events if event.role == "user")
    assert (episode.task, skipped) == ("Mend the mill", [])


def test_a_prompt_with_a_picture_is_read_once(capture: Read) -> None:
    request = (
        "# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n## My request for Codex:\nMend the mill\n"
    )
    content = [
        {"type": "input_text", "text": part} for part in (request, "<image name=[Image #1]>", "</image>")
    ]
    content.insert(2, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"})
    events, _, _ = capture(
        codex, META, item(type="message", role="user", content=content), _FORMS["event"](request)
    )
    assert [event.text for event in events if event.role == "user"] == ["Mend the mill"]


def test_what_the_client_writes_for_the_user_is_no_prompt_in_any_form(capture: Read) -> None:
    said = "<environment_context>\n<cwd>/work</cwd>\n</environment_context>"
    events, _, _ = capture(codex, META, *(form(said) for form in _FORMS.values()))
    assert not [event for event in events if event.role == "user"]


@pytest.mark.parametrize(
    ("said", "role"),
    [
        ("<recommended_plugins>\nLinear\n</recommended_plugins>", "system"),
        ("<plugins>\nx\n</plugins>\n# AGENTS.md\nUse tabs.\n<context>\n<cwd>/x</cwd>\n</context>", "system"),
        ('<heartbeat id="1">wake up</heartbeat>', "system"),
        ("<task>\nMend the mill.\n</task>", "user"),
        ("<div> is not closed", "user"),
        ("<b>why</b> is this bold?", "user"),
        ("<T> is unknown in Vec<T>", "user"),
    ],
)
def test_what_stands_wholly_within_tags_was_injected(capture: Read, said: str, role: str) -> None:
    prompt = item(type="message", role="user", content=[{"type": "input_text", "text": said}])
    events, _, _ = capture(codex, META, prompt)
    assert [event.role for event in events] == [role]


@pytest.mark.parametrize(
    ("output", "exit_code", "is_error"),
    [
        ("exec_command failed for `x`: No such file", None, True),
        ("failed to parse function arguments: missing field", None, True),
        ({"content": "no", "success": False}, None, True),
        ([{"type": "input_text", "text": "Exit code: 7\nWall time: 1 seconds\nOutput:\nx"}], 7, True),
        ("plain", None, False),
    ],
)
def test_failures_are_read_from_the_text_because_there_is_no_flag(
    capture: Read, output: object, exit_code: int | None, is_error: bool
) -> None:
    events, _, _ = capture(
        codex,
        META,
        item(type="function_call", name="shell", arguments="{}", call_id="c"),
        item(type="function_call_output", call_id="c", output=output),
    )
    assert (events[0].exit_code, events[0].is_error) == (exit_code, is_error)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([happened("turn_aborted", reason="interrupted")], EpisodeStatus.ABORTED),
        ([happened("task_complete"), happened("task_started")], EpisodeStatus.ABORTED),
        ([happened("task_complete")], EpisodeStatus.SUCCESS),
        ([happened("error", message="stream disconnected")], EpisodeStatus.FAILED),
    ],
)
def test_the_last_turn_decides_the_status(capture: Read, rows: list[Any], status: EpisodeStatus) -> None:
    asked = item(type="message", role="user", content=[{"type": "input_text", "text": "go"}])
    _, episodes, _ = capture(codex, META, asked, *rows)
    assert episodes[0].status is status


def test_a_spawned_thread_is_a_child(capture: Read) -> None:
    meta = {"type": "session_meta", "payload": {"id": "t2", "parent_thread_id": "t1"}}
    _, episodes, _ = capture(codex, meta)
    assert (episodes[0].parent, episodes[0].kind) == ("t1", EpisodeKind.SUBAGENT_RUN)


def test_what_exec_prints_is_read_too(capture: Read) -> None:
    command = {
        "id": "i1",
        "type": "command_execution",
        "command": "bash -lc ls",
        "aggregated_output": "no",
        "exit_code": 2,
        "status": "failed",
    }
    events, episodes, skipped = capture(
        codex,
        {"type": "thread.started", "thread_id": "t9"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": command},
        {
            "type": "item.completed",
            "item": {
                "type": "file_change",
                "changes": [{"path": "a.py", "kind": "update"}],
                "status": "completed",
            },
        },
        {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 6}},
    )
    assert (events[0].exit_code, events[0].is_error, events[1].kind, events[1].target) == (
        2,
        True,
        EventKind.EDIT,
        "a.py",
    )
    assert (episodes[0].id, episodes[0].status, skipped) == ("t9", EpisodeStatus.SUCCESS, [])


def test_arguments_that_are_no_json_are_kept_as_they_are(capture: Read) -> None:
    call = item(type="function_call", name="f", arguments='{"command": "ls', call_id="c")
    events, _, _ = capture(codex, META, call)
    assert json.loads(events[0].text) == {"input": '{"command": "ls'}


def test_unknown_records_are_counted(capture: Read) -> None:
    _, _, skipped = capture(codex, META, {"type": "hologram", "payload": {}}, {"type": "world_state"})
    assert len(skipped) == 1


def script(call_id: str, source: str) -> dict[str, Any]:
    return item(type="custom_tool_call", name="exec", call_id=call_id, input=source)


def printed(call_id: str, *texts: str, kind: str = "custom_tool_call_output") -> dict[str, Any]:
    return item(type=kind, call_id=call_id, output=[{"type": "input_text", "text": text} for text in texts])


ENDED = "Script completed\nWall time 0.5 seconds\nOutput:\n"


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ('const r = await tools.exec_command({cmd:"make \\"all\\"", "n": 1000}); text(r)', 'make "all"'),
        ("await tools.exec_command({ // build\n  cmd: 'make all',\n  workdir: `/src/mill`,\n});", "make all"),
        ('const target = "all"; await tools.exec_command({cmd: `make ${target}`})', "make all"),
        ('const cmd = "make " + "all"; await tools.exec_command({cmd, workdir: "/src"})', "make all"),
        ('await tools.exec_command({cmd: ["make a", "make b"].join(" && ")})', "make a && make b"),
        ('await Promise.all([tools.exec_command({cmd:"make a"}), tools.exec_command({cmd:"make b"})])',
         "make a\nmake b"),
        ('const patch = "tools.x(1)"; await tools.exec_command({cmd: "make all"})', "make all"),
    ],
)  # fmt: skip
def test_a_command_inside_a_script_is_read(capture: Read, source: str, command: str) -> None:
    events, _, _ = capture(codex, META, script("c", source), printed("c", ENDED, "built"))
    assert [(event.tool, event.text, event.output) for event in events] == [
        ("exec_command", command, "built")
    ]


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize(
    "source",
    [
        'const a = {cmd: "make"}; a.workdir = "../other"; text(await tools.exec_command(a))',
        'const a = {cmd: "make"}; Object.assign(a, {workdir: "evil"}); text(await tools.exec_command(a))',
        'const a = {cmd: "make"}; a.cmd = "cd ../other && " + a.cmd; text(await tools.exec_command(a))',
        'let cmd = "make"; cmd = "cd ../other && " + cmd; text(await tools.exec_command({cmd}))',
        'let wd = "."; if (1) wd = "../other"; text(await tools.exec_command({cmd: "make", workdir: wd}))',
        'const a={}; a.workdir="../other"; a.cmd="make"; text(await tools.exec_command(a))',
        'const c = "make"; text(await tools.exec_command({cmd: c.replace(/^/, "cd ../other; ")}))',
        'const run = c => tools.exec_command({cmd: c, workdir: "../other"}); text(await run("make"))',
    ],
)
def test_a_script_that_changes_what_it_named_is_no_command(capture: Read, source: str) -> None:
    events, _, _ = capture(codex, META, script("c", source), printed("c", ENDED, "built"))
    assert [event.tool for event in events] == ["script"]


def test_a_script_may_print_what_it_named(capture: Read) -> None:
    source = 'const cmd = "make"; const r = await tools.exec_command({cmd}); text(cmd + r.output)'
    events, _, _ = capture(codex, META, script("c", source), printed("c", ENDED, "built"))
    assert [event.text for event in events] == ["make"]


def test_a_patch_inside_a_script_is_an_edit(capture: Read) -> None:
    source = (
        'const patch = "*** Begin Patch\\n*** Update File: a.py\\n@@\\n-x = 1\\n+x = 2\\n*** End Patch";\n'
        "text(await tools.apply_patch(patch));"
    )
    (event,), _, _ = capture(codex, META, script("c", source), printed("c", ENDED, "{}"))
    assert (event.kind, event.target, event.extra["new"]) == (EventKind.EDIT, "a.py", "x = 2")


@pytest.mark.parametrize(
    ("texts", "exit_code", "is_error"),
    [
        ((ENDED, '{"chunk_id":"a","wall_time_seconds":1,"exit_code":2,"output":"no rule"}'), 2, True),
        ((ENDED, '{"wall_time_seconds":1,"exit_code":2}', "no rule"), 2, True),
        ((ENDED, "exit=2\nno rule"), 2, True),
        ((ENDED, '{"wall_time_seconds":1,"exit_code":0,"output":"ok"}'), 0, False),
        ((ENDED, "no rule"), None, False),
        (("Script failed\nWall time 0.0 seconds\nOutput:\n", "Script error:\nno rule"), None, True),
    ],
)
def test_the_exit_code_is_read_from_what_a_script_prints(
    capture: Read, texts: tuple[str, ...], exit_code: int | None, is_error: bool
) -> None:
    source = 'const r = await tools.exec_command({cmd:"make"}); text(r)'
    (event,), _, _ = capture(codex, META, script("c", source), printed("c", *texts))
    assert (event.exit_code, event.is_error) == (exit_code, is_error)
    assert "no rule" in event.output or not is_error


def test_the_end_of_a_command_that_went_on_is_told_of_the_command(capture: Read) -> None:
    rows = [
        META,
        item(type="function_call", name="exec_command", call_id="a", arguments='{"cmd": "make test"}'),
        item(
            type="function_call_output",
            call_id="a",
            output="Wall time: 1.0 seconds\nProcess running with session ID 77\nOutput:\ncompiling\n",
        ),
        item(type="function_call", name="write_stdin", call_id="b", arguments='{"session_id": 77}'),
        item(
            type="function_call_output",
            call_id="b",
            output="Wall time: 9.0 seconds\nProcess exited with code 2\nOutput:\n1 failed\n",
        ),
    ]
    (started, ended), _, _ = capture(codex, *rows)
    assert (started.text, started.extra["running"], started.is_error) == ("make test", True, False)
    assert (ended.tool, ended.text, ended.exit_code) == ("exec_command", "make test", 2)
    # Only the end is an attempt.
    assert [call.event.seq for call in read_tool_calls([started, ended])] == [ended.seq]


def test_waiting_for_a_script_brings_the_end_of_its_command(capture: Read) -> None:
    rows = [
        META,
        script("a", 'const r = await tools.exec_command({cmd:"make test"}); text(r)'),
        item(
            type="custom_tool_call_output",
            call_id="a",
            output="Script running with cell ID 9\nWall time 10.0 seconds\nOutput:\n",
        ),
        item(type="function_call", name="wait", call_id="b", arguments='{"cell_id": "9"}'),
        printed("b", ENDED, '{"wall_time_seconds":1,"exit_code":2,"output":"1 failed"}'),
    ]
    (_, ended), _, _ = capture(codex, *rows)
    assert (ended.tool, ended.text, ended.exit_code, ended.output) == (
        "exec_command", "make test", 2, "1 failed",
    )  # fmt: skip


def test_names_that_double_each_other_do_not_fill_the_memory(capture: Read) -> None:
    names = "".join(f"const a{at}=`${{a{at - 1}}}${{a{at - 1}}}`;" for at in range(1, 45))
    source = f'const a0="xxxxxxxxxx";{names}tools.exec_command({{cmd:a44}})'
    (event,), _, _ = capture(codex, META, script("c", source))
    assert event.tool == "script"


def test_a_gateway_is_not_the_models_maker(capture: Read) -> None:
    meta = {"type": "session_meta", "payload": {"id": "t", "model_provider": "openrouter"}}
    context = {"type": "turn_context", "payload": {"model": "anthropic/claude-opus-5"}}
    _, (episode,), _ = capture(codex, meta, context, item(type="message", role="user", content="Hi"))
    assert (episode.provider, episode.extra["maker"], episode.model) == (
        "codex",
        "anthropic",
        "claude-opus-5",
    )


@pytest.mark.parametrize(("policy", "approvals"), [("never", "off"), ("on-request", "on")])
def test_whether_the_agent_may_ask_for_approvals_is_kept(capture: Read, policy: str, approvals: str) -> None:
    turns = [{"type": "turn_context", "payload": {"approval_policy": each}} for each in ("untrusted", policy)]
    _, (episode,), _ = capture(codex, META, *turns, item(type="message", role="user", content="Hi"))
    assert episode.extra["approvals"] == approvals


@pytest.mark.parametrize(
    ("source", "kind", "approvals"),
    [
        ("cli", EpisodeKind.ORCHESTRATOR_RUN, "on"),
        ("exec", EpisodeKind.ORCHESTRATOR_RUN, "off"),
        ({"custom": "desk"}, EpisodeKind.ORCHESTRATOR_RUN, "on"),
        ({"subagent": "review"}, EpisodeKind.SUBAGENT_RUN, "on"),
    ],
)
def test_a_review_is_no_session_of_the_user_and_a_script_s_thread_can_ask_nobody(
    capture: Read, source: object, kind: EpisodeKind, approvals: str
) -> None:
    meta = {"type": "session_meta", "payload": {"id": "t", "source": source}}
    turn = {"type": "turn_context", "payload": {"approval_policy": "on-request"}}
    _, (episode,), _ = capture(codex, meta, turn, item(type="message", role="user", content="Hi"))
    assert (episode.kind, episode.extra["approvals"]) == (kind, approvals)


def test_a_web_search_is_one_call_and_leaves_nothing_open(capture: Read) -> None:
    searched = item(type="web_search_call", status="completed", action={"type": "search", "query": "kiln"})
    said = item(type="message", role="assistant", content=[{"type": "output_text", "text": "Found it."}])
    (call, _), (episode,), _ = capture(codex, META, searched, said)
    assert (call.tool, call.target, call.extra) == ("web_search", "kiln", {})
    assert episode.status is EpisodeStatus.SUCCESS


def test_a_search_for_tools_has_a_name(capture: Read) -> None:
    row = item(type="tool_search_call", call_id="c", arguments={"query": "github"})
    (call,), _, _ = capture(codex, META, row, item(type="tool_search_output", call_id="c", output="[]"))
    assert (call.tool, call.target) == ("tool_search", "github")


@pytest.mark.parametrize("said", ["aborted by user after 3.2s", "exec_command failed: rejected by user"])
def test_a_call_that_the_user_refused_has_not_failed(capture: Read, said: str) -> None:
    row = item(type="function_call", name="exec_command", call_id="c", arguments='{"cmd": "make"}')
    (call,), _, _ = capture(codex, META, row, item(type="function_call_output", call_id="c", output=said))
    assert call.extra["rejected"] is True
    assert event_failure(call) is None
