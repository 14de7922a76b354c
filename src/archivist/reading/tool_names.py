"""Which tools of lessons an asked tool covers.

Lessons name the command (`bun test`), people the client's tool (`bash`) or the program (`bun`).
"""

from __future__ import annotations

from collections.abc import Iterable

from archivist.reading.failures import is_shell

# Tools of clients, in lower case, that are no programs: what they do never runs in a shell.
_HOST_TOOLS = frozenset((
    "apply_patch", "agent", "create_file", "edit", "edit_file", "exitplanmode", "file_edit", "file_write",
    "fetch", "glob", "insert", "multiedit", "notebookedit", "notebookread", "patch", "read", "read_file",
    "replace", "replace_in_file", "skill", "str_replace", "str_replace_editor", "task", "todowrite",
    "update_plan", "view", "view_image", "webfetch", "websearch", "web_search", "write", "write_file",
    "write_to_file",
))  # fmt: skip


def is_host_tool(tool: str) -> bool:
    """Say whether a tool is the client's own, not a program that a shell runs."""
    return tool.lower() in _HOST_TOOLS or tool.startswith("mcp__")


def find_matching_tools(asked: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the tools that an asked one covers: a shell every program, a program its subcommands."""
    name = asked.strip().lower()
    is_any_command = is_shell(name) and name.replace("_", "").replace("-", "").isalnum()

    def is_covered(tool: str) -> bool:
        own = tool.lower()
        return own == name or own.startswith(f"{name} ") or (is_any_command and not is_host_tool(tool))

    return tuple(sorted({tool for tool in known if tool and is_covered(tool)}))
