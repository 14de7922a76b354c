"""What each client wants written, and where: its hooks and its entry for our server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from archivist.edges.hook_events import PROMPT, SESSION_END, SESSION_START, STOP, SUBAGENT_START, TOOL_FAILURE
from archivist.edges.install import entries, jsonc
from archivist.edges.install.calls import PROGRAM
from archivist.edges.install.entries import Hook

_SOURCES = "startup|resume|clear|compact|fork"
_RULE = """\
---
description: Memory of this project's earlier sessions
alwaysApply: true
---

This project has a memory of its earlier sessions, kept by Archivist. The tool `brief` of the MCP server
`archivist` says what they learnt about a task, or about an error; `recall` finds anything in it; `lesson_add`
keeps what the next session should know.
"""


class InstallTarget(NamedTuple):
    """One file of a client's settings, and how ours goes in and out of its text.

    Taking out is told what the text was without us, or None where nobody knows.
    """

    path: Path
    add: Callable[[str], str]
    take: Callable[[str, str | None], str]
    what: str


class InstallLocation(NamedTuple):
    """Where settings go: into a project's folder, or into the user's home for all projects."""

    root: Path
    is_user: bool = False

    def file(self, project: str, user: str) -> Path:
        """Return the file of a scope, named from the project's folder or from the home."""
        return self.root / (user if self.is_user else project)


def targets(client: str, place: InstallLocation) -> list[InstallTarget]:
    """Return the files in which a client looks, with what is ours in each."""
    return _TARGETS[client](place)


def claude_hooks() -> list[Hook]:
    """Return Claude Code's hooks; a plugin's are the same."""

    def make_hook(event: str, moment: str, timeout_s: int, **more: str) -> Hook:
        command = {"type": "command", "command": PROGRAM, "args": ["hook", "claude-code", moment]}
        return Hook(event, {**more, "hooks": [{**command, "timeout": timeout_s}]})

    return [
        make_hook("SessionStart", SESSION_START, 10, matcher=_SOURCES),
        make_hook("UserPromptSubmit", PROMPT, 5),
        make_hook("PostToolUseFailure", TOOL_FAILURE, 5),
        make_hook("SubagentStart", SUBAGENT_START, 5),
        make_hook("Stop", STOP, 5),
        make_hook("SessionEnd", SESSION_END, 5),
    ]


def server_entry() -> dict[str, Any]:
    """Return the entry that starts our server."""
    return {"type": "stdio", "command": PROGRAM, "args": ["mcp"]}


def vscode_hooks() -> list[Hook]:
    """Return VS Code's hooks; the portable plugin's part for it has the same."""
    events = {
        "SessionStart": SESSION_START,
        "PostToolUse": TOOL_FAILURE,
        "SubagentStart": SUBAGENT_START,
        "Stop": STOP,
    }
    return [
        Hook(event, {"type": "command", "command": f"{PROGRAM} hook vscode {moment}", "timeout": 10})
        for event, moment in events.items()
    ]


def _claude_code(place: InstallLocation) -> list[InstallTarget]:
    settings = place.file(".claude/settings.json", ".claude/settings.json")
    if place.is_user and os.environ.get("CLAUDE_CONFIG_DIR"):
        settings = Path(os.environ["CLAUDE_CONFIG_DIR"]).expanduser() / "settings.json"
    return [
        _hooks_target(settings, claude_hooks()),
        _server_target(place.file(".mcp.json", ".claude.json"), "mcpServers", server_entry()),
    ]


def _codex(place: InstallLocation) -> list[InstallTarget]:
    # A session's end is given a second, of at most three; a tool's answer comes at every call.
    events = {
        "SessionStart": (SESSION_START, 10),
        "UserPromptSubmit": (PROMPT, 5),
        "PostToolUse": (TOOL_FAILURE, 5),
        "SubagentStart": (SUBAGENT_START, 5),
        "Stop": (STOP, 5),
        "SessionEnd": (SESSION_END, 3),
    }
    hooks = [
        _hook_group(event, f"{PROGRAM} hook codex {moment}", wait) for event, (moment, wait) in events.items()
    ]
    config, table = place.file(".codex/config.toml", ".codex/config.toml"), ("mcp_servers", PROGRAM)
    values = {"command": PROGRAM, "args": ["mcp"], "startup_timeout_sec": 10, "tool_timeout_sec": 60}
    where = str(config)
    return [
        _hooks_target(place.file(".codex/hooks.json", ".codex/hooks.json"), hooks),
        InstallTarget(
            config,
            lambda text: entries.add_table(text, table, values, where),
            lambda text, _was: entries.remove_table(text, table, where),
            "server",
        ),
    ]


def _cursor(place: InstallLocation) -> list[InstallTarget]:
    path, version = place.file(".cursor/hooks.json", ".cursor/hooks.json"), ("version",)
    where = str(path)
    events = {"sessionStart": SESSION_START, "stop": STOP, "sessionEnd": SESSION_END}
    hooks = [Hook(event, {"command": f"{PROGRAM} hook cursor {moment}"}) for event, moment in events.items()]

    def add(text: str) -> str:
        if jsonc.find(jsonc.parse(text, where), version, where) is None:
            text = jsonc.put(text, version, 1, where)
        return entries.add_hooks(text, hooks, where)

    def take(text: str, was: str | None) -> str:
        after = entries.remove_hooks(text, was, where)
        left, theirs = (jsonc.parse(each, where).to_plain() for each in (after, was or ""))
        # Ours as long as nobody's hooks need it: they did without it, or nothing else is there.
        is_known = left == {"version": 1} if was is None else "version" not in theirs
        is_spare = is_known and left.get("hooks") == theirs.get("hooks")
        return jsonc.remove(after, version, where) if after != text and is_spare else after

    found = [
        InstallTarget(path, add, take, "hooks"),
        _server_target(place.file(".cursor/mcp.json", ".cursor/mcp.json"), "mcpServers", server_entry()),
    ]
    if not place.is_user:
        found.append(_whole_file_target(place.root / ".cursor/rules/archivist.mdc", _RULE))
    return found


def _gemini(place: InstallLocation) -> list[InstallTarget]:
    path = place.file(".gemini/settings.json", ".gemini/settings.json")
    where, servers = str(path), ("mcpServers", PROGRAM)
    events = {
        "SessionStart": SESSION_START,
        "BeforeAgent": PROMPT,
        "AfterTool": TOOL_FAILURE,
        "AfterAgent": STOP,
        "SessionEnd": SESSION_END,
    }
    # Here the clock counts milliseconds.
    hooks = [
        _hook_group(event, f"{PROGRAM} hook gemini {moment}", 10_000) for event, moment in events.items()
    ]
    entry = {key: value for key, value in server_entry().items() if key != "type"}

    def add(text: str) -> str:
        return entries.add_server(entries.add_hooks(text, hooks, where), servers, entry, where)

    def take(text: str, was: str | None) -> str:
        return entries.remove_server(entries.remove_hooks(text, was, where), was, servers, where)

    return [InstallTarget(path, add, take, "hooks and server")]


def _vscode(place: InstallLocation) -> list[InstallTarget]:
    hooks = place.file(".github/hooks/archivist.json", ".copilot/hooks/archivist.json")
    path = _vscode_user_folder(place.root) / "mcp.json" if place.is_user else place.root / ".vscode/mcp.json"
    return [_hooks_target(hooks, vscode_hooks()), _server_target(path, "servers", server_entry())]


def _vscode_user_folder(home: Path) -> Path:
    """Return the folder of VS Code's own user settings."""
    if sys.platform == "darwin":
        return home / "Library/Application Support/Code/User"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData/Roaming") / "Code/User"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "Code/User"


def _hook_group(event: str, command: str, timeout: int) -> Hook:
    return Hook(event, {"hooks": [{"type": "command", "command": command, "timeout": timeout}]})


def _hooks_target(path: Path, hooks: Sequence[Hook]) -> InstallTarget:
    where = str(path)
    return InstallTarget(
        path,
        lambda text: entries.add_hooks(text, hooks, where),
        lambda text, was: entries.remove_hooks(text, was, where),
        "hooks",
    )


def _server_target(path: Path, owner: str, entry: Mapping[str, Any]) -> InstallTarget:
    where, names = str(path), (owner, PROGRAM)
    return InstallTarget(
        path,
        lambda text: entries.add_server(text, names, entry, where),
        lambda text, was: entries.remove_server(text, was, names, where),
        "server",
    )


def _whole_file_target(path: Path, content: str) -> InstallTarget:
    """Return a file that is all ours; what somebody made of it is left alone."""
    return InstallTarget(
        path,
        lambda text: text or content,
        lambda text, _was: "" if text.replace("\r\n", "\n") == content else text,
        "rule",
    )


_TARGETS: dict[str, Callable[[InstallLocation], list[InstallTarget]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "gemini": _gemini,
    "vscode": _vscode,
}
