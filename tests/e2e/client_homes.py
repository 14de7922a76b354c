"""Write the logs of clients where the clients keep them, in the form that they have there."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
# A call that fails in the same way every time, and the one that then works.
FAILS, WORKS = "pytest tests/test_kiln.py", "PYTHONPATH=src pytest tests/test_kiln.py"
ERROR = "E   ModuleNotFoundError: No module named 'kiln'"
PASSED = "1 passed in 0.12s"


def git(folder: Path, *words: str) -> str:
    """Run git in a folder."""
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", "-C", str(folder), *named, *words], capture_output=True, check=True)
    return done.stdout.decode()


def make_repository(folder: Path, remote: str = "") -> Path:
    """Make a repository with a commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "src").mkdir()
    (folder / "src" / "kiln.py").write_text("")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_kiln.py").write_text("import kiln\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def _times(number: int, count: int) -> list[str]:
    began = BEGIN + timedelta(hours=number)
    return [f"{began + timedelta(seconds=each):%Y-%m-%dT%H:%M:%S}.000Z" for each in range(count)]


def _write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def claude_code(
    home: Path,
    folder: Path,
    number: int = 0,
    calls: Sequence[tuple[str, str, int]] = (),
    said: Sequence[str] = (),
) -> Path:
    """Write a session of Claude Code: calls as command, output and exit code, then what the user said."""
    session = f"00000000-0000-4000-8000-{number:012d}"
    calls = calls or ((FAILS, ERROR, 2), (WORKS, PASSED, 0))
    times = iter(_times(number, 2 * len(calls) + len(said) + 4))
    common = {"sessionId": session, "cwd": str(folder), "version": "2.1.325", "isSidechain": False}
    lines: list[dict[str, Any]] = [
        {"type": "mode", "mode": "default", "sessionId": session},
        {
            "type": "user", "uuid": "u0", "timestamp": next(times), **common,
            "message": {"role": "user", "content": f"Make the test of the kiln pass, part {number}"},
        },
    ]  # fmt: skip
    for at, (command, output, code) in enumerate(calls):
        use = {"type": "tool_use", "id": f"t{at}", "name": "Bash", "input": {"command": command}}
        answer = f"Exit code {code}\n{output}" if code else output
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": answer, "is_error": bool(code)}
        lines += [
            {
                "type": "assistant", "uuid": f"a{at}", "timestamp": next(times), **common,
                "message": {"id": f"m{at}", "role": "assistant", "model": "claude-opus", "content": [use]},
            },
            {
                "type": "user", "uuid": f"r{at}", "timestamp": next(times), **common,
                "message": {"role": "user", "content": [result]},
            },
        ]  # fmt: skip
    for at, words in enumerate(said):
        message = {"role": "user", "content": words}
        lines.append(
            {"type": "user", "uuid": f"s{at}", "timestamp": next(times), **common, "message": message}
        )
    done = {"id": "end", "role": "assistant", "content": [{"type": "text", "text": "It passes."}]}
    lines.append({"type": "assistant", "uuid": "z", "timestamp": next(times), **common, "message": done})
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(folder.resolve()))
    return _write_lines(home / ".claude" / "projects" / slug / f"{session}.jsonl", lines)


def codex(home: Path, folder: Path, number: int = 0, remote: str = "") -> Path:
    """Write a session of Codex."""
    times = _times(number, 6)
    session = f"019a0000-0000-7000-8000-{number:012d}"
    meta: dict[str, Any] = {"id": session, "cwd": str(folder), "cli_version": "0.166.0", "source": "cli"}
    if remote:
        meta["git"] = {"branch": "main", "repository_url": remote}
    lines = [{"timestamp": times[0], "type": "session_meta", "payload": meta}]
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Test the kiln"}]}
    lines.append({"timestamp": times[1], "type": "response_item", "payload": asked})
    for at, (command, output, code) in enumerate(((FAILS, ERROR, 2), (WORKS, PASSED, 0))):
        call = {
            "type": "function_call", "name": "exec_command", "call_id": f"c{at}",
            "arguments": json.dumps({"cmd": command}),
        }  # fmt: skip
        said = f"Wall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}\n"
        answer = {"type": "function_call_output", "call_id": f"c{at}", "output": said}
        lines += [
            {"timestamp": times[2 + at], "type": "response_item", "payload": each} for each in (call, answer)
        ]
    day = home / ".codex" / "sessions" / "2026" / "03" / "02"
    return _write_lines(day / f"rollout-2026-03-02T09-{number:02d}-00-{session}.jsonl", lines)


def gemini(home: Path, folder: Path, number: int = 0) -> Path:
    """Write a chat of Gemini CLI."""
    times = _times(number, 4)
    top = home / ".gemini" / "tmp" / folder.name.lower()
    top.mkdir(parents=True, exist_ok=True)
    (top / ".project_root").write_text(str(folder))
    session = f"9a1b0000-0000-4000-8000-{number:012d}"
    calls = []
    for at, (command, output, code) in enumerate(((FAILS, ERROR, 2), (WORKS, PASSED, 0))):
        ended = f"\nExit Code: {code}" if code else ""
        said = f"<untrusted_context>\nOutput: {output}{ended}\n</untrusted_context>"
        answer = {"functionResponse": {"id": f"t{at}", "response": {"output": said}}}
        calls.append({
            "id": f"t{at}", "name": "run_shell_command", "args": {"command": command}, "status": "success",
            "timestamp": times[2], "result": [answer],
        })  # fmt: skip
    lines: list[dict[str, Any]] = [
        {
            "sessionId": session, "projectHash": sha256(str(folder).encode()).hexdigest(),
            "startTime": times[0], "lastUpdated": times[3], "kind": "main",
        },
        {"id": "u1", "timestamp": times[1], "type": "user", "content": [{"text": "Test the kiln"}]},
        {"id": "g1", "timestamp": times[2], "type": "gemini", "content": "", "toolCalls": calls},
        {"id": "g2", "timestamp": times[3], "type": "gemini", "content": "It passes."},
    ]  # fmt: skip
    return _write_lines(top / "chats" / f"session-2026-03-02T09-00-{session[:8]}{number}.jsonl", lines)


def copilot(home: Path, folder: Path, number: int = 0, repository: str = "", host: str = "") -> Path:
    """Write a session of Copilot CLI."""
    times = _times(number, 8)
    session = f"7c000000-0000-4000-8000-{number:012d}"
    context = {"cwd": str(folder), "gitRoot": str(folder), "repository": repository}
    context |= {"repositoryHost": host} if host else {}
    start = {"sessionId": session, "version": 1, "copilotVersion": "1.0.102", "context": context}
    events: list[tuple[str, dict[str, Any]]] = [
        ("session.start", start), ("user.message", {"content": "Test the kiln"}),
    ]  # fmt: skip
    for at, (command, output, code) in enumerate(((FAILS, ERROR, 2), (WORKS, PASSED, 0))):
        began = {"toolCallId": f"t{at}", "toolName": "bash", "arguments": {"command": command}}
        ended = {
            "toolCallId": f"t{at}", "success": True, "shellExecution": {"exitCode": code},
            "result": {"content": output, "detailedContent": output},
        }  # fmt: skip
        events += [("tool.execution_start", began), ("tool.execution_complete", ended)]
    events.append(("assistant.message", {"content": "It passes."}))
    lines = [
        {"type": kind, "data": data, "id": f"e{at}", "timestamp": times[at], "parentId": None}
        for at, (kind, data) in enumerate(events)
    ]
    top = home / ".copilot" / "session-state" / session
    top.mkdir(parents=True)
    (top / "workspace.yaml").write_text(f"id: {session}\ncwd: {folder}\n")
    return _write_lines(top / "events.jsonl", lines)


def opencode(home: Path, folder: Path, number: int = 0) -> Path:
    """Add a session to OpenCode's database."""
    file = home / ".local" / "share" / "opencode" / "opencode.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    began = int((BEGIN + timedelta(hours=number)).timestamp() * 1000)
    session = f"ses_{number:026d}"
    with sqlite3.connect(file) as rows:
        rows.execute("PRAGMA journal_mode=WAL")
        rows.executescript("""
            CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
                directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
            CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                data TEXT);
            CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
                time_created INTEGER, data TEXT);
        """)
        told = (session, "f00d", None, str(folder), "Kiln", "1.18.33", began, began)
        rows.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)", told)
        asked = {"role": "user", "time": {"created": began}}
        answered = {
            "role": "assistant", "time": {"created": began + 1}, "modelID": "x", "providerID": "y",
            "path": {"cwd": str(folder), "root": str(folder)}, "tokens": {},
        }  # fmt: skip
        for at, data in enumerate((asked, answered)):
            message = (f"{session}m{at}", session, began + at, json.dumps(data))
            rows.execute("INSERT INTO message VALUES (?, ?, ?, ?)", message)
        parts: list[tuple[int, dict[str, Any]]] = [(0, {"type": "text", "text": "Test the kiln"})]
        for at, (command, output, code) in enumerate(((FAILS, ERROR, 2), (WORKS, PASSED, 0))):
            state = {
                "status": "completed", "input": {"command": command}, "output": output,
                "metadata": {"output": output, "exit": code}, "time": {"start": began, "end": began + 1},
            }  # fmt: skip
            parts.append((1, {"type": "tool", "tool": "bash", "callID": f"c{at}", "state": state}))
        for at, (message_number, data) in enumerate(parts):
            part = (f"{session}p{at}", f"{session}m{message_number}", session, began + at, json.dumps(data))
            rows.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", part)
    return file


def vscode(home: Path, folder: Path, number: int = 0) -> Path:
    """Write a chat of VS Code into the storage of the window that had the folder open."""
    began = int((BEGIN + timedelta(hours=number)).timestamp() * 1000)
    top = (
        home
        / ".config"
        / "Code"
        / "User"
        / "workspaceStorage"
        / sha256(str(folder).encode()).hexdigest()[:32]
    )
    top.mkdir(parents=True, exist_ok=True)
    (top / "workspace.json").write_text(json.dumps({"folder": folder.as_uri()}))
    session = f"5c000000-0000-4000-8000-{number:012d}"
    shown = [
        {
            "kind": "toolInvocationSerialized", "toolId": "run_in_terminal", "toolCallId": f"t{at}",
            "toolSpecificData": {
                "kind": "terminal", "commandLine": {"original": command},
                "terminalCommandState": {"exitCode": code}, "terminalCommandOutput": {"text": output},
            },
        }
        for at, (command, output, code) in enumerate(((FAILS, ERROR, 2), (WORKS, PASSED, 0)))
    ]  # fmt: skip
    request = {"requestId": "r", "timestamp": began, "message": {"text": "Test the kiln"}, "response": shown}
    lines: list[dict[str, Any]] = [
        {"kind": 0, "v": {"version": 3, "sessionId": session, "creationDate": began, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [request]},
        {"kind": 1, "k": ["requests", 0, "result"], "v": {"metadata": {}}},
    ]
    return _write_lines(top / "chatSessions" / f"{session}.jsonl", lines)


def cursor(home: Path, folder: Path, number: int = 0) -> Path:
    """Add a session to the database of Cursor's editor."""
    file = home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    file.parent.mkdir(parents=True, exist_ok=True)
    began = int((BEGIN + timedelta(hours=number)).timestamp() * 1000)
    session = f"c5000000-0000-4000-8000-{number:012d}"
    bubbles: list[dict[str, Any]] = [{"type": 1, "text": "Test the kiln"}]
    for command, output, code in ((FAILS, ERROR, 2), (WORKS, PASSED, 0)):
        tool = {
            "tool": 15, "name": "run_terminal_cmd", "params": json.dumps({"command": command}),
            "result": json.dumps({"output": output, "exitCode": code}), "status": "completed",
        }  # fmt: skip
        bubbles.append({"type": 2, "text": "", "capabilityType": 15, "toolFormerData": tool})
    place = {"id": "w", "uri": {"fsPath": str(folder)}}
    headers = [{"bubbleId": f"b{at}", "type": bubble["type"]} for at, bubble in enumerate(bubbles)]
    facts = {"createdAt": began, "fullConversationHeadersOnly": headers, "workspaceIdentifier": place}
    with sqlite3.connect(file) as rows:
        rows.execute("CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        rows.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"composerData:{session}", json.dumps(facts)))
        for at, bubble in enumerate(bubbles):
            key = f"bubbleId:{session}:b{at}"
            rows.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(bubble)))
    return file


def cursor_terminal(home: Path, folder: Path, number: int = 0) -> Path:
    """Write a session of Cursor's command line client."""
    session = f"c7000000-0000-4000-8000-{number:012d}"
    place = md5(str(folder).encode(), usedforsecurity=False).hexdigest()
    file = home / ".cursor" / "chats" / place / session / "store.db"
    file.parent.mkdir(parents=True)
    facts = {"agentId": session, "workspacePath": str(folder), "createdAt": 1_794_819_600_000 + number}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "<user_info>Linux</user_info>"},
        {"role": "user", "content": [{"type": "text", "text": "<user_query>\nTest the kiln\n</user_query>"}]},
    ]
    for at, (command, output, code) in enumerate(((FAILS, ERROR, 2), (WORKS, PASSED, 0))):
        call = {
            "type": "tool-call",
            "toolCallId": f"t{at}",
            "toolName": "Shell",
            "args": {"command": command},
        }
        ended = f"{output}\nexited with code {code}" if code else output
        result = {"type": "tool-result", "toolCallId": f"t{at}", "toolName": "Shell", "result": ended}
        said += [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}]
    with sqlite3.connect(file) as rows:
        rows.execute("CREATE TABLE meta (key TEXT, value TEXT)")
        rows.execute("CREATE TABLE blobs (id TEXT, data BLOB)")
        rows.execute("INSERT INTO meta VALUES ('0', ?)", (json.dumps(facts).encode().hex(),))
        for at, message in enumerate(said):
            rows.execute("INSERT INTO blobs VALUES (?, ?)", (f"b{at}", json.dumps(message).encode()))
        rows.execute("INSERT INTO blobs VALUES ('root', ?)", (b"\x0a\x20\xff",))
    return file
