"""Logs as the clients write them, with one text in them that a person typed, or that came another way."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

Line = dict[str, Any]
TASK = "Fix the failing test of the parser."
_TIME = "2026-03-02T09:00:00.000Z"
# A plain turn of a person, as version 2.1 of Claude Code writes it.
_TYPED = {"permissionMode": "default", "userType": "external"}


def claude_line(run: str, kind: str, content: Any, **more: Any) -> Line:
    """Return a line of a native transcript."""
    line = {
        "type": kind, "sessionId": run, "timestamp": _TIME, "cwd": f"/src/{run}", "version": "2.1.30",
        "isSidechain": False, "message": {"role": kind, "content": content},
    }  # fmt: skip
    return {**line, **more}


def _claude(*turns: Line) -> Callable[[str, str], str]:
    """Return a session: the task, a call, these turns and an answer. `TEXT` stands for the text."""

    def write(run: str, text: str) -> str:
        call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok", "is_error": False}
        lines = [
            claude_line(run, "user", TASK, **_TYPED),
            claude_line(run, "assistant", [call]),
            claude_line(run, "user", [result], toolUseResult={"stdout": "ok", "stderr": ""}),
            *({**claude_line(run, "user", ""), **json.loads(_fill(turn, text))} for turn in turns),
            claude_line(run, "assistant", [{"type": "text", "text": "Done."}]),
        ]
        for number, line in enumerate(lines):
            line["uuid"] = f"{run}-{number}"
            line["parentUuid"] = f"{run}-{number - 1}" if number else None
        return _lines(lines)

    return write


def _turn(content: Any, **more: Any) -> Line:
    return {"message": {"role": "user", "content": content}, **more}


def _text(text: str) -> Line:
    return {"type": "text", "text": text}


def _fill(value: Any, text: str) -> str:
    return json.dumps(value).replace("TEXT", json.dumps(text)[1:-1])


def _lines(values: list[Line]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def _subagent_file(run: str, text: str) -> str:
    more = {"isSidechain": True, "agentId": "a1b2c3"}
    reply = [{"type": "text", "text": "Found nothing."}]
    return _lines([
        claude_line(run, "user", text, uuid="s-0", parentUuid=None, **more),
        claude_line(run, "assistant", reply, uuid="s-1", parentUuid="s-0", **more),
    ])  # fmt: skip


def _sdk(run: str, text: str) -> str:
    more = {"entrypoint": "sdk-cli", "promptSource": "sdk"}
    return _lines([
        claude_line(run, "user", TASK, uuid="k-0", **more),
        claude_line(run, "user", text, uuid="k-1", **more),
        claude_line(run, "assistant", [_text("Done.")], uuid="k-2"),
    ])  # fmt: skip


def _printed(run: str, text: str) -> str:
    """Return what `claude -p --output-format stream-json` prints of what a program sent to it."""
    init = {"type": "system", "subtype": "init", "session_id": run, "cwd": f"/src/{run}", "model": "claude-x"}
    said = {"type": "user", "session_id": run, "parent_tool_use_id": None, "uuid": "p-1"}
    reply = {"role": "assistant", "content": [_text("Done.")]}
    return _lines([
        init,
        {**said, "message": {"role": "user", "content": [_text(text)]}},
        {"type": "assistant", "session_id": run, "parent_tool_use_id": None, "message": reply},
    ])  # fmt: skip


def _codex(
    *items: Line, source: Any = "cli", is_exec: bool = False, **meta: Any
) -> Callable[[str, str], str]:
    """Return a rollout: the task, a call, these items and an answer."""

    def write(run: str, text: str) -> str:
        facts = {"id": run, "cwd": f"/src/{run}", "cli_version": "0.144.2", "source": source, **meta}
        call = {"type": "function_call", "name": "shell", "arguments": '{"command": "ls"}', "call_id": "c"}
        output = {"type": "function_call_output", "call_id": "c", "output": "ok"}
        payloads = [
            *([] if is_exec else (_item(TASK), _event(TASK))),
            call, output, *(json.loads(_fill(each, text)) for each in items),
            _item("Done.", role="assistant", kind="output_text"),
        ]  # fmt: skip
        lines = [{"type": "session_meta", "payload": facts}]
        for payload in payloads:
            is_event = payload["type"] == "user_message"
            lines.append({"type": "event_msg" if is_event else "response_item", "payload": payload})
        return _lines([{"timestamp": _TIME, **line} for line in lines])

    return write


def _item(*texts: str, role: str = "user", kind: str = "input_text") -> Line:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def _event(text: str) -> Line:
    return {"type": "user_message", "message": text, "images": [], "local_images": [], "text_elements": []}


def _openhands(*events: Line) -> Callable[[str, str], str]:
    def write(run: str, text: str) -> str:
        said = {"source": "user", "action": "message", "args": {"content": f"{TASK} It is in {run}."}}
        did = {"source": "agent", "action": "run", "args": {"command": "ls"}}
        saw = {
            "source": "agent",
            "observation": "run",
            "content": "ok",
            "cause": 1,
            "extras": {"exit_code": 0},
        }
        done = {"source": "agent", "action": "finish", "args": {"final_thought": "Done."}}
        middle = [json.loads(_fill(event, text)) for event in events]
        place = {"source": "environment", "observation": "recall", "content": "", "cause": 0}
        extras = {"recall_type": "workspace_context", "working_dir": f"/src/{run}", "repo_name": run}
        listed = [said, {**place, "extras": extras}, did, saw, *middle, done]
        return json.dumps([{"id": at, "timestamp": _TIME, **each} for at, each in enumerate(listed)])

    return write


def _opencode(*parts: Line, **facts: Any) -> Callable[[str, str], str]:
    """Return an export: the task, a call, a turn of these parts and an answer."""

    def write(run: str, text: str) -> str:
        state = {"status": "completed", "input": {"command": "ls"}, "output": text, "metadata": {"exit": 0}}
        call = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
        turns = [
            ("user", [_text(TASK)]), ("assistant", [call]),
            ("user", [json.loads(_fill(part, text)) for part in parts]), ("assistant", [_text("Done.")]),
        ]  # fmt: skip
        info = {"id": run, "projectID": "p", "directory": f"/src/{run}", **facts}
        messages = [{"info": {"role": role, "sessionID": run}, "parts": each} for role, each in turns]
        return json.dumps({"info": info, "messages": messages})

    return write


def _gemini(*parts: str | Line, kind: str = "main", **more: Any) -> Callable[[str, str], str]:
    """Return a chat: the task, a call, a turn of these parts and an answer."""

    def write(run: str, text: str) -> str:
        facts = {"sessionId": run, "projectHash": sha256(f"/src/{run}".encode()).hexdigest(), "kind": kind}
        result = [{"functionResponse": {"response": {"output": text}}}]
        call = {"name": "read_file", "args": {"file_path": f"/src/{run}/a"}, "status": "success"}
        content = [{"text": part} if isinstance(part, str) else part for part in parts]
        turn = {"type": "user", "content": content, **more}
        return _lines([
            facts,
            {"id": "1", "type": "user", "content": [{"text": TASK}]},
            {"id": "2", "type": "gemini", "content": "", "toolCalls": [{**call, "result": result}]},
            {"id": "3", **json.loads(_fill(turn, text))},
            {"id": "4", "type": "gemini", "content": "Done."},
        ])  # fmt: skip

    return write


def _old_gemini(*parts: str, **more: Any) -> Callable[[str, str], str]:
    """Return the same chat as older clients keep it, in one document."""

    def write(run: str, text: str) -> str:
        facts, *messages = map(json.loads, _gemini(*parts, **more)(run, text).splitlines())
        return json.dumps({**facts, "messages": messages})

    return write


def _cursor(form: str, said: str) -> Callable[[str, str], str]:
    """Return a session of Cursor's editor (bubbles) or terminal (messages): the task, this turn, a reply."""

    def write(run: str, text: str) -> str:
        turns = (
            (1, "user", f"<user_query>{TASK}</user_query>"),
            (1, "user", said),
            (2, "assistant", "Done."),
        )
        told = [(kind, role, words.replace("TEXT", text)) for kind, role, words in turns]
        bubbles = [{"type": kind, "text": words} for kind, _, words in told]
        messages = [{"role": role, "content": words} for _, role, words in told]
        listed = bubbles if form == "bubbles" else messages
        return json.dumps({"composerId": run, "workspacePath": f"/src/{run}", form: listed})

    return write


def _cursor_hooks(said: str) -> Callable[[str, str], str]:
    """Return what our hooks note of a session of Cursor: the task, then this prompt."""

    def write(run: str, text: str) -> str:
        told = {
            "hook": "cursor",
            "session": run,
            "moment": "note-prompt",
            "cwd": f"/src/{run}",
            "time": _TIME,
        }
        return _lines([{**told, "prompt": words} for words in (TASK, said.replace("TEXT", text))])

    return write


def _copilot(kind: str = "user.message", **data: Any) -> Callable[[str, str], str]:
    """Return a session: the task, a call, this event and an answer."""

    def write(run: str, text: str) -> str:
        called = {"toolCallId": "c", "toolName": "bash", "arguments": {"command": "ls"}}
        events = [
            ("session.start", {"sessionId": run, "context": {"cwd": f"/src/{run}"}}),
            ("user.message", {"content": TASK}), ("tool.execution_start", called),
            ("tool.execution_complete", {"toolCallId": "c", "success": True, "result": {"content": text}}),
            (kind, json.loads(_fill(data, text))), ("assistant.message", {"content": "Done."}),
        ]  # fmt: skip
        return _lines([{"type": name, "data": each, "timestamp": _TIME} for name, each in events])

    return write


def _swe_agent(*, is_demo: bool) -> Callable[[str, str], str]:
    def write(run: str, text: str) -> str:
        step = {
            "action": "ls",
            "observation": "ok",
            "response": f"Look at {run}.",
            "thought": f"Look at {run}.",
        }
        first = {"role": "user", "content": text, "agent": "main", **({"is_demo": True} if is_demo else {})}
        history = [{"role": "system", "content": "You are an agent."}, first]
        if is_demo:
            history.append({"role": "user", "content": TASK, "agent": "main"})
        document = {"environment": "main", "trajectory": [step], "history": history, "info": {}}
        return json.dumps(document)

    return write


def _mini(*, is_observation: bool) -> Callable[[str, str], str]:
    def write(run: str, text: str) -> str:
        reply = f"THOUGHT: look at {run}\n\n```bash\nls\n```"
        messages = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": TASK if is_observation else text},
            {"role": "assistant", "content": reply},
            {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{text}\n</output>"},
            {"role": "assistant", "content": "I am thinking."},
            {"role": "user", "content": text},
        ]
        return json.dumps({"info": {"exit_status": "Submitted", "mini_version": "1.0"}, "messages": messages})

    return write


def _atif(source: str) -> Callable[[str, str], str]:
    def write(run: str, text: str) -> str:
        steps = [
            {"step_id": 1, "source": "user", "message": text if source == "user" else TASK},
            {"step_id": 2, "source": "agent", "message": "I look."},
            {"step_id": 3, "source": source, "message": text},
        ]
        agent = {"name": "harness", "version": "1"}
        return json.dumps({"schema_version": "ATIF-v1.6", "session_id": run, "agent": agent, "steps": steps})

    return write


def _stream(mark: Line) -> Callable[[str, str], str]:
    """Return a log in Archivist's own form, which any program may write."""

    def write(run: str, text: str) -> str:
        told = {"run": run, "kind": "message", "role": "user"}
        return _lines([
            {"episode": {"id": run, "project": run}},
            {**told, "seq": 1, "text": TASK},
            {**told, "seq": 2, "text": text, **mark},
        ])  # fmt: skip

    return write


def _rejected_plan(run: str, text: str) -> str:
    """Return a session of an older client, which does not say who denied a call."""
    call = {"type": "tool_use", "id": "t9", "name": "ExitPlanMode", "input": {"plan": "Use yarn."}}
    turn = _turn([{**_RESULT, "content": _REFUSAL, "is_error": True}], toolUseResult=f"Error: {_REFUSAL}")
    return _claude({**_turn([call]), "type": "assistant"}, turn)(run, text)


_SUMMARY = "This session is being continued from a previous conversation that ran out of context.\nTEXT"
_COMMAND = "<command-message>review</command-message>\n<command-name>/review</command-name>"
_NOTIFICATION = "<task-notification>\n<task-id>b1</task-id>\n<result>TEXT</result>\n</task-notification>"
_REFUSAL = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. "
    "To tell you how to proceed, the user said:\nTEXT"
)
_CLARIFIED = _REFUSAL.replace("TEXT", "The user wants to clarify these questions.\n\n- TEXT")
_AGENTS = "# AGENTS.md instructions for /src/app\n\n<INSTRUCTIONS>\nTEXT\n</INSTRUCTIONS>"
_IDE = (
    "# Context from my IDE setup:\n\n## Active file: src/app.ts\n\n## Active selection of the file:\nTEXT\n\n"
    "## My request for Codex:\nExplain the selection."
)
_REQUEST = "# Context from my IDE setup:\n\n## Active file: src/app.ts\n\n## My request for Codex:\nTEXT"
_HEARTBEAT = "<heartbeat>\n  <automation_id>pr</automation_id>\n  <instructions>\nTEXT\n</heartbeat>"
_SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": "other", "depth": 1}}}
_RESULT = {"type": "tool_result", "tool_use_id": "t9", "content": "TEXT"}
_QUEUED = {"type": "attachment", "message": None}
_BUFFER = {"type": "queued_command", "commandMode": "prompt", "prompt": "TEXT"}
_NOTICE = {"type": "queued_command", "commandMode": "task-notification", "prompt": _NOTIFICATION}
_HOOK_CONTEXT = {"type": "hook_additional_context", "content": ["TEXT"], "hookEvent": "PreToolUse"}
_IMAGE = {"type": "image", "source": {"type": "base64", "data": ""}}

_RESPONSE: Line = {"functionResponse": {"id": "t", "name": "web_fetch", "response": {"output": "ok"}}}
SHAPES: dict[str, Callable[[str, str], str]] = {
    "claude.typed": _claude(_turn("TEXT", **_TYPED)),
    "claude.typed_image": _claude(_turn([_text("TEXT"), _IMAGE], imagePasteIds=[1], **_TYPED)),
    "claude.queued": _claude({**_QUEUED, "attachment": _BUFFER}),
    "claude.meta": _claude(_turn([_text("TEXT")], isMeta=True)),
    "claude.sidechain": _claude(_turn("TEXT", isSidechain=True)),
    "claude.subagent_file": _subagent_file,
    "claude.compact": _claude(_turn(_SUMMARY, isCompactSummary=True, isVisibleInTranscriptOnly=True)),
    "claude.continued": _claude(_turn([_text(_SUMMARY)])),
    "claude.command_args": _claude(_turn(f"{_COMMAND}\n<command-args>TEXT</command-args>")),
    "claude.command_body": _claude(_turn(_COMMAND), _turn([_text("TEXT")], isMeta=True)),
    "claude.command_body_unmarked": _claude(_turn(_COMMAND), _turn([_text("TEXT")])),
    "claude.typed_after_output": _claude(
        _turn(_COMMAND), _turn("<local-command-stdout></local-command-stdout>"), _turn("TEXT")
    ),
    "claude.command_body_list": _claude(_turn([_text(_COMMAND), _text("TEXT")])),
    "claude.local_stdout": _claude(_turn("<local-command-stdout>TEXT</local-command-stdout>")),
    "claude.bash_stdout": _claude(_turn("<bash-stdout>TEXT</bash-stdout><bash-stderr></bash-stderr>")),
    "claude.reminder": _claude(_turn("Go on.\n<system-reminder>\nTEXT\n</system-reminder>", **_TYPED)),
    "claude.reminder_block": _claude(
        _turn([_text("<system-reminder>TEXT</system-reminder>"), _text("Go on.")])
    ),
    "claude.hook": _claude(
        _turn("Go on.\n<user-prompt-submit-hook>TEXT</user-prompt-submit-hook>", **_TYPED)
    ),
    "claude.tool_result": _claude(_turn([_RESULT], toolUseResult="TEXT")),
    "claude.tool_result_list": _claude(_turn([{**_RESULT, "content": [_text("TEXT")]}, _text("TEXT")])),
    "claude.denied_tool": _claude(_turn([{**_RESULT, "content": _REFUSAL, "is_error": True}])),
    "claude.rejected_edit": _claude(
        _turn([{**_RESULT, "content": _REFUSAL, "is_error": True}], toolDenialKind="user-rejected")
    ),
    "claude.rejected_plan": _rejected_plan,
    "claude.rejected_in_sidechain": _claude(
        _turn(
            [{**_RESULT, "content": _REFUSAL, "is_error": True}],
            toolDenialKind="user-rejected",
            isSidechain=True,
        )
    ),
    "claude.denied_by_hook": _claude(
        _turn([{**_RESULT, "content": _REFUSAL, "is_error": True}], toolDenialKind="hook-denied")
    ),
    "claude.questions_rejected": _claude(
        _turn([{**_RESULT, "content": _CLARIFIED, "is_error": True}], toolDenialKind="user-rejected")
    ),
    "claude.task_notification": _claude(_turn(_NOTIFICATION, origin={"kind": "task-notification"})),
    "claude.plan": _claude(_turn("Implement the following plan:\n\nTEXT", planContent="TEXT")),
    "claude.sdk": _sdk,
    "claude.printed": _printed,
    "claude.ide_selection": _claude(
        _turn([_text("<ide_selection>TEXT</ide_selection>"), _text("Explain it.")])
    ),
    "claude.teammate": _claude(_turn("<teammate-message teammate_id=\"bo\">\nTEXT\n</teammate-message>")),
    "claude.peer": _claude(_turn("TEXT", origin={"kind": "peer", "from": "unknown"})),
    "claude.scheduled": _claude(_turn("TEXT", promptSource="system")),
    "claude.queued_notification": _claude({**_QUEUED, "attachment": _NOTICE}),
    "claude.attachment_hook": _claude({**_QUEUED, "attachment": _HOOK_CONTEXT}),
    "codex.typed": _codex(_item("TEXT"), _event("TEXT")),
    "codex.typed_request": _codex(_item(_REQUEST), _event(_REQUEST)),
    "codex.agents_md": _codex(_item(_AGENTS, "<environment_context>\n</environment_context>")),
    "codex.user_instructions": _codex(_item("<user_instructions>\n\nTEXT\n\n</user_instructions>")),
    "codex.environment": _codex(_item("<environment_context>\n  <note>TEXT</note>\n</environment_context>")),
    "codex.developer": _codex(_item("TEXT", role="developer")),
    "codex.heartbeat": _codex(_item(_HEARTBEAT), _event(_HEARTBEAT)),
    "codex.subagent": _codex(_item("TEXT"), _event("TEXT"), source=_SPAWN),
    "codex.review": _codex(_item("TEXT"), _event("TEXT"), source={"subagent": "review"}),
    "codex.exec": _codex(_item("TEXT"), _event("TEXT"), source="exec", is_exec=True),
    "codex.ide_context": _codex(_item(_IDE), _event(_IDE)),
    "codex.tool_output": _codex({"type": "function_call_output", "call_id": "c2", "output": "TEXT"}),
    "codex.hook_prompt": _codex(_item('<hook_prompt hook_run_id="h1">TEXT</hook_prompt>')),
    "codex.init_body": _codex(_item("TEXT"), _event("TEXT")),
    "openhands.typed": _openhands({"source": "user", "action": "message", "args": {"content": "TEXT"}}),
    "openhands.environment": _openhands(
        {"source": "environment", "action": "message", "args": {"content": "TEXT"}}
    ),
    "openhands.recall": _openhands(
        {"source": "environment", "observation": "recall", "cause": 0, "content": "TEXT", "extras": {}}
    ),
    "opencode.typed_or_command": _opencode(_text("TEXT")),
    "opencode.synthetic": _opencode({**_text("TEXT"), "synthetic": True}, _text("Go on.")),
    "opencode.ignored": _opencode({**_text("TEXT"), "ignored": True}, _text("Go on.")),
    "opencode.subtask": _opencode({"type": "subtask", "prompt": "TEXT"}),
    "opencode.subagent": _opencode(_text("TEXT"), parentID="ses_other"),
    "gemini.typed": _gemini("TEXT"),
    "gemini.typed_after_hook": _gemini("<hook_context>x</hook_context>\n\nTEXT"),
    "gemini.hook": _gemini("Go on.", "<hook_context>TEXT</hook_context>"),
    "gemini.hook_before": _gemini("<hook_context>TEXT</hook_context>\n\nGo on."),
    "gemini.hook_broken_out": _gemini(
        "Go on.", "<hook_context>a</hook_context>\n\nTEXT\n</hook_context>"
    ),
    "gemini.hook_broken_out_first": _gemini("<hook_context>a</hook_context>\nTEXT</hook_context>\n\nGo on."),
    "gemini.hook_broken_out_shown": _gemini(
        "Go on.", displayContent=[{"text": "Go on. <hook_context>a</hook_context> TEXT"}]
    ),
    "gemini.response": _gemini(_RESPONSE, {"text": "TEXT"}),
    "gemini.before_response": _gemini("TEXT", _RESPONSE),
    "gemini.shell": _gemini(
        "I ran the following shell command:\n```sh\ncat a\n```\n\nThis produced the following result:\n"
        "```\na\n```\nTEXT"
    ),
    "gemini.session_context": _gemini("<session_context>\nTEXT\n</session_context>"),
    "gemini.named_files": _gemini("See @a", "\n--- Content from referenced files ---", "TEXT"),
    "gemini.command": _gemini("TEXT", displayContent=[{"text": "/plan"}]),
    "gemini.subagent": _gemini("TEXT", kind="subagent"),
    "gemini.old_typed_or_command": _old_gemini("TEXT"),
    "gemini.old_shown": _old_gemini("TEXT\n\nThe hook's words.", displayContent=[{"text": "TEXT"}]),
    "cursor.typed": _cursor("bubbles", "TEXT"),
    "cursor.typed_before_command": _cursor("bubbles", "TEXT /plan\n\n--- Cursor Command: plan.md ---\nPlan."),
    "cursor.command": _cursor("bubbles", "/plan\n\n--- Cursor Command: a.md ---\nTEXT\n--- End Command ---"),
    "cursor.closed_command": _cursor(
        "bubbles", "--- Cursor Command: a.md ---\n--- End Command ---\n\nTEXT\n--- End Command ---"
    ),
    "cursor.terminal_typed": _cursor("messages", "<user_query>\nTEXT\n</user_query>"),
    "cursor.terminal_command": _cursor(
        "messages",
        "<cursor_commands>\n--- Cursor Command: a ---\n</cursor_commands>\n"
        "<user_query>\nTEXT\n</user_query>\n--- End Command ---\n</cursor_commands>\n"
        "<user_query>\n/a\n</user_query>",
    ),
    "cursor.terminal_bare": _cursor("messages", "TEXT"),
    "cursor.hook_command": _cursor_hooks("/plan\n\n--- Cursor Command: plan.md ---\nTEXT"),
    "cursor.hook_typed": _cursor_hooks("TEXT"),
    "copilot.typed": _copilot(content="TEXT"),
    "copilot.transformed": _copilot(content="Go on.", transformedContent="Go on.\nTEXT"),
    "copilot.skill": _copilot(content="TEXT", source="skill-review"),
    "copilot.subagent": _copilot(content="TEXT", source="agent-a1", parentToolCallId="c"),
    "copilot.system": _copilot("system.message", content="TEXT"),
    "copilot.hook": _copilot("hook.end", output="TEXT"),
    "swe_agent.task": _swe_agent(is_demo=False),
    "swe_agent.demo": _swe_agent(is_demo=True),
    "mini.task": _mini(is_observation=False),
    "mini.observation": _mini(is_observation=True),
    "atif.task": _atif("user"),
    "atif.system": _atif("system"),
    "stream.message": _stream({}),
    "stream.typed": _stream({"extra": {"typed": True}}),
}  # fmt: skip
