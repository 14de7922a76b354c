"""Which tools of lessons an asked tool covers.

Lessons name the command (`bun test`), people the client's tool (`bash`) or the program (`bun`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from archivist.cold_start import lazy_pattern
from archivist.reading.failures import is_shell

# Tools of clients, in lower case, that are no programs: what they do never runs in a shell.
_HOST_TOOLS = frozenset((
    "apply_patch", "agent", "create_file", "edit", "edit_file", "exitplanmode", "file_edit", "file_write",
    "fetch", "glob", "insert", "multiedit", "notebookedit", "notebookread", "patch", "read", "read_file",
    "replace", "replace_in_file", "skill", "str_replace", "str_replace_editor", "task", "todowrite",
    "update_plan", "view", "view_image", "webfetch", "websearch", "web_search", "write", "write_file",
    "write_to_file",
))  # fmt: skip

_HOST_SHELLS = frozenset((
    "bash", "exec", "exec_command", "local_shell", "run_in_terminal", "run_shell_command", "shell",
    "terminal",
))  # fmt: skip

# A server that a repository names chooses what its tools are called: a longer name may be a sentence.
_SERVER_MARK = "mcp__"
_TOOL_NAME = lazy_pattern(r"[A-Za-z][\w.:/-]{0,79}")
_MOST_WORDS = 4
_SPOKEN = frozenset((
    "a", "after", "all", "always", "and", "any", "before", "do", "every", "first", "for", "ignore", "it",
    "must", "never", "not", "now", "only", "or", "please", "should", "skip", "that", "the", "then", "this",
    "to", "use", "with", "without", "you", "your",
))  # fmt: skip


def speakable_tool(tool: str) -> str:
    """Return the name of a tool as lessons may have it: without the part that could be a sentence."""
    if not _TOOL_NAME.fullmatch(tool):
        return "<tool>" if tool else ""
    if not tool.startswith(_SERVER_MARK):
        return tool
    server, _, name = tool.removeprefix(_SERVER_MARK).partition("__")
    parts = [
        re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", part).lower()) for part in (server, name)
    ]
    is_spoken = [len(words) > _MOST_WORDS or not _SPOKEN.isdisjoint(words) for words in parts]
    if is_spoken[0]:
        return "<tool>"
    return f"{_SERVER_MARK}{server}__<tool>" if is_spoken[1] else tool


def quote_tool(tool: str) -> str:
    """Return the name of a tool as a sentence may have it: whoever serves a tool chose what it is called."""
    return tool if tool.lower() in _HOST_TOOLS | _HOST_SHELLS else f"“{tool}”"


def is_host_tool(tool: str) -> bool:
    """Say whether a tool is the client's own, not a program that a shell runs."""
    return tool.lower() in _HOST_TOOLS or tool.startswith(_SERVER_MARK)


def find_matching_tools(asked: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the tools that an asked one covers: a shell every program, a program its subcommands."""
    name = asked.strip().lower()
    is_any_command = is_shell(name) and name.replace("_", "").replace("-", "").isalnum()

    def is_covered(tool: str) -> bool:
        own = tool.lower()
        return own == name or own.startswith(f"{name} ") or (is_any_command and not is_host_tool(tool))

    return tuple(sorted({tool for tool in known if tool and is_covered(tool)}))
