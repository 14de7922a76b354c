"""The settings files of each client, and the hooks and server entry that go into them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from archivist.edges.hook_events import EVENT_NAMES, SESSION_END, SESSION_START
from archivist.edges.install import entries, jsonc
from archivist.edges.install.entries import HOOK, OUR_PROGRAM, PROGRAM, SERVER, Hook
from archivist.errors import InputError
from archivist.files.open import real_path
from archivist.files.worktrees import to_main_worktree
from archivist.paths import editor_folders

_RULE = """\
---
description: Memory of this project's earlier sessions
alwaysApply: true
---

This project has a memory of its earlier sessions, kept by Archivist. The tool `brief` of the MCP server
`archivist` says what they learnt about a task, or about an error; `recall` finds anything in it; `lesson_add`
keeps what the next session should know.
"""
# Client → our name of an event → the seconds that its hook may take; 5 for the others. Codex allows a hook at
# the session's end at most 3, and Gemini counts milliseconds.
_TIMEOUTS: Mapping[str, Mapping[str, int]] = {
    "claude-code": {SESSION_START: 10},
    "codex": {SESSION_START: 10, SESSION_END: 3},
    "gemini": dict.fromkeys(EVENT_NAMES["gemini"], 10_000),
    "vscode": dict.fromkeys(EVENT_NAMES["vscode"], 10),
    "copilot": {SESSION_START: 10},
}
_VERSION = ("version",)
# What shows that a client is used here: its folder in the home, or its program.
_SIGNS = {
    "claude-code": (".claude", "claude"),
    "codex": (".codex", "codex"),
    "cursor": (".cursor", "cursor"),
    "gemini": (".gemini", "gemini"),
    "vscode": ("", "code"),
    "copilot": (".copilot/session-state", "copilot"),
    "opencode": (".local/share/opencode", "opencode"),
}
# Clients that find the settings of the main worktree in the linked ones.
SHARED_BY_WORKTREES = ("claude-code", "codex")
NO_SERVER = (
    "the MCP server is left out, because the MCP SDK is not installed:"
    " in its clone pipx install --force '.[mcp,server]', else pip install 'archivist-memory[mcp]';"
    " then install again"
)


class InstallLocation(NamedTuple):
    """Where settings go: a project's folder, there also the files that are not committed, or the home."""

    root: Path
    is_user: bool = False
    is_local: bool = False

    @property
    def scope(self) -> str:
        """Return the word for the place, which is also the option that names it."""
        return "user" if self.is_user else "local" if self.is_local else "project"

    @property
    def is_shared(self) -> bool:
        """Say whether others get the settings, by git."""
        return not self.is_user and not self.is_local

    def read_by(self, client: str) -> InstallLocation:
        """Return the place of the settings that are not committed and that a client reads here.

        In a linked worktree Codex takes the hooks of the main one, never its own, and Claude Code since
        2.1.211 its local settings. The others read the folder in which they start. For OpenCode our hooks
        are a program of ours, which no repository should carry: it goes into the user's own settings.
        """
        if client == "opencode" and not self.is_user:
            return InstallLocation(Path.home().absolute(), is_user=True)
        main = to_main_worktree(self.root)
        is_linked = self.is_local and client in SHARED_BY_WORKTREES and main != real_path(self.root)
        return self._replace(root=main) if is_linked else self

    def file(self, project: str, user: str = "") -> Path:
        """Return a file by its path in a project, or by its path in the home where that differs.

        Links in the home are the user's own, and what they lead to is meant; a project's are refused.
        """
        return real_path(self.root / (user or project)) if self.is_user else self.root / project


def has_server() -> bool:
    """Say whether our MCP server can start: its SDK is an extra."""
    return find_spec("mcp") is not None


def present_clients(home: Path) -> list[str]:
    """Return the clients that are used on this machine."""
    folders = {client: home / folder for client, (folder, _) in _SIGNS.items()}
    folders["vscode"] = _vscode_folder(InstallLocation(home, is_user=True))
    return [client for client, (_, program) in _SIGNS.items() if folders[client].is_dir() or which(program)]


def server_entry(program: str = PROGRAM) -> dict[str, Any]:
    """Return the entry that starts our server."""
    return {"type": "stdio", "command": program, "args": [SERVER]}


def program_for(place: InstallLocation) -> str:
    """Return how settings call our program: by its name, or by its path where no client would find it so.

    Settings that others share do not name a path of this machine.
    """
    is_found = place.is_shared or which(PROGRAM) is not None or not OUR_PROGRAM.is_file()
    return PROGRAM if is_found else str(OUR_PROGRAM)


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """One file of a client's settings, and what of ours goes into it.

    `servers` is the key of the client's servers, `text` that of a file which is ours as a whole. One with
    hooks is a program that its first line marks as ours, whatever version wrote it.
    """

    path: Path
    hooks: Sequence[Hook] = ()
    servers: str = ""
    server: Mapping[str, Any] = field(default_factory=server_entry)
    is_versioned: bool = False
    text: str = ""
    is_user: bool = False

    def add(self, text: str) -> str:
        """Return a file's text with our entries."""
        where, server = str(self.path), (self.servers, PROGRAM)
        if self.text and text and not self._is_ours(text):
            if self.hooks:
                raise InputError(f"{where} is another program's plugin", hint="move it away, then try again")
            return text
        if self.text:
            return entries.keep_plugin_call(self.text, text) if self.is_user else self.text
        if self.is_versioned and jsonc.find(jsonc.parse(text, where), _VERSION, where) is None:
            text = jsonc.put(text, _VERSION, 1, where)
        if self.hooks:
            text = entries.add_hooks(text, self.hooks, where, is_user=self.is_user)
        if not self.servers:
            return text
        return entries.add_server(text, server, self.server, where, is_user=self.is_user)

    def _is_ours(self, text: str) -> bool:
        """Say whether a whole text is ours; an edited one is the user's, and stays."""
        text = text.replace("\r\n", "\n")
        return text == self.text or bool(self.hooks and text.startswith(self.text.partition("\n")[0]))

    def find_calls(self, text: str) -> list[entries.ProgramCall]:
        """Return the calls of our hooks and server in a file."""
        is_read = self.hooks or not self.text
        return entries.find_calls(text, (self.servers, PROGRAM), str(self.path)) if is_read else []

    def find_redirected(self, text: str) -> list[entries.ProgramCall]:
        """Return the calls of ours in a project's file that lead elsewhere than those that we write."""
        is_read = not self.text and not self.is_user
        return [call for call in self.find_calls(text) if call.is_redirected] if is_read else []

    def has_line_around(self, text: str) -> bool:
        """Say whether a hook in a project's file calls ours among other things."""
        is_read = bool(self.hooks) and not self.text and not self.is_user
        return is_read and entries.has_line_around(text, str(self.path))

    def has_foreign_server(self, text: str) -> bool:
        """Say whether a server under our name in a file is another program's."""
        path = (self.servers, PROGRAM)
        return bool(self.servers) and entries.has_foreign_server(text, path, str(self.path))

    def take(self, text: str, original: str | None) -> str:
        """Return a file's text without our entries; the original is the text before them, where known."""
        where, server = str(self.path), (self.servers, PROGRAM)
        if self.text:
            return "" if self._is_ours(text) else text
        after = entries.remove_server(text, original, server, where) if self.servers else text
        after = entries.remove_hooks(after, original, where) if self.hooks else after
        if not self.is_versioned or after == text:
            return after
        left, before = (jsonc.parse(part, where).value for part in (after, original or ""))
        # The version is ours if the original had none, or if nothing else is left; it goes with our hooks
        # unless the user has added hooks since.
        is_ours = left == {"version": 1} if original is None else "version" not in before
        is_unused = is_ours and left.get("hooks") == before.get("hooks")
        return jsonc.remove(after, _VERSION, where) if is_unused else after


def client_hooks(client: str, program: str = PROGRAM) -> list[Hook]:
    """Return a client's hooks; the plugins have the same."""
    spelled = f'"{program}"' if re.search(r"[^\w/.:@+-]", program) else program
    hooks = []
    for moment, event in EVENT_NAMES[client].items():
        words = (HOOK, client, moment)
        timeout = _TIMEOUTS.get(client, {}).get(moment, 5)
        # A list of arguments is known to some versions of a client only: others run the bare program.
        handler: dict[str, Any] = {"type": "command", "command": f"{spelled} {' '.join(words)}"}
        entry: dict[str, Any] = {"hooks": [{**handler, "timeout": timeout}]}
        if client == "claude-code" and moment == SESSION_START:
            entry = {"matcher": "startup|resume|clear|compact|fork", **entry}
        elif client == "cursor":
            entry = {"command": handler["command"]}
        elif client == "vscode":
            entry = {**handler, "timeout": timeout}
        elif client == "copilot":
            entry = {**handler, "timeoutSec": timeout}
        hooks.append(Hook(event, words, entry))
    return hooks


def targets(client: str, place: InstallLocation, *, with_server: bool = True) -> list[InstallTarget]:
    """Return the settings files of a client with our entries for each, or with our hooks alone."""
    program = program_for(place)
    hooks, entry = client_hooks(client, program), server_entry(program)
    called = {"command": program, "args": [SERVER]}
    match client:
        case "claude-code":
            name = ".claude/settings.local.json" if place.is_local else ".claude/settings.json"
            settings = _moved_by("CLAUDE_CONFIG_DIR", place, "settings.json") or place.file(name)
            servers = place.file(".mcp.json", ".claude.json")
            found = [InstallTarget(settings, hooks), InstallTarget(servers, (), "mcpServers", entry)]
        case "codex":
            server = {**called, "startup_timeout_sec": 10, "tool_timeout_sec": 60}
            found = [InstallTarget(place.file(".codex/hooks.json"), hooks)]
            found.append(InstallTarget(place.file(".codex/config.toml"), (), "mcp_servers", server))
        case "cursor":
            found = [InstallTarget(place.file(".cursor/hooks.json"), hooks, is_versioned=True)]
            found.append(InstallTarget(place.file(".cursor/mcp.json"), (), "mcpServers", entry))
            # Cursor gives hooks no context at a prompt, so a rule tells the agent of the tools.
            if not place.is_user:
                found.append(InstallTarget(place.root / ".cursor/rules/archivist.mdc", text=_RULE))
        case "gemini":
            found = [InstallTarget(place.file(".gemini/settings.json"), hooks, "mcpServers", called)]
        case "copilot":
            name = f".github/copilot/settings{'.local' if place.is_local else ''}.json"
            moved = [_moved_by("COPILOT_HOME", place, file) for file in ("settings.json", "mcp-config.json")]
            settings = moved[0] or place.file(name, ".copilot/settings.json")
            servers = moved[1] or place.file(".github/mcp.json", ".copilot/mcp-config.json")
            server = {"type": "local", **called, "tools": ["*"]}
            found = [InstallTarget(settings, hooks), InstallTarget(servers, (), "mcpServers", server)]
        case "opencode":
            # A plugin that calls our hooks, and the configuration with our server.
            top = _moved_by("XDG_CONFIG_HOME", place, "opencode") or place.file(
                ".opencode", ".config/opencode"
            )
            config, commented = top / "opencode.json", top / "opencode.jsonc"
            config = commented if commented.exists() and not config.exists() else config
            text = Path(__file__).with_name("opencode.js").read_text("utf-8")
            text = text.replace(f'spawn("{PROGRAM}"', f"spawn({json.dumps(program)}")
            # Version 2 reads this form of the first too.
            server = {"type": "local", "command": [program, SERVER]}
            found = [InstallTarget(top / "plugins/archivist.js", hooks, text=text)]
            found.append(InstallTarget(config, (), "mcp", server))
        case _:
            settings = place.file(".github/hooks/archivist.json", ".copilot/hooks/archivist.json")
            servers = _vscode_folder(place) / "mcp.json"
            found = [InstallTarget(settings, hooks), InstallTarget(servers, (), "servers", entry)]
    found = [replace(target, is_user=place.is_user) for target in found]
    return found if with_server else [replace(target, servers="") for target in found if target.hooks]


def _moved_by(variable: str, place: InstallLocation, name: str) -> Path | None:
    """Return a user's file where a variable moves the folder of a client's settings."""
    moved = os.environ.get(variable, "") if place.is_user else ""
    return Path(moved).expanduser() / name if moved else None


def _vscode_folder(place: InstallLocation) -> Path:
    return editor_folders(("Code",), place.root, os.environ)[0] if place.is_user else place.root / ".vscode"
