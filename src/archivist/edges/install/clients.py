"""The settings files of each client, and the hooks and server entry that go into them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from archivist.edges.hook_events import EVENT_NAMES, SESSION_END, SESSION_START
from archivist.edges.install import entries, jsonc
from archivist.edges.install.entries import PROGRAM, Hook

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
    """One file of a client's settings, and the edits that add our entries to its text and remove them.

    `take` gets the text, and the text without our entries where that is known.
    """

    path: Path
    add: Callable[[str], str]
    take: Callable[[str, str | None], str]
    what: str


class InstallLocation(NamedTuple):
    """Where settings go: a project's folder, or the user's home for all projects."""

    root: Path
    is_user: bool = False

    def file(self, project: str, user: str = "") -> Path:
        """Return a file by its path in a project, or by its path in the home where that differs."""
        return self.root / (user if self.is_user and user else project)


def targets(client: str, place: InstallLocation) -> list[InstallTarget]:
    """Return the settings files of a client with our entries for each."""
    return _TARGETS[client](place)


def claude_hooks() -> list[Hook]:
    """Return Claude Code's hooks; its plugin has the same."""
    hooks = []
    for moment, event in EVENT_NAMES["claude-code"].items():
        is_start = moment == SESSION_START
        command = {
            "type": "command",
            "command": PROGRAM,
            "args": ["hook", "claude-code", moment],
            "timeout": 10 if is_start else 5,
        }
        matcher = {"matcher": "startup|resume|clear|compact|fork"} if is_start else {}
        hooks.append(Hook(event, {**matcher, "hooks": [command]}))
    return hooks


def vscode_hooks() -> list[Hook]:
    """Return VS Code's hooks; the portable plugin has the same."""
    return [
        Hook(event, {"type": "command", "command": f"{PROGRAM} hook vscode {moment}", "timeout": 10})
        for moment, event in EVENT_NAMES["vscode"].items()
    ]


def server_entry() -> dict[str, Any]:
    """Return the entry that starts our server."""
    return {"type": "stdio", "command": PROGRAM, "args": ["mcp"]}


def _claude_code(place: InstallLocation) -> list[InstallTarget]:
    settings = place.file(".claude/settings.json")
    if place.is_user and os.environ.get("CLAUDE_CONFIG_DIR"):
        settings = Path(os.environ["CLAUDE_CONFIG_DIR"]).expanduser() / "settings.json"
    return [
        _hooks_target(settings, claude_hooks()),
        _server_target(place.file(".mcp.json", ".claude.json"), "mcpServers"),
    ]


def _codex(place: InstallLocation) -> list[InstallTarget]:
    # Codex allows a hook at the session's end at most 3 seconds.
    timeouts_s = {SESSION_START: 10, SESSION_END: 3}
    hooks = [
        _hook_group(event, f"{PROGRAM} hook codex {moment}", timeouts_s.get(moment, 5))
        for moment, event in EVENT_NAMES["codex"].items()
    ]
    config, table = place.file(".codex/config.toml"), ("mcp_servers", PROGRAM)
    values = {"command": PROGRAM, "args": ["mcp"], "startup_timeout_sec": 10, "tool_timeout_sec": 60}
    where = str(config)
    return [
        _hooks_target(place.file(".codex/hooks.json"), hooks),
        InstallTarget(
            config,
            lambda text: entries.add_table(text, table, values, where),
            lambda text, _original: entries.remove_table(text, table, where),
            "server",
        ),
    ]


def _cursor(place: InstallLocation) -> list[InstallTarget]:
    path, version = place.file(".cursor/hooks.json"), ("version",)
    where = str(path)
    hooks = [
        Hook(event, {"command": f"{PROGRAM} hook cursor {moment}"})
        for moment, event in EVENT_NAMES["cursor"].items()
    ]

    def add(text: str) -> str:
        if jsonc.find(jsonc.parse(text, where), version, where) is None:
            text = jsonc.put(text, version, 1, where)
        return entries.add_hooks(text, hooks, where)

    def take(text: str, original: str | None) -> str:
        after = entries.remove_hooks(text, original, where)
        left, before = (jsonc.parse(part, where).to_plain() for part in (after, original or ""))
        # The version is ours if the original had none, or if nothing else is left; it goes with our hooks
        # unless the user has added hooks since.
        is_ours = left == {"version": 1} if original is None else "version" not in before
        is_unused = is_ours and left.get("hooks") == before.get("hooks")
        return jsonc.remove(after, version, where) if after != text and is_unused else after

    found = [
        InstallTarget(path, add, take, "hooks"),
        _server_target(place.file(".cursor/mcp.json"), "mcpServers"),
    ]
    if not place.is_user:
        # Cursor gives hooks no context at a prompt, so a rule tells the agent of the tools. An edited rule
        # is the user's, and stays.
        rule = InstallTarget(
            place.root / ".cursor/rules/archivist.mdc",
            lambda text: text or _RULE,
            lambda text, _original: "" if text.replace("\r\n", "\n") == _RULE else text,
            "rule",
        )
        found.append(rule)
    return found


def _gemini(place: InstallLocation) -> list[InstallTarget]:
    path = place.file(".gemini/settings.json")
    where, servers = str(path), ("mcpServers", PROGRAM)
    # Gemini counts timeouts in milliseconds.
    hooks = [
        _hook_group(event, f"{PROGRAM} hook gemini {moment}", 10_000)
        for moment, event in EVENT_NAMES["gemini"].items()
    ]
    entry = {key: value for key, value in server_entry().items() if key != "type"}

    def add(text: str) -> str:
        return entries.add_server(entries.add_hooks(text, hooks, where), servers, entry, where)

    def take(text: str, original: str | None) -> str:
        return entries.remove_server(entries.remove_hooks(text, original, where), original, servers, where)

    return [InstallTarget(path, add, take, "hooks and server")]


def _vscode(place: InstallLocation) -> list[InstallTarget]:
    if not place.is_user:
        folder = place.root / ".vscode"
    elif sys.platform == "darwin":
        folder = place.root / "Library/Application Support/Code/User"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("APPDATA") or place.root / "AppData/Roaming") / "Code/User"
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or place.root / ".config") / "Code/User"
    return [
        _hooks_target(
            place.file(".github/hooks/archivist.json", ".copilot/hooks/archivist.json"), vscode_hooks()
        ),
        _server_target(folder / "mcp.json", "servers"),
    ]


def _hook_group(event: str, command: str, timeout: int) -> Hook:
    return Hook(event, {"hooks": [{"type": "command", "command": command, "timeout": timeout}]})


def _hooks_target(path: Path, hooks: Sequence[Hook]) -> InstallTarget:
    where = str(path)
    return InstallTarget(
        path,
        lambda text: entries.add_hooks(text, hooks, where),
        lambda text, original: entries.remove_hooks(text, original, where),
        "hooks",
    )


def _server_target(path: Path, owner: str) -> InstallTarget:
    where, names = str(path), (owner, PROGRAM)
    return InstallTarget(
        path,
        lambda text: entries.add_server(text, names, server_entry(), where),
        lambda text, original: entries.remove_server(text, original, names, where),
        "server",
    )


_TARGETS: Mapping[str, Callable[[InstallLocation], list[InstallTarget]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "gemini": _gemini,
    "vscode": _vscode,
}
